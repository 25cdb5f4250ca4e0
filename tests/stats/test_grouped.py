import math

import numpy as np
import pandas as pd
import pytest

from evalkit.stats import estimate_by, mean_interval, rate_interval

RUNS = pd.DataFrame(
    {
        "model_name": ["b", "a", "b", None, "a", "b"],
        "blocked": pd.array([0, 1, 1, 0, 1, 0], dtype="Int64"),
        "size": pd.Categorical(["small", "large", "small", "small", "large", "large"], ["small", "large", "huge"]),
        "task_id": ["x", "x", "y", "y", "y", "x"],
        "success": [True, False, False, True, True, True],
        "score": [0.5, 0.1, 0.2, np.nan, 0.9, 1.0],
    }
)
RESULT = ["n", "n_clusters", "estimate", "low", "high", "method", "target", "warning"]


def test_each_group_has_the_interval_of_its_rows():
    found = estimate_by(RUNS, ["model_name", "blocked"], "success", "task_id")
    assert list(found) == ["model_name", "blocked", *RESULT]
    keys = [tuple(None if pd.isna(v) else v for v in row) for row in found[["model_name", "blocked"]].to_numpy()]
    assert keys == [("a", 1), ("b", 0), ("b", 1), (None, 0)]
    for (name, blocked), row in zip(keys, found[RESULT].to_dict("records"), strict=True):
        same = RUNS["model_name"].isna() if name is None else RUNS["model_name"] == name
        part = RUNS[same & (RUNS["blocked"] == blocked)]
        expected = rate_interval(part["success"], part["task_id"])
        assert tuple(row[name] for name in expected._fields) == pytest.approx(tuple(expected), nan_ok=True)


def test_means_leave_missing_values_out_and_say_so():
    found = estimate_by(RUNS, "size", "score", kind="mean")
    assert found["size"].tolist() == ["small", "large"]
    assert found["n"].tolist() == [2, 3]
    assert found["warning"].map(str).str.contains("1 value left out").tolist() == [True, False]
    assert found["estimate"].tolist() == pytest.approx([0.35, 2 / 3])


def test_the_order_of_rows_does_not_matter():
    shuffled = RUNS.sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(
        estimate_by(shuffled, ["model_name", "size"], "success"), estimate_by(RUNS, ["model_name", "size"], "success")
    )


def test_all_rows_are_one_group_without_keys():
    found = estimate_by(RUNS, [], "score", "task_id", kind="mean", confidence=0.8)
    expected = mean_interval(RUNS["score"], RUNS["task_id"], 0.8)
    assert found.loc[0, list(expected._fields)].tolist() == list(expected)


def test_scores_have_bounds_and_a_target_can_be_chosen():
    found = estimate_by(RUNS, "model_name", "score", "task_id", kind="score", target="these tasks")
    rows = RUNS[RUNS["model_name"] == "b"]  # two runs of x, one of y: nothing tells how y would vary
    expected = mean_interval(rows["score"], rows["task_id"], bounds=(0, 1), target="these tasks")
    assert found.loc[1, RESULT].tolist() == pytest.approx([expected._asdict()[name] for name in RESULT], nan_ok=True)
    assert estimate_by(RUNS, [], "success", "task_id", weights="runs").loc[0, "estimate"] == pytest.approx(4 / 6)


@pytest.mark.parametrize("by", [[], ["model_name", "blocked", "size"]])
def test_no_rows_give_no_rows_of_the_same_types(by):
    found, full = estimate_by(RUNS[:0], by, "success", "task_id"), estimate_by(RUNS, by, "success", "task_id")
    assert len(found) == 0
    pd.testing.assert_series_equal(found.dtypes, full.dtypes)


def test_a_group_without_values_is_kept_with_nan():
    found = estimate_by(RUNS.assign(success=[None] * 6), "task_id", "success")
    assert found["n"].tolist() == [0, 0]
    assert found["estimate"].isna().all()
    assert found["warning"].map(str).str.startswith("no values").all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model_name", "success", None, "median"), "unknown kind 'median'"),
        (("model", "success"), "no column 'model'; did you mean 'model_name'\\?"),
        (("model_name", "success", "task"), "no column 'task'"),
        (("n", "success"), "can't group by 'n'"),
    ],
)
def test_misuse_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        estimate_by(RUNS.assign(n=1), *arguments)


def test_many_groups_keep_their_keys_beside_their_estimates():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 9, 500), "b": rng.integers(0, 9, 500), "v": rng.integers(0, 2, 500)})
    found = estimate_by(frame, ["a", "b"], "v").set_index(["a", "b"])["estimate"]
    pd.testing.assert_series_equal(found, frame.groupby(["a", "b"])["v"].mean(), check_names=False)
    assert not math.isnan(found.sum())
