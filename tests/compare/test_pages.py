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


def test_retry_until_success(tmp_path):
    rng, runs = np.random.default_rng(1), {}
    for name in range(40):
        rate = rng.beta(1, 1)
        for repetition in range(4):
            runs["m", f"t{name}", repetition] = passed = rng.random() < rate
            if passed:
                break
    assert "the number of runs depends on their outcome" in page(tmp_path, runs)


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
