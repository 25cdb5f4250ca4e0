"""Estimates with intervals and honest comparisons; knows nothing of logs.

Impossible arguments, such as an unknown column, bounds that values exceed or outcomes other than
0 and 1 where a rate is asked for, raise a ValueError that says what is wrong.
"""

from evalkit._lazy import door

_PLACES = {
    "intervals": (
        "Estimate proportion_interval rate_interval mean_interval positive_mean_interval ratio_interval "
        "jackknife_interval estimate_by"
    ),
    "evalkit._words": "format_interval",
    "pairs": "compare_all compare_to_baseline Structure pair_structure rank_models cost_front",
    "comparable": "LikeWithLike like_with_like",
    "trend": "Trend trend_test trend_by",
    "repeats": "pass_at_k pass_hat_k reliability RepeatsTest repeats_test",
    "planning": "plan detectable_gap",
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES)
