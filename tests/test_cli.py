"""The command line: tables, exit codes, messages of one line, nothing that steers a terminal."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import evalkit
from evalkit import __version__
from evalkit.cli import main
from evalkit.display.follow import Following
from evalkit.kinds.registry import kind_named
from evalkit.reports.batch import Summary
from tests.mindcraft.builders import SCORE, log, write, write_all


def run(*arguments) -> tuple[int, str, str]:
    """Call the command line in this process: exit code, stdout, stderr."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


REFUSED = {  # {} is a folder, and three dots stand for further words
    "mindcraft {}/gone": "{}/gone: no such file or folder",
    "mindcraft {}/runs --tasks {}/gone.json": "{}/gone.json: no such file",
    "mindcraft {}/runs --tasks {}/gone.json --follow": "{}/gone.json: no such file",
    "mindcraft {}/runs --by model": "no column 'model'; did you mean 'model_name'?",
    "mindcraft {}/runs --layout {model}": "layout '{model}': use each of",
    "mindcraft {}/runs --output {}/out.ods": "{}/out.ods: the output's name must end in",
    "mindcraft {}/runs --output {}/no/out.csv": "{}/no/out.csv: no folder",
    "mindcraft {}/runs --by s3://KEY:SEKRET@b": "s3://…@b: credentials don't belong in a URL",
    "show {}/empty.json": "{}/empty.json: evalkit recognised no logs (1 file); nothing is in it",
    "show {}/turns.json": "{}/turns.json: no Mindcraft agent log could be read ... JSONDecodeError",
    "show {}/messages.json": "{}/messages.json: evalkit recognised no logs ... name their kind: --kind",
    "show {}/empty.json --kind mindcraft": "{}/empty.json: no Mindcraft ... JSONDecodeError: the file is empty",
    "show {}/other.json --kind mindcraft": "{}/other.json: no Mindcraft ... not an agent log",
    "report {}/one.ipynb -o {}/empty.json": "{}/empty.json: a file, not a folder",
    "report {}/one.ipynb -o {}/empty.json/below": "{}/empty.json/below: Not a directory",
    "lab {}/runs -o {}/empty.json/new": "{}/empty.json/new: Not a directory",
    "report {}/one.ipynb -p x 1": "command line: unknown parameter x; there is none",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_can_not_be_done_is_one_line_and_exit_code_2(tmp_path, line):
    broken = {"empty.json": b"", "turns.json": b'{"turns": [', "messages.json": b'{"messages": ['}
    notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    write_all(tmp_path, {**broken, "other.json": {}, "runs/m/cook/Andy_0_0.json": 1, "one.ipynb": notebook})
    code, out, err = run(*line.replace("{}", str(tmp_path)).split())
    assert (code, out) == (2, "")
    first, _, further = REFUSED[line].replace("{}", str(tmp_path)).partition(" ... ")
    assert err.startswith(f"evalkit: {first}")
    assert further in err
    assert err.count("\n") == 1


MISUSED = {
    "mindcraft": "Missing argument",
    "mindcraft . --scale x": "'x' is not one of",
    "steps . --x": "No such option",
    "nothing": "No such command",
    "report --jobs 0": "0 is not in the range",
    "mindcraft . --follow --output x.csv": "--output does nothing with --follow",
    "mindcraft . --follow --interval 0.1": "--interval 0.1: at least 0.5 seconds",
    "mindcraft . --list all --all": "--all does nothing with --list",
    "mindcraft . --idle 5": "--idle does nothing without --follow",
    "steps . --follow --checks": "--checks does nothing with --follow",
}


READING = {  # options for each command that has --column and prints how it interpreted the columns of a table, {}
    "trajectories": ["", "--list all", "--output {}.csv", "--output {}.eee"],
    "show": ["", "--run t-"],  # the id of a run is added
    "view": ["--output {}-pages"],
    "compare": ["", "--value score", "--baseline larch"],
    "audit": [""],
    "failures": [""],
    "label": ["--question right --page {}.html --output {}-labels.csv"],
    "judges": ["--labels {}.labels --verdicts {}.verdicts"],
}
LATER = {"report", "lab"}  # their notebooks show it


@pytest.mark.parametrize("command", READING)
def test_every_command_says_how_it_interpreted_columns(tmp_path, command):
    commands = {name: main.get_command(None, name) for name in main.list_commands(None)}
    interpreting = {name for name, made in commands.items() if any(one.name == "columns" for one in made.params)}
    assert READING.keys() == interpreting - LATER
    table = tmp_path / "runs.csv"
    rows = [f"larch,q{n},yes,3,{n}" for n in range(4)]
    Path(f"{table}.labels").write_text("run_id,label\n1,yes\n2,no\n")
    Path(f"{table}.verdicts").write_text("run_id,judge,label\n1,j,yes\n2,j,no\n3,j,no\n")
    table.write_text("\n".join(["Which one,Quest,Done?,Marks,id", *rows, "yew,q2,no,1,9"]))
    columns = ("model=Which one", "task=Quest", "success=Done?", "score=Marks")
    given = [word for role in columns for word in ("--column", role)]
    for options in READING[command]:
        if "--run" in options:
            options = f"--run {evalkit.load(table, columns=columns).runs['run_id'][0]}"
        _, out, err = run(command, table, *options.replace("{}", str(table)).split(), *given)
        said = "model_name = Which one, task_id = Quest, is_successful = Done?, score = Marks"
        assert f"{out}\n{err}".count(f"Columns of runs.csv: {said}") == 1


def test_a_table_that_is_followed_says_how_its_columns_were_interpreted(tmp_path):
    (tmp_path / "runs.csv").write_text("Which one,Quest,Done?\nlarch,q1,yes\n")
    options = {"columns": ("model=Which one", "task=Quest", "success=Done?")}
    assert (
        "model_name = Which one, task_id = Quest"
        in Following(kind_named("trajectories"), str(tmp_path), options).look().text
    )


@pytest.mark.parametrize("line", MISUSED)
def test_wrong_usage_is_exit_code_2(line):
    code, out, err = run(*line.split())
    assert (code, out) == (2, "")
    assert err.startswith("Usage: ")
    assert MISUSED[line] in err


@pytest.mark.parametrize("notebook", ["model_comparison", "leaderboard", "trajectories", "crafter_scores"])
def test_the_difference_to_detect_reaches_every_notebook_that_plans(monkeypatch, notebook):
    asked = []

    def made(reports, **options):
        asked.extend(report.parameters.get("detect") for report in reports)
        return Summary([], [], [], False, Path("index.html"), Path("manifest.json"))

    monkeypatch.setattr("evalkit.cli.reports.run", made)
    run("report", notebook, "--detect", "10")
    assert asked == [10.0]


def test_the_version_is_printed():
    assert __version__ in run("--version")[1]


TEXTS = {  # a command, by words of what it prints; modules that would take longer to import than the rest
    "mindcraft": (["--help"], {"pandas"}),
    "a is shown to be the best": (["compare", "runs.csv"], {"matplotlib", "scipy.stats", "statsmodels"}),
}


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_printed_without_slow_imports(tmp_path, text):
    line, slow = TEXTS[text]
    rows = [f"{model},{task},{int(model == 'a')}" for model in "ab" for task in range(10)]
    (tmp_path / "runs.csv").write_text("\n".join(["model,task,success", *rows]))
    script = "import atexit, sys; from evalkit.cli import main; atexit.register(lambda: print(*sys.modules)); "
    command = [sys.executable, "-c", f"{script}main({line})"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert text in done.stdout
    assert not slow & set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("kind", ["mindcraft", "crafter", "steps"])
def test_ctrl_c_ends_reading_quietly(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("evalkit.cli.kinds.load", _press_ctrl_c)
    assert run(kind, tmp_path) == (130, "", "")


def test_ctrl_c_while_collecting_tells_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr("evalkit.kinds.reading.in_chunks", _press_ctrl_c)
    write(tmp_path / "runs/m/cook/Andy_0_0.json", log(f"{SCORE}1"))
    code, out, err = run("collect", "mindcraft", tmp_path / "runs", "-o", tmp_path / "dataset")
    assert (code, out) == (130, "")
    assert err == "evalkit: stopped; the same command continues from here\n"


def _press_ctrl_c(*_, **__):
    raise KeyboardInterrupt
