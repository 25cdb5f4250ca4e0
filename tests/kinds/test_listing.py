"""Runs of any kind: listed with ids, and shown by them."""

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.kinds import choose
from tests.compare.runs import runs_of
from tests.mindcraft.builders import write_all


def run(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def folder(tmp_path):
    return write_all(tmp_path, {"e/a/Andy_0_0.json": 0, "e/b/Andy_0_0.json": 1, "e/c/Andy_0_0.json": None})


@pytest.mark.parametrize(
    ("reached", "failed"),
    [
        ([True, False, None], [1, 2]),  # a run without an outcome is no success
        ([1.0, 0.0, None], [2]),  # of scores nobody can say which are failures, but for those that are missing
        ([True], []),
    ],
)
def test_failed_runs_are_those_without_success(reached, failed):
    runs = runs_of([("m", str(number), value) for number, value in enumerate(reached)])
    assert choose(runs, "failed")["task_id"].tolist() == list(map(str, failed))
    assert len(choose(runs, "all")) == len(reached)
    assert choose(runs, "flagged").empty


def test_runs_are_listed_with_ids_that_show_takes(folder):
    code, out, _ = run("mindcraft", folder, "--list", "failed")
    assert code == 0
    assert f"2 runs of 3, failed; evalkit show {folder} --run RUN shows one" in out
    (line,) = [line for line in out.splitlines() if " a " in line]
    code, shown, _ = run("show", folder, "--run", line.split()[0])
    assert code == 0
    assert "Task ended with score : 0" in shown


def test_a_folder_with_one_run_needs_no_id_and_one_with_several_says_what_to_do(folder, tmp_path):
    assert run("show", folder / "e/a")[0] == 0
    code, _, err = run("show", folder)
    assert (code, err) == (
        2,
        f"evalkit: {folder}: 3 runs; name one with --run, `evalkit mindcraft {folder} --list all` lists them\n",
    )
    code, _, err = run("show", folder, "--run", "m-0")
    assert code == 2
    assert "no run 'm-0'" in err


@pytest.mark.parametrize("kind", ["mindcraft/runs", "crafter", "steps"])
def test_every_kind_lists_and_shows_its_runs(kind):
    name = kind.partition("/")[0]
    code, out, _ = run(name, f"samples:{kind}", "--list", "all")
    assert code == 0
    run_id = out.splitlines()[2].split()[0]
    code, shown, err = run("show", f"samples:{kind}", "--run", run_id, "--kind", name)
    assert (code, err) == (0, "")
    assert len(shown.splitlines()) > 4


def test_what_does_nothing_with_a_list_is_refused(folder):
    assert run("mindcraft", folder, "--list", "all", "--follow")[0] == 2
    assert run("mindcraft", folder, "--list", "all", "--output", "x.csv")[0] == 2
