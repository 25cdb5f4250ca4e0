"""What steps found: a frame of numbers and names, their summary, its figure, and what commands print."""

import math

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.display import finding_text
from evalkit.steps import analysis, evaluate_step, figures, load, save_history, terminal
from evalkit.steps.judge import as_history
from evalkit.steps.kind import frames_of
from evalkit.steps.results import Quantity
from tests.steps.cases import CELLS, COUNTS, ENRICHMENT, EXPRESSION, make

SEARCH = {"search_results": {"total_matches": 12, "results": [{"term": f"t{n}"} for n in range(12)]}}
ROWS = [
    # function, result: rows of quantity, method, category, term, value
    ("perform_enrichment_analyses", ENRICHMENT, [
        ("significant terms", "GO", None, None, 12), ("p-value", "GO", None, "a", 0.001),
        ("p-value", "GO", None, "b", 0.002), ("p-value", "GO", None, "c", None), ("p-value", "GO", None, "d", 0.04),
        ("significant terms", "KEGG", None, None, 3), ("p-value", "KEGG", None, "k1", 1e-5),
        ("p-value", "KEGG", None, "k2", 0.01), ("p-value", "KEGG", None, "k3", 0.02),
        ("significant terms", "GSEA", None, None, 0)]),
    ("perform_enrichment_analyses", {"go": {"top_terms": ["a"], "top_pvalues": []}}, [
        ("significant terms", "GO", None, None, None), ("p-value", "GO", None, "a", None)]),
    ("perform_enrichment_analyses", {"go": {"top_terms": [], "top_pvalues": [0.5], "total_significant": 0}}, [
        ("significant terms", "GO", None, None, 0)]),
    ("perform_enrichment_analyses", {"status": "needs_processing"}, []),
    ("dea_split_by_condition", EXPRESSION, [
        ("significant genes", None, "healthy", None, 2), ("gene", None, "healthy", "G1", None),
        ("gene", None, "healthy", "G2", None), ("significant genes", None, "ill", None, 0)]),
    ("dea_split_by_condition", {}, []),  # a silent failure
    ("compare_cell_counts", COUNTS, [("cells", None, "x", None, 354), ("cells", None, "y", None, 0)]),
    ("process_cells", CELLS, [("cell types", None, None, None, 2), ("clusters", None, None, "T cell", 2),
                              ("clusters", None, None, "B cell", 1)]),
    ("process_cells", "Process cells completed, but no new cell types were discovered.", [
        ("cell types", None, None, None, 0)]),
    ("process_cells", "Discovered new cell type: NK cell", [
        ("cell types", None, None, None, 1), ("clusters", None, None, "NK cell", None)]),
    ("search_enrichment_semantic", SEARCH, [("matches", None, "q", None, 12),
                                            *[("match", None, "q", f"t{n}", None) for n in range(10)]]),
    ("display_umap", "<html></html>", []),
    ("conversational_response", "All done.", []),
]  # fmt: skip


def results_of(*records):
    return frames_of([as_history(list(records))])["results"]


@pytest.mark.parametrize(("function", "result", "rows"), ROWS)
def test_what_steps_found_is_a_frame(function, result, rows):
    made = results_of(make(function, result, kind="structured", parameters={"query": "q", "cell_type": "T"}))
    said = made.astype(object).where(made.notna(), None)
    assert [tuple(row) for row in said[list(Quantity._fields)].to_numpy()] == rows
    assert set(made["cell_type"]) <= {"T"}


def test_a_cut_text_gives_what_it_holds_and_failures_nothing():
    text = str({"dea_results": [{"category": "ill", "significant_genes": [f"GENE{n}" for n in range(99)]}]})[:500]
    cut = results_of(make("dea_split_by_condition", text))
    assert math.isnan(cut["value"].iloc[0])  # not the number of genes that are left
    assert cut["term"].dropna().tolist() == [f"GENE{n}" for n in range(10)]
    assert results_of(make("dea_split_by_condition", EXPRESSION, False, error="no")).empty


def enriched(go, **more):
    result = {"go": {"top_terms": ["a", f"b{go}"], "top_pvalues": [0.01, 0.02], "total_significant": go}}
    return make("perform_enrichment_analyses", result, kind="structured", parameters={"cell_type": "T"}, **more)


def test_the_summary_counts_each_history_once_by_its_last_step(tmp_path):
    for name, numbers in {"one": [90, 4], "two": [6], "three": [20]}.items():
        save_history([enriched(n, index=i) for i, n in enumerate(numbers)], tmp_path / f"{name}.json")
    found = analysis.found(load(tmp_path).results)
    [row] = found.to_dict("records")
    assert (row["method"], row["cell_type"], row["histories"]) == ("GO", "T", 3)
    assert (row["value"], row["lowest"], row["highest"]) == (6, 4, 20)
    assert row["terms"][0] == "a"  # which all three name
    assert len(row["terms"]) == 4


def test_a_call_made_again_replaces_all_that_it_found():
    first = {"go": {"top_terms": ["a"], "top_pvalues": [0.1], "total_significant": 1}}
    both = {**first, "kegg": {"top_terms": ["k"], "top_pvalues": [0.1], "total_significant": 2}}
    parameters = {"cell_type": "T"}
    steps = [
        make("perform_enrichment_analyses", one, kind="structured", parameters=parameters) for one in (both, first)
    ]
    assert analysis.found(results_of(*steps))["method"].tolist() == ["GO"]
    queries = [make("search_enrichment_semantic", SEARCH, kind="structured", parameters={"query": q}) for q in "ab"]
    assert analysis.found(results_of(*queries))["category"].tolist() == ["a", "b"]


def test_figures_draw_one_quantity_or_say_that_there_is_none(logs):
    found = analysis.found(logs.results)
    texts = [text.get_text() for text in figures.found(found, "significant terms").texts]
    assert "4 (1)" in texts  # KEGG terms of T cells, in one history
    cells = figures.found(found, "cells")  # whose only column has the name of the quantity
    assert [label.get_text() for label in cells.get_xticklabels()] == ["cells"]
    assert cells.get_xlabel() == "median (histories)"
    assert figures.found(analysis.found(logs.results.iloc[:0]), "cells").texts[0].get_text() == "no cells of this kind"


def test_commands_print_what_was_found():
    def run(*options):
        return CliRunner().invoke(main, ["steps", "samples:steps/typed.json", *options], catch_exceptions=False).output

    assert "family: T-cell surface" in run()
    assert "more numbers that steps found" in run()
    assert "CD8B, CD7, RP11-291B21.2, CD8A" in run("--all")


def test_no_annotation_is_missed_for_a_cell_type_without_others_below_it():
    records = [
        make("process_cells", CELLS, parameters={"cell_type": "PBMC"}),
        make("process_cells", {"status": "leaf_node"}, kind="structured", parameters={"cell_type": "B cell"}),
        make("dea_split_by_condition", EXPRESSION, kind="structured", parameters={"cell_type": "Megakaryocyte"}),
    ]
    covered = analysis.coverage([as_history(records)])
    annotated = covered[covered["analysis"].eq("process_cells")].set_index("cell_type")["status"]
    assert annotated.to_dict() == {"PBMC": "success", "B cell": "success"}
    others = covered[covered["analysis"].ne("process_cells")].set_index("cell_type")["status"]
    assert others.to_dict() == {
        "T cell": "not run", "B cell": "not run", "PBMC": "not run", "Megakaryocyte": "success"
    }  # fmt: skip


def test_successful_methods_name_their_pathways():
    said = evaluate_step(make("perform_enrichment_analyses", ENRICHMENT, kind="structured"))["enrichment_evaluation"]
    top = [said["top_pathways"][method] for method in said["successful_methods"]]
    assert top == [["a", "b", "c"], ["k1", "k2", "k3"]]


def counted(number, **parameters):
    result = {"count_results": [{"category": "ill", "cell_count": number}]}
    return make("compare_cell_counts", result, kind="structured", parameters=parameters)


NK = {"cell_type": "NK"}


@pytest.mark.parametrize(
    ("steps", "numbers"),
    [
        ([counted(5, **NK), counted(7, **NK)], {"NK": 7}),  # tried again: the last counts
        ([counted(5, **NK, top=3), counted(7, **NK, top=3)], {"NK": 7}),
        ([counted(5, **NK, top=3), counted(7, **NK, top=9)], {"NK, top=3": 5, "NK, top=9": 7}),
        ([counted(5, **NK, deep=True), counted(7, **NK, deep=False)], {"NK, deep=true": 5, "NK, deep=false": 7}),
        (
            [counted(5, **NK, sites=["gut"]), counted(7, **NK, sites=["gut", "skin"]), counted(9, **NK)],
            {"NK, gut": 5, "NK, gut, skin": 7, "NK": 9},
        ),
        ([counted(5, **NK, by=[1, 2]), counted(7, **NK, by={"k": 2})], {"NK, by=[1, 2]": 5, 'NK, by={"k": 2}': 7}),
        ([counted(5, **NK, by=None), counted(7, **NK, by=0.5)], {"NK": 5, "NK, by=0.5": 7}),
        ([counted(5, **NK, site="gut"), counted(7, **NK, site="skin")], {"NK, gut": 5, "NK, skin": 7}),
        ([counted(5, **NK), counted(7, **NK, site="skin")], {"NK": 5, "NK, skin": 7}),
        ([counted(5, **NK, site=["gut"]), counted(7, site="gut")], {"NK": 5, None: 7}),
        ([counted(5, site="gut"), counted(7, site="skin")], {"gut": 5, "skin": 7}),
    ],
)
def test_steps_of_other_settings_do_not_replace_each_other(steps, numbers):
    found = analysis.found(results_of(*steps))
    shown = found["cell_type"].astype(object).where(found["cell_type"].notna(), None)
    assert dict(zip(shown, found["value"], strict=True)) == numbers
    texts = [text.get_text() for text in figures.found(found, "cells").texts]
    assert texts == [f"{number}" for number in numbers.values()]


def test_a_figure_has_a_row_for_each_cell_type_of_a_category():
    found = analysis.found(results_of(counted(5, cell_type="NK"), counted(7, cell_type="B")))
    axes = figures.found(found, "cells")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["NK, ill", "B, ill"]
    assert [text.get_text() for text in axes.texts] == ["5", "7"]


def test_a_skipped_step_is_no_failed_call_and_its_history_has_no_judged_step(tmp_path):
    skipped = {**make("plot", None, False, kind="skipped"), "result_summary": ""}
    skipped["step"]["skip_reason"] = "no cells"
    save_history([make("load", "rows 1"), skipped], tmp_path / "a.json")
    save_history([skipped], tmp_path / "b.json")
    save_history([make("load", None, False, error="no file")], tmp_path / "c.json")
    save_history([make("load", "rows 2"), make("load", None, None)], tmp_path / "d.json")
    logs = load(tmp_path)
    calls = {run: [turn.call.has_failed for turn in logs.show(run).turns if turn.call] for run in logs.runs["run_id"]}
    assert list(calls.values()) == [[False, False], [False], [True], [False, None]]
    assert "On average over 3 histories (3 steps)" in finding_text(analysis.findings(logs)[0])


@pytest.mark.parametrize("options", [[], ["--checks"], ["--all"]])
def test_a_history_without_records_gives_a_written_table_without_rows(tmp_path, options):
    save_history([], tmp_path / "none.json")
    path = tmp_path / "steps.csv"
    CliRunner().invoke(
        main, ["steps", str(tmp_path / "none.json"), *options, "--output", str(path)], catch_exceptions=False
    )
    assert len(path.read_text().splitlines()) == 1


def test_long_settings_that_begin_alike_have_names_of_their_own(tmp_path):
    genes = [f"GENE{n}" for n in range(9)]
    records = [counted(n, cell_type="Monocyte", genes=[*genes, str(n)]) for n in (5, 7)]
    save_history(records, tmp_path / "a.json")
    printed = {part.title: part.rows for part in terminal.describe(load(tmp_path), {})}["numbers that steps found"]
    assert len({row["cell type"] for row in printed}) == 2
