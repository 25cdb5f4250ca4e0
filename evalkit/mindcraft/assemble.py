"""From parsed files to outcomes of runs: which logs belong together, whose model, what definition, which scale."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from evalkit.io import FileMark, Ledger, Listing, SourceError, mark_of, paused_gc
from evalkit.mindcraft.definitions import TaskDefinitions
from evalkit.mindcraft.facts import Facts, task_facts
from evalkit.mindcraft.folders import RunFolder, Trial, expected_agents, group_by_task, split_trials
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.naming import Named, Naming
from evalkit.mindcraft.outcome import NO_TRIAL, Scale, TaskOutcome, folder_scale, run_outcome
from evalkit.mindcraft.parse import AgentOutcome, ParsedFile
from evalkit.mindcraft.scan import empty_runs, name_from, part_stray, sort_out

Missing = Literal["keep", "skip", "raise"]


class _Planned(NamedTuple):
    """A run folder with all that is known of it before its scores are read."""

    run: RunFolder
    definition: dict[str, Any] | None
    facts: Facts
    named: Named
    total: int | None
    flags: tuple[str, ...]


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
) -> tuple[Iterator[TaskOutcome], Ledger]:
    """Put parsed files together to outcomes and a ledger; each outcome is made, and its logs let go, when it is taken.

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
    naming, ledger = Naming(listing.root, layout), Ledger()
    logs = list(sort_out(parsed, naming, ledger))
    for file in near:
        name_from(file, naming)
    runs, stray = part_stray(group_by_task(logs, definitions))
    for log in stray:
        ledger.failed(log["source"], "; ".join(log["parsing_errors"]))
    runs += empty_runs(listing.files, listing.folders, runs, definitions, all_folders)
    planned: list[_Planned] = []
    facts: dict[tuple, Facts] = {}
    for run in runs:
        plan = _plan(run, definitions, naming, facts)
        if plan.definition is None and missing == "raise":
            raise SourceError(f"{run.folder}: no definition of task {run.task_id!r}")
        reason = f"no definition of task {run.task_id}"
        for log in run.logs:
            if plan.definition is None and missing == "skip":
                ledger.skipped(log["source"], reason)
            elif log["agent_log_processed"]:
                ledger.used(log["source"], ", ".join(flag for flag in log["flags"] if flag.startswith("recovered")))
            else:
                ledger.failed(log["source"], "; ".join(log["parsing_errors"]))
        if plan.definition is not None or missing == "keep":
            planned.append(plan)
    ledger.include(definitions.ledger)
    ledger.entries.sort()
    return _outcomes(_trials(planned, scale), listing.marks if original_mtimes else None), ledger


def _plan(run: RunFolder, definitions: TaskDefinitions, naming: Naming, known: dict[tuple, Facts]) -> _Planned:
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
    return _Planned(run, resolved.definition, known[key], named, results.total if results else None, flags)


def _trials(planned: list[_Planned], scale: Scale) -> list[tuple[_Planned, Trial, Scale]]:
    """Part runs by repetition, in the order of their folders, with the scale of their experiment; flag stale logs."""
    scores = defaultdict(list)
    for plan in planned:
        if plan.facts["task_type"] == "construction":
            scores[plan.named.experiment] += [log["raw_score"] for log in plan.run.logs]
    trials = []
    for plan in sorted(planned, key=lambda p: (p.run.folder, p.run.task_id)):
        used = folder_scale(plan.facts["task_type"], scores[plan.named.experiment], scale)
        own = split_trials(plan.run.logs, plan.facts["agent_count"], plan.run.prefix) or NO_TRIAL
        trials += [(plan, trial, used) for trial in own]
    _flag_stale([trial.logs for _, trial, _ in trials])
    return trials


def _flag_stale(runs: list[list[AgentOutcome]]) -> None:
    """Flag logs of which another run has the same: equal content, or an equal start."""
    first: dict[str | float, int] = {}
    repeated = set()
    for i, logs in enumerate(runs):
        for log in logs:
            repeated.update(mark for mark in _marks(log) if first.setdefault(mark, i) != i)
    for log in (log for logs in runs for log in logs):
        if not repeated.isdisjoint(_marks(log)):
            log["flags"].append("stale_copy")


def _marks(log: AgentOutcome) -> list[str | float]:
    return [mark for mark in (log["digest"], log["task_start"]) if mark]


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
        outcome["experiment"] = plan.named.fields.get("experiment") or os.path.basename(plan.named.experiment)
        outcome["experiment_total"] = plan.total
        outcome["suite"] = plan.named.fields.get("suite")
        if marks is not None:
            _add_duration(outcome, marks)
        yield outcome


def _add_duration(outcome: TaskOutcome, marks: Mapping[str, FileMark]) -> None:
    own = (log for log in outcome["agent_outcomes"] if log["task_start"] and "stale_copy" not in log["flags"])
    starts = {log["source"]: log["task_start"] for log in own}
    found = {source: marks.get(source) or mark_of(source) for source in starts}
    spans = [mark.modified - starts[source] / 1000 for source, mark in found.items() if mark]
    spans = [span for span in spans if span >= 0]  # a file that is older than its start is no original
    outcome["duration"] = max(spans, default=None)
    late = bool(spans) and max(spans) >= outcome["facts"]["timeout"]
    if late and not outcome["overall_is_successful"] and outcome["overall_completion_status"] != "TIMED_OUT":
        outcome["overall_completion_status"] = CompletionStatus.TIMED_OUT
        outcome["flags"].append("inferred_timeout")
