"""Judge one step and a whole history (checks only, nothing is ever changed): verdicts, loops, plan, tool calls."""

import json
import logging
import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import product, repeat, takewhile
from typing import Any, Literal, NamedTuple, get_args

from evalkit.io import plain
from evalkit.steps import results
from evalkit.steps.format import (
    CRITICAL,
    DEFAULTS,
    HISTORY_KEY,
    NOT_RUN,
    PSEUDO_STEPS,
    SILENT,
    Options,
    StepRecord,
    cell_type_of,
    count,
    name,
    truncated,
)
from evalkit.steps.normalise import normalise_history, normalise_record, repeats_failure, to_jsonable
from evalkit.steps.results import Check, Reading, Severity, check, read_result

EVALUATION_VERSION = "v1_checking_only"
RULE = "=" * 60
_log = logging.getLogger(__name__)
_OUTCOMES: dict[str, tuple[int | None, Severity]] = {  # score and severity
    "success": (1, "info"),
    SILENT: (0, "error"),
    "failure": (0, "error"),
    CRITICAL: (0, "critical"),
    "skipped": (None, "info"),
    "unknown": (None, "warning"),
}

Mode = Literal["strict", "unordered", "subset", "superset"]
Evaluator = Callable[[StepRecord, Options], Mapping[str, Any]]
EVALUATORS: dict[str, Evaluator] = {}  # of users, by function name


def evaluates(function_name: str) -> Callable[[Evaluator], Evaluator]:
    """Register an evaluator for a function, or for all functions with a common prefix: a name that ends in _ or *.

    The evaluator gets the record and the options of every successful step and returns the keys it adds to the
    evaluation; its ``checks`` are appended to the checks. It replaces what evalkit adds for that function, and the
    latest registration counts.
    """

    def register(evaluator: Evaluator) -> Evaluator:
        EVALUATORS[function_name] = evaluator
        return evaluator

    return register


@dataclass(frozen=True)
class History:
    """One history, with what its results say and how it is judged; each is worked out once."""

    source: str  # path of the file
    thread: str  # of a checkpoint; empty for other files
    records: list[StepRecord]
    plan: Any = None  # if it was stored
    label: str = ""  # that tells it apart from those it was read with
    options: Options = DEFAULTS  # it was normalised with, and is judged by

    @cached_property
    def readings(self) -> list[Reading]:
        """What the result of each record says."""
        return list(map(read_result, self.records, repeat(self.options)))

    @cached_property
    def attempts(self) -> list[int]:
        """How often the call of each record was made consecutively up to it, each time before having failed."""
        counts = [1] * len(self.records)
        for i in range(1, len(counts)):
            if repeats_failure(self.records[i - 1], self.records[i]):
                counts[i] += counts[i - 1]
        return counts

    @cached_property
    def evaluations(self) -> list[dict[str, Any]]:
        """The evaluation of each record; see `evaluate_step`."""
        return list(map(evaluate_record, self.records, self.readings, self.attempts, repeat(self.options)))


def as_history(records: Any, options: Options | None = None) -> History:
    """Return a history as it is, or with other options if given; normalise anything else into one."""
    if isinstance(records, History):
        return records if options is None or options is records.options else replace(records, options=options)
    options = options or DEFAULTS
    return History("", "", normalise_history(records, options), options=options)


def each_record(
    histories: Iterable[History], function: str | None = None
) -> Iterator[tuple[dict[str, Any], StepRecord, Reading]]:
    """Yield records of histories, each with the columns of `table.RECORD` and what its result says.

    Of all functions or, if one is named, of its steps that report success.
    """
    for history in histories:
        for position, (record, reading) in enumerate(zip(history.records, history.readings, strict=True)):
            name = record["step"]["function_name"]
            if function is None or (name == function and record["success"] is True):
                ids = {"history": history.label, "position": position, "function_name": name}
                yield ids | {"cell_type": cell_type_of(record)}, record, reading


def evaluate_history(records: Any, options: Options | None = None) -> list[dict]:
    """Judge every step of a history, or list of records; one evaluation per record, as of `evaluate_step`."""
    return as_history(records, options).evaluations


def evaluate_step(execution: Any, state: Mapping[str, Any] | None = None, options: Options = DEFAULTS) -> dict:
    """Judge one executed step, given as a record of any shape; never raises for what a record holds.

    If the ``execution_history`` of a workflow's `state` ends with the record, repeated attempts are counted. Returns a
    JSON-able dictionary: always step_index, function_name, success, result_type, timestamp (the record's, if it has
    one, else now), evaluation_version, verdict, critical_failure, silent_failure (and silent_failure_reason),
    truncated, attempt and checks. A failure adds failure_evaluation; a success adds the keys of its kind of result
    and its function's evaluator. The keys are listed in the kit's documentation.
    """
    state = state if isinstance(state, Mapping) else {}
    record = normalise_record(to_jsonable(execution), options)
    history, attempt = state.get(HISTORY_KEY), 1
    if isinstance(history, list) and history and (history[-1] is execution or history[-1] == execution):
        before = (normalise_record(to_jsonable(raw), options) for raw in reversed(history[:-1]))
        attempt += sum(1 for _ in takewhile(lambda one: repeats_failure(one, record), before))
    if record["step_index"] is None:
        record["step_index"] = count(state.get("current_step_index"))
    return evaluate_record(record, read_result(record, options), attempt, options)


def outcome(record: StepRecord, reading: Reading, options: Options) -> tuple[str, str | None]:
    """Return how a step ended: one of `VERDICTS`, and the reason of a silent failure.

    A step that reports success has failed in silence if an error is recorded beside it or its result says so. What the
    assistant says (pseudo-steps) never counts. The outcome is unknown if the record does not say.
    """
    function = record["step"]["function_name"]
    if record["result_type"] == "skipped":
        return "skipped", None
    if record["success"] is True:
        is_talk = not function or function in PSEUDO_STEPS
        error = f"an error is recorded: {record['error'][: results.MOST_SHOWN]}" if record["error"] else reading.failure
        return ("success", None) if is_talk or not error else (SILENT, error)
    if options.is_critical(record["error_type"], record["error"]):
        return CRITICAL, None
    return ("unknown" if record["success"] is None else "failure"), None


def evaluate_record(record: StepRecord, reading: Reading, attempt: int, options: Options) -> dict[str, Any]:
    """Judge a normalised record, the `attempt`-th at its step, by its outcome, its structure and its function."""
    function, kind = record["step"]["function_name"], record["result_type"]
    verdict, silent = outcome(record, reading, options)
    critical, why = verdict == CRITICAL, silent or ""
    added, checks = dict[str, Any](), list[Any]()
    if verdict == "skipped":
        why = str(record["step"].get("skip_reason") or "")
        added["skipped_evaluation"] = {"skip_reason": why, "status": "skipped"}
    elif record["success"] is not True:
        default = "The record does not say whether the step succeeded" if verdict == "unknown" else "Unknown error"
        why = record["error"] or default
        added["failure_evaluation"] = {
            "error_message": why,
            "error_type": record["error_type"],
            "error_category": "system_error" if critical else "analysis_error",
            "suggested_action": "abort_workflow" if critical else "continue_with_caution",
        }
    elif kind == "validation":
        status = record["result"].get("status") if isinstance(record["result"], Mapping) else None
        added["validation_evaluation"] = {"status": status, "result": record["result"]}
    elif kind in ("structured", "text"):
        has_failed = bool(reading.failure and (silent or record["error"]))
        added, made = _judge_structure(record, reading, has_failed)
        checks.append(made)

    if verdict in ("success", SILENT):
        called = function or ""
        prefixes = [key for key in EVALUATORS if key.endswith(("_", "*")) and called.startswith(key.rstrip("*"))]
        own = EVALUATORS.get(called) or EVALUATORS.get(max(prefixes, key=len, default=""))
        if own is None:
            added |= {"function_evaluation": "generic_success"} if reading.evaluation is None else reading.evaluation
            checks += reading.checks
        else:
            try:
                evaluation = to_jsonable(dict(own(record, options)))
                checks += [dict(one) for one in evaluation.pop("checks", [])]
                added |= evaluation
            except Exception as error:  # a user's evaluator may raise anything, the workflow continues
                _log.warning("the evaluator of %s failed: %s", plain(function), plain(error))
                added["evaluator_error"] = text = f"{type(error).__name__}: {error}"
                checks.append(check("evaluator", None, "failed", text, "error"))

    score, severity = _OUTCOMES[verdict]
    first = [check("outcome", score, verdict, why, severity)]
    if attempt > 1:
        loop = record["success"] is False and attempt >= options.loop_length
        label, text = "loop" if loop else "retry", f"attempt {attempt} with the same parameters"
        first.append(check("attempts", not loop, label, text, "error" if loop else "info"))
    try:
        timestamp = datetime.fromisoformat(record["timestamp"] or "").isoformat()
    except ValueError:
        timestamp = datetime.now(UTC).isoformat(timespec="seconds")
    evaluation = {
        "step_index": record["step_index"],
        "function_name": function,
        "success": record["success"],
        "result_type": kind,
        "timestamp": timestamp,
        "evaluation_version": EVALUATION_VERSION,
        "verdict": verdict,
        "critical_failure": critical,
        "silent_failure": silent is not None,
        "silent_failure_reason": silent,
        "truncated": truncated(record),
        "attempt": attempt,
        "checks": [*first, *checks],
    }
    return evaluation | added | evaluation  # nothing added replaces these keys


def _judge_structure(record: StepRecord, reading: Reading, has_failed: bool) -> tuple[dict[str, Any], Check]:
    """Judge a structured result, or the text that old storage made of one.

    `data_completeness` is the first of these that holds: ``limited``, the stored result is cut; ``none``, the step
    returned no data but an error, a status or nothing; ``partial``, there are `parsing_issues`; ``complete``.
    """
    function, result, is_text = record["step"]["function_name"], record["result"], record["result_type"] == "text"
    analysis, is_cut = results.ANALYSES.get(function or ""), truncated(record)
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
    completeness = "limited" if is_cut else "none" if is_empty else "partial" if issues else "complete"
    if is_text:
        why = "only the beginning of the result was kept" if is_cut else ""
        made = check("text_kept", not is_cut, completeness, why, "warning" if is_cut else "info")
    else:
        severity: Severity = "error" if quality == results.UNEXPECTED else "warning" if issues else "info"
        made = check("structure", not issues, completeness, "; ".join(issues), severity)
    return {"data_quality": quality, "data_completeness": completeness, "parsing_issues": issues}, made


def format_step_evaluation(evaluation: Mapping[str, Any]) -> str:
    """Format the report of a step, as of `evaluate_step`; steps count from 1, texts lose their control characters."""

    def shown(value: Any, missing: str = "unknown") -> str:
        return missing if value is None or value == "" else plain(value)

    success, index = evaluation.get("success"), evaluation.get("step_index")
    lines = [
        RULE,
        f"📊 STEP EVALUATION REPORT - Step {index + 1 if isinstance(index, int) else '?'}",
        RULE,
        f"Function: {shown(evaluation.get('function_name'), 'none')}",
        f"Success: {'✅ (True)' if success is True else '❌ (False)' if success is False else '❔ (unknown)'}",
        f"Result Type: {shown(evaluation.get('result_type'))}",
        f"Timestamp: {shown(evaluation.get('timestamp'))}",
        "",
    ]
    if skipped := evaluation.get("skipped_evaluation"):
        lines += ["⏭️ SKIPPED:", f"   Reason: {shown(skipped.get('skip_reason'))}"]
    elif success is not True:
        category = (evaluation.get("failure_evaluation") or {}).get("error_category")
        critical = "🚨 YES" if evaluation.get("critical_failure") else "⚠️ No"
        lines += ["❌ FAILURE ANALYSIS:", f"   Error Type: {shown(category)}", f"   Critical: {critical}"]
    else:
        lines.append("✅ SUCCESS ANALYSIS:")
        if evaluation.get("silent_failure"):
            lines.append(f"   🔇 Silent failure: {plain(evaluation.get('silent_failure_reason'), 200)}")
        if isinstance(enrichment := evaluation.get("enrichment_evaluation"), Mapping):
            lines.append("   🧬 ENRICHMENT RESULTS:")
            for method, n in (enrichment.get("pathway_counts") or {}).items():
                mark = "✅" if n else "⭕" if n == 0 else "❔"
                lines.append(f"      {mark} {plain(method.upper())}: {shown(n)} pathways")
            lines.append(f"   📊 Total Significant: {shown(enrichment.get('total_significant_pathways'))} pathways")
            lines.append(f"   🎯 Data Quality: {shown(enrichment.get('data_quality'))}")
            top = enrichment.get("top_pathways") or {}
            lines += ["   🔝 Sample Pathways:"] * bool(top)
            for method, terms in top.items():
                lines.append(f"      {plain(method.upper())}: {', '.join(map(plain, terms[:2]))}")
        if isinstance(cells := evaluation.get("process_cells_evaluation"), Mapping):
            types, n = cells.get("discovered_cell_types") or [], cells.get("cell_type_count")
            if n is None:  # the list was cut
                n = f"at least {len(types)}" if types else "unknown number of"
            lines += ["   🧬 PROCESS CELLS RESULTS:", f"      Discovered: {n} new cell types"]
            lines += [f"         - {plain(name)}" for name in types[:3]]
    return "\n".join([*lines, RULE])


def print_step_evaluation(evaluation: Mapping[str, Any]) -> None:
    """Print the report of a step; see `format_step_evaluation`."""
    print(format_step_evaluation(evaluation))


class Call(NamedTuple):
    """A tool call; parameters None match any."""

    function_name: str
    parameters: dict[str, Any] | None = None


class ToolCallScore(NamedTuple):
    """How the calls made compare with those expected; shares are NaN if their denominator is 0."""

    mode: str
    match: bool  # whether the mode's condition holds
    precision: float  # share of the calls made that were expected
    recall: float  # share of the calls expected that were made
    f1: float  # their harmonic mean
    matched: int
    made: int
    expected: int
    extra: list[Call]  # made, not expected
    missing: list[Call]  # expected, not made


class Loop(NamedTuple):
    """Consecutive failures of one call: position of the first, their number, the call and its last error."""

    position: int
    length: int
    function_name: str | None
    parameters: dict[str, Any]
    error: str | None


class PlannedStep(NamedTuple):
    """The outcome of one planned step: `status` is the verdict of its last attempt, or ``not run``."""

    position: int
    call: Call
    status: str
    attempts: int
    in_order: bool | None


def score_tool_calls(
    records: Any,
    expected: Iterable[str | Mapping[str, Any] | Sequence],
    mode: Mode = "unordered",
    *,
    retries: bool = False,
    options: Options | None = None,
) -> ToolCallScore:
    """Compare the tool calls of a history, or of a list of records, with an expected list.

    `expected` holds function names, ``(name, parameters)``, or steps with function_name and parameters; parameters
    count only where they are given, and then must be equal. Calls are counted: one expected twice must be made twice.
    A call and its consecutive retries are one, unless `retries`. What matches, by `mode`:

    - strict: the same calls in the same order (precision and recall rest on their longest common subsequence)
    - unordered: the same calls in any order (the largest set of pairs, as in the others)
    - subset: the calls made are among those expected
    - superset: the calls made include those expected
    """
    if mode not in (modes := get_args(Mode)):
        raise ValueError(f"unknown mode {mode!r}: one of {', '.join(modes)}")
    made, wanted, before = list[Call](), list(map(_call, expected)), None
    for record in as_history(records, options).records:  # skipped and pseudo-steps are no calls
        function, parameters = record["step"]["function_name"], record["step"]["parameters"]
        if function and function not in PSEUDO_STEPS and record["result_type"] != "skipped":
            if retries or before is None or not repeats_failure(before, record):
                made.append(Call(function, parameters))
            before = record

    n, m = len(made), len(wanted)
    if mode == "strict":
        pairs = _in_order(made, wanted)
    else:  # first those with given parameters: they match fewer calls than names alone do
        in_turn = sorted(range(m), key=lambda j: wanted[j].parameters is None)
        places = _take(made, [wanted[j] for j in in_turn])
        pairs = [(i, j) for i, j in zip(places, in_turn, strict=True) if i is not None]
    of_made, of_wanted = {i for i, _ in pairs}, {j for _, j in pairs}
    extra = [call for i, call in enumerate(made) if i not in of_made]
    missing = [call for j, call in enumerate(wanted) if j not in of_wanted]
    match = (not extra or mode == "superset") and (not missing or mode == "subset")
    k = len(pairs)
    precision, recall, f1 = (part / whole if whole else math.nan for part, whole in ((k, n), (k, m), (2 * k, n + m)))
    return ToolCallScore(mode, match, precision, recall, f1, k, n, m, extra, missing)


def plan_adherence(records: Any, plan: Any = None, options: Options | None = None) -> list[PlannedStep]:
    """Return the outcome of every planned step; the share that ended in success is the adherence.

    A planned step takes the first call that no earlier planned step has taken, with its retries; the last of them
    decides the status. Parameters of the plan count if given. `in_order` is whether the step ran after the planned
    steps before it (None if it did not run). The plan is a list of steps, as for `score_tool_calls`, or a mapping with
    ``steps``; by default that of the history.
    """
    history = as_history(records, options)
    plan = history.plan if plan is None else plan
    plan = plan.get("steps") if isinstance(plan, Mapping) else plan
    wanted = list[Call]()
    for step in plan if isinstance(plan, (list, tuple)) else []:
        if isinstance(step, str) or (isinstance(step, Mapping) and _name_in(step)):
            wanted += [call for call in [_call(step)] if call.function_name not in PSEUDO_STEPS]

    if not wanted:
        return []
    calls, attempts = list[Call](), list[list[int]]()  # the calls made, and the records of their attempts
    latest = dict[tuple, list[int]]()
    for i, record in enumerate(history.records):
        call = Call(record["step"]["function_name"] or "", record["step"]["parameters"])
        before = latest.get(key := _key(call))
        if before and history.records[before[-1]]["success"] is False:
            before.append(i)  # a retry
        else:
            calls.append(call)
            attempts.append([i])
            latest[key] = attempts[-1]

    planned, furthest = list[PlannedStep](), -1
    for i, (call, taken) in enumerate(zip(wanted, _take(calls, wanted), strict=True)):
        if taken is None:
            planned.append(PlannedStep(i, call, NOT_RUN, 0, None))
        else:
            first, last = attempts[taken][0], attempts[taken][-1]
            verdict = history.evaluations[last]["verdict"]
            planned.append(PlannedStep(i, call, verdict, len(attempts[taken]), first > furthest))
            furthest = max(furthest, first)
    return planned


def find_loops(records: Any, options: Options | None = None) -> list[Loop]:
    """Find runs of at least ``options.loop_length`` failures of the same function with the same parameters."""
    history, loops = as_history(records, options), list[Loop]()
    for i, (record, attempt) in enumerate(zip(history.records, history.attempts, strict=True)):
        if record["success"] is False and attempt >= history.options.loop_length:
            if attempt > history.options.loop_length:
                loops.pop()  # the same run, one shorter
            step, first = record["step"], i - attempt + 1
            loops.append(Loop(first, attempt, step["function_name"], step["parameters"], record["error"]))
    return loops


def _take(calls: list[Call], wanted: list[Call]) -> list[int | None]:
    """Return for each wanted call in turn the place of the first call that matches and is not taken; None without."""
    places, taken, found = defaultdict[tuple, deque[int]](deque), set[int | None](), list[int | None]()
    for i, call in enumerate(calls):
        places[_key(call)].append(i)
        places[_key(Call(call.function_name))].append(i)
    for call in wanted:
        queue = places[_key(call)]
        while queue and queue[0] in taken:
            queue.popleft()
        found.append(queue.popleft() if queue else None)
        taken.add(found[-1])
    return found


def _key(call: Call) -> tuple[str, ...]:
    """Return what calls must share to match."""
    name, parameters = call
    return (name,) if parameters is None else (name, json.dumps(parameters, sort_keys=True))


def _call(item: Any) -> Call:
    if isinstance(item, str):
        return Call(item)
    if isinstance(item, Mapping):
        parameters = item.get("parameters")
        item = (_name_in(item), to_jsonable(parameters) if isinstance(parameters, Mapping) else None)
    call = Call(*item)
    if not isinstance(call.function_name, str) or not call.function_name:
        raise ValueError(f"an expected call needs a function name, {item!r} has none")
    return call


def _name_in(step: Mapping[str, Any]) -> str | None:
    return name(step.get("function_name") or step.get("name"))


def _in_order(made: list[Call], wanted: list[Call]) -> list[tuple[int, int]]:
    """Pair the calls of a longest common subsequence."""
    n, m, pairs, i, j = len(made), len(wanted), list[tuple[int, int]](), 0, 0
    fits = [[a.function_name == b.function_name and b.parameters in (None, a.parameters) for b in wanted] for a in made]
    length = [[0] * (m + 1) for _ in range(n + 1)]  # of the longest one from there on
    for a, b in product(reversed(range(n)), reversed(range(m))):
        length[a][b] = 1 + length[a + 1][b + 1] if fits[a][b] else max(length[a + 1][b], length[a][b + 1])
    while i < n and j < m:
        if fits[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif length[i + 1][j] >= length[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs
