"""Reports and commands show on the samples what was recorded; ``python -m tests.golden`` records it again.

What the reports say is also computed from the sample logs in a few plain lines, without evalkit. The sample logs are
made up, so that their layout is known: `runs` reads them as a person would. Both are in one file, so that one process
runs each report once.
"""

import csv
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import pytest
from scipy.stats import ttest_1samp

from tests.golden.record import (
    COMMANDS,
    EXPECTED,
    PAGES,
    ROOT,
    differences,
    name_of,
    record_command,
    record_report,
    reports,
)

HINT = "If this is meant: python -m tests.golden, read the difference, and commit it with its reason."


def check(name: str, got: str) -> None:
    expected = (EXPECTED / name).read_text(encoding="utf-8")
    found = differences(expected, got)
    assert not found, "\n".join([f"{name} differs in {len(found)} places:", *found[:20], HINT])


@pytest.mark.slow
@pytest.mark.parametrize("params", reports(), ids=name_of)
def test_reports_equal_the_recorded_numbers_and_pages(params):
    recorded = record_report(params)
    check(f"numbers/{name_of(params)}.csv", recorded.numbers)
    if name_of(params) in PAGES:
        check(f"pages/{name_of(params)}.txt", recorded.text)


@pytest.mark.parametrize("name", COMMANDS)
def test_output_of_commands_equals_the_recorded_text(name):
    check(f"commands/{name}.txt", record_command(COMMANDS[name]))


def test_every_notebook_has_a_page_and_every_expected_file_is_recorded():
    assert sorted(page.partition("/")[0] for page in PAGES) == sorted({path.parent.name for path in reports()})
    names = {f"numbers/{name_of(path)}.csv" for path in reports()}
    names |= {f"pages/{page}.txt" for page in PAGES}
    names |= {f"commands/{name}.txt" for name in COMMANDS}
    assert {path.relative_to(EXPECTED).as_posix() for path in EXPECTED.rglob("*.*")} == names


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        ("rate 0.512345", "rate 0.512346", True),
        ("rate 0.512", "rate 0.513", False),
        ("n 12", "n 13", False),
        ("a 1", "b 1", False),
        ("a\nb", "a", False),
        ("a", "a\nb", False),
        ("0 of 3", "0 of 3", True),
        ("−0.5 points", "0.5 points", False),
    ],
)
def test_only_the_last_digits_of_numbers_may_differ(expected, got, same):
    assert (differences(expected, got) == []) == same


# The same, computed once more

SAMPLES = ROOT / "evalkit" / "samples"
TASKS = {
    task: entry
    for path in sorted((SAMPLES / "mindcraft" / "tasks").glob("*.json"))
    for task, entry in json.loads(path.read_text()).items()
}
FINAL = re.compile(r"Task ended with score : ([\d.]+)")
SUCCESS = re.compile(r"Task successful(?: ended with code : \d+)?|Task completed(?:, exiting)?")


class Run(NamedTuple):
    """A run of the samples: who ran what, and the highest score of its agents (None: no score)."""

    model: str
    task: str
    score: float | None
    timed_out: bool  # an agent's log says so; without a score, that is a failure

    @property
    def kind(self) -> str:
        return TASKS[self.task]["type"] if self.task in TASKS else "cooking"

    @property
    def is_success(self) -> bool:
        return self.score == (100 if self.kind == "construction" else 1)


def score_of(log: bytes) -> float | None:
    try:
        turns = json.loads(log)["turns"]
    except (ValueError, KeyError):
        return None
    for text in (turn["content"].strip() for turn in turns if turn["role"] == "system"):
        if match := FINAL.fullmatch(text):
            return float(match[1])
        if SUCCESS.fullmatch(text):
            return 1.0
    return None


def model_of(folder: Path) -> str:
    place = folder.relative_to(SAMPLES / "mindcraft" / "runs").parts
    names = {"alder": "alder-large", "exp": "cedar-8b-sft", "small-models": "dogwood-8b"}
    return next((name for start, name in names.items() if place[0].startswith(start)), "birch-lab/birch-70b")


# the samples' maker put another run's log into this one, whose agents so started ten minutes apart
STALE = ("birch_cooking", "multiagent_cooking_1_baked_potato_1_bread", "0")


def runs() -> list[Run]:
    """Read the sample runs, but for the one that holds a stale copy."""
    found: dict[tuple[Path, str], list[bytes]] = defaultdict(list)
    for path in sorted((SAMPLES / "mindcraft" / "runs").rglob("*.json")):
        if "profile" not in path.name:
            repetition = "0" if path.name.startswith("agent_") else path.stem.rpartition("_")[2]
            found[path.parent, repetition].append(path.read_bytes())
    read = []
    for (folder, repetition), logs in found.items():
        if (folder.parent.name, folder.name, repetition) != STALE:
            scores = [score for log in logs if (score := score_of(log)) is not None]
            timed_out = any(b'"content": "Task timeout reached' in log for log in logs)
            read.append(Run(model_of(folder), folder.name, max(scores, default=None), timed_out))
    return read


RUNS = runs()


def report(name: str) -> str:
    return record_report(ROOT / "params" / f"{name}.yaml").text


def headline(name: str) -> dict[str, str]:
    """The first headline of a report: its label, then estimate, low, high, n, … as far as there are any."""
    line = report(name).partition("## show_answer\n")[2].partition("\n")[0]
    label, estimate, values = line.rpartition(": estimate ")
    if not estimate:  # nothing is shown to be best
        return {"label": line.removesuffix(":")}
    return {"label": label} | dict(pair.split(" ", 1) for pair in f"estimate {values}".split(", ") if " " in pair)


def published(name: str, table: str) -> list[dict[str, str]]:
    text = report(name).partition(f"## publish\nname: {table}\n")[2].partition("\n\n")[0]
    return list(csv.DictReader(io.StringIO(text)))


def close(text: str, value: float) -> bool:
    return float(text) == pytest.approx(value, rel=1e-4)


def by_task(chosen: list[Run]) -> dict[str, float]:
    """The share of successes of the runs of each task."""
    tasks = defaultdict(list)
    for run in chosen:
        tasks[run.task].append(run.is_success)
    return {task: mean(own) for task, own in tasks.items()}


def share(chosen: list[Run]) -> float:
    """The mean over tasks of the share of successes of their runs."""
    tasks = by_task(chosen)
    return mean(tasks.values())


@pytest.mark.parametrize("model", ["alder-large", "birch-70b", "cedar-8b-sft", "dogwood-8b"])
def test_the_overview_page_equals_counts_from_the_logs(model):
    own = [run for run in RUNS if run.model.endswith(model)]
    found = headline(f"model_overview/{model}")
    assert close(found["estimate"], share(own))
    assert int(found["n"]) == len(own)
    (row,) = (row for row in published(f"model_overview/{model}", "models") if row["model_name"].endswith(model))
    assert int(row["SUCCESS"]) == sum(run.is_success for run in own)
    assert int(row["n_not_measured"]) == sum(run.score is None and not run.timed_out for run in own)


@pytest.mark.parametrize(("name", "items"), [("all_models", ()), ("three_items", ("bread", "cake", "golden_apple"))])
def test_the_cooking_page_equals_counts_from_the_logs(name, items):
    def is_chosen(run: Run) -> bool:
        targets = TASKS.get(run.task, {}).get("target", run.task)
        return (
            run.kind == "cooking"
            and "hells_kitchen" not in run.task
            and (not items or any(i in targets for i in items))
        )

    cooking = [run for run in RUNS if is_chosen(run)]
    sides: dict[str, dict[bool, list[Run]]] = defaultdict(lambda: {False: [], True: []})
    for run in cooking:
        is_blocked = bool(TASKS[run.task]["blocked_access_to_recipe"]) if run.task in TASKS else False
        sides[run.model][is_blocked].append(run)
    found = headline(f"cooking_blocked_agents/{name}")
    drops = [share(own[False]) - share(own[True]) for own in sides.values()]
    assert close(found["estimate"], sum(drops) / len(drops))
    assert int(found["n"]) == len(cooking)
    groups = defaultdict(list)
    for run in cooking:
        blocked = TASKS[run.task]["blocked_access_to_recipe"] if run.task in TASKS else []
        groups[run.model, str(len(blocked))].append(run)
    table = published(f"cooking_blocked_agents/{name}", "cooking_by_blocked")
    assert {(row["model_name"], row["n_blocked_agents"]) for row in table} == set(groups)
    for row in table:
        own = groups[row["model_name"], row["n_blocked_agents"]]
        assert int(row["n"]) == len(own)
        assert close(row["estimate"], share(own))


def test_the_comparison_page_equals_counts_from_the_logs():
    table = published("model_comparison/all_models", "models")
    for row in table:
        own = [run for run in RUNS if run.model == row["model_name"]]
        assert (int(row["n"]), close(row["estimate"], share(own))) == (len(own), True)
    for row in published("model_comparison/all_models", "pairs"):
        means = [by_task([run for run in RUNS if run.model == row[side]]) for side in ("model_a", "model_b")]
        shared = means[0].keys() & means[1].keys()
        assert int(row["n_tasks"]) == len(shared)
        assert close(row["estimate"], mean(means[0][task] - means[1][task] for task in shared))
    text = report("model_comparison/all_models")
    for kind, title in (("cooking", "Cooking success"), ("techtree", "Crafting success")):
        figure = text.partition(f"## show_figure\ncaption: {title}, with published")[2].partition("\n\n")[0]
        drawn = {float(x) for points in re.findall(r"points: (.*)", figure) for x in re.findall(r"\((\S+), ", points)}
        for model in {run.model for run in RUNS}:
            own = [run for run in RUNS if run.model == model and run.kind == kind]
            assert any(x == pytest.approx(share(own), rel=1e-4) for x in drawn), (title, model)


WEIGHTS = {"easy": 1.0, "medium": 2.5, "hard": 5.0}


def episodes() -> Iterator[dict[str, Any]]:
    for path in sorted((SAMPLES / "crafter").glob("*.json")):
        trace = json.loads(path.read_text())
        config = next(e["data"] for e in trace["session_metadata"] if e["metadata_type"] == "episode_config")
        hooks = [hook for event in trace["event_history"] for hook in event.get("event_metadata") or []]
        score = -0.05 * sum(hook["hook_name"] == "invalid_action" for hook in hooks)
        for tier, weight in WEIGHTS.items():
            own = [hook for hook in hooks if hook["hook_name"] == f"{tier}_achievement"]
            score += weight * sum(len(hook["data"]["achievements"]) for hook in own)
        names = {n for h in hooks for n in (h.get("data") or {}).get("achievements") or []}
        task = path.stem.split("_")[3]  # the number of the episode, whose world all models played
        about = {"model": config["model_name"], "task": task, "difficulty": config["difficulty"]}
        yield {**about, "score": score, "names": names}


@pytest.mark.parametrize(
    ("name", "is_chosen", "label"),
    [
        ("every_model", lambda episode: True, "best: scripted-miner (mean score)"),
        ("scripted_policies", lambda episode: episode["model"] != "random", "best: scripted-miner (mean score)"),
        ("easy_worlds", lambda episode: episode["difficulty"] == "easy",
         "scripted-miner is first; not decided against random and scripted-forager; "
         "too few shared tasks to decide"),
    ],
)  # fmt: skip
def test_the_crafter_page_equals_counts_from_the_traces(name, is_chosen, label):
    chosen = [episode for episode in episodes() if is_chosen(episode)]
    means = {}
    for row in published(f"crafter_scores/{name}", "scores"):
        own = [episode["score"] for episode in chosen if episode["model"] == row["model_name"]]
        means[row["model_name"]] = mean(own)
        assert int(row["n"]) == len(own)
        assert close(row["estimate"], means[row["model_name"]])
    assert set(means) == {episode["model"] for episode in chosen}
    scores = defaultdict(dict)
    for episode in chosen:
        scores[episode["model"]][episode["task"]] = episode["score"]
    assert headline(f"crafter_scores/{name}")["label"] == label
    assert max(means, key=means.get) == "scripted-miner"
    pairs = published(f"crafter_scores/{name}", "pairs")
    for row in pairs:
        a, b = (scores[row[side]] for side in ("model_a", "model_b"))
        differences = [a[task] - b[task] for task in sorted(a)]
        assert close(row["estimate"], mean(differences))
        plain = ttest_1samp(differences, 0).pvalue  # few tasks and skew only make evalkit more cautious than this
        assert float(row["p_value"]) >= plain * 0.999
        assert row["decided"] == "False" or plain <= 0.05 / len(pairs)
    for row in published(f"crafter_scores/{name}", "achievement_rates"):
        own = [row["achievement"] in episode["names"] for episode in chosen if episode["model"] == row["model_name"]]
        assert close(row["estimate"], mean(own))


def test_the_steps_page_equals_counts_from_the_records():
    records = json.loads((SAMPLES / "steps" / "typed.json").read_text())
    judged = [record for record in records if record["result_type"] != "skipped"]
    empty = [r for r in judged if r["success"] and not r["result"]]  # an analysis that left nothing
    no_plot = [r for r in judged if r["success"] and "not available" in str(r["result"])[:200]]
    confirmed = sum(r["success"] for r in judged) - len(empty) - len(no_plot)
    found = headline("step_evaluation/sample-first-run")
    assert int(found["n"]) == len(judged)
    assert close(found["estimate"], confirmed / len(judged))
    verdicts = Counter(row["verdict"] for row in published("step_evaluation/sample-first-run", "steps"))
    assert verdicts["success"] == confirmed
    assert verdicts["silent failure"] == len(empty) + len(no_plot)
    assert verdicts["skipped"] == len(records) - len(judged)
