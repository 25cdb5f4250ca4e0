"""Compare every pair of models on the tasks it shares, and every model with a baseline; what pairs say about ranks.

Do verdicts fit one order, which ranks do they leave open, and which models does no other beat in success and cost?
"""

import math
from collections.abc import Iterable
from itertools import combinations
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
from scipy import special
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from evalkit._notes import Notes, note
from evalkit._text import check_columns
from evalkit.stats.cells import Cells
from evalkit.stats.intervals import (
    LEVEL,
    Target,
    check_choice,
    corrected_t,
    mean_interval,
    numbers,
    positive_mean_interval,
    quantile,
    ratio_interval,
    skewness,
    typed,
    variance_of_mean,
)
from evalkit.stats.paired import (
    SMALLEST,
    Compared,
    allow_for_seeds,
    combine,
    compare_runs,
    compare_units,
    padded,
    unshared,
)

RESAMPLED = 20  # times 100 resamples of tasks, for the front
MOST_PAIRED = 100  # models of which every pair is compared; of more, only those of the first
N_DRAWS = 10_000  # for max-T
CHUNK = 250  # draws at a time, which keeps 5,000 tests within 10 MB

_COLUMNS = (
    "model_a model_b n_tasks n_unshared n_runs mean_a mean_b estimate low high p_value p_holm p_adjusted claim_at "
    "decided p_equivalent equivalent method target correction tested margin warning"
)

_BASELINE_COLUMNS = (
    "model n_tasks n_unshared n_runs mean mean_baseline estimate low high p_value p_adjusted claim_at p_not_worse "
    "verdict method target warning"
)
_RANK_COLUMNS = (
    "model n_tasks estimate low high rank_low rank_high behind_first ties_with_first corrected corrected_low "
    "corrected_high method target warning"
)
_COST_COLUMNS = (
    "model n_tasks success success_low success_high cost cost_low cost_high "
    "per_success per_success_low per_success_high"
)


def compare_all(
    cells: Cells,
    *,
    target: Target = "new tasks",
    margin: float | None = None,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Compare every pair of models, paired on the tasks both have runs of.

    Runs of one model on one task are averaged first, so that each task counts once. The interval and the p value of a
    pair are those of one test, and are not corrected: the interval excludes 0 exactly where p is at most
    0.05. A pair is decided where the p value corrected for all pairs that share tasks (by max-T; for these
    tasks by Holm) is at most that. Few or skewed scores need a smaller one, and `warning` says so.

    `cells` are the runs by task and model (`evalkit.stats.cells_of`). The `target` is the difference on new tasks like
    these (paired, over tasks), or on these very tasks run again (t within tasks, which needs repetitions). Models whose
    difference lies within ± `margin` are `equivalent`: two one-sided tests (Schuirmann 1987; for shares the score test
    of Tango 1998) with Holm's correction, from 10 tasks on (scores: 12). Of cells with conditions, models are compared
    within equal ones, whose differences are averaged by task. With families, the difference is still the mean over
    tasks, its test is over families. With strata, models are for new tasks also compared on the tasks that only one of
    them ran, unpaired within strata, as if these tasks were drawn alike, and both tests are combined
    (`evalkit.stats.paired.combine`); `warning` counts these tasks. Where a model has several seeds, its differences
    vary with them, too. `rng` is for max-T.

    There is one row per pair, models in the order of their names: model_a, model_b, n_tasks (shared), n_unshared (tasks
    that only one of them ran, as far as they count), n_runs (on the shared ones), mean_a, mean_b (over the shared
    tasks, with the unshared ones at their weight), estimate (mean_a − mean_b), low, high, p_value, p_holm, p_adjusted,
    claim_at (the p_adjusted from which down the pair is decided), decided, p_equivalent (corrected; NaN where the tasks
    are too few to tell), equivalent, method, target, correction, tested (pairs that share tasks), margin, warning.
    `evalkit.display.pair_text` says it.
    """
    check_choice("target", target, get_args(Target))
    is_new = target == "new tasks"
    table, parts = pair_rows(cells, list(combinations(range(len(cells.models)), 2)), target, margin)
    table["p_holm"] = holm(table["p_value"])
    table["p_adjusted"] = _by_max_t(parts, table, rng) if is_new else table["p_holm"]
    table["decided"] = table["p_adjusted"] <= table["claim_at"]
    table["p_equivalent"] = holm(table[["p_above", "p_below"]].max(axis=1, skipna=False))
    table["equivalent"] = table["p_equivalent"] <= LEVEL
    table["correction"] = "max-T" if is_new else "Holm"
    table = table.assign(target=target, tested=table["p_value"].notna().sum())
    return typed(table.assign(margin=math.nan if margin is None else margin), _COLUMNS)


def compare_to_baseline(
    cells: Cells,
    baseline: str,
    *,
    margin: float = 0.05,
    target: Target = "new tasks",
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Compare every model with a baseline, paired on the tasks both have runs of.

    Each model gets one verdict: "better" (its difference from the baseline is above 0), "not worse" (by `margin` or
    more: non-inferiority, a one-sided test with Holm's correction for the number of models), "regression" (its
    difference is below 0, and it is not shown to be within the margin) or "not decided" (more tasks are needed).
    Differences from 0 are corrected by max-T over the models (for these tasks by Holm). Arguments are those of
    `compare_all`, and `margin`, the largest loss that is acceptable, in the unit of the values and above 0.

    There is one row per model but the baseline: model, n_tasks, n_unshared, n_runs, mean, mean_baseline, estimate
    (model − baseline), low, high, p_value, p_adjusted, claim_at, p_not_worse (corrected), verdict, method, target,
    warning.
    """
    is_new = target == "new tasks"
    if baseline not in cells.models:
        raise ValueError(f"no runs of the baseline {baseline!r}; there are {', '.join(map(repr, cells.models))}")
    base = cells.models.index(baseline)
    pairs = [(i, base) for i in range(len(cells.models)) if i != base]
    table, parts = pair_rows(cells, pairs, target, margin)
    table["p_adjusted"] = _by_max_t(parts, table, rng) if is_new else holm(table["p_value"])
    table["p_not_worse"] = holm(table["p_above"])
    different, above = table["p_adjusted"] <= table["claim_at"], table["estimate"] > 0
    choices = [different & above, table["p_not_worse"] <= LEVEL, different & ~above]
    table["verdict"] = np.select(choices, ["better", "not worse", "regression"], "not decided")
    table = table.rename(columns={"model_a": "model", "mean_a": "mean", "mean_b": "mean_baseline"})
    return typed(table.assign(target=target), _BASELINE_COLUMNS)


def pair_rows(
    cells: Cells, pairs: list[tuple[int, int]], target: str, margin: float | None = None
) -> tuple[pd.DataFrame, np.ndarray]:
    """Compare the models of each pair, without any correction; with strata also on the tasks that they do not share.

    The table has beside the columns of `compare_all` up to p_value, method and warning: `a` and `b` (places of the
    models), `claim_at`, `p_above` and `p_below` (see `Compared`). Also returns what each task (row) contributes to the
    statistic of each pair (column), whose squares add up to 1: how tests share data.
    """
    if margin is not None and not margin > 0:
        raise ValueError(f"a margin is above 0, not {margin}")
    least, rows = math.nan if margin is None else margin, []
    clusters = np.arange(len(cells.tasks)) if cells.clusters is None else cells.clusters
    parts = np.zeros((clusters.max(initial=-1) + 1, len(pairs)))
    shares, is_new = cells.shares, target == "new tasks"
    for number, (a, b) in enumerate(pairs):
        shared = cells.has(a, b)
        left, right = cells.by_task(cells.means[shared, a], shared), cells.by_task(cells.means[shared, b], shared)
        count, runs = len(left), int(cells.sizes[shared][:, [a, b]].sum())
        differences = left - right
        means = [left.mean(), right.mean(), differences.mean()] if count else [math.nan] * 3
        variance, compared, cautious = math.nan, None, Notes()
        if not is_new and count:
            compared = compare_runs(cells.of(a, shared), cells.of(b, shared), shares, least)
            cautious = note("not_repeated") if compared is None else Notes()
        if compared is None and count > 1:
            compared = compare_units(left, right, least)
        elif compared is None:
            p_value, reason = (1.0, note("one_shared")) if count else (math.nan, note("no_shared"))
            compared = Compared(math.nan, math.nan, p_value, "", reason)
        if shares and count:
            variance = padded(means[2], float((differences**2).sum()), count, 1.0)[1] ** 2 * (count + 2) / count
        elif count > 1:
            variance = float(variance_of_mean(differences))
        parts[np.unique(clusters[shared]), number] = _unit(differences)
        apart, others = unshared(cells, a, b) if is_new and variance != 0 else None, 0
        if apart is not None and (count or min(apart.tasks) > 1):
            on_shared = None if math.isnan(variance) else compared
            if count == 1 and on_shared is not None:
                on_shared = on_shared._replace(low=-1.0, high=1.0, warning=Notes())
            compared, weight = combine(on_shared, differences, variance, apart, shares, least)
            own = np.bincount(clusters, weights=apart.parts, minlength=len(parts))
            own = _unit(own if own.any() else np.bincount(clusters, cells.sizes[:, a] + cells.sizes[:, b]) * 1.0)
            parts[:, number] = math.sqrt(weight) * parts[:, number] + math.sqrt(1 - weight) * own
            ran = list(apart[:2])
            if weight:
                ran = [weight * one + (1 - weight) * other for one, other in zip(means[:2], apart[:2], strict=True)]
            means, others = [*ran, ran[0] - ran[1]], sum(apart.tasks)
            variance = 1 / ((1 / variance if weight else 0) + 1 / apart.variance)
            told = note("partly_shared" if count else "unpaired", a=apart.tasks[0], b=apart.tasks[1])
            compared = compared._replace(warning=compared.warning + told)
        if is_new and cells.seeds is not None and variance > 0:
            compared = allow_for_seeds(compared, means[2], variance, [cells.seeds[a], cells.seeds[b]], shares)
        tasks = count
        if cells.are_families:
            tasks = int(shared.sum())
            cautious += note("families", count=count)
            if cells.shares:
                compared = compared._replace(low=max(compared.low, -1.0), high=min(compared.high, 1.0))
        compared = compared._replace(warning=compared.warning + cautious + cells.lost_of(a, b))
        rows.append((a, b, cells.models[a], cells.models[b], tasks, others, runs, *means, *compared))
    names = [
        "a",
        "b",
        "model_a",
        "model_b",
        "n_tasks",
        "n_unshared",
        "n_runs",
        "mean_a",
        "mean_b",
        "estimate",
        *Compared._fields,
    ]
    return typed(pd.DataFrame(rows, columns=names)), parts


def _unit(values: np.ndarray) -> np.ndarray:
    norm = math.sqrt(float((values**2).sum()))
    return values / norm if norm > 0 else values


def _by_max_t(parts: np.ndarray, table: pd.DataFrame, rng: np.random.Generator | None) -> pd.Series:
    """Return the p values of the table of `pair_rows` corrected by max-T, none below the uncorrected one."""
    return table["p_value"].clip(lower=max_t(parts, table["p_value"], rng)) if len(table) else table["p_value"]


def holm(p_values: Iterable[Any]) -> np.ndarray:
    """Adjust p values for their number (Holm 1979); NaN stays NaN and is not counted.

    The smallest of m is multiplied by m, the next by m − 1 and so on; none is below the one before it, or above 1.
    """
    p_values = numbers(p_values)
    order = np.argsort(p_values)  # NaN last
    count = int((~np.isnan(p_values)).sum())
    order, adjusted = order[:count], np.full(len(p_values), math.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * np.arange(count, 0, -1)), 1.0)
    return adjusted


def max_t(
    parts: np.ndarray, p_values: Iterable[Any], rng: np.random.Generator | None = None, n_draws: int = N_DRAWS
) -> np.ndarray:
    """Adjust two-sided p values for their number, by the distribution of the smallest one.

    Step-down max-T (Westfall and Young 1993, algorithm 2.8; Romano and Wolf 2005): p values are taken to quantiles of
    the normal distribution, and these compared with the largest of normal values that correlate as the tests do, so
    that tests that share data count for less than as many independent ones.

    `parts`, of shape (tasks, tests), are what each task contributes to each statistic, such as its difference; only
    their ratios within a test matter. A p value is NaN where there is no test; its adjusted one is 1, as where no task
    contributes. A single test is not adjusted.
    """
    rng = np.random.default_rng(0 if rng is None else rng)
    p_values = numbers(p_values)
    tested = np.flatnonzero(~np.isnan(p_values))
    adjusted = np.ones(len(p_values))
    if len(tested) < 2:
        adjusted[tested] = p_values[tested]
        return adjusted
    seen = -special.ndtri(np.clip(p_values, SMALLEST, 1.0) / 2)
    order = tested[np.argsort(seen[tested], kind="stable")]
    used = parts[(parts != 0).any(axis=1)][:, order]
    norms = np.sqrt((used**2).sum(axis=0))
    scaled = (used / np.where(norms > 0, norms, 1)).astype(np.float32)
    exceeding = np.zeros(len(order))
    for start in range(0, n_draws, CHUNK):
        weights = rng.standard_normal((min(CHUNK, n_draws - start), len(used)), dtype=np.float32)
        maxima = np.maximum.accumulate(np.abs(weights @ scaled), axis=1)
        exceeding += (maxima >= (seen[order] - 1e-4)[None, :]).sum(axis=0)
    shares = (exceeding + 1) / (n_draws + 1)
    adjusted[order] = np.maximum.accumulate(shares[::-1])[::-1]
    return adjusted


class Structure(NamedTuple):
    """The structure of a table of pairs: what forbids to put all models in one order."""

    cycles: tuple[tuple[str, ...], ...]  # models each of which is better than another of them
    warning: Notes  # why there is no order of all models; false where there is one


def pair_structure(pairs: pd.DataFrame) -> Structure:
    """Find disjoint groups of models and cycles among the decided pairs.

    `pairs` are as `compare_all` returns them. A cycle can only come from pairs that were compared on different tasks,
    or from models that suit different tasks: no order of its models is right.
    """
    codes, models = pd.factorize(np.array([*pairs["model_a"], *pairs["model_b"]], dtype=object))
    a, b = codes.reshape(2, -1)
    shared, decided = (pairs["n_tasks"] > 0).to_numpy(), pairs["decided"].to_numpy(bool)
    ahead = (pairs["estimate"] > 0).to_numpy()
    group_of = components(a[shared], b[shared], len(models))
    cycle_of = components(np.where(ahead, a, b)[decided], np.where(ahead, b, a)[decided], len(models), directed=True)
    groups, sets = (
        tuple(map(tuple, pd.Series(models, dtype="object").groupby(of).agg(list))) for of in (group_of, cycle_of)
    )
    cycles = tuple(sorted(members for members in sets if len(members) > 1))
    apart = np.flatnonzero(~shared & (group_of[a] == group_of[b]))
    unshared = tuple(zip(models[a[apart]], models[b[apart]], strict=True))
    notes = sum((note("cycle", models=members) for members in cycles), Notes())
    notes += note("sets", sets=groups) if len(groups) > 1 else Notes()
    notes += note("unshared", pairs=unshared) if unshared else Notes()
    return Structure(cycles, notes)


def components(start: np.ndarray, end: np.ndarray, count: int, directed: bool = False) -> np.ndarray:
    """Return the number of the (strongly) connected component of each of `count` nodes, given edges."""
    if not count:
        return np.empty(0, dtype=int)
    graph = csr_array((np.ones(len(start)), (start, end)), shape=(count, count))
    return connected_components(graph, directed=directed, connection="strong")[1]


def rank_models(
    cells: Cells,
    *,
    first: str = "",
    pairs: pd.DataFrame | None = None,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Rank models on new tasks like these, with the uncertainty of the ranks.

    - The interval of ranks of a model begins after the models that are decided to be better, and ends before those
      decided to be worse. All intervals together hold the true ranks with the confidence of the correction of `pairs`
      (Mogstad, Romano, Shaikh and Wilhelm 2024). Of more than 100 models only the pairs of the first are tested, with
      Bonferroni's correction for all pairs, since any model might have been the first.
    - The first model is best where it is ahead of each other one in the test of this pair alone: having been picked as
      the first needs no correction for all pairs (Gutmann and Maymin 1987; Hsu 1984). Its rank is then 1, and no other
      model ties with it.
    - The corrected estimate allows for having been picked from all models: shrunk towards their mean by the share of
      the spread of models that is noise (Efron and Morris 1975). Its interval, at a level divided by the number of
      models (Bonferroni), holds for all models at once, hence for any that is picked by its result, where values are
      shares (Clopper and Pearson). That of other values (t) falls short on few tasks, and where values are skewed.

    `cells` are as for `compare_all`; `first` is the model that is tested for being best, by default that with the
    highest estimate, and `pairs` the result of `compare_all`, if already computed.

    There is one row per model, the highest estimate first: model, n_tasks, estimate, low, high (of this model alone, on
    its own tasks), rank_low, rank_high, behind_first (decided to be worse than the first), ties_with_first (no model is
    decided to be better, and the first is not best), corrected, corrected_low, corrected_high, method, target, warning.
    Equal estimates are in the order of their names, which means nothing, as the ranks show.
    """
    by_task = cells.over_conditions
    count, rows = len(cells.models), []
    for i, name in enumerate(cells.models):
        values, bounds = by_task.of(i).means, (0.0, 1.0) if cells.shares else None
        tasks, families = np.arange(len(values)), None
        if by_task.clusters is not None:
            families = by_task.clusters[by_task.sizes[:, i] > 0]
        alone = mean_interval(values, tasks, bounds=bounds, families=families)
        if families is not None and len(np.unique(families)) < len(tasks):
            wide = mean_interval(values, tasks, bounds=bounds, families=families, confidence=1 - LEVEL / count)
            corrected = wide[1:3]
        else:
            corrected = at_once(values, cells.shares, 1 - LEVEL / count)
        described = alone.method, "new tasks", alone.warning + cells.lost_of(i)
        rows.append((name, alone.n_clusters, *alone[:3], 1, count, False, True, math.nan, *corrected, *described))
    table = typed(pd.DataFrame(rows, columns=_RANK_COLUMNS.split()))
    if not count:
        return table
    leading = cells.models.index(first) if first else int(np.argmax(table["estimate"].fillna(-math.inf)))
    if pairs is None and count <= MOST_PAIRED:
        pairs = compare_all(cells, rng=rng)
    others = [i for i in range(count) if i != leading]
    tests = pair_rows(cells, [(leading, i) for i in others], "new tasks")[0].set_index("b")
    better, worse, behind = np.zeros(count, int), np.zeros(count, int), np.zeros(count, bool)
    if pairs is None:
        is_behind = tests["p_value"] * (count * (count - 1) / 2) <= tests["claim_at"]
        behind[others] = is_behind & (tests["estimate"] > 0)
        better, worse[leading] = behind.astype(int), behind.sum()
    else:
        place = dict(zip(map(str, cells.models), range(count), strict=True))
        for row in pairs[pairs["decided"]].to_dict("records"):
            a, b = place[row["model_a"]], place[row["model_b"]]
            winner, loser = (a, b) if row["estimate"] > 0 else (b, a)
            better[loser], worse[winner] = better[loser] + 1, worse[winner] + 1
            behind[loser] |= winner == leading
    table["behind_first"] = behind
    table["rank_low"], table["rank_high"], table["ties_with_first"] = 1 + better, count - worse, better == 0
    if ((tests["p_value"] <= tests["claim_at"]) & (tests["estimate"] > 0)).all():  # no test at all: the only model
        table["rank_low"] = table["rank_low"].clip(lower=2).where(table.index != leading, 1)
        table["rank_high"] = table["rank_high"].where(table.index != leading, 1)
        table["ties_with_first"] = table.index == leading
    # the share of the variance of estimates that is not noise, from 0 to 1
    estimates, common, signal = table["estimate"].dropna().to_numpy(), by_task.has(), 0.0
    spread = estimates.var(ddof=1) if len(estimates) > 1 else 0.0
    if spread > 0:
        if common.sum() > 1:
            values = by_task.means[common]
            values = values - values.mean(axis=1, keepdims=True)  # how hard a task is says nothing about who is best
            noise = (values.var(axis=0, ddof=1) / len(values)).sum() / (values.shape[1] - 1)
        else:
            of_tasks = [by_task.of(i).means for i in range(count)]
            noise = np.mean([means.var(ddof=1) / len(means) for means in of_tasks if len(means) > 1] or [math.inf])
        signal = max(0.0, 1 - float(noise) / float(spread))
    centre = table["estimate"].mean()
    shrunk = centre + signal * (table["estimate"] - centre)
    table["corrected"] = shrunk.clip(table["corrected_low"].fillna(-math.inf), table["corrected_high"].fillna(math.inf))
    return typed(table.sort_values("estimate", ascending=False, kind="stable", ignore_index=True))


def at_once(values: np.ndarray, shares: bool, confidence: float) -> tuple[float, float]:
    """Return an interval of the mean of values of tasks that holds at a confidence far above 95 %.

    Of shares by Clopper and Pearson (1934), which is never too narrow, on the number of tasks, or on the effective
    number (Korn and Graubard 1998) where that is larger; of other values by t with Hall's correction.
    """
    count, nothing = len(values), (math.nan, math.nan)
    if count < 2:
        return nothing
    variance, rate = float(variance_of_mean(values)), float(values.mean())
    if not shares:
        low, high = corrected_t(values, confidence) if variance > 0 else nothing
        return float(low), float(high)
    factor = float(quantile(confidence, count - 1) / quantile(confidence)) ** 2 * (
        1 + 2 * skewness(values) ** 2 / count
    )
    n = float(count)
    if variance * factor > 0:
        n = max(n, float(rate * (1 - rate) / (variance * factor)))
    tail = (1 - confidence) / 2
    low = float(special.betaincinv(n * rate, n - n * rate + 1, tail)) if rate > 0 else 0.0
    high = float(special.betaincinv(n * rate + 1, n - n * rate, 1 - tail)) if rate < 1 else 1.0
    return low, high


def cost_front(cells: Cells, cost: str, *, rng: np.random.Generator | None = None) -> pd.DataFrame:
    """Return success and cost of each model, and which models are on the Pareto front.

    A model is on the front if no other has at least its success at no more than its cost, and one of the two strictly
    better. Runs of a task are averaged first. Models are compared on the tasks that all have runs of; where there are
    none, on their own, and `warning` says so. Higher values of the `cells` are better; `cost` is the column of their
    runs with the cost, such as tokens or time.

    There is one row per model, the cheapest first: model, n_tasks, success and cost (means over tasks) with _low and
    _high, per_success (the mean cost over the success rate, for shares) with _low and _high, on_front, dominated_by
    (the cheapest model that is better in one and no worse in the other), front_share (of resamples of tasks, by the
    Bayesian bootstrap of Rubin 1981, in which it is on the front), warning.
    """
    check_columns(cells.runs, cost)
    values, costs = (cells.over_conditions.means_of(name, cost) for name in (cells.columns.value, cost))
    models, common = cells.models, np.isfinite(values).all(axis=1)
    where = note("on_common", what="", count=common.sum()) if common.any() else note("tasks_differ")
    where = Notes() if common.all() else where
    if common.any():
        values, costs = values[common], costs[common]
    rows = []
    for i, name in enumerate(models):
        own, paid = (column[np.isfinite(column)] for column in (values[:, i], costs[:, i]))
        is_share = bool(((own >= 0) & (own <= 1)).all())
        parts = {
            "success": mean_interval(own, bounds=(0.0, 1.0) if is_share else None),
            "cost": positive_mean_interval(paid),
        }
        price = ratio_interval(paid, own, np.arange(len(own))) if is_share else ratio_interval([], [], [])
        doubts = (note("of_part", part=part, notes=one.warning) for part, one in parts.items() if one.warning)
        rows.append(
            (name, len(own), *parts["success"][:3], *parts["cost"][:3], *price[:3], sum(doubts, Notes()) + where)
        )
    table = pd.DataFrame(rows, columns=[*_COST_COLUMNS.split(), "warning"])
    dominating = _dominating(table["success"].to_numpy(float), table["cost"].to_numpy(float))
    known = table[["success", "cost"]].notna().all(axis=1)
    table["on_front"] = known & ~np.asarray(dominating.any(axis=1))
    paid = np.where(dominating, table["cost"], math.inf)  # by the models that dominate each
    table["dominated_by"] = [str(models[row.argmin()]) if row.min() < math.inf else "" for row in paid]
    table["front_share"] = math.nan
    if common.sum() > 1:
        rng, counts = np.random.default_rng(0 if rng is None else rng), np.zeros(len(models))
        for _ in range(RESAMPLED):
            weights = rng.dirichlet(np.ones(len(values)), 100)
            counts += _is_on_front(weights @ values, weights @ costs).sum(axis=0)
        table["front_share"] = counts / (RESAMPLED * 100)
    else:
        table["warning"] = [doubt + note("few_common", what="share of resamples") for doubt in table["warning"]]
    table = table.sort_values(["cost", "success"], ascending=[True, False], kind="stable", ignore_index=True)
    return typed(table, f"{_COST_COLUMNS} on_front dominated_by front_share warning")


def _is_on_front(success: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return which models (last axis) no other dominates, without a comparison of every pair."""
    order = np.lexsort((-success, cost), axis=-1)
    success, cost = np.take_along_axis(success, order, -1), np.take_along_axis(cost, order, -1)
    best = np.maximum.accumulate(success, axis=-1)
    is_higher = np.diff(best, axis=-1, prepend=-math.inf) > 0  # than all that cost no more
    last = np.maximum.accumulate(np.where(is_higher, np.arange(best.shape[-1]), 0), axis=-1)
    is_equal = (success == best) & (cost == np.take_along_axis(cost, last, -1))
    on_front = np.empty_like(is_equal)
    np.put_along_axis(on_front, order, is_equal, -1)
    return on_front


def _dominating(success: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return which models (last axis) dominate each model (second-last axis); NaN dominates nothing."""
    at_least = (success[..., None, :] >= success[..., :, None]) & (cost[..., None, :] <= cost[..., :, None])
    better = (success[..., None, :] > success[..., :, None]) | (cost[..., None, :] < cost[..., :, None])
    return at_least & better
