import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evalkit.stats import rate_interval
from evalkit.stats.models.comparable import standardise


def rows(model, kind, n, successes, first=0):
    return [(model, f"{kind}{i}", kind, float(i < first + successes)) for i in range(first, first + n)]


def frame(*parts):
    return pd.DataFrame([row for part in parts for row in part], columns=["model", "task", "type", "value"])


def standardised(table, kind="proportion"):
    return standardise(table, "model", "type", "value", "task", kind, 0.95).set_index("model")


def test_a_model_better_on_each_type_is_better_for_the_same_mix():
    table = frame(
        rows("a", "easy", 80, 64), rows("a", "hard", 20, 6), rows("b", "easy", 20, 18), rows("b", "hard", 80, 36)
    )
    raw = table.groupby("model")["value"].mean()
    found = standardised(table)
    assert raw["a"] > raw["b"]
    assert found["estimate"].to_dict() == pytest.approx(
        {"a": (0.8 + 0.3) / 2, "b": (0.9 + 0.45) / 2}
    )  # 80 tasks of each
    assert (found["low"] < found["estimate"]).all()
    assert (found["estimate"] < found["high"]).all()


def test_the_interval_is_put_together_from_those_of_the_strata():
    table = frame(rows("a", "easy", 20, 16), rows("a", "hard", 30, 6))
    easy, hard = (rate_interval(part["value"], part["task"]) for _, part in table.groupby("type"))
    found = standardised(table).iloc[0]
    below = math.hypot(0.4 * (0.8 - easy.low), 0.6 * (0.2 - hard.low))
    above = math.hypot(0.4 * (easy.high - 0.8), 0.6 * (hard.high - 0.2))
    assert found["estimate"] == pytest.approx(0.44)
    assert (found["low"], found["high"]) == pytest.approx((0.44 - below, 0.44 + above))


def test_means_have_the_interval_of_welch():
    rng = np.random.default_rng(0)
    table = frame(rows("a", "easy", 12, 0), rows("a", "hard", 12, 0)).assign(value=rng.normal(10, 3, 24))
    found = standardised(table, kind="mean").iloc[0]
    parts = [part["value"] for _, part in table.groupby("type")]
    assert found["estimate"] == pytest.approx(sum(part.mean() for part in parts) / 2)
    # half the difference of the one to the negative of the other
    theirs = stats.ttest_ind(parts[0], -parts[1], equal_var=False).confidence_interval()
    assert (found["low"], found["high"]) == pytest.approx((theirs.low / 2, theirs.high / 2))
    single = standardised(table[11:], kind="mean").iloc[0]
    assert math.isnan(single["low"])


def test_a_mix_that_a_model_cannot_reach_has_no_estimate():
    table = frame(rows("a", "easy", 8, 6), rows("b", "easy", 8, 6), rows("b", "hard", 8, 1))
    found = standardised(table)
    assert list(found.index) == ["b"]


def test_missing_values_are_left_out():
    table = frame(rows("a", "easy", 8, 6), rows("b", "easy", 8, 6))
    table.loc[0, "value"] = None
    table.loc[1, "type"] = None
    table.loc[8:, "value"] = None
    assert standardised(table)["estimate"].to_dict() == pytest.approx({"a": 4 / 6})
