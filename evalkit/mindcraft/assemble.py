"""From parsed files to outcomes of runs: which logs belong together, whose model, what definition, which scale."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from evalkit.io import FileMark, Ledger, Listing, SourceError, absolute, mark_of, paused_gc, plain
from evalkit.mindcraft import originals
from evalkit.mindcraft.definitions import TaskDefinitions
from evalkit.mindcraft.facts import Facts, task_facts
from evalkit.mindcraft.folders import RunFolder, Trial, expected_agents, group_by_task, split_trials
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.naming import Named, Naming
from evalkit.mindcraft.outcome import NO_TRIAL, Scale, TaskOutcome, common_scale, run_outcome
from evalkit.mindcraft.parse import AgentOutcome, ParsedFile
from evalkit.mindcraft.scan import empty_runs, name_from, part_stray, sort_out

Missing = Literal["keep", "skip", "raise"]
NEAR_FINAL_WIDTH = 200  # characters of a message in the ledger


class _Planned(NamedTuple):
    """A run folder with all that is known of it before its scores are read."""

    run: RunFolder
    definition: dict[str, Any] | None
    facts: Facts
    named: Named
    total: int | None
    flags: tuple[str, ...]
    legacy: str


class Assembled(NamedTuple):
    """What parsed files come to.

    Attributes
    ----------
    outcomes : iterator of TaskOutcome
        Each is made, and its logs let go, when it is taken.
    ledger : Ledger
    other_folders : list of dict
        Rows of `table.FOLDER_COLUMNS`: folders beside those of runs, in which no run was found.
    readable : int
        Agent logs that could be read.
    """

    outcomes: Iterator[TaskOutcome]
    ledger: Ledger
    other_folders: list[dict[str, Any]]
    readable: int


@paused_gc()
def assemble(
    parsed: Iterable[ParsedFile],
    near: Iterable[ParsedFile],
    listing: Listing,
    layout: str | None,
    definitions: TaskDefinitions,
    *,
    scale: Scale,
    missing: Missing,
    original_mtimes: bool,
    all_folders: bool = False,
) -> Assembled:
    """Put parsed files together to outcomes and a ledger.

    Parameters
    ----------
    parsed, near : iterable of ParsedFile
        The listed files, and those above them that only name models (`scan.beside`).
    listing : Listing
    layout, scale, missing, original_mtimes
        As for `load`.
    definitions : TaskDefinitions
    all_folders : bool
        Every folder without logs is a run; see `scan.empty_runs`.
    """
    naming, ledger, legacy = Naming(listing.root, layout), Ledger(), {}
    logs = list(sort_out(parsed, naming, ledger, legacy))
    for file in near:
        name_from(file, naming)
    runs, stray = part_stray(group_by_task(logs, definitions))
    for log in stray:
        ledger.failed(log["source"], "; ".join(log["parsing_errors"]))
    runs += empty_runs(listing.files, listing.folders, runs, definitions, all_folders)
    readings = {folder: originals.folder_text(tuple(texts)) for folder, texts in legacy.items()}
    planned: list[_Planned] = []
    facts: dict[tuple, Facts] = {}
    for run in runs:
        plan = _plan(run, definitions, naming, facts, readings.get(run.folder, originals.NO_FILES))
        if plan.definition is None and missing == "raise":
            raise SourceError(f"{run.folder}: no definition of task {run.task_id!r}")
        _note_logs(plan, missing, ledger)
        if plan.definition is not None or missing == "keep":
            planned.append(plan)
    ledger.include(definitions.ledger)
    ledger.entries.sort()
    marks = listing.marks if original_mtimes else None
    others = _other_folders(listing.folders, runs, readings)
    return Assembled(_outcomes(_trials(planned, scale, marks), marks), ledger, others, _readable(logs))


def _note_logs(plan: _Planned, missing: Missing, ledger: Ledger) -> None:
    """Enter the logs of a run in the ledger."""
    for log in plan.run.logs:
        if plan.definition is None and missing == "skip":
            ledger.skipped(log["source"], f"no definition of task {plan.run.task_id}")
        elif log["agent_log_processed"]:
            notes = [flag for flag in log["flags"] if flag.startswith("recovered")]
            if log["near_final_message"]:
                notes.append(f"near_final: {plain(log['near_final_message'], NEAR_FINAL_WIDTH)}")
            ledger.used(log["source"], ", ".join(notes))
        else:
            ledger.failed(log["source"], "; ".join(log["parsing_errors"]))


def _readable(logs: list[AgentOutcome]) -> int:
    return sum(log["agent_log_processed"] for log in logs)


def _other_folders(folders: list[str], runs: list[RunFolder], readings: Mapping[str, str]) -> list[dict[str, Any]]:
    """List the folders that stand beside task folders, or in a flat experiment, and hold no run."""
    experiments = {run.place if run.flat else os.path.dirname(run.place) for run in runs}
    taken = {run.place for run in runs}
    places = {folder: absolute(folder) for folder in folders}
    return [
        {"source": folder, "legacy": readings.get(folder, originals.NO_FILES)}
        for folder, place in places.items()
        if place not in taken and os.path.dirname(place) in experiments
    ]


def _plan(
    run: RunFolder, definitions: TaskDefinitions, naming: Naming, known: dict[tuple, Facts], legacy: str
) -> _Planned:
    """Find out all but the scores of a run; `known` keeps the facts of tasks that many models ran."""
    named = naming.name(run)
    if "task_id" in named.fields:
        run = run._replace(task_id=named.fields["task_id"])
    results = naming.results_for(run)
    candidates, logs = definitions.candidates(run.task_id), None
    if len(candidates) > 1:
        trials = split_trials(run.logs, expected_agents(candidates), run.prefix)
        logs = max((len(trial.logs) for trial in trials), default=0)
    resolved = definitions.resolve(run.task_id, results.task_path if results else None, logs)
    key = (run.task_id, id(resolved.definition), named.fields.get("task_type", ""))
    if key not in known:
        known[key] = task_facts(run.task_id, resolved.definition, key[-1])
    flags = ("ambiguous_definition",) * resolved.ambiguous + ("layout_mismatch",) * (not naming.fits_layout(run))
    return _Planned(run, resolved.definition, known[key], named, results.total if results else None, flags, legacy)


def _trials(
    planned: list[_Planned], scale: Scale, marks: Mapping[str, FileMark] | None
) -> list[tuple[_Planned, Trial, Scale]]:
    """Part runs by repetition, in the order of their folders, with one scale for all; flag stale logs."""
    building = (plan for plan in planned if plan.facts["task_type"] == "construction")
    used = common_scale((log["raw_score"] for plan in building for log in plan.run.logs), scale)
    trials = []
    for plan in sorted(planned, key=lambda p: (p.run.folder, p.run.task_id)):
        own = split_trials(plan.run.logs, plan.facts["agent_count"], plan.run.prefix) or NO_TRIAL
        trials += [(plan, trial, used) for trial in own]
    _flag_stale([trial.logs for _, trial, _ in trials], marks)
    return trials


def _flag_stale(runs: list[list[AgentOutcome]], marks: Mapping[str, FileMark] | None) -> None:
    """Flag logs that are copies of another run's: equal content, or an equal start of the agent of that name.

    One run of those that share a log has it for its own, and is not flagged: the one whose agents started closest to
    each other, as a left-over is older than what stands beside it; of several the one whose file is oldest, where the
    files' times are those of the experiment; else the first by folder, task and repetition.
    """
    first: dict[str | tuple, int] = {}
    shared: dict[str | tuple, dict[int, None]] = {}  # the runs that hold the same log: few logs are shared
    for i, logs in enumerate(runs):
        for log in logs:
            for mark in _marks(log):
                if (other := first.setdefault(mark, i)) != i:
                    shared.setdefault(mark, {other: None})[i] = None
    if not shared:
        return

    def rank(i: int, mark: str | tuple) -> tuple[float, float, int]:
        starts = [log["task_start"] for log in runs[i] if log["task_start"]]
        own = [log["source"] for log in runs[i] if mark in _marks(log)]
        times = [known.modified for source in own if (known := _mark(source, marks))]
        return max(starts, default=0.0) - min(starts, default=0.0), min(times, default=0.0), i

    owners = {mark: min(found, key=lambda i: rank(i, mark)) for mark, found in shared.items()}
    for i, logs in enumerate(runs):
        for log in logs:
            if any(owners.get(mark, i) != i for mark in _marks(log)):
                log["flags"].append("stale_copy")


def _mark(source: str, marks: Mapping[str, FileMark] | None) -> FileMark | None:
    """Give a file's mark, where the files' times are the experiment's own."""
    return None if marks is None else marks.get(source) or mark_of(source)


def _marks(log: AgentOutcome) -> list[str | tuple]:
    """Give what tells copies of a log: its content, and its agent with the start of its task."""
    marks: list[str | tuple] = [log["digest"]] if log["digest"] else []
    return [*marks, (log["agent_name"], log["task_start"])] if log["task_start"] else marks


def _outcomes(
    trials: list[tuple[_Planned, Trial, Scale]], marks: Mapping[str, FileMark] | None
) -> Iterator[TaskOutcome]:
    """Make the outcomes of runs, and take these off the list; with marks also their durations."""
    trials.reverse()
    while trials:
        plan, trial, scale = trials.pop()
        outcome = run_outcome(plan.run.task_id, trial, plan.definition, plan.facts, scale, plan.run.folder)
        outcome["flags"] += plan.flags
        outcome["model_name"] = plan.named.model_name
        outcome["model_source"] = plan.named.model_source
        outcome["legacy"], outcome["flat_layout"] = plan.legacy, plan.run.flat
        outcome["experiment_folder"] = plan.named.experiment
        outcome["experiment"] = plan.named.fields.get("experiment") or os.path.basename(plan.named.experiment)
        outcome["experiment_total"] = plan.total
        outcome["suite"] = plan.named.fields.get("suite")
        if marks is not None:
            _add_duration(outcome, marks)
        yield outcome


def _add_duration(outcome: TaskOutcome, marks: Mapping[str, FileMark]) -> None:
    own = (log for log in outcome["agent_outcomes"] if log["task_start"] and "stale_copy" not in log["flags"])
    starts = {log["source"]: log["task_start"] for log in own}
    found = {source: _mark(source, marks) for source in starts}
    spans = [mark.modified - starts[source] / 1000 for source, mark in found.items() if mark]
    spans = [span for span in spans if span >= 0]  # a file that is older than its start is no original
    outcome["duration"] = max(spans, default=None)
    late = bool(spans) and max(spans) >= outcome["facts"]["timeout"]
    if late and not outcome["overall_is_successful"] and outcome["overall_completion_status"] != "TIMED_OUT":
        outcome["overall_completion_status"] = CompletionStatus.TIMED_OUT
        outcome["flags"].append("inferred_timeout")
