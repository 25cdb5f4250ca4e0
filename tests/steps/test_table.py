import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.io import SourceError
from evalkit.steps import checks_df, compare_histories, load, save_history, steps_df
from evalkit.steps.analysis import (
    confirmed_success,
    failure_kinds,
    focus,
    storage_comparison,
    success_rates,
    truncation,
    verdict_counts,
)
from evalkit.steps.comparison import COMPARISON_COLUMNS
from evalkit.steps.contents import (
    adherence,
    annotations,
    coverage,
    enrichments,
    loops,
    routing,
    short_steps,
    steps_of,
)
from evalkit.steps.table import CHECK_COLUMNS, STEP_COLUMNS
from tests.steps.cases import CELLS, ENRICHMENT, EXPRESSION
from tests.steps.test_evaluators import JSON, RECORD

PANDAS = {"str": "str", "int": "int64", "int?": "Int64", "float": "float64", "bool": "bool", "bool?": "boolean"}


@pytest.fixture
def folder(tmp_path, history):
    """A folder with two histories: the second one mends a failure and breaks a step."""
    good, bad = ("process_cells", CELLS, None, {"cell_type": "T cell"}), ValueError("No cells of type 'B cell'")
    first = history(
        good,
        ("perform_enrichment_analyses", ENRICHMENT, None, {"cell_type": "T cell", "analyses": ["go", "kegg"]}),
        ("dea_split_by_condition", None, bad, {"cell_type": "B cell"}),
        ("dea_split_by_condition", None, bad, {"cell_type": "B cell"}),
        ("dea_split_by_condition", None, bad, {"cell_type": "B cell"}),
        ("display_dotplot", "Dotplot not available", None),
        ("other", "x" * 700, None),
        ("load", None, FileNotFoundError("gone"), {}),
    )
    for record in first[2:5]:
        record["step_index"] = 2
    second = history(
        good,
        ("perform_enrichment_analyses", None, ValueError("no")),
        ("dea_split_by_condition", EXPRESSION, None, {"cell_type": "B cell"}),
    )
    save_history(first, tmp_path / "a.json")
    save_history(second, tmp_path / "b.jsonl")
    (tmp_path / "broken.json").write_text("[{")
    return tmp_path


@pytest.mark.parametrize(("which", "columns"), [("steps", STEP_COLUMNS), ("checks", CHECK_COLUMNS)])
@pytest.mark.parametrize("empty", [False, True])
def test_frames_have_the_columns_written_down(folder, which, columns, empty):
    table = getattr(load([] if empty else folder), which)
    assert list(table) == [column.name for column in columns]
    assert {c.name: str(table[c.name].dtype) for c in columns} == {c.name: PANDAS[c.dtype] for c in columns}
    assert table.empty is empty


def test_the_rows_of_steps(folder):
    steps = load(folder).steps
    first = steps[steps["source"].str.endswith("a.json")]
    assert first["position"].tolist() == list(range(8))
    assert first["step_index"].tolist() == [0, 1, 2, 2, 2, 5, 6, 7]
    assert first["attempt"].tolist() == [1, 1, 1, 2, 3, 1, 1, 1]
    assert first["verdict"].tolist() == ["success"] * 2 + ["failure"] * 3 + [
        "silent failure",
        "success",
        "critical failure",
    ]
    assert first["truncated"].tolist() == [False] * 6 + [True, False]
    row = first.iloc[6]
    assert (row["stored_length"], row["original_length"], row["data_completeness"]) == (500, 700, "limited")
    assert first["total_significant"].iloc[1] == 15
    assert first["error_category"].iloc[7] == "system_error"
    assert first["cell_type"].iloc[0] == "T cell"
    assert json.loads(first["parameters"].iloc[1]) == {"cell_type": "T cell", "analyses": ["go", "kegg"]}


def test_the_ledger_names_what_could_not_be_read(folder):
    ledger = load(folder).ledger.set_index("source")
    assert ledger["status"].tolist() == ["used", "used", "failed"]
    assert "JSONDecodeError" in ledger["reason"].iloc[2]


def test_shorthands_give_the_same_frames(folder):
    logs = load(folder)
    pd.testing.assert_frame_equal(steps_df(folder), logs.steps)
    pd.testing.assert_frame_equal(checks_df(folder), logs.checks)
    records = logs.histories[0].records
    assert steps_df(records)["verdict"].tolist() == logs.steps["verdict"].tolist()[:8]
    assert steps_df({"execution_history": records}).shape == steps_df(records).shape


def test_checks_carry_name_score_label_explanation_and_severity(folder):
    checks = checks_df(folder / "a.json").set_index(["position", "name"])
    assert checks.loc[(1, "requested_methods"), "score"] == 1
    assert checks.loc[(4, "attempts"), "label"] == "loop"
    assert checks.loc[(6, "text_kept"), "severity"] == "warning"
    outcome = checks.loc[(7, "outcome")]
    assert outcome[["score", "label", "explanation", "severity"]].tolist() == [
        0,
        "critical failure",
        "gone",
        "critical",
    ]


def test_two_histories_are_compared_step_by_step(folder):
    table = compare_histories(folder / "a.json", folder / "b.jsonl")
    assert list(table) == [column.name for column in COMPARISON_COLUMNS]
    changes = {(row.function_name, row.cell_type): row.change for row in table.itertuples()}
    assert changes[("process_cells", "T cell")] == "same"
    assert changes[("dea_split_by_condition", "B cell")] == "fixed"
    row = table[table["change"] == "fixed"].iloc[0]
    assert (row["attempts_a"], row["attempts_b"], row["verdict_a"]) == (3, 1, "failure")
    assert table["change"].value_counts().to_dict() == {"same": 1, "fixed": 1, "only in a": 4, "only in b": 1}


def test_a_comparison_with_itself_finds_no_change(folder):
    assert set(compare_histories(folder, load(folder).steps)["change"]) == {"same"}


def test_calls_repeated_on_purpose_are_paired_in_order(make):
    a = [make("f", "x"), make("f", {"error": "no"})]
    b = [make("f", {"error": "no"}), make("f", "x")]
    table = compare_histories(a, b)
    assert table[["run", "change"]].to_numpy().tolist() == [[1, "broken"], [2, "fixed"]]


def test_a_source_that_is_not_there():
    with pytest.raises(SourceError, match="no such file"):
        steps_df("/nowhere/h.json")


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
    assert steps["success"].isna().tolist() == [False, False, True]


def test_failures_by_kind(folder):
    kinds = failure_kinds(load(folder).steps)
    assert kinds[["verdict", "kind", "steps"]].to_numpy().tolist() == [
        ["failure", "ValueError", 4],
        ["critical failure", "FileNotFoundError", 1],
        ["silent failure", "a message stands in place of the plot: Dotplot not available", 1],
    ]


def test_messages_that_differ_in_names_and_numbers_are_one_kind(make):
    errors = ["No cells of type 'T'", "No cells of type 'B'", "12 of 30", "1 of 3.5"]
    kinds = failure_kinds(steps_df([make("f", None, False, error=error) for error in errors]))
    assert kinds[["kind", "steps"]].to_numpy().tolist() == [["# of #", 2], ["No cells of type '…'", 2]]


def test_what_survives_the_old_storage(make):
    many = {"count_results": [{"category": f"c{i}", "cell_count": i} for i in range(40)]}
    records = [make("compare_cell_counts", many, kind="structured"), make("compare_cell_counts", str(many)[:500])]
    [row] = storage_comparison(load_records(records)).to_dict("records")
    assert (row["numbers_new"], row["characters_new"], row["characters_old"]) == (40, len(str(many)), 500)
    assert row["cut"] is True
    complete = str(many)[:500].count("}")
    assert row["numbers_old"] in (complete, complete + 1)


def test_verdicts_and_cut_texts_are_counted(folder):
    steps = load(folder).steps
    counts = verdict_counts(steps).set_index("history")
    assert counts.loc["a.json"].to_dict() == {
        "success": 3, "silent failure": 1, "failure": 3, "critical failure": 1, "skipped": 0, "unknown": 0,
    }  # fmt: skip
    cut = truncation(steps).set_index(["history", "result_type"])
    assert cut.loc[("a.json", "text"), ["estimate", "n"]].tolist() == [1, 1]
    assert cut.loc[("a.json", "structured"), "estimate"] == 0


def load_records(records, plan=None):
    from evalkit.steps import History, normalise_history

    return [History("h.json", "", normalise_history(records), plan)]


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


def test_adherence_needs_a_plan(make):
    records = [make("a", "x")]
    assert adherence(load_records(records)).empty
    plan = {"steps": [{"function_name": "a"}, {"function_name": "b"}]}
    assert adherence(load_records(records, plan))["status"].tolist() == ["success", "not run"]


@given(st.lists(RECORD | JSON, max_size=4))
@settings(max_examples=60)
def test_any_history_becomes_frames(records):
    histories = load_records(records)
    steps, checks = steps_df([{"function_name": "f", "success": True}, *records]), checks_df([{"step": {}}, *records])
    assert len(steps) == len(records) + 1
    assert set(checks["position"]) == set(range(len(records) + 1))
    assert len(compare_histories(steps, steps)) <= len(steps)
    for table in (enrichments, annotations, coverage, loops, routing, storage_comparison):
        table(histories)
    success_rates(steps)
    failure_kinds(steps)
