"""Find tasks that one model solved and another did not: the pairs of runs that a comparison rests on."""

from itertools import combinations

import pandas as pd

from evalkit.kinds import Example, Outcomes, outcomes
from evalkit.kinds.findings import MOST_EXAMPLES

COLUMNS = ["task", "model_a", "model_b", "repetition", "value_a", "value_b", "run_id_a", "run_id_b"]


def discordant(runs: pd.DataFrame, model_a: str = "", model_b: str = "", value: str = "") -> pd.DataFrame:
    """Find the tasks with opposite outcomes for two models, with the runs that had them.

    Runs of a task are paired by repetition, in the order of the repetitions. A run without an outcome is a failure
    if another run of its model has one, as in all comparisons. For scores, pairs that differ by more than half of the
    largest difference count as opposite.

    Parameters
    ----------
    runs : DataFrame
        The first table of any kind.
    model_a, model_b : str
        The models; if both are empty, every pair of models; if only one is given, that model against all others.
    value : {"", "is_successful", "score"}
        As for `leaderboard`.

    Returns
    -------
    DataFrame
        task, model_a, model_b, repetition (of `model_a`), value_a, value_b, run_id_a, run_id_b; one row per pair of
        runs, sorted by models and task.
    """
    return discordant_of(outcomes(runs, value), model_a, model_b)


def discordant_of(scored: Outcomes, model_a: str = "", model_b: str = "") -> pd.DataFrame:
    """Find the tasks with opposite outcomes for two models; see `discordant`."""
    table = scored.table.dropna(subset="value")
    table = table.sort_values(["model_name", "task", "repetition"], kind="stable")
    table = table.assign(place=table.groupby(["model_name", "task"]).cumcount())
    named = {name for name in (model_a, model_b) if name}
    models = sorted(table["model_name"].unique(), key=lambda name: (name != model_a, name == model_b, name))
    frames = [_paired(table, a, b) for a, b in combinations(models, 2) if named <= {a, b}]
    pairs = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)
    gap = (pairs["value_a"] - pairs["value_b"]).abs()
    return pairs[(gap > 0) & (gap > gap.max() / 2)].reset_index(drop=True)


def examples(pairs: pd.DataFrame) -> tuple[Example, ...]:
    """Return the first pairs of runs as examples, of different tasks if possible; `pairs` as from `discordant`."""
    rows = pairs.drop_duplicates(["task"]).head(MOST_EXAMPLES).to_dict("records")
    return tuple(
        Example(
            f"{row['task']}: {row['model_a']} {row['value_a']:.3g}, {row['model_b']} {row['value_b']:.3g}",
            row["run_id_a"],
            row["run_id_b"],
        )
        for row in rows
    )


def _paired(table: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """Join the runs of two models by task and position among the repetitions."""
    columns = ["task", "place", "repetition", "value", "run_id"]
    sides = [table.loc[table["model_name"] == model, columns] for model in (a, b)]
    both = sides[0].merge(sides[1].drop(columns="repetition"), on=["task", "place"], suffixes=("_a", "_b"))
    return both.assign(model_a=a, model_b=b)[COLUMNS]
