"""Terminal-Bench 1: trials, summaries of runs, and what a run's metadata and lock say of its trials."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from evalkit._text import counted_noun
from evalkit.io import absolute
from evalkit.io.text import shorten
from evalkit.kinds import Parsed
from evalkit.trajectories.chat import Message, OpenNamed, ToolCall
from evalkit.trajectories.json_values import count_of, number_of, part_of, text_of
from evalkit.trajectories.records import AGENT_FAILED, Facts, Joined, Runs, run_row, used

FORMAT = "Terminal-Bench"
LOGS = ("sessions/agent.log", "panes/post-agent.txt")  # the terminal, in the folder of a trial; the first counts
COMMANDS = "commands.txt"
_MOST_TERMINAL = 200_000  # characters of a terminal in a transcript
_TRIAL_KEYS = {"trial_name", "task_id", "is_resolved"}
_NOTHING_HAPPENED = ("unset", "none")  # modes of failure of trials in which nothing failed
_NOT_MEASURED = ("test_timeout", "parse_error", "agent_installation_failed", "unknown_agent_error", "unknown")
_LOCK_VERSIONS = ("1.0",)
_ATTEMPT = re.compile(r"\.(\d+)-of-(\d+)(?=\.|$)")
_DOCUMENT = re.compile(r"[_.-]*(?:run_metadata|metadata|results|tb)\.(?:json|lock)$")  # behind the name of a run
_DATASET = re.compile(r"(.+)[@:](\d+\.[\w.+-]*|head)")  # a folder of the leaderboard
_SUBMISSION = re.compile(r"\d{8}_([^_]+)_(.+)")  # a folder: date, agent, model
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])|[\x00-\x08\x0b-\x1f\x7f]")


def recognises(value: Any) -> str:
    """Return what a decoded file is: a trial, the results of a run, its metadata or lock; empty for anything else."""
    first = value[0] if isinstance(value, list) and value else value
    keys = first.keys() if isinstance(first, dict) else set()
    if _is_trial(first):
        return "Terminal-Bench results" if isinstance(value, list) else "Terminal-Bench trial result"
    if not isinstance(value, dict):
        return ""
    if isinstance(value.get("results"), list):
        is_summary = any(map(_is_trial, value["results"][:1])) or {"n_resolved", "n_unresolved"} <= keys
        return "Terminal-Bench results" if is_summary else ""
    if {"run_id", "n_attempts"} <= keys and keys & {"task_ids", "dataset_name", "dataset_path"}:
        return "Terminal-Bench run description"
    return "Terminal-Bench lock" if {"lockfile_version", "run_config"} <= keys else ""


def _is_trial(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= _TRIAL_KEYS and "task_name" not in value  # as Harbor's has


def parse(path: str, value: Any) -> Parsed:
    """Return the runs of a trial or a summary, or what a run's metadata or lock plan and say of its trials."""
    title = recognises(value)
    if title == "Terminal-Bench lock":
        version, about, config = text_of(value["lockfile_version"]), value.get("dataset"), value.get("run_config")
        stated = {
            "model_name": part_of(value, "agent", "model_name"),
            "agent": part_of(value, "agent", "name"),
            "dataset": _dataset(part_of(about, "name"), part_of(about, "version")),
            "limits": _limits(config),
        }
        reason = "" if version in _LOCK_VERSIONS else f"lockfile_version {version} is unknown"
        return _described(stated, part_of(about, "task_ids"), part_of(config, "n_attempts"), None, reason)
    if title == "Terminal-Bench run description":
        stated = {
            "model_name": value.get("model_name"),
            "agent": value.get("agent_name"),
            "dataset": _dataset(value.get("dataset_name"), value.get("dataset_version")),
            "run": value.get("run_id"),
        }
        return _described(stated, value.get("task_ids"), value["n_attempts"], value.get("dataset_size"))
    trials = list(_trials(value))
    reasons = []
    if not _is_trial(value):
        listed = value if isinstance(value, list) else value["results"]
        if lost := len(listed) - len(trials):
            reasons.append(f"{lost} of {len(listed)} results are no trials")
    known = {*AGENT_FAILED, *_NOT_MEASURED, *_NOTHING_HAPPENED, ""}
    modes = Counter(text_of(trial.get("failure_mode")) for _, trial in trials)
    for mode, n in modes.items():
        if mode not in known:
            reasons.append(f"failure_mode {mode} is unknown: {counted_noun(n, 'trial')} not measured")
    scores = [
        (part, "is_resolved", float(trial["is_resolved"]), "")
        for part, trial in trials
        if isinstance(trial["is_resolved"], bool)
    ]
    accuracy = number_of(part_of(value, "accuracy"))
    published = [(None, None, None, "accuracy", accuracy, len(trials))] if accuracy is not None else []
    runs = [_run(part, trial) for part, trial in trials]
    return used(runs, scores, published=published, reason="; ".join(reasons))


def _trials(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the trials of a file, each with its part."""
    if _is_trial(value):
        yield "", value
        return
    seen = Counter[str]()
    for trial in value if isinstance(value, list) else value["results"]:
        if _is_trial(trial):
            part = _id(trial) or text_of(trial["trial_name"])
            seen[part] += 1
            yield part if seen[part] == 1 else f"{part} {seen[part]}", trial


def _described(stated: dict[str, Any], tasks: Any, attempts: Any, size: Any, reason: str = "") -> Parsed:
    """Return what a file says of all trials of a run, and how many trials of which tasks the run was to have."""
    stated = {name: text for name, item in stated.items() if (text := text_of(item))}
    shared, attempts = (stated.get("model_name"), stated.get("dataset")), count_of(attempts) or 1
    plans = []
    if isinstance(tasks, list):
        plans = [(*shared, task, n * attempts, None) for task, n in Counter(map(text_of, tasks)).items()]
    elif size := count_of(size):
        plans = [(*shared, "", size * attempts, None)]
    return used(plans=plans, facts=[(FORMAT, "", "", text_of(stated))], reason=reason)


def _run(part: str, trial: dict[str, Any]) -> tuple:
    """Return the run of a trial; files of its run name the model and the agent."""
    mode = text_of(trial.get("failure_mode"))
    status = "completed" if mode in ("", *_NOTHING_HAPPENED) else mode
    if not isinstance(trial["is_resolved"], bool) and (status == "completed" or status in AGENT_FAILED):
        status = "untested"  # a time-out does not decide: tests run after it
    attempt = _ATTEMPT.search(text_of(trial["trial_name"]))
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
        tokens_in=count_of(trial.get("total_input_tokens")) or None,  # 0 is written where nothing was counted
        tokens_out=count_of(trial.get("total_output_tokens")) or None,
        extra={"trial_name": text_of(trial["trial_name"])},
    )


def _id(trial: Mapping[str, Any]) -> str:
    return text_of(trial.get("id") or trial.get("uuid"))


def _dataset(name: Any, version: Any) -> str | None:
    """Return the name of a data set with its version: ``terminal-bench-core@0.1.1``."""
    return "@".join(filter(None, [text_of(name), text_of(version)])) if name else None


def _limits(config: Any) -> str:
    """Return the limits of time that differ from those of the tasks."""
    factor = number_of(part_of(config, "global_timeout_multiplier"))
    limits = [f"timeout_multiplier {factor:g}"] if factor not in (None, 1.0) else []
    for name in ("agent_timeout_sec", "test_timeout_sec"):
        seconds = number_of(part_of(config, f"global_{name}"))
        limits += [f"{name} {seconds:g}"] if seconds is not None else []
    return ", ".join(limits)


def messages(value: Any, part: str, open_named: OpenNamed) -> list[Message]:
    """List the task, the commands and the terminal of a trial, what failed, and the results of its tests."""
    folder = ""
    if not _is_trial(value):
        value = next((trial for own, trial in _trials(value) if own == part), {})
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


class _Folder(NamedTuple):
    """What the path of a file tells of a trial."""

    dataset: str = ""
    submission: str = ""
    agent: str = ""
    model: str = ""


def join(runs: Runs, facts: Facts, published: Runs) -> Joined:
    """Fill in what files and folders say of their trials, and find the copies of trials.

    A trial has a file of its own, or an entry in the summary of its run, or both; a resumed run holds a copy of an
    earlier run. All of these are one run, except in different submissions.
    """
    about: dict[_Key, dict[str, str]] = {}
    plan_at: dict[_Key, str] = {}
    no_plans = set[str]()
    stated = [fact for fact in facts if fact["fact"] == FORMAT]
    for fact in sorted(stated, key=lambda fact: (fact["source"].endswith(".lock"), fact["source"])):  # metadata first
        of_run, run = _key(fact["source"])
        values = msgspec.json.decode(fact["value"])
        for name in dict.fromkeys([run, run and values.get("run", "")]):
            about[of_run, name] = values | about.get((of_run, name), {})
            if plan_at.setdefault((of_run, name), fact["source"]) != fact["source"]:
                no_plans.add(fact["source"])
    places = [at for at, own in enumerate(runs["format"]) if own == FORMAT]
    run_of = {source: _nearest(source, about) for source in {runs["source"][at] for at in places}}
    folder_of = {source: _folder(posixpath.dirname(absolute(source))) for source in run_of}
    named: dict[str, dict[str, str]] = {}  # by file
    for source, names in folder_of.items():
        values = about.get(run_of[source], {})
        by_folder = {"model_name": names.model, "agent": names.agent, "dataset": names.dataset}
        named[source] = by_folder | values
        if names.dataset.startswith(f"{values.get('dataset')}@"):
            named[source]["dataset"] = names.dataset
    for at, source in enumerate(published["source"]):
        for column in ("model_name", "agent", "dataset"):
            published[column][at] = named.get(source, {}).get(column) or published[column][at]
    groups: dict[tuple[str, ...], list[int]] = {}
    for at in places:
        source = runs["source"][at]
        names, values = folder_of[source], about.get(run_of[source], {})
        for column in ("model_name", "agent", "dataset", "limits"):
            runs[column][at] = named[source].get(column) or None
        runs["experiment"][at] = names.submission or None
        if names.model and not values.get("model_name"):
            runs["model_source"][at] = "folder"
        groups.setdefault((names.submission, *_identity(runs, at)), []).append(at)
    copies = set[int]()
    for group in groups.values():
        if len(group) > 1:
            outermost = sorted(
                (bool(runs["part"][at]), runs["source"][at].count("/"), runs["source"][at], at) for at in group
            )
            copies.update(at for *_, at in outermost[1:])  # the first is a file of its own, if there is one
            keys = sorted({run_of[runs["source"][at]] for at in group}, key=lambda key: (key[0].count("/"), key))
            no_plans.update(plan_at[key] for key in keys[1:] if key in plan_at)
    plans = {key: plan for key, plan in plan_at.items() if plan not in no_plans}
    plan_of = {source: plans.get(key) or plans.get(_nearest(source, plans)) for source, key in run_of.items()}
    return Joined(copies, plan_of, no_plans)


def context_files(files: Sequence[str]) -> list[str]:
    """Return where the metadata and the lock of the runs of some files may be, in the folders above these, too."""
    starts = dict[str, None]()
    for path in files:
        if path.endswith("results.json"):
            above, trial = posixpath.split(posixpath.dirname(path))
            is_trial = trial.startswith(f"{posixpath.basename(above)}.")  # RUN/TASK/TASK.1-of-1/results.json
            starts[f"{posixpath.dirname(above)}/" if is_trial else path.removesuffix("results.json")] = None
    return [f"{start}{name}" for start in starts for name in ("run_metadata.json", "tb.lock")]


_Key = tuple[str, str]  # of a run: its folder, and its own name where the names of its files begin with it


def _key(source: str) -> _Key:
    folder, name = posixpath.split(source)
    return folder, _DOCUMENT.sub("", name)


def _nearest(source: str, known: Mapping[_Key, Any]) -> _Key:
    """Return the key of a file's run: with the run's name in its own, else of the nearest folder that is known."""
    own = _key(source)
    if own in known:
        return own
    folder = own[0]
    while folder and (folder, "") not in known:
        folder = folder.rpartition("/")[0]
    return (folder, "") if (folder, "") in known else own


def _identity(runs: Mapping[str, list[Any]], at: int) -> tuple[str, ...]:
    """Return what copies of a trial share: its id, else its name and its run's name, its settings, end and time."""
    if runs["log_id"][at]:
        return runs["log_id"][at], runs["task_id"][at]
    folder, run = _key(runs["source"][at])
    if not runs["part"][at] and posixpath.basename(posixpath.dirname(folder)) == runs["task_id"][at]:  # RUN/TASK/TRIAL
        folder = posixpath.dirname(posixpath.dirname(folder))
    name = text_of(part_of(msgspec.json.decode(runs["extra"][at]), "trial_name"))
    told = (runs[column][at] for column in ("task_id", "model_name", "agent", "exit_reason", "started"))
    return run or posixpath.basename(folder), name, *map(str, told)


@cache
def _folder(folder: str) -> _Folder:
    """Return what the leaderboard's folders tell of the files in a folder: results/DATASET/SUBMISSION/…."""
    parts = re.sub(r"^\w+://[^/]*", "", folder).split("/")  # without a host
    datasets = [at for at, part in enumerate(parts) if _DATASET.fullmatch(part)]
    below = datasets[-1] + 1 if datasets else 0
    dataset = _DATASET.sub(r"\1@\2", parts[below - 1]) if datasets else ""
    for part in parts[below:]:
        if named := _SUBMISSION.fullmatch(part):
            return _Folder(dataset, part, named[1], named[2])
    return _Folder(dataset, parts[below] if datasets and below < len(parts) else "")
