"""Rank models as far as the data allow: comparable rates, ranks with their range, and a headline."""

from typing import Any, NamedTuple

import pandas as pd

from evalkit.compare.paired import pairs_of
from evalkit.kinds import Outcomes, outcomes
from evalkit.kinds.runs import NO_OUTCOME, UNKNOWN
from evalkit.stats import Estimate, like_with_like, pair_structure, rank_models

MOST_NAMED = 4  # models that a headline names
RAW, NONE = "raw", "none"
_ADJUSTED = ["adjusted", "adjusted_low", "adjusted_high"]
_COLUMNS = (
    "model_name", "n", "n_tasks", "coverage", "estimate", "low", "high", "adjusted", "adjusted_low", "adjusted_high",
    "rank_low", "rank_high", "p_best", "ties_with_first", "corrected", "corrected_low", "corrected_high", "method",
    "target", "warning",
)  # fmt: skip


class Leaderboard(NamedTuple):
    """Models in order, as far as the data show one.

    Attributes
    ----------
    table : DataFrame
        One row per model, the one with the highest adjusted estimate first: model_name, n (runs), n_tasks, coverage (of
        the tasks that any model ran), estimate with low and high (over its own tasks), adjusted with low and high (for
        the tasks that models ran, see `basis`), rank_low to rank_high (ranks that the data leave open), p_best,
        ties_with_first, corrected with low and high (the estimate after picking among all models), method, target,
        warning. Equal models are in the order of their names, which means nothing.
    pairs : DataFrame
        Every pair, as `evalkit.stats.compare_all` returns it.
    basis : str
        What `adjusted` is: raw (all models ran the same tasks), adjusted for tasks, standardised, or none.
    notes : list of str
        Caveats: how the models' tasks differ, cycles, disjoint sets, and runs left out.
    outcomes : Outcomes
    """

    table: pd.DataFrame
    pairs: pd.DataFrame
    basis: str
    notes: list[str]
    outcomes: Outcomes

    @property
    def is_adjusted(self) -> bool:
        """Whether `adjusted` differs from the raw estimate."""
        return self.basis not in (RAW, NONE)


def leaderboard(runs: pd.DataFrame, value: str = "", *, margin: float | None = None) -> Leaderboard:
    """Rank models on comparable estimates.

    Parameters
    ----------
    runs : DataFrame
        The first table of a kind of logs, such as `logs.runs`.
    value : {"", "is_successful", "score"}
        As for `evalkit.kinds.outcomes`.
    margin : float, optional
        Pairs whose difference is shown to lie within ± margin are equivalent.

    Returns
    -------
    Leaderboard
    """
    scored = outcomes(runs, value)
    has_value = scored.table.groupby("model_name")["value"].transform("count") > 0
    rows = scored.table[has_value]
    compared = pairs_of(scored._replace(table=rows), margin=margin)
    table, basis, reason = _rated(rows, compared, scored.kind)
    unrated = scored.table[~has_value].groupby("model_name").size().rename("n").reset_index()
    table = pd.concat([table, unrated.assign(n_tasks=0, warning=NO_OUTCOME)], ignore_index=True)[list(_COLUMNS)]
    table = table.astype({"rank_low": "Int64", "rank_high": "Int64", "ties_with_first": "boolean"})
    notes = [reason, pair_structure(compared).warning]
    if scored.left_out:
        are = "run is" if scored.left_out == 1 else "runs are"
        notes.append(f"{scored.left_out} {are} flagged as a copy of another's log, and in no rate.")
    return Leaderboard(table, compared, basis, [note for note in notes if note], scored)


def _rated(rows: pd.DataFrame, compared: pd.DataFrame, kind: Any) -> tuple[pd.DataFrame, str, str]:
    """Rank the models that have values; return the table, its basis, and the reason."""
    stratum = "task_type" if rows["task_type"].notna().all() and rows["task_type"].nunique() > 1 else None
    like = like_with_like(rows, "model_name", "task", "value", stratum, kind=kind)
    raw = like.table[["model", "n", "n_tasks", "coverage", "estimate", "low", "high", "method"]]
    adjusted = like.table[["headline", "headline_low", "headline_high"]].set_axis(_ADJUSTED, axis=1)
    ranks = rank_models(rows, "model_name", "task", "value", pairs=compared)
    ranks = ranks.drop(columns=["n_tasks", "estimate", "low", "high", "method"])
    table = pd.concat([raw, adjusted], axis=1).merge(ranks, on="model").rename(columns={"model": "model_name"})
    by = "estimate" if like.headline == NONE else "adjusted"
    table = table.sort_values([by, "model_name"], ascending=[False, True], ignore_index=True)
    return table, like.headline, like.reason * (len(table) > 1)


def rank_table(board: Leaderboard) -> pd.DataFrame:
    """Return the leaderboard as a page shows it: ranks as ranges, and adjusted estimates only if they differ."""
    table = board.table
    shown = table[["model_name", "n", "n_tasks", "coverage"]]
    shown = shown.assign(rank=ranks_text(table), probability_of_being_best=table["p_best"])
    shown = shown.join(table[["estimate", "low", "high"]])
    for name in [*["adjusted"] * board.is_adjusted, "corrected"]:
        shown[[f"{name}_{end}" for end in ("estimate", "low", "high")]] = table[[name, f"{name}_low", f"{name}_high"]]
    return shown.assign(warning=table["warning"])


def ranks_text(table: pd.DataFrame) -> list[str]:
    """Format the ranks that the data leave open for each model: ``1``, ``2 – 4``; empty if there are none."""
    places = zip(table["rank_low"], table["rank_high"], strict=True)
    return ["" if pd.isna(low) else f"{low} – {high}" if high > low else str(low) for low, high in places]


def headline(board: Leaderboard) -> dict[str, Any]:
    """Describe which model is best, or that the data leave it open.

    No model is named if the best ones tie, have no name, or share no tasks. The estimate of a model that is shown to be
    best is corrected for selection.

    Returns
    -------
    dict
        `label` and, if one model is shown to be best, or there is only one, the fields of an estimate.
    """
    table, name = board.table, board.outcomes.name
    rated = table[table["estimate"].notna() & (table["model_name"] != UNKNOWN)]
    if rated.empty and (nameless := table[table["estimate"].notna()]).empty:
        return {"label": f"no best model: {NO_OUTCOME}"}
    if rated.empty:
        fields = _fields(nameless.iloc[0], "estimate", "low", "high")
        return {"label": f"{name}; no run with one names its model", **fields}
    if len(rated) == 1:
        row = rated.iloc[0]
        return {"label": f"{name} of {row['model_name']}", **_fields(row, "estimate", "low", "high")}
    among = board.pairs[
        board.pairs["model_a"].isin(rated["model_name"]) & board.pairs["model_b"].isin(rated["model_name"])
    ]
    if (among["n_tasks"] == 0).all():
        return {"label": f"no best model: {_named(rated['model_name'])} share no tasks{_standardised(board, rated)}"}
    if cycle := pair_structure(among).cycles:
        return {"label": f"no best model: {' > '.join([*cycle[0], cycle[0][0]])}, each better than the next"}
    beaten = set(_losers(among))
    first = rated[~rated["model_name"].isin(beaten)]
    if len(first) > 1 and 2 * 0.5 ** (n_tasks := among["n_tasks"].max()) > 0.05:  # as if all favoured one model
        return {"label": f"{n_tasks} shared task{'s are' if n_tasks > 1 else ' is'} too few to show a best model"}
    if len(first) > 1:
        tied = _named(first["model_name"]) if len(first) <= MOST_NAMED else f"{len(first)} of {len(rated)} models"
        return {"label": f"no model is shown to be best: {tied} tie for first"}
    row, basis = first.iloc[0], "" if board.basis == RAW else f", {board.basis}"
    which = "corrected" if board.basis == RAW else "adjusted"
    return {
        "label": f"best: {row['model_name']} ({name}{basis})",
        **_fields(row, which, f"{which}_low", f"{which}_high"),
    }


def _losers(pairs: pd.DataFrame) -> pd.Series:
    """Return the models that another one is decided to be better than."""
    decided = pairs[pairs["decided"]]
    return decided["model_b"].where(decided["estimate"] > 0, decided["model_a"])


def _standardised(board: Leaderboard, rated: pd.DataFrame) -> str:
    """Describe the adjusted estimates of models, if they have any."""
    if not board.is_adjusted or len(rated) > MOST_NAMED:
        return ""
    scale, unit = (100, " %") if board.outcomes.is_share else (1, f" {board.outcomes.unit}")
    rates = [
        f"{name} {adjusted * scale:.0f}{unit}"
        for name, adjusted in zip(rated["model_name"], rated["adjusted"], strict=True)
    ]
    return f"; {board.basis}: {', '.join(rates)}"


def _named(models: pd.Series) -> str:
    *most, last = sorted(models)
    return f"{', '.join(most)} and {last}" if most else last


def _fields(row: pd.Series, estimate: str, low: str, high: str) -> dict[str, Any]:
    values = dict(zip(Estimate._fields[:3], row[[estimate, low, high]], strict=True))
    return values | {"n": row["n"], "n_clusters": row["n_tasks"], "method": row["method"], "target": row["target"]}
