"""Figures for narrow windows: what is laid out anew, what can't be, and that links and words stay."""

import re

import pandas as pd
import pytest

from evalkit.display import Look, plots, show, show_figure
from evalkit.display.narrow import WIDTH

MODELS = [f"a-model-of-{i}-letters" for i in range(4)]
RATES = pd.DataFrame({"model": MODELS, "item": MODELS[::-1], "estimate": [0.1, 0.4, 0.6, 1.0], "n": 5,
                      "low": 0.0, "high": 1.0, "href": [f"#{i}" for i in range(4)]})  # fmt: skip


@pytest.fixture
def shown(monkeypatch):
    """Be within a report; gives what is shown."""
    out = []
    monkeypatch.setenv(show.REPORT, "linked")
    monkeypatch.setattr(show, "display", lambda data, **_: out.append(data))
    return out


def facets():
    return plots.facets(RATES, "item", lambda own, ax: plots.estimates(own, "model", ax=ax), xlabel="long " * 30)[0]


def many_columns():
    cells = pd.DataFrame({"a": "row", "b": [f"c{i}" for i in range(40)], "estimate": 0.5, "n": 100})
    return plots.heatmap(cells, "a", "b")


def timeline():
    events = pd.DataFrame({"row": "a", "x": range(30), "kind": "k"})
    return plots.timeline(events, "row", "x", "kind", {"k": Look("#0072B2")})


@pytest.mark.parametrize(
    ("make", "is_narrow"),
    [
        (lambda: plots.estimates(RATES, "model", "item"), True),
        (lambda: plots.strips(RATES, "model", "estimate"), True),
        (facets, True),
        (many_columns, False),  # words would stand on each other
        (timeline, False),
    ],
)
def test_what_can_be_drawn_narrow_is_drawn_so_in_a_report(shown, make, is_narrow):
    show_figure(make(), "what it shows", name="x")
    (data,) = shown
    narrow = data[show.FIGURE].get("narrow", "")
    assert bool(narrow) is is_narrow
    assert data[show.FIGURE]["pdf"]
    if narrow:
        assert f'width="{WIDTH * 100:.0f}"' in narrow
        assert 'aria-label="what it shows"' in narrow
        wide = data["image/svg+xml"]
        assert sorted(re.findall('href="#[0-9]"', narrow)) == sorted(re.findall('href="#[0-9]"', wide))
        assert float(re.search(r'width="(\d+)"', wide)[1]) > WIDTH * 100


def test_outside_of_a_report_a_figure_is_drawn_once(shown, monkeypatch):
    monkeypatch.delenv(show.REPORT)
    ax = plots.estimates(RATES, "model", "item")
    size = ax.figure.get_size_inches().tolist()
    show_figure(ax, "what it shows", name="x")
    assert "narrow" not in shown[0][show.FIGURE]
    assert ax.figure.get_size_inches().tolist() == size
