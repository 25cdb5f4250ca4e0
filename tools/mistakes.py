"""Deliberate mistakes that the golden comparison, or a test, must notice: ``python -m tools.mistakes [WORD]``.

With a word, only the mistakes whose name or file contains it are made. Each mistake is made in a temporary copy of the
tree. There, the reports and commands that depend on the changed file are compared with their expected texts. A mistake
that only breaks the run proves nothing: there must be a text, and it must differ. If no text of the samples shows a
mistake, the mistake names a test that must fail.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tabulate import tabulate

ROOT = Path(__file__).parents[1]
COPIED = ("evalkit", "notebooks", "params", "tests", "conftest.py", "pyproject.toml")
JOBS = 2


class Mutation(NamedTuple):
    """A mistake: its name, and a text in a file with its replacement. In notebooks, it is the text of a cell."""

    name: str
    file: str
    old: str
    new: str
    times: int = 1  # number of times that the old text occurs in the file
    test: str = ""  # test that must fail if no expected text shows the mistake: ``FILE::NAME``


COOKING, COMPARISON, OVERVIEW, CRAFTER, STEPS = (
    f"notebooks/{name}.ipynb"
    for name in ("cooking_blocked_agents", "model_comparison", "model_overview", "crafter_scores", "step_evaluation")
)
CRAFTING_GROUPS = "tests/mindcraft/test_analysis.py::test_crafting_groups_follow_the_definitions_of_minecollab"
MUTATIONS = (
    # Mindcraft: notebooks
    Mutation(
        "cooking answer with Hell's Kitchen", COOKING,
        "analysis.blocked_findings(cooking, ", "analysis.blocked_findings(chosen, ",
    ),
    Mutation(
        "Cooking figure of crafting runs", COMPARISON,
        'analysis.select(chosen, task_type="cooking")', 'analysis.select(chosen, task_type="crafting")',
    ),
    Mutation(
        "all other runs as those in Hell's Kitchen", COOKING, "hells_kitchen=True", "hells_kitchen=False",
    ),
    Mutation(
        "items nobody asked for in item × blocked", COOKING,
        """["n_blocked_agents", "model_name"], items)""", """["n_blocked_agents", "model_name"])""",
    ),
    Mutation(
        "overview's first table of all models", OVERVIEW,
        'analysis.with_total(own, "task_type"', 'analysis.with_total(sides, "task_type"',
    ),
    Mutation(
        "by task type without the other side", OVERVIEW,
        'analysis.success_by(sides, ["task_type", "side"])', 'analysis.success_by(own, ["task_type", "side"])',
    ),
    Mutation(
        "failed runs of all models", OVERVIEW, "analysis.failed_runs(own)", "analysis.failed_runs(logs.runs)",
    ),
    Mutation(
        "cooking beside published crafting means", COMPARISON,
        'analysis.published("cooking")', 'analysis.published("crafting")',
    ),
    # Mindcraft: analyses and figures
    Mutation(
        "high depth above 1", "evalkit/mindcraft/analysis.py", '(1 or 2)": depth >= 1', '(1 or 2)": depth > 1',
        test=CRAFTING_GROUPS,
    ),
    Mutation(
        "base without plan at depth 1", "evalkit/mindcraft/analysis.py",
        '(plan == "none") & (depth == 0)', '(plan == "none") & (depth == 1)',
    ),
    Mutation(
        "runs for tasks in the power sentence", "evalkit/mindcraft/analysis.py",
        '== model].groupby("n_blocked_agents")["task_id"].nunique()',
        '== model].groupby("n_blocked_agents")["task_id"].size()',
    ),
    Mutation(
        "copies in rates", "evalkit/kinds/runs.py",
        "counts = ~is_excluded(runs, kind)\n", "counts = runs.index == runs.index\n",
    ),
    Mutation(
        "intervals that take runs for tasks", "evalkit/kinds/success_rates.py",
        '"value", "task", scored.kind', '"value", None, scored.kind',
    ),
    Mutation(
        "left out as failures", "evalkit/kinds/success_rates.py",
        "_rates_of(scored, runs, by, kind, missing) if", '_rates_of(scored, runs, by, kind, "failure") if',
    ),
    Mutation(
        "partial plan among full plans", "evalkit/mindcraft/analysis.py",
        '"full plan": plan == "full"', '"full plan": plan != "none"', test=CRAFTING_GROUPS,
    ),
    Mutation(
        "missing items by their definition only", "evalkit/mindcraft/analysis.py",
        ' | crafting["task_id"].str.contains("missing")', "",
    ),
    Mutation(
        "construction means without zeros", "evalkit/mindcraft/analysis.py",
        'out = rates(building, by, "score")', 'out = rates(building[building["score"] != 0], by, "score")',
    ),
    Mutation(
        "overall rows of known numbers only", "evalkit/mindcraft/analysis.py",
        "pd.Categorical([OVERALL] * len(runs), levels, ordered=True)",
        'pd.Categorical(runs["n_blocked_agents"].map({0: OVERALL}), levels, ordered=True)',
    ),
    Mutation(
        "stale copies in trends", "evalkit/mindcraft/analysis.py",
        "table = counted(cooking(runs))\n", "table = cooking(runs)\n",
    ),
    Mutation(
        "scores as logged in the construction figure", "evalkit/mindcraft/figures.py",
        '"model_name", "score", means', '"model_name", "raw_score", means',
    ),
    Mutation(
        "lowest score of the agents", "evalkit/mindcraft/assemble.py",
        '_extreme(np.fmax, logs["raw_score"]', '_extreme(np.fmin, logs["raw_score"]',
    ),
    # Mindcraft: terminal
    Mutation(
        "terminal: runs with definitions only", "evalkit/mindcraft/terminal.py",
        "table = analysis.overview(runs, by)\n", 'table = analysis.overview(runs[runs["has_definition"]], by)\n',
    ),
    Mutation(
        "terminal: lower bound as upper bound", "evalkit/_text.py", ", {high:z", ", {low:z",
    ),
    # Crafter
    Mutation(
        "Crafter: another weight of medium achievements", "evalkit/crafter/format.py",
        'points=2.5', 'points=2.0',
    ),
    Mutation(
        "Crafter: scores below 0 in a band above", "evalkit/crafter/analysis.py",
        'episodes["score"].map(band', 'episodes["score"].abs().map(band',
    ),
    Mutation(
        "Crafter: episodes of one task as independent", "evalkit/crafter/analysis.py",
        'world = rows["task_id"].fillna(rows["source"])', 'world = rows["source"]',
    ),
    Mutation(
        "Crafter: aborted traces not at zero in the mean with them", "evalkit/crafter/analysis.py",
        '.mask(rows["aborted"], 0.0)', "",
    ),
    Mutation(
        "Crafter: achievements of episodes that can't tell", "evalkit/crafter/analysis.py",
        'rows["unlocked"].where(_can_tell(rows))', 'rows["unlocked"].fillna(False)',
    ),
    Mutation(
        "Crafter: unlocked a turn late", "evalkit/crafter/analysis.py",
        "sum(t <= turn for", "sum(t < turn for",
    ),
    Mutation(
        "Crafter: figure by difficulty without the hard worlds", CRAFTER,
        'analysis.mean_scores(episodes, ["difficulty", "model_name"])',
        'analysis.mean_scores(episodes[episodes["difficulty"] != "hard"], ["difficulty", "model_name"])',
    ),
    Mutation(
        "Crafter: the wrong published measure", CRAFTER,
        'benchmark.reference_scores("progression")', 'benchmark.reference_scores("score")',
    ),
    Mutation(
        "Crafter, terminal: groups without traces of no known task", "evalkit/crafter/terminal.py",
        "table = analysis.mean_scores(episodes, by)\n",
        'table = analysis.mean_scores(episodes.dropna(subset="task_id"), by)\n',
    ),
    Mutation(
        "Crafter, terminal: episodes from the lowest", "evalkit/crafter/terminal.py",
        'sort_values("score", ascending=False, kind', 'sort_values("score", kind',
    ),
    # steps
    Mutation(
        "steps: headline of one history", STEPS,
        "analysis.confirmed_success(logs.steps)", "analysis.confirmed_success(logs.steps.head(5))",
    ),
    Mutation(
        "steps: failures of one history", STEPS, "analysis.failure_kinds(logs.steps)", "analysis.failure_kinds(own)",
    ),
    Mutation(
        "steps: skipped steps in rates", "evalkit/steps/format.py",
        'NOT_JUDGED = ("skipped", "unknown")', 'NOT_JUDGED = ("unknown",)',
    ),
    Mutation(
        "steps: silent failures as confirmed", "evalkit/steps/analysis.py",
        'counted["verdict"].eq("success")', 'counted["success"]',
    ),
    Mutation(
        "steps: histories pooled as independent steps", "evalkit/steps/analysis.py",
        'if "history" in by or steps["history"].nunique() < 2:', "if len(steps):",
    ),
    Mutation(
        "steps: cut results of failures too", "evalkit/steps/analysis.py",
        'steps["verdict"].isin(("success", SILENT))', 'steps["verdict"].notna()',
    ),
    Mutation(
        "steps, terminal: reported as confirmed", "evalkit/steps/terminal.py",
        'row[f"{which}_{end}"]', 'row[f"reported_{end}"]',
    ),
    # for all kinds
    Mutation(
        "the first as best whatever the tests say", "evalkit/compare/ranking.py",
        'if row["rank_high"] == 1:', "if len(rated) > 1:",
    ),
    Mutation(
        "intervals of 90 %", "evalkit/stats/intervals.py",
        "CONFIDENCE = 0.95", "CONFIDENCE = 0.9",
    ),
    Mutation(
        "runs weigh the same, not tasks", "evalkit/stats/intervals.py",
        "mean = means.mean()\n    result", "mean = known.mean()\n    result",
    ),
    Mutation(
        "figures: the estimate as the upper bound", "evalkit/display/plots.py",
        'bounded["low"], bounded["high"], **band', 'bounded["low"], bounded["y"], **band',
        test="tests/display/test_plots.py::test_bands_reach_from_the_lower_to_the_upper_bound",
    ),
    Mutation(
        "figures: curves through all groups as one", "evalkit/display/plots.py",
        'ax.plot(curve["x"], curve["y"], color=look', 'ax.plot(rows["x"], rows["y"], color=look',
    ),
)  # fmt: skip


def find(mutation: Mutation, root: Path = ROOT) -> tuple[str, str, str]:
    """Return the content of a mutation's file, and the old and new text as the file would contain them.

    Raises
    ------
    ValueError
        If the old text does not occur exactly `times` times.
    """
    content = (root / mutation.file).read_text(encoding="utf-8")
    old, new = mutation.old, mutation.new
    if mutation.file.endswith(".ipynb"):
        old, new = (json.dumps(text, ensure_ascii=False)[1:-1] for text in (old, new))
    if (n := content.count(old)) != mutation.times:
        raise ValueError(f"{mutation.name}: {mutation.old!r} occurs {n} times in {mutation.file}, not {mutation.times}")
    return content, old, new


def part_of(file: str) -> str:
    """Return an expression for ``pytest -k`` that selects the reports and commands that depend on a file."""
    place, _, rest = file.partition("/")
    if place == "notebooks":
        return Path(rest).stem
    mindcraft = "mindcraft or model_ or cooking_"
    return {"mindcraft": mindcraft, "crafter": "crafter", "steps": "steps or step_"}.get(rest.partition("/")[0], "")


def compare(tree: Path, part: str, test: str = "") -> str:
    """Run the golden comparison in a copy of the tree, and return the name of the first text that differs, or "".

    If a test is given, run it instead, and return its name if one of its assertions fails.

    Raises
    ------
    RuntimeError
        If the comparison failed without a differing text or a failed assertion.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-o", "addopts=", "--import-mode=importlib"]
    command += ["-p", "no:cacheprovider"]
    if test:
        command.append(test)
    else:
        command += ["tests/golden/test_golden.py", "-k", f"says_what_it_said and ({part or 'a'})"]
    environment = {**os.environ, "PYTHONPATH": str(tree), "EVALKIT_CACHE": "off", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    wanted = r"AssertionError" if test else r"AssertionError: (\S+) differs in \d+ places"
    found = re.search(wanted, done.stdout)
    if done.returncode and not found:
        raise RuntimeError(f"the comparison itself failed:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    if not found:
        return ""
    return test.rpartition("::")[2] or found[1]


@contextmanager
def mutated(tree: Path, mutation: Mutation) -> Iterator[None]:
    """Make a mistake in a copy of the tree, and undo it at the end of the ``with`` block."""
    path = tree / mutation.file
    content, old, new = find(mutation, tree)
    times = path.stat()
    path.write_text(content.replace(old, new), encoding="utf-8")
    os.utime(path, (times.st_atime, times.st_mtime + 10))  # otherwise Python may use code compiled in the same second
    try:
        yield
    finally:
        path.write_text(content, encoding="utf-8")
        os.utime(path, (times.st_atime, times.st_mtime + 20))


def copy_tree(to: Path) -> Path:
    """Copy the files that the golden comparison needs."""
    for name in COPIED:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, to / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(place, to / name)
    return to


def check(mutation: Mutation, tree: Path) -> str:
    """Make a mistake in a copy of the tree. Return the text that differs or the failed test; "" if unnoticed."""
    with mutated(tree, mutation):
        try:
            return compare(tree, part_of(mutation.file), mutation.test)
        except RuntimeError as error:
            print(f"{mutation.name}: {error}", file=sys.stderr)
            return ""


def main(word: str = "") -> int:
    """Check the mistakes that match a word, and print a table. Return the exit code: 1 if any is not noticed."""
    start = time.monotonic()
    chosen = [mutation for mutation in MUTATIONS if word in mutation.name or word in mutation.file]
    for mutation in chosen:
        find(mutation)
    with TemporaryDirectory(prefix="golden-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(JOBS):
            trees.put(copy_tree(Path(folder) / str(number)))

        def run(mutation: Mutation | None) -> str:
            tree = trees.get()
            try:
                return check(mutation, tree) if mutation else compare(tree, "")
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(JOBS) as pool:
            if differs := next(filter(None, pool.map(run, [None] * JOBS)), ""):  # also compiles the copies
                raise SystemExit(f"{differs} differs without any mistake: python -m tests.golden")
            found = list(pool.map(run, chosen))
    rows = [(m.name, m.file, text or "NOT NOTICED") for m, text in zip(chosen, found, strict=True)]
    print(tabulate(rows, ("mistake", "in", "first text that differs, or test")))
    print(f"\n{sum(map(bool, found))} of {len(found)} noticed, {time.monotonic() - start:.0f} s, {JOBS} processes")
    return int(not found or not all(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
