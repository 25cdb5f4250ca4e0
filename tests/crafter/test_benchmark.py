import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.crafter import ACHIEVEMENTS, benchmark
from evalkit.io import SourceError
from tests.crafter.traces import SHARED, config, environment, hook, trace, write

HUMAN = SHARED / "benchmark" / "crafter_reward-human.json"


def run(seed="0", method="ppo", xs=None, **counts):
    n = len(next(iter(counts.values())))
    columns = {f"achievement_{name}": counts.get(name, [0] * n) for name in ACHIEVEMENTS}
    return {"task": "crafter-reward", "method": method, "seed": seed, "xs": xs, **columns}


def stats_line(length=100, **counts):
    return {"length": length, "reward": 1.0} | {f"achievement_{name}": counts.get(name, 0) for name in ACHIEVEMENTS}


def score_of(*percentages):
    """Apply the formula to the percentages of achievements that were unlocked at all."""
    return pytest.approx(math.expm1(sum(map(math.log1p, percentages)) / 22))


@pytest.mark.skipif(not HUMAN.is_file(), reason="the human file is not here")
def test_the_human_file_gives_the_published_score():
    score = benchmark.crafter_score(HUMAN)
    assert (score.estimate, score.std) == pytest.approx((50.527325, 6.787677), abs=1e-6)
    assert score.per_seed == pytest.approx((39.184049, 47.109494, 57.667017, 56.573337, 52.102727), abs=1e-6)
    assert (score.n_seeds, score.n_episodes) == (5, 100)
    assert score.low < score.estimate < score.high
    assert score.method == "mean of scores per seed; t, Hall's correction over seeds"
    assert benchmark.crafter_score(json.loads(HUMAN.read_text())) == score


def test_the_score_follows_the_formula():
    runs = [run("0", collect_coal=[1, 0, 3, 0]), run("1", collect_coal=[1, 1], collect_wood=[0, 1])]
    official = benchmark.crafter_score(runs)
    first, second = official.per_seed
    assert (first, second) == (score_of(50), score_of(100, 50))
    assert (official.estimate, official.std) == pytest.approx(((first + second) / 2, abs(first - second) / 2))


def test_only_episodes_within_the_budget_count():
    runs = run(xs=[500_000, 1_000_000, 1_000_001], collect_coal=[0, 1, 1])
    assert benchmark.crafter_score(runs).n_episodes == 2
    assert benchmark.crafter_score(runs, budget=600_000).estimate == 0.0
    none = benchmark.crafter_score(runs, budget=10)
    assert math.isnan(none.estimate)
    assert (none.n_seeds, none.n_episodes, none.per_seed) == (0, 0, ())
    two = benchmark.crafter_score([runs, run("1", xs=[5], collect_coal=[1])], budget=10)
    assert (two.n_seeds, "1 seeds without episodes left out" in two.method) == (1, True)


def test_one_seed_has_neither_spread_nor_interval():
    score = benchmark.crafter_score(run(collect_coal=[1, 0] * 10, collect_wood=[1] * 20))
    assert score.estimate > 0
    assert all(map(math.isnan, (score.std, score.low, score.high)))
    assert str(score.warning) == "a single seed has no interval"


def test_a_pooled_group_has_an_interval_over_its_episodes_or_their_tasks():
    unlocked = np.zeros((20, 22))
    unlocked[:10, 0] = unlocked[:, 1] = 1
    over_episodes, over_tasks = benchmark.pooled_score(unlocked), benchmark.pooled_score(unlocked, [0, 1, 2, 3] * 5)
    assert over_episodes.low < over_episodes.estimate < over_episodes.high
    assert over_tasks.method == "score of one group; cluster jackknife t over tasks"
    assert over_episodes.estimate == over_tasks.estimate == score_of(50, 100)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (run(collect_coal=[np.int64(1), 0.5]), "_coal has 0.5: give counts per episode, not rates"),
        (run(collect_coal=[-1]), "has -1"),
        (run(collect_coal=["1"]), "has '1'"),
        (run(collect_coal=[1], collect_wood=[1, 2]), "different lengths"),
        (run(collect_coal=[1], xs=[1, 2]), "different lengths"),
        (run(collect_coal=[10**400]), "has 10000"),
        (run(collect_coal=[1], xs=5), "xs is not a list of counts"),
        (run(collect_coal=[1], xs=[10**400]), "xs has 1000"),
        ([run(collect_coal=[1]), 3], "a run is a table of lists, not int"),
        ({"achievement_collect_coal": [1]}, "21 of 22 achievements are missing, such as achievement_collect_diamond"),
    ],
)
def test_runs_that_are_none_are_refused(runs, message):
    with pytest.raises(ValueError, match=message):
        benchmark.crafter_score(runs)


def test_folders_of_stats_name_method_and_seed(tmp_path):
    (tmp_path / "spring.jsonl").write_text(json.dumps(stats_line(collect_coal=1)))
    for method, seed, coal in (("ppo", "0", 1), ("ppo", "1", 0), ("dreamer", "0", 1)):
        (tmp_path / method / seed).mkdir(parents=True)
        lines = [stats_line(600_000, collect_coal=coal), stats_line(600_000, collect_wood=1)]
        (tmp_path / method / seed / "stats.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    scores = benchmark.crafter_scores(tmp_path)
    assert list(scores) == ["dreamer", "ppo", "spring"]
    assert (scores["ppo"].n_seeds, scores["ppo"].n_episodes) == (2, 2)
    assert scores["ppo"].per_seed == (score_of(100), 0.0)
    with pytest.raises(SourceError, match="there are 3 methods: dreamer, ppo, spring"):
        benchmark.crafter_score(tmp_path)
    assert benchmark.crafter_score(tmp_path / "ppo").n_seeds == 2
    assert benchmark.crafter_score(tmp_path / "ppo" / "0" / "stats.jsonl").n_seeds == 1


def test_broken_lines_of_stats_are_left_out_and_named(tmp_path):
    path = tmp_path / "stats.jsonl"
    path.write_text(json.dumps(stats_line(collect_coal=1)) + '\n{"length": 3}\n\n{"length": 50, "rew')
    runs, ledger = benchmark.load_runs(path)
    assert len(runs[0]["achievement_collect_coal"]) == 1
    assert ledger.entries[0][1:] == ("used", "2 broken lines left out (line 2: KeyError)")
    path.write_text("nothing")
    with pytest.raises(SourceError, match="no benchmark results and no traces"):
        benchmark.crafter_score(path)


def test_the_games_own_recorder_is_read(tmp_path):
    crafter = pytest.importorskip("crafter")
    env = crafter.Recorder(crafter.Env(area=(16, 16), length=3), tmp_path / "0", save_video=False, save_episode=False)
    for _ in range(2):
        env.reset()
        while not env.step(6)[2]:
            pass
    score = benchmark.crafter_score(tmp_path)
    assert (score.n_seeds, score.n_episodes) == (1, 2)


def balrog(achievements, model="gpt-4o"):
    about = {"agent": {"type": "naive"}, "client": {"model_id": model}, "seed": 1, "achievements": achievements}
    return {"task": "default", "episode_return": 1.0, "num_steps": 10, "progression": 0.1, **about}


def test_balrog_runs_are_episodes_of_a_model(tmp_path):
    for name, achievements in {
        "a": {"Collect Coal": 2, "collect_wood": 0}, "b": ["collect_coal", "collect_wood"], "c": ["fly"], "d": 7
    }.items():  # fmt: skip
        write(tmp_path, balrog(achievements), f"{name}.json")
    progress = benchmark.progression(tmp_path)
    assert benchmark.crafter_score(tmp_path).estimate == score_of(100, 50)
    assert (progress.estimate, progress.n) == (pytest.approx(1.5 / 22), 2)
    reasons = {entry.reason for entry in benchmark.load_runs(tmp_path).ledger.entries if entry.status == "failed"}
    assert reasons == {
        "ValueError: 'fly' is not an achievement of the game",
        "TypeError: 'int' object is not iterable",
    }


def test_traces_of_a_model_are_one_pooled_group(tmp_path):
    unlocking = environment(0, [hook("easy_achievement", ["collect_wood"])])
    for i, events in enumerate([[unlocking], [environment(0)], []]):
        write(tmp_path, trace(*events, metadata=[config(model_name="alder")], session_id=f"s{i}"), f"{i}.json")
    score = benchmark.crafter_score(tmp_path)
    assert (score.n_seeds, score.n_episodes, score.estimate) == (1, 2, score_of(50))
    assert math.isnan(score.std)
    entries = benchmark.load_runs(tmp_path).ledger.entries
    assert entries[-1][1:] == ("skipped", "a session trace without a record of unlocked achievements")


def test_what_is_no_list_of_runs_is_in_the_ledger_and_the_rest_is_read(tmp_path):
    for i, odd in enumerate([3, None, {"achievement_collect_coal": 1}, run(collect_coal=[1], xs=5)]):
        write(tmp_path, [run(collect_coal=[1]), odd], f"a{i}.json")
    write(tmp_path, balrog([["collect_coal"], {}]), "b.json")
    write(tmp_path, [run(collect_coal=[0.5])], "c.json")
    (tmp_path / "d.json").write_text("[")
    write(tmp_path, {"other": 1}, "e.json")
    with pytest.raises(SourceError, match=r"c\.json: .*has 0\.5: give counts per episode, not rates"):
        benchmark.crafter_score(tmp_path / "c.json")
    write(tmp_path, [run(collect_coal=[1])], "f.json")
    runs, ledger = benchmark.load_runs(tmp_path)
    assert len(runs) == 1
    assert [entry.status for entry in ledger.entries] == ["failed"] * 7 + ["skipped", "used"]


def test_two_runs_of_one_seed_are_refused_by_name(tmp_path):
    first, again = run("3", collect_coal=[1, 0]), run("3", collect_coal=[1, 1])
    a, b = write(tmp_path, [first, run("4", collect_coal=[1])], "a.json"), write(tmp_path, [again], "b.json")
    where = f"two runs of ppo, seed 3 (task crafter-reward) in {a} and {b}; keep one, or give them different seeds"
    with pytest.raises(SourceError, match=re.escape(where)):
        benchmark.crafter_score(tmp_path)
    with pytest.raises(SourceError, match=r"two runs of ppo, seed 3 .* in run 1 and run 2"):
        benchmark.crafter_score([first, again])
    unnamed = {key: value for key, value in first.items() if key != "seed"}
    assert benchmark.crafter_score([unnamed, unnamed]).n_seeds == 2


@given(st.lists(st.lists(st.booleans(), min_size=22, max_size=22), min_size=2, max_size=6))
def test_a_score_is_within_its_interval(unlocked):
    score = benchmark.pooled_score(np.array(unlocked, dtype=float))
    assert math.isnan(score.low) or 0 <= score.low <= score.estimate <= score.high <= 100


@given(st.lists(st.lists(st.integers(0, 22), min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_score_and_its_interval_are_on_the_scale(seeds):
    runs = [run(str(i), **{name: [n > place for n in own] for place, name in enumerate(ACHIEVEMENTS)})
            for i, own in enumerate(seeds)]  # fmt: skip
    score = benchmark.crafter_score(runs)
    assert math.isnan(score.low) or 0 <= score.low <= score.estimate <= score.high <= 100


@pytest.mark.parametrize(("n", "unlocked"), [(9, 2), (7, 3), (30, 21)])
def test_equal_episodes_have_no_interval_also_after_rounding(n, unlocked):
    score = benchmark.pooled_score(np.array([[1.0] * unlocked + [0.0] * (22 - unlocked)] * n))
    assert math.isnan(score.low)
    assert math.isnan(score.high)


def test_a_score_of_episodes_with_different_achievements_is_within_its_interval():
    score = benchmark.pooled_score(np.eye(22)[:5] + np.eye(22)[[5, 5, 6, 7, 7]])
    assert score.low <= score.estimate <= score.high
