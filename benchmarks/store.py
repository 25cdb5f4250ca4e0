"""Benchmark loading a folder again after few or no changes, compared with the first load and with a plain program.

    python -m benchmarks.store                  # 20,000 runs of two logs of 300 bytes
    python -m benchmarks.store --runs 5000

Every load is timed in a separate process, excluding imports. The cache is empty before the first load. The plain
program is the one in `benchmarks.mindcraft`.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

LONG_AGO = 1_600_000_000  # an old modification time
MODELS = 10
LOAD = """
import sys, time, pandas, pyarrow.parquet
import evalkit.kinds.pipeline, evalkit.mindcraft.assemble
from evalkit.mindcraft import load
start = time.perf_counter()
runs = load(sys.argv[1]).runs
print(time.perf_counter() - start, len(runs))
"""
PLAIN = """
import sys, time
from benchmarks.mindcraft import plain
start = time.perf_counter()
plain(sys.argv[1])
print(time.perf_counter() - start)
"""


def make_small_runs(root: Path, runs: int) -> None:
    """Write runs of two agents each, with logs of about 300 bytes."""
    for i in range(runs):
        model, task = divmod(i, max(runs // MODELS, 1))
        folder = root / f"model-{model}/multiagent_cooking_{task}"
        folder.mkdir(parents=True)
        for agent in ("Andy_0", "Jill_1"):
            turns = [
                {"role": "user", "content": f"{agent}: task {task}, take the bread"},
                {"role": "assistant", "content": '!collectBlocks("wheat", 3)'},
                {"role": "system", "content": f"Task ended with score : {i % 3 % 2}"},
            ]
            path = folder / f"{agent}_0.json"
            path.write_text(json.dumps({"name": agent, "taskStart": 1_700_000_000_000 + i, "turns": turns}))
            os.utime(path, (LONG_AGO, LONG_AGO))
        os.utime(folder, (LONG_AGO, LONG_AGO))


def timed(code: str, folder: Path, cache: Path) -> float:
    """Run code in a separate process, and return the seconds that it prints."""
    environment = {**os.environ, "EVALKIT_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[0])


@click.command()
@click.option("--runs", default=20_000, show_default=True, type=click.IntRange(MODELS))
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
def main(runs: int, rounds: int) -> None:
    """Measure all loads, and print medians and their ratios to the plain program and to the first load."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "runs"
        make_small_runs(folder, runs)
        time.sleep(3)  # files that were written very recently are read again
        one = next(folder.glob("*/*/Andy_0_0.json"))
        times: dict[str, list[float]] = {}
        for number in range(rounds):
            cache = Path(made) / f"cache-{number}"
            times.setdefault("plain way", []).append(timed(PLAIN, folder, cache))
            times.setdefault("first load", []).append(timed(LOAD, folder, cache))
            times.setdefault("nothing changed", []).append(timed(LOAD, folder, cache))
            os.utime(one, (LONG_AGO, LONG_AGO + number + 1))
            time.sleep(3)
            times.setdefault("one log changed", []).append(timed(LOAD, folder, cache))
        print(f"{runs:,} runs of two small logs, median of {rounds} rounds, warm cache")
        for name, seconds in times.items():
            ratios = [
                statistics.median(load / base for load, base in zip(seconds, times[other], strict=True))
                for other in ("plain way", "first load")
            ]
            median = statistics.median(seconds)
            print(f"{name:18} {median:6.2f} s  {ratios[0]:5.2f} × the plain way  {ratios[1]:5.2f} × the first load")


if __name__ == "__main__":
    main()
