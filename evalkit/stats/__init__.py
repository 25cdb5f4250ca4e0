"""Estimates with intervals and honest comparisons; knows nothing of logs."""

from importlib import import_module
from typing import Any

_WHERE = {
    "Estimate": "intervals",
    "proportion_interval": "intervals",
    "rate_interval": "intervals",
    "mean_interval": "intervals",
    "estimate_by": "grouped",
    "bootstrap_interval": "resampling",
    "jackknife_interval": "resampling",
    "PairedTest": "comparison",
    "paired_difference": "comparison",
    "mcnemar_exact": "comparison",
    "sign_flip_test": "comparison",
    "holm": "multiplicity",
    "max_t": "multiplicity",
    "minimal_detectable_difference": "power",
    "pairs_needed": "power",
    "detectable_gap": "power",
    "Trend": "trend",
    "trend_test": "trend",
    "pass_at_k": "repetitions",
    "compare_all": "pairwise",
    "Structure": "structure",
    "pair_structure": "structure",
    "compare_to_baseline": "baseline",
    "shared_tasks": "mix",
    "standardise": "mix",
    "adjust_for_tasks": "task_effects",
    "LikeWithLike": "comparable",
    "like_with_like": "comparable",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.stats' has no attribute {name!r}")
    return getattr(import_module(f"evalkit.stats.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
