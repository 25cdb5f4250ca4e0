"""Judge a history as a whole: tool calls against an expected list, the plan, loops."""

import math
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

from evalkit.steps.evaluation.evaluate import evaluate_history
from evalkit.steps.format import PLAN_KEY, PSEUDO_STEPS, VERDICTS, Options, StepRecord, name
from evalkit.steps.history.records import as_history, attempts, repeats_failure
from evalkit.steps.history.values import to_jsonable

Mode = Literal["strict", "unordered", "subset", "superset"]
MODES = get_args(Mode)
NOT_RUN = "not run"
STATUSES = (*VERDICTS, NOT_RUN)  # from best to worst


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
    """Compare the tool calls of a history with an expected list.

    Parameters
    ----------
    records : History, or list of records of any shape
    expected : iterable
        Function names, ``(name, parameters)``, or steps with function_name and parameters. Parameters count only
        where they are given, and then must be equal.
    mode : {"strict", "unordered", "subset", "superset"}
        What matches: the same calls in the same order; the same calls in any order; the calls made are among those
        expected; the calls made include those expected. Calls are counted: one expected twice must be made twice.
        Precision and recall rest on the longest common subsequence in strict mode, else on the largest set of pairs.
    retries : bool
        Whether to count each attempt at a failed call; otherwise a call and its consecutive retries are one.

    Returns
    -------
    ToolCallScore

    Raises
    ------
    ValueError
        For an unknown mode, or an expected call without a name.
    """
    if mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}: one of {', '.join(MODES)}")
    records, before = as_history(records, options).records, None
    made, wanted = list[Call](), [_call(item) for item in expected]
    for record in records:  # skipped and pseudo-steps are no calls
        if record["step"]["function_name"] not in (None, *PSEUDO_STEPS) and record["result_type"] != "skipped":
            if retries or before is None or not repeats_failure(before, record):
                made.append(_made(record))
            before = record
    pairs = _in_order(made, wanted) if mode == "strict" else _in_any_order(made, wanted)
    of_made, of_wanted = {i for i, _ in pairs}, {j for _, j in pairs}
    extra = [call for i, call in enumerate(made) if i not in of_made]
    missing = [call for j, call in enumerate(wanted) if j not in of_wanted]
    holds = {"subset": not extra, "superset": not missing}.get(mode, not extra and not missing)
    k, n, m = len(pairs), len(made), len(wanted)
    precision, recall, f1 = (part / whole if whole else math.nan for part, whole in ((k, n), (k, m), (2 * k, n + m)))
    return ToolCallScore(mode, holds, precision, recall, f1, k, n, m, extra, missing)


def plan_adherence(records: Any, plan: Any = None, options: Options | None = None) -> list[PlannedStep]:
    """Return the outcome of every planned step; the share that ended in success is the adherence.

    A planned step takes the first run of records of its call that no earlier planned step has taken, with its
    retries; the last of them decides the status. Parameters of the plan count if given. `in_order` is whether the step
    ran after the planned steps before it (None if it did not run).

    Parameters
    ----------
    records : History, or list of records
    plan : list of steps (as for `score_tool_calls`), or a mapping with ``steps``
        By default that of the history.
    options : Options, optional
    """
    history = as_history(records, options)
    evaluations, records = evaluate_history(history), history.records
    free, out, latest = _FreeCalls(map(_made, records)), [], -1
    for position, wanted in enumerate(_planned_calls(history.plan if plan is None else plan)):
        if run := free.take(wanted, lambda i, j: repeats_failure(records[i], records[j])):
            out.append(PlannedStep(position, wanted, evaluations[run[-1]]["verdict"], len(run), run[0] > latest))
            latest = max(latest, run[0])
        else:
            out.append(PlannedStep(position, wanted, NOT_RUN, 0, None))
    return out


def _planned_calls(plan: Any) -> list[Call]:
    """Return the calls of a plan: a list of steps, or a mapping with one under ``steps``; others are left out."""
    if isinstance(plan, Mapping):
        plan = plan.get("steps", plan.get(PLAN_KEY))
    steps = plan if isinstance(plan, (list, tuple)) else []
    given = [step for step in steps if isinstance(step, str) or (isinstance(step, Mapping) and _name_in(step))]
    return [call for call in map(_call, given) if call.function_name not in PSEUDO_STEPS]


def find_loops(records: Any, options: Options | None = None) -> list[Loop]:
    """Find runs of at least ``options.loop_length`` failures of the same function with the same parameters."""
    history = as_history(records, options)
    records, counts, loops = history.records, attempts(history.records), []
    for i, (record, length) in enumerate(zip(records, counts, strict=True)):
        goes_on = i + 1 < len(counts) and counts[i + 1] > 1 and records[i + 1]["success"] is False
        if record["success"] is False and length >= history.options.loop_length and not goes_on:
            step = record["step"]
            loops.append(Loop(i - length + 1, length, step["function_name"], step["parameters"], record["error"]))
    return loops


class _FreeCalls:
    """Calls that were made, in order; each is taken once, and found by index."""

    def __init__(self, made: Iterable[Call]) -> None:
        self._taken: set[int] = set()
        self._queues: defaultdict[tuple, deque[int]] = defaultdict(deque)
        for i, (function, parameters) in enumerate(made):
            self._queues[(function,)].append(i)
            self._queues[function, _frozen(parameters)].append(i)

    def take(self, wanted: Call, goes_on: Callable[[int, int], bool] = lambda i, j: False) -> list[int]:
        """Take the first matching call, and those matching after it while each continues the one before."""
        parameters = () if wanted.parameters is None else (_frozen(wanted.parameters),)
        queue, run = self._queues[wanted.function_name, *parameters], list[int]()
        while queue and (queue[0] in self._taken or not run or goes_on(run[-1], queue[0])):
            if (i := queue.popleft()) not in self._taken:
                run.append(i)
        self._taken.update(run)
        return run


def _frozen(value: Any) -> Any:
    """Return a hashable form of a JSON value; two are equal exactly if the values are."""
    if isinstance(value, Mapping):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    return value if isinstance(value, Hashable) else repr(value)


def _made(record: StepRecord) -> Call:
    return Call(record["step"]["function_name"] or "", record["step"]["parameters"])


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


def _in_any_order(made: list[Call], wanted: list[Call]) -> set[tuple[int, int]]:
    """Pair calls, those with given parameters first, as they match fewer calls than names alone do."""
    free = _FreeCalls(made)
    in_turn = sorted(range(len(wanted)), key=lambda j: wanted[j].parameters is None)
    return {(i, j) for j in in_turn for i in free.take(wanted[j])}


def _in_order(made: list[Call], wanted: list[Call]) -> set[tuple[int, int]]:
    """Pair the calls of a longest common subsequence."""
    n, m, pairs, i, j = len(made), len(wanted), set(), 0, 0
    fits = [[a.function_name == b.function_name and b.parameters in (None, a.parameters) for b in wanted] for a in made]
    length = [[0] * (m + 1) for _ in range(n + 1)]  # of the longest one from there on
    for a, b in product(reversed(range(n)), reversed(range(m))):
        length[a][b] = 1 + length[a + 1][b + 1] if fits[a][b] else max(length[a + 1][b], length[a][b + 1])
    while i < n and j < m:
        if fits[i][j]:
            pairs.add((i, j))
            i, j = i + 1, j + 1
        elif length[i + 1][j] >= length[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs
