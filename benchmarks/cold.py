"""Benchmark reading of cold files, with and without read-ahead.

    python -m benchmarks.cold                            # 5,000 logs
    python -m benchmarks.cold --folder path/to/logs

Before every reading, the folder's files are dropped from the page cache (`posix_fadvise(DONTNEED)`, after a sync),
which Linux does for files that are not in use. Without read-ahead: one file at a time, `open` and `read`.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

from benchmarks.make_mindcraft import make_runs
from evalkit.io import list_files, read_files


def drop(files: list[str]) -> None:
    """Drop files from the page cache."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def one_by_one(files: list[str]) -> int:
    """Read one file after the other, without read-ahead."""
    total = 0
    for file in files:
        with open(file, "rb") as log:
            total += len(log.read())
    return total


def ahead(files: list[str]) -> int:
    """Read as evalkit does."""
    return sum(len(data) for _, data in read_files(files))


WAYS: dict[str, Callable[[list[str]], int]] = {"one by one": one_by_one, "read ahead": ahead}


@click.command()
@click.option("--folder", type=click.Path(exists=True, path_type=Path), help="Your own logs.")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(1))
def main(folder: Path | None, rounds: int) -> None:
    """Measure and print medians and their ratio, cold and warm."""
    with tempfile.TemporaryDirectory() as made:
        if folder is None:
            folder = Path(made)
            make_runs(folder)
        files = list_files(folder)
        os.sync()
        times: dict[str, list[float]] = {name: [] for name in WAYS}
        for counted in [False] + [True] * rounds:
            for name, way in WAYS.items():
                drop(files)
                start = time.perf_counter()
                way(files)
                if counted:
                    times[name].append(time.perf_counter() - start)
        base = times["one by one"]
        print(f"{len(files)} files, median of {rounds} rounds, dropped from the page cache before each")
        for name, seconds in times.items():
            ratio = statistics.median(way / baseline for way, baseline in zip(seconds, base, strict=True))
            print(f"{name:12} {statistics.median(seconds):6.2f} s  {ratio:5.2f} × one by one")


if __name__ == "__main__":
    main()
