"""The words that every layer needs: numbers with their intervals, counts, hints, and notes on what is doubtful.

The sentences of reports, which are made of them, are those of `evalkit.display.words`. A note is a code with values:
code asks for codes (``"no_values" in notes``), and never reads the text; ``str(notes)`` makes it, for readers.
"""

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

_MOST_LISTED = 20  # names in a hint


def as_number(value: Any) -> float | None:
    """Convert a value to a Python number; None where it is missing."""
    try:
        as_float = float(value)
    except TypeError:  # None, and what stands for a missing value in pandas
        return None
    if math.isnan(as_float):
        return None
    return as_float if isinstance(value, float) or not as_float.is_integer() else int(value)


def format_interval(
    estimate: Any, low: Any, high: Any, *, percent: bool = True, digits: int = 2, unit: str | None = None
) -> str:
    """Write an estimate with its interval: ``63 % [52, 73]``, ``1.25 [0.80, 1.70]``, ``–`` where there is none.

    Shares from 0 to 1 are written as percentages if `percent`, small ones with a decimal; others with so many `digits`.
    The `unit` stands behind the estimate, by default ``%`` for percentages.
    """
    estimate, low, high = as_number(estimate), as_number(low), as_number(high)
    if estimate is None:
        return "–"
    scale, digits = (100, 0 if abs(estimate) >= 0.0995 or estimate == 0 else 1) if percent else (1, digits)
    if low is not None and high is not None and low < high:
        digits += round(low * scale, digits) == round(high * scale, digits)  # no interval has a width of 0
    form = f"z.{digits}f"
    text = f"{estimate * scale:{form}} {'%' * percent if unit is None else unit}".rstrip()
    return text if low is None or high is None else f"{text} [{low * scale:{form}}, {high * scale:{form}}]"


def as_list(value: str | Iterable[str]) -> list[str]:
    """Return texts as a list; a text, as papermill passes a single one for a list, is a list of one."""
    return ([value] if value else []) if isinstance(value, str) else list(value)


def counted_noun(n: int, noun: str) -> str:
    """Format a count with its noun: ``1 run``, ``1,200 runs``, ``2 histories``."""
    return f"{n:,} {noun if n == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    return f"{noun[:-1]}ies" if noun.endswith(("ry", "py")) else f"{noun}s"


def sentence(text: object) -> str:
    """Return a text with a capital at its beginning, unless it begins with a name such as a file's, and a full stop."""
    words = str(text)
    if words.partition(" ")[0].rstrip(":,;").isalpha():
        words = f"{words[:1].upper()}{words[1:]}"
    return words if words.endswith(".") else f"{words}."


def join_first(texts: Sequence[str], most: int, rest: str, between: str = ", ") -> str:
    """Join the first texts; `rest` is the template for the number of the others."""
    return between.join(texts[:most]) + (rest.format(len(texts) - most) if len(texts) > most else "")


def did_you_mean(name: str, there: Iterable[object], *, cutoff: float = 0.6) -> str:
    """Return the end of a message on an unknown name: "did you mean 'x'?" or "there are 'x', 'y'".

    `cutoff` is how similar a name must be, from 0 to 1.
    """
    known = list(map(str, there))
    if near := get_close_matches(name, known, 1, cutoff):
        return f"did you mean {near[0]!r}?"
    more = f" and {len(known) - _MOST_LISTED} more" * (len(known) > _MOST_LISTED)
    return f"there {'are' if len(known) > 1 else 'is'} {', '.join(map(repr, known[:_MOST_LISTED])) or 'none'}{more}"


def check_columns(table: Iterable[object], *names: str | None) -> None:
    """Raise ValueError for the first column that a frame does not have; None is ignored."""
    there = list(table)
    for name in names:
        if name is not None and name not in there:
            raise ValueError(f"no column {name!r}; {did_you_mean(name, there, cutoff=0.4)}")


def fill_template(template: str | Callable[..., str], values: Mapping[str, Any]) -> str:
    """Make a text from a template, as for ``str.format``, or by a function of values."""
    return template.format(**values) if isinstance(template, str) else template(**values)


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
