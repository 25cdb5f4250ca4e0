"""Benchmark collecting again after few changes, against the first collection and against reading the folder.

    python -m benchmarks.collecting                      # 100,000 logs of 10 to 60 kB, 3.6 GB of temporary files
    python -m benchmarks.collecting --logs 5000

One process, warm cache. Every round creates a new dataset, changes a random 1 % of the logs, collects again, and once
more without changes. A change is an additional byte, and a new time.
"""

import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
import pandas  # noqa: F401 - not in the first round's time
import pyarrow.parquet  # noqa: F401

from benchmarks.make_mindcraft import make_runs
from evalkit.io import list_files
from evalkit.mindcraft import collect, runs_df

MODELS, AGENTS = 5, 2.5
LONG_AGO = 1_600_000_000  # an old modification time


def change(files: list[str], rng: random.Random) -> None:
    """Append a byte to files, and set a modification time that no other change had."""
    for file in files:
        with open(file, "ab") as log:
            log.write(b" ")
        os.utime(file, (LONG_AGO, LONG_AGO + rng.random() * 1e6))


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that a function takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@click.command()
@click.option("--logs", default=100_000, show_default=True, type=click.IntRange(100))
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1))
def main(logs: int, rounds: int, jobs: int) -> None:
    """Measure and print seconds and their ratios to the first collection."""
    os.environ["EVALKIT_CACHE"] = "off"
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as made:
        folder, dataset = Path(made) / "runs", Path(made) / "dataset"
        make_runs(folder, MODELS, round(logs / MODELS / AGENTS))
        files = list_files(folder, "*.json")
        for file in files:
            os.utime(file, (LONG_AGO, LONG_AGO))
        times: dict[str, list[float]] = {}
        for _ in range(rounds):
            shutil.rmtree(dataset, ignore_errors=True)
            first = timed(lambda: collect(folder, dataset, jobs=jobs))
            change(rng.sample(files, len(files) // 100), rng)
            ways = {
                "1 % changed": lambda: collect(folder, dataset, jobs=jobs),
                "nothing changed": lambda: collect(folder, dataset, jobs=jobs),
                "load the dataset": lambda: runs_df(dataset),
                "load the folder": lambda: runs_df(folder),
            }
            for name, seconds in {"first": first, **{name: timed(way) for name, way in ways.items()}}.items():
                times.setdefault(name, []).append(seconds)
        print(f"{len(files)} logs, median of {rounds} rounds, {jobs} process(es), warm cache")
        for name, seconds in times.items():
            shares = [again / first for again, first in zip(seconds, times["first"], strict=True)]
            print(f"{name:20} {statistics.median(seconds):7.2f} s  {statistics.median(shares):6.1%} of the first time")


if __name__ == "__main__":
    main()
