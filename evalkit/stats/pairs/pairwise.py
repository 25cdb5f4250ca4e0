"""Compare every pair of several models on the tasks it shares, and every model with a baseline."""

import math
from itertools import combinations
from typing import Literal, get_args

import numpy as np
import pandas as pd
from scipy import special

from evalkit._notes import Notes, note
from evalkit.stats._inputs import check_choice, check_confidence, typed
from evalkit.stats.intervals import Target
from evalkit.stats.pairs.cells import Cells, cells_of
from evalkit.stats.pairs.comparison import Compared, compare_runs, compare_units
from evalkit.stats.pairs.multiplicity import holm, max_t
from evalkit.stats.pairs.power import fewest_pairs, minimal_detectable_difference, pairs_needed
from evalkit.stats.pairs.sentences import pair_sentences

Correction = Literal["max-t", "holm"]
Pairs = list[tuple[int, int]]

SENTENCES_FOR = 100  # pairs, beyond which sentences are written only if asked for
ASKED = 0.1  # difference of shares that is planned for

_COLUMNS = (
    "model_a model_b n_tasks n_runs mean_a mean_b estimate low high p_value p_holm p_adjusted decided p_equivalent "
    "equivalent minimal_detectable tasks_needed method target sentence warning"
)

_BASELINE_COLUMNS = (
    "model n_tasks n_runs mean mean_baseline estimate low high p_value p_adjusted p_not_worse verdict method target "
    "warning"
)


def compare_all(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    *,
    confidence: float = 0.95,
    power: float = 0.8,
    percent: bool = True,
    target: Target = "new tasks",
    correction: Correction = "max-t",
    margin: float | None = None,
    difference: float | None = None,
    sentences: bool | None = None,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Compare every pair of models, paired on the tasks both have runs of.

    Runs of one model on one task are averaged first, so that each task counts once. The interval and the p value of a
    pair are those of one test, and are not corrected: the interval excludes 0 exactly where p is at most
    1 − confidence. A pair is decided where the p value corrected for all pairs that share tasks is at most that.

    Parameters
    ----------
    frame : DataFrame
        One row per run.
    model, task, value : str
        Columns of the model, of the task and of the outcome (0/1, or a score). Rows with a missing one are left out,
        and counted in `warning`.
    confidence, power : float
        Between 0 and 1, both excluded.
    percent : bool
        Whether sentences give percentages; False for outcomes that are not shares.
    target : {"new tasks", "these tasks"}
        Whether the difference is that on new tasks like these (McNemar's exact test for 0/1 outcomes, else sign flips,
        over tasks) or on these very tasks run again (t within tasks, which needs repetitions).
    correction : {"max-t", "holm"}
        The correction for the number of pairs. For these tasks it is Holm's.
    margin : float, optional
        Models whose difference lies within ± margin are `equivalent`: two one-sided tests (Schuirmann 1987) with Holm's
        correction.
    difference : float, optional
        The true difference that `tasks_needed` plans for; by default 0.1 for shares, and none for other values.
    sentences : bool, optional
        Whether to write a sentence for each pair; by default for up to 100 pairs.
    rng : numpy.random.Generator, optional
        For max-T; by default one with seed 0.

    Returns
    -------
    DataFrame
        One row per pair, models in the order of their names: model_a, model_b, n_tasks (shared), n_runs (on them),
        mean_a, mean_b (over these tasks), estimate (mean_a − mean_b), low, high, p_value, p_holm, p_adjusted (by
        `correction`), decided, p_equivalent (corrected), equivalent, minimal_detectable (the true difference that
        n_tasks show with `power`), tasks_needed (how many show one of `difference`; both at the strictest step of the
        correction and with the spread seen), method, target, sentence, warning.

    Raises
    ------
    ValueError
        For an unknown column, an impossible confidence, power or margin, or an unknown target or correction.
    """
    check_confidence(confidence)
    check_choice("target", target, get_args(Target))
    check_choice("correction", correction, get_args(Correction))
    if margin is not None and not margin > 0:
        raise ValueError(f"a margin is above 0, not {margin}")
    cells = cells_of(frame, model, task, value)
    pairs = list(combinations(range(len(cells.models)), 2))
    table = pair_rows(cells, pairs, target, confidence)
    by_max_t = correction == "max-t" and target == "new tasks"
    table["p_holm"] = holm(table["p_value"])
    table["p_adjusted"] = adjusted_by_max_t(cells, pairs, table["p_value"], rng) if by_max_t else table["p_holm"]
    table["target"] = target
    table["decided"] = table["p_adjusted"] <= 1 - confidence
    table["p_equivalent"] = math.nan if margin is None else holm(beyond(margin - table["centre"].abs(), table))
    table["equivalent"] = table["p_equivalent"] <= 1 - confidence
    asked = difference if difference is not None else ASKED if cells.shares and percent else math.nan
    _plan(table, max(int(table["p_value"].notna().sum()), 1), asked, power, confidence)
    wanted = len(table) <= SENTENCES_FOR if sentences is None else sentences
    how = "max-T" if by_max_t else "Holm"
    written = pair_sentences(table, how, power, percent, margin, asked) if wanted else ""
    return typed(table.assign(sentence=written), _COLUMNS)


def compare_to_baseline(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    baseline: str,
    *,
    margin: float = 0.05,
    confidence: float = 0.95,
    target: Target = "new tasks",
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Compare every model with a baseline, paired on the tasks both have runs of.

    Each model gets one verdict: "better" (its difference from the baseline is above 0), "not worse" (by `margin` or
    more: non-inferiority, a one-sided test with Holm's correction for the number of models), "regression" (its
    difference is below 0, and it is not shown to be within the margin) or "not decided" (more tasks are needed).
    Differences from 0 are corrected by max-T over the models (for these tasks by Holm).

    Parameters
    ----------
    frame, model, task, value, confidence, target, rng
        As for `compare_all`.
    baseline : str
        The model to compare with.
    margin : float
        In the unit of the values, above 0: the largest loss that is acceptable.

    Returns
    -------
    DataFrame
        One row per model but the baseline: model, n_tasks, n_runs, mean, mean_baseline, estimate (model − baseline),
        low, high, p_value, p_adjusted, p_not_worse (corrected), verdict, method, target, warning.

    Raises
    ------
    ValueError
        For a baseline without runs, an unknown column, or an impossible margin or confidence.
    """
    check_confidence(confidence)
    if not margin > 0:
        raise ValueError(f"a margin is above 0, not {margin}")
    cells = cells_of(frame, model, task, value)
    if baseline not in cells.models:
        raise ValueError(f"no runs of the baseline {baseline!r}; there are {', '.join(map(repr, cells.models))}")
    base = cells.models.index(baseline)
    pairs = [(i, base) for i in range(len(cells.models)) if i != base]
    table = pair_rows(cells, pairs, target, confidence)
    within = target == "these tasks"
    table["p_adjusted"] = holm(table["p_value"]) if within else adjusted_by_max_t(cells, pairs, table["p_value"], rng)
    table["p_not_worse"] = holm(beyond(table["centre"] + margin, table))
    different, above = table["p_adjusted"] <= 1 - confidence, table["estimate"] > 0
    choices = [different & above, table["p_not_worse"] <= 1 - confidence, different & ~above]
    table["verdict"] = np.select(choices, ["better", "not worse", "regression"], "not decided")
    table = table.rename(columns={"model_a": "model", "mean_a": "mean", "mean_b": "mean_baseline"})
    return typed(table.assign(target=target), _BASELINE_COLUMNS)


def pair_rows(cells: Cells, pairs: Pairs, target: str, confidence: float) -> pd.DataFrame:
    """Compare the models of each pair, without any correction.

    Beside the columns of `compare_all` up to p_value, method and warning: `centre`, `error` and `freedom` of the
    interval (see `Compared`), `binary` (0/1 outcomes), `spread` (standard deviation of the differences) and
    `discordant` (share of 0/1 pairs that differ, with the half pairs that Agresti and Min add).
    """
    rows = [_pair(cells, a, b, target, confidence) for a, b in pairs]
    names = ["model_a", "model_b", "n_tasks", "n_runs", "mean_a", "mean_b", "estimate", *Compared._fields]
    return typed(pd.DataFrame(rows, columns=[*names, "binary", "spread", "discordant"]))


def adjusted_by_max_t(
    cells: Cells, pairs: Pairs, p_values: pd.Series, rng: np.random.Generator | None = None
) -> pd.Series:
    """Return the p values of pairs corrected by max-T, none below the uncorrected one."""
    if not pairs:
        return p_values
    first, second = np.array(pairs).T
    return p_values.clip(lower=max_t(cells.means[:, first] - cells.means[:, second], rng))


def beyond(distance: pd.Series, table: pd.DataFrame) -> np.ndarray:
    """Return one-sided p values of distances from the centres of intervals, by t (normal: tasks − 1 degrees)."""
    freedom = table["freedom"].where(np.isfinite(table["freedom"]), table["n_tasks"] - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return special.stdtr(freedom, -(distance / table["error"]))


def _pair(cells: Cells, a: int, b: int, target: str, confidence: float) -> tuple:
    shared = cells.has(a, b)
    left, right = cells.means[shared, a], cells.means[shared, b]
    differences, both, count = left - right, np.concatenate([left, right]), len(left)
    binary = bool(((both == 0) | (both == 1)).all())
    shares = bool(((both >= 0) & (both <= 1)).all())
    compared, cautious = None, Notes()
    if target == "these tasks" and count:
        compared = compare_runs(cells.of(a, shared), cells.of(b, shared), shares, confidence)
        cautious = note("not_repeated") if compared is None else Notes()
    if compared is None and count > 1:
        compared = compare_units(differences, shares, binary, confidence)
    elif compared is None:
        p_value, reason = (1.0, note("one_shared")) if count else (math.nan, note("no_shared"))
        compared = Compared(math.nan, math.nan, p_value, "", reason)
    compared = compared._replace(warning=compared.warning + cautious + cells.lost_of(a, b))
    means = (left.mean(), right.mean(), differences.mean()) if count else (math.nan,) * 3
    spread = differences.std(ddof=1) if count > 1 else math.nan
    discordant = ((differences**2).sum() + 1) / (count + 2)
    runs = int(cells.sizes[shared][:, [a, b]].sum())
    return cells.models[a], cells.models[b], count, runs, *means, *compared, binary, spread, discordant


def _plan(table: pd.DataFrame, tested: int, asked: float, power: float, confidence: float) -> None:
    """Add the difference the tasks show, and how many tasks show that asked for, at the strictest step of all pairs."""
    if (table["target"] == "these tasks").all():
        level = (1 - confidence) / tested
        quantiles = special.stdtrit(np.minimum(table["freedom"], 1e9), 1 - level / 2) + special.ndtri(power)
        table["minimal_detectable"], table["tasks_needed"] = quantiles * table["error"], math.nan
        return
    binary = table["binary"].to_numpy() == 1
    options = {"power": power, "confidence": confidence, "comparisons": tested, "binary": binary}
    n, spread = table["n_tasks"].to_numpy(), table["spread"].to_numpy()
    discordant = np.where(n > 1, table["discordant"], math.nan)
    seen = np.sqrt(np.where(binary, np.maximum(discordant - table["estimate"] ** 2, 0), spread**2))
    fewest = fewest_pairs((1 - confidence) / tested)
    shown = minimal_detectable_difference(n, seen, **options)
    table["minimal_detectable"] = np.where(n >= fewest, shown, math.nan)
    if math.isnan(asked):
        table["tasks_needed"] = math.nan
        return
    at_asked = np.sqrt(np.where(binary, np.maximum(discordant, asked) - asked**2, spread**2))
    table["tasks_needed"] = np.maximum(pairs_needed(asked, at_asked, **options), fewest)
