"""Benchmark the reading of long sessions of Claude Code and Codex: time against `json.loads` of each line, and memory.

    python -m benchmarks.sessions --megabytes 10 --megabytes 100

The sessions are generated. Each is read in a process of its own, without a cache; imports are not timed.
"""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

WORDS = [f"word{number}" for number in range(500)]
_OURS = """
import os, resource, sys, time; os.environ["EVALKIT_CACHE"] = "off"
from evalkit import trajectories
path, small = sys.argv[1:]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
trajectories.load(small)
before, start = peak(), time.process_time()
runs = trajectories.load(path, jobs=1).runs
print(time.process_time() - start, peak() - before, runs["turns"].sum())
"""
_PLAIN = """
import json, sys, time
start = time.process_time()
with open(sys.argv[1], "rb") as file:
    for line in file:
        json.loads(line)
print(time.process_time() - start)
"""


def claude_code(rng: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """Yield the records of a model call: two blocks of the answer, and the result of the tool."""
    usage = {"input_tokens": 4, "cache_read_input_tokens": 9_000, "output_tokens": 85}
    shared = {"sessionId": "s", "version": "2.1.1", "timestamp": "2026-06-15T10:00:01Z", "isSidechain": False}
    tool = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": _text(rng, 20)}}
    for block in ({"type": "text", "text": _text(rng, 50)}, tool):
        message = {"id": f"m{number}", "role": "assistant", "model": "opus", "content": [block], "usage": usage}
        yield {**shared, "type": "assistant", "uuid": f"{number} {block['type']}", "message": message}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": _text(rng, 800)}
    yield {**shared, "type": "user", "uuid": f"{number}", "message": {"role": "user", "content": [result]}}


def codex(rng: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """Yield the lines of a model call: the message twice, a tool call with its output, and the tokens."""
    text = _text(rng, 50)
    names = ("input_tokens", "output_tokens", "total_tokens")
    total = dict(zip(names, (1_000 * (number + 1), 20 * (number + 1), 1_020 * (number + 1)), strict=True))
    content = [{"type": "output_text", "text": text}]
    call = {"type": "function_call", "name": "exec_command", "arguments": _text(rng, 20), "call_id": f"c{number}"}
    for kind, payload in (
        ("event_msg", {"type": "agent_message", "message": text}),
        ("response_item", {"type": "message", "role": "assistant", "content": content}),
        ("response_item", call),
        ("response_item", {"type": "function_call_output", "call_id": f"c{number}", "output": _text(rng, 800)}),
        ("event_msg", {"type": "token_count", "info": {"total_token_usage": total}}),
    ):
        yield {"timestamp": "2026-06-15T10:00:01Z", "type": kind, "payload": payload}


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def write(path: Path, size: int, made: Any) -> int:
    """Write a session of at least `size` bytes, and return its number of calls."""
    rng = random.Random(0)
    number = written = 0
    with path.open("w") as file:
        while written < size:
            for record in made(rng, number):
                written += file.write(f"{json.dumps(record)}\n")
            number += 1
    return number


def _run(program: str, *arguments: Path) -> list[float]:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]


@click.command(help=__doc__)
@click.option("--megabytes", type=int, multiple=True, default=(10, 100), show_default=True)
def main(megabytes: tuple[int, ...]) -> None:
    """Print the time and the memory of each session."""
    for made in (claude_code, codex):
        with tempfile.TemporaryDirectory() as folder:
            small = Path(folder) / "small.jsonl"
            write(small, 1, made)
            for size in megabytes:
                path = Path(folder) / "session.jsonl"
                calls = write(path, size * 1_000_000, made)
                seconds, grown, counted = _run(_OURS, path, small)
                assert counted == calls
                (plain,) = _run(_PLAIN, path)
                print(
                    f"{made.__name__}, {size} MB: {seconds:.2f} s, {seconds / plain:.1f} x json.loads, +{grown:.0f} MB"
                )


if __name__ == "__main__":
    main()
