"""Rates, task types, comparisons and lists of task runs: frames of runs in, frames of estimates out."""

from evalkit._lazy import door

_PLACES = {
    "comparison": "conclude_blocked cooking_trend focus published select",
    "conclusions": "blocked_findings data_findings findings",
    "listings": (
        "ambiguous_definitions describe_runs event_means failed_runs flag_counts planned_tasks progress stale_copies "
        "unused_files with_difficulty without_score zero_scores"
    ),
    "rates": "completion_by counted headline overview score_by status_counts success_by with_endings",
    "task_types": (
        "construction_by_task construction_scores cooking cooking_by_blocked cooking_by_item "
        "cooking_item_by_blocked cooking_item_table cooking_table crafting_by_plan crafting_groups describe_scale"
    ),
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES)
