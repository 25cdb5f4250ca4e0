"""Made-up folders whose pages once led a hasty reader to a false conclusion, and what their pages say now."""

import numpy as np
import pytest
import yaml

from tests.golden.record import record_report
from tests.mindcraft.builders import task, write_all


def page(tmp_path, logs, tasks=(), notebook="model_comparison", **parameters) -> str:
    """All that a notebook shows of made-up runs: logs as {model/task/repetition: score}."""
    files = {f"runs/x/{m}/{t}/Andy_0_{n}.json": float(score) for (m, t, n), score in logs.items()}
    write_all(tmp_path, {**files, "tasks.json": dict(tasks)} if tasks else files)
    values = {"runs": str(tmp_path / "runs"), "tasks": str(tmp_path / "tasks.json") if tasks else "", **parameters}
    params = write_all(tmp_path, {f"{notebook}/values.yaml": yaml.safe_dump(values)}) / notebook / "values.yaml"
    return record_report(params)


def headline(text: str) -> str:
    return text.partition("## headline\n")[2].partition("\n")[0].rstrip(":")


def test_different_tasks_under_one_headline(tmp_path):
    parts = {("alpha", "cooking"): (40, 32), ("alpha", "techtree"): (10, 2), ("beta", "cooking"): (10, 9),
             ("beta", "techtree"): (40, 17)}  # fmt: skip
    names = {(m, f"{m}_{k}_{i}", 0): i < wins for (m, k), (n, wins) in parts.items() for i in range(n)}
    text = page(tmp_path, names, {t: task(t.split("_")[1]) for _, t, _ in names})
    assert headline(text).startswith("beta leads; not separable from alpha")
    assert "different tasks, taken to be drawn alike" in text
    assert "the raw rates put alpha before beta, those standardised do not" in text


def test_one_model_on_easy_tasks_only(tmp_path):
    runs = {("delta", f"easy{i}", 0): i < 22 for i in range(24)} | {("delta", f"hard{i}", 0): i < 4 for i in range(24)}
    text = page(tmp_path, runs | {("gamma", f"easy{i}", 0): i < 22 for i in range(24)})
    assert headline(text).startswith("gamma leads; not separable from delta")


def test_a_cycle_on_disjoint_tasks(tmp_path):
    games = (("rock", "scissors"), ("scissors", "paper"), ("paper", "rock"))
    text = page(
        tmp_path, {(name, f"{game[0]}{i}", 0): name == game[0] for game in games for i in range(10) for name in game}
    )
    assert headline(text) == "no best model: paper > rock > scissors > paper, each better than the next"


def test_the_winner_of_many_equal_models(tmp_path):
    rng = np.random.default_rng(0)
    text = page(tmp_path, {(f"m{m:02d}", f"t{t}", 0): rng.random() < 0.5 for m in range(40) for t in range(12)})
    assert headline(text) == "no model leads: m04, m30 and m33 tie for first"


def test_retry_until_success(tmp_path):
    rng, runs = np.random.default_rng(1), {}
    for name in range(40):
        rate = rng.beta(1, 1)
        for repetition in range(4):
            runs["m", f"t{name}", repetition] = passed = rng.random() < rate
            if passed:
                break
    assert "the number of runs depends on their outcome" in page(tmp_path, runs)


def test_a_task_that_was_run_20_times(tmp_path):
    runs = {("m", "often", n): True for n in range(20)} | {("m", f"once{i}", 0): i < 3 for i in range(11)}
    assert headline(page(tmp_path, runs)).startswith("success rate of m: estimate 0.333333,")


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([30, 4, 18], "falls with the number of blocked agents overall, but not steadily"),
        ([28, 15, 3], "success falls with every blocked agent"),
        ([15, 16, 15], "no trend is shown"),
    ],
)
def test_success_falls_only_where_its_steps_fall(tmp_path, levels, said):
    names = {("m", f"b{level}_t{i}", 0): i < wins for level, wins in enumerate(levels) for i in range(30)}
    tasks = {t: task(blocked_access_to_recipe=list(map(str, range(int(t[1]))))) for _, t, _ in names}
    assert said in page(tmp_path, names, tasks, "cooking_blocked_agents")


@pytest.mark.parametrize("passed", [True, False])
def test_all_passed_and_all_failed_have_bounds(tmp_path, passed):
    text = headline(page(tmp_path, {("m", f"t{i}", n): passed for i in range(5) for n in range(3)}))
    low, high = (float(text.partition(f"{name} ")[2].partition(",")[0]) for name in ("low", "high"))
    assert high - low > 0.3


def test_what_more_runs_would_decide_is_said_of_decided_pairs_too_in_tasks_and_repetitions(tmp_path):
    rng = np.random.default_rng(3)
    rates = {"a": 0.9, "b": 0.2}
    runs = {(m, f"t{t}", n): rng.random() < rate for m, rate in rates.items() for t in range(30) for n in range(3)}
    text = page(tmp_path, runs)
    assert headline(text).startswith("best: a (success rate): estimate 0.9")
    plan = text.partition("## publish\nname: plan\n")[2].partition("\n\n")[0].splitlines()
    assert len(plan) == 1 + 5 + 1


def test_five_tasks_tell_nothing_of_new_tasks_and_much_of_themselves(tmp_path):
    text = page(tmp_path, {(m, f"t{i}", n): m == "a" for m in "ab" for i in range(5) for n in range(10)})
    assert "Not decided between a and b on new tasks like these: 100 % against 0 % on 5 tasks shared" in text
    same = text.partition("## publish\nname: pairs_on_these_tasks\n")[2].partition("\n\n")[0]
    assert "True" in same


def test_a_pair_s_interval_and_its_p_value_agree(tmp_path):
    runs = {("a", f"t{i}", 0): i < 8 for i in range(12)} | {("b", f"t{i}", 0): i < 2 for i in range(12)}
    text = page(tmp_path, runs).partition("## publish\nname: pairs\n")[2].partition("\n\n")[0].splitlines()
    row = dict(zip(text[0].split(","), text[1].split(","), strict=False))
    assert (float(row["low"]) > 0) == (float(row["p_value"]) <= 0.05)
