"""Benchmark scaling: time per run and peak memory of `runs_df` for up to a hundred times as many runs.

    python -m benchmarks.growth                             # 1,000, 10,000 and 100,000 runs
    python -m benchmarks.growth --runs 1000 --runs 3000
    python -m benchmarks.growth --analyses                  # every analysis of runs, and of two runs each

With `--analyses`, every public function that takes only frames of a kind is timed on small logs; growth of the time per
run by more than 1.5 from the smallest size is marked. Notebooks: `benchmarks.load`.

Every reading has its own process, the sizes alternate, and the store of parsed tables is off. Time is that of
`runs_df`, without imports. The logs are those of `make_mindcraft`, of 2 or 3 agents per run, kept short so that the
disk holds them; `--dataset` loads the same from a dataset instead.
"""

import importlib
import inspect
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

import evalkit
from benchmarks import load
from benchmarks.make_mindcraft import make_runs

MODELS = 5
READ = """
import resource, sys, time
from evalkit.mindcraft import runs_df
import pandas, pyarrow.parquet
start = time.perf_counter()
runs = runs_df(sys.argv[1])
print(time.perf_counter() - start, len(runs), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def read(folder: Path) -> tuple[float, int, float]:
    """Read a folder in a separate process; return seconds, runs and the peak memory in MB."""
    environment = os.environ | {"EVALKIT_CACHE": "off"}
    command = [sys.executable, "-c", READ, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    seconds, runs, memory = done.stdout.split()
    return float(seconds), int(runs), float(memory)


def analyses(frames: dict[str, Any], modules: tuple[str, ...]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the public functions that need only these frames, ready to be called."""
    for place in modules:
        module = importlib.import_module(f"evalkit.{place}")
        for name, function in [(name, getattr(module, name)) for name in dir(module)]:
            if name.startswith("_") or not inspect.isfunction(function) or "evalkit" not in function.__module__:
                continue
            needed = [
                parameter.name
                for parameter in inspect.signature(function).parameters.values()
                if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
            ]
            if needed and set(needed) <= frames.keys():
                yield f"{place}.{name}", lambda f=function, needed=needed: f(*(frames[frame] for frame in needed))


def grow(sizes: tuple[int, ...], kinds: tuple[str, ...], made: Path) -> None:
    """Time each analysis at each size, and print milliseconds per 1,000 runs."""
    print(f"{'milliseconds per 1,000 runs':45}" + "".join(f"{size:>10,}" for size in sizes))
    for kind in kinds:
        times: dict[str, list[float]] = {}
        for size in sizes:
            logs = evalkit.load(str(load.make(kind, size, made / f"{kind}-{size}")))
            frames = {name: getattr(logs, name) for name in (*logs.kind.tables, "ledger")}
            frames |= {"runs": logs.runs}
            for name, call in analyses(frames, (f"{kind}.analysis", "compare")):
                start = time.perf_counter()
                try:
                    call()
                except ValueError:  # for runs that it does not apply to
                    continue
                times.setdefault(name, []).append((time.perf_counter() - start) / size * 1e6)
        for name, each in times.items():
            mark = "  more than 1.5 ×" if each[-1] > 1.5 * each[0] else ""
            print(f"{name if kind in name else f'{name}, {kind}':45}" + "".join(f"{ms:10.2f}" for ms in each) + mark)


@click.command()
@click.option("--runs", "sizes", multiple=True, type=click.IntRange(MODELS), default=(1000, 10_000, 100_000))
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
@click.option("--kilobytes", default=12, show_default=True, help="Length of the longest logs.")
@click.option("--dataset", is_flag=True, help="Collect first, and load from the dataset.")
@click.option("--analyses", "by_analysis", is_flag=True, help="Time the analyses instead of reading.")
@click.option("--only", "kinds", multiple=True, type=click.Choice(list(load.LOADS)), default=tuple(load.LOADS))
@click.option("--keep", type=click.Path(path_type=Path), help="Folder for keeping the logs of --analyses.")
def main(
    sizes: tuple[int, ...],
    rounds: int,
    kilobytes: int,
    dataset: bool,
    by_analysis: bool,
    kinds: tuple[str, ...],
    keep: Path | None,
) -> None:
    """Measure and print time per run and peak memory for each size."""
    if by_analysis:
        with tempfile.TemporaryDirectory() as made:
            return grow(sizes, kinds, keep or Path(made))
    with tempfile.TemporaryDirectory() as made:
        folders = {}
        for size in sizes:
            folders[size] = Path(made) / f"runs-{size}"
            make_runs(folders[size], MODELS, size // MODELS, longest=kilobytes * 1000)
            if dataset:  # in a separate process: later processes inherit this one's peak
                made_of, folders[size] = folders[size], Path(made) / f"dataset-{size}"
                command = ["evalkit", "collect", "mindcraft", str(made_of), "--output", str(folders[size])]
                subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)
        times: dict[int, list[tuple[float, int, float]]] = {size: [] for size in sizes}
        for counted in [False] + [True] * rounds:
            for size, folder in folders.items():
                reading = read(folder)
                if counted:
                    times[size].append(reading)
        base = statistics.median(seconds / runs for seconds, runs, _ in times[sizes[0]])
        print(f"{'a dataset' if dataset else 'folders'}, median of {rounds} rounds, warm cache, one process")
        print(f"{'runs':>8} {'seconds':>8} {'ms per run':>11} {'× smallest':>11} {'peak MB':>8}")
        for size, readings in times.items():
            each = statistics.median(seconds / runs for seconds, runs, _ in readings)
            seconds, memory = (statistics.median(column) for column in (*zip(*readings, strict=True),)[::2])
            print(f"{size:>8} {seconds:>8.2f} {1000 * each:>11.3f} {each / base:>11.2f} {memory:>8.0f}")


if __name__ == "__main__":
    main()
