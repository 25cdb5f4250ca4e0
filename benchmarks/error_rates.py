"""How often the tests of evalkit.stats err, and how often they find what is there: a part of benchmarks/coverage.py."""

import math
import warnings

import numpy as np
from scipy import special, stats
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM

from benchmarks.simulate import draw_clusters, percent
from evalkit.stats import pairs_needed, trend_test

LEVEL = 0.05
ODDS_RATIO = 0.25  # of the rates .8, .5, .2


def trends(samples: int, rng: np.random.Generator) -> list[dict]:
    """Three levels, clusters of one level each; beside it the Wald test of a logistic fit with cluster-robust errors.

    Errors where there is no trend (rates .5 and .15), power for rates .8, .5 and .2, and there the coverage of the odds
    ratio where it has bounds. No answer counts as not found.
    """
    rows = []
    for count in (6, 9, 15, 30, 60):
        for size, correlation in ((1, 0), (4, 0), (4, 0.3), (4, 0.7)):
            row = {"clusters": count, "values in each": size, "correlation": correlation}
            for name, rates in (("errors .5", (0.5,) * 3), ("errors .15", (0.15,) * 3), ("power", (0.8, 0.5, 0.2))):
                found = [_trend(count, size, correlation, rates, rng) for _ in range(samples // 4)]
                for test, p_values in zip((name, f"Wald {name}"), np.array(found)[:, :2].T, strict=True):
                    row[test] = percent((p_values <= LEVEL).mean())
            held = np.array(found)[:, 2]
            row["odds ratio covered"] = percent(np.nanmean(held))
            row["has bounds"] = percent(np.isfinite(held).mean())
            rows.append(row)
    return rows


def powers(samples: int, rng: np.random.Generator) -> list[dict]:
    """McNemar's exact test on as many tasks as `pairs_needed` says for 80 % power; exact, summed over all outcomes."""
    rows = []
    for comparisons in (1, 6, 66):
        for only_a, only_b in ((0.9, 0), (0.6, 0.05), (0.4, 0.1), (0.3, 0.1), (0.2, 0.05), (0.15, 0), (0.3, 0.2)):
            gap = only_a - only_b
            spread = np.sqrt(only_a + only_b - gap**2)
            by_t, binary = (pairs_needed(gap, spread, comparisons=comparisons, binary=b) for b in (False, True))
            rows.append(
                {
                    "comparisons": comparisons,
                    "only A, only B solves": f"{only_a}, {only_b}",
                    "tasks by t": by_t,
                    "their power": percent(_mcnemar_power(int(by_t), only_a, only_b, LEVEL / comparisons)),
                    "tasks, binary=True": binary,
                    "power": percent(_mcnemar_power(int(binary), only_a, only_b, LEVEL / comparisons)),
                }
            )
    return rows


def _trend(count: int, size: int, correlation: float, rates: tuple, rng: np.random.Generator) -> tuple[float, ...]:
    """Return the p values of `trend_test` and of the Wald test, and whether the odds ratio is held (NaN: no bounds)."""
    scores, sizes = np.resize([0, 1, 2], count), np.full(count, size)
    successes = np.array([draw_clusters(sizes[:1], rates[s], correlation, (), rng)[0] for s in scores])
    found = trend_test(successes, sizes, scores, np.arange(count))
    if math.isnan(found.low):
        return found.p_value, math.nan, math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        design = np.column_stack([np.ones(count), scores])
        model = GLM(np.column_stack([successes, sizes - successes]), design, family=Binomial())
        fit = model.fit(cov_type="cluster", cov_kwds={"groups": np.arange(count)})
    wald = 2 * special.stdtr(count - 1, -abs(fit.params[1] / fit.bse[1]))
    return found.p_value, wald, float(found.low <= ODDS_RATIO <= found.high)


def _mcnemar_power(n: int, only_a: float, only_b: float, level: float) -> float:
    total, share = 0.0, only_a + only_b
    for differing in range(n + 1):
        wins = np.arange(differing + 1)
        p_value = np.minimum(1, 2 * special.bdtr(np.minimum(wins, differing - wins), differing, 0.5))
        decided = stats.binom.pmf(wins, differing, only_a / share)[p_value <= level].sum()
        total += stats.binom.pmf(differing, n, share) * decided
    return total
