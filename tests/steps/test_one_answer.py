"""Many histories of one file name: told apart, and the same answer from every door."""

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.io import SourceError
from evalkit.stats import format_interval, mean_interval
from evalkit.steps import analysis, load, show

RUNS = 28
GOOD = {"function_name": "f", "parameters": {}, "success": True, "result_summary": "done", "error": None}
BAD = {**GOOD, "success": False, "result_summary": None, "error": "no cells"}
SILENT = {**GOOD, "function_name": "process_cells", "result_summary": "{'status': 'no_cells_found'}"}
TALK = {**GOOD, "function_name": "conversational_response"}


def records(number: int) -> list[dict]:
    """Make the records of a run: the later the run, the more of them fail, in silence or aloud."""
    return [GOOD] * 8 + [BAD] * (number // 3) + [SILENT] * (number // 7) + [{**TALK, "result_summary": str(number)}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """28 histories in run_NN/execution_history.json."""
    root = tmp_path_factory.mktemp("runs")
    for number in range(1, RUNS + 1):
        (root / f"run_{number:02d}").mkdir()
        (root / f"run_{number:02d}" / "execution_history.json").write_text(json.dumps(records(number)))
    return root


@pytest.fixture(scope="module")
def expected():
    """What is true of the folder, counted from what was written: per rate the mean of the histories' shares."""
    confirmed = [[record["success"] and record is not SILENT for record in records(i)] for i in range(1, RUNS + 1)]
    reported = [[record["success"] for record in records(i)] for i in range(1, RUNS + 1)]
    means = {"reported": reported, "confirmed": confirmed}
    return {
        name: mean_interval([sum(of) / len(of) for of in runs], bounds=(0, 1))._replace(n=sum(map(len, runs)))
        for name, runs in means.items()
    }


def test_the_rates_of_28_histories_are_of_28_clusters(folder, expected):
    steps = load(folder).steps
    wanted = expected["confirmed"]
    assert (wanted.n_clusters, wanted.n) == (RUNS, len(steps))
    found = analysis.confirmed_success(steps)
    assert found[:3] == pytest.approx(wanted[:3])  # clusters are summed in the order of their ids, which hold the path
    assert found[3:] == wanted[3:]
    pooled = analysis.success_rates(steps, []).set_index("success")
    shown = CliRunner().invoke(main, ["steps", str(folder)]).output
    total = next(line for line in shown.splitlines() if line.startswith("all 28 histories"))
    for name, estimate in expected.items():
        assert pooled.loc[name, list(estimate._fields)].tolist() == pytest.approx(list(estimate))
        assert format_interval(*estimate[:3]) in total


def test_each_history_is_a_row_in_every_table(folder):
    logs = load(folder)
    names = {f"run_{number:02d}/execution_history.json" for number in range(1, RUNS + 1)}
    one_failure = {f"run_{number:02d}/execution_history.json" for number in range(9, RUNS + 1)}
    assert set(logs.runs["history"]) == names
    assert set(analysis.truncation(logs.steps)["history"]) == names
    assert set(analysis.routing(logs.histories)["history"]) == names
    assert set(analysis.loops(logs.histories)["history"]) == one_failure  # three in a row and more
    overview = analysis.overview(logs.steps, logs.histories).set_index("history")
    assert set(overview.index) == names
    assert overview["loops"].to_dict() == {name: int(name in one_failure) for name in names}
    last = overview.loc["run_28/execution_history.json"]
    assert last[["records", "n", "failure", "silent failure", "loops"]].tolist() == [22, 22, 9, 4, 1]
    kinds = analysis.failure_kinds(logs.steps).set_index("verdict")
    assert kinds.loc["failure", ["steps", "histories"]].tolist() == [sum(n // 3 for n in range(1, RUNS + 1)), 26]


def test_frames_of_several_loads_are_not_pooled_by_their_labels(folder):
    one, two = (load(folder / name / "execution_history.json").steps for name in ("run_01", "run_28"))
    assert set(one["history"]) == set(two["history"])
    both = pd.concat([one, two])
    assert analysis.success_rates(both)["history"].nunique() == 2
    assert analysis.success_rates(both, [])["n_clusters"].tolist() == [2, 2]
    assert analysis.success_rates(both.drop(columns="history"))["history"].nunique() == 2
    assert set(analysis.overview(both)["history"]) == {f"run_{n}/execution_history.json" for n in ("01", "28")}


def test_the_history_to_look_at_is_the_worst_or_the_one_that_is_named(folder):
    logs = load(folder)
    [worst] = analysis.focus(logs.steps, logs.histories)
    [named] = analysis.focus(logs.steps, logs.histories, "run_03/execution_history.json")
    assert (worst.label, named.label) == ("run_28/execution_history.json", "run_03/execution_history.json")
    assert named.label in show.describe_focus(logs.histories, [named], named.label)
    assert "lowest" not in show.describe_focus(logs.histories, [named], named.label)
    with pytest.raises(SourceError, match=r"no history is called 'run_3': there is run_01/execution_history\.json, "):
        analysis.focus(logs.steps, logs.histories, "run_3")
