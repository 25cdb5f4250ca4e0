"""Kill commands at random moments, and check that nothing gets lost.

    python -m tools.kills --kills 200
    python -m tools.kills --only collect --kills 20 --seed 7

A kill is SIGKILL, SIGINT or SIGTERM to the command, SIGINT to its whole group (Ctrl-C), or two of these within a tenth
of a second. The logs change before each, so that there is something to write. After each:

- no process of the command is left after `PATIENCE` seconds, and unless it was SIGKILL, there is no traceback;
- every file that others read is complete: that of the previous state, or of the next one;
- the same command, run again, succeeds with the result of an undisturbed run in an empty folder;
- no temporary file is left after that, and the logs are unchanged.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click
import nbformat
import pandas as pd

from evalkit import mindcraft
from evalkit.io.write import LOCK

LOGS, MODELS = 240, 3
PATIENCE = 8.0  # seconds after which no process of a command may be left
SECONDS = 120.0  # seconds for a command that is not killed
SIGNALS = {
    "SIGKILL": (signal.SIGKILL,),
    "SIGINT": (signal.SIGINT,),
    "SIGTERM": (signal.SIGTERM,),
    "SIGINT, SIGINT": (signal.SIGINT, signal.SIGINT),
    "SIGTERM, SIGINT": (signal.SIGTERM, signal.SIGINT),
    "SIGINT, SIGKILL": (signal.SIGINT, signal.SIGKILL),
}
TOO_LATE = "too late"  # it had ended before, so the kill does not count
_MARK = "EVALKIT_KILLS"  # a variable that the processes of a command inherit, to identify them
_NOTEBOOK = """\
import evalkit
runs = evalkit.load(logs, "mindcraft").runs
table = runs.groupby("model_name")["score"].agg(["size", "sum"]).reset_index()
evalkit.show_table(table, "scores")
evalkit.publish(table, "scores")
"""


class Command(NamedTuple):
    """A command to kill: its arguments, a check of its files after a kill, and its result for comparison."""

    arguments: tuple[str, ...]
    check: Callable[[Path], None]
    result: Callable[[Path], object]
    ends: bool = True


def write_logs(folder: Path, state: int, rng: random.Random) -> None:
    """Write logs, or change a third of them."""
    for number in range(LOGS):
        path = folder / "logs" / f"model-{number % MODELS}" / f"task_{number // MODELS}" / "Andy_0_0.json"
        if path.exists() and rng.random() < 0.67:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        turns = [{"role": "assistant", "content": f"turn {state}"}] * 20
        turns.append({"role": "system", "content": f"Task ended with score : {rng.random():.3f}"})
        path.write_text(json.dumps({"memory": "", "turns": turns}))


def write_project(folder: Path) -> None:
    """Write a notebook and the params of four reports."""
    cells = [nbformat.v4.new_markdown_cell("# Scores"), nbformat.v4.new_code_cell('logs: str = "logs"\nn: int = 0')]
    cells[1].metadata["tags"] = ["parameters"]
    cells.append(nbformat.v4.new_code_cell(_NOTEBOOK))
    (folder / "notebooks").mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "notebooks" / "scores.ipynb")
    (folder / "params" / "scores").mkdir(parents=True, exist_ok=True)
    (folder / "params" / "scores" / "all.yaml").write_text("n: [0, 1, 2, 3]\n")


def _table(source: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of incomplete datasets are expected
        runs = mindcraft.load(str(source)).runs
    return runs[["model_name", "task_id", "score"]].sort_values(["model_name", "task_id"]).to_csv(index=False)


def _nothing(folder: Path) -> None:
    return None


def _check_dataset(folder: Path) -> None:
    if (folder / "out" / "evalkit-records.json").exists():
        collected, there = (set(_table(folder / name).splitlines()) for name in ("out", "logs"))
        assert len(collected) <= len(there)


def _check_pages(folder: Path) -> None:
    """Read all files that a batch or `evalkit view` may have been writing."""
    for path in (folder / "out").rglob("*"):
        if not path.is_file() or any(part.startswith(".work-") for part in path.parts) or path.name.startswith("."):
            continue
        if path.suffix == ".html":
            assert path.read_text().rstrip().endswith("</html>"), path
        elif path.suffix == ".ipynb":
            nbformat.validate(nbformat.read(path, as_version=4))
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".csv":
            assert len(pd.read_csv(path)) == MODELS, path


def _reports(folder: Path) -> object:
    """Return the result of a batch: the state of each report and its table."""
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    assert "</html>" in (folder / "out" / "index.html").read_text()
    reports = {report["key"]: report["status"] for report in manifest["reports"]}
    return reports, {path.name: path.read_text() for path in sorted((folder / "out").glob("*/*.csv"))}


def _pages(folder: Path) -> object:
    return {path.name: path.read_bytes() for path in sorted((folder / "out" / "runs").glob("*.html"))}


def _check_output(folder: Path) -> None:
    if (folder / "out.csv").exists():
        assert len(pd.read_csv(folder / "out.csv")) == LOGS


COMMANDS = {
    "collect": Command(
        ("collect", "mindcraft", "logs", "-o", "out"), _check_dataset, lambda folder: _table(folder / "out")
    ),
    "report": Command(("report", "-o", "out", "--jobs", "2"), _check_pages, _reports),
    "load": Command(
        ("mindcraft", "logs", "--output", "out.csv"), _check_output, lambda folder: (folder / "out.csv").read_text()
    ),
    "view": Command(("view", "logs", "-o", "out"), _check_pages, _pages),
    "follow": Command(
        ("mindcraft", "logs", "--follow", "--interval", "0.5"), _nothing, lambda folder: _table(folder / "logs"), False
    ),
}


def start(command: Command, folder: Path, mark: str) -> subprocess.Popen:
    """Start a command in its own process group, with its own cache."""
    environment = {**os.environ, _MARK: mark, "EVALKIT_CACHE": str(folder / "cache")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    with open(folder / "printed", "w") as out, open(folder / "errors", "w") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "evalkit", *command.arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            start_new_session=True,
        )


def left(mark: str) -> Iterator[int]:
    """Yield the running processes that have inherited a mark."""
    wanted = f"{_MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                yield int(path.name)


def kill(process: subprocess.Popen, signals: tuple[int, ...], rng: random.Random) -> None:
    """Send signals to a process, or keyboard signals to its whole group."""
    for number, each in enumerate(signals):
        if number:
            time.sleep(rng.choice((0.0, 0.01, 0.1)))
        with suppress(ProcessLookupError):
            if each == signal.SIGINT and rng.random() < 0.5:
                os.killpg(process.pid, each)
            else:
                os.kill(process.pid, each)


def after_kill(command: Command, folder: Path, process: subprocess.Popen, how: str, mark: str) -> Iterator[str]:
    """Yield what a kill has left wrongly."""
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        yield "it did not end"
    end = time.monotonic() + PATIENCE
    while (running := list(left(mark))) and time.monotonic() < end:
        time.sleep(0.05)
    for number in running:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    if running:
        yield f"{len(running)} processes were left"
    errors = (folder / "errors").read_text()
    if "SIGKILL" not in how and "Traceback" in errors:
        yield f"a traceback: {errors.strip().splitlines()[-1]}"
    try:
        command.check(folder)
    except Exception as error:
        yield f"not whole: {type(error).__name__}: {error}"


def run_again(command: Command, folder: Path, mark: str) -> Iterator[str]:
    """Run a command to its end; yield differences from an undisturbed run."""
    process = start(command, folder, mark)
    if not command.ends:
        end = time.monotonic() + SECONDS
        while not (folder / "printed").stat().st_size and time.monotonic() < end:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
    code = process.wait(SECONDS)
    if code:
        yield f"run again, it ended with {code}: {(folder / 'errors').read_text()[-300:]}"
    own = [path for path in folder.rglob(".*") if path.name.startswith((".work-", ".evalkit-")) and path.name != LOCK]
    if own:
        yield f"left {', '.join(str(path.relative_to(folder)) for path in own)}"
    try:
        resumed = command.result(folder)
        for name in ("out", "cache"):
            shutil.rmtree(folder / name, ignore_errors=True)
        (folder / "out.csv").unlink(missing_ok=True)
        if command.ends:
            start(command, folder, mark).wait(SECONDS)
        if command.result(folder) != resumed:
            yield "run again, it gives another result than undisturbed"
    except Exception as error:
        yield f"run again, it left what can't be read: {type(error).__name__}: {error}"


def one(name: str, folder: Path, seed: int, moment: float) -> tuple[str, list[str]]:
    """Change the logs, and kill a command after so many seconds; return how it was killed, and what was wrong."""
    rng, command = random.Random(seed), COMMANDS[name]
    how, mark = rng.choice(list(SIGNALS)), f"{os.getpid()}-{name}-{seed}"
    write_logs(folder, seed, rng)
    process = start(command, folder, mark)
    time.sleep(moment)
    ended = process.poll() is not None
    kill(process, SIGNALS[how], rng)
    wrong = list(after_kill(command, folder, process, how, mark))
    return TOO_LATE if ended else how, wrong + list(run_again(command, folder, mark))


def prepare(name: str, folder: Path, seed: int) -> float:
    """Fill a folder for a command, run it, run it again with changed logs, and return how long that takes."""
    write_project(folder)
    if not COMMANDS[name].ends:
        return 3.0
    for turn in range(2):
        write_logs(folder, -turn, random.Random(-seed - turn))
        begun = time.monotonic()
        assert start(COMMANDS[name], folder, "first").wait(SECONDS) == 0, (folder / "errors").read_text()
    return time.monotonic() - begun


@click.command()
@click.option("--kills", default=40, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(COMMANDS)))
@click.option("--seed", default=0, show_default=True)
def main(kills: int, only: tuple[str, ...], seed: int) -> None:
    """Kill commands in turn, and print the number of kills of each and the faults; exit code 1 for a fault."""
    os.environ["EVALKIT_CACHE"] = "off"
    names, counts, faults, rng = list(only or COMMANDS), Counter[str](), 0, random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="evalkit-kills-") as root:
        took = {}
        for name in names:
            (Path(root) / name).mkdir()
            took[name] = prepare(name, Path(root) / name, seed)
        while counts.total() < kills:
            seed += 1
            name = names[seed % len(names)]
            how, wrong = one(name, Path(root) / name, seed, rng.uniform(0.0, took[name]))
            faults += len(wrong)
            counts[f"{name}: {how}"] += how != TOO_LATE
            for line in wrong:
                print(f"{name}, seed {seed}, {how}: {line}", flush=True)
    for key, count in sorted((+counts).items()):
        print(f"{key:30} {count:5}")
    print(f"{counts.total()} kills, {faults} findings")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
