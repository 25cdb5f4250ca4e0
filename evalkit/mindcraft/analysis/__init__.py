"""Rates, task types, comparisons and lists of task runs: frames of runs in, frames of estimates out."""

from evalkit.mindcraft.analysis.comparison import (
    conclude_blocked,
    cooking_trend,
    focus,
    published,
    select,
)
from evalkit.mindcraft.analysis.conclusions import blocked_findings, data_findings, findings
from evalkit.mindcraft.analysis.listings import (
    ambiguous_definitions,
    describe_runs,
    event_means,
    failed_runs,
    flag_counts,
    progress,
    stale_copies,
    unused_files,
    with_difficulty,
    without_score,
    zero_scores,
)
from evalkit.mindcraft.analysis.rates import (
    both_ways,
    completion_by,
    counted,
    headline,
    overview,
    score_by,
    status_counts,
    success_by,
)
from evalkit.mindcraft.analysis.task_types import (
    construction_by_task,
    construction_scores,
    cooking,
    cooking_by_blocked,
    cooking_by_item,
    cooking_item_by_blocked,
    cooking_item_table,
    cooking_table,
    crafting_by_plan,
    crafting_groups,
    describe_scale,
)

__all__ = [
    "ambiguous_definitions",
    "blocked_findings",
    "both_ways",
    "completion_by",
    "conclude_blocked",
    "construction_by_task",
    "construction_scores",
    "cooking",
    "cooking_by_blocked",
    "cooking_by_item",
    "cooking_item_by_blocked",
    "cooking_item_table",
    "cooking_table",
    "cooking_trend",
    "counted",
    "crafting_by_plan",
    "crafting_groups",
    "data_findings",
    "describe_runs",
    "describe_scale",
    "event_means",
    "failed_runs",
    "findings",
    "flag_counts",
    "focus",
    "headline",
    "overview",
    "progress",
    "published",
    "score_by",
    "select",
    "stale_copies",
    "status_counts",
    "success_by",
    "unused_files",
    "with_difficulty",
    "without_score",
    "zero_scores",
]


def __dir__() -> list[str]:
    return sorted(__all__)
