import json

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from tests.steps.test_checkpoints import database


@pytest.fixture
def run():
    """Return a function that runs ``evalkit steps`` and gives exit code and output."""

    def run(*arguments, code=0):
        result = CliRunner().invoke(main, ["steps", *map(str, arguments)])
        assert result.exit_code == code, result.output
        return result.output

    return run


def test_several_histories_and_what_was_cut(run, tmp_path):
    files = ("samples:steps/typed.json", "samples:steps/execution_history.json")
    shown = run(*files, "--details")
    assert shown.index("all 2 histories ") < shown.index("\ntyped.json\n")
    assert "cut: 9 of 21 stored results" in shown
    assert "\ntyped.json\n" not in run(*files)
    assert "expected_cell_types" in run(*files, "--checks", "--output", tmp_path / "checks.csv")
    assert "severity" in pd.read_csv(tmp_path / "checks.csv")


def test_a_history_is_shown_turn_by_turn(tmp_path):
    shown = CliRunner().invoke(main, ["show", "samples:steps/typed.json"]).output
    assert shown.splitlines()[1] == "21 records, 1 thread"
    turns = shown.split("\n» ")[1:]
    assert len(turns) == 21
    assert turns[13].startswith('record 14, step 14: dea_split_by_condition {"cell_type": "Megakaryocyte"}\n')
    assert "· text: error: No cells of type 'Megakaryocyte' found in the data   ◀ failure" in turns[13]
    assert "◀ failure, attempts: loop" in turns[15]
    assert "· structured: {}   ◀ silent failure: the step left no result, structure: none" in turns[7]
    assert "· skipped: Megakaryocyte was not discovered   ◀ skipped" in turns[18]
    long = json.dumps([{"function_name": "f", "success": True, "result_summary": "x" * 50_000}])
    (tmp_path / "h.json").write_text(long)
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "h.json"), "--last", "1"]).output
    assert f"\n… 1 earlier turns\n· text: {'x' * 20_000}… (50000 characters)   ◀ success\n" in shown


def test_threads_are_shown_one_after_the_other(tmp_path):
    state = json.dumps({"channel_values": {"execution_history": [{"step": {}, "success": True}]}})
    (tmp_path / "c.sqlite").write_bytes(database([(thread, "", "1", "json", state) for thread in ("one", "two")]))
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "c.sqlite")]).output
    assert shown.count("· thread: ") == 2
    assert shown.index("· thread: one") < shown.index("· thread: two")
