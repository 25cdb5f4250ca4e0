import io

import pytest

from evalkit.steps import analysis, figures, load, show, steps_df
from tests.display.plots.test_plots import points

LONGEST = 120


@pytest.fixture(scope="module")
def logs():
    return load("samples:steps")


def drawn(ax):
    ax.figure.savefig(io.BytesIO(), format="png", dpi=40)
    return ax


@pytest.mark.parametrize("file", ["typed.json", "nested.json", "execution_history.json"])
def test_every_figure_is_drawn_and_described(logs, file):
    one = [history for history in logs.histories if history.label == file]
    own = analysis.steps_of(logs.steps, one)
    assert len(points(drawn(figures.timeline(own)))) == len(own)
    assert "21 records" in figures.describe_timeline(own)
    rates = analysis.success_rates(own)
    assert drawn(figures.rates(rates)).get_xlim() == (-0.02, 1.02)
    assert "confirmed" in figures.describe_rates(rates)
    enriched = analysis.enrichments(one)
    assert len([text for text in drawn(figures.enrichment(enriched)).texts if text.get_text()]) == len(enriched)
    assert "T cell KEGG 4" in figures.describe_enrichment(enriched)
    covered = analysis.coverage(one)
    assert len([text for text in drawn(figures.coverage(covered)).texts if text.get_text()]) == len(covered)
    assert "cell types by" in figures.describe_coverage(covered)
    survived = analysis.storage_comparison(one)
    drawn(figures.survival(survived))
    assert figures.describe_survival(survived).startswith("Of ")


def test_a_count_that_was_cut_away_is_a_dash(logs):
    one = [history for history in logs.histories if history.label == "execution_history.json"]
    ax = figures.enrichment(analysis.enrichments(one))
    assert "–" in [text.get_text() for text in ax.texts]
    assert "REACTOME unknown" in figures.describe_enrichment(analysis.enrichments(one))


def test_nothing_to_draw_is_said(logs):
    steps, none = logs.steps.iloc[:0], []
    for ax in (
        figures.timeline(steps),
        figures.rates(analysis.success_rates(steps)),
        figures.enrichment(analysis.enrichments(none)),
        figures.coverage(analysis.coverage(none)),
        figures.survival(analysis.storage_comparison(none)),
    ):
        assert [text.get_text() for text in drawn(ax).texts] == ["no steps of this kind"]
    assert figures.describe_timeline(steps) == "Timeline of 0 records: none."
    assert analysis.focus(steps, none) == []
    assert "0 histories" in show.describe_source(none)
    assert show.describe_routing(analysis.routing(none)) == "No records to route."


def test_hostile_names_are_drawn_as_text():
    name = "display_$\\frac{1}{0}$\x1b[31m" + "x" * 300
    ax = drawn(figures.timeline(steps_df([{"function_name": name, "success": True, "result_summary": "<b>"}])))
    [tick] = [text.get_text() for text in ax.get_yticklabels()]
    assert "\x1b" not in tick
    assert len(tick) <= LONGEST


def test_axes_given_are_used(logs):
    from evalkit.display import new_axes

    ax = new_axes()
    assert figures.timeline(logs.steps.head(5), ax) is ax


def test_sentences_say_what_tables_hold(logs):
    one = [history for history in logs.histories if history.label == "typed.json"]
    text = show.describe_routing(analysis.routing(one))
    assert text.startswith(
        "After record 16 (dea_split_by_condition) the router says abort: the step was tried too often."
    )
    assert "made for demonstration" in show.describe_source(logs.histories, "samples:steps")
    assert "made for demonstration" not in show.describe_source(logs.histories, "/my/folder")
    assert show.describe_changes(analysis.changes(logs.steps, logs.steps.iloc[:0]), one, []) == ""
