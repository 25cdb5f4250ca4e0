"""evalkit, the README and the notebooks pass mypy --strict, which refuses wrong calls in other people's code."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON_BLOCK = re.compile(r"(?ms)^```python\n(?P<text>.*?)^```$")
# what --strict asks of a user's code and pyproject.toml does not ask of evalkit's
STRICT = """# mypy: disallow-any-generics, disallow-untyped-calls, disallow-untyped-decorators
# mypy: disallow-subclassing-any, warn-return-any
"""
# names that blocks of the README take as given
GIVEN = """
from typing import Any

state: Any = {}
step: Any = {}
result: Any = {}
"""
# each line is one wrong call
REFUSED = """
from typing import Any

import evalkit
from evalkit import compare, crafter, display, io, kinds, mindcraft, stats, steps, trajectories

kind: Any = {}
# options and arguments
evalkit.load("logs", nonsense=7)
evalkit.load("logs", scale="percents")
evalkit.load("logs", options=3)
mindcraft.runs_df("logs", nonsense=7)
crafter.collect("traces", "dataset", weights={})
evalkit.show_runs(evalkit.load("logs"), evalkit.load("logs").runs, nonsense=7)
stats.proportion_interval(1, 2, 3, nonsense=7)
stats.mean_interval(["a", "b"])
stats.trend_test(["a"], [1], [1], ["task"])
stats.pass_at_k("five", "two", 3)
stats.pass_hat_k([5, 5], ["two", "one"], 3)
mindcraft.load("logs", task="tasks.json")
crafter.evaluate_trace()
steps.load("logs", options=3)
steps.evaluate_step(7)
steps.evaluate_history("history.json")
steps.steps_df(7)
steps.find_loops(3)
steps.plan_adherence([], 3)
compare.leaderboard("runs.csv")
kinds.Command(describe=lambda logs, views: 3)
kinds.Finding("share", "answers", examples=(3,))
kinds.LogKind(**kind, detectors=[3])
kinds.LogKind(**kind, transcript=lambda paths: 3)
kinds.RateRules(outcome_of={"gave up": "fail"})
display.headline("97 %")
display.new_axes(nrow=2)
# choices
stats.rate_interval([0, 1], target="some tasks")
crafter.load("traces", counting=1)
kinds.outcomes(evalkit.load("logs").runs, value="cost")
kinds.rates(evalkit.load("logs").runs, value="cost")
io.Column("name", "string", "meaning")
compare.leaderboard(evalkit.load("logs").runs, "cost")
compare.pairs(evalkit.load("logs").runs, value="cost")
compare.audit(evalkit.load("logs"), value="cost")
trajectories.figures.cost(evalkit.load("logs").runs, "euros")
trajectories.figures.reliability(evalkit.load("logs").runs, "pass")
# frames of another kind, and attributes of what logs have
evalkit.load("logs").nonsense
evalkit.load("logs").agents
mindcraft.load("logs").episodes
mindcraft.load("logs").definitions.nonsense
crafter.load("traces").agents
crafter.load("traces").rules["nonsense"]
crafter.load("traces").rules["weights"]["collect"].nonsense
steps.load("logs").histories[0].nonsense
steps.load("logs").histories[0].evaluations[0]["nonsense"]
trajectories.load("logs").commands
# results
compare.headline(compare.leaderboard(evalkit.load("logs").runs))["estimate"].nonsense
compare.headline(compare.leaderboard(evalkit.load("logs").runs))["nonsense"]
crafter.evaluate_trace("trace.json")["nonsense"]
steps.evaluate_step({})["nonsense"]
steps.evaluate_history([])[0]["verdict"].nonsense
stats.pass_at_k(5, 2, 3).nonsense
display.new_axes(4, 3).nonsense
"""
ACCEPTED = """
from collections.abc import Mapping, Sequence
from typing import Any

import evalkit
from evalkit import compare, crafter, display, io, kinds, mindcraft, stats, steps, trajectories


def read(kind: kinds.LogKind, **options: Any) -> int:
    logs = evalkit.load("sheets", kind, least=3)
    named = evalkit.load("sheets", "quiz", **options)
    traces = evalkit.load("traces", counting="hook", options=steps.Options())
    assert isinstance(traces, crafter.CrafterLogs)
    return len(logs["answers"]) + len(named.runs) + len(traces.episodes)


def judge(history: Sequence[Mapping[str, Any]], own: dict[str, Any]) -> list[float | None]:
    evaluation = steps.evaluate_step(history[-1], own)
    steps.print_step_evaluation(evaluation)
    steps.steps_df([own])
    return [check["score"] for check in evaluation["checks"] if steps.find_loops(own)]


def frames() -> list[str]:
    logs = mindcraft.load("logs")
    return [*logs.definitions, *logs.commands["turn"], *trajectories.load("jobs").usage["tool"]]


def rate(value: kinds.Value, counting: crafter.Counting) -> float:
    runs = crafter.load("traces", counting=counting).runs
    stats.mean_interval([0, 1.5, True, None])
    stats.mean_interval(runs["score"], runs["task_id"])
    stats.jackknife_interval(runs[["score", "cost"]].to_numpy(), lambda rows: float(rows.mean()))
    evalkit.headline(stats.rate_interval([0, 1]), "success rate")
    evalkit.headline(compare.headline(compare.leaderboard(runs, value)))
    first, second = display.new_axes(ncols=2, sharey=True)
    display.percent_axis(display.new_axes(4, 3)).set_title("")
    front, unit = compare.cost(runs)
    trajectories.figures.cost(front, unit, ax=first)
    return stats.pass_at_k(5, 2, 3) + float(stats.pass_hat_k([5, 4], 2, 3).mean())
"""
# in a notebook, a text that names a choice is checked when the notebook runs
PARAMETER = re.compile(r"(?m)^(\w+): str = ")


def code_of(notebook: Path) -> str:
    """Return the code of a notebook as one module."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return "from typing import Any\n" + PARAMETER.sub(r"\1: Any = ", code) + "\n"


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_evalkit_the_readme_and_the_notebooks_have_no_error_of_types_and_each_wrong_call_has_one(tmp_path):
    blocks = PYTHON_BLOCK.finditer((ROOT / "README.md").read_text("utf-8"))
    readme = GIVEN + "\n".join(block["text"] for block in blocks)
    code = {"readme": readme, "accepted": ACCEPTED, "refused": REFUSED}
    code |= {f"notebook_{path.stem}": code_of(path) for path in (ROOT / "notebooks").glob("*.ipynb")}
    for name, text in code.items():
        (tmp_path / f"{name}.py").write_text(STRICT + text)
    files = ["evalkit", *(str(tmp_path / f"{name}.py") for name in code)]
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", *files]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not checked.stderr
    errors = re.findall(r"(?m)^(.+?):(\d+): error: ", checked.stdout)
    refused = [int(line) for file, line in errors if file.endswith("refused.py")]
    assert len(refused) == len(errors), checked.stdout
    wrong = [n for n, line in enumerate((STRICT + REFUSED).splitlines(), start=1) if "(" in line]
    assert sorted(set(refused)) == wrong, checked.stdout
