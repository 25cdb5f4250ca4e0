"""Benchmark the reading of Mindcraft runs, compared with a plain program. The programs alternate within one process.

    python -m benchmarks.mindcraft                  # generates 5 models × 400 tasks × 2 or 3 agents
    python -m benchmarks.mindcraft --runs FOLDER

The plain program uses glob, json.load, a list of dicts and a DataFrame. It makes one row per log, finds the score by a
substring, and does nothing else. The store of parsed tables is off, so every round reads and parses.
"""

import glob
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import pandas as pd

from benchmarks.make_mindcraft import make_runs
from evalkit.io import list_source, read_files
from evalkit.mindcraft import runs_df

os.environ["EVALKIT_CACHE"] = "off"
NEEDLE = b"Task ended with score"


def plain(folder: str) -> int:
    """Read the logs as a quick script would."""
    rows = []
    for path in sorted(glob.glob(f"{folder}/**/*.json", recursive=True)):
        with open(path, encoding="utf-8") as file:
            log = json.load(file)
        score = None
        for turn in log["turns"]:
            if turn["role"] == "system" and "Task ended with score : " in turn["content"]:
                score = float(turn["content"].split(":")[1])
        rows.append({"path": path, "task": path.split("/")[-2], "score": score, "turns": len(log["turns"])})
    return len(pd.DataFrame(rows))


def bound(folder: str) -> int:
    """Read the bytes and search them once, which is a lower bound for the time of every reader."""
    return sum(data.count(NEEDLE) for _, data in read_files(list_source(folder, "*.json").files))


def measure(ways: dict[str, Callable[[str], object]], folder: str, rounds: int) -> dict[str, list[float]]:
    """Time the programs in turn after a warm-up round, and return the seconds of each round."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for counted in [False] + [True] * rounds:
        for name, way in ways.items():
            start = time.perf_counter()
            way(folder)
            if counted:
                times[name].append(time.perf_counter() - start)
    return times


@click.command()
@click.option(
    "--runs", type=click.Path(exists=True, file_okay=False), help="A folder of runs, in place of made-up ones."
)
@click.option("--rounds", default=5, show_default=True)
def main(runs: str | None, rounds: int) -> None:
    """Measure the reading of Mindcraft runs, and print medians, MB/s and ratios."""
    with tempfile.TemporaryDirectory() as made:
        folder = runs or made
        if not runs:
            make_runs(Path(made))
        files = list_source(folder, "*.json").files
        megabytes = sum(Path(file).stat().st_size for file in files) / 1e6
        ways = {
            "plain": plain,
            "evalkit, one process": partial(runs_df, jobs=1),
            "evalkit, as it is called": runs_df,
            f"bound (search for {NEEDLE.decode()!r})": bound,
        }
        times = measure(ways, folder, rounds)
        base = times["plain"]
        print(f"{len(files)} logs, {megabytes:.0f} MB, median of {rounds} rounds, warm cache")
        for name, seconds in times.items():
            ratio = statistics.median(b / s for b, s in zip(base, seconds, strict=True))
            median = statistics.median(seconds)
            print(f"{name:45} {median:7.2f} s  {megabytes / median:7.0f} MB/s  {ratio:5.2f} × the plain way")


if __name__ == "__main__":
    main()
