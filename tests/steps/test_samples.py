import json
import re
from pathlib import Path

import pytest

from evalkit.io import resolve
from evalkit.steps import extract_key_findings_from_execution, load, load_history, normalise_history
from evalkit.steps.analysis import old_flat, storage_comparison
from tools.samples.steps import old_nested

SHAPES = {"typed.json": "B", "second_run.jsonl": "B", "nested.json": "A", "execution_history.json": "C"}


@pytest.fixture(scope="module")
def logs():
    return load("samples:steps")


def test_the_samples_hold_all_three_shapes(logs):
    assert {history.label: history.records[0]["shape"] for history in logs.histories} == SHAPES
    assert set(logs.ledger["status"]) == {"used"}


def test_the_samples_show_what_goes_wrong(logs):
    first = logs.steps[logs.steps["source"].str.endswith("typed.json")]
    assert {"success", "silent failure", "failure", "critical failure", "skipped"} == set(first["verdict"])
    assert first["attempt"].max() == 5
    old = logs.steps[logs.steps["shape"] != "B"]
    assert old["truncated"].sum() > 10
    assert not logs.steps[(logs.steps["shape"] == "A") & (logs.steps["result_type"] == "visualization")][
        "truncated"
    ].any()


def test_the_old_files_are_the_old_storage_of_the_same_executions():
    typed = load_history("samples:steps/typed.json")
    for name, store in (("execution_history.json", old_flat), ("nested.json", old_nested)):
        with open(resolve(f"samples:steps/{name}"), encoding="utf-8") as file:
            stored = json.load(file)
        assert len(stored) == len(typed)
        for old, new in zip(stored, typed, strict=True):
            if new["result_type"] == "text" and new["success"]:
                continue  # kept as text in both
            made = store(new["step"], new["result"], new["success"], new["error"])
            text = "result_summary" if "result_summary" in old else "result"
            if "np.int64(" in str(old[text]):  # numbers of numpy, which the new storage made plain
                made[text], old[text] = made[text][:60], old[text].replace("np.int64(", "").replace(")", "")[:60]
            assert made[text] == old[text]


def test_top_pathways_are_filled_and_no_failure_is_a_success(logs):
    for history in logs.histories:
        findings = extract_key_findings_from_execution(history.records)
        assert findings["successful_analyses"]["enrichment_Dendritic cell"]["kegg"]["top_terms"]
    for record in load_history("samples:steps/typed.json"):
        assert record["success"] or "Success" not in json.dumps(record)


def test_what_the_old_files_lost_is_unknown_and_what_they_kept_is_equal(logs):
    by = {history.label: history.records for history in logs.histories}
    new = extract_key_findings_from_execution(by["typed.json"])["successful_analyses"]["enrichment_T cell"]
    old = extract_key_findings_from_execution(by["execution_history.json"])["successful_analyses"]["enrichment_T cell"]
    assert new["go"] == old["go"]
    assert new["kegg"] == old["kegg"]
    assert new["reactome"]["total_significant"] == 3
    assert old["reactome"]["total_significant"] is None
    assert "gsea" not in old


def test_the_samples_are_normalised_already(logs):
    for history in logs.histories:
        assert normalise_history(history.records) == history.records


def test_the_figures_of_the_samples_in_the_docs_are_those_of_the_samples():
    text = (Path(__file__).parents[2] / "docs" / "steps.md").read_text(encoding="utf-8")
    table = storage_comparison(load("samples:steps/typed.json").histories)
    figures = re.search(r"(\d+) of (\d+) numbers can be read back, and (\d+) of (\d+) items", text)
    sums = [int(table[column].sum()) for column in ("numbers_old", "numbers_new", "items_old", "items_new")]
    assert [int(n) for n in figures.groups()] == sums
    assert (len(table), int(table["cut"].sum())) == (11, 9)
