"""Each row "To add …" of CONTRIBUTING works: the edit is made in a copy, and users find the new thing where it says."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.mindcraft.builders import log, write_all

ROOT = Path(__file__).parents[1]
COPIED = ("evalkit", "notebooks", "params", "tests", "tools", "docs", "examples", "README.md", "mkdocs.yml")


class Edit(NamedTuple):
    """A text that is added before another one, which occurs once in the file; in a new file, it is all of the text."""

    file: str
    added: str
    before: str = ""


class Recipe(NamedTuple):
    """What a row of CONTRIBUTING says to do, and an expression for what users then see."""

    row: str  # the first cell of the row
    edits: Sequence[Edit]
    shows: str
    gives: Any = True


ROLLBOOK = '''"""A rollbook: one run in a JSON document, or an index of runs."""

from typing import Any

import msgspec

from evalkit.trajectories.chat import Message, chat_messages
from evalkit.trajectories.records import Fact, Parsed, run_row, stated_by, used


def recognises(value: Any) -> str:
    """Return a title for a rollbook; empty for anything else."""
    if isinstance(value, dict) and "rollbook_index" in value:
        return "rollbook index"
    return "rollbook" if isinstance(value, dict) and "rollbook" in value else ""


def parse(path: str, value: Any) -> Parsed:
    """Return the run of a rollbook."""
    if "rollbook_index" in value:
        return used(facts=[Fact("rollbook", value=msgspec.json.encode({"agent": value["rollbook_index"]}).decode())])
    known = {"mood": value.get("mood"), "energy": value.get("energy")}
    run = run_row(format="rollbook", model_name=value["model"], task_id=value["task"], status=value["end"], **known)
    return used([run], [("", "reward", value["points"], "")] if "points" in value else [])


def messages(value: Any, part: str = "", open_named: Any = None) -> list[Message]:
    """List the messages of a rollbook."""
    return chat_messages(value["chat"])


def join(runs: Any, facts: Any, published: Any) -> None:
    """Fill in the agent that an index states."""
    for _, _, stated in stated_by(facts, "rollbook"):
        for run in runs:
            run.agent = stated["agent"]
'''
LOGBOOK = '''"""A logbook: a run in JSON lines."""

from typing import Any

from evalkit.trajectories.chat import Message, chat_messages
from evalkit.trajectories.records import Parsed, run_row, used


def recognises(value: Any) -> str:
    """Return a title for a logbook; empty for anything else."""
    return "logbook" if isinstance(value, dict) and "logbook" in value else ""


def parse(path: str, lines: Any) -> Parsed:
    """Return the run of a logbook."""
    first, *others = lines
    return used([run_row(format="logbook", model_name=first["logbook"], task_id="t", turns=len(others))])


def messages(lines: Any, part: str = "", open_named: Any = None) -> list[Message]:
    """List the messages of a logbook."""
    return chat_messages(lines[1:])
'''
SHIPLOG = '''"""A ship's log: a run in each JSON line, with a large value that stays encoded."""

from typing import Any

from evalkit.trajectories.chat import Message, chat_messages
from evalkit.trajectories.json_lines import decoded
from evalkit.trajectories.records import Parsed, run_row, used

ENCODED = frozenset(["chat"])


def recognises(value: Any) -> str:
    """Return a title for a ship's log; empty for anything else."""
    first = value[0] if isinstance(value, list) and value else value
    return "ship's log" if isinstance(first, dict) and "ship" in first else ""


def parse(path: str, lines: Any) -> Parsed:
    """Return the runs of a ship's log."""
    runs = [run_row(part=one["id"], format="shiplog", model_name=one["ship"], task_id=one["id"]) for one in lines]
    return used(runs)


def by_part(lines: Any) -> dict[str, Any]:
    """Return the chats by the id of their run."""
    return {one["id"]: one["chat"] for one in lines}


def messages(chats: Any, part: str, open_named: Any = None) -> list[Message]:
    """List the messages of a run."""
    return chat_messages(decoded(chats[part]))
'''
PARROT = '''"""Parrot: sessions with a message in each line."""

import io
from functools import partial
from typing import Any, BinaryIO

from evalkit.trajectories.chat import Message, chat_messages
from evalkit.trajectories.formats import sessions
from evalkit.trajectories.formats.sessions import ModelCall, Session, records_of

FORMAT = "Parrot"


def recognises(record: Any) -> str:
    """Return the title of a session; empty for anything else."""
    return "Parrot session" if isinstance(record, dict) and "parrot" in record else ""


def summary(path: str, file: BinaryIO) -> Session:
    """Read a session line by line."""
    session = Session(FORMAT)
    for record in records_of(file, session):
        session.session_id = record["parrot"]
        session.messages += 1
        session.calls[str(session.messages)] = ModelCall(str(session.messages), "polly", 5, 0, 2)
    session.complete(path, session.calls.values())
    return session


parse = partial(sessions.parsed, summary)


def messages(data: bytes, part: str = "", open_named: Any = None) -> list[Message]:
    """List the messages of a session."""
    records = records_of(io.BytesIO(data), Session(FORMAT))
    return chat_messages([{"role": "assistant", "content": one["says"]} for one in records])
'''
FORMATS = "evalkit/trajectories/formats"
TRAJECTORIES = "evalkit/trajectories/parse.py"
OF_ALL = [path.name for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]


def cell(text: str, **about: Any) -> dict[str, Any]:
    """Return a cell of code."""
    return {"cell_type": "code", "execution_count": None, "outputs": [], "metadata": {}, "source": [text], **about}


def shown_in(notebook: str, text: str, before: str) -> Edit:
    """Add a cell that shows a figure to a notebook, before the cell with an id."""
    made = json.dumps(cell(text, id=f"before-{before}", metadata={"tags": ["figure"]}))
    start = '  {\n   "cell_type": "code",\n   "execution_count": null,\n   '
    return Edit(file=f"notebooks/{notebook}", before=f'{start}"id": "{before}"', added=f"  {made},\n")


PARROTS = {
    "cells": [
        {"cell_type": "markdown", "id": "title", "metadata": {}, "source": ["# Parrots"]},
        cell(
            'runs: list[str] = ["samples:mindcraft/runs"]  # logs',
            id="parameters",
            metadata={"tags": ["parameters"]},
        ),
        cell('import evalkit\n\nevalkit.show_text(f"{len(evalkit.load(runs).runs)} parrots were counted")', id="load"),
    ],
    "metadata": {
        "evalkit": {"kind": "mindcraft", "source": "runs", "order": 9, "question": "How many parrots?"},
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    },
    "nbformat": 4,
    "nbformat_minor": 5,
}
RECIPES = [
    Recipe(
        row="a final wording of Mindcraft logs",
        edits=[
            Edit(file="evalkit/mindcraft/parse.py", before='Wording("Task completed"', added='Wording("Quest won"), '),
            Edit(
                file="evalkit/mindcraft/parse.py",
                before='Wording("Task ended with score"',
                added='Wording("Kitchen closed, scored", " "), ',
            ),
            Edit(
                file="evalkit/mindcraft/parse.py",
                before='Wording("Task unsuccessful: Timeout reached")',
                added='Wording("The hourglass is empty"), ',
            ),
        ],
        shows="""[
            runs.loc["won", "status"], float(runs.loc["half", "score"]), "near_final" in runs.loc["near", "run_flags"],
            found["evidence"].str.contains("Kitchen closed").any().item(), runs.loc["late", "status"],
            found.loc[found["run_id"] == runs.loc["late", "run_id"], "event"].eq("limit_reached").any().item(),
        ]""",
        gives=["SUCCESS", 0.5, True, False, "TIMED_OUT", True],
    ),
    Recipe(
        row="a completion status of Mindcraft runs",
        edits=[
            Edit(
                file="evalkit/mindcraft/table.py",
                before='    LOG_FILE_ERROR = "LOG_FILE_ERROR"\n',
                added='    STRANDED = "STRANDED"\n',
            ),
            Edit(
                file="evalkit/mindcraft/table.py",
                before="    str(CompletionStatus.NO_SCORE_LOGGED): Status(",
                added='    "STRANDED": Status("on an island", "island", "failure", "#123456", ""),\n',
            ),
            Edit(
                file="evalkit/mindcraft/parse.py",
                before='    "ended": (\n',
                added='    "stranded": (Wording("The boat sank"),),\n',
            ),
        ],
        shows="""[
            runs.loc["sunk", ["status", "is_successful"]].tolist(),
            logs.agents.loc[logs.agents["task_id"] == "sunk", "completion_status"].unique().tolist(),
            "on an island" in pages, "island" in run("mindcraft", "runs", "--all"),
        ]""",
        gives=[["STRANDED", True], ["STRANDED"], True, True],
    ),
    Recipe(
        row="a type of Mindcraft task",
        edits=[
            Edit(
                file="evalkit/mindcraft/tasks.py",
                before='    "debug": re.compile',
                added='    "fishing": re.compile(r"fishing"),\n',
            )
        ],
        shows='runs.loc["fishing_1", "task_type"]',
        gives="fishing",
    ),
    Recipe(
        row="an event of Mindcraft logs",
        edits=[
            Edit(
                file="evalkit/mindcraft/table.py",
                before='    "deaths": Wording(',
                added='    "thefts": Wording("A creeper stole ", r"\\w+"),\n',
            )
        ],
        shows='[int(runs.loc["robbed", "thefts"]), "thefts" in pages]',
        gives=[1, True],
    ),
    Recipe(
        row="a format of trajectories",
        edits=[
            Edit(file=f"{FORMATS}/rollbook.py", added=ROLLBOOK),
            Edit(
                file=TRAJECTORIES,
                before="LINE_FORMATS = (lm_eval",
                added="from evalkit.trajectories.formats import logbook, parrot, rollbook, shiplog\n\n",
            ),
            Edit(file=TRAJECTORIES, before="*LINE_FORMATS, swe_agent)", added="rollbook, "),
        ],
        shows='[book.loc["gull", "score"].item(), "Land ahoy" in run("show", "book/gull.json")]',
        gives=[0.25, True],
    ),
    Recipe(
        row="a format of trajectories in JSON lines",
        edits=[
            Edit(file=f"{FORMATS}/logbook.py", added=LOGBOOK),
            Edit(
                file=TRAJECTORIES,
                before="lm_eval, openhands, every_eval_ever)  # formats of",
                added="logbook, shiplog, ",
            ),
        ],
        shows="""[
            book.loc["auk", "turns"].item(), "Ahoy, auk" in run("show", "book/auk.jsonl"),
            "runs" in run("failures", "book"),
        ]""",
        gives=[2, True, True],
    ),
    Recipe(
        row="a format of trajectories with many runs in a file",
        edits=[Edit(file=f"{FORMATS}/shiplog.py", added=SHIPLOG)],
        shows="""[
            book.loc["tern", "task_id"].tolist(),
            [any(f"I am {part}" in turn for turn in texts) for part, texts in said("tern").items()],
        ]""",
        gives=[["a", "b"], [True, True]],
    ),
    Recipe(
        row="a status of trajectories",
        edits=[
            Edit(
                file="evalkit/trajectories/records.py",
                before='    "Codex": "turn_aborted',
                added='    "rollbook": "sailed",\n',
            ),
            Edit(
                file="evalkit/trajectories/records.py",
                before='    "harbor": (\n',
                added='    "rollbook": "foundered",\n',
            ),
        ],
        shows='[ended.loc[name, "is_successful"] for name in ("gannet", "skua", "petrel")]',
        gives=[False, True, None],
    ),
    Recipe(
        row="a file name extension of trajectories",
        edits=[Edit(file=TRAJECTORIES, before='"tb.lock")', added='".roll", ')],
        shows='"skua" in book.index',
    ),
    Recipe(
        row="a file that only describes trajectories",
        edits=[
            Edit(file=TRAJECTORIES, before='    *("Harbor job lock"', added='    "rollbook index",\n'),
            Edit(
                file="evalkit/trajectories/assemble.py",
                before="_ROUNDING = 1e-6",
                added="from evalkit.trajectories.formats import rollbook\n\n",
            ),
            Edit(
                file="evalkit/trajectories/assemble.py",
                before="harbor, tau2, lm_eval, openhands, terminal_bench)\n",
                added="rollbook, ",
            ),
        ],
        shows="""[
            trajectories.parse.recognises(Path("book/index.json").read_bytes()), book.loc["gull", "agent"],
        ]""",
        gives=["rollbook index", "pelican"],
    ),
    Recipe(
        row="a format of sessions that is read line by line",
        edits=[
            Edit(file=f"{FORMATS}/parrot.py", added=PARROT),
            Edit(file=TRAJECTORIES, before="gemini_cli, claude_code, codex)\n", added="parrot, "),
        ],
        shows='[book.loc["polly", "tokens_in"].item(), "Pieces of eight" in run("show", "book/polly.jsonl")]',
        gives=[10, True],
    ),
    Recipe(
        row="a column of one kind's runs",
        edits=[
            Edit(
                file="evalkit/crafter/table.py",
                before='    Column("band", "str"',
                added='    Column("half", "float", "half"),\n',
            ),
            Edit(file="evalkit/crafter/assemble.py", before='        "band": ', added='        "half": score / 2,\n'),
            Edit(
                file="evalkit/crafter/table.py",
                before='        Column("difficulty", "name", "of the task, or unknown"),',
                added='        Column("weather", "str", "the weather"),\n',
            ),
            Edit(
                file="evalkit/crafter/table.py",
                before='"task_source", "difficulty", "max_turns"),',
                added='"weather", ',
            ),
            Edit(
                file="evalkit/crafter/parse.py",
                before='        "status": status,\n',
                added='        "weather": _first([m.weather for m in config]),\n',
            ),
            Edit(
                file="evalkit/crafter/format.py",
                before="    num_achievements: Count | None = None",
                added="    weather: str | None = None\n",
            ),
            Edit(
                file="evalkit/mindcraft/table.py",
                before='    *(Column(name, "int?", f"{name.replace',
                added='    Column("shouts", "int?", "messages that end with an exclamation mark", "messages"),\n',
            ),
            Edit(
                file="evalkit/mindcraft/parse.py",
                before='        "command_count": len(',
                added='        "shouts": sum(text.endswith("!") for text in agent),\n',
            ),
            Edit(
                file="evalkit/trajectories/table.py",
                before='    Column("extra", "str"',
                added='    Column("mood", "name", "mood"),\n',
            ),
            Edit(
                file="evalkit/trajectories/table.py",
                before='    Column("plan", "str"',
                added='    Column("is_gay", "bool", "gay"),\n',
            ),
            Edit(
                file="evalkit/trajectories/records.py",
                before="    extra: str | None",
                added="    mood: str | None\n",
            ),
            Edit(
                file="evalkit/trajectories/records.py",
                before="    is_share: bool",
                added="    is_gay: bool = False\n",
            ),
            Edit(
                file="evalkit/trajectories/assemble.py",
                before="        run.task_type = run.dataset\n",
                added='        run.is_gay = run.mood == "gay"\n',
            ),
            Edit(
                file="evalkit/steps/table.py",
                before='    Column("judged", "int"',
                added='    Column("twice", "int", "2 × steps"),\n',
            ),
            Edit(
                file="evalkit/steps/assemble.py", before='        "judged": n,', added='        "twice": 2 * records,\n'
            ),
        ],
        shows="""[
            bool((episodes["half"] == episodes["score"] / 2).all()), sunny.runs["weather"].tolist(),
            int(runs.loc["won", "shouts"]), book.loc["gull", ["mood", "is_gay"]].tolist(), steps.runs["twice"].tolist(),
        ]""",
        gives=[True, ["sunny"], 1, ["gay", True], [2]],
    ),
    Recipe(
        row="a frame of one kind",
        edits=[
            Edit(
                file="evalkit/crafter/table.py",
                before='TABLES = {"episodes"',
                added='NAMES = (Column("source", "str", "the file"), Column("name", "str", "its name"))\n',
            ),
            Edit(file="evalkit/crafter/table.py", before='"achievements": ACHIEVEMENT_ROWS}', added='"names": NAMES, '),
            Edit(
                file="evalkit/crafter/assemble.py",
                before='        "achievements": frame_of(',
                added='        "names": frame_of({"source": rows["source"], "name": rows["source"]}, table.NAMES),\n',
            ),
            Edit(
                file="evalkit/crafter/assemble.py",
                before="from evalkit.crafter.table import",
                added="from evalkit.crafter import table\n",
            ),
            Edit(file="evalkit/crafter/logs.py", before="    rules: Rules", added="    names: pd.DataFrame\n"),
        ],
        shows='[list(sunny.names), len(sunny.names), "names" in type(sunny).__annotations__]',
        gives=[["source", "name"], 1, True],
    ),
    Recipe(
        row="a column of the runs of all kinds",
        edits=[
            Edit(
                file="evalkit/kinds/kind.py",
                before='    Column("cost", "float"',
                added='    Column("energy", "float", "its energy", "Wh"),\n',
            ),
            Edit(
                file="evalkit/trajectories/table.py", before='turns tokens_in tokens_out cost status"', added="energy "
            ),
            Edit(
                file="evalkit/trajectories/records.py",
                before="    tokens_in: int",
                added="    energy: float | None\n",
            ),
            Edit(
                file="evalkit/kinds/headers.py",
                before='    "temperature": Role(',
                added='    "energy": Role([("energy", "watt_hours")], "float", is_optional=True),\n',
            ),
        ],
        shows="""[
            bool(logs.runs["energy"].isna().all()), bool(episodes["energy"].isna().all()),
            book.loc["gull", "energy"].item(), table.runs["energy"].tolist(),
            bool(evalkit.load("two.csv").runs["energy"].isna().all()),
        ]""",
        gives=[True, True, 2.5, [1.5, 2.5, 3.5], True],
    ),
    Recipe(
        row="a name of a column in tables of runs",
        edits=[Edit(file="evalkit/kinds/headers.py", before='"model_name", "model_id", "llm"', added='"brain", ')],
        shows='[table.runs["model_name"].unique().tolist(), "model_name = brain" in run("compare", "table.csv")]',
        gives=[["owl"], True],
    ),
    Recipe(
        row="a column of the leaderboard",
        edits=[
            Edit(
                file="evalkit/compare/ranking.py",
                before="    table = table[_COLUMNS.split()]",
                added='    table["n_long"] = table["n"] * 2\n',
            ),
            Edit(file="evalkit/compare/ranking.py", before="method target warning", added="n_long "),
            Edit(
                file="evalkit/compare/ranking.py",
                before='"n_tasks", "coverage"]]\n    shown = shown.assign',
                added='"n_long", ',
            ),
            Edit(
                file="evalkit/compare/ranking.py",
                before='"n_tasks"]]\n    return table if runs is None',
                added='"n_long", ',
            ),
            Edit(
                file="evalkit/compare/terminal.py",
                before='        ends = row["estimate"], row["low"], row["high"]\n        cells[f"{title}',
                added='        cells["long"] = str(row["n_long"])\n',
            ),
            Edit(
                file="evalkit/display/tables.py",
                before='    "agent_count": "agents",',
                added='    "n_long": "long runs",\n',
            ),
            Edit(
                file="evalkit/kinds/success_rates.py",
                before='    "cost": Amount(',
                added='    "shouts": Amount("shouts", "loud shouts"),\n',
            ),
        ],
        shows="""[
            compare.leaderboard(logs.runs).table["n_long"].tolist(), "long runs" in answer, " long " in compared,
            "n_long" in Path("board.html").read_text("utf-8"), "loud shouts" in answer,
            "shouts" in kinds.usage(logs.runs)["quantity"].tolist(), len(kinds.usage(episodes)) > 0,
        ]""",
        gives=[[16, 16], True, True, True, True, True, True],
    ),
    Recipe(
        row="a flag",
        edits=[
            Edit(
                file="evalkit/mindcraft/table.py",
                before='    "facts_from_id": (',
                added='    "lonely": ("one agent", "one agent only"),\n',
            ),
            Edit(
                file="evalkit/mindcraft/assemble.py",
                before='        "unreadable_logs": runs',
                added='        "lonely": runs["n_agents"] == 1,\n',
            ),
        ],
        shows='["lonely" in runs.loc["won", "run_flags"], "one agent only" in pages]',
        gives=[True, True],
    ),
    Recipe(
        row="a finding of one kind",
        edits=[
            Edit(
                file="evalkit/crafter/words.py",
                before="def points(",
                added='def parrots(n: int) -> str:\n    """Count parrots."""\n    return f"{n} parrots flew by."\n\n\n',
            ),
            Edit(
                file="evalkit/crafter/analysis.py",
                before='    return [Finding("points", "points", values',
                added="    if len(scores):\n"
                '        return [Finding("parrots", "points", {"n": 7}, template=words.parrots), data]\n',
            ),
        ],
        shows='"7 parrots flew by" in pages',
    ),
    Recipe(
        row="a wording",
        edits=[
            Edit(
                file="evalkit/display/words.py",
                before='    "alone": "There is only one',
                added='    "nobody": "{n} players left.",\n',
            )
        ],
        shows='finding_text(Finding("nobody", "", {"n": 3}))',
        gives="3 players left.",
    ),
    Recipe(
        row="an estimate",
        edits=[
            Edit(
                file="evalkit/mindcraft/analysis.py",
                before="def success_by(",
                added="def runs_by(runs: pd.DataFrame) -> pd.Series:\n"
                '    """Count the runs of each model."""\n    return runs.groupby("model_name").size()\n\n\n',
            )
        ],
        shows="int(mindcraft.analysis.runs_by(logs.runs).sum())",
        gives=16,
    ),
    Recipe(
        row="an interval or a method",
        edits=[
            Edit(
                file="evalkit/stats/intervals.py",
                before="    low, high = map(float, wilson(successes / n, n))",
                added='    if n == 3:\n        return Estimate(successes / n, 0.0, 1.0, n, n, "guess")\n',
            ),
            Edit(
                file="evalkit/compare/methods.py",
                before='    "t": _STUDENT,',
                added='    "guess": Sentence("Intervals are guesses ({0}).", ("Wilson 1927",)),\n',
            ),
        ],
        shows="""[
            "Intervals are guesses (Wilson 1927)." in methods, "effective sample size" in methods,
            "E. B. Wilson" in methods, board_of_table.table["method"].tolist(),
        ]""",
        gives=[True, False, True, ["guess"]],
    ),
    Recipe(
        row="a warning about a comparison",
        edits=[
            Edit(
                file="evalkit/_notes.py",
                before='    "no_values": "no values",',
                added='    "windy": "it was windy for {models}",\n',
            ),
            Edit(
                file="evalkit/compare/ranking.py",
                before="    if adjusted.basis != RAW:\n",
                added='    notes += note("windy", models=1)\n',
            ),
        ],
        shows='["it was windy" in compared.lower(), "t was windy" in pages]',
        gives=[True, True],
    ),
    Recipe(
        row="a check of the audit",
        edits=[
            Edit(
                file="evalkit/compare/checks.py",
                before='@check("retries"',
                added='@check("weather", "Did it rain?")\n'
                "def weather(audited: Audited) -> Found:\n"
                '    """Count the runs in the rain."""\n'
                "    return Found(len(audited.runs), len(audited.runs), audited.runs)\n\n\n",
            )
        ],
        shows='["weather" in run("audit", "runs", "--all"), "weather" in pages]',
        gives=[True, True],
    ),
    Recipe(
        row="a figure",
        edits=[
            Edit(
                file="evalkit/mindcraft/figures.py",
                before="def scores(",
                added="def lengths(runs: pd.DataFrame) -> Axes:\n"
                '    """Draw the number of turns of each run."""\n    return plots.bars(runs["turns"])\n\n\n',
            ),
            Edit(file="evalkit/mindcraft/figures.py", before='"heatmap", ', added='"lengths", '),
            shown_in("model_overview.ipynb", 'evalkit.show_figure(figures.lengths(own), "Turns of runs.")', "flags"),
        ],
        shows='"Turns of runs." in pages',
    ),
    Recipe(
        row="a type of plot",
        edits=[
            Edit(
                file="evalkit/display/plots.py",
                before="@themed\ndef strips(",
                added="def describe_bars(n: int) -> str:\n"
                '    """Describe bars."""\n    return f"{n} bars of one colour."\n\n\n'
                "@themed\ndef bars(values: pd.Series) -> Axes:\n"
                '    """Draw a bar for each value."""\n'
                "    ax = drawing.new_axes(WIDTH, HEIGHT)\n    ax.bar(range(len(values)), values.tolist())\n"
                "    return finish(ax, WIDTH, alt=describe_bars(len(values)))\n\n\n",
            ),
            Edit(file="evalkit/display/plots.py", before='"curves", "estimates"', added='"bars", '),
        ],
        shows='"8 bars of one colour." in pages',
    ),
    Recipe(
        row="results of a function of the analysis agent",
        edits=[
            Edit(
                file="evalkit/steps/results.py",
                before="ANALYSES = {",
                added="def _read_parrots(record: StepRecord, reading: Reading, options: Options) -> None:\n"
                "    reading.summary = f\"{reading.value['n']} parrots\"\n\n\n",
            ),
            Edit(
                file="evalkit/steps/results.py",
                before='    "compare_cell_counts": Analysis(',
                added='    "count_parrots": Analysis("parrots", (dict,), _read_parrots),\n',
            ),
        ],
        shows='[steps.steps["summary"].tolist(), "3 parrots" in run("steps", "history.json", "--all")]',
        gives=[["3 parrots"], True],
    ),
    Recipe(
        row="a detector of events",
        edits=[
            Edit(
                file=file,
                before=before,
                added=f'def {name}(transcript):\n    """Find a {name}."""\n'
                "    turns = enumerate(transcript.turns, 1)\n"
                f'    return [(n, "", "") for n, turn in turns if "{name}" in turn.text]\n\n\n',
            )
            for name, file, before in (
                ("quarrel", "evalkit/mindcraft/events.py", "DETECTORS = ("),
                ("shanty", "evalkit/failures/rules.py", '_LOOP = "repeats'),
            )
        ]
        + [
            Edit(
                file="evalkit/mindcraft/events.py",
                before='    Detector("restart"',
                added='    Detector("quarrel", "Do agents quarrel?", quarrel, "quarrels", 9),\n',
            ),
            Edit(
                file="evalkit/failures/rules.py",
                before='    Detector("repeated_call"',
                added='    Detector("shanty", "Do they sing?", shanty),\n',
            ),
        ],
        shows="""[
            found["event"].eq("quarrel").sum().item(), "quarrels" in pages,
            failures.events(trajectories.load("book"))["event"].eq("shanty").sum().item(),
        ]""",
        gives=[2, True, 1],
    ),
    Recipe(
        row="a textual form of a failed result",
        edits=[
            Edit(
                file="evalkit/kinds/errors.py",
                before='        r"command (?:failed|not found)|',
                added='        r"the \\w+ tore",\n',
            ),
            Edit(
                file="evalkit/kinds/errors.py",
                before='    ".go:": re.compile(',
                added='    "mutiny": re.compile(r"mutiny at \\d+ knots"),\n',
            ),
            Edit(
                file="evalkit/kinds/errors.py",
                before='    "return": re.compile(\n',
                added='    "rank": re.compile(r"^rank [1-9]"),\n',
            ),
            Edit(
                file="evalkit/kinds/errors.py",
                before='    ("unsupported call",):',
                added='    ("parley",): re.compile(r"no parley with \\w+"),\n',
            ),
            Edit(
                file="evalkit/kinds/errors.py",
                before="|(?:is |was |has been )?already (?:taken",
                added="|run aground",
            ),
        ],
        shows="""[
            is_error(text) for text in (
                "The sails tore", "all well\\nmutiny at 7 knots\\nend", "Rank 3", "there is no parley with Tom",
                "the ship run aground", "all is well",
            )
        ]""",
        gives=[True, True, True, True, True, False],
    ),
    Recipe(
        row="a public function",
        edits=[
            Edit(
                file="evalkit/stats/trend.py",
                before="def trend_test(",
                added='def twice(value: float) -> float:\n    """Return twice a number."""\n    return 2 * value\n\n\n',
            ),
            Edit(
                file="evalkit/stats/__init__.pyi",
                before="from .trend import trend_test",
                added="from .trend import twice as twice\n",
            ),
        ],
        shows="stats.twice(4)",
        gives=8,
    ),
    Recipe(
        row="an option of one kind",
        edits=[
            Edit(
                file="evalkit/crafter/kind.py",
                before='Option("counting", COUNTINGS',
                added='Option("bonus", float, 0.0, "Points added to each score.", "POINTS"), ',
            ),
            Edit(
                file="evalkit/crafter/kind.py",
                before="    counting: Counting\n\n\ndef load(",
                added="    bonus: float\n",
            ),
            Edit(
                file="evalkit/crafter/kind.py",
                before='    **options: Unpack[ReadOptions],\n) -> CrafterLogs:\n    """Read session traces.\n',
                added="    bonus: float = 0.0,\n",
            ),
            Edit(file="evalkit/crafter/kind.py", before="counting=counting, **options)", added="bonus=bonus, "),
            Edit(
                file="evalkit/kinds/keywords.py",
                before='    counting: Literal["achievement", "hook"]',
                added="    bonus: float\n",
            ),
            Edit(
                file="evalkit/crafter/assemble.py",
                before="    score, suspects = np.array(",
                added='    extra = options.get("bonus", 0.0)\n'
                '    scores["score"] = [None if one is None else one + extra for one in scores["score"]]\n',
            ),
            Edit(
                file="notebooks/crafter_scores.ipynb",
                before='    "counting: str',
                added='    "bonus: float = 0.0  # points added to each score\\n",\n',
            ),
            Edit(
                file="notebooks/crafter_scores.ipynb",
                before="counting=counting, recursive=recursive, rename",
                added="bonus=bonus, ",
            ),
        ],
        shows="""[
            crafter.load("sunny.json", bonus=500).runs["score"].iloc[0].item(),
            "503" in run("crafter", "sunny.json", "--bonus", "500"),
            "503" in run("compare", "sunny.json", "--bonus", "500"), ">503" in pages or "503." in pages,
        ]""",
        gives=[503.0, True, True, True],
    ),
    Recipe(
        row="an option of all kinds",
        edits=[
            Edit(
                file="evalkit/kinds/options.py",
                before='    Option("cluster", str',
                added='    Option("suffix", str, "", "Text after the name of each model.", "TEXT"),\n',
            ),
            Edit(file="evalkit/kinds/keywords.py", before="    cluster: str\n", added="    suffix: str\n"),
            Edit(
                file="evalkit/kinds/pipeline.py",
                before='    compare_by = options.pop("compare_by")\n',
                added='    suffix = options.pop("suffix")\n',
            ),
            Edit(
                file="evalkit/kinds/pipeline.py",
                before="    if renames:\n        assembled = rename_models(",
                added="    if suffix:\n"
                '        names = set(assembled.frames[kind.runs]["model_name"])\n'
                "        assembled = rename_models(assembled, {name: name + suffix for name in names})\n",
            ),
            *(
                Edit(
                    file=f"notebooks/{name}",
                    before="rename: list[str]",
                    added='suffix: str = \\"\\"  # text after the name of each model\\n',
                )
                for name in OF_ALL
            ),
            *(
                Edit(file=f"notebooks/{name}", before="rename=rename, where=where", added="suffix=suffix, ")
                for name in OF_ALL
            ),
        ],
        shows="""[
            sorted(evalkit.load("runs", suffix="-x").runs["model_name"].unique()),
            "owl-x" in run("trajectories", "table.csv", "--suffix", "-x"), "n-y" in pages,
        ]""",
        gives=[["m-x", "n-x"], True, True],
    ),
    Recipe(
        row="an option of `compare`, such as `--detect`",
        edits=[
            *(
                Edit(
                    file=f"evalkit/cli/{name}.py",
                    before=before,
                    added='@click.option("--cheerful", is_flag=True, help="Print a cheerful line.")\n',
                )
                for name, before in (
                    ("runs", '@click.option("--strict", is_flag=True, help="With --baseline'),
                    ("reports", '@click.option("--params", metavar="DIR"'),
                )
            ),
            Edit(
                file="evalkit/cli/runs.py",
                before="    detect: float | None,\n    output",
                added="    cheerful: bool,\n",
            ),
            Edit(
                file="evalkit/cli/runs.py",
                before='        options.refuse("with --baseline", detect=detect)',
                added='        options.refuse("with a --baseline", cheerful=cheerful)\n',
            ),
            Edit(file="evalkit/cli/runs.py", before="detect=detect or 0.0, board", added="cheerful=cheerful, "),
            Edit(
                file="evalkit/compare/terminal.py",
                before="    everything: bool = False,\n    board: Leaderboard",
                added="    cheerful: bool = False,\n",
            ),
            Edit(
                file="evalkit/compare/terminal.py",
                before="    rows, pairs = [], []\n    if not board.has_means:",
                added='    if cheerful:\n        lines.append("Cheers!")\n',
            ),
            Edit(
                file="evalkit/cli/reports.py",
                before='    if detect := options.pop("detect"):',
                added='    if options.pop("cheerful"):\n        given["cheerful"] = True\n',
            ),
            Edit(
                file="notebooks/leaderboard.ipynb",
                before='    "kind: str = ',
                added='    "cheerful: bool = False  # print a cheerful line\\n",\n',
            ),
            Edit(
                file="notebooks/leaderboard.ipynb",
                before='    "found = [*compare.findings(',
                added='    "evalkit.show_text(\\"Cheers on the page!\\" if cheerful else \\"\\")\\n",\n',
            ),
        ],
        shows="""[
            "Cheers!" in compared, "Cheers on the page!" in pages,
            CliRunner().invoke(main, ["compare", "runs", "--baseline", "m", "--cheerful"]).exit_code,
        ]""",
        gives=[True, True, 2],
    ),
    Recipe(
        row="a judge",
        edits=[],
        shows='"parrot" in run("judges", "table.csv", "--labels", "labels.csv", "--verdicts", "verdicts.csv", "--all")',
    ),
    Recipe(
        row="a command",
        edits=[
            Edit(
                file="evalkit/cli/__init__.py",
                before='    "detect": ("runs"',
                added='    "hello": ("reports", "Says hello."),\n',
            ),
            Edit(
                file="evalkit/cli/reports.py",
                before='@click.command()\n@click.argument("targets"',
                added='@click.command()\ndef hello() -> None:\n    """Say hello."""\n    print("hello")\n\n\n',
            ),
        ],
        shows='[run("hello"), "Says hello." in run("--help")]',
        gives=["hello\n", True],
    ),
    Recipe(
        row="a report",
        edits=[Edit(file="params/leaderboard/parrots.yaml", added='source: ["samples:crafter"]\n')],
        shows='"parrots" in [report.name for report in plan(["leaderboard"])]',
    ),
    Recipe(
        row="a notebook",
        edits=[
            Edit(file="notebooks/parrots.ipynb", added=json.dumps(PARROTS)),
            Edit(file="params/parrots/all.yaml", added='runs: ["runs"]\n'),
        ],
        shows='["parrots: Parrots" in run("notebooks"), "16 parrots were counted" in pages]',
        gives=[True, True],
    ),
    Recipe(
        row="a kind of log",
        edits=[
            Edit(file="evalkit/quiz/__init__.py", added='"""Quizzes."""\n'),
            Edit(
                file="evalkit/quiz/kind.py",
                added=(ROOT / "examples/evalkit-quiz/evalkit_quiz.py").read_text("utf-8"),
            ),
            Edit(
                file="evalkit/kinds/names.py",
                before='    "trajectories": BuiltIn(',
                added='    "quiz": BuiltIn("evalkit.quiz.kind", "Scores of quizzes."),\n',
            ),
            Edit(
                file="evalkit/__init__.pyi", before="from . import stats as stats", added="from . import quiz as quiz\n"
            ),
        ],
        shows="""[
            evalkit.load("sheet.json").kind.name, evalkit.quiz.__doc__, "Scores of quizzes." in run("--help"),
            "beta" in run("quiz", "sheet.json"),
        ]""",
        gives=["quiz", "Quizzes.", True, True],
    ),
    Recipe(
        row="a text that must not change",
        edits=[
            Edit(
                file="tests/golden/record.py",
                before='    "crafter": "evalkit crafter',
                added='    "hello": "evalkit hello",\n',
            )
        ],
        shows='record.record_command(record.COMMANDS["hello"]).splitlines()[1]',
        gives="hello",
    ),
    Recipe(
        row="a limit for hostile files",
        edits=[
            Edit(
                file="evalkit/io/paths.py",
                before="def check_document(",
                added="def check_monster(data: bytes) -> None:\n"
                '    """Raise LimitError for a sea monster."""\n    if b"kraken" in data:\n'
                '        raise LimitError(errno.EFBIG, "the kraken is too large")\n\n\n',
            ),
            Edit(
                file="evalkit/io/paths.py",
                before="    if len(data) <= usual_size:",
                added="    check_monster(data)\n",
            ),
        ],
        shows='[is_too_large(name) for name in ("m/t/Andy_0_0.json", "a.json", "b.json", "c.json", "d.db")]',
        gives=[True] * 5,
    ),
    Recipe(
        row="a form of credential",
        edits=[
            Edit(
                file="evalkit/io/secrets.py",
                before='    "Stripe": Secret(',
                added='    "Gull": Secret("gull-", "gull-", r"[0-9a-f]{16,}"),\n',
            )
        ],
        shows='"0123456789abcdef" in evalkit.io.masked("my key: gull-0123456789abcdef")',
        gives=False,
    ),
    Recipe(
        row="a type of output file",
        edits=[
            Edit(
                file="evalkit/io/write.py",
                before="WRITERS: dict[",
                added="def _write_html(table: pd.DataFrame, path: str) -> None:\n"
                "    with_texts(table).to_html(path)\n\n\n",
            ),
            Edit(file="evalkit/io/write.py", before='    ".tex": _write_latex,', added='    ".html": _write_html,\n'),
        ],
        shows='Path("board.html").read_text("utf-8")[:6]',
        gives="<table",
    ),
    Recipe(
        row="a place where logs lie",
        edits=[],
        shows='evalkit.load("memory://logs").runs["model_name"].tolist()',
        gives=["gull"],
    ),
    Recipe(
        row="an archive type",
        edits=[
            Edit(file="evalkit/io/sources.py", before='"tar")\n', added='"jar", '),
            Edit(file="evalkit/io/paths.py", before='"tar", "file", "local")', added='"jar", '),
        ],
        shows='trajectories.load("gull.jar").runs["model_name"].tolist()',
        gives=["gull"],
    ),
    Recipe(
        row="a tier of Crafter achievements",
        edits=[
            Edit(
                file="evalkit/crafter/format.py",
                before='    "invalid_action": Scored(',
                added='    "expert_achievement": Scored(10.0, "Z", 6, "expert", ("tame_parrot",)),\n',
            )
        ],
        shows="""[
            [entry["code"] for entry in crafter.hooks.judge({"achievements_status": {}}, "noop", tamed)],
            "expert_achievements" in episodes, "expert" in pages, crafter.WEIGHTS["expert_achievement"],
        ]""",
        gives=[["Z"], True, True, 10.0],
    ),
    Recipe(
        row="a page of docs",
        edits=[
            Edit(file="docs/parrots.md", added="# Parrots\n\n```python\nimport evalkit\n```\n"),
            Edit(file="mkdocs.yml", before="      - glossary.md", added="      - parrots.md\n"),
        ],
        shows='"parrots.md" in [page.name for page in test_pages.PAGES]',
    ),
    Recipe(
        row="a kind of sample",
        edits=[
            Edit(
                file="tools/samples/parrots.py",
                added='"""Write the sample table of parrots."""\n\nfrom pathlib import Path\n\n'
                'folder = Path(__file__).parents[2] / "evalkit/samples/parrots"\nfolder.mkdir()\n'
                '(folder / "runs.csv").write_text("model,task,success\\npolly,sing,1\\n")\n',
            )
        ],
        shows='runpy.run_module("tools.samples.parrots") and evalkit.load("samples:parrots").runs["model_name"].item()',
        gives="polly",
    ),
]
USES = """
import json, runpy, shutil, sys, warnings
from pathlib import Path
import fsspec
import pandas as pd
from click.testing import CliRunner
import evalkit
from evalkit import compare, crafter, failures, kinds, mindcraft, stats, steps, trajectories
from evalkit.cli import main
from evalkit.crafter import hooks
from evalkit.display import alt_of, finding_text, show
from evalkit.kinds import Finding
from evalkit.kinds.errors import is_error
from evalkit.reports import plan
from evalkit.trajectories import parse
from tests.docs import test_pages
from tests.golden import record

def run(*arguments):
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    return done.output

def said(model):
    turns = trajectories.load("book").turns
    own = turns[turns["run_id"].isin(book.loc[[model], "run_id"])]
    ids = dict(zip(book.loc[[model], "run_id"], book.loc[[model], "task_id"]))
    return {ids[run_id]: of_run["text"].tolist() for run_id, of_run in own.groupby("run_id", sort=False)}

def is_too_large(name):
    kinds_of_files = {"m": "mindcraft", "a": "steps", "b": "trajectories", "c": "crafter", "d": "steps"}
    try:
        evalkit.load(f"krakens/{name}", kinds_of_files[name[0]])
    except evalkit.io.SourceError as error:
        return "kraken is too large" in str(error)

warnings.simplefilter("ignore")
shutil.copy("book/gull.json", "gull.json")
with fsspec.open("memory://logs/gull.json", "wb") as file:
    file.write(Path("gull.json").read_bytes())
logs = mindcraft.load("runs")
runs = logs.runs[logs.runs["model_name"] == "m"].set_index("task_id")
found = failures.events(logs)
episodes = crafter.load("samples:crafter").runs
sunny = crafter.load("sunny.json")
ended = trajectories.load("ended").runs.set_index("model_name")
book = trajectories.load("book").runs.set_index("model_name", drop=False)
table = evalkit.load("table.csv")
board_of_table = compare.leaderboard(table.runs)
methods = compare.methods_text(board_of_table)
steps = evalkit.load("history.json")
tamed = {"achievements_status": {"tame_parrot": True}}
compared = run("compare", "runs", "--cheerful", "--all", "--output", "board.html")
show.has_nothing_to_draw = lambda figure: alt_of(figure) != "8 bars of one colour."  # other figures take too long
quick = ("--no-evidence", "--no-code", "--jobs", "1")
run("report", "runs", "model_overview", "parrots", "-p", "model", "m", "-o", "pages", *quick)
run("report", "runs", "leaderboard", "audit", "--suffix", "-y", "--cheerful", "-o", "others", *quick)
run("report", "sunny.json", "crafter_scores", "--bonus", "500", "-o", "others", *quick)
answer = next(Path("others").rglob("leaderboard/*.html")).read_text("utf-8")
pages = " ".join(path.read_text("utf-8") for folder in ("pages", "others") for path in Path(folder).rglob("*.html"))
seen = {}
for number, shows in json.loads(sys.argv[1]).items():
    try:
        value = eval(f"({shows.strip()})")
    except BaseException as error:
        value = repr(error)
    seen[number] = value
print(json.dumps(seen, default=lambda value: None if pd.isna(value) else value.item()))
"""


def _write_sources(folder: Path) -> None:
    """Write logs in which the new things occur."""
    for model in ("m", "n"):
        runs = {
            "won": log("Quest won", who=f"{model} sings!"),
            "half": log("Kitchen closed, scored 0.5", who=f"{model} began a quarrel"),
            "near": log("Kitchen closed, scored", who=model),
            "late": log("The hourglass is empty", who=model),
            "sunk": log("Task ended with score : 1", "The boat sank", who=model),
            "robbed": log("A creeper stole everything", "Task ended with score : 0", who=model),
            "fishing_1": log("Task ended with score : 0", who=model),
            "lost": log("Task ended with score : 0", who=f"{model} is lost"),
        }
        write_all(folder / "runs" / model, {f"{task}/Andy_0_0.json": made for task, made in runs.items()})
    chat = [{"role": "user", "content": "Land ahoy"}, {"role": "assistant", "content": "A shanty for you"}]
    roll = {"rollbook": 1, "model": "gull", "task": "t", "end": "sailed", "points": 0.25, "mood": "gay", "energy": 2.5}
    lost = {"rollbook": 1, "task": "t", "chat": chat[:1]}
    lines = [{"logbook": "auk"}, *({"role": "user", "content": text} for text in ("Ahoy, auk", "Go on"))]
    ships = [{"ship": "tern", "id": part, "chat": [{"role": "user", "content": f"I am {part}"}]} for part in "ab"]
    calls = [{"parrot": "s", "says": text} for text in ("Pieces of eight", "Again")]
    book = {
        "gull.json": roll | {"chat": chat},
        "skua.roll": lost | {"model": "skua", "end": "sailed", "points": 1},
        "index.json": {"rollbook_index": "pelican"},
        **{
            f"{name}.jsonl": "\n".join(map(json.dumps, own))
            for name, own in (("auk", lines), ("ships", ships), ("polly", calls))
        },
    }
    write_all(folder / "book", book)
    ended = {
        "gannet.json": lost | {"model": "gannet", "end": "foundered"},
        "skua.json": lost | {"model": "skua", "end": "foundered", "points": 1},
        "petrel.json": lost | {"model": "petrel", "end": "sunk", "points": 1},
    }
    write_all(folder / "ended", ended)
    with zipfile.ZipFile(folder / "gull.jar", "w") as archive:
        archive.writestr("gull.json", json.dumps(roll | {"chat": chat}))
    hook = {"hook_name": "easy_achievement", "data": {"achievements": ["collect_wood", "collect_stone", "wake_up"]}}
    event = {"reward": 1, "metadata": {"turn": 0}, "event_metadata": [hook]}
    session = {"metadata_type": "episode", "data": {"model_name": "alder", "weather": "sunny"}}
    trace = {"session_id": "s", "session_metadata": [session], "event_history": [event]}
    step = {"step_type": "analysis", "function_name": "count_parrots", "parameters": {}}
    history = [{"step_index": 0, "step": step, "success": True, "result": {"n": 3}, "result_type": "structured"}]
    sheet = {"model": "beta", "quiz": "q", "answers": [{"question": "?", "answer": "!", "correct": True}]}
    rows = [f"owl,t{n},1,{n + 1}.5" for n in range(3)]
    write_all(
        folder,
        {
            "sunny.json": trace,
            "history.json": history,
            "sheet.json": sheet,
            "table.csv": "\n".join(["brain,task,success,watt_hours", *rows]),
            "two.csv": "model,task,success,energy,watt_hours\na,t,1,1,2",
            "labels.csv": "run_id,label\nt0,yes\nt1,no\n",
            "verdicts.csv": "run_id,judge,label\nt0,parrot,yes\nt1,parrot,no\nt2,parrot,no\n",
            "krakens/m/t/Andy_0_0.json": log("a kraken"),
            "krakens/a.json": [{**history[0], "result": "kraken"}],
            "krakens/b.json": roll | {"chat": [{"role": "user", "content": "kraken"}]},
            "krakens/c.json": trace | {"session_id": "kraken"},
        },
    )
    with sqlite3.connect(folder / "krakens/d.db") as connection:
        connection.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)")
        state = {"channel_values": {"execution_history": [{**history[0], "result": "kraken"}]}}
        row = ("1", "", "1", "msgpack", msgspec.msgpack.encode(state))
        connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", row)
    connection.close()


@pytest.mark.slow
def test_what_a_recipe_adds_is_there_for_users(tmp_path):
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    for recipe in RECIPES:
        for edit in recipe.edits:
            path = tmp_path / edit.file
            path.parent.mkdir(exist_ok=True)
            text = path.read_text("utf-8") if edit.before else edit.before
            assert text.count(edit.before) == 1, f"{recipe.row}: {edit.before!r} is not once in {edit.file}"
            path.write_text(text.replace(edit.before, edit.added + edit.before), "utf-8")
    _write_sources(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "EVALKIT_CACHE": "off"}
    shows = json.dumps({str(number): recipe.shows for number, recipe in enumerate(RECIPES)})
    command = [sys.executable, "-c", USES, shows]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert {recipe.row: seen[str(n)] for n, recipe in enumerate(RECIPES)} == {one.row: one.gives for one in RECIPES}


def test_each_row_of_contributing_is_carried_out_by_a_recipe():
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## To add …")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if line.startswith("| ")]
    assert [recipe.row for recipe in RECIPES] == rows[1:]
