"""Groups are told apart by their whole names, however short or plain these are where they are shown."""

import re

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit import compare
from evalkit.cli import main
from evalkit.kinds.follow import Following
from evalkit.mindcraft import KIND, analysis, figures, load, runs_df
from tests.display.plots.test_plots import points
from tests.mindcraft.builders import task, write, write_all

# pairs that look the same when they are cut or cleaned
PAIRS = {
    "the same 60 characters first": ("m" * 60 + "-one", "m" * 60 + "-two"),
    "the same at both ends": ("m" * 40 + "1" + "m" * 40, "m" * 40 + "2" + "m" * 40),
    "another control character": ("model\x1b", "model\x07"),
    "another direction override": ("model\u202e", "model\u202d"),
}
TASKS = {
    "c1": task(target={"bread": 1}, blocked_access_to_recipe=[]),
    "c2": task(target={"bread": 1}, blocked_access_to_recipe=["0"]),
    "b1": task("construction"),
}


@pytest.fixture(scope="module", params=PAIRS)
def pair(request, tmp_path_factory):
    """A folder in which the first model succeeds in everything, and the second in nothing."""
    root = tmp_path_factory.mktemp("pair")
    scores = {"b1": 100, "c1": 1, "c2": 1}
    files = {
        f"exp_{number}/{task_id}/Andy_0_0.json": score * (1 - number)
        for number in range(2)
        for task_id, score in scores.items()
    }
    for number, name in enumerate(PAIRS[request.param]):
        files[f"exp_{number}/results.txt"] = repr({"model": name, "total": 3})
    return write_all(root, files), PAIRS[request.param]


def test_frames_and_analyses_hold_two_models(pair):
    root, names = pair
    runs = runs_df(root, TASKS)
    table = analysis.success_by(runs).set_index("model_name")
    assert table["estimate"].to_dict() == {names[0]: 1, names[1]: 0}
    assert analysis.progress(runs)["model_name"].nunique() == 2
    (sentence,) = compare.pairs(runs)["n_tasks"]
    assert sentence == 3
    assert compare.reliability(runs, [1])["model_name"].nunique() == len(analysis.cooking_trend(runs)) == 2


def test_the_terminal_shows_two_models_that_differ(pair):
    root, _ = pair
    for options in ([], ["--cooking"]):
        out = CliRunner().invoke(main, ["mindcraft", str(root), *options]).stdout
        rows = [re.split(r"\s{2,}", line.strip()) for line in out.split("\n\n")[0].splitlines()[2:]]
        assert [row[1:3] for row in rows] == [["3", "100 %"], ["3", "0 %"]]
        assert rows[0][0] != rows[1][0]


def test_following_shows_two_models_that_differ(pair):
    root, _ = pair
    following = Following(KIND, root, {}, idle=0)
    rows = [line for line in following.look(100).text.splitlines() if "of 3" in line and not line.startswith("total")]
    assert len(rows) == 2
    assert len({re.split(r"\s{2,}", row)[0] for row in rows}) == 2


def ticks(axes, which: str = "y") -> list[str]:
    return [label.get_text() for label in getattr(axes, f"get_{which}ticklabels")()]


def test_every_figure_draws_two_models_under_two_names(pair):
    root, _ = pair
    runs = runs_df(root, TASKS)
    success = analysis.success_by(runs)
    axes = figures.estimates(success, "model_name")
    assert sorted(points(axes)[:, 0]) == [0, 1]
    by_type = figures.estimates(analysis.success_by(runs, ["task_type", "model_name"]), "task_type", "model_name")
    assert len(points(by_type)) == 4
    cells = figures.heatmap(analysis.cooking_by_item(runs), "item", "model_name")
    assert sorted(text.get_text() for text in cells.texts) == ["0 (2)", "100 (2)"]
    (legend,) = by_type.figure.legends
    named = {
        "estimates": ticks(axes), "hues": [text.get_text() for text in legend.get_texts()],
        "heatmap": ticks(cells, "x"), "scores": ticks(figures.scores(runs)),
        "statuses": ticks(figures.statuses(analysis.status_counts(runs))),
        "differences": ticks(compare.figures.differences(compare.pairs(runs))),
        "by_blocked": [a.get_title("left") for a in figures.by_blocked(analysis.cooking_by_blocked(runs)).axes],
        "items": [a.get_title("left") for a in figures.item_by_blocked(analysis.cooking_item_by_blocked(runs)).axes],
    }  # fmt: skip
    assert {name: len(set(texts)) for name, texts in named.items()} == dict.fromkeys(named, 2)


def test_a_missing_group_is_no_group_named_unknown():
    rows = [{"difficulty": name, "estimate": rate, "low": 0, "high": 1, "n": 5} for name, rate in
            (("unknown", 0.25), (None, 0.75))]  # fmt: skip
    axes = figures.estimates(pd.DataFrame(rows), "difficulty")
    assert ticks(axes) == ["unknown", "unknown (missing)"]
    assert points(axes).tolist() == [[0.25, 0], [0.75, 1]]


def test_experiments_of_one_name_in_folders_of_one_name_are_counted_apart(tmp_path):
    files = {f"{where}/s/exp/t{n}/Andy_0_0.json": 1 for where in ("a", "b") for n in range(2)}
    files |= {f"{where}/s/exp/results.txt": "{'model': 'm', 'total': 3}" for where in ("a", "b")}
    root = write_all(tmp_path, files)
    table = analysis.progress(runs_df(root))
    assert table[["experiment", "tasks", "tasks_expected"]].to_numpy().tolist() == [
        ["a/s/exp", 2, 3], ["b/s/exp", 2, 3],
    ]  # fmt: skip
    assert "total: 4 of 6 tasks done" in Following(KIND, root, {}).look().text


def test_lists_of_items_that_look_alike_are_two_groups(tmp_path):
    tasks = {"one": task(target={"a, b": 1}), "two": task(target={"a": 1, "b": 1})}
    root = write_all(tmp_path / "runs", {f"x/m/{name}/agent_0.json": i for i, name in enumerate(tasks)})
    path = write(tmp_path / "tasks.json", tasks)
    out = CliRunner().invoke(main, ["mindcraft", str(root), "--tasks", str(path), "--by", "target_items"]).stdout
    rows = [re.split(r"\s{2,}", line.strip())[:3] for line in out.split("\n\n")[0].splitlines()[2:]]
    assert rows == [["a, b", "1", "100 %"], ['"a, b"', "1", "0 %"]]


def test_logs_that_differ_in_their_middle_only_are_no_copies(tmp_path):
    def long_log(middle: str) -> dict:
        talk = [{"role": "user", "content": "x" * 3000}, {"role": "user", "content": middle}]
        return {"turns": [*talk, {"role": "user", "content": "y" * 3000}]}

    files = {"x/m/a/Andy_0_0.json": long_log("one"), "x/m/b/Andy_0_0.json": long_log("two")}
    assert load(write_all(tmp_path, files)).runs["flag_stale_copy"].tolist() == [False, False]
