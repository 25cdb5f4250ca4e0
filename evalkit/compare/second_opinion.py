"""Fit a mixed model of all runs: a second opinion beside the paired comparisons."""

import math
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special
from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM
from statsmodels.regression.mixed_linear_model import MixedLM

from evalkit.kinds import outcomes
from evalkit.stats import formulas

MOST_CELLS = 2_000_000  # runs times tasks and models: more take too long
DRAWS = 4_000
_COLUMNS = ["model_name", "n", "n_tasks", "estimate", "low", "high", "difference", "difference_low", "difference_high"]


class Mixed(NamedTuple):
    """What a mixed model says; NaN where nothing could be fitted.

    The table has one row per model, the highest estimate first: model_name, n, n_tasks, estimate with low and high (the
    marginal mean, over tasks like these), difference with low and high (from the first).
    """

    table: pd.DataFrame
    shares: pd.DataFrame  # part (model, task, repetition), variance, share; of successes on the logit scale
    reason: str  # why nothing was fitted; else empty


def mixed(runs: pd.DataFrame, value: str = "", *, rng: np.random.Generator | None = None) -> Mixed:
    """Fit one effect per model and a random one per task to all runs: logistic for successes, else linear.

    By statsmodels: `BinomialBayesMixedGLM` (variational Bayes, which takes effects to be independent) or `MixedLM`
    (REML). Runs weigh, effects of models are the same on all tasks, and intervals are not corrected. `rng` draws what
    the intervals come from.
    """
    data = outcomes(runs, value)
    rows = data.table.dropna(subset="value")
    models, tasks = (pd.factorize(rows[name], sort=True) for name in ("model_name", "task"))
    counts = rows.groupby("model_name").agg(n=("value", "size"), n_tasks=("task", "nunique")).reset_index()
    nothing = Mixed(
        counts.assign(**dict.fromkeys(_COLUMNS[3:], math.nan))[_COLUMNS],
        pd.DataFrame({"part": ["model", "task", "repetition"], "variance": math.nan, "share": math.nan}),
        "",
    )
    effects, spread = np.eye(len(models[1]))[models[0]], np.ones((len(rows), 1))
    if len(models[1]) < 2 or len(tasks[1]) < 5:
        return nothing._replace(reason="it takes at least 2 models and 5 tasks")
    if len(rows) * (len(tasks[1]) + len(models[1])) > MOST_CELLS:
        return nothing._replace(reason="too many runs and tasks for it")
    chosen = np.random.default_rng(0 if rng is None else rng)
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            if data.kind == "proportion":
                each = np.eye(len(tasks[1]))[tasks[0]]
                glm = BinomialBayesMixedGLM(rows["value"].to_numpy(), effects, each, np.zeros(each.shape[1], int))
                fit = glm.fit_vb(rng=0)  # the mode of fit_map lies at no spread of tasks
                centre, between = fit.fe_mean, float(np.exp(2 * fit.vcp_mean[0]))
                covariance, within = np.diag(fit.fe_sd**2), math.pi**2 / 3
            else:
                fit = MixedLM(rows["value"].to_numpy(), effects, tasks[0], spread).fit(reml=True)
                centre, between, within = fit.fe_params, float(fit.cov_re[0, 0]), float(fit.scale)
                covariance = np.asarray(fit.cov_params())[: len(centre), : len(centre)]
                if not fit.converged:
                    return nothing._replace(reason="it did not converge")
            drawn = chosen.multivariate_normal(centre, covariance, DRAWS)
        except (ValueError, np.linalg.LinAlgError) as error:
            return nothing._replace(reason=f"it could not be fitted ({error})")
    if any("converge" in str(one.message) for one in caught) or not np.isfinite(drawn).all():
        return nothing._replace(reason="it did not converge")
    estimates = np.asarray(centre)
    if data.kind == "proportion":  # rates, over the distribution of tasks
        nodes, weights = np.polynomial.hermite_e.hermegauss(31)
        weights = weights / weights.sum()

        def marginal(logits: np.ndarray) -> np.ndarray:
            return special.expit(logits[..., None] + math.sqrt(between) * nodes) @ weights

        estimates, drawn = marginal(estimates), marginal(drawn)
    first = int(estimates.argmax())
    ends = [(1 - 0.95) / 2, (1 + 0.95) / 2]
    bounds, gaps = np.quantile(drawn, ends, axis=0), np.quantile(drawn - drawn[:, [first]], ends, axis=0)
    columns = [estimates, *bounds, estimates - estimates[first], *gaps]
    table = counts.assign(**dict(zip(_COLUMNS[3:], columns, strict=True)))[_COLUMNS]
    parts = np.array([formulas.variance_of_mean(np.asarray(centre)) * len(centre), between, within])
    shares = nothing.shares.assign(variance=parts, share=parts / parts.sum())
    return Mixed(table.sort_values("estimate", ascending=False, ignore_index=True), shares, "")
