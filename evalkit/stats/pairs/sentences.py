"""Describe the comparison of each pair in a sentence that names its target."""

import math

import pandas as pd


def pair_sentences(table: pd.DataFrame, correction: str, percent: bool, margin: float | None) -> list[str]:
    """Write one sentence for each row of the table of `compare_all`.

    `correction` is its name and `margin` that of equivalence; shares are written in `percent`.
    """
    tested = int(table["p_value"].notna().sum())
    family = f" after {correction} correction for {tested} pairs" if tested > 1 else ""
    return [_sentence(row, family, percent, margin) for row in table.to_dict("records")]


def _sentence(row: dict, family: str, percent: bool, margin: float | None) -> str:
    if row["n_tasks"] == 0:
        return f"Not decided: {row['model_a']} and {row['model_b']} share no tasks."
    ahead, behind = ("a", "b") if row["estimate"] >= 0 else ("b", "a")
    names = row[f"model_{ahead}"], row[f"model_{behind}"]
    result = _result(row, ahead, behind, family, percent)
    where = "on new tasks like these" if row["target"] == "new tasks" else "on these tasks, run again"
    same = ""
    if row["equivalent"] and margin is not None:
        same = f"{names[0]} and {names[1]} are equivalent {where}, within ± {_difference(margin, percent)}"
    if row["decided"]:
        verdict = f"{names[0]} is better than {names[1]} {where}"
        return f"{verdict}: {result}." + (f" The difference is small: {same}." if same else "")
    if same:
        return f"{same}: {result}."
    return f"Not decided between {names[0]} and {names[1]} {where}: {result}."


def _result(row: dict, ahead: str, behind: str, family: str, percent: bool) -> str:
    low, high = (row["low"], row["high"]) if ahead == "a" else (-row["high"], -row["low"])
    means = [f"{_show(row[f'mean_{side}'], percent)}{' %' if percent else ''}" for side in (ahead, behind)]
    interval = "" if math.isnan(low) else f" [{_show(low, percent)}, {_show(high, percent)}]"
    p_value = row["p_adjusted"]
    chance = "" if math.isnan(p_value) else ", p < 0.0001" if p_value < 1e-4 else f", p = {p_value:.2g}"
    return (
        f"{means[0]} against {means[1]} on {_tasks(row['n_tasks'])} shared, "
        f"difference {_difference(abs(row['estimate']), percent)}{interval}{chance}{family}"
    )


def _tasks(n: int) -> str:
    return f"{n} task{'s' if n > 1 else ''}"


def _difference(value: float, percent: bool) -> str:
    return f"{_show(value, percent)}{' points' if percent else ''}"


def _show(value: float, percent: bool) -> str:
    return f"{value * 100:z.0f}" if percent else f"{value:z.3g}"
