"""Frames of runs in, frames of estimates out: the door to rates, task types, comparisons and lists."""

from evalkit.mindcraft.by_task import (
    construction_scores,
    cooking,
    cooking_by_blocked,
    cooking_by_item,
    cooking_item_by_blocked,
    crafting_by_plan,
    crafting_groups,
)
from evalkit.mindcraft.comparison import (
    compare_models,
    conclude_blocked,
    cooking_trend,
    focus,
    pass_at,
    published,
    select,
)
from evalkit.mindcraft.legacy import legacy_summary
from evalkit.mindcraft.lists import (
    ambiguous_definitions,
    describe_runs,
    event_means,
    failed_runs,
    flag_counts,
    progress,
    unused_files,
    with_difficulty,
    without_score,
    zero_scores,
)
from evalkit.mindcraft.rates import both_ways, completion_by, overview, score_by, status_counts, success_by

__all__ = [
    "ambiguous_definitions",
    "both_ways",
    "compare_models",
    "completion_by",
    "conclude_blocked",
    "construction_scores",
    "cooking",
    "cooking_by_blocked",
    "cooking_by_item",
    "cooking_item_by_blocked",
    "cooking_trend",
    "crafting_by_plan",
    "crafting_groups",
    "describe_runs",
    "event_means",
    "failed_runs",
    "flag_counts",
    "focus",
    "legacy_summary",
    "overview",
    "pass_at",
    "progress",
    "published",
    "score_by",
    "select",
    "status_counts",
    "success_by",
    "unused_files",
    "with_difficulty",
    "without_score",
    "zero_scores",
]
