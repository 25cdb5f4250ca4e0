"""Estimate achievements from the frames of session traces: which are unlocked, when, and the official score."""

import pandas as pd

from evalkit._words import left_out, note
from evalkit.crafter import benchmark
from evalkit.crafter.analysis import estimates, with_worlds
from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF
from evalkit.stats import mean_interval

__all__ = [
    "COMPARISON_WARNING",
    "achievement_rates",
    "in_percent",
    "official_scores",
    "progressions",
    "unlock_curve",
    "unlock_turns",
]

_TEXTS = {
    "no_values": "no trace can tell what was unlocked",
    "left_out": "left out: {count} that can't tell what was unlocked",
}
_NO_UNLOCKS = note("no_values").worded(_TEXTS)
_ESTIMATE = ("estimate", "low", "high", "method", "warning")

COMPARISON_WARNING = (
    "These are short episodes of agents. The official score is defined for training runs of 1,000,000 steps, so the "
    "published scores are no yardstick for them: with few and short episodes the score is low and moves with every "
    "episode. Read the two side by side, not as a ranking."
)


def achievement_rates(achievements: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Estimate the share of episodes that unlock each of the 22 achievements, of those that report all 22.

    Returns `by`, achievement, tier, n, n_clusters, estimate, low, high, method, warning; easy ones first. NaN for all
    of a group without episodes that report them.
    """
    rows = _ordered(with_worlds(achievements))
    rows["unlocked"] = rows["unlocked"].where(_can_tell(rows))
    out = estimates(rows, [by, "achievement"], "unlocked", "proportion", _TEXTS)
    out.insert(2, "tier", out["achievement"].astype("str").map(TIER_OF))
    return out


def unlock_turns(achievements: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Summarise the turn of the first unlock: by, achievement, unlocked (episodes), first, median and last turn.

    Only episodes that unlock the achievement count, so rare ones may look early or late by chance; turns count from 0.
    """
    rows = _ordered(achievements.dropna(subset="turn"))
    turns = rows.assign(turn=rows["turn"].astype("float64")).groupby([by, "achievement"], observed=True)["turn"]
    return turns.agg(unlocked="size", first="min", median="median", last="max").reset_index()


def unlock_curve(achievements: pd.DataFrame, episodes: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Estimate the mean number of different achievements unlocked by the end of each turn.

    Episodes that ended earlier keep their number, so that the curve never falls and n stays the same. Those that don't
    report all 22 achievements are left out.

    Returns `by`, turn, n, n_clusters, estimate, low, high, method, warning; one row for the first turn, the last one of
    the group and every turn at which something is unlocked. NaN for a group without episodes that report them.
    """
    known = achievements[_can_tell(achievements)]
    unlocks = known.groupby("source")["turn"].apply(lambda column: sorted(column.dropna()))
    rows = []
    for name, everything in with_worlds(episodes).groupby(by, observed=True):
        group = everything[everything["source"].isin(unlocks.index)]
        unlock_lists = unlocks[group["source"]]
        if group.empty:
            rows.append({by: name, "turn": 0, **mean_interval([])._asdict(), "warning": _NO_UNLOCKS})
            continue
        last = max([group["turns"].fillna(1).max() - 1, *(turns[-1] for turns in unlock_lists if turns)])
        for turn in sorted({0, last, *(turn for turns in unlock_lists for turn in turns)}):
            counts = [sum(t <= turn for t in turns) for turns in unlock_lists]
            interval = mean_interval(counts, group["world"], bounds=(0, len(ACHIEVEMENTS)))
            rows.append({by: name, "turn": int(turn), **interval._asdict()})
    return pd.DataFrame(rows, columns=[by, "turn", "n", "n_clusters", *_ESTIMATE])


def official_scores(achievements: pd.DataFrame) -> pd.DataFrame:
    """Apply the official formula to the episodes of each model, as one pooled group.

    Returns model_name, n (episodes that report all 22 achievements), estimate, low, high (0 to 100), method, warning.
    NaN for a model without such episodes.
    """
    achievements, rows = with_worlds(achievements), []
    can_tell = _can_tell(achievements)
    for name, group in achievements.groupby("model_name"):
        known = group[can_tell[group.index]]
        if known.empty:
            rows.append({"model_name": name, "n": 0, "warning": _NO_UNLOCKS})
            continue
        table = known.assign(unlocked=known["unlocked"].astype(int))
        table = table.pivot(index=["world", "source"], columns="achievement", values="unlocked")[list(ACHIEVEMENTS)]
        score = benchmark.pooled_score(table.to_numpy(float), table.index.get_level_values("world"))
        lost = left_out(group["source"].nunique() - known["source"].nunique(), "episode").worded(_TEXTS)
        rows.append({"model_name": name, "n": score.n_episodes, **score._asdict(), "warning": score.warning + lost})
    return pd.DataFrame(rows, columns=["model_name", "n", *_ESTIMATE])


def progressions(episodes: pd.DataFrame) -> pd.DataFrame:
    """Estimate the mean share of the 22 achievements unlocked per episode, per model."""
    rows = with_worlds(episodes)
    return estimates(rows, "model_name", "progression", "score", _TEXTS)


def in_percent(table: pd.DataFrame) -> pd.DataFrame:
    """Convert estimates of shares to percentages."""
    return table.assign(**{name: 100 * table[name] for name in ("estimate", "low", "high")})


def _can_tell(achievements: pd.DataFrame) -> pd.Series:
    """Return for each row whether its episode reports all 22 achievements as unlocked or not."""
    return achievements["unlocked"].notna().groupby(achievements["source"]).transform("all").astype(bool)


def _ordered(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(achievement=pd.Categorical(rows["achievement"], categories=list(TIER_OF), ordered=True))


def __dir__() -> list[str]:
    return sorted(__all__)
