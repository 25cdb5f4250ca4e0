"""Estimates with intervals and honest comparisons; knows nothing of logs."""

from importlib import import_module
from typing import Any

_WHERE = {
    "Estimate": "intervals",
    "proportion_interval": "intervals",
    "rate_interval": "intervals",
    "mean_interval": "intervals",
    "estimate_by": "grouped",
    "format_interval": "text",
    "bootstrap_interval": "resampling",
    "jackknife_interval": "resampling",
    "PairedTest": "pairs.comparison",
    "paired_difference": "pairs.comparison",
    "mcnemar_exact": "pairs.comparison",
    "sign_flip_test": "pairs.comparison",
    "holm": "pairs.multiplicity",
    "max_t": "pairs.multiplicity",
    "minimal_detectable_difference": "pairs.power",
    "pairs_needed": "pairs.power",
    "detectable_gap": "pairs.power",
    "Trend": "trend",
    "trend_test": "trend",
    "trend_by": "trend",
    "trend_steps": "levels",
    "pass_at_k": "repetitions",
    "pass_hat_k": "repetitions",
    "reliability": "repeats",
    "RepeatsTest": "repeats",
    "repeats_test": "repeats",
    "compare_all": "pairs.pairwise",
    "Structure": "pairs.structure",
    "pair_structure": "pairs.structure",
    "compare_to_baseline": "pairs.baseline",
    "shared_tasks": "models.mix",
    "standardise": "models.mix",
    "adjust_for_tasks": "models.task_effects",
    "rank_models": "models.ranks",
    "plan": "pairs.planning",
    "mean_sequence": "sequences",
    "difference_sequence": "sequences",
    "cost_front": "models.cost",
    "LikeWithLike": "models.comparable",
    "like_with_like": "models.comparable",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.stats' has no attribute {name!r}")
    return getattr(import_module(f"evalkit.stats.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
