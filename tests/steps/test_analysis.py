import pandas as pd
import pytest

from evalkit.display import text_of
from evalkit.io import SourceError
from evalkit.steps import History, load, normalise_history, steps_df
from evalkit.steps.analysis import (
    confirmed_success,
    failure_kinds,
    overview,
    storage_comparison,
    success_rates,
    truncation,
)
from evalkit.steps.show import findings, with_runs


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
    [row] = storage_comparison([History("h.json", "", normalise_history(records))]).to_dict("records")
    assert (row["numbers_new"], row["characters_new"], row["characters_old"]) == (40, len(str(many)), 500)
    assert row["cut"] is True
    complete = str(many)[:500].count("}")
    assert row["numbers_old"] in (complete, complete + 1)


def test_verdicts_and_cut_texts_are_counted(folder):
    steps = load(folder).steps
    counts = {"success": 3, "silent failure": 1, "failure": 3, "critical failure": 1, "skipped": 0, "unknown": 0}
    assert overview(steps).set_index("history").loc["a.json", list(counts)].to_dict() == counts
    cut = truncation(steps).set_index(["history", "result_type"])
    assert cut.loc[("a.json", "text"), ["estimate", "n"]].tolist() == [1, 1]
    assert cut.loc[("a.json", "structured"), "estimate"] == 0


def test_findings_say_what_worked_what_only_said_so_and_what_failed(folder):
    logs = load(folder / "a.json")
    first, failures, *_, files = findings(logs.steps, logs.histories, logs.ledger)
    assert text_of(first).startswith("38 % [14, 69] of 8 steps in 1 history succeeded; 50 % [22, 78] report success, ")
    assert "1 silent failure among them" in text_of(first)
    assert "the most frequent: ValueError (3)" in text_of(failures)
    assert text_of(files) == "The one file was used."


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


def test_of_several_histories_the_lowest_is_named(folder):
    logs = load(folder)
    texts = [text_of(finding) for finding in findings(logs.steps, logs.histories, logs.ledger)]
    assert 3 <= len(texts) <= 5
    lowest = overview(logs.steps, logs.histories)["history"].iloc[0]
    assert texts[1].startswith(f"The lowest share has {lowest}: ")


def test_without_steps_that_can_be_judged_there_is_no_rate(make):
    steps = steps_df([make("f", None, skip_reason="no")])
    found = findings(steps, [], pd.DataFrame({"status": ["used"]}))
    assert text_of(found[0]) == "No step in 0 histories can be judged, so there is no success rate."
