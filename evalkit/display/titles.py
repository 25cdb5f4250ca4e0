"""Titles of columns and labels of values in formatted tables, as data."""

# Titles by the name of a column; other columns are titled by their name, with spaces for underscores
TITLES = {
    "adjusted_estimate": "adjusted for tasks",
    "attempts_a": "attempts, a",
    "attempts_b": "attempts, b",
    "attempts_at_step": "attempts at this step",
    "blocked_agents": "which agents are blocked",
    "by_achievement": "points per achievement",
    "by_hook": "points per hook",
    "change": "what changed",
    "characters_new": "characters, new storage",
    "characters_old": "characters, old storage",
    "command_count": "commands per run",
    "completed_estimate": "mean score of runs above 0",
    "completed_n": "runs above 0",
    "completion_estimate": "completion rate",
    "confirmed_estimate": "confirmed success",
    "corrected_estimate": "corrected for picking",
    "coverage": "share of all tasks",
    "cut": "results cut",
    "differ": "episodes that differ",
    "direction": "trend",
    "dominated_by": "beaten by",
    "equivalent": "shown to be equal",
    "error_category": "class of error",
    "final_system_message": "final message",
    "from_executor": "after execution",
    "from_step_evaluator": "after evaluation",
    "front_share": "share on the front",
    "function_name": "function",
    "is_successful": "success",
    "items_new": "items, new storage",
    "items_old": "items, old storage",
    "k": "runs per task (k)",
    "highest_estimate": "if those not measured had succeeded",
    "lowest_estimate": "if those not measured had failed",
    "mean_duration": "mean duration (s)",
    "mean_score": "mean score (points)",
    "mean_score_without_suspects": "mean score without suspects (points)",
    "measured_estimate": "of those measured",
    "message_count": "messages per run",
    "detectable": "difference that the tasks at hand would show",
    "model_name": "model",
    "n_blocked_agents": "blocked agents",
    "plan_availability": "plan",
    "n_clusters": "tasks",
    "n_tasks": "tasks",
    "n_measured": "measured",
    "n_not_measured": "not measured",
    "numbers_new": "numbers, new storage",
    "numbers_old": "numbers, old storage",
    "our_n": "runs, ours",
    "our_rate": "rate, ours",
    "our_successes": "successes, ours",
    "overall_completion_status": "how it ended",
    "overall_score": "score",
    "p_adjusted": "p, corrected for all pairs",
    "p_holm": "p, corrected for all models",
    "p_value": "p",
    "parsing_errors": "problems in the logs",
    "reported_estimate": "reported success",
    "result_type": "kind of result",
    "run_flags": "flags",
    "source": "file or folder",
    "std": "standard deviation",
    "task_id": "task",
    "task_type": "type of task",
    "their_n": "runs, theirs",
    "their_rate": "rate, theirs",
    "their_successes": "successes, theirs",
    "total_duration": "total duration (s)",
    "total_significant": "significant terms",
    "total_significant_a": "significant terms, a",
    "total_significant_b": "significant terms, b",
    "truncated": "result cut",
    "truncated_a": "result cut, a",
    "truncated_b": "result cut, b",
}

# What n and n_clusters count, by the word for a row of the frame that was estimated
COUNTED = {"runs": ("runs", "tasks"), "episodes": ("episodes", "tasks"), "steps": ("steps", "histories")}

STATUSES = ("overall_completion_status", "status", "ending")  # columns of how runs ended

# Values in words, by column
FLAGS = {
    "ambiguous_definition": "several definitions of the task",
    "conflicting": "final messages contradict each other",
    "extra_agent_logs": "more logs than agents",
    "facts_from_id": "task read from its id",
    "inferred_timeout": "time-out inferred from the duration",
    "layout_mismatch": "path unlike the layout",
    "long_name": "name cut to 200 characters",
    "missing_agent_logs": "fewer logs than agents",
    "near_final": "final wording among other text",
    "quoted_only": "final wording quoted only",
    "recovered_byte_order_mark": "byte order mark removed",
    "recovered_latin_1": "read as Latin-1",
    "recovered_lone_surrogate": "half a character replaced",
    "recovered_nan_literal": "bare NaN read as null",
    "recovered_utf_16": "read as UTF-16",
    "repetitions_merged": "repetitions read as one run",
    "restarted": "agent restarted",
    "scale_assumed": "scale of scores assumed",
    "score_implied": "score implied by the wording",
    "score_not_a_number": "score is no number",
    "score_out_of_range": "score out of range",
    "stale_copy": "copy of another run's log",
    "start_out_of_range": "start out of range",
    "turns_skipped": "turns without text",
    "unreadable_logs": "unreadable log",
}
TARGETS = {"new tasks": "new tasks like these", "these tasks": "these tasks, run again"}
VALUES = {"flag": FLAGS, "target": TARGETS}

WARNING = "warning"
TECHNICAL = ("method", "target", WARNING)  # how estimates were made: below a table; differing warnings in its notes
NOTES = "notes"


def title_of(column: str, estimate: str = "estimate", counted: str = "runs") -> str:
    """Return the title of a column, where `estimate` is what that column holds, and `n` counts what `counted` names."""
    n, clusters = COUNTED.get(counted, (counted, "tasks"))
    given = {"estimate": estimate, "n": n, "n_clusters": clusters}
    return given.get(column) or TITLES.get(column) or str(column).replace("_", " ")
