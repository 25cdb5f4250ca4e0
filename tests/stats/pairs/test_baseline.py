import numpy as np
import pandas as pd
import pytest

from evalkit.stats import compare_all, compare_to_baseline


def frame(**outcomes):
    rows = [(name, f"t{i}", float(v)) for name, values in outcomes.items() for i, v in enumerate(values)]
    return pd.DataFrame(rows, columns=["model", "task", "value"])


def against(table, **options):
    return compare_to_baseline(table, "model", "task", "value", "base", **options).set_index("model")


HALF = np.tile([1, 0], 100)


def test_each_verdict_is_given_where_the_data_show_it():
    found = against(
        frame(
            base=HALF,
            same=HALF,
            up=np.r_[HALF[:140], np.ones(60)],
            down=np.r_[HALF[:140], np.zeros(60)],
            open=np.r_[1 - HALF[:40], HALF[40:]],
            slightly=np.r_[HALF[:196], np.zeros(4)],
        )
    )
    assert found["verdict"].to_dict() == {
        "same": "not worse",
        "up": "better",
        "down": "regression",
        "open": "not decided",
        "slightly": "not worse",
    }
    assert found.loc["down", "high"] < 0
    assert found.loc["down", "estimate"] == pytest.approx(-0.15)


def test_the_margin_decides_what_is_not_worse():
    table = frame(base=HALF, other=np.r_[HALF[:196], np.zeros(4)])
    assert against(table, margin=0.05).loc["other", "verdict"] == "not worse"
    assert against(table, margin=0.015).loc["other", "verdict"] == "not decided"


def test_a_pair_has_the_interval_and_p_value_of_the_comparison():
    rng = np.random.default_rng(0)
    table = frame(base=rng.random(30) < 0.5, other=rng.random(30) < 0.7)
    found = against(table).loc["other"]
    pair = compare_all(table, "model", "task", "value").loc[0]
    assert (found["low"], found["high"], found["p_value"]) == pytest.approx(
        (-pair["high"], -pair["low"], pair["p_value"])
    )


def test_repetitions_tell_a_regression_on_these_tasks_that_new_tasks_do_not():
    rows = [(m, f"t{t}", float(v)) for t in range(5) for _ in range(20) for m, v in (("base", 1), ("worse", 0))]
    table = pd.DataFrame(rows, columns=["model", "task", "value"])
    assert against(table).loc["worse", "verdict"] == "not decided"
    assert against(table, target="these tasks").loc["worse", "verdict"] == "regression"


def test_models_that_share_no_tasks_with_the_baseline_are_not_decided():
    table = pd.concat([frame(base=HALF), frame(other=HALF).assign(task=lambda rows: "x" + rows["task"])])
    found = against(table).loc["other"]
    assert found["verdict"] == "not decided"
    assert str(found["warning"]) == "no shared tasks"


def test_a_baseline_alone_gives_no_rows_of_the_same_types():
    pd.testing.assert_series_equal(against(frame(base=HALF)).dtypes, against(frame(base=HALF, a=HALF)).dtypes)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"baseline": "none"}, "no runs of the baseline 'none'; there are 'base'"), ({"margin": 0}, "above 0")],
)
def test_misuse_is_named(options, message):
    options = {"baseline": "base"} | options
    with pytest.raises(ValueError, match=message):
        compare_to_baseline(frame(base=HALF), "model", "task", "value", **options)
