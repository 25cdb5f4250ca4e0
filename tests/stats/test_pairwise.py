import math
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from evalkit.display import pair_text
from evalkit.stats import compare_all, compare_to_baseline, cost_front, pair_structure, rank_models
from evalkit.stats.cells import cells_of
from evalkit.stats.costs import is_on_front
from evalkit.stats.pair_tests import compare_units
from evalkit.stats.pairwise import holm, max_t, pair_rows
from evalkit.stats.ranking import at_once


def runs(rates, tasks=40, repetitions=1, seed=0):
    rng = np.random.default_rng(seed)
    rows = [
        {"model": name, "task": f"t{task}", "value": float(rng.random() < rate)}
        for name, rate in rates.items()
        for task in range(tasks)
        for _ in range(repetitions)
    ]
    return pd.DataFrame(rows, columns=["model", "task", "value"]).astype({"value": "float64"})


def cells(frame, options):
    """Cells of the model, the task and the value, and of the other columns that options name, which are taken out."""
    names = [name for name in ("condition", "stratum", "family", "seed") if name in options]
    return cells_of(frame, "model", "task", "value", **{name: options.pop(name) for name in names})


def compare(frame, **options):
    return compare_all(cells(frame, options), **options)


def test_each_pair_is_compared_on_its_shared_tasks():
    frame = runs({"c": 0.3, "a": 0.9, "b": 0.5})
    frame = frame[(frame["model"] != "b") | (frame["task"] < "t3")].sample(frac=1, random_state=1)
    found = compare(frame)
    assert list(zip(found["model_a"], found["model_b"], strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    wide = frame.pivot(index="task", columns="model", values="value")
    for row in found.to_dict("records"):
        both = wide[[row["model_a"], row["model_b"]]].dropna()
        a, b = (both[name] for name in both)
        tested = compare_units(a.to_numpy(), b.to_numpy())
        assert (row["n_tasks"], row["n"]) == (len(both), 2 * len(both))
        assert (row["mean_a"], row["mean_b"]) == pytest.approx((a.mean(), b.mean()))
        assert row["estimate"] == pytest.approx((a - b).mean())
        assert (row["low"], row["high"], row["p_value"]) == pytest.approx(tested[:3])
        assert (row["method"], row["target"]) == ("Agresti-Min; McNemar exact unconditional", "new tasks")
    assert found["p_holm"].tolist() == pytest.approx(holm(found["p_value"]).tolist())
    assert (found["p_adjusted"] >= found["p_value"]).all()
    assert found["decided"].tolist() == (found["p_adjusted"] <= 0.05).tolist()


def test_repetitions_are_averaged_so_that_each_task_counts_once():
    frame = runs({"a": 0.8, "b": 0.4}, tasks=15, repetitions=3)
    extra = pd.concat([frame, *[frame[(frame["model"] == "a") & (frame["task"] == "t0")]] * 5])
    found = compare(frame)
    means = frame.groupby(["task", "model"])["value"].mean().unstack()
    assert found.loc[0, "estimate"] == pytest.approx((means["a"] - means["b"]).mean())
    assert found.loc[0, "p_value"] == pytest.approx(compare_units(means["a"].to_numpy(), means["b"].to_numpy()).p_value)
    assert found.loc[0, ["n_tasks", "n"]].tolist() == [15, 90]
    assert compare(extra).loc[0, "estimate"] == pytest.approx(found.loc[0, "estimate"])
    frame.loc[[0, 1], "value"], frame.loc[2, "task"], frame.loc[60, "model"] = math.nan, None, None
    left_out = compare(frame).loc[0, "warning"]
    assert str(left_out).endswith("3 runs left out as missing; 1 run without a model left out")


def test_pairs_without_shared_tasks_are_rows_that_say_so_and_do_not_count_for_holm():
    frame = pd.concat([runs({"a": 0.9, "b": 0.2}), pd.DataFrame({"model": ["z"], "task": ["other"], "value": [1.0]})])
    found = compare(frame)
    alone = compare(runs({"a": 0.9, "b": 0.2}))
    assert found["n_tasks"].tolist() == [40, 0, 0]
    assert found.loc[0, "p_holm"] == alone.loc[0, "p_holm"]
    assert found.loc[1:, ["estimate", "low", "high", "p_value", "p_holm"]].isna().all(axis=None)
    assert found.loc[1:, "warning"].map(str).tolist() == ["no shared tasks"] * 2
    assert pair_text(found.loc[1]) == "Not decided: a and z share no tasks."


def test_models_within_a_margin_are_equivalent_and_others_are_not():
    table = runs({"a": 0.5, "b": 0.5}, tasks=300)
    table.loc[table["model"] == "b", "value"] = table.loc[table["model"] == "a", "value"].to_numpy()
    table = pd.concat([table, runs({"c": 0.1}, tasks=300)])
    found = compare(table, margin=0.05)
    assert found["equivalent"].tolist() == [True, False, False]
    assert found["decided"].tolist() == [False, True, True]
    assert pair_text(found.loc[0]).startswith("a and b are equivalent on new tasks like these, within ± 5.0 points: ")
    assert not compare(table)["equivalent"].any()
    assert not compare(table.groupby("model").head(20), margin=0.05)["equivalent"].any()


def test_a_pair_on_few_scores_is_decided_at_a_stricter_level_and_says_so():
    scores = {"a": [1.8, 4.4, 4.1, 3.9, 5.2, 5.2], "b": [2.0, 3.9, 3.1, 2.8, 3.6, 2.9]}  # differences without skew
    rows = [(name, t, value) for name, values in scores.items() for t, value in enumerate(values)]
    found = compare(pd.DataFrame(rows, columns=["model", "task", "value"])).loc[0]
    assert 0.015 < found["p_value"] < 0.05
    assert found["low"] > 0
    assert not found["decided"]
    assert "few_pairs" in found["warning"]


def outcomes(**outcomes):
    rows = [(name, f"t{i}", float(v)) for name, values in outcomes.items() for i, v in enumerate(values)]
    return pd.DataFrame(rows, columns=["model", "task", "value"])


def against(table, **options):
    return compare_to_baseline(cells(table, options), "base", **options).set_index("model_name")


HALF = np.tile([1, 0], 100)


def test_each_verdict_is_given_where_the_data_show_it():
    up, down = np.r_[HALF[:140], np.ones(60)], np.r_[HALF[:140], np.zeros(60)]
    unlike, slightly = np.r_[1 - HALF[:40], HALF[40:]], np.r_[HALF[:196], np.zeros(4)]
    found = against(outcomes(base=HALF, same=HALF, up=up, down=down, open=unlike, slightly=slightly))
    verdicts = {"same": "not worse", "up": "better", "down": "regression", "open": "not decided"}
    assert found["verdict"].to_dict() == {**verdicts, "slightly": "not worse"}
    assert found.loc["down", "high"] < 0
    assert found.loc["down", "estimate"] == pytest.approx(-0.15)


def pair_table(*rows):
    """Pairs from (better, worse) where decided, (one, other, shared tasks) where not."""
    found = [(a, b, *(shared or [9]), np.nan if shared else 0.5, not shared) for a, b, *shared in rows]
    return pd.DataFrame(found, columns=["model_a", "model_b", "n_tasks", "estimate", "decided"])


@pytest.mark.parametrize(
    ("rows", "groups", "unshared", "cycles"),
    [
        (["ab", "ac", "bc"], [tuple("abc")], [], []),
        ([("a", "b"), ("a", "c", 0), ("b", "c", 0)], [("a", "b"), ("c",)], [], []),
        ([("a", "b"), ("a", "c", 0), ("b", "c")], [("a", "b", "c")], [("a", "c")], []),
        (["ab", "bc", "cd", "da", "ac"], [tuple("abcd")], [], [tuple("abcd")]),
        (["ab", "bc", "ca", "xy", "yz", "zx", "ax"], [tuple("abcxyz")], [], [tuple("abc"), tuple("xyz")]),
        ([], [], [], []),
    ],
)
def test_groups_gaps_and_cycles_are_found(rows, groups, unshared, cycles):
    found = pair_structure(pair_table(*rows))
    assert [one.values["sets"] for one in found.only("sets").notes] == [tuple(groups)] * (len(groups) > 1)
    assert [one.values["pairs"] for one in found.only("unshared").notes] == [tuple(unshared)] * bool(unshared)
    assert [one.values["models"] for one in found.only("cycle").notes] == cycles
    assert bool(found) == (len(groups) > 1 or bool(unshared) or bool(cycles))


def differences(tasks, models, seed=0, gap=0.0):
    """Differences of all pairs of models; the first is better by the gap."""
    values = np.random.default_rng(seed).normal(size=(tasks, models))
    values[:, 0] += gap
    first, second = np.triu_indices(models, 1)
    return values[:, first] - values[:, second]


def test_tests_that_do_not_share_data_are_corrected_by_sidak():
    gaps = np.random.default_rng(3).normal(size=(400, 6))
    assert max_t(gaps, [0.01, *[0.9] * 5])[0] == pytest.approx(1 - 0.99**6, abs=0.01)


def test_a_single_test_is_not_adjusted():
    assert max_t(differences(6, 2), [0.03]).tolist() == [0.03]
    assert max_t(differences(6, 3), [0.03, math.nan, math.nan]).tolist() == [0.03, 1, 1]


@pytest.mark.parametrize("largest", [0.0031, 0.2, 1.0])
def test_the_last_step_is_not_adjusted(largest):
    assert max_t(differences(30, 3), [1e-9, largest, 1e-7])[1] == largest


def test_thousands_of_tasks_are_compared_by_draws():
    found = compare(runs({"a": 0.55, "b": 0.45, "c": 0.54}, tasks=4_000))
    assert found["decided"].tolist() == [True, False, True]


def test_max_t_corrects_less_than_holm_if_tests_share_data():
    gaps = differences(40, 8, seed=2, gap=0.6)
    alone = [compare_units(column, np.zeros(40)).p_value for column in gaps.T]
    adjusted = max_t(gaps, alone)
    assert (adjusted >= np.array(alone) - 0.02).all()
    assert adjusted.mean() < holm(alone).mean()


def test_holm_gives_the_textbook_values():
    assert holm([0.01, 0.04, math.nan, 0.03]).tolist() == pytest.approx([0.03, 0.06, math.nan, 0.06], nan_ok=True)


def ranked(table, **options):
    return rank_models(cells(table, options), **options).set_index("model_name")


def test_ranks_begin_after_those_decided_better_and_end_before_those_decided_worse():
    table = runs({"a": 0.95, "b": 0.93, "c": 0.5, "d": 0.1}, tasks=60, seed=1)
    found, pairs = ranked(table), compare(table)
    for name, row in found.iterrows():
        wins = pairs[(pairs["decided"]) & ((pairs["model_a"] == name) | (pairs["model_b"] == name))]
        better = ((wins["model_a"] == name) == (wins["estimate"] > 0)).sum()
        assert (row["rank_low"], row["rank_high"]) == (1 + len(wins) - better, 4 - better)
    assert found["ties_with_first"].to_dict() == {"a": True, "b": True, "c": False, "d": False}
    assert ranked(table, pairs=pairs).equals(found)


def test_equal_models_tie_and_no_name_comes_first():
    base = runs({"z": 0.5}, tasks=60)
    table = pd.concat([base.assign(model=name) for name in "zmab"])
    found = ranked(table)[["rank_low", "rank_high", "ties_with_first"]]
    assert found.to_numpy().tolist() == [[1, 4, True]] * 4


def test_the_first_is_best_by_its_own_tests_where_the_correction_for_all_pairs_decides_nothing():
    table = runs({f"m{i}": 0.3 for i in range(7)} | {"z": 0.6}, tasks=60, seed=1)
    found, pairs = ranked(table), compare(table)
    own = pairs[pairs["model_b"] == "z"]
    assert not own["decided"].all()
    assert (own["p_value"] <= 0.05).all()
    assert found.loc["z", ["rank_low", "rank_high", "ties_with_first"]].tolist() == [1, 1, True]
    assert (found["rank_low"].drop("z") >= 2).all()
    assert not found["ties_with_first"].drop("z").any()
    assert found["behind_first"].sum() == own["decided"].sum()


def test_of_very_many_models_only_the_pairs_of_the_first_are_decided():
    rates = {f"m{i:03d}": 0.1 for i in range(150)} | {"z0": 0.95, "z1": 0.95}
    found = ranked(runs(rates, tasks=80))
    assert found["rank_low"].tolist() == [1, 1] + [2] * 150
    assert found["rank_high"].tolist() == [2] + [152] * 151
    equal = ranked(runs({f"m{i:03d}": 0.5 for i in range(101)}, tasks=30))
    assert (equal["rank_low"] == 1).all()
    assert (equal["rank_high"] == 101).all()


def costs_of(models, tasks=20):
    """Models with the same success and cost on all tasks, but for the first successes."""
    rows = [(m, t, float(t < wins), cost) for m, (wins, cost) in models.items() for t in range(tasks)]
    return pd.DataFrame(rows, columns=["model", "task", "value", "cost"])


def front(table, **options):
    return cost_front(cells_of(table, "model", "task", "value"), "cost", **options).set_index("model_name")


def test_the_front_are_the_models_that_no_other_beats_in_both():
    found = front(costs_of({"cheap": (4, 1), "dear": (18, 9), "worse": (4, 2), "bad": (3, 9), "mid": (10, 3)}))
    assert found.index.tolist() == ["cheap", "worse", "mid", "dear", "bad"]
    assert found["on_front"].to_dict() == {"cheap": True, "worse": False, "mid": True, "dear": True, "bad": False}
    assert found["dominated_by"].to_dict() == {"cheap": "", "worse": "cheap", "mid": "", "dear": "", "bad": "cheap"}


def test_the_share_of_resamples_says_how_sure_the_front_is():
    rng = np.random.default_rng(0)
    table = costs_of({"a": (10, 1), "b": (11, 1), "far": (20, 5)})
    found = front(table.assign(cost=table["cost"] * rng.uniform(0.5, 1.5, len(table))))
    assert found.loc["far", "front_share"] == 1
    assert 0.3 < found.loc["a", "front_share"] < 1


def test_models_are_compared_on_the_tasks_all_have():
    table = costs_of({"a": (10, 1), "b": (10, 2)})
    partly = table[(table["model"] == "a") | (table["task"] >= 10)]
    found = front(partly)
    assert found["estimate"].tolist() == [0, 0]
    assert found["warning"].map(str).str.contains("on the 10 tasks that all models have").all()
    apart = front(table[(table["model"] == "a") == (table["task"] < 10)])
    assert apart["warning"].map(str).str.contains("on tasks that differ between models").all()
    assert apart["front_share"].isna().all()


def board(rng):
    """Runs of two to four models on some 8 to 40 tasks; each model ran a part of them, once to three times."""
    tasks, repetitions = int(rng.integers(8, 41)), int(rng.integers(1, 4))
    ease = rng.beta(1, 1, tasks)
    frames = []
    for name in "abcd"[: rng.integers(2, 5)]:
        ran = np.repeat(np.flatnonzero(rng.random(tasks) < rng.choice([0.3, 0.6, 0.9, 1.0])), repetitions)
        shift = rng.choice([-0.4, 0, 0.4])
        values = (rng.random(len(ran)) < np.clip(ease[ran] + shift, 0, 1)).astype(float)
        frames.append(pd.DataFrame({"model": name, "task": ran, "value": values, "kind": "k"}))
    return pd.concat(frames, ignore_index=True)


def of_scores(frame, rng):
    """The same runs with scores in place of 0 and 1."""
    return frame.assign(value=frame["value"] + rng.normal(5, 1, len(frame)))


def beyond_claims(frame):
    """Return by how much the normal quantile of each p value exceeds that from which on a difference is claimed."""
    cells = cells_of(frame, "model", "task", "value", stratum="kind")
    found, _ = pair_rows(cells, list(combinations(range(len(cells.models)), 2)), "new tasks")
    found["claim_at"] = found["claim_at"].mask(found["claim_at"] == 0, 0.05)  # of a single shared task, with p = 1
    quantiles = found[["p_value", "claim_at"]].map(lambda p: -ndtri(max(p, 1e-12) / 2))
    found["beyond"] = quantiles["p_value"] - quantiles["claim_at"]
    return found.set_index(["model_a", "model_b"])[["beyond", "n_unshared", "n_tasks"]]


# How far one run less may move the normal quantile of a p value: from 1.96 (p = 0.05) to no less than 1.16 (p = 0.25).
# Of fewer than 16 tasks with scores, one may also change how skewed differences are, which moves a claim by no step.
MOST_BY_ONE_RUN, MOST_OF_FEW_SCORES, FEW_SCORES, FEWEST_TASKS = 0.8, 1.4, 16, 4


@pytest.mark.parametrize("are_scores", [False, True])
def test_no_claim_jumps_when_one_run_is_removed_with_shared_tasks_and_without(are_scores):
    rng = np.random.default_rng(7)
    compared = {"shared only": 0, "partly shared": 0, "unshared only": 0}
    for _ in range(40):
        frame = of_scores(board(rng), rng) if are_scores else board(rng)
        without = frame.drop(index=rng.integers(len(frame)))
        if without["model"].nunique() < frame["model"].nunique():
            continue
        one, other = beyond_claims(frame), beyond_claims(without)
        counts = frame.groupby("model")["task"].nunique()
        for pair, row in one[one["beyond"].notna()].iterrows():
            fewest = counts[list(pair)].min()
            if fewest < FEWEST_TASKS:  # one of fewer is much of the data
                continue
            most = MOST_OF_FEW_SCORES if are_scores and fewest < FEW_SCORES else MOST_BY_ONE_RUN
            assert abs(row["beyond"] - other.loc[pair, "beyond"]) <= most
            kind = "shared only" if not row["n_unshared"] else "partly shared" if row["n_tasks"] else "unshared only"
            compared[kind] += 1
    assert compared["shared only"] >= 8
    assert compared["partly shared"] >= 20


def test_a_difference_of_scores_is_claimed_from_a_level_without_a_step():
    rng = np.random.default_rng(0)
    levels = [compare_units(rng.normal(size=n) * 1e-9 + np.resize([1.0, 2.0], n), np.zeros(n)).claim_at
              for n in range(8, 20)]  # fmt: skip
    assert levels[:5] == pytest.approx([0.015] * 5)
    assert levels[8:] == pytest.approx([0.05] * 4)
    assert all(one < two <= 1.36 * one for one, two in pairwise(levels[4:9]))


def test_seeds_that_tasks_share_widen_a_difference():
    """Each of three checkpoints of a does well or badly on all tasks; single runs of b have no such seeds."""
    rng = np.random.default_rng(0)
    task, seed = (side.ravel() for side in np.indices((50, 3)))
    good = pd.DataFrame(
        {"model": "a", "task": task, "seed": seed, "value": rng.random(150) < np.array([0.95, 0.9, 0.4])[seed]}
    )
    other = pd.DataFrame({"model": "b", "task": range(50), "seed": None, "value": rng.random(50) < 0.45})
    frame = pd.concat([good, other]).astype({"value": float})
    plain, crossed = compare(frame).loc[0], compare(frame, seed="seed").loc[0]
    assert (plain["decided"], crossed["decided"]) == (True, False)
    assert crossed["low"] < 0 < plain["low"]
    assert "few_seeds" in crossed["warning"]
    repetitions = frame.assign(seed=range(len(frame)))
    assert compare(repetitions, seed="seed").loc[0, "p_value"] == plain["p_value"]


def test_the_corrected_intervals_of_all_models_hold_at_once():
    missed = 0
    low, high = np.array([at_once(np.arange(12) < k, True, 1 - 0.05 / 30) for k in range(13)]).T
    for seed in range(300):
        k = np.random.default_rng(seed).binomial(12, 0.98, 30)
        missed += ((low[k] > 0.98) | (high[k] < 0.98)).any()
    assert missed / 300 <= 0.065


def test_the_front_without_every_pair_is_that_of_every_pair():
    rng = np.random.default_rng(0)
    for models in (1, 2, 5, 40):
        success, cost = rng.integers(0, 4, (100, models)) / 4, rng.integers(0, 4, (100, models)).astype(float)
        higher, other = success[:, None, :], cost[:, None, :]
        is_as_good = (higher >= success[:, :, None]) & (other <= cost[:, :, None])
        is_better = (higher > success[:, :, None]) | (other < cost[:, :, None])
        assert (is_on_front(success, cost) == ~(is_as_good & is_better).any(axis=-1)).all()


@pytest.mark.parametrize("dtype", ["int64", "float64", "category"])
def test_types_of_tasks_separate_tasks_under_conditions_whatever_their_ids_are(dtype):
    rows = pd.DataFrame({"model": ["a", "b"] * 12, "task": np.arange(24), "value": [1, 0, 0] * 8})
    rows = rows.assign(budget=["small", "large", "large"] * 8, type=np.repeat(["code", "chat", "maths"], 8))
    texts, others = (
        cells_of(rows.astype({"task": own}), "model", "task", "value", "budget", "type") for own in ("str", dtype)
    )
    assert len(set(others.strata)) == len(set(texts.strata)) == 6
