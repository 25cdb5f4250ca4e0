"""Pipes, sockets and devices in any place where a file can be named or found: an answer soon, and never a wait."""

import os
import warnings
from functools import partial

import pytest
from click.testing import CliRunner

import evalkit
from evalkit import crafter, mindcraft, steps
from evalkit.cli import main
from evalkit.crafter import benchmark
from evalkit.io import SourceError
from tests.special_files import SPECIAL

pytestmark = [
    pytest.mark.timeout(10),
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here"),
    pytest.mark.filterwarnings("ignore:unclosed"),
]
KINDS = {"mindcraft": "a.json", "crafter": "session_a.json", "steps": "a.json"}
PLACES = {  # where a command finds a file by itself
    **{f"{kind} log": (name, (kind, ".")) for kind, name in KINDS.items()},
    "results file": ("runs/bread/results.txt", ("mindcraft", "runs")),
    "lines": ("a.jsonl", ("steps", ".")),
    "checkpoints": ("a.sqlite", ("steps", ".")),
    "write-ahead log of checkpoints": ("a.sqlite-wal", ("steps", ".")),
    "definition in a folder": ("defs/a.json", ("mindcraft", "samples:mindcraft/runs", "--tasks", "defs")),
    "log of a report": ("logs/a.json", ("report", "logs")),
    "log to collect": ("logs/a.json", ("collect", "steps", "logs", "-o", "out")),
    "dataset": ("data/evalkit-records.json", ("steps", "data")),
    "dataset to collect into": ("data/evalkit-records.json", ("collect", "steps", "samples:steps", "-o", "data")),
}
NAMED = {  # where it is itself named
    **{f"{kind} log": (kind, "{}") for kind in KINDS},
    **{f"{kind} logs to collect": ("collect", kind, "{}", "-o", "out") for kind in KINDS},
    **{f"{kind} log to show": ("show", "{}", "--kind", kind) for kind in KINDS},
    "log to show": ("show", "{}"),
    "log to detect": ("detect", "{}"),
    "source of a report": ("report", "{}"),
    "definitions": ("mindcraft", "samples:mindcraft/runs", "--tasks", "{}"),
    "dataset to collect into": ("collect", "steps", "samples:steps", "-o", "{}"),
    "zip archive": ("steps", "zip://{}!/"),
    "tar archive": ("steps", "tar://{}!/"),
    "file URL": ("steps", "file://{}"),
}
ANSWERED = {"log to detect", *(f"{kind} logs to collect" for kind in KINDS)}  # by a count, or the ledger
READERS = {
    "load": evalkit.load,
    "evaluate_trace": crafter.evaluate_trace,
    "analyze_agent_log": mindcraft.analyze_agent_log,
    "conversation": mindcraft.conversation,
    "load_task_definitions": mindcraft.load_task_definitions,
    "load_history": steps.load_history,
    "load_runs": benchmark.load_runs,
    **{f"{module.__name__}.load": module.load for module in (mindcraft, crafter, steps)},
    "collect": partial(mindcraft.collect, output="out"),
}
SAYS = {
    "evaluate_trace": lambda score: "not a regular file" in score["error"],
    "analyze_agent_log": lambda outcome: outcome["completion_status"] == "LOG_FILE_ERROR",
    "load_runs": lambda runs: "not a regular file" in runs.ledger.entries[0].reason,
    "collect": lambda changes: changes.new == 1,  # its ledger says the rest
}


@pytest.fixture(params=SPECIAL)
def special(request):
    return SPECIAL[request.param]


def _answer(arguments):
    """Run a command; it must end by itself with a message or a table, and not by an exception."""
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.output.strip()
    assert "Traceback" not in result.output
    return result


@pytest.mark.parametrize("place", PLACES)
def test_one_that_is_found_is_not_waited_for(tmp_path, monkeypatch, special, place):
    monkeypatch.chdir(tmp_path)
    name, arguments = PLACES[place]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith("-wal"):
        path.with_name("a.sqlite").write_bytes(b"SQLite format 3\0" + bytes(100))
    special(path)
    _answer(arguments)


@pytest.mark.parametrize("place", NAMED)
def test_one_that_is_named_is_refused(tmp_path, monkeypatch, special, place):
    monkeypatch.chdir(tmp_path)
    special(tmp_path / "special.json")
    result = _answer([argument.format(tmp_path / "special.json") for argument in NAMED[place]])
    assert result.exit_code == 2 or place in ANSWERED


@pytest.mark.parametrize("name", READERS)
def test_nor_does_a_function_wait_for_it(tmp_path, monkeypatch, special, name):
    monkeypatch.chdir(tmp_path)
    special(tmp_path / "special.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = READERS[name](str(tmp_path / "special.json"))
        except (SourceError, OSError, ValueError) as error:
            says_so = "special.json" in str(error)
        else:
            says_so = SAYS[name](found)
    assert says_so
