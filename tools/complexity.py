"""Benchmark complexity: each pattern and parser on inputs of doubling size, designed to be slow.

    python -m tools.complexity                # sizes until one takes half a second
    python -m tools.complexity --quick        # as in the tests
    python -m tools.complexity crafter        # cases whose name contains this

Times are processor times, the best of several rounds. Linear time has a ratio of 2, quadratic time one of 4; above 3 a
case counts as too slow, and the exit code is 1.
"""

import json
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import click
import msgspec

from evalkit.crafter import hooks as crafter_hooks  # noqa: F401  (imports what is imported later, before the clock runs)
from evalkit.crafter.benchmark import Distinct, check_run
from evalkit.crafter.format import ACHIEVEMENTS
from evalkit.crafter.kind import KIND as CRAFTER
from evalkit.evidence.alignment import align
from evalkit.evidence.page import pair_page, run_page
from evalkit.evidence.references import PairRef, RunRef
from evalkit.io import distinct_names, plain, redacted, short_paths
from evalkit.kinds import LogKind, Transcript, Turn
from evalkit.kinds.detection import HEAD, recognise
from evalkit.mindcraft.format import parse_results
from evalkit.mindcraft.kind import KIND as MINDCRAFT
from evalkit.mindcraft.tasks import TaskDefinitions, task_facts
from evalkit.reports.parameters import parse_values
from evalkit.steps.judge import as_history, evaluate_history, plan_adherence
from evalkit.steps.kind import KIND as STEPS
from evalkit.steps.normalise import read_literal
from evalkit.steps.storage import extract_key_findings_from_execution
from evalkit.steps.workflow import simulate_routing

WORST = 3.0  # largest ratio of the time for twice the input
LEAST = 0.002  # seconds below which a time is not meaningful
ROUNDS = 5


class Case(NamedTuple):
    """A benchmark case: `make` returns the input of a size, `run` is timed on it."""

    make: Callable[[int], Any]
    run: Callable[[Any], object]
    start: int = 500


def _mindcraft(role: str, text: str) -> Case:
    def make(n: int) -> bytes:
        return json.dumps({"turns": [{"role": role, "content": text * n}]}).encode()

    return Case(make, lambda data: MINDCRAFT.parse("a/Andy_0.json", data), 2000)


def _crafter(make: Callable[[int], dict[str, Any]]) -> Case:
    return Case(lambda n: json.dumps(make(n)).encode(), lambda data: CRAFTER.parse("a.json", data))


def _steps(make: Callable[[int], list[dict]], judge: Callable[[Any], object]) -> Case:
    return Case(make, judge)


def _turn(actions: list, hooks: list) -> dict[str, Any]:
    event = {"actions": actions, "metadata": {"turn": 1}, "event_metadata": hooks}
    return {"session_id": "x", "event_history": [event]}


def _hook(name: str, **data: Any) -> dict[str, Any]:
    return {"hook_name": name, "data": data}


def _invalid(n: int, index: bool) -> dict[str, Any]:
    action = {"action_index": n - 1} if index else {"action": "sleep"}
    return _turn([1] * (n - 1) + [6], [_hook("invalid_action", reason="no reason", **action)] * n)


def _database(n: int) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)")
    blob = msgspec.msgpack.encode({"channel_values": {"execution_history": []}})
    connection.executemany("INSERT INTO checkpoints VALUES (?, '', ?, 'msgpack', ?)", ((i, i, blob) for i in range(n)))
    connection.commit()
    return connection.serialize()


def _run(i: int, **more: Any) -> dict[str, Any]:
    return check_run({**{f"achievement_{name}": [i] for name in ACHIEVEMENTS}, "xs": [i], **more})


def _distinct(runs: list[dict]) -> None:
    distinct = Distinct()
    for run in runs:
        distinct.add(run, "a.json")


def _add_definitions(n: int) -> None:
    definitions = TaskDefinitions()
    for i in range(n):
        definitions.add("bread", {"goal": str(i), "type": "cooking"}, "a.json")


def _read_results(data: bytes) -> None:
    with suppress(ValueError):  # the messages are tested elsewhere
        parse_results(data)


_STEP = {"step": {"function_name": "perform_enrichment_analyses", "parameters": {}}, "success": True, "result": "x"}
_FAILED = {**_STEP, "success": False, "error": "x"}


def _each(records: list[dict]) -> None:
    evaluate_history(as_history(records))
    simulate_routing(records)


def _transcript(kind: LogKind, data: bytes) -> Transcript:
    return kind.transcript(["a/Andy_0.json"], lambda _: data)


def _page(text: str, turns: int = 1) -> str:
    run = RunRef("a", "", ["a"], "", [("task", text[:1000])])
    return run_page(run, Transcript("a", [text], [Turn("a", "system", text, (text[:50],), ())] * turns))


def _pair(turns: list[Turn]) -> str:
    run = RunRef("a", "", ["a"], "", [])
    return pair_page(PairRef(run, run), Transcript("a", [], turns), Transcript("b", [], turns[1:]))


def _talk(n: int) -> bytes:
    return json.dumps({"turns": [{"role": "assistant", "content": '!give("a", 1) so'}] * n}).encode()


CASES = {
    "transcript of mindcraft turns": Case(_talk, lambda data: _transcript(MINDCRAFT, data).text()),
    "transcript of one long turn": Case(
        lambda n: json.dumps({"turns": [{"role": "assistant", "content": "!a(" * n}]}).encode(),
        lambda data: _transcript(MINDCRAFT, data).text(),
    ),
    "transcript of crafter events": Case(
        lambda n: json.dumps({"session_id": "x", "event_history": [_turn([1], [])["event_history"][0]] * n}).encode(),
        lambda data: _transcript(CRAFTER, data).text(),
    ),
    "transcript of steps": Case(
        lambda n: json.dumps([_STEP] * n).encode(), lambda data: _transcript(STEPS, data).text(), 200
    ),
    **{
        f"page of a text {text!r:.20}": Case(lambda n, text=text: text * n, _page, 5000)
        for text in ("<", "a\n", "http://x ", "!a(", "\x1b[", " ", "\r", "&amp;")
    },
    "page of turns": Case(lambda n: n, lambda n: _page("a", n), 100),
    "page of two runs": Case(lambda n: [Turn("a", "system", f"say {i}", (), ()) for i in range(n)], _pair, 100),
    "alignment of equal turns": Case(
        lambda n: Transcript("", [], [Turn("a", "system", "a b " * 20, (), ())] * n), lambda a: align(a, a), 2000
    ),
    **{
        f"mindcraft {role} {text!r:.30}": _mindcraft(role, text)
        for role, text in (
            ("system", "Task ended with score : "),
            ("system", "Task ended in score :"),
            ("system", "Task completed, "),
            ("system", "Agent ended goal ended with code : "),
            ("system", "Bot disconnected\n"),
            ("system", "You died at position\n"),
            ("system", "Command !"),
            ("system", "Command !x does not exist.\n"),
            ("system", " "),
            ("system", "\n"),
            ("assistant", "!"),
            ("assistant", "!a("),
            ("assistant", "!a "),
            ("user", "Task ended with score : "),
        )
    },
    "mindcraft turns": Case(
        lambda n: json.dumps([{"role": "system", "content": "Task ended with score : 0.5"}] * n).encode(),
        lambda data: MINDCRAFT.parse("a/Andy_0.json", data),
    ),
    "mindcraft results, brackets": Case(lambda n: b"[" * n, _read_results),
    "mindcraft results, sums": Case(lambda n: b"1+" * n + b"1", _read_results),
    "mindcraft results, entries": Case(lambda n: b"{" + b"'a': 1, " * n + b"}", _read_results),
    "mindcraft ids, items": Case(lambda n: "multiagent_cooking" + "_1_a" * n, lambda name: task_facts(name, None)),
    "mindcraft ids, digits": Case(lambda n: "num_agents_" + "1" * n, lambda name: task_facts(name, None)),
    "mindcraft ids, agents": Case(lambda n: "_blocked_access" + "_1" * n, lambda name: task_facts(name, None)),
    "mindcraft names, parts": Case(lambda n: "a_" * n, lambda name: TaskDefinitions({"b": {}}).longest_id(name)),
    "mindcraft definitions of one id": Case(lambda n: n, _add_definitions, 200),
    "crafter id, dates": _crafter(lambda n: {"session_id": "episode_0_m" + "_20250101_000000" * n}),
    "crafter id, digits": _crafter(lambda n: {"session_id": "episode_0_" + "1" * n + "x"}),
    "crafter id, episodes": _crafter(lambda n: {"session_id": "_episode_1" * n}),
    "crafter events": _crafter(lambda n: {"event_history": [_turn([1], [])["event_history"][0]] * n}),
    "crafter hooks by name": _crafter(lambda n: _turn([1], [_hook("new_achievement", achievements=["x"])] * n)),
    "crafter hooks": _crafter(lambda n: _turn([1], [_hook("easy_achievement", achievements=["collect_wood"])] * n)),
    "crafter invalid actions by name": _crafter(lambda n: _invalid(n, False)),
    "crafter invalid actions by index": _crafter(lambda n: _invalid(n, True)),
    "crafter images": Case(
        lambda n: b'{"session_id": "x", "a": [' + b'{"observation_image_base64": "x\\"", "b": 1},' * n + b"1]}",
        lambda data: CRAFTER.parse("a.json", data),
        5000,
    ),
    "crafter session metadata": _crafter(
        lambda n: {"session_id": "x", "session_metadata": [{"metadata_type": "error", "data": {"seed": 1}}] * n}
    ),
    "crafter runs of one method": Case(lambda n: [_run(i, method="m") for i in range(n)], _distinct, 100),
    "crafter runs of seeds": Case(lambda n: [_run(i, method="m", seed=i) for i in range(n)], _distinct, 100),
    "crafter runs with and without seeds": Case(
        lambda n: [_run(i, method="m", **({"seed": i} if i % 2 else {})) for i in range(n)], _distinct, 100
    ),
    "steps records": Case(
        lambda n: json.dumps([_STEP] * n).encode(),
        lambda data: STEPS.parse("h.json", data),
    ),
    "steps lines, broken": Case(lambda n: b'{"step":\n' * n, lambda data: STEPS.parse("h.jsonl", data)),
    "steps threads": Case(_database, lambda data: STEPS.parse("c.sqlite", data), 200),
    "steps equal": _steps(lambda n: [_STEP] * n, _each),
    "steps failed": _steps(lambda n: [_FAILED] * n, _each),
    "steps key findings": _steps(lambda n: [_STEP] * n, extract_key_findings_from_execution),
    "steps key findings of failures": _steps(lambda n: [_FAILED] * n, extract_key_findings_from_execution),
    "steps plan": _steps(
        lambda n: [{**_FAILED, "step": {"function_name": "f", "parameters": {"a": i}}} for i in range(n)],
        lambda records: plan_adherence(records, [("f", {"a": -1 - i}) for i in range(len(records))]),
    ),
    "steps categories": _steps(
        lambda n: [
            {"step": {"function_name": "compare_cell_counts"}, "success": True, "result": [{"category": 1}] * n}
        ],
        _each,
    ),
    **{
        f"steps text {text!r:.20}": Case(lambda n, text=text: "{" + text * n, lambda text: read_literal(text), 2000)
        for text in ("[", "'a': 1, ", "'", "\\", "'\\", '"', "np.float64(", "((", "1", " ", "b'", "-", "1, ", "1e")
    },
    **{
        f"steps result {text!r:.20}": _steps(
            lambda n, text=text: [
                {"step": {"function_name": f, "parameters": {}}, "success": True, "result": text * n}
                for f in ("perform_enrichment_analyses", "process_cells", "display_umap", "dea_split_by_condition")
            ],
            _each,
        )
        for text in (
            "<",
            "< ",
            "group_to_cell_type=",
            "discovered new cell type: ",
            "error ",
            "{'error' : ",
            "'",
            "no ",
        )
    },
    "text plain": Case(lambda n: "\x1b[31m" * n, plain, 2000),
    "text names": Case(lambda n: [f"{'x' * 300}{i:09}{'x' * 300}" for i in range(n)], distinct_names, 500),
    "text names that can't be told apart": Case(
        lambda n: [chr(0xE000 + i) * 10 for i in range(n)], distinct_names, 500
    ),
    "text paths": Case(lambda n: [f"{i}/a/b/c.json" for i in range(n)], short_paths, 2000),
    "text links": Case(lambda n: "a://b:c@" * n, redacted),
    "text links in links": Case(lambda n: "a::" * n + "s3://b:c@d", redacted),
    "text links and queries": Case(lambda n: "s3://b?" + "key=1&" * n, redacted),
    "parameters": Case(lambda n: "a: [" + "1, " * n + "]", parse_values),
    **{
        f"head {text.decode()!r:.20}": Case(lambda n, text=text: (text * n)[:HEAD], recognise)
        for text in (b'"goal":', b'"agent_count":', b'"episode_return"', b'{"version"', b'"role" : ', b"PK", b" ")
    },
}


def best(case: Case, n: int, rounds: int) -> float:
    """Return the processor seconds of a case at a size, the best of several rounds."""
    given, times = case.make(n), []
    for _ in range(rounds):
        start = time.process_time()
        case.run(given)
        times.append(time.process_time() - start)
    return min(times)


def ratio(case: Case, longest: float, rounds: int = ROUNDS) -> tuple[float, list[tuple[int, float]]]:
    """Double a case until it takes `longest` seconds; return the last ratio, and sizes with their times.

    The ratio is 1 if no size up to 64 times the first takes `LEAST` seconds.
    """
    n, times = case.start, [(case.start, best(case, case.start, rounds))]
    while times[-1][1] < longest and n < 4096 * case.start and (n < 64 * case.start or times[-1][1] >= LEAST):
        n *= 2
        times.append((n, best(case, n, rounds if times[-1][1] < 1 else 1)))
    ratios = [second / first for (_, first), (_, second) in pairwise(times) if first >= LEAST]
    return (ratios[-1] if ratios else 1.0), times


@click.command()
@click.argument("part", default="")
@click.option("--quick", is_flag=True, help="Stop once a size takes 20 ms.")
def main(part: str, quick: bool) -> None:
    """Measure all cases whose name contains PART, and print sizes, times and the last ratio of each."""
    slow = 0
    for name, case in CASES.items():
        if part in name:
            last_ratio, times = ratio(case, 0.02 if quick else 0.5)
            n, seconds = times[-1]
            slow += last_ratio > WORST
            print(
                f"{name:50} {last_ratio:5.2f}{' TOO SLOW' if last_ratio > WORST else ''}  ({n:,}: {seconds:.3f} s)",
                flush=True,
            )
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
