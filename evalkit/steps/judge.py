"""Judge steps and histories without changing them: verdicts, loops, adherence to the plan, decisions of the routers."""

import json
import logging
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from itertools import repeat
from typing import Any, Literal, NamedTuple, Required, TypedDict, cast

import msgspec

from evalkit.io import plain, short_paths
from evalkit.io.text import UniqueNames
from evalkit.steps import results
from evalkit.steps.format import (
    CRITICAL,
    DEFAULTS,
    HISTORY_KEY,
    NOT_JUDGED,
    NOT_RUN,
    SILENT,
    Options,
    ResultType,
    StepRecord,
    is_talk,
    normalise_history,
    normalise_record,
    repeats_failure,
    same_call,
    time_of,
)
from evalkit.steps.literals import as_count, as_text, to_jsonable
from evalkit.steps.results import Check, Reading, Severity, check, read_result

ENOUGH_WORDS = 20  # minimum number of distinct words in results to recognise a copy without times
_CJK = r"\u3040-\u30ff\u3400-\u9fff"  # scripts without spaces: each character is a word
_WORD = re.compile(rf"(?:\b(?:np|numpy)\.\w+\()?([{_CJK}]|(?:[^\W{_CJK}]|[.+-])+)")  # matches 88 in np.int64(88)
_log = logging.getLogger(__name__)
_SEVERITIES: dict[str, Severity] = {SILENT: "error", "failure": "error", CRITICAL: "critical", "unknown": "warning"}

StoredRecords = Mapping[str, Any] | Sequence[Mapping[str, Any]]  # a state with a history, or records of any shape
Evaluator = Callable[[StepRecord, Options], Mapping[str, Any]]
EVALUATORS: dict[str, Evaluator] = {}  # users' evaluators by function name


def evaluates(function_name: str) -> Callable[[Evaluator], Evaluator]:
    """Register an evaluator for a function; it replaces an earlier one.

    It is called with the record and the options for each step that reports success, and returns keys to add to the
    evaluation. Its ``checks`` are appended to the checks of the evaluation.

    Parameters
    ----------
    function_name : str
        Name of the analysis function.

    Returns
    -------
    function
        A decorator for the evaluator.

    Examples
    --------
    >>> @steps.evaluates("my_function")  # doctest: +SKIP
    ... def judge(record, options):
    ...     return {"checks": []}
    """

    def register(evaluator: Evaluator) -> Evaluator:
        EVALUATORS[function_name] = evaluator
        return evaluator

    return register


class Evaluation(TypedDict, total=False):
    """The evaluation of a step, which can be stored as JSON.

    The last keys depend on the step's result and function; a user's evaluator may add others. A class that is derived
    from this one can declare them.
    """

    step_index: Required[int | None]
    function_name: Required[str | None]
    success: Required[bool | None]
    result_type: Required[ResultType]
    timestamp: Required[str]
    evaluation_version: Required[str]
    verdict: Required[str]
    critical_failure: Required[bool]
    silent_failure: Required[bool]
    silent_failure_reason: Required[str | None]
    truncated: Required[bool]
    attempt: Required[int]
    checks: Required[list[Check]]
    failure_evaluation: dict[str, Any]
    skipped_evaluation: dict[str, str]
    data_quality: str
    data_completeness: str
    parsing_issues: list[str]
    enrichment_evaluation: dict[str, Any]
    dea_evaluation: dict[str, Any]
    process_cells_evaluation: dict[str, Any]
    cell_counts_evaluation: dict[str, Any]
    search_evaluation: dict[str, Any]
    visualization_evaluation: dict[str, Any]
    function_evaluation: str
    evaluator_error: str
    # of the workflow's node
    record_id: str
    attempts_at_step: int
    retry_cap_reached: bool


class TurnPart(NamedTuple):
    """What a turn of a history's transcript shows."""

    part: Literal["thread", "call", "result"]
    position: int = 0  # of the record


@dataclass(frozen=True)
class History:
    """One history, with its readings and evaluations, each computed once."""

    source: str  # path of the file
    thread: str  # thread of the checkpoint; empty for other files
    records: list[StepRecord]
    plan: Any = None  # None if no plan was stored
    label: str = ""  # unique within one load
    options: Options = DEFAULTS  # settings for normalising and judging the records
    copy_of: str | None = None  # label of the history with the same executions, which counts instead
    run_id: str | None = None  # None for records that were not read from a file

    @cached_property
    def readings(self) -> list[Reading]:
        """The parsed result of each record."""
        return list(map(read_result, self.records, repeat(self.options)))

    @cached_property
    def turns(self) -> list[TurnPart]:
        """What each turn of the transcript shows, in order: the thread, if there is one, then calls and results."""
        turns = [TurnPart("thread")] if self.thread else []
        for position in range(len(self.records)):
            turns += [TurnPart("call", position), TurnPart("result", position)]
        return turns

    @cached_property
    def turns_of_results(self) -> list[int]:
        """The number of the turn, from 1, that shows the result of each record."""
        return [number for number, turn in enumerate(self.turns, 1) if turn.part == "result"]

    @cached_property
    def evaluations(self) -> list[Evaluation]:
        """The evaluation of each record; see `evaluate_step`."""
        evaluations: list[Evaluation] = []
        before = None
        attempt = 1
        for record, reading in zip(self.records, self.readings, strict=True):
            attempt = attempt + 1 if before and repeats_failure(before, record) else 1
            evaluations.append(evaluate_record(record, reading, attempt, self.options))
            before = record
        return evaluations


def as_history(records: History | StoredRecords, options: Options | None = None) -> History:
    """Return a `History` unchanged, or with `options` if given; build one from a list of records or from a state."""
    if isinstance(records, History):
        return records if options is None or options is records.options else replace(records, options=options)
    options = options or DEFAULTS
    stored = records.get(HISTORY_KEY) if isinstance(records, Mapping) else records
    return History("", "", normalise_history(to_jsonable(stored), options), options=options)


def histories_of(histories: Iterable[tuple], steps: Iterable[tuple], options: Options = DEFAULTS) -> list[History]:
    """Build histories from rows (source, thread, plan) and (source, thread, entry), with labels like ``c.db · t1``."""
    plans = defaultdict[str, dict[str, Any]](dict)  # by source, then by thread
    for source, thread, plan in histories:
        plans[source][thread] = None if plan is None else msgspec.json.decode(plan)
    entries = defaultdict[tuple[str, str], list[Any]](list)
    for source, thread, entry in steps:
        entries[source, thread].append(msgspec.json.decode(entry))
    paths, unique = short_paths(plans), UniqueNames("{} #{}")
    found: list[History] = []
    for source, threads in plans.items():
        for thread, plan in threads.items():
            label = unique(f"{paths[source]} · {thread}" if thread else paths[source])
            records = normalise_history(entries[source, thread], options)
            found.append(History(source, thread, records, plan, label, options))
    for i, original in find_copies(found).items():
        found[i] = replace(found[i], copy_of=found[original].label)
    return found


def find_copies(histories: Sequence[History]) -> dict[int, int]:
    """Find histories that repeat another one; return the position of the original by the position of the copy.

    Calls, errors, results and known times must be equal; a cut result must equal the beginning of the other one. A copy
    may be any contiguous part of its original if all times are known. If not, its results must contain at least
    `ENOUGH_WORDS` distinct words, because runs that fail at once look the same.
    """
    calls = list[list[tuple]]()
    times = list[list[Any]]()
    order = list[tuple]()  # of two alike histories, the first in this order is the original
    for i, history in enumerate(histories):
        calls.append([])
        times.append([])
        n_cut = 0
        for record in history.records:
            # old files store numbers as text, so parameters are compared as words
            parameters = _WORD.findall(json.dumps(record["step"]["parameters"], sort_keys=True))
            calls[i].append((record["step"]["function_name"], tuple(parameters), record["success"], record["error"]))
            times[i].append(time_of(record) or record["timestamp"])
            n_cut += "truncated" in record["result_metadata"]
        if calls[i]:
            order.append((-len(calls[i]), n_cut, history.plan is None, i))
    words = cache(lambda i: list(map(_words_of, histories[i].records)))

    def repeats(i: int, original: int, start: int) -> bool:
        n = len(calls[i])
        if start and (not times[i][0] or times[i][0] != times[original][start]):  # without its times, a part is no copy
            return False
        if calls[i] != calls[original][start : start + n]:
            return False
        are_known = True
        for one, other in zip(times[i], times[original][start:], strict=False):
            if one and other and one != other:
                return False
            are_known = are_known and bool(one and other)
        different = set[str]()
        for own, others in zip(words(i), words(original)[start:], strict=False):
            if not _agree(own, others):
                return False
            different.update(own[0])
        return are_known or (n >= len(calls[original]) and len(different) >= ENOUGH_WORDS)

    copies = dict[int, int]()
    places = defaultdict[tuple, list[tuple[int, int]]](list)  # originals, and positions in them, by call
    for *_, i in sorted(order):
        for original, start in places[calls[i][0]]:
            if repeats(i, original, start):
                copies[i] = original
                break
        else:
            for start, call in enumerate(calls[i]):
                places[call].append((i, start))
    return copies


def _agree(one: tuple[list[str], bool], other: tuple[list[str], bool]) -> bool:
    """Return whether two results are equal, or the shorter one was cut and the other begins with it."""
    (words, is_cut), (longer, _) = sorted((one, other), key=lambda result: len(result[0]))
    return words == (longer[: len(words)] if is_cut else longer)


def _words_of(record: StepRecord) -> tuple[list[str], bool]:
    """Return the words of a successful step's result, and whether it was cut; the last word of a cut one is dropped."""
    result, is_cut = record["result"], "truncated" in record["result_metadata"]
    if record["success"] is not True or not result or result in results.NOTHING:
        return [], False
    words = [word for word in _WORD.findall(str(result)) if word not in ("None", "nan")]
    return words[:-1] if is_cut else words, is_cut


def evaluate_history(records: History | StoredRecords, options: Options | None = None) -> list[Evaluation]:
    """Judge every step of a history.

    Parameters
    ----------
    records : History, or mappings
        A history, a list of records of any shape, or a state that contains one.
    options : Options
        Settings of the judge.

    Returns
    -------
    list of Evaluation
        One evaluation per record, as from `evaluate_step`.

    Examples
    --------
    >>> len(steps.evaluate_history(logs.histories[0])) > 0
    True
    """
    return as_history(records, options).evaluations


def evaluate_step(
    execution: Mapping[str, Any], state: Mapping[str, Any] | None = None, options: Options = DEFAULTS
) -> Evaluation:
    """Judge one executed step; never raises because of the contents of a record.

    If the ``execution_history`` of `state` ends with the record, its earlier failed attempts are counted.

    Parameters
    ----------
    execution : mapping
        The record, in any shape.
    state : mapping, optional
        State of the workflow.
    options : Options
        Settings of the judge.

    Returns
    -------
    Evaluation
        The evaluation, a dictionary that can be stored as JSON; docs/steps.md lists its keys.

    Examples
    --------
    >>> steps.evaluate_step({"function_name": "dea", "success": False, "error": "no cells"})["success"]
    False
    """
    state = state if isinstance(state, Mapping) else {}
    record = normalise_record(to_jsonable(execution), options)
    history, attempt = state.get(HISTORY_KEY), 1
    if isinstance(history, list) and history and (history[-1] is execution or history[-1] == execution):
        for raw in reversed(history[:-1]):
            if not repeats_failure(normalise_record(to_jsonable(raw), options), record):
                break
            attempt += 1
    if record["step_index"] is None:
        record["step_index"] = as_count(state.get("current_step_index"))
    return evaluate_record(record, read_result(record, options), attempt, options)


def outcome(record: StepRecord, reading: Reading, options: Options) -> tuple[str, str | None]:
    """Return the verdict on a step (of `VERDICTS`) and, for a silent failure, the reason from its error or result."""
    function = record["step"]["function_name"]
    if record["result_type"] == "skipped":
        return "skipped", None
    if record["success"] is True:
        error = f"an error is recorded: {record['error'][: results.MOST_SHOWN]}" if record["error"] else reading.failure
        return ("success", None) if is_talk(function) or not error else (SILENT, error)
    error_class = (record["error_type"] or "").rpartition(".")[2]
    classes = "|".join(map(re.escape, sorted(options.critical_errors))) or "(?!)"  # matches nothing
    pattern = "|".join([rf"\b(?:{classes})\b", *options.critical_patterns])  # for messages: the class may be missing
    if error_class in options.critical_errors or re.search(pattern, record["error"] or ""):
        return CRITICAL, None
    return ("unknown" if record["success"] is None else "failure"), None


def evaluate_record(record: StepRecord, reading: Reading, attempt: int, options: Options) -> Evaluation:
    """Judge the outcome and result of a normalised record, which is attempt number `attempt` (from 1) at its call."""
    function, kind = record["step"]["function_name"], record["result_type"]
    verdict, silent = outcome(record, reading, options)
    critical, why = verdict == CRITICAL, silent or ""
    added, checks = dict[str, Any](), list[Any]()
    if verdict == "skipped":
        why = str(record["step"].get("skip_reason") or "")
        added["skipped_evaluation"] = {"skip_reason": why, "status": "skipped"}
    elif record["success"] is not True:
        default = "The record does not show whether the step succeeded" if verdict == "unknown" else "Unknown error"
        why = record["error"] or default
        added["failure_evaluation"] = {
            "error_message": why,
            "error_type": record["error_type"],
            "error_category": "system_error" if critical else "analysis_error",
            "suggested_action": "abort_workflow" if critical else "continue_with_caution",
        }
    elif kind in ("structured", "text"):
        has_failed = bool(reading.failure and (silent or record["error"]))
        added, made = _judge_structure(record, reading, has_failed)
        checks.append(made)

    if verdict in ("success", SILENT):
        own = EVALUATORS.get(function or "")
        if own is None:
            added |= {"function_evaluation": "generic_success"} if reading.evaluation is None else reading.evaluation
            checks += reading.checks
        else:
            try:
                given = to_jsonable(dict(own(record, options)))
                checks += [dict(one) for one in given.pop("checks", [])]
                added |= given
            except Exception as error:  # a user's evaluator may raise anything; the workflow must continue
                _log.warning("the evaluator of %s failed: %s", plain(function), plain(error))
                added["evaluator_error"] = text = f"{type(error).__name__}: {error}"
                checks.append(check("evaluator", None, "failed", text, "error"))

    score = None if verdict in NOT_JUDGED else verdict == "success"
    first = [check("outcome", score, verdict, why, _SEVERITIES.get(verdict, "info"))]
    if attempt > 1:
        loop = record["success"] is False and attempt >= options.loop_length
        label, text = "loop" if loop else "retry", f"attempt {attempt} with the same parameters"
        first.append(check("attempts", not loop, label, text, "error" if loop else "info"))
    try:
        timestamp = datetime.fromisoformat(record["timestamp"] or "").isoformat()
    except ValueError:
        timestamp = datetime.now(UTC).isoformat(timespec="seconds")
    evaluation: dict[str, Any] = {
        "step_index": record["step_index"],
        "function_name": function,
        "success": record["success"],
        "result_type": kind,
        "timestamp": timestamp,
        "evaluation_version": "v1_checking_only",
        "verdict": verdict,
        "critical_failure": critical,
        "silent_failure": silent is not None,
        "silent_failure_reason": silent,
        "truncated": reading.is_cut,
        "attempt": attempt,
        "checks": [*first, *checks],
    }
    return cast(Evaluation, evaluation | added | evaluation)  # added keys never replace these


def _judge_structure(record: StepRecord, reading: Reading, has_failed: bool) -> tuple[dict[str, Any], Check]:
    """Judge a result stored as a structure or as text; return the keys to add to the evaluation, and the check."""
    function, result = record["step"]["function_name"], record["result"]
    analysis = results.ANALYSES.get(function or "")
    is_text, is_cut = record["result_type"] == "text", reading.is_cut
    quality, issues = reading.quality, list[str]()
    if is_cut:
        issues = ["truncation_likely"]
    elif not is_text and not isinstance(result, analysis.types if analysis else (dict, list, str, int, float)):
        given = "nothing" if result is None else type(result).__name__
        quality, issues = results.UNEXPECTED, [f"the result is {given}, which {function} does not return"]
    elif not is_text:
        only_status = reading.status not in (None, results.LEAF_NODE)
        issues = [f"only a status was returned: {reading.status}"] if only_status else reading.issues
    is_empty = has_failed or reading.status or result is None or quality == results.UNEXPECTED or reading.nothing_new
    completeness = "complete"
    if is_cut:
        completeness = "limited"
    elif is_empty:
        completeness = "none"
    elif issues:
        completeness = "partial"
    if is_text:
        why = "only the beginning of the result was kept" if is_cut else ""
        made = check("text_kept", not is_cut, completeness, why, "warning" if is_cut else "info")
    else:
        severity: Severity = "info"
        if quality == results.UNEXPECTED:
            severity = "error"
        elif issues:
            severity = "warning"
        made = check("structure", not issues, completeness, "; ".join(issues), severity)
    return {"data_quality": quality, "data_completeness": completeness, "parsing_issues": issues}, made


class Loop(NamedTuple):
    """Consecutive failures of one call: position of the first, their number, and the function."""

    position: int
    length: int
    function_name: str | None


class PlannedStep(NamedTuple):
    """The outcome of one planned step: `status` is the verdict of its last attempt, or ``not run``."""

    position: int
    function_name: str
    status: str
    attempts: int


def planned_steps(plan: Any) -> Sequence[Any]:
    """Return the steps of a plan, which is a list or a mapping with a list under ``steps``."""
    steps = plan.get("steps") if isinstance(plan, Mapping) else plan
    return steps if isinstance(steps, (list, tuple)) else []


def plan_adherence(
    records: History | StoredRecords, plan: StoredRecords | None = None, options: Options | None = None
) -> list[PlannedStep]:
    """Return the outcome of every planned step.

    Each planned step is matched with the first call of its function, and of its parameters if the plan states them,
    that no earlier planned step was matched with. The last retry of this call decides the status. The adherence is the
    share of successes.

    Parameters
    ----------
    records : History, or mappings
        A history, a list of records of any shape, or a state that contains one.
    plan : mapping or sequence of mappings, optional
        A list of steps, or a mapping with ``steps``; by default the plan of the history.
    options : Options
        Settings of the judge.

    Returns
    -------
    list of PlannedStep
        One per planned step, except answers and questions to the user and steps without a function.

    Examples
    --------
    >>> steps.plan_adherence([], [])
    []
    """
    history = as_history(records, options)
    steps = planned_steps(history.plan if plan is None else plan)
    planned, taken = list[PlannedStep](), set[int]()
    latest = dict[tuple, list[int]]()  # positions of the latest call and its retries, by function and parameters
    calls = defaultdict[tuple, deque[list[int]]](deque)  # all calls, by the same key and by function alone
    for i, record in enumerate(history.records if steps else []):
        key = (record["step"]["function_name"], json.dumps(record["step"]["parameters"], sort_keys=True))
        if key in latest and history.records[latest[key][-1]]["success"] is False:
            latest[key].append(i)
        else:
            latest[key] = [i]
            calls[key].append(latest[key])
            calls[key[:1]].append(latest[key])
    for step in steps:
        function = as_text(step.get("function_name")) if isinstance(step, Mapping) else None
        if function is None or is_talk(function):
            continue
        parameters = step.get("parameters")
        is_given = isinstance(parameters, Mapping)
        queue = calls[(function, json.dumps(to_jsonable(parameters), sort_keys=True)) if is_given else (function,)]
        while queue and queue[0][0] in taken:
            queue.popleft()
        attempts = queue.popleft() if queue else []
        taken |= set(attempts)
        status = history.evaluations[attempts[-1]]["verdict"] if attempts else NOT_RUN
        planned.append(PlannedStep(len(planned), function, status, len(attempts)))
    return planned


def find_loops(records: History | StoredRecords, options: Options | None = None) -> list[Loop]:
    """Find series of failures of the same function with the same parameters.

    Parameters
    ----------
    records : History, or mappings
        A history, a list of records of any shape, or a state that contains one.
    options : Options
        Settings of the judge.

    Returns
    -------
    list of Loop
        Series of at least ``options.loop_length`` failures.

    Examples
    --------
    >>> steps.find_loops([])
    []
    """
    history, loops = as_history(records, options), dict[int, Loop]()  # by position of the first failure
    for i, evaluation in enumerate(history.evaluations):
        attempt = evaluation["attempt"]
        if evaluation["success"] is False and attempt >= history.options.loop_length:
            loops[i - attempt + 1] = Loop(i - attempt + 1, attempt, evaluation["function_name"])
    return list(loops.values())


def executions(backwards: Iterable[StepRecord], index: int) -> int:
    """Count how often in a row the step of the newest (first) record ended alike; 1 if it advanced without failure."""
    backwards = iter(backwards)
    newest, n = next(backwards), 1
    step, has_failed = newest["step_index"], newest["success"] is False
    if not has_failed and (step is None or index > step):
        return 1
    for record in backwards:
        if record["step_index"] != step or record["success"] != newest["success"]:
            break
        if not (has_failed and step is not None) and not same_call(record, newest):
            break  # a different call counts only for a failed step with an index
        n += 1
    return n


def route_after(evaluation: Mapping[str, Any], index: int, n_steps: int) -> str:
    """Return the evaluator's route: ``abort`` (critical or stuck), ``complete`` (end of the plan) or ``continue``."""
    if evaluation.get("critical_failure"):
        return "abort"
    if index >= n_steps:
        return "complete"
    return "abort" if evaluation.get("retry_cap_reached") else "continue"


def end_of_route(records: History | StoredRecords) -> tuple[str, int]:
    """Return where and how the routers of the workflow would have ended a history.

    Parameters
    ----------
    records : History, or mappings
        A history, a list of records of any shape, or a state that contains one.

    Returns
    -------
    tuple of str and int
        ``abort`` or ``complete``, ``continue`` if no router ended it, or an empty string without records; and the
        number of records up to this point.

    Examples
    --------
    >>> steps.end_of_route([])
    ('', 0)
    """
    history, route = as_history(records), ""
    indices = [record["step_index"] or 0 for record in history.records]
    n_steps = len(planned_steps(history.plan)) or max(indices, default=-1) + 1  # without a plan: steps that ran
    for i, record in enumerate(history.records):
        # if the history did not advance, a success still moves the index by one
        has_advanced = i + 1 < len(indices) and indices[i + 1] > indices[i]
        index = indices[i + 1] if has_advanced else indices[i] + (record["success"] is True)
        tries = executions((history.records[j] for j in range(i, -1, -1)), index)
        judged = history.evaluations[i] | {"retry_cap_reached": tries >= history.options.retry_cap}
        # past the end of the plan, the executor ends the workflow without judging this step
        route = "complete" if index > n_steps else route_after(judged, index, n_steps)
        if route != "continue":
            return route, i + 1
    return route, len(history.records)
