"""The example of a kind of one's own, installed as a package: all that evalkit does for kinds works for it."""

import importlib.util
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import evalkit
from evalkit.display.follow import Following
from evalkit.kinds import RUN_COLUMNS, collect, detect, kind_named, kind_names
from evalkit.kinds.names import BUILT_IN
from tests.kinds.toy import assert_same_frames
from tests.mindcraft.builders import write_all
from tests.undrawn import undrawn

EXAMPLE = Path(__file__).parents[2] / "examples" / "evalkit-quiz"
SHEETS = {
    "a/1.json": ("alpha", "capitals", [True, True]),
    "a/2.json": ("alpha", "rivers", [True, False]),
    "b/1.json": ("beta", "capitals", [False, False]),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Install the example into a folder of its own."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLE, folder / "source")  # what building leaves behind is left there
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(folder / "site")]
    options += ["--no-build-isolation"] * bool(importlib.util.find_spec("hatchling"))  # else pip fetches it
    pip = [sys.executable, "-m", "pip", "install", *options, str(folder / "source")]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_the_example_depends_on_the_package_that_evalkit_is_installed_from():
    files = EXAMPLE / "pyproject.toml", EXAMPLE.parents[1] / "pyproject.toml"
    example, own = (tomllib.loads(file.read_text("utf-8"))["project"] for file in files)
    assert example["dependencies"] == [own["name"]]


@pytest.fixture
def sheets(tmp_path):
    files = {"broken.json": '{"answers": [', "notes.txt": "notes"}
    for name, (model, quiz, marks) in SHEETS.items():
        answers = [{"question": f"{quiz} {n}?", "answer": f"<{n}>", "correct": mark} for n, mark in enumerate(marks)]
        files[name] = {"model": model, "quiz": quiz, "seconds": 2.5, "answers": answers}
    return write_all(tmp_path / "sheets", files)


@pytest.fixture(autouse=True)
def quiz(site, sheets, monkeypatch):
    """Give the kind, installed, in a folder with sheets."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(sheets.parent)
    return kind_named("quiz")


def test_functions_work_for_it_as_for_any_kind(quiz, sheets):
    logs = evalkit.load(sheets)
    runs = logs.runs[["kind", "model_name", "task_id", "score", "is_successful", "correct"]]
    assert kind_names() == [*BUILT_IN, "quiz"]
    assert list(logs.runs) == [*(column.name for column in RUN_COLUMNS), "correct"]
    assert runs.values.tolist() == [
        ["quiz", "alpha", "capitals", 1.0, True, 2],
        ["quiz", "alpha", "rivers", 0.5, False, 1],
        ["quiz", "beta", "capitals", 0.0, False, 0],
    ]
    assert logs.runs["run_id"].is_unique
    assert logs.runs["run_id"].equals(evalkit.load("sheets").runs["run_id"])  # however the source is written
    assert len(logs.answers) == 6
    assert logs.ledger["status"].tolist() == ["used", "used", "used", "failed"]
    assert "3 « quiz: rivers 1?\n4 » alpha: <1>   ◀ wrong\n" in logs.show(logs.runs["run_id"][1]).text()
    assert {look.kind: n for look, n in detect(sheets).items()} == {"quiz": 3}
    assert collect(quiz, "sheets", "made").new == 4
    assert_same_frames(logs, evalkit.load("made"))
    for expected, done in ((None, False), (1, True), (2, False)):
        following = Following(quiz, sheets, {}, expected=expected, clock=lambda: time.time() + 60)
        view = following.look()
        assert (view.done, f"2 of {expected or '?'}" in view.text) == (done, True)
        pd.testing.assert_frame_equal(following.logs.runs, logs.runs)


COMMANDS = {
    "--help": ["quiz", "quiz sheet"],
    "quiz sheets": ["alpha", "50 %", "3 runs; 4 files: 3 used, 0 skipped, 1 failed", "JSONDecodeError"],
    "quiz sheets --pattern 2.json": ["1 run; 1 file: 1 used"],
    "quiz sheets --follow --expected 1 --until-done": ["2 of 1", "4 of 4 files new"],
    "detect sheets": ["3 look like quiz sheets: evalkit quiz"],
    "show sheets/a/2.json --last 1": ["» alpha: <1>   ◀ wrong", "… 3 earlier turns"],
    "collect quiz sheets -o made": ["made: 4 files: 4 new"],
    "compare sheets": ["50 %", "too few shared tasks to decide"],
    "report sheets -o pages": ["2 made", "too few shared tasks to decide"],
}


def run_all(lines, results):
    """Run commands in a process of their own, for they know the kinds of the time when they were imported."""
    for name in [name for name in sys.modules if name.startswith("evalkit.cli")]:
        del sys.modules[name]
    main = importlib.import_module("evalkit.cli").main
    done = {line: CliRunner().invoke(main, line.split()) for line in lines}
    results.send({line: (result.exit_code, result.stderr, result.stdout) for line, result in done.items()})
    results.close()
    os._exit(0)  # the handlers of the process that was forked take long


def test_commands_work_for_it_as_for_any_kind(sheets):
    os.utime(sheets / "broken.json", (1, 1))  # else it counts as being written
    received, results = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=run_all, args=(COMMANDS, results))
    with undrawn():
        process.start()
    results.close()  # so that a process that fails ends the wait
    for line, (code, complaint, out) in received.recv().items():
        assert (code, complaint, [words for words in COMMANDS[line] if words not in out]) == (0, "", []), line
    process.join()


OTHERS = ["[]", "5", '{"answers": 5}', '{"name": "package", "quiz": "capitals"}']
ODD = ["", '{"quiz": 1, "answers": 5}', "[" * 100_000, "\x00", '{"model": 1, "quiz": [], "answers": [{}]}']
ODD += ['{"model": 1, "quiz": 2, "seconds": "x", "answers": []}', '{"model": 1, "quiz": 2, "answers": [5]}']


def test_odd_sheets_are_failed_files_and_other_json_files_are_skipped(sheets):
    write_all(sheets, {f"odd_{number}.json": text for number, text in enumerate(ODD)})
    write_all(sheets, {f"other_{number}.json": text for number, text in enumerate(OTHERS)})
    write_all(sheets, {"empty.json": {"model": "alpha", "quiz": "none", "answers": []}})
    logs = evalkit.load(sheets)
    assert logs.runs["model_name"].tolist() == ["alpha", "alpha", "beta", "alpha"]
    assert logs.ledger["status"].value_counts().to_dict() == {"failed": len(ODD) + 1, "used": 4, "skipped": len(OTHERS)}
