"""evalkit and the README pass mypy --strict, and it refuses wrong calls of public functions in other people's code."""

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
REFUSED = """
from typing import Any

import evalkit
from evalkit import compare, crafter, kinds, mindcraft, stats

kind: Any = {}
evalkit.load("logs", nonsense=7)
evalkit.load("logs", scale="percents")
evalkit.load("logs").nonsense
mindcraft.runs_df("logs", nonsense=7)
crafter.collect("traces", "dataset", weights={})
evalkit.show_runs(evalkit.load("logs"), evalkit.load("logs").runs, nonsense=7)
stats.proportion_interval(1, 2, 3, nonsense=7)
stats.rate_interval([0, 1], target="some tasks")
mindcraft.load("logs", task="tasks.json")
crafter.load("traces", counting=1)
crafter.evaluate_trace()
compare.leaderboard("runs.csv")
kinds.Command(describe=lambda logs, views: 3)
kinds.Finding("share", "answers", examples=(3,))
kinds.LogKind(**kind, detectors=[3])
kinds.LogKind(**kind, transcript=lambda paths: 3)
kinds.RateRules(outcome_of={"gave up": "fail"})
"""
ACCEPTED = """
from typing import Any

import evalkit
from evalkit import kinds


def read(kind: kinds.LogKind, **options: Any) -> int:
    logs = evalkit.load("sheets", kind, least=3)
    named = evalkit.load("sheets", "quiz", **options)
    return len(logs["answers"]) + len(named.runs) + len(evalkit.load("traces", counting="hook").episodes)
"""


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_evalkit_and_the_readme_have_no_error_of_types_and_each_wrong_call_has_one(tmp_path):
    blocks = PYTHON_BLOCK.finditer((ROOT / "README.md").read_text("utf-8"))
    readme = GIVEN + "\n".join(block["text"] for block in blocks)
    (tmp_path / "readme.py").write_text(STRICT + readme)
    (tmp_path / "accepted.py").write_text(STRICT + ACCEPTED)
    (tmp_path / "refused.py").write_text(STRICT + REFUSED)
    files = ["evalkit", *(str(tmp_path / f"{name}.py") for name in ("readme", "accepted", "refused"))]
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", *files]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not checked.stderr
    errors = re.findall(r"(?m)^(.+?):(\d+): error: ", checked.stdout)
    refused = [int(line) for file, line in errors if file.endswith("refused.py")]
    assert len(refused) == len(errors), checked.stdout
    wrong = [n for n, line in enumerate((STRICT + REFUSED).splitlines(), start=1) if "(" in line]
    assert sorted(set(refused)) == wrong, checked.stdout
