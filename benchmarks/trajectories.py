"""Benchmark the table of runs of inspect_ai logs, compared with `samples_df` of inspect_ai, and the memory of a sample.

    python -m benchmarks.trajectories --inspect PYTHON          # a Python in which inspect_ai is installed
    python -m benchmarks.trajectories --megabytes 20 --sample 50

The logs are generated. Each sample contains messages, and events that make up nine tenths of its bytes. Each program
reads all logs in a separate process, without a cache, once untimed and then once per round. Imports are not timed.
"""

import base64
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import click

EVENTS = 40  # number of events per sample
_CLOCKS = """
import os, sys, time; os.environ["EVALKIT_CACHE"] = "off"
def clocks(): return time.perf_counter(), time.process_time() + sum(os.times()[2:4])
"""
_OURS = """
from evalkit import trajectories
for _ in range(int(sys.argv[2])):
    start = clocks(); runs = trajectories.load(sys.argv[1]).runs; end = clocks()
    print(end[0] - start[0], end[1] - start[1], len(runs), runs["tokens_in"].sum())
"""
_THEIRS = """
from inspect_ai.analysis import samples_df
for _ in range(int(sys.argv[2])):
    start = clocks(); runs = samples_df(sys.argv[1], full=sys.argv[3] == "full", quiet=True); end = clocks()
    print(end[0] - start[0], end[1] - start[1], len(runs), sum(runs["total_tokens"]) - 50 * len(runs))
"""
_SAMPLE = """
import resource, sys
from evalkit.io import read_file
from evalkit.trajectories.formats import inspect
data = read_file(sys.argv[1], limited=False)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
messages = inspect.messages(inspect.samples_of(data), "large_epoch_1", lambda name: None)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, len(messages))
"""


def sample(rng: random.Random, number: str, size: int) -> dict[str, Any]:
    """Return a sample whose events contain `size` bytes of text."""
    text = base64.b64encode(rng.randbytes(max(1, size * 3 // 4 // EVENTS))).decode()
    when = "2026-09-14T09:00:00+00:00"
    event = {"event": "info", "timestamp": when, "data": text, "span_id": "a", "working_start": 0.0}
    message = {"role": "user", "content": "What is 2 + 2?", "source": "input"}
    return {
        "id": number,
        "epoch": 1,
        "input": "What is 2 + 2?",
        "target": "4",
        "messages": [message, {"role": "assistant", "content": "4 – or so", "source": "generate"}],
        "output": {"model": "m", "choices": [], "completion": ""},
        "scores": {"match": {"value": "C", "answer": "4"}},
        "metadata": {},
        "store": {},
        "events": [{**event, "uuid": f"{number}-{place}"} for place in range(EVENTS)],
        "model_usage": {"m/m": {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150}},
        "started_at": when,
        "completed_at": when,
        "total_time": 1.0,
        "working_time": 1.0,
        "uuid": f"u{number}",
        "attachments": {},
    }


def write_log(path: Path, samples: list[dict[str, Any]]) -> None:
    """Write a log as a zip archive."""
    evaluation = {
        "eval_id": path.stem,
        "run_id": path.stem,
        "created": "2026-09-14T09:00:00+00:00",
        "task": "sums",
        "task_id": path.stem,
        "dataset": {"samples": len(samples), "sample_ids": [one["id"] for one in samples]},
        "model": "m/m",
        "config": {"epochs": 1},
    }
    kept = ("id", "epoch", "input", "target", "scores", "model_usage", "started_at", "total_time", "uuid")
    summaries = [{**{key: one[key] for key in kept}, "completed": True} for one in samples]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": evaluation, "plan": {}}))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_1.json", json.dumps(one))
        archive.writestr("summaries.json", json.dumps(summaries))
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": evaluation}))


def run(python: str, code: str, *arguments: object) -> list[list[float]]:
    """Run code in a separate process, and return the numbers of each line that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])} if python == sys.executable else None
    command = [python, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise click.ClickException(done.stderr[-2_000:])
    return [list(map(float, line.split())) for line in done.stdout.splitlines()]


@click.command()
@click.option("--megabytes", default=266, show_default=True, help="Of all logs together, packed.")
@click.option("--sample", "largest", default=1_000, show_default=True, help="Megabytes of the one large sample.")
@click.option("--samples", default=100, show_default=True, help="Of each log of about 30 MB.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--inspect", default="", metavar="PYTHON", help="A Python in which inspect_ai is installed.")
def main(megabytes: int, largest: int, samples: int, rounds: int, inspect: str) -> None:
    """Measure both programs and the memory of a large sample, and print the results."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder, number = Path(name) / "logs", 0
        folder.mkdir()
        while sum(path.stat().st_size for path in folder.iterdir()) < megabytes * 1e6:
            # random bytes, which do not compress
            made = [sample(rng, f"{number}-{place}", 400) for place in range(samples)]
            for event in (event for one in made for event in one["events"]):
                event["data"] = base64.b64encode(rng.randbytes(750_000 // samples)).decode()
            write_log(folder / f"log{number}.eval", made)
            number += 1
        packed = sum(path.stat().st_size for path in folder.iterdir())
        ours = run(sys.executable, _CLOCKS + _OURS, folder, rounds + 1)
        wall, busy = (statistics.median(line[place] for line in ours[1:]) for place in (0, 1))
        print(f"{number} logs, {number * samples} samples, {packed / 1e6:.0f} MB")
        print(f"evalkit {wall:.3f} s, of processors {busy:.3f} s")
        # by default, samples_df also reads only headers and summaries; "full" reads the samples as well
        for what in ("summaries", "full") if inspect else ():
            theirs = run(inspect, _CLOCKS + _THEIRS, folder, rounds + 1, what)
            if ours[0][2:] != theirs[0][2:]:
                raise click.ClickException(f"numbers differ: {ours[0][2:]} and {theirs[0][2:]}")
            other, worked = (statistics.median(line[place] for line in theirs[1:]) for place in (0, 1))
            print(f"samples_df, {what}: {other:.2f} s, of processors {worked:.2f} s: {worked / busy:.1f} times")
        write_log(folder / "large.eval", [sample(rng, "large", largest * 1_000_000)])
        ((more, count),) = run(sys.executable, _SAMPLE, folder / "large.eval")
        print(f"a sample of {largest} MB: {more / 1.048576:.0f} MB of memory for its {count:.0f} messages")


if __name__ == "__main__":
    main()
