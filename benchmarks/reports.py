"""Benchmark a batch of sample reports, against plain papermill and nbconvert.

These ways alternate within each round. Each uses new processes and an empty store of parsed tables:

plain            one process that calls ``papermill.execute_notebook`` and nbconvert's ``HTMLExporter``, with
                 default settings, for one report after another
plain, two       the same in two parallel processes, each with half of the reports
evalkit, cold    ``evalkit report`` into a new folder
evalkit, again   ``evalkit report`` into the folder of ``evalkit, cold``, where nothing has changed

Run it from the folder of the project: ``python benchmarks/reports.py [--reports N] [--rounds N]``. Ratios are medians
of the ratios to ``plain`` in the same round. The processor seconds of all processes show how much of the elapsed time
was work, and whether other programs used the machine.
"""

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from evalkit.reports import plan

PLAIN = """
import sys
from pathlib import Path
import papermill
from nbconvert import HTMLExporter
from evalkit.reports import plan
output, start, step, total = Path(sys.argv[1]), *map(int, sys.argv[2:])
for report in plan()[:total][start::step]:
    executed = output / (report.key.replace("/", "-") + ".ipynb")
    papermill.execute_notebook(report.notebook.path, executed, report.parameters, progress_bar=False)
    executed.with_suffix(".html").write_text(HTMLExporter().from_filename(str(executed))[0])
"""


def main() -> None:
    """Measure all ways, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    files = [report.params_file for report in plan()][: options.reports]
    times: dict[str, list[tuple[float, float]]] = {}
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            ways = _ways(Path(folder), files)
            names = list(ways) if number % 2 == 0 else [*list(ways)[2:], *list(ways)[:2]]
            for name in names:
                before = _processor_seconds()
                elapsed = ways[name]()
                times.setdefault(name, []).append((elapsed, _processor_seconds() - before))
                print(f"round {number + 1}: {name}: {times[name][-1]}", file=sys.stderr)
    print(f"{len(files)} reports, {options.rounds} rounds, {_machine()}\n")
    print("| way | seconds | × plain | smallest | largest | processor's seconds | × plain |")
    print("|---|---|---|---|---|---|---|")
    for name in ways:
        elapsed, worked = zip(*times[name], strict=True)
        plain_elapsed, plain_worked = zip(*times["plain"], strict=True)
        ratios = [way / plain for way, plain in zip(elapsed, plain_elapsed, strict=True)]
        shares = [way / plain for way, plain in zip(worked, plain_worked, strict=True)]
        row = [statistics.median(elapsed), statistics.median(ratios), min(ratios), max(ratios)]
        row += [statistics.median(worked), statistics.median(shares)]
        print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in row) + " |")


def _processor_seconds() -> float:
    """Return the processor time of child processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _ways(folder: Path, files: list[str]) -> dict[str, Callable[[], float]]:
    """Return a function for each way that works in subfolders of `folder` and returns the elapsed seconds."""
    total = str(len(files))
    report = [sys.executable, "-m", "evalkit", "report", *files, "--output", str(folder / "cold")]

    def plain(count: int) -> float:
        output = folder / f"plain-{count}"
        output.mkdir()
        commands = [[sys.executable, "-c", PLAIN, str(output), str(i), str(count), total] for i in range(count)]
        seconds = _timed(commands, folder / f"store-{count}")
        assert len(list(output.glob("*.html"))) == len(files)
        return seconds

    return {
        "plain": lambda: plain(1),
        "plain, two": lambda: plain(2),
        "evalkit, cold": lambda: _timed([report], folder / "store-cold"),
        "evalkit, again": lambda: _timed([report], folder / "store-cold"),
    }


def _timed(commands: list[list[str]], store: Path) -> float:
    started = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        processes = [subprocess.Popen(c, env=_environment(store), stdout=output, stderr=output) for c in commands]
        codes = [process.wait() for process in processes]
        seconds = time.perf_counter() - started
        if any(codes):
            output.seek(0)
            raise SystemExit(output.read().decode())
    return seconds


def _environment(store: Path) -> dict[str, str]:
    return {**os.environ, "EVALKIT_CACHE": str(store)}


def _machine() -> str:
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"


if __name__ == "__main__":
    main()
