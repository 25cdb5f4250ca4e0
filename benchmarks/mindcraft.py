"""Benchmark reading of Mindcraft runs against the plain way, alternating in one run.

``python -m benchmarks.mindcraft [FOLDER]`` generates 5 models × 400 tasks × 2 or 3 agents if no folder is given.
The plain way is glob, json.load, a list of dicts, DataFrame: one row per log, the score by a substring, nothing else.
The store of parsed tables is off: every round reads and parses.
"""

import glob
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.make_mindcraft import make_runs
from evalkit.io import list_files, read_files
from evalkit.mindcraft import runs_df

os.environ["EVALKIT_CACHE"] = "off"
ROUNDS = 5
NEEDLE = b"Task ended with score"


def plain(folder: str) -> int:
    """Read as a quick script does."""
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
    """Read the bytes and search them once: a lower bound for every reader."""
    return sum(data.count(NEEDLE) for _, data in read_files(list_files(folder, "*.json")))


def measure(ways: dict[str, Callable[[str], object]], folder: str, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Time the ways in turn, after a warm-up round; return seconds per round."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for counted in [False] + [True] * rounds:
        for name, way in ways.items():
            start = time.perf_counter()
            way(folder)
            if counted:
                times[name].append(time.perf_counter() - start)
    return times


def main() -> None:
    """Measure, and print medians, MB/s and ratios."""
    with tempfile.TemporaryDirectory() as made:
        folder = sys.argv[1] if len(sys.argv) > 1 else made
        if len(sys.argv) == 1:
            make_runs(Path(made))
        files = list_files(folder, "*.json")
        megabytes = sum(Path(file).stat().st_size for file in files) / 1e6
        ways = {
            "plain": plain,
            "evalkit, one process": partial(runs_df, jobs=1),
            "evalkit, as it is called": runs_df,
            f"bound (search for {NEEDLE.decode()!r})": bound,
        }
        times = measure(ways, folder)
        base = times["plain"]
        print(f"{len(files)} logs, {megabytes:.0f} MB, median of {ROUNDS} rounds, warm cache")
        for name, seconds in times.items():
            ratio = statistics.median(b / s for b, s in zip(base, seconds, strict=True))
            median = statistics.median(seconds)
            print(f"{name:45} {median:7.2f} s  {megabytes / median:7.0f} MB/s  {ratio:5.2f} × the plain way")


if __name__ == "__main__":
    main()
