"""Benchmark the fingerprint of many files: the first time, and when none of them has changed since.

``python benchmarks/provenance.py [--files N] [--bytes N] [--rounds N]``; medians on this machine, in new processes,
compared with hashing every file in a plain loop.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PLAIN = """
import hashlib, sys, time
from pathlib import Path
paths = sorted(map(str, Path(sys.argv[1]).rglob("*.json")))
started = time.perf_counter()
for path in paths:
    with open(path, "rb") as file:
        hashlib.file_digest(file, "blake2b").digest()
print(time.perf_counter() - started)
"""
OURS = """
import sys, time
from pathlib import Path
from evalkit.display.provenance import describe_inputs
paths = sorted(map(str, Path(sys.argv[1]).rglob("*.json")))
started = time.perf_counter()
assert describe_inputs(paths).unreadable == 0
print(time.perf_counter() - started)
"""


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=40_000)
    parser.add_argument("--bytes", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        write_files(logs, options.files, options.bytes)
        for number in range(options.rounds):
            cached = {**os.environ, "EVALKIT_CACHE": f"{folder}/cache-{number}"}
            ways = {
                "every file in a plain loop": (PLAIN, cached),
                "the first time": (OURS, cached),
                "unchanged since": (OURS, cached),
                "nothing kept": (OURS, {**cached, "EVALKIT_CACHE": "off"}),
            }
            for name, (code, environment) in ways.items():
                done = subprocess.run(
                    [sys.executable, "-c", code, logs], env=environment, check=True, capture_output=True
                )
                times.setdefault(name, []).append(float(done.stdout))
    print(f"{options.files:,} files of {options.bytes:,} bytes, {options.rounds} rounds\n")
    print("| way | seconds | smallest | largest |\n|---|---|---|---|")
    for name, seconds in times.items():
        print(f"| {name} | {statistics.median(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f} |")


def write_files(folder: Path, number: int, size: int) -> None:
    """Write files with different contents, 100 to a folder, with an old modification time."""
    for at in range(number):
        path = folder / f"{at // 100:04d}" / f"{at:06d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"{at:016d}".encode().ljust(size))
        os.utime(path, (1e9, 1e9))


if __name__ == "__main__":
    main()
