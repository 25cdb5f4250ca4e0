"""The recipes "To add …" of CONTRIBUTING work: each edit is made in a copy, and users find the new thing there."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mindcraft.builders import log, write_all

ROOT = Path(__file__).parents[1]


class Edit(NamedTuple):
    """A text that is added before another one; in an empty file, it is all of the text."""

    file: str
    before: str
    added: str


ROLLBOOK = '''"""A rollbook: one run in a JSON document."""

from typing import Any

from evalkit.trajectories.chat import Message, chat_messages
from evalkit.trajectories.records import Parsed, run_row, used


def recognises(value: Any) -> str:
    """Return a title for a rollbook; empty for anything else."""
    return "rollbook" if isinstance(value, dict) and "rollbook" in value else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the run of a rollbook."""
    run = run_row(format="rollbook", model_name=value["model"], task_id=value["task"], status=value["end"])
    return used([run], [("", "reward", value["points"], "")])


def messages(value: Any, part: str = "", open_named: Any = None) -> list[Message]:
    """List the messages of a rollbook."""
    return chat_messages(value["chat"])
'''
RECIPES = {
    "a final wording": [Edit("mindcraft/parse.py", 'Wording("Task completed"', 'Wording("Quest won"), ')],
    "a final wording with a score": [
        Edit("mindcraft/parse.py", 'Wording("Task ended "', 'Wording("Kitchen closed, scored "), '),
    ],
    "a type of Mindcraft task": [
        Edit("mindcraft/tasks.py", '    "debug": re.compile', '    "fishing": re.compile(r"fishing"),\n')
    ],
    "an event": [
        Edit("mindcraft/table.py", '    "deaths": Wording(', '    "thefts": Wording("A creeper stole ", r"\\w+"),\n'),
    ],
    "a format of trajectories": [
        Edit("trajectories/formats/rollbook.py", "", ROLLBOOK),
        Edit("trajectories/parse.py", "FORMATS = (harbor", "from evalkit.trajectories.formats import rollbook\n\n"),
        Edit("trajectories/parse.py", "*LINE_FORMATS, swe_agent)", "rollbook, "),
        Edit("trajectories/records.py", '    "Codex": "turn_aborted', '    "rollbook": "sailed",\n'),
    ],
    "a column of one kind's runs": [
        Edit("crafter/table.py", '    Column("band", "str"', '    Column("half_score", "float", "half of it"),\n'),
        Edit("crafter/assemble.py", '        "band": ', '        "half_score": score / 2,\n'),
    ],
    "a column of the runs of all kinds": [
        Edit("kinds/kind.py", '    Column("cost", "float"', '    Column("energy", "float", "its energy", "Wh"),\n'),
    ],
    "a column of the leaderboard": [
        Edit("compare/ranking.py", "    table = table[_COLUMNS.split()]", '    table["n_long"] = table["n"] * 2\n'),
        Edit("compare/ranking.py", "method target warning", "n_long "),
        Edit("compare/ranking.py", "\"n_tasks\", \"coverage\"]]\n    shown = shown.assign", "\"n_long\", "),
        Edit("display/tables.py", '    "agent_count": "agents",', '    "n_long": "long runs",\n'),
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
    "a warning about a comparison": [
        Edit("_notes.py", '    "no_values": "no values",', '    "windy": "it was windy for {models}",\n'),
        Edit("compare/ranking.py", "    if adjusted.basis != RAW:\n", '    notes += note("windy", models=1)\n'),
    ],
    "a check of the audit": [
        Edit("compare/checks.py", '@check("retries"', '@check("weather", "Did it rain?")\n'
             "def weather(audited: Audited) -> Found:\n"
             '    """Count the runs in the rain."""\n'
             "    return Found(len(audited.runs), len(audited.runs), audited.runs)\n\n\n"),
    ],
    "a figure": [
        Edit("mindcraft/figures.py", "def scores(", "def lengths(runs: pd.DataFrame) -> Axes:\n"
             '    """Draw the number of turns of each run."""\n'
             "    return scores(runs.assign(score=runs['turns'] / 100))\n\n\n"),
        Edit("mindcraft/figures.py", '"heatmap", ', '"lengths", '),
    ],
    "a detector of events": [
        Edit("mindcraft/events.py", "DETECTORS = (", "def quarrel(transcript):\n"
             '    """Find a quarrel."""\n'
             '    return [(n, "", "") for n, turn in enumerate(transcript.turns, 1) if "quarrel" in turn.text]\n\n\n'),
        Edit("mindcraft/events.py", '    Detector("restart"',
             '    Detector("quarrel", "Do agents quarrel?", quarrel, "quarrels", 9),\n'),
    ],
    "a public function": [
        Edit("stats/trend.py", "def trend_test(", "def twice(value: float) -> float:\n"
             '    """Return twice a number."""\n    return 2 * value\n\n\n'),
        Edit("stats/__init__.pyi", "from .trend import trend_test", "from .trend import twice as twice\n"),
    ],
    "an option of `compare`": [
        Edit("cli/runs.py", '@click.option("--strict", is_flag=True, help="With --baseline',
             '@click.option("--cheerful", is_flag=True, help="Print a cheerful line.")\n'),
        Edit("cli/runs.py", "    detect: float | None,\n    output", "    cheerful: bool,\n"),
        Edit("cli/runs.py", '    print("\\n".join([*warned, text]))\n    if output:\n        write_frame(table',
             '    print("Cheers!" if cheerful else "")\n'),
    ],
    "a command": [
        Edit("cli/__init__.py", '    "detect": ("runs"', '    "hello": ("reports", "Says hello."),\n'),
        Edit("cli/reports.py", '@click.command()\n@click.argument("targets"', "@click.command()\ndef hello() -> None:\n"
             '    """Say hello."""\n    print("hello")\n\n\n'),
    ],
    "a form of credential": [
        Edit("io/secrets.py", '    "Stripe": Secret(', '    "Gull": Secret("gull-", "gull-", r"[0-9a-f]{16,}"),\n'),
    ],
    "a type of output file": [
        Edit("io/write.py", 'WRITERS: dict[', "def _write_html(table: pd.DataFrame, path: str) -> None:\n"
             "    with_texts(table).to_html(path)\n\n\n"),
        Edit("io/write.py", '    ".tex": _write_latex,', '    ".html": _write_html,\n'),
    ],
}  # fmt: skip
USES = """
import json, shutil
from pathlib import Path
from click.testing import CliRunner
import evalkit
from evalkit import compare, crafter, failures, mindcraft, stats, trajectories
from evalkit.cli import main
from evalkit.display import finding_text, show
from evalkit.kinds import Finding

def run(*arguments):
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    return done.output

logs = mindcraft.load("runs")
runs = logs.runs[logs.runs["model_name"] == "m"].set_index("task_id")
episodes = crafter.load("samples:crafter").runs
compared = run("compare", "runs", "--cheerful", "--all", "--output", "board.html")
show.has_nothing_to_draw = lambda figure: True  # no words of pages are in figures
run("report", "runs", "model_overview", "leaderboard", "audit", "failures", "-o", "pages")
words = " ".join(path.read_text("utf-8") for path in Path("pages").rglob("*.html"))
print(json.dumps({
    "a final wording": runs.loc["won", "status"],
    "a final wording with a score": float(runs.loc["half", "score"]),
    "hidden from detectors": failures.events(logs)["evidence"].str.contains("Kitchen closed").any().item(),
    "a type of Mindcraft task": runs.loc["fishing_1", "task_type"],
    "an event": int(runs.loc["robbed", "thefts"]),
    "a format of trajectories": trajectories.load("book").runs[["model_name", "score"]].values.tolist(),
    "a column of one kind's runs": bool((episodes["half_score"] == episodes["score"] / 2).all()),
    "a column of the runs of all kinds": [bool(frame["energy"].isna().all()) for frame in (logs.runs, episodes)],
    "a column of the leaderboard": compare.leaderboard(logs.runs).table["n_long"].tolist(),
    "a flag": "lonely" in runs.loc["won", "run_flags"],
    "a wording": finding_text(Finding("nobody", "", {"n": 3})),
    "an estimate": int(mindcraft.analysis.runs_by(logs.runs).sum()),
    "a warning about a comparison": "it was windy" in compared.lower(),
    "a check of the audit": "weather" in run("audit", "runs", "--all"),
    "a figure": type(mindcraft.figures.lengths(logs.runs)).__name__,
    "a detector of events": failures.events(logs)["event"].eq("quarrel").sum().item(),
    "a public function": stats.twice(4),
    "an option of compare": "Cheers!" in compared,
    "a command": run("hello") + run("--help"),
    "a form of credential": evalkit.io.masked("my key: gull-0123456789abcdef"),
    "a type of output file": Path("board.html").read_text("utf-8")[:6],
    "on pages": [name for name in ("thefts", "one agent only", "long runs", "t was windy", "weather", "quarrels")
                 if name in words],
}))
"""
EXPECTED = {
    "a final wording": "SUCCESS",
    "a final wording with a score": 0.5,
    "hidden from detectors": False,
    "a type of Mindcraft task": "fishing",
    "an event": 1,
    "a format of trajectories": [["gull", 0.25]],
    "a column of one kind's runs": True,
    "a column of the runs of all kinds": [True, True],
    "a column of the leaderboard": [8, 8],
    "a flag": True,
    "a wording": "3 players left.",
    "an estimate": 8,
    "a warning about a comparison": True,
    "a check of the audit": True,
    "a figure": "Axes",
    "a detector of events": 2,
    "a public function": 8,
    "an option of compare": True,
    "a type of output file": "<table",
    "on pages": ["thefts", "one agent only", "long runs", "t was windy", "weather", "quarrels"],
}


@pytest.mark.slow
def test_what_a_recipe_adds_is_there_for_users(tmp_path):
    shutil.copytree(ROOT / "evalkit", tmp_path / "evalkit")
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    for name, edits in RECIPES.items():
        for edit in edits:
            path = tmp_path / "evalkit" / edit.file
            text = path.read_text("utf-8") if edit.before else ""
            assert not edit.before or text.count(edit.before) == 1, (
                f"{name}: {edit.before!r} is not once in {edit.file}"
            )
            path.write_text(text.replace(edit.before, edit.added + edit.before) or edit.added, "utf-8")
    for model in ("m", "n"):
        runs = {
            "won": log("Quest won", who=model),
            "half": log("Kitchen closed, scored 0.5", who=f"{model} began a quarrel"),
            "robbed": log("A creeper stole everything", "Task ended with score : 0", who=model),
            "fishing_1": log("Task ended with score : 0", who=model),
        }
        write_all(tmp_path / "runs" / model, {f"{task}/Andy_0_0.json": made for task, made in runs.items()})
    book = {"rollbook": 1, "model": "gull", "task": "t", "end": "sailed", "points": 0.25, "chat": []}
    write_all(tmp_path / "book", {"a.json": book})
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "EVALKIT_CACHE": "off"}
    done = subprocess.run([sys.executable, "-c", USES], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: found[name] for name in EXPECTED} == EXPECTED
    assert found["a command"].startswith("hello\n")
    assert "Says hello." in found["a command"]
    assert "0123456789abcdef" not in found["a form of credential"]


def test_each_recipe_that_is_carried_out_is_a_row_of_contributing():
    rows = re.findall(r"^\| (an? [^|]+?) \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    for name in RECIPES:
        assert any(row.startswith(name.removesuffix(" with a score")) for row in rows), name
