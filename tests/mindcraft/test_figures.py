"""Figures draw what the frames hold, whatever the names, and say so where there is nothing."""

import io

import pytest

from evalkit.mindcraft import analysis, figures, runs_df
from tests.mindcraft.builders import task, write_all

NAMES = ["a", "$x_1$ \\frac{", "<b>b</b> " + "long " * 12, "漢字🎉"]
TASKS = {"c1": task(target={"bread": 1}), "c2": task(target=["cake", "bread"]), "b1": task("construction")}
SCORES = {"c1": (0, 1, 1, None), "c2": (1, 0, 1, 1), "b1": (0, 40, 100, 65.4)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    files = {f"hand/model {m}/{task}/Andy_0_0.json": own[m] for task, own in SCORES.items() for m in range(len(NAMES))}
    table = runs_df(write_all(tmp_path_factory.mktemp("runs"), files), TASKS)
    return table.assign(model_name=table["model_name"].map({f"model {m}": name for m, name in enumerate(NAMES)}))


FIGURES = {
    "estimates": lambda runs: figures.estimates(analysis.success_by(runs), "model_name"),
    "estimates by hue": lambda runs: figures.estimates(
        analysis.success_by(runs, ["task_type", "model_name"]), "task_type", "model_name", highlight="a"
    ),
    "statuses": lambda runs: figures.statuses(analysis.status_counts(runs)),
    "scores": figures.scores,
}


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_from_its_frame_also_without_runs(runs, name):
    for rows, words in ((runs, ["$x_1$ \\frac{"]), (runs[:0], ["no runs of this kind", "no pairs of this kind"])):
        figure = FIGURES[name](rows).figure
        figure.savefig(io.BytesIO(), format="png", dpi=40)
        texts = [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
        assert any(word in text for word in words for text in texts)
