"""Terminal-Bench 1: results of trials, and the summary, metadata and lock file of a run."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from evalkit._text import counted_noun
from evalkit.io import absolute
from evalkit.io.text import shorten
from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed, ToolCall
from evalkit.trajectories.json_values import count_of, number_of, part_of, text_of
from evalkit.trajectories.records import (
    AGENT_FAILED,
    Fact,
    Joined,
    Plan,
    Published,
    Rows,
    Run,
    Runs,
    by_file,
    counted,
    run_row,
    stated_by,
    used,
)

FORMAT = "Terminal-Bench"
LOGS = ("sessions/agent.log", "panes/post-agent.txt")  # terminal logs in a trial's folder; the first with text counts
COMMANDS = "commands.txt"
_MOST_TERMINAL = 200_000  # characters of terminal output in a transcript
_TRIAL_KEYS = {"trial_name", "task_id", "is_resolved"}
_NOTHING_HAPPENED = ("unset", "none")  # failure modes of trials without a failure
_NOT_TESTED = ("test_timeout", "parse_error", "agent_installation_failed", "unknown_agent_error", "unknown")
_LOCK_VERSIONS = ("1.0",)
_ATTEMPT = re.compile(r"\.(\d+)-of-(\d+)(?=\.|$)")
_DOCUMENT = re.compile(r"[_.-]*(?:run_metadata|metadata|results|tb)\.(?:json|lock)$")  # after the name of a run
_DATASET = re.compile(r"(.+)[@:](\d+\.[\w.+-]*|head)")  # folder of a benchmark in the leaderboard: name, version
_SUBMISSION = re.compile(r"\d{8}_([^_]+)_(.+)")  # folder of a submission: date, agent, model
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])|[\x00-\x08\x0b-\x1f\x7f]")


def recognises(value: Any) -> str:
    """Return the title of a trial, the results of a run, its metadata or its lock; empty for anything else."""
    if _is_trial(value):
        return "Terminal-Bench trial result"
    keys = value.keys() if isinstance(value, dict) else set()
    listed = value if isinstance(value, list) else part_of(value, "results")
    if isinstance(listed, list):
        is_summary = any(map(_is_trial, listed[:1])) or {"n_resolved", "n_unresolved"} <= keys
        return "Terminal-Bench results" if is_summary else ""
    if {"run_id", "n_attempts"} <= keys and keys & {"task_ids", "dataset_name", "dataset_path"}:
        return "Terminal-Bench run description"
    return "Terminal-Bench lock" if {"lockfile_version", "run_config"} <= keys else ""


def _is_trial(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= _TRIAL_KEYS and "task_name" not in value  # unlike in Harbor


def parse(path: str, value: Any) -> Parsed:
    """Return the run of a trial, the runs in a summary, or the plan and facts in a run's metadata or lock."""
    title = recognises(value)
    if title == "Terminal-Bench lock":
        return _parse_lock(value)
    if title == "Terminal-Bench run description":
        return _described(value)
    trials = _trials(value)
    listed = value if isinstance(value, list) else value.get("results", [value])
    reasons = []
    if lost := len(listed) - len(trials):
        reasons.append(f"{lost} of {len(listed)} results are no trials")
    tested = {part: trial for part, trial in trials.items() if isinstance(trial["is_resolved"], bool)}
    modes = Counter((text_of(trial.get("failure_mode")), part in tested) for part, trial in trials.items())
    for (mode, is_tested), n in modes.items():
        if mode not in {"", *AGENT_FAILED, *_NOT_TESTED, *_NOTHING_HAPPENED}:
            measured = "measured" if is_tested else "not measured"
            reasons.append(f"failure_mode {mode} is unknown: {counted_noun(n, 'trial')} {measured}")
    scores = [(part, "is_resolved", float(trial["is_resolved"]), "") for part, trial in tested.items()]
    published = _published(value, len(trials)) if isinstance(value, dict) else []
    runs = [_run(part, trial) for part, trial in trials.items()]
    return used(runs, scores, published=published, reason="; ".join(reasons))


def _trials(value: Any) -> dict[str, dict[str, Any]]:
    """Return the trials in a file by part."""
    if _is_trial(value):
        return {"": value}
    seen = Counter[str]()
    trials = {}
    for trial in filter(_is_trial, value if isinstance(value, list) else value["results"]):
        part = _id(trial) or text_of(trial["trial_name"])
        seen[part] += 1
        trials[part if seen[part] == 1 else f"{part} {seen[part]}"] = trial
    return trials


def _parse_lock(lock: dict[str, Any]) -> Parsed:
    """Return the facts in a lock: the same as in metadata, under other names, and also limits."""
    config = lock["run_config"]
    factor = number_of(part_of(config, "global_timeout_multiplier"))
    limits = [f"timeout_multiplier {factor:g}"] if factor not in (None, 1.0) else []
    for name in ("agent_timeout_sec", "test_timeout_sec"):
        seconds = number_of(part_of(config, f"global_{name}"))
        if seconds is not None:
            limits.append(f"{name} {seconds:g}")
    metadata = {
        "model_name": part_of(lock, "agent", "model_name"),
        "agent_name": part_of(lock, "agent", "name"),
        "dataset_name": part_of(lock, "dataset", "name"),
        "dataset_version": part_of(lock, "dataset", "version"),
        "task_ids": part_of(lock, "dataset", "task_ids"),
        "n_attempts": part_of(config, "n_attempts"),
    }
    version = text_of(lock["lockfile_version"])
    reason = "" if version in _LOCK_VERSIONS else f"lockfile_version {version} is unknown"
    return _described(metadata, ", ".join(limits), reason)


def _described(metadata: dict[str, Any], limits: str = "", reason: str = "") -> Parsed:
    """Return the facts that metadata or a lock states for all trials of a run, and the planned trials of each task."""
    dataset = [text_of(metadata.get(name)) for name in ("dataset_name", "dataset_version")]
    stated = {
        "model_name": text_of(metadata.get("model_name")),
        "agent": text_of(metadata.get("agent_name")),
        "dataset": "@".join(filter(None, dataset)) if dataset[0] else "",
        "run": text_of(metadata.get("run_id")),
        "limits": limits,
    }
    stated = {name: text for name, text in stated.items() if text}
    shared = (stated.get("model_name"), stated.get("dataset"))
    attempts = count_of(metadata.get("n_attempts")) or 1
    tasks = metadata.get("task_ids")
    planned: dict[str, int] = {}
    if isinstance(tasks, list):
        planned = Counter(map(text_of, tasks))
    elif size := count_of(metadata.get("dataset_size")):
        planned = {"": size}
    plans = [Plan(*shared, task, planned=n * attempts) for task, n in planned.items()]
    published = _published(metadata, sum(planned.values()) * attempts)
    return used(plans=plans, facts=[Fact(FORMAT, value=text_of(stated))], published=published, reason=reason)


def _published(stated: dict[str, Any], n: int) -> list[Published]:
    """Return the published rates of a run from its summary or metadata: accuracy, share resolved, pass@k."""
    resolved = count_of(stated.get("n_resolved"))
    rates = {"accuracy": stated.get("accuracy"), "resolved": None if resolved is None or not n else resolved / n}
    if isinstance(of_k := stated.get("pass_at_k"), dict):
        rates |= {f"pass@{k}": rate for k, rate in of_k.items()}
    known = {metric: rate for metric, one in rates.items() if (rate := number_of(one)) is not None}
    return [Published(metric=metric, value=rate, n=n or None) for metric, rate in known.items()]


def _run(part: str, trial: dict[str, Any]) -> tuple:
    """Return the run of a trial, without model and agent, which other files name."""
    mode = text_of(trial.get("failure_mode"))
    if isinstance(trial["is_resolved"], bool):  # the tests ran, however the agent ended
        status = mode if mode in AGENT_FAILED else "completed"
    else:
        status = "untested" if mode in {"", *_NOTHING_HAPPENED, *AGENT_FAILED} else mode
    attempt = _ATTEMPT.search(text_of(trial["trial_name"]))
    read, written = (count_of(trial.get(name)) for name in ("total_input_tokens", "total_output_tokens"))
    return run_row(
        part=part,
        log_id=_id(trial),
        format=FORMAT,
        task_id=trial["task_id"],
        repetition=int(attempt[1]) - 1 if attempt and int(attempt[2]) > 1 else None,
        exit_reason=mode,
        status=status,
        started=trial.get("trial_started_at") or trial.get("agent_started_at"),
        ended=trial.get("trial_ended_at") or trial.get("test_ended_at"),
        extra={"trial_name": text_of(trial["trial_name"])},
        **counted(tokens_in=read, tokens_out=written),
    )


def _id(trial: Mapping[str, Any]) -> str:
    return text_of(trial.get("id") or trial.get("uuid"))


def messages(value: Any, part: str, open_named: OpenNamed) -> list[Message]:
    """List the task, commands, terminal output, failure mode and test results of a trial as messages."""
    folder = ""
    if not _is_trial(value):
        value = _trials(value).get(part, {})
        folder = f"{text_of(value.get('task_id'))}/{text_of(value.get('trial_name'))}/"
    spoken = [Message("user", text_of(value.get("instruction")))]
    if commands := open_named(f"{folder}{COMMANDS}", is_text=True):
        calls = [ToolCall("terminal", line) for line in commands.splitlines() if line.strip()]
        spoken.append(Message("assistant", "", calls=calls))
    if terminal := next(filter(None, (open_named(f"{folder}{name}", is_text=True) for name in LOGS)), ""):
        spoken.append(Message("tool", shorten(_ESCAPES.sub("", terminal), _MOST_TERMINAL), "terminal"))
    mode = text_of(value.get("failure_mode"))
    if mode not in ("", *_NOTHING_HAPPENED):
        spoken.append(Message("error", mode))
    if isinstance(tests := value.get("parser_results"), dict):
        lines = [f"{name}: {text_of(result)}" for name, result in tests.items()]
        spoken.append(Message("system", "\n".join(lines), "tests"))
    return spoken


def join(runs: Runs, facts: Rows, published: Rows) -> Joined:
    """Fill in what files and folders state about their trials, and leave out copies of trials.

    A trial has a results file, an entry in the summary of its run, or both. A resumed run contains a copy of an
    earlier run. All copies of a trial in one submission count as one run.
    """
    about: dict[_Key, dict[str, str]] = {}
    plan_at: dict[_Key, str] = {}
    no_plans = set[str]()
    stated = sorted(stated_by(facts, FORMAT), key=lambda fact: (fact[0].endswith(".lock"), fact[0]))  # metadata first
    for source, _, values in stated:
        of_run, run_name = _key(source)
        for name in {run_name, values.get("run", "")} if run_name else {run_name}:
            about[of_run, name] = values | about.get((of_run, name), {})
            if plan_at.setdefault((of_run, name), source) != source:
                no_plans.add(source)
    files = by_file(runs, FORMAT)
    run_of = {source: _nearest(source, about) for source in files}
    settings = {source: _settings(source, about.get(run, {})) for source, run in run_of.items()}
    settings_of = {run_of[source]: values for source, values in settings.items()}
    of_files = settings | {source: settings_of.get(_nearest(source, about), {}) for source, _, _ in stated}
    for figure in published:
        for column in ("model_name", "agent", "dataset"):
            figure[column] = of_files.get(figure["source"], {}).get(column) or figure[column]
    trials: dict[tuple[Any, ...], list[Run]] = {}  # copies of each trial, by its submission and identity
    for source, own in files.items():
        for run in own:
            for column, value in settings[source].items():
                setattr(run, column, value or None)
            trials.setdefault((run.experiment, *_identity(run)), []).append(run)

    def outermost(run: Run) -> tuple[bool, int, str]:  # sort key: results files of trials come before summaries
        return bool(run.part), run.source.count("/"), run.source

    copied = set[_Key]()  # runs with trials that another run also contains
    for copies in trials.values():
        copies.sort(key=outermost)
        for run in copies[1:]:
            run.is_left_out = True
        keys = sorted({run_of[run.source] for run in copies}, key=lambda key: (key[0].count("/"), key))
        copied.update(keys[1:])
    no_plans.update(plan_at[key] for key in copied if key in plan_at)
    published[:] = [figure for figure in published if _key(figure["source"]) not in copied]
    plans = {key: plan for key, plan in plan_at.items() if plan not in no_plans}
    return Joined({source: plans.get(_nearest(source, plans)) for source in run_of}, no_plans)


def _settings(source: str, stated: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that all runs in a file share, from other files or else from results/DATASET/SUBMISSION."""
    settings = {}
    parts = re.sub(r"^\w+://[^/]*", "", posixpath.dirname(absolute(source))).split("/")  # without scheme and host
    below = 0
    for at, part in enumerate(parts):
        if _DATASET.fullmatch(part):
            settings["dataset"] = _DATASET.sub(r"\1@\2", part)
            below = at + 1
    if below:
        settings["experiment"] = next(iter(parts[below:]), "")
    if named := next(filter(None, map(_SUBMISSION.fullmatch, parts[below:])), None):
        settings |= {"experiment": named[0], "agent": named[1], "model_name": named[2]}
        if "model_name" not in stated:
            settings["model_source"] = "folder"
    for column in ("model_name", "agent", "dataset", "limits"):
        text = stated.get(column)
        if text and not (column == "dataset" and settings.get(column, "").startswith(f"{text}@")):
            settings[column] = text
    return settings


def context_files(files: Iterable[str]) -> Iterator[str]:
    """Yield the paths where the metadata and the lock of each run may be, also in a folder above its trials."""
    for path in files:
        if path.endswith("results.json"):
            above, trial = posixpath.split(posixpath.dirname(path))
            is_trial = trial.startswith(f"{posixpath.basename(above)}.")  # RUN/TASK/TASK.1-of-1/results.json
            start = f"{posixpath.dirname(above)}/" if is_trial else path.removesuffix("results.json")
            yield from (f"{start}run_metadata.json", f"{start}tb.lock")


_Key = tuple[str, str]  # key of a run: its folder, and its name if its file names start with it, else ""


def _key(source: str) -> _Key:
    folder, name = posixpath.split(source)
    return folder, _DOCUMENT.sub("", name)


def _nearest(source: str, known: Mapping[_Key, Any]) -> _Key:
    """Return the key of the run that a file belongs to: its exact key if known, else the nearest known folder above."""
    own = _key(source)
    if own in known:
        return own
    folder = own[0]
    while folder and (folder, "") not in known:
        folder = folder.rpartition("/")[0]
    return (folder, "") if (folder, "") in known else own


def _identity(run: Any) -> tuple[str, ...]:
    """Return what copies of a trial share: its id, or else the name of its run, its own name and its start."""
    if run.log_id:
        return run.log_id, run.task_id
    folder, name = _key(run.source)
    if not run.part and posixpath.basename(posixpath.dirname(folder)) == run.task_id:  # RUN/TASK/TRIAL
        folder = posixpath.dirname(posixpath.dirname(folder))
    trial = text_of(part_of(msgspec.json.decode(run.extra), "trial_name"))
    return name or posixpath.basename(folder), trial, str(run.started)
