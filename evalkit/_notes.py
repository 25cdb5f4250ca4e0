"""Notes: what is doubtful about a result, or was chosen for it, as a code with values.

Code asks for codes (``"no_values" in notes``) and never reads the text, which ``str(notes)`` makes for readers.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evalkit._text import counted_noun, fill_template, join_first


class Note(NamedTuple):
    """One note; `text` is the template of its text, by default that of its code in `TEXTS`."""

    code: str
    values: Mapping[str, Any] = {}
    text: str = ""

    def __str__(self) -> str:
        return fill_template(self.text or TEXTS[self.code], self.values)


@dataclass(frozen=True)
class Notes:
    """Notes on one result, in their order; false without any, and ``a + b`` has each once."""

    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        return "; ".join(map(str, self.notes))

    def __repr__(self) -> str:
        return f"Notes({str(self)!r})"

    def __bool__(self) -> bool:
        return bool(self.notes)

    def __contains__(self, code: str) -> bool:
        return any(note.code == code for note in self.notes)

    def __add__(self, other: "Notes") -> "Notes":
        return Notes(self.notes + tuple(note for note in other.notes if note not in self.notes))

    def __hash__(self) -> int:
        return hash(str(self))

    def without(self, *codes: str) -> "Notes":
        """Leave out the notes with these codes."""
        return Notes(tuple(note for note in self.notes if note.code not in codes))

    def only(self, *codes: str) -> "Notes":
        """Take the notes with these codes."""
        return Notes(tuple(note for note in self.notes if note.code in codes))

    def worded(self, texts: Mapping[str, str]) -> "Notes":
        """Give the notes with these codes other templates: a kind's own words."""
        return Notes(tuple(note._replace(text=texts.get(note.code, note.text)) for note in self.notes))


NO_NOTES = Notes()


def note(code: str, text: str = "", **values: Any) -> Notes:
    """Make a note with a code, the values of its text, and the template of a code that `TEXTS` does not have."""
    return Notes((Note(code, values, text),))


def left_out(count: int, noun: str) -> Notes:
    """Note how many were left out; nothing for none."""
    return note("left_out", count=count, noun=noun) if count else Notes()


def _few(conditions: Sequence[str]) -> str:
    return "; ".join(condition or "not told" for condition in conditions[:4]) + " …" * (len(conditions) > 4)


_UNNAMED = "--model NAME (parameter rename: unknown=NAME) names it"
TEXTS: dict[str, str | Callable[..., str]] = {
    "alike": lambda names, one: (
        f"perhaps one model: {' and '.join(names)}; "
        + " ".join(f"--rename {shlex.quote(f'{name}={one}')}" for name in names if name != one)
        + " (parameter rename) reads them as one"
    ),
    "no_values": "no values",
    "one_value": "a single value has no interval",
    "one_cluster": "a single cluster has no interval",
    "one_family": "most tasks are of a single family: nothing tells how families vary",
    "families": lambda count: (
        f"intervals are for new families of tasks, of which there {'are' if count > 1 else 'is'} {count:,}"
    ),
    "no_ratio": "no success, or nothing that it took: no ratio",
    "all_equal": "all values are equal: their spread can't be estimated",
    "clusters_equal": "all clusters have the same mean: their spread can't be estimated",
    "cautious": "all {what} are equal: a cautious interval",
    "few": "fewer than {fewest} {what}: a rough interval",
    "few_scores": "fewer than {fewest} independent values: may be too narrow",
    "few_for": "{what} of fewer than {fewest} independent values: may be too narrow",
    "rare": "{most} or fewer successes or failures: may be too narrow, the exact interval is safer",
    "unmixed": "{most} or fewer clusters with a success, or with a failure: may be too narrow",
    "skewed": "few values for how skewed they are: may be too narrow",
    "degenerate": "the statistic is the same, or can't be computed, in resamples: no interval",
    "left_out": lambda count, noun: f"{counted_noun(count, noun)} left out as missing",
    "no_name": lambda count: f"{counted_noun(count, 'run')} without a model left out",
    # what was chosen
    "columns": lambda file, meaning: (
        f"columns of {file}: "
        + ", ".join(role if role == name else f"{role} = {name}" for role, name in meaning.items())
    ),
    "no_model": lambda file, rows, left, likely: (
        f"no column of {file} is known as the model, so all of {counted_noun(rows, 'run')} count as one model"
        + "; not used: " * bool(left)
        + join_first([f"{name} ({counted_noun(n, 'value')})" for name, n in left.items()], 8, " and {} more")
        + (f'; if one names the model: --column model="{likely}" (parameter columns)' if likely else f"; {_UNNAMED}")
    ),
    "unnamed": f"no log names a model: {_UNNAMED}",
    "unread": lambda column, count, example: (
        f"{counted_noun(count, 'cell')} of {column} can't be read, such as {str(example)[:40]!r}, and "
        f"{'are' if count > 1 else 'is'} missing"
    ),
    "scorer": lambda used, others: (
        f"score: {', '.join(used)}" + f"; there {'is' if len(others) == 1 else 'are'} also {', '.join(others)} "
        "(--score NAME takes one)" * bool(others)
    ),
    "named_by_folder": lambda models: (
        f"each folder holds runs of one model ({', '.join(models)}), so models are named by folder; "
        "--rename FOLDER=NAME gives another name"
    ),
    "filter": lambda where: f"only runs where {' and '.join(where)}",
    "table": "{file}: {doubts}",
    # repetitions
    "never_repeated": "no task was run more than once{why}",
    "one_repeated": "one task only was run more than once: it can't tell how runs of the others vary",
    "singles": "tasks with a single run: their spread is taken from the others",
    "nothing_mixed": "no task has both successes and failures",
    "too_few_runs": lambda count, runs: (
        f"{counted_noun(count, 'task')} with fewer than {runs} runs left out, so that this is not about all tasks"
    ),
    "retried": "the number of runs depends on their outcome ({method}, p = {p_value:.2g}): biased",
    # pairs
    "skewed_pair": "few tasks for how skewed the differences are: one is claimed from p = {claim_at:.2g} down",
    "few_pairs": "too few tasks to show how skewed scores are: a difference is claimed from p = {claim_at:.2g} down",
    "no_shared": "no shared tasks",
    "unpaired": "different tasks, taken to be drawn alike",
    "partly_shared": "{a} and {b} tasks that only one of them ran, taken to be drawn alike",
    "few_seeds": lambda seeds: (
        f"tasks share {' and '.join(map(str, seeds))} seeds (or checkpoints, sessions): "
        "as wide as the differences between these make it"
    ),
    "conditions_differ": lambda conditions: f"conditions differ ({_few(conditions)}): only equal ones are compared",
    "settings_differ": lambda settings: (
        "models did not run alike: "
        + ", ".join(f"{name.replace('_', ' ')} ({_few(values)})" for name, values in settings.items())
        + "; differences may come from that"
    ),
    "variants": (
        "the ids of the {tasks} tasks name variants of {few}: if so, intervals are far too sure; "
        "--cluster COLUMN (parameter cluster) says whose"
    ),
    "one_shared": "a single shared task has no interval",
    "not_repeated": "a model has one run of each task: as wide as for new tasks, which is cautious",
    "few_shared": "fewer than 2 shared tasks: nothing tells how tasks vary",
    "no_plan": "pairs are decided over {over}: no number of tasks is planned",
    "unknown_repeats": "a model has no task with several runs: between all and none of the spread may be that of runs",
    "cycle": lambda models: f"no order: of {', '.join(models)} each is better than another one",
    "sets": lambda sets: (
        f"{len(sets)} sets of models share no tasks and can't be compared: "
        + join_first([join_first(models, 2, " and {} more") for models in sets], 2, "; and {} more", "; ")
    ),
    "unshared": lambda pairs: (
        f"pairs without a shared task: {join_first(list(map(' and '.join, pairs)), 3, ', and {} more')}"
    ),
    # levels and trends
    "no_trials": "no trials",
    "one_level": "a single level has no trend",
    "outcomes_equal": "all outcomes are equal",
    "few_clusters": "too few clusters: need more than one per level",
    "separated": "the levels separate successes from failures: the odds ratio has no bounds",
    "uneven": "clusters of some levels hold many more runs than those of others: no trend is claimed",
    "unlike": "clusters of some levels vary much more than of others: a trend is claimed from p = {claim_at:.2g} down",
    "never_small": "too few clusters: no outcome would have a p value of {least:.2g} or less",
    # models
    "on_common": "{what}on the {count} tasks that all models have",
    "tasks_differ": "on tasks that differ by model",
    "unmeasured": "no run of {model} was measured",
    "no_outcome": "no run was measured",
    "no_score": "no run has a score",
    "not_measured": lambda models, counted: (
        f"not measured, and {'counted as failures' if counted else 'left out'}: "
        + join_first([f"{model} ({n_not} of {n})" for model, n_not, n in models], 2, " and {} more")
    ),
    "none_measured": lambda models: f"no run of {join_first(models, 4, ' and {} more models')} was measured",
    "no_run": "no run but those that count in no rate",
    "copies": lambda count: f"{counted_noun(count, 'stale copy')} left out",
    "only_copies": lambda count, models: (
        f"{f'all {count} runs hold copies' if count > 1 else 'its one run holds a copy'} of logs of {', '.join(models)}"
    ),
    "few_common": "fewer than 2 tasks that all models have: no {what}",
    "one_model": "there is one model",
    "same_tasks": "all models ran the same tasks",
    "incomparable": "no adjusted rates: no shared tasks, types or equal conditions link all models",
    "same_order": "models ran different tasks; {basis}, their order is that of the raw rates",
    "other_order": ("models ran different tasks: the raw rates put {one} before {other}, those {basis} do not"),
    "absent": lambda models, planned=False, best=None, verdict="": (
        f"fewer runs than {'planned' if planned else 'other models on these tasks'}: "
        + join_first([f"{name} ({n} of {most})" for name, n, most in models], 3, " and {} more")
        + ("" if best is None else f"; had the absent runs failed, {best or 'no model'} would be shown to be the best")
        + (f"; had the absent runs failed, the verdict would be: {verdict}" if verdict else "")
    ),
    "copied": lambda pairs: (
        "logs are copied into "
        + join_first(
            [f"{counted_noun(n, 'run')} of {new} from runs of {old}" for new, old, n in pairs], 1, " and {} more"
        )
        + ": these copies count in no rate"
    ),
    "merged": lambda count: (
        f"{counted_noun(count, 'run')} with more logs than agents, counted once by the best score: "
        "logs of several runs need a last number in their names, as in Andy_0_0.json and Andy_0_1.json"
    ),
    "of_part": "{part}: {notes}",
}
