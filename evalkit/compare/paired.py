"""Compare pairs of models, and models with a baseline; find opposite runs; estimate reliability and cost; plan."""

import sys
from collections.abc import Sequence

import pandas as pd

from evalkit._words import note
from evalkit.display.words import pair_text
from evalkit.io import SourceError, plain
from evalkit.kinds import Example, Outcomes, outcomes
from evalkit.kinds.findings import MOST_EXAMPLES
from evalkit.stats import compare_all, compare_to_baseline, cost_front
from evalkit.stats import plan as plan_pairs
from evalkit.stats import reliability as reliability_of
from evalkit.stats.intervals import Target
from evalkit.stats.pairs import MOST_PAIRED

MOST_PAIRS = 45  # shown on a page: those of 10 models
MOST_SHOWN = 30  # models whose pairs are made where there are too many for all
LEAST = 0.05  # loss of a share that is acceptable by default
COSTS = ("cost", "tokens", "duration")

_DISCORDANT = ["task", "model_a", "model_b", "repetition", "value_a", "value_b", "run_id_a", "run_id_b"]


def pairs(
    runs: pd.DataFrame | Outcomes, value: str = "", *, target: Target = "new tasks", margin: float | None = None
) -> pd.DataFrame:
    """Compare every pair of models on the tasks both ran; of more than 100 models, of the 30 with the highest means.

    `runs` and `value` are as for `leaderboard`; the `target` is the difference on new tasks like these, or on these
    very tasks run again. For new tasks, models that share fewer than 5 tasks, and have as many of their own, are
    compared unpaired, by Welch's t, unless their conditions or types of tasks, or what other models reached, say that
    their tasks differ in kind; `warning` says that the tasks are taken to be drawn alike, and all pairs are then
    corrected by Holm. Pairs whose difference is shown to lie within ± `margin` are equivalent.

    The table is that of `evalkit.stats.compare_all`, with unit (``%`` for shares) and sentence (what the pair says). A
    model without any outcome is not compared, and the pair says why.
    """
    data = runs if isinstance(runs, Outcomes) else outcomes(runs, value)
    rows = data.table
    if rows["model_name"].nunique() > MOST_PAIRED:
        means = rows.groupby(["model_name", "task"])["value"].mean().groupby("model_name").mean()
        rows = rows[rows["model_name"].isin(means.nlargest(MOST_SHOWN).index)]
    how = {"margin": margin, "condition": "condition", "stratum": "task_type"}
    table = compare_all(rows, "model_name", "task", "value", target=target, **how)
    has_value = data.table.groupby("model_name")["value"].count() > 0
    for side in ("model_a", "model_b"):
        nothing = ~table[side].map(has_value).astype(bool)
        table.loc[nothing, "warning"] = table.loc[nothing, side].map(lambda model: note("unmeasured", model=model))
    table["unit"] = "%" if data.is_share else data.unit
    return table.assign(sentence=pd.Series(map(pair_text, table.to_dict("records")), table.index, dtype="str"))


def notable(pairs: pd.DataFrame, most: int = MOST_PAIRS) -> pd.DataFrame:
    """Select the pairs that a page shows: all of up to 10 models, else those with the smallest p values.

    Columns are model_a, model_b, n_tasks, estimate (a minus b), low, high, p_adjusted, decided, equivalent (with a
    margin).
    """
    shown = pairs.nsmallest(most, "p_adjusted") if len(pairs) > most else pairs
    columns = ["model_a", "model_b", "n_tasks", "estimate", "low", "high", "p_adjusted", "decided"]
    return shown[[*columns, *["equivalent"] * bool(shown["p_equivalent"].notna().any())]]


def pairs_text(pairs: pd.DataFrame) -> str:
    """Describe pairs in sentences, one per line; of over 10 models, the decided ones with the smallest p values."""
    if len(pairs) <= MOST_PAIRS:
        return "\n".join(map(plain, pairs["sentence"])) or "There is one model."
    decided = pairs[pairs["decided"]].nsmallest(MOST_PAIRS, "p_adjusted")
    head = f"{int(pairs['decided'].sum())} of {len(pairs):,} pairs are decided."
    return "\n".join([head, *map(plain, decided["sentence"])])


def discordant(runs: pd.DataFrame | Outcomes, model_a: str = "", model_b: str = "", value: str = "") -> pd.DataFrame:
    """Find the tasks with opposite outcomes for two models, with the runs that had them.

    Runs of a task are paired by repetition, in the order of the repetitions. A run without an outcome is a failure
    if another run of its model has one, as in all comparisons. For scores, pairs that differ by more than half of the
    largest difference count as opposite.

    Without names of models every pair of models is looked at; with one, that model against all others. Columns are
    task, model_a, model_b, repetition (of `model_a`), value_a, value_b, run_id_a, run_id_b; one row per pair of runs,
    sorted by models and task.
    """
    scored = runs if isinstance(runs, Outcomes) else outcomes(runs, value)
    named = {name for name in (model_a, model_b) if name}
    table = scored.table.dropna(subset="value")
    table = table[table["model_name"].isin(named)] if len(named) == 2 else table
    table = table.sort_values(["model_name", "task", "repetition"], kind="stable", ignore_index=True)
    table = table.assign(place=table.groupby(["model_name", "task"]).cumcount())
    own = ["model_name", "value", "run_id"]
    pairs = table.merge(table[["task", "place", *own]], on=["task", "place"], suffixes=("_a", "_b"))
    sides = {name: n for n, name in enumerate([model_a, *sorted(set(table["model_name"]) - named), model_b])}
    is_ordered = pairs["model_name_a"].map(sides) < pairs["model_name_b"].map(sides)
    gaps = (pairs["value_a"] - pairs["value_b"]).abs()
    if len(named) == 1:
        is_ordered &= pairs[["model_name_a", "model_name_b"]].eq(*named).any(axis=1)
    gaps = gaps[is_ordered & (gaps > 0)]
    pairs = pairs.loc[gaps.index[gaps > gaps.max() / 2]]
    pairs = pairs.rename(columns={"model_name_a": "model_a", "model_name_b": "model_b"})
    return pairs.sort_values(["model_a", "model_b"], kind="stable", ignore_index=True)[_DISCORDANT]


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


def against(
    runs: pd.DataFrame, baseline: str, value: str = "", *, margin: float | None = None, target: Target = "new tasks"
) -> pd.DataFrame:
    """Compare every model with a baseline: better, not worse by more than the margin, a regression, or not decided.

    The `baseline` is a model, a SourceError if it has no runs; no rows if it is empty. The `margin` is the largest loss
    that is acceptable, in the unit of the values, by default 0.05 for shares, and none for others. The rest is as for
    `pairs`, the table that of `evalkit.stats.compare_to_baseline`.
    """
    scored = outcomes(runs, value)
    there = sorted(scored.table["model_name"].unique())
    if baseline and baseline not in there:
        raise SourceError(f"no runs of the baseline {baseline!r}; there are runs of {', '.join(map(repr, there))}")
    least = margin or (LEAST if scored.is_share else sys.float_info.min)
    base, how = baseline or there[0], {"margin": least, "condition": "condition"}
    table = compare_to_baseline(scored.table, "model_name", "task", "value", base, target=target, **how)
    return table if baseline else table.iloc[:0]


def reliability(runs: pd.DataFrame, ks: Sequence[int] | None = None) -> pd.DataFrame:
    """Estimate pass@k, pass^k and agreement per model, on tasks with at least max(ks) runs.

    The table is that of `evalkit.stats.reliability`, by model_name; no rows if runs have no success or failure.
    """
    scored = outcomes(runs, "is_successful")
    return reliability_of(scored.table, "model_name", "task", "value", ks=ks, order="repetition")


def plan(runs: pd.DataFrame, difference: float | None = None, value: str = "") -> pd.DataFrame:
    """Plan tasks and repetitions that show a true difference of a typical pair with 80 % power; `evalkit.stats.plan`.

    The difference is by default 0.1 for shares; for other values a quarter of the standard deviation of task means.
    """
    scored = outcomes(runs, value)
    if difference is None:
        means = scored.table.groupby(["model_name", "task"])["value"].mean()
        difference = 0.1 if scored.is_share else float(means.std() / 4 or 1.0)
    return plan_pairs(scored.table, "model_name", "task", "value", difference)


def cost(runs: pd.DataFrame, value: str = "") -> tuple[pd.DataFrame, str]:
    """Compare the results of models with their cost: US dollars, else tokens, else seconds, whichever runs have.

    The table is that of `evalkit.stats.cost_front`; the text says which it is: cost, tokens or duration. No rows, and
    an empty text, if runs have none of these.
    """
    table = outcomes(runs, value).table
    name = next((name for name in COSTS if table.loc[table["value"].notna(), name].notna().any()), "")
    used = table if name else table.iloc[:0].assign(**{COSTS[0]: pd.Series(dtype="float64")})
    return cost_front(used, "model_name", "task", "value", name or COSTS[0]), name
