"""Estimates from the frames of session traces: frames in, frames with estimate, low, high and n out."""

from collections.abc import Mapping, Sequence

import pandas as pd

from evalkit.crafter import benchmark
from evalkit.crafter.game import ACHIEVEMENTS, TIER_OF, TIERS
from evalkit.crafter.parse import UNKNOWN
from evalkit.crafter.runs import COLUMNS, POOLED
from evalkit.crafter.scoring import BANDS, WEIGHTS
from evalkit.crafter.table import FLAGS
from evalkit.stats import estimate_by, mean_interval

HOOKS = {f"{name}s": name.replace("_", " ").removesuffix(" achievement") for name in WEIGHTS}

COMPARISON_WARNING = (
    "These are short episodes of agents. The official score is defined for training runs of 1,000,000 steps, so the "
    "published scores are no yardstick for them: with few and short episodes the score is low and moves with every "
    "episode. Read the two side by side, not as a ranking."
)


def mean_scores(episodes: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Estimate the mean score per group; episodes of one task count as one cluster.

    Aborted traces have no score and are left out; `warning` says how many.
    """
    return estimate_by(_with_world(episodes), by, "score", clusters="world", kind="mean")


def best_model(scores: pd.DataFrame) -> pd.Series:
    """Return the row with the highest mean score, for the headline; without scores an empty estimate."""
    known = scores.dropna(subset="estimate")
    if known.empty:
        return pd.Series({"model_name": "no model", "estimate": None, "low": None, "high": None, "n": 0, "method": ""})
    return known.loc[known["estimate"].idxmax()]


def breakdown(episodes: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Estimate the mean count per episode of each kind of hook.

    Returns
    -------
    DataFrame
        `by`, hook (easy, medium, hard, invalid action), n, n_clusters, estimate, low, high, method, warning, total.
    """
    long = _with_world(episodes).melt(
        id_vars=[by, "world"], value_vars=list(HOOKS), var_name="hook", value_name="count"
    )
    long["count"] = long["count"].astype("Float64")
    long["hook"] = pd.Categorical(long["hook"].map(HOOKS), categories=list(HOOKS.values()), ordered=True)
    out = estimate_by(long, [by, "hook"], "count", clusters="world", kind="mean")
    totals = long.groupby([by, "hook"], observed=True)["count"].sum().astype("int64").rename("total").reset_index()
    return out.merge(totals, on=[by, "hook"])


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
        model_name, episodes, invalid_actions, suspect, share, mean_score, and mean_score_without_suspects: the score
        as it is without any of the suspect verdicts, a bound from above.
    """
    scored = episodes.dropna(subset="score").copy()
    scored["lifted"] = scored["score"] - weights["invalid_action"] * scored["suspect_invalid_actions"].astype(float)
    groups = scored.groupby("model_name")
    out = groups.agg(
        episodes=("score", "size"),
        invalid_actions=("invalid_actions", "sum"),
        suspect=("suspect_invalid_actions", "sum"),
        mean_score=("score", "mean"),
        mean_score_without_suspects=("lifted", "mean"),
    ).reset_index()
    share = out["suspect"].astype(float) / out["invalid_actions"].astype(float)  # 0 / 0 is NaN
    out.insert(4, "share", share)
    return out


def achievement_rates(achievements: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Estimate the share of episodes that unlock each of the 22 achievements.

    Returns
    -------
    DataFrame
        `by`, achievement, tier, n, n_clusters, estimate, low, high, method, warning; easy ones first.
    """
    rows = _ordered(_with_world(achievements))
    out = estimate_by(rows, [by, "achievement"], "unlocked", clusters="world")
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

    Episodes that ended earlier keep their number, so that the curve never falls and n stays the same.

    Returns
    -------
    DataFrame
        `by`, turn, n, n_clusters, estimate, low, high, method, warning; a row for the first turn, the last one of the
        group and every turn at which something is unlocked; between them nothing changes.
    """
    known = achievements.dropna(subset="unlocked")
    unlocks = known.groupby("source")["turn"].apply(lambda column: sorted(column.dropna()))
    rows = []
    for name, group in _with_world(episodes[episodes["source"].isin(unlocks.index)]).groupby(by):
        own = unlocks[group["source"]]
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
    out = pd.crosstab(episodes[by], bands).reindex(columns=[*names, "no score"], fill_value=0)
    return out.rename_axis(columns=None).reset_index()


def official_scores(achievements: pd.DataFrame) -> pd.DataFrame:
    """Apply the official formula to the episodes of each model, as one pooled group.

    Returns
    -------
    DataFrame
        model_name, n (episodes), estimate, low, high (0 to 100), method.
    """
    rows = []
    for name, group in achievements.dropna(subset="unlocked").groupby("model_name"):
        table = group.assign(unlocked=group["unlocked"].astype(int)).pivot(
            index="source", columns="achievement", values="unlocked"
        )
        run = {COLUMNS[a]: table[a].tolist() for a in ACHIEVEMENTS}
        score = benchmark.crafter_score({"task": "session traces", "method": name, "seed": POOLED, **run})
        rows.append({"model_name": name, "n": score.n_episodes, **score._asdict()})
    return pd.DataFrame(rows, columns=["model_name", "n", "estimate", "low", "high", "method"])


def progressions(episodes: pd.DataFrame) -> pd.DataFrame:
    """Estimate the mean share of the 22 achievements unlocked per episode, per model."""
    return estimate_by(_with_world(episodes), "model_name", "progression", clusters="world", kind="mean")


def in_percent(table: pd.DataFrame) -> pd.DataFrame:
    """Return estimates that are shares as percentages."""
    return table.assign(**{name: 100 * table[name] for name in ("estimate", "low", "high")})


def best_and_worst(episodes: pd.DataFrame, n: int = 3) -> pd.DataFrame:
    """Return the n best and the n worst episodes by score, from high to low; none twice."""
    ranked = episodes.dropna(subset="score").sort_values(["score", "source"], ascending=[False, True])
    chosen = pd.concat([ranked.head(n), ranked.iloc[n:].tail(n)])
    names = ["model_name", "difficulty", "score", "band", "unlocked", "turns", "trajectory", "source"]
    return chosen[names].assign(source=chosen["source"].str.rsplit("/", n=1).str[-1]).reset_index(drop=True)


def flag_counts(episodes: pd.DataFrame) -> pd.DataFrame:
    """Count the episodes with each flag; flags that none has are left out."""
    rows = [(name.replace("_", " "), int(episodes[f"flag_{name}"].sum()), text) for name, text in FLAGS.items()]
    return pd.DataFrame([row for row in rows if row[1]], columns=["flag", "episodes", "meaning"])


def unused_files(ledger: pd.DataFrame) -> pd.DataFrame:
    """Return the files that were not used, and why."""
    return ledger[ledger["status"] != "used"].reset_index(drop=True)


def describe_episodes(episodes: pd.DataFrame, traces: str) -> str:
    """Say in a sentence or two what the data are."""
    if episodes.empty:
        return f"{traces}: no session traces."
    scored = int(episodes["score"].notna().sum())
    parts = [f"{len(episodes)} episodes of {episodes['model_name'].nunique()} models from {traces}"]
    parts += [f"{len(episodes) - scored} of them aborted, without a score"] if scored < len(episodes) else []
    turns = episodes["turns"].dropna()
    parts += [f"{turns.min()} to {turns.max()} turns each"] if len(turns) else []
    return "; ".join(parts) + "."


def _with_world(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the column `world`: the task where it is known, else the trace itself; put difficulties in their order."""
    found = set(rows["difficulty"])
    names = [*TIERS, *sorted(found - {*TIERS, UNKNOWN}), UNKNOWN]
    order = pd.CategoricalDtype([name for name in names if name in found], ordered=True)
    return rows.assign(world=rows["task_id"].fillna(rows["source"]), difficulty=rows["difficulty"].astype(order))


def _ordered(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(achievement=pd.Categorical(rows["achievement"], categories=list(TIER_OF), ordered=True))
