"""Estimates from the frames of session traces: frames in, frames with estimate, low, high and n out."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from evalkit.crafter import benchmark
from evalkit.crafter.game import ACHIEVEMENTS, TIER_OF
from evalkit.crafter.runs import COLUMNS, POOLED
from evalkit.crafter.scores import (
    HOOKS,
    NO_SCORE,
    best_model,
    breakdown,
    counting_totals,
    estimates,
    interval_text,
    mean_scores,
    sign_shares,
    with_aborted_at_zero,
    with_worlds,
)
from evalkit.crafter.scoring import BANDS, WEIGHTS, Counting
from evalkit.crafter.table import FLAGS
from evalkit.io.names import short_paths
from evalkit.stats import mean_interval

__all__ = [
    "COMPARISON_WARNING",
    "HOOKS",
    "achievement_rates",
    "band_counts",
    "best_and_worst",
    "best_model",
    "breakdown",
    "counting_totals",
    "describe_counting",
    "describe_episodes",
    "flag_counts",
    "in_percent",
    "mean_scores",
    "official_scores",
    "progressions",
    "sign_shares",
    "suspect_share",
    "unlock_curve",
    "unlock_turns",
    "unused_files",
    "with_aborted_at_zero",
]

_NO_UNLOCKS = "no trace can tell what was unlocked"
_OTHER_COUNTING = {
    "achievement": ("hook", "every hook once"),
    "hook": ("achievement", "every achievement that a hook names"),
}
_CANNOT_TELL = "that can't tell what was unlocked"

COMPARISON_WARNING = (
    "These are short episodes of agents. The official score is defined for training runs of 1,000,000 steps, so the "
    "published scores are no yardstick for them: with few and short episodes the score is low and moves with every "
    "episode. Read the two side by side, not as a ranking."
)


def suspect_share(episodes: pd.DataFrame, weights: Mapping[str, float] = WEIGHTS) -> pd.DataFrame:
    """Count per model the invalid actions that were judged over turns of several actions.

    Parameters
    ----------
    episodes : DataFrame
    weights : mapping
        Those the episodes were scored with.

    Returns
    -------
    DataFrame
        model_name, episodes (with a score), invalid_actions, suspect, share, mean_score, mean_score_without_suspects
        (the score as it is without any of the suspect verdicts, a bound from above), warning. Missing where no trace
        has a score.
    """
    points = episodes["suspect_invalid_actions"].astype("float64") * weights["invalid_action"]
    groups = episodes.assign(lifted=episodes["score"] - points).groupby("model_name")
    out = groups.agg(
        episodes=("score", "count"),
        invalid_actions=("invalid_actions", lambda column: column.sum(min_count=1)),
        suspect=("suspect_invalid_actions", lambda column: column.sum(min_count=1)),
        mean_score=("score", "mean"),
        mean_score_without_suspects=("lifted", "mean"),
    ).reset_index()
    share = out["suspect"].astype("float64") / out["invalid_actions"].astype("float64")  # 0 / 0 is NaN
    out.insert(4, "share", share)
    return out.assign(warning=np.where(out["episodes"] == 0, NO_SCORE, ""))


def achievement_rates(achievements: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Estimate the share of episodes that unlock each of the 22 achievements, of those that can tell of all 22.

    Returns
    -------
    DataFrame
        `by`, achievement, tier, n, n_clusters, estimate, low, high, method, warning; easy ones first. NaN for all of a
        group of which no episode can tell.
    """
    rows = _ordered(with_worlds(achievements))
    rows["unlocked"] = rows["unlocked"].where(_can_tell(rows))
    keys = [by, "achievement"]
    out = estimates(rows, keys, "unlocked", "proportion", none=_NO_UNLOCKS, missing=_CANNOT_TELL)
    out.insert(2, "tier", out["achievement"].astype("str").map(TIER_OF))
    return out


def unlock_turns(achievements: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Summarise the turn of the first unlock: by, achievement, unlocked (episodes), first, median and last turn.

    Only episodes that unlock the achievement count, so that rare ones look early or late by chance; turns count from 0.
    """
    rows = _ordered(achievements.dropna(subset="turn"))
    turns = rows.assign(turn=rows["turn"].astype("float64")).groupby([by, "achievement"], observed=True)["turn"]
    out = turns.agg(unlocked="size", first="min", median="median", last="max")
    return out.reset_index()


def unlock_curve(achievements: pd.DataFrame, episodes: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Estimate the mean number of different achievements unlocked by the end of each turn.

    Episodes that ended earlier keep their number, so that the curve never falls and n stays the same. Those that can't
    tell of all 22 achievements are left out.

    Returns
    -------
    DataFrame
        `by`, turn, n, n_clusters, estimate, low, high, method, warning; a row for the first turn, the last one of the
        group and every turn at which something is unlocked; between them nothing changes. One row of NaN for a group of
        which no episode can tell.
    """
    known = achievements[_can_tell(achievements)]
    unlocks = known.groupby("source")["turn"].apply(lambda column: sorted(column.dropna()))
    rows = []
    for name, everything in with_worlds(episodes).groupby(by, observed=True):
        group = everything[everything["source"].isin(unlocks.index)]
        own = unlocks[group["source"]]
        if group.empty:
            rows.append({by: name, "turn": 0, **mean_interval([])._asdict(), "warning": _NO_UNLOCKS})
            continue
        last = max([group["turns"].fillna(1).max() - 1, *(turns[-1] for turns in own if turns)])
        for turn in sorted({0, last, *(turn for turns in own for turn in turns)}):
            counts = [sum(t <= turn for t in turns) for turns in own]
            rows.append({by: name, "turn": int(turn), **mean_interval(counts, group["world"])._asdict()})
    names = [by, "turn", "n", "n_clusters", "estimate", "low", "high", "method", "warning"]
    return pd.DataFrame(rows, columns=names)


def band_counts(episodes: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Count episodes per band, and those without a score."""
    names = [name for name, _, _ in BANDS]
    bands = episodes["band"].fillna("no score")
    out = pd.crosstab(with_worlds(episodes)[by], bands).reindex(columns=[*names, "no score"], fill_value=0)
    return out.rename_axis(columns=None).reset_index()


def official_scores(achievements: pd.DataFrame) -> pd.DataFrame:
    """Apply the official formula to the episodes of each model, as one pooled group.

    Returns
    -------
    DataFrame
        model_name, n (episodes that can tell of all 22 achievements), estimate, low, high (0 to 100), method, warning.
        NaN for a model of which no episode can tell.
    """
    can_tell, rows = _can_tell(achievements), []
    for name, group in achievements.groupby("model_name"):
        known = group[can_tell[group.index]]
        left_out = group["source"].nunique() - known["source"].nunique()
        if known.empty:
            rows.append({"model_name": name, "n": 0, "warning": _NO_UNLOCKS})
            continue
        table = known.assign(unlocked=known["unlocked"].astype(int))
        table = table.pivot(index="source", columns="achievement", values="unlocked")
        run = {COLUMNS[a]: table[a].tolist() for a in ACHIEVEMENTS}
        score = benchmark.crafter_score({"task": "session traces", "method": name, "seed": POOLED, **run})
        warning = f"left out: {left_out} {_CANNOT_TELL}" if left_out else ""
        rows.append({"model_name": name, "n": score.n_episodes, **score._asdict(), "warning": warning})
    return pd.DataFrame(rows, columns=["model_name", "n", "estimate", "low", "high", "method", "warning"])


def progressions(episodes: pd.DataFrame) -> pd.DataFrame:
    """Estimate the mean share of the 22 achievements unlocked per episode, per model."""
    rows = with_worlds(episodes)
    return estimates(rows, "model_name", "progression", none=_NO_UNLOCKS, missing=_CANNOT_TELL)


def in_percent(table: pd.DataFrame) -> pd.DataFrame:
    """Return estimates that are shares as percentages."""
    return table.assign(**{name: 100 * table[name] for name in ("estimate", "low", "high")})


def best_and_worst(episodes: pd.DataFrame, n: int = 3) -> pd.DataFrame:
    """Return the n best and the n worst episodes by score, from high to low; none twice.

    `source` is the shortest end of the path that tells the traces apart.
    """
    ranked = episodes.dropna(subset="score").sort_values(["score", "source"], ascending=[False, True])
    chosen = pd.concat([ranked.head(n), ranked.iloc[n:].tail(n)])
    names = ["model_name", "difficulty", "score", "band", *HOOKS, "unlocked", "turns", "trajectory", "source"]
    return chosen[names].assign(source=chosen["source"].map(short_paths(episodes["source"]))).reset_index(drop=True)


def flag_counts(episodes: pd.DataFrame) -> pd.DataFrame:
    """Count the episodes with each flag; flags that none has are left out."""
    rows = [(name.replace("_", " "), int(episodes[f"flag_{name}"].sum()), text) for name, text in FLAGS.items()]
    return pd.DataFrame([row for row in rows if row[1]], columns=["flag", "episodes", "meaning"])


def unused_files(ledger: pd.DataFrame) -> pd.DataFrame:
    """Return the files that were not used, and why."""
    return ledger[ledger["status"] != "used"].reset_index(drop=True)


def describe_episodes(episodes: pd.DataFrame, traces: str) -> str:
    """Say in a sentence what the data are, and what was left out."""
    if episodes.empty:
        return f"{traces}: no session traces."
    parts = [f"{len(episodes)} episodes of {episodes['model_name'].nunique()} models from {traces}"]
    for row in with_aborted_at_zero(episodes, []).to_dict("records"):
        at_zero = f"mean score with {row['aborted']} at 0: {interval_text(row)}"
        parts.append(f"{row['aborted']} of them aborted and left out of all means ({at_zero})")
    turns = episodes["turns"].dropna()
    parts += [f"{turns.min()} to {turns.max()} turns each"] if len(turns) else []
    return "; ".join(parts) + "."


def describe_counting(episodes: pd.DataFrame, counting: Counting = "achievement") -> str:
    """Say what the scores add up to, and where they differ, what they would counted the other way."""
    if not episodes["score"].notna().any():
        return f"no points: {NO_SCORE}"
    (row,) = counting_totals(episodes, []).to_dict("records")
    text = f"{episodes['score'].sum():.2f} points"
    if row["differ"]:
        other, way = _OTHER_COUNTING[counting]
        text += f"; {row[f'by_{other}']:.2f} counting {way} ({row['differ']} of {row['n']} traces differ)"
    return text


def _can_tell(achievements: pd.DataFrame) -> pd.Series:
    """Tell of each row whether its episode says of all 22 achievements whether they were unlocked."""
    return achievements["unlocked"].notna().groupby(achievements["source"]).transform("all").astype(bool)


def _ordered(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(achievement=pd.Categorical(rows["achievement"], categories=list(TIER_OF), ordered=True))
