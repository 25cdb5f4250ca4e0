import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.io import SourceError
from evalkit.stats import mean_interval
from evalkit.steps import History, Options, analysis, checks_df, compare_histories, load, steps_df
from evalkit.steps.analysis import (
    annotations,
    confirmed_success,
    coverage,
    enrichments,
    failure_kinds,
    focus,
    loops,
    routing,
    steps_of,
    storage_comparison,
    success_rates,
)
from evalkit.steps.normalise import normalise_history
from evalkit.steps.show import findings, short_steps, with_runs
from evalkit.steps.table import COMPARISON
from tests.steps.records import JSON, RECORD


def test_success_as_reported_and_as_confirmed(folder):
    rates = success_rates(load(folder).steps).set_index(["history", "success"])
    assert rates.loc[("a.json", "reported"), ["estimate", "n"]].tolist() == [4 / 8, 8]
    assert rates.loc[("a.json", "confirmed"), ["estimate", "n"]].tolist() == [3 / 8, 8]
    assert (rates["low"] < rates["estimate"]).all()
    found = confirmed_success(load(folder / "a.json").steps)
    assert (found.estimate, found.n) == (3 / 8, 8)


def test_skipped_steps_and_those_that_do_not_say_are_left_out(make):
    steps = steps_df([make("f", "x"), make("f", None, skip_reason="no"), {"function_name": "f", "step": {}}])
    assert steps["verdict"].tolist() == ["success", "skipped", "unknown"]
    assert success_rates(steps)["n"].tolist() == [1, 1]


def test_failures_by_kind(folder):
    kinds = failure_kinds(load(folder).steps)
    assert kinds[["verdict", "kind", "steps"]].to_numpy().tolist() == [
        ["failure", "ValueError", 4],
        ["critical failure", "FileNotFoundError", 1],
        ["silent failure", "a message stands in place of the plot: Dotplot not available", 1],
    ]


def test_findings_lead_to_the_steps_they_count(folder):
    logs = load(folder)
    found = findings(logs.steps, logs.histories, logs.ledger, logs.runs)
    steps = with_runs(logs.steps, logs.runs)
    silent = steps[steps["verdict"].eq("silent failure")]
    first = found[0].examples[0]
    assert (first.run_id, first.turn) == tuple(silent.iloc[0][["run_id", "turn"]])
    assert found[1].examples[0].run_id in set(logs.runs["run_id"])
    assert all(one.examples for one in found[:3])
    assert not found[-1].examples


def test_tables_of_what_histories_hold(folder):
    logs = load(folder)
    one = focus(logs.steps, logs.histories)
    assert [history.label for history in one] == ["a.json"]
    assert len(steps_of(logs.steps, one)) == 8
    found = enrichments(one)
    assert found[["method", "total_significant"]].to_numpy().tolist() == [["GO", 12], ["KEGG", 3], ["GSEA", 0]]
    assert found["top_terms"].iloc[0] == ["a (p = 0.001)", "b (p = 0.002)", "c"]
    assert annotations(one)["discovered"].tolist() == [["T cell", "B cell"]]
    assert loops(one)[["position", "length"]].to_numpy().tolist() == [[2, 3]]
    assert routing(one)["reached"].sum() == 5
    shown = short_steps(logs.steps).iloc[:8]
    assert shown[["record", "step"]].to_numpy().tolist()[2:5] == [[3, 3], [4, 3], [5, 3]]
    assert shown["remark"].tolist()[0] == "Process cells: Discovery completed: T cell, B cell"
    assert shown["remark"].tolist()[2] == "No cells of type 'B cell'"
    cells = coverage(one).set_index(["cell_type", "analysis"])["status"].to_dict()
    assert cells[("T cell", "perform_enrichment_analyses")] == "success"
    assert cells[("B cell", "dea_split_by_condition")] == "failure"
    assert cells[("B cell", "perform_enrichment_analyses")] == "not run"


def test_a_history_is_judged_by_the_options_it_was_loaded_with(make, tmp_path):
    (tmp_path / "h.json").write_text(json.dumps([make("f", None, False, error="disk full")] * 2))
    [history] = load(tmp_path, Options(critical_patterns=("disk full",), loop_length=2)).histories
    assert routing([history])["critical_failure"].tolist() == [True, True]
    assert loops([history])["length"].tolist() == [2]
    assert routing([history], Options())["critical_failure"].tolist() == [False, False]
    assert loops([history], Options()).empty


def test_two_histories_are_compared_step_by_step(folder):
    table = compare_histories(folder / "a.json", folder / "b.jsonl")
    assert list(table) == [column.name for column in COMPARISON]
    assert table["change"].value_counts().to_dict() == {"same": 1, "fixed": 1, "only in a": 4, "only in b": 1}
    row = table[table["change"] == "fixed"].iloc[0]
    assert row[["function_name", "cell_type"]].tolist() == ["dea_split_by_condition", "B cell"]
    assert row[["attempts_a", "attempts_b", "verdict_a"]].tolist() == [3, 1, "failure"]


def test_calls_repeated_on_purpose_are_paired_in_order(make):
    a = [make("f", "x"), make("f", {"error": "no"})]
    b = [make("f", {"error": "no"}), make("f", "x")]
    table = compare_histories(a, b)
    assert table[["run", "change"]].to_numpy().tolist() == [[1, "broken"], [2, "fixed"]]


@given(st.lists(RECORD | JSON, max_size=4))
@settings(max_examples=20)
def test_any_history_becomes_frames(records):
    histories = [History("h.json", "", normalise_history(records))]
    steps, checks = steps_df([{"function_name": "f", "success": True}, *records]), checks_df([{"step": {}}, *records])
    assert len(steps) == len(records) + 1
    assert set(checks["position"]) == set(range(len(records) + 1))
    assert len(compare_histories(steps, steps)) <= len(steps)
    for table in (enrichments, annotations, coverage, loops, routing, storage_comparison):
        table(histories)
    success_rates(steps)
    failure_kinds(steps)


OK, NO = "success", "failure"


@pytest.mark.parametrize(
    ("a", "b", "n", "estimate", "decided"),
    [
        ([OK] * 9 + [NO], [OK] * 9 + [NO], 10, 0.0, False),
        ([OK] * 12, ["silent failure"] * 12, 12, 1.0, True),
        ([OK, "skipped", None, "unknown", OK], [NO, OK, OK, OK, OK], 2, 0.5, False),
    ],
)
def test_two_histories_are_compared_on_the_steps_that_both_ran(a, b, n, estimate, decided):
    (row,) = analysis.paired_success(pd.DataFrame({"verdict_a": a, "verdict_b": b}), "one", "other").to_dict("records")
    assert (row["n_tasks"], row["estimate"], row["decided"]) == (n, estimate, decided)
    assert (row["model_a"], row["model_b"]) == ("one", "other")


GOOD = {"function_name": "f", "parameters": {}, "success": True, "result_summary": "done", "error": None}
BAD = {**GOOD, "success": False, "result_summary": None, "error": "no cells"}
SILENT = {**GOOD, "function_name": "process_cells", "result_summary": "{'status': 'no_cells_found'}"}
RUNS = {n: [GOOD] * 8 + [BAD] * (n // 3) + [SILENT] * (n // 7) for n in range(1, 29)}  # the later, the more fails


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """28 histories of one file name, in run_NN/execution_history.json."""
    root = tmp_path_factory.mktemp("runs")
    for number, records in RUNS.items():
        (root / f"run_{number:02d}").mkdir()
        (root / f"run_{number:02d}" / "execution_history.json").write_text(json.dumps(records))
    return root


def test_the_rates_of_28_histories_are_of_28_clusters(many):
    steps = load(many).steps
    rates = success_rates(steps, []).set_index("success")
    for name, failed in (("reported", (BAD,)), ("confirmed", (BAD, SILENT))):
        shares = [sum(record not in failed for record in records) / len(records) for records in RUNS.values()]
        wanted = mean_interval(shares, bounds=(0, 1))._replace(n=len(steps))
        assert rates.loc[name, list(wanted._fields)].tolist() == pytest.approx(list(wanted))
    assert wanted.n_clusters == len(RUNS)


def test_each_history_is_a_row_in_every_table(many):
    logs = load(many)
    names = {f"run_{number:02d}/execution_history.json" for number in RUNS}
    looping = {f"run_{number:02d}/execution_history.json" for number in RUNS if number >= 9}  # three in a row and more
    overview = analysis.overview(logs.steps, logs.histories).set_index("history")
    for table in (logs.runs, analysis.truncation(logs.steps), routing(logs.histories), overview.reset_index()):
        assert set(table["history"]) == names
    assert set(loops(logs.histories)["history"]) == looping == set(overview.index[overview["loops"] == 1])
    last = overview.loc["run_28/execution_history.json"]
    assert last[["records", "n", "failure", "silent failure"]].tolist() == [21, 21, 9, 4]
    assert failure_kinds(logs.steps).set_index("verdict").loc["failure", "histories"] == 26


def test_frames_of_several_loads_are_not_pooled_by_their_labels(many):
    both = pd.concat([load(many / name / "execution_history.json").steps for name in ("run_01", "run_28")])
    assert both["history"].nunique() == 1
    assert success_rates(both)["history"].nunique() == 2
    assert success_rates(both, [])["n_clusters"].tolist() == [2, 2]
    assert set(analysis.overview(both)["history"]) == {f"run_{n}/execution_history.json" for n in ("01", "28")}


def test_the_history_to_look_at_is_the_worst_or_the_one_that_is_named(many):
    logs = load(many)
    [worst] = focus(logs.steps, logs.histories)
    [named] = focus(logs.steps, logs.histories, "run_03/execution_history.json")
    assert (worst.label, named.label) == ("run_28/execution_history.json", "run_03/execution_history.json")
    with pytest.raises(SourceError, match=r"no history is called 'run_3': there is run_01/execution_history\.json, "):
        focus(logs.steps, logs.histories, "run_3")
