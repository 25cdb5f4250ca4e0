import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.io import SourceError
from evalkit.stats import mean_interval
from evalkit.steps import History, analysis, checks_df, load, steps_df
from evalkit.steps.analysis import adherence, coverage, failure_kinds, findings, focus, success_rates
from evalkit.steps.judge import as_history
from tests.steps.cases import BAD, GOOD, SILENT
from tests.steps.records import JSON, RECORD


def test_findings_lead_to_the_steps_they_count(logs):
    found, steps = findings(logs), logs.steps
    silent, first = steps[steps["verdict"].eq("silent failure") & steps["copy_of"].isna()], found[0].examples[0]
    assert (first.run_id, first.turn) == tuple(silent.iloc[0][["run_id", "turn"]])
    assert found[1].examples[0].run_id in set(logs.runs["run_id"])
    assert [bool(one.examples) for one in found] == [True, True, False, False]
    assert (found[2].code, found[2].values) == ("same_executions", {"copies": 2, "n": 4})


@given(st.lists(RECORD | JSON, max_size=4))
@settings(max_examples=10)
def test_any_history_becomes_frames(records):
    histories = [History("h.json", "", as_history(records).records, plan=records)]
    steps, checks = steps_df([{"function_name": "f", "success": True}, *records]), checks_df([{"step": {}}, *records])
    assert len(steps) == len(records) + 1
    assert set(checks["position"]) == set(range(len(records) + 1))
    for table in (coverage, adherence):
        table(histories)
    success_rates(steps)
    failure_kinds(steps)


# the later of these 28 histories of one file name, the more fails
RUNS = {
    f"run_{n:02d}/execution_history.json": [GOOD] * 8 + [BAD] * (n // 3) + [SILENT] * (n // 7) for n in range(1, 29)
}


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for name, records in RUNS.items():
        (root / name).parent.mkdir()
        (root / name).write_text(json.dumps(records))
    return load(root)


def test_the_rates_of_28_histories_are_of_28_clusters(many):
    rates = success_rates(many.steps, []).set_index("success")
    for name, failed in (("reported", (BAD,)), ("confirmed", (BAD, SILENT))):
        shares = [sum(record not in failed for record in records) / len(records) for records in RUNS.values()]
        wanted = mean_interval(shares, bounds=(0, 1))._replace(n=len(many.steps))
        assert rates.loc[name, list(wanted._fields)].tolist() == pytest.approx(list(wanted))
    assert wanted.n_tasks == len(RUNS)


def test_each_history_is_a_row_in_every_table(many):
    overview = analysis.overview(many.runs, many.steps).set_index("history")
    assert set(many.runs["history"]) == set(overview.index) == set(RUNS)
    assert set(overview.index[overview["loops"] == 1]) == set(list(RUNS)[8:])  # three in a row and more
    last = overview.loc["run_28/execution_history.json"]
    assert last[["records", "n", "failure", "silent failure"]].tolist() == [21, 21, 9, 4]
    assert analysis.truncation(many.steps)["n_tasks"].tolist() == [28]
    assert failure_kinds(many.steps).set_index("verdict").loc["failure", "histories"] == 26
    [together] = analysis.total(many.runs, many.steps).to_dict("records")
    assert (together["history"], together["records"]) == ("all 28 histories", len(many.steps))


def test_the_history_to_look_at_is_the_worst_or_the_one_that_is_named(many):
    assert focus(many.runs, many.steps) == "run_28/execution_history.json"
    assert focus(many.runs, many.steps, "run_03/execution_history.json") == "run_03/execution_history.json"
    with pytest.raises(SourceError, match=r"no history named 'run_3': there is run_01/execution_history\.json, "):
        focus(many.runs, many.steps, "run_3")
