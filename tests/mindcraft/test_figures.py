"""Figures draw what the frames hold, whatever the names, and say the same in words."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg

from evalkit import compare
from evalkit.display import new_axes
from evalkit.mindcraft import analysis, figures, runs_df
from tests.display.plots.test_plots import intervals, points
from tests.mindcraft.builders import task, write_all

NAMES = ["a", "$x_1$ \\frac{", "<b>b</b> " + "long " * 12, "漢字🎉"]
TASKS = {"c1": task(target={"bread": 1}), "c2": task(target=["cake", "bread"]), "b1": task("construction")}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    scores = {"c1": (0, 1, 1, None), "c2": (1, 0, 1, 1), "b1": (0, 40, 100, 65.4)}
    files = {
        f"hand/model {m}/{task_id}/Andy_0_0.json": values[m]
        for task_id, values in scores.items()
        for m in range(len(NAMES))
    }
    table = runs_df(write_all(tmp_path_factory.mktemp("runs"), files), TASKS)
    return table.assign(model_name=table["model_name"].map({f"model {m}": name for m, name in enumerate(NAMES)}))


FIGURES = {
    "estimates": (lambda r: analysis.success_by(r), lambda t, **o: figures.estimates(t, "model_name", **o)),
    "estimates by hue": (
        lambda r: analysis.success_by(r, ["task_type", "model_name"]),
        lambda t, **o: figures.estimates(t, "task_type", "model_name", highlight="a", **o),
    ),
    "statuses": (lambda r: analysis.status_counts(r), figures.statuses),
    "scores": (lambda r: r, figures.scores),
}


def drawn(axes: Axes) -> str:
    """Draw for good, and give all texts of the figure."""
    figure = axes.figure
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return "\n".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text")))


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_from_its_frame(runs, name):
    table, draw = FIGURES[name]
    axes = draw(table(runs))
    assert isinstance(axes, Axes)
    assert "$x_1$ \\frac{" in drawn(axes)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_without_runs_says_so(runs, name):
    table, draw = FIGURES[name]
    assert re.search(r"no (runs|pairs) of this kind", drawn(draw(table(runs.iloc[:0]))))


@pytest.mark.parametrize("name", FIGURES)
def test_axes_that_are_given_are_used(runs, name):
    table, draw = FIGURES[name]
    axes = new_axes()
    assert draw(table(runs), ax=axes) is axes


def test_estimates_lie_where_the_table_says(runs):
    table = analysis.success_by(runs)
    axes = figures.estimates(table, "model_name")
    assert np.allclose(points(axes)[:, 0], table["estimate"])
    assert np.allclose(
        sorted(intervals(axes), key=lambda bar: bar[2]), table[["low", "high"]].assign(y=range(len(table)))
    )


def test_shares_of_statuses_fill_every_bar(runs):
    axes = figures.statuses(analysis.status_counts(runs))
    widths: dict[float, float] = {}
    for bar in axes.patches:
        widths[round(bar.get_y(), 3)] = widths.get(round(bar.get_y(), 3), 0) + bar.get_width()
    assert np.allclose(list(widths.values()), 1)
    assert len(widths) == len(NAMES)


def test_every_construction_score_is_a_dot(runs):
    axes = figures.scores(runs)
    single, means = sorted(points(axes)[:, 0])[::2], sorted(points(axes)[:, 0])[1::2]  # of one run each
    assert np.allclose([single, means], [[0, 0.4, 0.654, 1]] * 2)


def test_words_say_what_the_figures_show(runs):
    words = figures.describe_estimates(analysis.success_by(runs[runs["model_name"] == "a"]), "model_name")
    assert words.startswith("a: 33 % [")
    assert words.endswith("n = 3).")
    statuses = figures.describe_statuses(analysis.status_counts(runs[runs["model_name"] == "a"]))
    assert statuses == "a: 1 success, 2 score of zero of 3."


@pytest.mark.parametrize("describe", [figures.describe_estimates, figures.describe_statuses])
def test_no_runs_are_said_in_words(runs, describe):
    empty = analysis.overview(runs.iloc[:0])
    assert describe(empty, "model_name") == "Nothing to show."


@pytest.mark.parametrize(
    "category", ["agent_count", "difficulty", "n_blocked_agents", "metric_steps_of_the_whole_plan"]
)
@pytest.mark.parametrize("hues", [0, 1, 2, 6])
def test_the_label_beside_a_single_category_is_whole(category, hues):
    rows = [
        {"estimate": 0.4, "low": 0.2, "high": 0.6, "n": 5, category: "1", "side": f"s{i}"} for i in range(hues or 1)
    ]
    axes = figures.estimates(pd.DataFrame(rows), category, "side" if hues else None)
    FigureCanvasAgg(axes.figure).draw()
    box, page = axes.yaxis.label.get_window_extent(), axes.figure.bbox
    assert page.y0 <= box.y0
    assert box.y1 <= page.y1


def test_a_tie_has_no_sign_on_either_side():
    pair = {"mean_a": 0.5, "mean_b": 0.5, "estimate": 0.0, "decided": False}
    near = {"mean_a": 0.5, "mean_b": 0.498, "estimate": 0.002, "decided": False}
    far = {"mean_a": 0.5, "mean_b": 0.3, "estimate": 0.2, "decided": True}
    models = [("a", "b", pair), ("a", "c", near), ("b", "c", far)]
    pairs = pd.DataFrame([{"model_a": a, "model_b": b, **rest} for a, b, rest in models])
    cells = sorted(text.get_text() for text in compare.figures.differences(pairs).texts)
    assert cells == ["+20", "-20", "0", "0", "0", "0"]
