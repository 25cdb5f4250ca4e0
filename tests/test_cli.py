"""The command line: tables, exit codes, messages of one line, nothing that steers a terminal."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from evalkit import __version__
from evalkit.cli import main
from tests.mindcraft.builders import SCORE, log, write, write_all


def run(*arguments) -> tuple[int, str, str]:
    """Call the command line in this process: exit code, stdout, stderr."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tmp}/gone"], "{tmp}/gone: no such file or folder"),
        (["{tmp}/empty"], "{tmp}/empty: no Mindcraft agent log in it: there is no file"),
        (["{tmp}/file.txt"], "{tmp}/file.txt: no Mindcraft agent log could be read in it (1 file, broken or"),
        (["{tmp}/runs", "--tasks", "{tmp}/gone.json"], "{tmp}/gone.json: no such file"),
        (["{tmp}/runs", "--tasks", "{tmp}/*.yaml"], "{tmp}/*.yaml: no file matches"),
        (["{tmp}/runs", "--tasks", "{tmp}/runs/m"], "{tmp}/runs/m: no task definition in its 1 JSON file, as {tmp}/"),
        (["{tmp}/runs", "--tasks", "{tmp}/trace.json"], "{tmp}/trace.json: no task definition in its 1 JSON file"),
        (
            ["{tmp}/trace.json"],
            "{tmp}/trace.json: no Mindcraft agent log could be read in it (1 file; 1 looks like a Crafter session "
            "trace); `evalkit crafter` reads those",
        ),
        (["{tmp}/runs", "--by", "model"], "no column 'model'; did you mean 'model_name'?"),
        (["{tmp}/runs", "--layout", "{{model}}"], "layout '{{model}}': use each of"),
        (["{tmp}/runs", "--output", "{tmp}/out.xlsx"], "{tmp}/out.xlsx: the output's name must end in"),
        (["{tmp}/runs", "--output", "{tmp}/no/out.csv"], "{tmp}/no/out.csv: no folder"),
        (["{tmp}/runs", "--by", "s3://KEY:SEKRET@b"], "s3://…@b: credentials don't belong in a URL"),
        (["samples:nothing"], "samples:nothing: no such samples"),
    ],
)
def test_what_can_not_be_done_is_one_line_and_exit_code_2(tmp_path, arguments, message):
    (tmp_path / "empty").mkdir()
    files = {"file.txt": b"", "trace.json": {"event_history": []}, "runs/m/cook/Andy_0_0.json": 1}
    write_all(tmp_path, files)
    code, out, err = run("mindcraft", *(word.format(tmp=tmp_path) for word in arguments))
    assert (code, out) == (2, "")
    assert err.startswith(f"evalkit: {message.format(tmp=tmp_path)}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["mindcraft"], ["mindcraft", ".", "--scale", "x"], ["steps", ".", "--x"], ["nothing"]]
)
def test_wrong_usage_is_exit_code_2(arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert "Usage: " in err


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (b"", [], "no log of a kind that evalkit knows (1 file)"),
        ({"model": "m"}, [], "no log of a kind that evalkit knows"),
        (b'{"turns": [', [], "JSONDecodeError"),
        (b'{"messages": [', [], "name their kind: --kind"),
        (b"", ["--kind", "mindcraft"], "JSONDecodeError: the file is empty"),
        ({"model": "m"}, ["--kind", "mindcraft"], "not an agent log"),
    ],
)
def test_show_names_what_is_no_conversation(tmp_path, content, kind, message):
    path = write(tmp_path / "Andy_0_0.json", content)
    code, out, err = run("show", path, *kind)
    assert (code, out) == (2, "")
    assert err.startswith(f"evalkit: {path}: ")
    assert message in err
    assert err.count("\n") == 1


def test_the_version_is_told_and_help_imports_no_pandas():
    assert __version__ in run("--version")[1]
    script = "import sys; from evalkit.cli import main; main(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert {"mindcraft", "show", "report"} <= set(done.stdout.split())
    assert "pandas" not in done.stdout.splitlines()[-1].split()


@pytest.mark.parametrize("kind", ["mindcraft", "crafter", "steps"])
def test_ctrl_c_ends_reading_quietly(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("evalkit.cli.kinds.pipeline.load", _press_ctrl_c)
    assert run(kind, tmp_path) == (130, "", "")


def test_ctrl_c_while_collecting_tells_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr("evalkit.kinds.pipeline.in_chunks", _press_ctrl_c)
    write(tmp_path / "runs/m/cook/Andy_0_0.json", log(f"{SCORE}1"))
    code, out, err = run("collect", "mindcraft", tmp_path / "runs", "-o", tmp_path / "dataset")
    assert (code, out) == (130, "")
    assert err == "evalkit: stopped; what was written so far is kept, and the same command goes on from there\n"


def _press_ctrl_c(*_, **__):
    raise KeyboardInterrupt


def test_an_output_folder_of_reports_that_cannot_be_made_is_one_line(tmp_path):
    notebook = write(tmp_path / "one.ipynb", {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    file = write(tmp_path / "file", "")
    for output, cause in [(file, "a file, not a folder"), (file / "below", "Not a directory")]:
        assert run("report", notebook, "-o", output) == (2, "", f"evalkit: {output}: {cause}\n")
