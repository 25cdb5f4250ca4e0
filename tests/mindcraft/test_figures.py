"""Figures draw what the frames hold, whatever the names, and say the same in words."""

import io
import re

import pytest
from matplotlib.axes import Axes

from evalkit.mindcraft import analysis, figures, runs_df
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
