"""Shapes of pictures: they draw what the frames hold, whatever the names and however many, and nothing is cut off."""

import io
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.collections import LineCollection, PathCollection, PolyCollection

from evalkit._notes import Notes, note
from evalkit.display import alt_of, new_axes, percent_axis, plots
from evalkit.display.drawing import INK, Look, draw, looks
from tests.display.gallery import KINDS, counts, names, shapes, table

HOSTILE = ["$x_1$ \\frac{", "<b>b</b> & 'c'", "\x1b[31m\u202ered", "漢字🎉", "long " * 30, "_hidden", ""]
LONG = "organisation/of-a-long-name-that-nobody-would-cut/model"
EMPTY = table(["a"], ["b"]).iloc[:0]
NAN = np.nan


def overhang(figure) -> float:
    """Say how many inches what is drawn stands out of the figure."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*constrained_layout.*")
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.set_dpi(72)  # as SVG has
        figure.draw_without_rendering()
        width, height = figure.get_size_inches()
        box = figure.get_tightbbox(RendererSVG(72 * width, 72 * height, io.StringIO(), image_dpi=72))
    return max(-box.x0, -box.y0, box.x1 - width, box.y1 - height)


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def row_names(ax) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def points(ax: Axes) -> np.ndarray:
    drawn = [c.get_offsets() for c in ax.collections if isinstance(c, PathCollection)]
    return np.concatenate(drawn) if drawn else np.empty((0, 2))


def intervals(ax: Axes) -> list[list[float]]:
    lines = [c for c in ax.collections if isinstance(c, LineCollection) and c.get_zorder() == 2]
    return sorted([*segment[:, 0], segment[0, 1]] for line in lines for segment in line.get_segments())


@pytest.mark.parametrize(("models", "items", "stem"), [(1, 25, "model"), (9, 1, LONG), (9, 20, LONG)])
def test_nothing_is_cut_off(models, items, stem):
    drawn = shapes(names(stem, models), names(f"item of {stem}", items))
    some = drawn if models * items < 100 else ("estimates by hue", "heatmap", "curves")
    found = {name: overhang(drawn[name]().figure) for name in some}
    assert {name: out for name, out in found.items() if out > 0.01} == {}


@pytest.mark.parametrize("name", shapes(["a"], ["b"]))
def test_any_text_can_be_a_name(name):
    figure = shapes(HOSTILE, HOSTILE)[name]().figure
    draw(figure, "a figure")
    assert overhang(figure) < 0.01
    assert len(alt_of(figure)) > 20
    written = [artist.get_text() for artist in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
    assert not {"\x1b", "\u202e"} & set("".join(written))
    if figure.legends and name not in ("timeline", "endings"):
        assert len(figure.legends[0].get_texts()) == len(HOSTILE)


GIVEN = {
    "estimates": lambda t, ax: plots.estimates(t, "item", "model_name", ax=ax),
    "strips": lambda t, ax: plots.strips(t, "item", "estimate", t.drop_duplicates("item"), ax=ax),
    "shares": lambda t, ax: plots.shares(counts(t), "item", looks(t["model_name"]), ax=ax),
    "heatmap": lambda t, ax: plots.heatmap(t, "item", "model_name", ax=ax),
    "curves": lambda t, ax: plots.curves(t, "place", "model_name", ax=ax),
    "timeline": lambda t, ax: plots.timeline(t.assign(k="+"), "item", "place", "k", KINDS, ax=ax),
}


@pytest.mark.parametrize("name", GIVEN)
def test_plots_use_given_axes_and_state_if_there_is_nothing_to_draw(name):
    full, empty = new_axes(9, 7, ncols=2)
    assert GIVEN[name](table(names("m", 2), names("i", 3)), full) is full
    assert GIVEN[name](EMPTY, empty) is empty
    assert re.fullmatch(r"no (runs|events) of this kind", texts(empty)[0])
    assert full.figure.legends == []
    assert overhang(full.figure) < 0.01


def test_estimates_and_intervals_lie_where_the_table_says():
    t = table(["a"], names("i", 4))
    ax = plots.estimates(t, "item")
    assert np.allclose(points(ax), np.column_stack([t["estimate"], range(4)]))
    assert np.allclose(intervals(ax), sorted(zip(t["low"], t["high"], range(4), strict=True)))
    assert row_names(ax) == t["item"].tolist()
    t = pd.DataFrame({"item": ["x", "x", "y"], "model": ["a", "b", "b"], "estimate": 0.5, "n": 3})
    assert points(plots.estimates(t, "item", "model"))[:, 1].tolist() == pytest.approx([-0.2, 0.2, 1.2])
    assert points(plots.estimates(t, "item", "item"))[:, 1].tolist() == [0, 0, 1]


def test_an_unknown_bound_is_no_bar_and_an_unknown_estimate_says_why_instead_of_a_point():
    notes = [Notes(), Notes(), Notes(), note("none", "no run") + note("x", "x"), Notes()]
    t = pd.DataFrame(
        [
            ("known", 0.5, 0.4, 0.6, 10, 0, ""),
            ("no interval", 0.5, NAN, NAN, 1, 0, ""),
            ("reason", NAN, NAN, NAN, 3, 0, "too few tasks"),
            ("note", NAN, NAN, NAN, 0, 2, ""),
            ("no runs", NAN, NAN, NAN, 0, 0, ""),
        ],
        columns=["item", "estimate", "low", "high", "n", "n_not_measured", "reason"],
    ).assign(warning=notes)
    ax = plots.estimates(t, "item")
    assert np.allclose(points(ax), [(0.5, 0), (0.5, 1)])
    assert np.allclose(intervals(ax), [(0.4, 0.6, 0)])
    assert row_names(ax) == ["known", "no interval", "reason", "note"]
    assert texts(ax) == ["too few tasks", "no run", "50 % [40, 60], n=10", "50 %, n=1", "n=3", "n=2"]


def test_different_names_never_share_a_place():
    alike = [f"{'x' * 40}{i}{'y' * 40}" for i in range(3)] + [None, "unknown", NAN]
    ax = plots.estimates(pd.DataFrame({"item": alike, "estimate": 0.5, "low": 0.4, "high": 0.6, "n": 5}), "item")
    assert sorted(points(ax)[:, 1]) == [0, 1, 2, 3, 3, 4]  # what is missing is one group, and not the one called so
    assert len(set(row_names(ax))) == 5
    assert row_names(ax)[3:] == ["unknown (missing)", "unknown"]


def test_what_is_highlighted_is_strong_and_the_others_are_pale():
    t = table(names("m", 3), names("i", 2))
    ax = plots.estimates(t[t["item"] == "i 0"], "model_name", highlight="m 1")
    alphas = {y: c.get_alpha() for c in ax.collections if isinstance(c, PathCollection) for _, y in c.get_offsets()}
    assert alphas == {0: 0.45, 1: 1.0, 2: 0.45}
    ax = plots.curves(t, "place", "model_name", highlight="m 1")
    own = t[t["model_name"] == "m 1"]
    assert np.allclose(points(ax), own[["place", "estimate"]])
    assert texts(ax) == [f"n={n}" for n in own["n"]]
    assert len(ax.lines) == 3
    assert not texts(plots.curves(table(names("m", 3), names("i", 7)), "place", "model_name", highlight="m 1"))


@pytest.mark.parametrize(("values", "limits"), [([0.2, 0.4], (-0.02, 1.02)), ([-0.5, 1.5], (-0.5, 1.5))])
def test_axes_hold_all_values(values, limits):
    t = pd.DataFrame({"item": ["a", "b"], "estimate": values, "low": NAN, "high": NAN, "n": 3})
    assert plots.estimates(t, "item").get_xlim() == pytest.approx(limits)
    assert percent_axis(new_axes(), "y").get_ylim() == (-0.02, 1.02)


def test_published_results_stand_below_with_a_line_through_the_rows():
    references = pd.DataFrame({"name": ["one", "i"], "mean": [0.3, 0.6], "spread": [0.05, NAN]})
    ax = plots.estimates(table(["a"], ["i"]), "item", references=references)
    assert row_names(ax) == ["i", "one", "i"]
    assert [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 2] == [0.3, 0.6]
    assert len(points(ax)) == 1


def test_every_value_is_a_point_and_means_lie_below():
    values = pd.DataFrame({"model": ["a"] * 4 + ["b"] * 3, "score": [1.0, 1.0, 1.0, 2.0, 0.0, NAN, 4.0]})
    means = pd.DataFrame({"model": ["b", "a"], "estimate": [2.0, 1.25], "low": [0, 1], "high": [4, 1.5], "n": [2, 4]})
    ax = plots.strips(values, "model", "score", means)
    assert sorted(points(ax)[:, 0]) == [0, 1, 1, 1, 1.25, 2, 2, 4]
    assert len({y for x, y in points(ax) if x == 1}) == 3
    assert np.allclose(intervals(ax), [(0, 4, 0.28), (1, 1.5, 1.28)])


def test_bars_are_as_long_as_their_counts_and_hatched():
    t = pd.DataFrame({"model": ["a", "none", "b"], "ok": [3, 0, 1], "bad": [1, 0, 3], "worse": [0, 0, 0]})
    parts = {"ok": Look("#009e73", text="success"), "bad": Look("#d55e00", hatch="//"), "worse": Look("#000000")}
    ax = plots.shares(t, "model", parts)
    bars = sorted((bar.get_y(), bar.get_x(), bar.get_width(), bar.get_hatch() or "") for bar in ax.patches)
    assert [(x, width, hatch) for _, x, width, hatch in bars] == [
        (0, 0.75, ""), (0.75, 0.25, "//"), (0, 0.25, ""), (0.25, 0.75, "//"),
    ]  # fmt: skip
    assert row_names(ax) == ["a", "b"]
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["success", "bad"]
    assert sorted(texts(ax)) == ["1", "1", "3", "3", "n=4", "n=4"]


def test_cells_hold_value_and_n_and_those_without_data_stay_empty():
    rows = [("a", "x", 0.5, 4), ("a", "y", 0.256, 9), ("b", "x", NAN, 2), ("b", "y", NAN, 0)]
    t = pd.DataFrame(rows, columns=["item", "model", "estimate", "n"])
    ax = plots.heatmap(t, "item", "model")
    assert sorted(texts(ax)) == ["26 (9)", "50 (4)", "– (2)"]
    assert np.isnan(ax.collections[0].get_array().filled(NAN)).sum() == 2
    assert sorted(texts(plots.heatmap(t, "item", "model", percent=False, digits=1))) == ["0.3 (9)", "0.5 (4)", "– (2)"]


def test_a_cell_of_nothing_is_clear_and_a_full_one_dark():
    t = pd.DataFrame({"item": ["none", "half", "all"], "model": "m", "estimate": [0.0, 0.5, 1.0], "n": 3})
    ax = plots.heatmap(t, "item", "model")
    assert ax.collections[0].get_facecolors()[:, 3].round(1).tolist() == [0, 0.5, 1]
    assert [text.get_color() for text in ax.texts] == [INK, INK, "white"]
    signed = plots.heatmap(t.assign(estimate=[-0.4, 0.0, 0.2]), "item", "model", signed=True, percent=False)
    assert signed.collections[0].get_facecolors()[:, 3].round(1).tolist() == [0.9, 0, 0.5]


def test_a_matrix_of_differences_has_both_sides_signs_and_frames_and_the_best_model_first():
    pairs = pd.DataFrame(
        [("b", "a", 0.3, 0.5, -0.2, -0.3, -0.1, True), ("b", "c", 0.3, 0.302, -0.002, -0.1, 0.1, False)],
        columns=["model_a", "model_b", "mean_a", "mean_b", "estimate", "low", "high", "decided"],
    )
    both = plots.mirrored(pairs)
    assert both["model_a"].tolist() == ["a", "c", "b", "b"]
    assert both.loc[0, ["estimate", "low", "high"]].tolist() == [0.2, 0.1, 0.3]
    ax = plots.heatmap(both, "model_a", "model_b", signed=True, frame="decided")
    assert set(texts(ax)) == {"0", "+20", "-20"}
    assert {text.get_text() for text in ax.texts if text.get_weight() == "bold"} == {"+20", "-20"}
    assert sum(patch.get_linewidth() > 0 for patch in ax.patches) == 2
    ticks = [[label.get_text() for label in axis.get_ticklabels()] for axis in (ax.xaxis, ax.yaxis)]
    assert ticks == [["a", "c", "b"]] * 2


def test_of_a_tall_table_the_rows_are_drawn_whose_values_differ_most():
    spreads = {f"t{i:03}": (i * 37 % 100) / 100 for i in range(100)} | {"nothing": None}
    rows = [(task, model, value, 1) for task, gap in spreads.items() for model, value in (("a", 0.0), ("b", gap))]
    t = pd.DataFrame(rows, columns=["task", "model", "estimate", "n"])
    ax = plots.heatmap(t, "task", "model")
    widest = sorted((task for task in spreads if task != "nothing"), key=lambda task: -spreads[task])[:40]
    assert row_names(ax) == [task for task in spreads if task in widest]
    assert "40 of 101 rows: the ones with the largest differences" in ax.get_xlabel().replace("\n", " ")
    equal = plots.heatmap(t.assign(estimate=0.5), "task", "model")
    assert "40 of 101 rows: the first" in equal.get_xlabel().replace("\n", " ")
    assert len(plots.heatmap(t, "task", "model", rows=["t000"]).get_yticklabels()) == 101


def test_curves_have_bars_at_few_places_and_bands_at_many():
    few, many = (table(["a"], names("i", count)) for count in (3, 30))
    assert len(intervals(plots.curves(few, "place", "model_name"))) == 3
    ax = plots.curves(many, "place", "model_name", steps=True)
    assert intervals(ax) == []
    assert ax.lines[0].get_drawstyle() == "steps-post"
    assert np.allclose(ax.lines[0].get_xydata(), many[["place", "estimate"]])


def test_bands_reach_from_the_lower_to_the_upper_bound():
    many = table(["a"], names("i", 30))
    ax = plots.curves(many, "place", "model_name")
    band = next(c for c in ax.collections if isinstance(c, PolyCollection))
    drawn = pd.DataFrame(band.get_paths()[0].vertices, columns=["x", "y"]).groupby("x")["y"]
    assert np.allclose(drawn.agg(["min", "max"]), many.sort_values("place")[["low", "high"]])


def test_events_lie_in_their_lines_the_rare_before_the_frequent_and_unknown_kinds_are_left_out():
    t = pd.DataFrame({"run": ["a", "a", "b", "a"], "x": [0, 1, 0, 2], "kind": ["-", "+", "?", "+"]})
    ax = plots.timeline(t, "run", "x", "kind", KINDS)
    assert points(ax).tolist() == [[1, 0], [2, 0], [0, 0]]
    assert row_names(ax) == ["a", "b"]
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["gains points", "loses points"]


def test_panels_stand_for_groups_and_their_rows_keep_their_places():
    t = table(["a", "b"], names("i", 2)).iloc[[0, 3]].assign(model_name=["a", None])
    panels = plots.facets(t, "model_name", lambda own, ax: plots.estimates(own, "item", order=names("i", 2), ax=ax))
    assert [panel.get_title("left") for panel in panels] == ["a", "unknown"]
    assert [points(panel)[:, 1].tolist() for panel in panels] == [[0], [1]]
    assert plots.facets(EMPTY, "item", lambda own, ax: None).shape == (1,)


def test_an_axis_of_equal_values_begins_at_zero():
    table = pd.DataFrame(
        {"model": ["a", "b"], "estimate": [337.0] * 2, "low": [NAN] * 2, "high": [NAN] * 2, "n": [1, 1]}
    )
    low, high = plots.estimates(table, "model", percent=False).get_xlim()
    assert (low, high) == (0.0, pytest.approx(370.7))
