import numpy as np
import pandas as pd
import pytest

from evalkit.stats import like_with_like


def rows(model, kind, tasks, successes):
    return [(model, f"{kind}{t}", kind, float(i < successes)) for i, t in enumerate(tasks)]


def compare(*parts, stratum="type", **options):
    table = pd.DataFrame([row for part in parts for row in part], columns=["model", "task", "type", "value"])
    return like_with_like(table, "model", "task", "value", stratum, **options)


SIMPSON = (
    rows("alpha", "easy", range(80), 64),
    rows("alpha", "hard", range(20), 6),
    rows("beta", "easy", range(20), 18),
    rows("beta", "hard", range(80), 36),
)
APART = (*SIMPSON[:2], rows("beta", "easy", range(100, 120), 18), rows("beta", "hard", range(100, 180), 36))


@pytest.mark.parametrize(
    ("parts", "stratum", "headline", "reason"),
    [
        (SIMPSON, "type", "adjusted for tasks", "the raw rates put alpha before beta, those adjusted for tasks do not"),
        (APART, "type", "standardised", "the raw rates put alpha before beta, those standardised do not"),
        (APART, None, "none", "neither shared tasks nor shared types"),
        ((*SIMPSON[:1], rows("beta", "easy", range(80), 40)), "type", "raw", "All models ran the same tasks"),
        ((*SIMPSON[:1], rows("beta", "easy", range(60), 40)), "type", "adjusted for tasks", "order is that of the raw"),
        (SIMPSON[:1], "type", "raw", "There is one model"),
    ],
)
def test_the_headline_follows_the_rule(parts, stratum, headline, reason):
    found = compare(*parts, stratum=stratum)
    assert found.headline == headline
    assert reason[1:] in str(found.reason)
    column = {"raw": "estimate", "adjusted for tasks": "adjusted", "standardised": "standardised"}.get(headline)
    expected = found.table[column] if column else pd.Series(np.nan, index=found.table.index)
    pd.testing.assert_series_equal(found.table["headline"], expected, check_names=False)


def test_a_model_on_easy_tasks_only_is_not_first_by_its_raw_rate():
    found = compare(
        rows("a", "t", range(40), 24), rows("b", "t", range(40), 24), rows("easy", "t", range(26), 24), stratum=None
    )
    table = found.table.set_index("model")
    assert table.loc["easy", "estimate"] > 0.9
    assert table["headline"].tolist() == pytest.approx([0.6] * 3, abs=0.01)
    assert table.loc["easy", "coverage"] == pytest.approx(0.65)


def test_raw_adjusted_and_standardised_rates_stand_side_by_side():
    table = compare(*SIMPSON).table.set_index("model")
    assert table["estimate"].to_dict() == pytest.approx({"alpha": 0.7, "beta": 0.54})
    assert table["standardised"].to_dict() == pytest.approx({"alpha": 0.55, "beta": 0.675})
    assert (table["standardised_low"] < table["standardised"]).all()


def test_scores_and_means_are_taken_too():
    assert compare(*SIMPSON, kind="score").headline == "adjusted for tasks"
    assert compare(*SIMPSON, kind="mean").headline == "adjusted for tasks"
    with pytest.raises(ValueError, match="unknown kind"):
        compare(*SIMPSON, kind="median")
