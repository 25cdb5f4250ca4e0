"""Benchmark parallel reading: one process, two, and a Dask cluster of two, alternating, by number of files.

    python -m tools.processes                      # Mindcraft logs of 10 to 60 kB
    python -m tools.processes --kind crafter       # traces with images, 3.5 MB each
    python -m tools.processes --files 300 --files 1000 --rounds 9

The time is that of `load`, from the folder to its frames, by the wall clock and with a warm cache; the store of parsed
tables is off, and processes are used for any number of files. The cluster runs already; connecting to it counts. Ratios
are to one process, within each round. Other work on the machine takes what a second process could gain, so each timing
waits until nine tenths of all cores are idle, for five seconds at most. The bound is what two processes could reach if
they share reading and parsing, and one does the rest: listing, assembling, frames.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
from distributed import LocalCluster

from benchmarks.crafter import generate
from benchmarks.make_mindcraft import make_runs
from evalkit import crafter, mindcraft
from evalkit.crafter import kind as crafter_kind
from evalkit.io import list_files, parse_files
from evalkit.io.parallel import cluster
from evalkit.kinds import update
from evalkit.mindcraft import kind as mindcraft_kind

MODELS, AGENTS = 5, 2.5  # of generated Mindcraft runs: models, agents on average
TRACES = 24  # generated; more files are links to these
FILES = {"mindcraft": (300, 1000, 3000, 10_000), "crafter": (25, 50, 100, 200, 500, 1000)}
KINDS = {"mindcraft": mindcraft_kind, "crafter": crafter_kind}
LOAD: dict[str, Callable] = {"mindcraft": mindcraft.load, "crafter": crafter.load}


def make(kind: str, folder: Path, count: int) -> None:
    """Fill a folder with about so many files."""
    if kind == "mindcraft":
        make_runs(folder, MODELS, round(count / MODELS / AGENTS))
        return
    generate(folder, min(count, TRACES))
    made = sorted(folder.iterdir())
    for number in range(TRACES, count):
        os.link(made[number % TRACES], folder / f"linked_{number}.json")


def wait_until_idle(seconds: float = 5.0) -> None:
    """Wait until the cores are idle; return at once if that can't be determined."""
    try:
        for _ in range(round(seconds / 0.05)):
            before = _ticks()
            time.sleep(0.05)
            spent = [after - earlier for earlier, after in zip(before, _ticks(), strict=True)]
            if spent[3] + spent[4] >= 0.9 * sum(spent):  # idle, and waiting for the disk
                return
    except OSError:
        return


def _ticks() -> list[int]:
    return [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]


def compare(kind: str, folder: str, scheduler: str, rounds: int) -> None:
    """Time the ways in turn, after a warm-up round, and print medians and ratios of one folder."""
    load, files = LOAD[kind], list_files(folder)

    def load_on_cluster() -> None:
        with cluster(scheduler):
            load(folder)

    ways: dict[str, Callable[[], object]] = {
        "one": partial(load, folder),
        "two": partial(load, folder, jobs=2),
        "cluster": load_on_cluster,
        "parsing": lambda: [None for _ in parse_files(files, KINDS[kind].KIND.parse, 1)],
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for counted in [False] + [True] * rounds:
        for name, way in ways.items():
            wait_until_idle()
            start = time.perf_counter()
            way()
            if counted:
                times[name].append(time.perf_counter() - start)
    shared = statistics.median(parsing / one for parsing, one in zip(times["parsing"], times["one"], strict=True))
    print(f"{len(files):>7} {statistics.median(times['one']):>9.3f} s", end="")
    for name in ("two", "cluster"):
        ratios = [one / other for one, other in zip(times["one"], times[name], strict=True)]
        print(f" {statistics.median(ratios):>9.2f} [{min(ratios):.2f}, {max(ratios):.2f}]", end="")
    print(f" {1 / (1 - shared / 2):>7.2f}", flush=True)


@click.command()
@click.option("--kind", type=click.Choice(list(FILES)), default="mindcraft", show_default=True)
@click.option(
    "--files", "counts", multiple=True, type=click.IntRange(1), help="Approximate number of files; repeatable."
)
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(1))
def main(kind: str, counts: tuple[int, ...], rounds: int) -> None:
    """Compare one process, two, and a Dask cluster of two on folders of different sizes."""
    os.environ["EVALKIT_CACHE"] = "off"
    update.PARALLEL_FILES = 1
    print(f"{kind}, median of {rounds} rounds [lowest, highest]; how many times as quick as one process")
    print(f"{'files':>7} {'one':>11} {'two':>22} {'cluster of two':>22} {'bound':>7}")
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local:
        for count in counts or FILES[kind]:
            with tempfile.TemporaryDirectory() as folder:
                make(kind, Path(folder), count)
                compare(kind, folder, local.scheduler_address, rounds)


if __name__ == "__main__":
    main()
