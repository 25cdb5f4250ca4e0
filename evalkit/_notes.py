"""Notes on results: doubts and choices, each as a code with values.

Code checks for codes (``"no_values" in notes``) and never reads the text, which ``str(notes)`` writes for people.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evalkit._text import columns_in_words, counted_noun, fill_template, format_interval, listed


class Note(NamedTuple):
    """One note. `text` is a template or function that writes it; by default, `TEXTS` has it by code."""

    code: str
    values: Mapping[str, Any] = {}
    text: str | Callable[..., str] = ""

    def __str__(self) -> str:
        return fill_template(self.text or TEXTS[self.code], self.values)


@dataclass(frozen=True)
class Notes:
    """Ordered notes on one result: false if there are none, and ``a + b`` drops duplicates."""

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
        """Return the notes without these codes."""
        return Notes(tuple(note for note in self.notes if note.code not in codes))

    def only(self, *codes: str) -> "Notes":
        """Return only the notes with these codes."""
        return Notes(tuple(note for note in self.notes if note.code in codes))

    def worded(self, texts: Mapping[str, str]) -> "Notes":
        """Replace the texts of notes by a kind's texts for their codes."""
        return Notes(tuple(note._replace(text=texts.get(note.code, note.text)) for note in self.notes))


NO_NOTES = Notes()


def note(code: str, text: str | Callable[..., str] = "", **values: Any) -> Notes:
    """Create a note from a code and the values of its text; `text` is needed if `TEXTS` does not have the code."""
    return Notes((Note(code, values, text),))


def left_out(count: int, noun: str) -> Notes:
    """Note how many were left out; return no notes if `count` is 0."""
    return note("left_out", count=count, noun=noun) if count else Notes()


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _alike(names: Sequence[str], one: str) -> str:
    options = [f"--rename {shlex.quote(f'{name}={one}')}" for name in names if name != one]
    return f"perhaps one model: {listed(names)}; {' '.join(options)} (parameter rename) merges them"


def _columns(file: str, meaning: Mapping[str, str], doubtful: Mapping[str, Any], scores: Sequence[str]) -> str:
    text = f"columns of {file}: {', '.join(r if r == name else f'{r} = {name}' for r, name in meaning.items())}"
    for role, names in doubtful.items():
        one = shlex.quote(names[0])
        text += f"; not used, since several could be {role}: {listed(names)} (--column {role}={one} takes one)"
    if {"is_successful", "score"} <= meaning.keys():
        text += f"; rates count {meaning['is_successful']}; `evalkit compare --value score` compares {meaning['score']}"
    if scores:
        text += f"; numbers not used: {listed(scores, 8)} (--column score={shlex.quote(scores[0])} makes one the score)"
    return text


def _no_model(file: str, rows: int, left: Mapping[str, int], likely: str, agents: str, n_files: int) -> str:
    runs = "1 run counts" if rows == 1 else f"{rows:,} runs count"
    models = f"{agents} names the models" if agents else f"{runs} as one model"
    text = f"no column of {file} was recognised as the model, so {models}"
    if left:
        unused = [f"{name} ({counted_noun(n, 'value')})" for name, n in left.items()]
        text += f"; not used: {listed(unused, 8)}"
    if likely:
        text += f"; if one names the model: --column model={shlex.quote(likely)} (parameter columns)"
    else:
        text += f"; {_UNNAMED}"
    if n_files > 1 and not agents:
        text += "; --compare-by source compares the files"
    return text


def _named_by_folder(models: Sequence[str]) -> str:
    text = "the runs name no model"
    if models:
        text = f"each folder or file contains runs of one model ({listed(models)})"
    text += ", so the folder's or file's name is the model's name"
    return f"{text}; --rename OLD=NEW changes it, and --compare-by model_name counts models of one name together"


def _told_apart(file: str, count: int, column: str, task: str, is_item: bool) -> str:
    rows, name = counted_noun(count, "row"), shlex.quote(column)
    text = f"taken as repetitions in spite of different values of {column}: {rows} of {file}; --column"
    if is_item:
        return f"{text} task={name} --column dataset={shlex.quote(task)} makes each value a task"
    return f"{text} dataset={name} if tasks differ, model={name} or agent={name} if these do, else repetition={name}"


def _unread(column: str, count: int, example: str) -> str:
    cells = counted_noun(count, "cell")
    return f"{cells} of {column} can't be read, such as {example!r}, and {_are(count)} missing"


def _samples_cut(tasks: Mapping[str, tuple[int, int]]) -> str:
    cut = [f"{present:,} of {of_all:,} of {task}" for task, (present, of_all) in tasks.items()]
    return f"the logs contain only some of the documents that were evaluated: {listed(cut)}"


def _unknown_records(counts: Mapping[str, int]) -> str:
    named = listed([f"{name} ({n:,})" for name, n in counts.items()], 8)
    return f"records of unknown types are left out: {named}"


def _scorer(used: Sequence[str], others: Sequence[str]) -> str:
    if not others:
        return f"score: {listed(used)}"
    return f"score: {listed(used)}; there {_are(len(others))} also {listed(others)} (--score NAME selects one)"


def _conditions_differ(conditions: Sequence[str]) -> str:
    return f"conditions differ ({_first_values(conditions)}): runs are compared only under equal conditions"


def _settings_differ(settings: Mapping[str, Sequence[str]]) -> str:
    differing = [f"{name.replace('_', ' ')} ({_first_values(values)})" for name, values in settings.items()]
    return f"models ran with different settings: {', '.join(differing)}; differences may come from these"


def _first_values(values: Sequence[str]) -> str:
    shown = "; ".join(value or "not recorded" for value in values[:4])
    return f"{shown} …" if len(values) > 4 else shown


def _sets(sets: Sequence[Sequence[str]]) -> str:
    shown = [listed(models, 2) for models in sets[:2]]
    if len(sets) > 2:
        shown.append(f"and {len(sets) - 2} more")
    return f"{len(sets)} sets of models share no tasks and can't be compared: {'; '.join(shown)}"


def _unshared(pairs: Sequence[Sequence[str]]) -> str:
    return f"pairs without a shared task: {listed((' with '.join(pair) for pair in pairs), 3)}"


def _partly(shared: Sequence[int], others: Sequence[int]) -> str:
    tasks = counted_noun(shared[0], "task") if len(shared) == 1 else f"{shared[0]:,} to {shared[1]:,} tasks"
    more = " to ".join(f"{count:,}" for count in others)
    return (
        f"the first model shares {tasks} with each other model; tasks that only one of the two ran ({more}) also "
        "count, as if they were drawn at random from the same tasks"
    )


def _not_measured(models: Sequence[tuple[str, int, int]], counted: bool) -> str:
    shown = listed((f"{model} ({n_not} of {n})" for model, n_not, n in models), 2)
    return f"not measured, and {'counted as failures' if counted else 'left out'}: {shown}"


def _only_scores(models: Sequence[str]) -> str:
    runs = f"the runs of {listed(models, 4, '{} more models')}"
    return f"{runs} have scores, which are neither successes nor failures; --value score compares mean scores"


def _none_measured(models: Sequence[str]) -> str:
    return f"no run of {listed(models, 4, '{} more models')} was measured"


def _only_copies(count: int, models: Sequence[str]) -> str:
    runs = f"all {count} runs repeat" if count > 1 else "its one run repeats"
    return f"{runs} logs of {listed(models)}"


def _absent(fewer: Sequence[Any], unrun: Sequence[Any], best: str | None = None, verdict: str = "") -> str:
    parts = []
    for what, own in (("planned tasks not run", unrun), ("fewer runs than other models on these tasks", fewer)):
        if own:
            parts.append(f"{what}: {listed((f'{name} ({n} of {most})' for name, n, most in own), 3)}")
    text = "; ".join(parts)
    if best is not None:
        text += f"; if the absent runs had failed, {best or 'no model'} would be shown to be the best"
    if verdict:
        text += f"; if the absent runs had failed, the verdict would be: {verdict}"
    return text


def _unnamed_runs(count: int, n: int, what: str, rates: Sequence[Mapping[str, Any]], is_share: bool, unit: str) -> str:
    verbs = "names no model and has" if count == 1 else "name no model and have"
    text = f"{count:,} of {counted_noun(n, 'run')} {verbs} no rank"
    for rate in rates:  # one, if any of these runs has a value
        ends = rate["estimate"], rate["low"], rate["high"]
        text += f", with a {what} of {format_interval(*ends, percent=is_share, unit=unit or None)}"
    return f"{text}; if one model made them, {_UNNAMED}"


def _copied(pairs: Sequence[tuple[str, str, int]]) -> str:
    shown = listed((f"{counted_noun(n, 'run')} of {new} copied from {old}" for new, old, n in pairs), 1)
    return f"copies are excluded from all rates: {shown}"


_UNNAMED = "--model NAME (parameter rename: unknown=NAME) names it"
TEXTS: dict[str, str | Callable[..., str]] = {
    "alike": _alike,
    "no_values": "no values",
    "one_value": "a single value has no interval",
    "one_cluster": "a single cluster has no interval",
    "one_family": "most tasks belong to a single family, so the variation between families is unknown",
    "families": "intervals are for new families of tasks, from {count:family}",
    "no_ratio": "no success, or nothing spent: no ratio",
    "all_equal": "all values are equal: their spread can't be estimated",
    "clusters_equal": "all clusters have the same mean: their spread can't be estimated",
    "cautious": "all {what} are equal: a cautious interval",
    "few": "fewer than {fewest} {what}: a rough interval",
    "few_scores": "fewer than {fewest} independent values: may be too narrow",
    "few_for": "{what} of fewer than {fewest} independent values: may be too narrow",
    "rare": "{most} or fewer successes or failures: may be too narrow, the exact interval is safer",
    "unmixed": "{most} or fewer clusters with a success, or with a failure: may be too narrow",
    "skewed": "few values for such skewed data: may be too narrow",
    "degenerate": "the statistic does not vary between resamples, or can't be computed: no interval",
    "left_out": "{count:{noun}} left out as missing",
    "no_labels": "no labels: nothing shows how the judge errs",
    "by_model": "labels are not in proportion to the models' runs, so the overall rate weights the models' rates",
    "unlabelled_models": "{count:model} without labels, taken to be like the others",
    "unlike_labels": (
        "{what}: {labelled:.2g} on average of labelled units, {others:.2g} of others; were labels drawn at random?"
    ),
    "one_person": "one person labelled",
    "no_krippendorff": "agreement of several people needs the package krippendorff",
    "no_verdict": "{count:unit} without a verdict",
    "one_label": "all labels are the same: chance alone gives full agreement",
    "all_labelled": "every unit has a label: the rate is known",
    "constant_judge": "the judge's verdicts are all equal: the rate is that of the labels",
    "no_name": "{count:run} without a model left out",
    # choices
    "columns": _columns,
    "no_model": _no_model,
    "one_model_given": _no_model,  # --model names it
    "unnamed": f"no log names a model: {_UNNAMED}",
    "told_apart": _told_apart,
    "unread": _unread,
    "unnamed_runs": _unnamed_runs,
    "scorer": _scorer,
    "samples_cut": _samples_cut,
    "unknown_records": _unknown_records,
    "without_score": "left out, as they lack this score: {datasets}",
    "turned": "lower is better for {scores}: what counts is 1 - score, or -score where it exceeds 1",
    "parent_folder": (
        "the folders above tasks name the models, and folders of the same name are one model; --layout changes this"
    ),
    "unused_definitions": (
        "task definitions in the source are not used: {files}; --tasks PATH (parameter tasks) uses them"
    ),
    "mixed_scales": (
        "construction scores of {names} are at most 1, but read as percentages because others exceed 1: "
        "if they are fractions, load them alone with --scale fraction (parameter scale)"
    ),
    "named_by_folder": _named_by_folder,
    "compared_by_folder": (
        "several folders contain runs of {models} on the same tasks, so these are compared by folder; "
        "--compare-by model_name counts them together"
    ),
    "sources_merged": (
        "runs of {models} from several sources count together; --compare-by model_name,source_name separates them"
    ),
    "filter": "only runs with {where}",
    "amounts": (
        "scores are read as amounts, as the runs left out show; without these, they look like outcomes or shares "
        "(in a table, --column success=NAME or the parameter columns reads a column as outcomes)"
    ),
    "compared_by": lambda columns: f"compared by {columns_in_words(columns)}",
    "agents_merged": "compared by model: the runs of {models} are of several agents, taken together",
    "table": "{file}: {doubts}",
    # limits of an export
    "in_metadata": "{columns}: as text in the metadata of runs",
    "unmeasured_runs": "{count:run} not measured: left out, as a score is required",
    "uncounted_runs": "{count:run} excluded from all rates, such as copies: left out",
    "runs_without_outcome": "{count:run} with a score and no outcome: `is_correct`, which is required, is false",
    "no_transcripts": "transcripts, plans and names of files: left out",
    # repetitions
    "never_repeated": "no task was run more than once{why}",
    "one_repeated": "only one task was run more than once: the variation between runs of other tasks is unknown",
    "singles": "tasks with a single run: their spread is estimated from the other tasks",
    "nothing_mixed": "no task has both successes and failures",
    "too_few_runs": "{count:task} with fewer than {runs} runs excluded, so the estimate does not cover all tasks",
    "retried_models": (
        "how often {models} ran a task depends on how its runs ended, as if some were run again until they succeeded; "
        "--where repetition={first} (parameter where) compares first runs"
    ),
    "retried": "the number of runs depends on their outcome ({method}, p = {p_value:.2g}): biased",
    # pairs
    "skewed_pair": "few tasks for such skewed differences: a difference is claimed only if p ≤ {claim_at:.2g}",
    "few_pairs": "too few tasks to estimate the skewness of scores: a difference is claimed only if p ≤ {claim_at:.2g}",
    "unseen": "p can't be below {least:.2g}: so few tasks may have missed a rare loss that would cancel the difference",
    "no_shared": "no shared tasks",
    "unpaired": "different tasks, assumed to be random samples of the same tasks",
    "partly_shared": "{a} and {b} tasks that only one of them ran, assumed to be random samples of the same tasks",
    "partly": _partly,
    "few_seeds": (
        "tasks share {seeds} seeds (or checkpoints, sessions): the interval includes the variation between them"
    ),
    "conditions_differ": _conditions_differ,
    "settings_differ": _settings_differ,
    "units_differ": "scores of {shares} are from 0 to 1, scores of {others} far above: units may differ (80% is 0.8)",
    "lower_is_better": "lower is usually better for {name}, but the highest score ranks first: change its sign or name",
    "variants": (
        "the {tasks} tasks look like variants of {few:template}; if so, the intervals are too narrow: "
        "set --cluster COLUMN (parameter cluster) to the column of their families"
    ),
    "one_shared": "a single shared task has no interval",
    "not_repeated": "a model has one run of each task, so the interval is as wide as for new tasks, which is cautious",
    "few_shared": "fewer than 2 shared tasks: the variation between tasks is unknown",
    "no_plan": "pairs are decided over {over}: no number of tasks is planned",
    "unknown_repeats": "a model has no task with several runs: the spread between runs may be any part of the total",
    "cycle": "no order: {models} form a cycle in which each is better than the next",
    "sets": _sets,
    "unshared": _unshared,
    # levels and trends
    "no_trials": "no trials",
    "one_level": "a single level has no trend",
    "outcomes_equal": "all outcomes are equal",
    "few_clusters": "too few clusters: each level needs more than one",
    "separated": "the levels separate successes from failures: the odds ratio has no bounds",
    "uneven": "clusters of some levels have many more runs than clusters of other levels",
    "unlike": "clusters of some levels vary much more than of others, so that p must be at most {claim_at:.2g}",
    "never_small": "too few clusters: no data could give p ≤ {least:.2g}",
    # models
    "on_common": "{what}on the {count} tasks that all models have",
    "tasks_differ": "on tasks that differ between models",
    "unmeasured": "no run of {model} was measured",
    "no_outcome": "no run was measured",
    "no_score": "no run has a score",
    "not_measured": _not_measured,
    "none_measured": _none_measured,
    "only_scores": _only_scores,
    "some_scores": (
        "{count:run} of {of} left out: their scores are neither successes nor failures; --value score compares scores"
    ),
    "no_run": "all runs are excluded from all rates",
    "copies": "{count:copy} left out",
    "judged": "{count:outcome} by a judge: the interval ignores the judge's errors, which `evalkit judges` corrects",
    "only_copies": _only_copies,
    "errors": "{count:failure} with an error such as {example}: only scores decide; --where error= leaves them out",
    "few_common": "fewer than 2 tasks that all models have: no {what}",
    "one_model": "there is one model",
    "same_tasks": "all models ran the same tasks",
    "incomparable": "rates are not adjusted for tasks, because some models share no tasks, types or conditions",
    "same_order": "models ran different tasks; {basis}, their order is the same as by raw rates",
    "other_order": "models ran different tasks: {one} ranks above {other} by raw rates, but not by rates {basis}",
    "absent": _absent,
    "copied": _copied,
    "of_part": "{part}: {notes}",
}
