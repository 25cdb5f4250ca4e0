"""Estimate scores from the frame of episodes; the terminal, the notebook and the page all show these estimates.

Functions take frames and return frames with estimate, low, high and n. Aborted traces have no score and are left out.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from evalkit._notes import left_out, note
from evalkit._text import as_list, counted_noun, format_interval
from evalkit.crafter import words
from evalkit.crafter.assemble import BANDS, DIGITS, band
from evalkit.crafter.benchmark import pooled_score
from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF, TIERS, UNKNOWN, WEIGHTS
from evalkit.io import short_paths
from evalkit.io.text import cut_end, message_pattern
from evalkit.kinds import Finding, counted, data_finding, examples_of, flag_counts, has_flag
from evalkit.kinds.success_rates import sums_by, with_usage
from evalkit.stats import estimate_by, mean_interval
from evalkit.stats.intervals import Kind

__all__ = [
    "achievement_rates", "answer_table", "bands", "best_and_worst", "breakdown", "counted",
    "flag_counts", "invalid_actions", "mean_scores", "official_scores", "per_budget",
    "points", "progressions", "unlock_curve", "unlock_turns", "with_aborted_at_zero",
]  # fmt: skip

_LONGEST = 300  # maximum number of characters of a reason
HOOKS = {f"{name}s": name.replace("_", " ").removesuffix(" achievement") for name in WEIGHTS}
_POINTS = {HOOKS[f"{name}s"]: weight for name, weight in WEIGHTS.items()}
_BY_TIER = pd.CategoricalDtype(list(TIER_OF), ordered=True)  # easy achievements first
_NO_UNLOCKS = note("no_values").worded(words.UNLOCKS)
_BOUNDS = ("estimate", "low", "high")
_ESTIMATE = (*_BOUNDS, "method", "warning")
number = partial(format_interval, low=None, high=None, percent=False)  # formats points

By = str | Sequence[str]


def budgets(episodes: pd.DataFrame) -> dict[str, int]:
    """Count the episodes with a score per budget (max_turns), such as ``20 turns``; empty if there is only one."""
    episodes = counted(episodes)
    sizes = episodes[episodes["score"].notna()].groupby("max_turns", dropna=False).size()
    return {_budget(turns): n for turns, n in sizes.items()} if len(sizes) > 1 else {}


def _budget(turns: Any) -> str:
    return "budget not recorded" if pd.isna(turns) else counted_noun(int(turns), "turn")


def per_budget(frame: pd.DataFrame, episodes: pd.DataFrame | None = None) -> pd.DataFrame:
    """Split models by budget if budgets differ, as in ``gpt-4o, 20 turns``.

    Parameters
    ----------
    frame : DataFrame
        The episodes, or another frame with source and model_name.
    episodes : DataFrame, optional
        The episodes, if `frame` is another frame.

    Returns
    -------
    DataFrame
        The frame with the budget in each model name. The models are ordered by budget, and the best is first at each.

    Examples
    --------
    >>> analysis.per_budget(episodes)["model_name"].nunique() >= episodes["model_name"].nunique()
    True
    """
    runs = frame if episodes is None else episodes
    if not budgets(runs):
        return frame
    names = runs["model_name"] + ", " + runs["max_turns"].map(_budget, na_action=None)
    means = mean_scores(runs.assign(model_name=names)).set_index("model_name")["estimate"]
    rows = pd.DataFrame({"max_turns": runs["max_turns"], "mean": names.map(means), "name": names})
    order = rows.sort_values(["max_turns", "mean", "name"], ascending=[True, False, True])["name"].unique()
    split = frame["source"].map(dict(zip(runs["source"], names, strict=True)))
    return frame.assign(model_name=pd.Categorical(split, categories=order, ordered=True))


def answer_table(table: pd.DataFrame, episodes: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the table of models at the beginning of a page, and its caption.

    If `episodes` have several budgets, the table has a row for each model and budget, without ranks.

    Parameters
    ----------
    table : DataFrame
        Result of `evalkit.compare.answer_table`.
    episodes : DataFrame
        One row per episode, such as `logs.episodes`.

    Returns
    -------
    tuple of DataFrame and str
        The table and the caption.

    Examples
    --------
    >>> board = compare.leaderboard(episodes, "score")
    >>> analysis.answer_table(compare.answer_table(board), episodes)[1]
    'Models, the best first'
    """
    means = mean_scores(episodes)
    is_doubtful = means["without_suspects"].ne(means["estimate"]) & means["estimate"].notna()
    added = ["without_suspects"] if is_doubtful.any() else []
    if not budgets(episodes):
        return table.join(means.set_index("model_name")[added], on="model_name"), "Models, the best first"
    rows = means[["model_name", *_BOUNDS, "n", "n_tasks", *added]]
    return with_usage(rows, episodes), "Models by budget, the best at each first"


def mean_scores(episodes: pd.DataFrame, by: By = "model_name") -> pd.DataFrame:
    """Estimate the mean score per group; tasks have equal weight.

    Parameters
    ----------
    episodes : DataFrame
        One row per episode, such as `logs.episodes`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.

    Returns
    -------
    DataFrame
        `by`, n (episodes with a score), n_tasks, estimate, low, high, std (of the sample), minimum, median, maximum,
        without_suspects (mean without doubtful verdicts), all in points, aborted (episodes), method, warning, measure.
        Estimates are NaN if no trace has a score.

    Examples
    --------
    >>> analysis.mean_scores(episodes)["n"].min() > 0
    np.True_
    """
    rows = with_worlds(episodes)
    rows["aborted"] = has_flag(rows, "aborted")
    table = estimates(rows, by, "score")
    groups = _groups(rows, by)
    spread = groups["score"].agg(std="std", minimum="min", median="median", maximum="max")
    spread["without_suspects"] = estimates(rows, by, "score_without_suspects")["estimate"].to_numpy()
    spread["aborted"] = groups["aborted"].sum()
    for place, name in enumerate(spread, start=list(table).index("high") + 1):
        table.insert(place, name, spread[name].to_numpy())
    return table.assign(measure="mean score in points")


def with_aborted_at_zero(episodes: pd.DataFrame, by: By = "model_name") -> pd.DataFrame:
    """Estimate the mean score of the groups with aborted traces, with a score of 0 for these traces.

    Parameters
    ----------
    episodes : DataFrame
        One row per episode, such as `logs.episodes`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.

    Returns
    -------
    DataFrame
        `by`, aborted (episodes), n (all episodes), n_tasks, estimate, low, high (points), method, warning.

    Examples
    --------
    >>> "aborted" in analysis.with_aborted_at_zero(episodes)
    True
    """
    rows = with_worlds(episodes)
    rows["aborted"] = has_flag(rows, "aborted")
    table = estimates(rows.assign(score=rows["score"].mask(rows["aborted"], 0.0)), by, "score")
    table.insert(len(as_list(by)), "aborted", _groups(rows, by)["aborted"].sum().to_numpy())
    return table[table["aborted"] > 0].reset_index(drop=True)


def breakdown(episodes: pd.DataFrame, by: By = "model_name") -> pd.DataFrame:
    """Estimate the mean count per episode of each kind of hook, and sum counts and points.

    Parameters
    ----------
    episodes : DataFrame
        One row per episode, such as `logs.episodes`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.

    Returns
    -------
    DataFrame
        `by`, hook (easy, medium, hard, invalid action), n, n_tasks, estimate, low, high (count per episode), method,
        warning, total (count; missing without a score), points (total × `WEIGHTS`).

    Examples
    --------
    >>> analysis.breakdown(episodes)["hook"].iloc[0]
    'easy'
    """
    by, rows = as_list(by), with_worlds(episodes)
    long = rows.melt(id_vars=[*by, "world", "family"], value_vars=list(HOOKS), var_name="hook", value_name="count")
    long["count"] = long["count"].astype("Float64")
    long["hook"] = pd.Categorical(long["hook"].map(HOOKS), categories=list(HOOKS.values()), ordered=True)
    table = estimates(long, [*by, "hook"], "count")
    table["total"] = _groups(long, [*by, "hook"])["count"].sum(min_count=1).astype("Int64").to_numpy()
    points = table["total"].astype("float64") * table["hook"].astype("str").map(_POINTS).astype("float64")
    table["points"] = points + 0.0  # turns -0.0 into 0.0
    return table


def points(episodes: pd.DataFrame, by: By = "model_name") -> pd.DataFrame:
    """Estimate the mean points per episode from each kind of hook; they add up to the score.

    Parameters
    ----------
    episodes : DataFrame
        One row per episode, such as `logs.episodes`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.

    Returns
    -------
    DataFrame
        `by`, hook (easy, medium, hard, invalid action), n, n_tasks, estimate, low, high (points, by `WEIGHTS`), method,
        warning, score (mean score of the group).

    Examples
    --------
    >>> "score" in analysis.points(episodes)
    True
    """
    by, table = as_list(by), breakdown(episodes, by).drop(columns=["total", "points"])
    weight = table["hook"].astype("str").map(_POINTS).astype("float64")
    ends = table[["low", "high"]].mul(weight, axis=0)
    table["estimate"] *= weight
    table["low"] = ends.min(axis=1)
    table["high"] = ends.max(axis=1)
    table["score"] = table.groupby(by or (lambda _: 0), observed=True)["estimate"].transform("sum", min_count=1)
    return table


def bands(episodes: pd.DataFrame, by: By = "model_name") -> pd.DataFrame:
    """Count the episodes in each band of scores.

    Parameters
    ----------
    episodes : DataFrame
        One row per episode, such as `logs.episodes`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.

    Returns
    -------
    DataFrame
        `by`, n (episodes with a score), and one column per band.

    Examples
    --------
    >>> analysis.bands(episodes).columns[-1]
    'Poor'
    """
    episodes = counted(episodes)
    named = episodes["score"].map(band, na_action="ignore")
    counts = pd.DataFrame({"n": named.notna(), **{name: named.eq(name).fillna(False) for name in BANDS}})
    return sums_by(episodes, by, counts)[0]


def invalid_actions(events: pd.DataFrame, by: By = "model_name") -> pd.DataFrame:
    """Count invalid actions by action and reason, the most frequent first.

    Parameters
    ----------
    events : DataFrame
        One row per event, such as `logs.events`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.

    Returns
    -------
    DataFrame
        `by`, action, reason (numbers and names replaced), invalid (count), suspect (how many of these were judged over
        a turn of several actions), episodes (with at least one).

    Examples
    --------
    >>> "reason" in analysis.invalid_actions(logs.events)
    True
    """
    by = as_list(by)
    judged = events[events["invalid"].map(len) > 0].explode(["invalid", "reasons"])
    patterns = {reason: message_pattern(cut_end(reason, _LONGEST)) for reason in judged["reasons"].unique()}
    rows = judged.assign(action=judged["invalid"].fillna(UNKNOWN), reason=judged["reasons"].map(patterns))
    groups = _groups(rows.assign(suspect=rows["suspect_invalid_actions"] > 0), [*by, "action", "reason"])
    table = groups.agg(invalid=("source", "size"), suspect=("suspect", "sum"), episodes=("source", "nunique"))
    ascending = [True] * len(by) + [False]
    return table.reset_index().sort_values([*by, "invalid"], ascending=ascending, kind="stable", ignore_index=True)


def best_and_worst(episodes: pd.DataFrame, n: int = 3) -> pd.DataFrame:
    """Return the n best and the n worst episodes, each once.

    Parameters
    ----------
    episodes : DataFrame
        One row per episode, such as `logs.episodes`.
    n : int
        Number of episodes at each end.

    Returns
    -------
    DataFrame
        Rows of `episodes`, the best first; source contains only the shortest unique end of the path.

    Examples
    --------
    >>> len(analysis.best_and_worst(episodes, 2))
    4
    """
    ranked = counted(episodes).dropna(subset="score").sort_values(["score", "source"], ascending=[False, True])
    chosen = pd.concat([ranked.head(n), ranked.iloc[n:].tail(n)])
    names = ["model_name", "difficulty", "score", "band", *HOOKS, "unlocked", "turns", "trajectory", "source", "run_id"]
    return chosen[names].assign(source=chosen["source"].map(short_paths(episodes["source"]))).reset_index(drop=True)


def findings(episodes: pd.DataFrame, ledger: pd.DataFrame) -> list[Finding]:
    """Report how points were earned and lost, and doubtful data; `evalkit.compare` ranks models."""
    data, episodes = data_finding(episodes, ledger, "episode"), counted(episodes)
    scores = episodes["score"].dropna().round(DIGITS)
    if scores.empty:
        return [data]
    points = breakdown(episodes, []).set_index("hook")["points"]
    values = {
        "n": len(scores),
        "earned": points.drop("invalid action").sum() + 0.0,
        "lost": -points["invalid action"] + 0.0,
        "bands": bands(episodes, []).iloc[0][list(BANDS)].to_dict(),
    }
    ends = {f"{number(end)} points": episodes["score"].eq(end) for end in episodes["score"].agg(["max", "min"])}
    return [Finding("points", "points", values, examples_of(episodes, ends), words.points), data]


def achievement_rates(achievements: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Estimate the share of episodes that unlock each of the 22 achievements.

    Only episodes that report all 22 achievements count.

    Parameters
    ----------
    achievements : DataFrame
        One row per episode and achievement, such as `logs.achievements`.
    by : str
        Column of the groups.

    Returns
    -------
    DataFrame
        `by`, achievement, tier, n, n_tasks, estimate, low, high (shares), method, warning; easy achievements first.
        Estimates are NaN for a group without such episodes.

    Examples
    --------
    >>> analysis.achievement_rates(achievements)["tier"].iloc[0]
    'easy'
    """
    rows = with_worlds(achievements).assign(achievement=achievements["achievement"].astype(_BY_TIER))
    rows["unlocked"] = rows["unlocked"].where(_can_tell(rows))
    out = estimates(rows, [by, "achievement"], "unlocked", "proportion", words.UNLOCKS)
    out.insert(2, "tier", out["achievement"].astype("str").map(TIER_OF))
    return out.assign(measure="share of episodes")


def unlock_turns(achievements: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Summarise the turn of the first unlock of each achievement; turns have the numbers of pages, from 1.

    Parameters
    ----------
    achievements : DataFrame
        One row per episode and achievement, such as `logs.achievements`.
    by : str
        Column of the groups.

    Returns
    -------
    DataFrame
        `by`, achievement, unlocked (episodes), first, median and last turn.

    Examples
    --------
    >>> analysis.unlock_turns(achievements)["first"].min() >= 1
    np.True_
    """
    rows = achievements.dropna(subset="turn").astype({"achievement": _BY_TIER, "turn": "float64"})
    turns = rows.groupby([by, "achievement"], observed=True)["turn"]
    return turns.agg(unlocked="size", first="min", median="median", last="max").reset_index()


def unlock_curve(achievements: pd.DataFrame, episodes: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Estimate the mean number of different achievements unlocked by the end of each turn.

    An episode that has ended keeps its number in later turns. Only episodes that report all 22 achievements count.

    Parameters
    ----------
    achievements : DataFrame
        One row per episode and achievement, such as `logs.achievements`.
    episodes : DataFrame
        One row per episode, such as `logs.episodes`.
    by : str
        Column of the groups.

    Returns
    -------
    DataFrame
        `by`, turn, n, n_tasks, estimate, low, high (achievements), method, warning. The rows are the first turn,
        the last turn and every turn with an unlock.

    Examples
    --------
    >>> analysis.unlock_curve(achievements, episodes)["turn"].min()
    np.int64(1)
    """
    known = achievements[_can_tell(achievements)]
    unlocks = known.groupby("source")["turn"].apply(lambda column: sorted(column.dropna()))
    rows = []
    for name, everything in with_worlds(episodes).groupby(by, observed=True):
        group = everything[everything["source"].isin(unlocks.index)]
        unlock_lists = unlocks[group["source"]]
        if group.empty:
            rows.append({by: name, "turn": 1, **mean_interval([])._asdict(), "warning": _NO_UNLOCKS})
            continue
        last = max([group["turns"].fillna(1).max(), *(turns[-1] for turns in unlock_lists if turns)])
        for turn in sorted({1, last, *(turn for turns in unlock_lists for turn in turns)}):
            counts = [sum(t <= turn for t in turns) for turns in unlock_lists]
            interval = mean_interval(counts, group["world"], bounds=(0, len(ACHIEVEMENTS)), families=group["family"])
            rows.append({by: name, "turn": int(turn), **interval._asdict()})
    return pd.DataFrame(rows, columns=[by, "turn", "n", "n_tasks", *_ESTIMATE])


def official_scores(achievements: pd.DataFrame) -> pd.DataFrame:
    """Apply the official formula to all episodes of each model.

    Parameters
    ----------
    achievements : DataFrame
        One row per episode and achievement, such as `logs.achievements`.

    Returns
    -------
    DataFrame
        model_name, n (episodes that report all 22 achievements), n_tasks, estimate, low, high (0 to 100), method,
        warning. NaN for a model without such episodes.

    Examples
    --------
    >>> analysis.official_scores(achievements)["estimate"].max() < 100
    np.True_
    """
    achievements, rows = with_worlds(achievements), []
    can_tell = _can_tell(achievements)
    for name, group in achievements.groupby("model_name"):
        known = group[can_tell[group.index]]
        if known.empty:
            rows.append({"model_name": name, "n": 0, "n_tasks": 0, "warning": _NO_UNLOCKS})
            continue
        table = known.pivot(index=["family", "source"], columns="achievement", values="unlocked")[list(ACHIEVEMENTS)]
        score = pooled_score(table.to_numpy(float), table.index.get_level_values("family"))
        lost = left_out(group["source"].nunique() - known["source"].nunique(), "episode").worded(words.UNLOCKS)
        counts = {"n": score.n_episodes, "n_tasks": known["world"].nunique()}
        rows.append({"model_name": name, **counts, **score._asdict(), "warning": score.warning + lost})
    return pd.DataFrame(rows, columns=["model_name", "n", "n_tasks", *_ESTIMATE])


def progressions(episodes: pd.DataFrame) -> pd.DataFrame:
    """Estimate the mean share of the 22 achievements unlocked per episode, per model.

    Parameters
    ----------
    episodes : DataFrame
        One row per episode, such as `logs.episodes`.

    Returns
    -------
    DataFrame
        model_name, n (episodes), estimate, low, high (percent), method, warning.

    Examples
    --------
    >>> analysis.progressions(episodes)["estimate"].max() <= 100
    np.True_
    """
    table = estimates(with_worlds(episodes), "model_name", "progression", "score", words.UNLOCKS)
    return table.assign(**{name: 100 * table[name] for name in _BOUNDS})


def _can_tell(achievements: pd.DataFrame) -> pd.Series:
    """Return for each row whether its episode reports all 22 achievements as unlocked or not."""
    return achievements["unlocked"].notna().groupby(achievements["source"]).transform("all").astype(bool)


def with_worlds(rows: pd.DataFrame) -> pd.DataFrame:
    """Add `world` (the task if it is known, else the trace itself) and `family` to all but copies; order levels."""
    if "run_flags" in rows:  # the other frames contain no copies
        rows = counted(rows)
    places = {**{name: place for place, name in enumerate(TIERS)}, UNKNOWN: len(TIERS) + 1}
    levels = sorted(set(rows["difficulty"]), key=lambda name: (places.get(name, len(TIERS)), name))
    order = pd.CategoricalDtype(levels, ordered=True)
    world = rows["task_id"].fillna(rows["source"])
    family = rows["cluster"].fillna(world) if "cluster" in rows else world
    return rows.assign(world=world, family=family, difficulty=rows["difficulty"].astype(order))


def estimates(
    rows: pd.DataFrame, by: By, value: str, kind: Kind = "mean", texts: Mapping[str, str] = words.SCORES
) -> pd.DataFrame:
    """Estimate per group with `evalkit.stats.estimate_by`, clustered by `world`; `texts` word its warnings by code."""
    table = estimate_by(rows, by, value, clusters="world", kind=kind, families="family")
    return table.assign(warning=[notes.worded(texts) for notes in table["warning"]])


def interval_text(row: Mapping[Any, Any]) -> str:
    """Format an estimate in points, with its interval if there is one; a missing estimate is ``–``."""
    return format_interval(*map(row.get, _BOUNDS), percent=False)


def _groups(rows: pd.DataFrame, by: By) -> "pd.api.typing.DataFrameGroupBy":
    """Group rows as `estimate_by` does, so that values computed per group are in the same order."""
    keys: Any = by if len(by) else lambda _: 0
    return rows.groupby(keys, sort=True, dropna=False, observed=True)
