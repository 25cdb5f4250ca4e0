"""Types reach the user: mypy --strict checks calls of public functions in other people's code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON_BLOCK = re.compile(r"(?ms)^```python\n(?P<text>.*?)^```$")
# names that blocks of the README take as given
GIVEN = """
from typing import Any

state: Any = {}
step: Any = {}
result: Any = {}
"""
REFUSED = """
from evalkit import compare, crafter, mindcraft, stats

stats.proportion_interval(1, 2, 3, nonsense=7)
stats.rate_interval([0, 1], target="some tasks")
mindcraft.load("logs", task="tasks.json")
crafter.load("traces", counting=1)
crafter.evaluate_trace()
compare.leaderboard("runs.csv")
"""


def check(script: Path, text: str) -> list[str]:
    """Return the lines that mypy prints for a user's script."""
    script.write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "--config-file", ""]
    checked = subprocess.run(
        [*command, "--cache-dir", str(script.parent / "cache"), str(script)],
        cwd=script.parent,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert not checked.stderr
    return checked.stdout.splitlines()


@pytest.mark.slow
def test_wrong_calls_of_public_functions_are_refused_and_the_readme_is_not(tmp_path):
    lines = check(tmp_path / "refused.py", REFUSED)
    for number, line in enumerate(REFUSED.splitlines(), start=1):
        if "(" in line and 'load("logs").rums' not in line:
            assert any(f"refused.py:{number}: error:" in one for one in lines), f"{line} is accepted"
    blocks = PYTHON_BLOCK.finditer((ROOT / "README.md").read_text("utf-8"))
    readme = GIVEN + "\n".join(block["text"] for block in blocks)
    assert check(tmp_path / "readme.py", readme) == ["Success: no issues found in 1 source file"]
