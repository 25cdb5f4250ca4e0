"""The recipes "To add …" of CONTRIBUTING work: each edit is made in a copy, and the new thing is there for users."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mindcraft.builders import log, said, write_all

ROOT = Path(__file__).parents[1]


class Edit(NamedTuple):
    """A text that is added before another one."""

    file: str
    before: str
    added: str


RECIPES = {
    "a final wording": [Edit("mindcraft/parse.py", 'Wording("Task completed"', 'Wording("Quest won"), ')],
    "a final wording with a score": [
        Edit("mindcraft/parse.py", 'Wording("Task ended "', 'Wording("Kitchen closed, scored "), '),
    ],
    "an event": [
        Edit("mindcraft/table.py", '    "deaths": Wording(', '    "thefts": Wording("A creeper stole ", r"\\w+"),\n'),
    ],
    "a flag": [
        Edit("mindcraft/table.py", '    "facts_from_id": (', '    "lonely": ("one agent", "one agent only"),\n'),
        Edit("mindcraft/assemble.py", '        "unreadable_logs": runs', '        "lonely": runs["n_agents"] == 1,\n'),
    ],
    "a wording": [
        Edit("display/words.py", '    "alone": "There is only one', '    "nobody": "{n} players left.",\n'),
    ],
    "an estimate": [
        Edit("mindcraft/analysis.py", "def success_by(", "def runs_by(runs: pd.DataFrame) -> pd.Series:\n"
             '    """Count the runs of each model."""\n    return runs.groupby("model_name").size()\n\n\n'),
    ],
    "a command": [
        Edit("cli/__init__.py", '    "detect": ("runs"', '    "hello": ("reports", "Says hello."),\n'),
        Edit("cli/reports.py", '@click.command()\n@click.argument("targets"', "@click.command()\ndef hello() -> None:\n"
             '    """Say hello."""\n    print("hello")\n\n\n'),
    ],
}  # fmt: skip
USES = """
import json
from click.testing import CliRunner
from evalkit import mindcraft
from evalkit.cli import main
from evalkit.display import finding_text
from evalkit.kinds import Finding

logs = mindcraft.load("runs")
page = CliRunner().invoke(main, ["mindcraft", "runs"]).output
print(json.dumps({
    "a final wording": logs.runs.set_index("task_id").loc["won", "status"],
    "a final wording with a score": float(logs.runs.set_index("task_id").loc["half", "score"]),
    "an event": int(logs.runs.set_index("task_id").loc["robbed", "thefts"]),
    "a flag": [flags for flags in logs.runs["run_flags"].map(list)][0],
    "a wording": finding_text(Finding("nobody", "", {"n": 3})),
    "an estimate": int(mindcraft.analysis.runs_by(logs.runs).sum()),
    "a command": CliRunner().invoke(main, ["hello"]).output + CliRunner().invoke(main, ["--help"]).output,
}))
"""


@pytest.mark.slow
def test_what_a_recipe_adds_is_there_for_users(tmp_path):
    shutil.copytree(ROOT / "evalkit", tmp_path / "evalkit", ignore=shutil.ignore_patterns("samples"))
    for name, edits in RECIPES.items():
        for edit in edits:
            path = tmp_path / "evalkit" / edit.file
            text = path.read_text("utf-8")
            assert text.count(edit.before) == 1, f"{name}: {edit.before!r} is not once in {edit.file}"
            path.write_text(text.replace(edit.before, edit.added + edit.before), "utf-8")
    robbed = log()
    robbed["turns"] += said("A creeper stole everything", "Task ended with score : 0")
    half = log("Kitchen closed, scored 0.5")
    runs = {"m/won/Andy_0_0.json": log("Quest won"), "m/robbed/Andy_0_0.json": robbed, "m/half/Andy_0_0.json": half}
    write_all(tmp_path / "runs", runs)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "EVALKIT_CACHE": "off"}
    done = subprocess.run([sys.executable, "-c", USES], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["a final wording"] == "SUCCESS"
    assert found["a final wording with a score"] == 0.5
    assert found["an event"] == 1
    assert "lonely" in found["a flag"]
    assert found["a wording"] == "3 players left."
    assert found["an estimate"] == 3
    assert found["a command"].startswith("hello\n")
    assert "Says hello." in found["a command"]
