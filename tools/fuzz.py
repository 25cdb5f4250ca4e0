"""Fuzz the readers with mutated inputs, and check rules that every input must satisfy.

    python -m tools.fuzz --minutes 10             # all readers, with a fixed seed
    python -m tools.fuzz --only steps --seed 7
    python -m tools.fuzz tests/corpus/steps/x.json   # only this file, with its traceback

Inputs are mutations of files in ``tests/corpus`` (see `tools.mutate`). A reader may raise only documented exceptions,
take at most 5 seconds, and use at most 300 MB of additional memory. Inputs that violate these rules are saved in
``fuzz-findings/``. If you find a small input that reproduces a fault, add it to the corpus, which the tests read.
"""

import json
import os
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click

from evalkit.crafter.benchmark import load_runs
from evalkit.crafter.kind import KIND as CRAFTER
from evalkit.evidence.pages import pair_page, run_page
from evalkit.evidence.references import RunRef
from evalkit.io import BrokenFileError, SourceError, list_source, read_files
from evalkit.kinds import LogKind, load
from evalkit.mindcraft.kind import KIND as MINDCRAFT
from evalkit.mindcraft.parse import parse_results
from evalkit.mindcraft.tasks import load_task_definitions
from evalkit.steps.format import DEFAULTS
from evalkit.steps.judge import end_of_route, evaluate_history, histories_of
from evalkit.steps.kind import KIND as STEPS
from evalkit.steps.storage import extract_key_findings_from_execution
from tools.mutate import archive, database, mutated_bytes, mutated_value, written

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
SECONDS, MEGABYTES = 5.0, 300
PER_FOLDER = 200  # number of inputs that are also loaded together as a folder
PER_PROCESS = 20_000
SLICE = 20.0  # seconds for one reader before the next reader's turn
SUFFIXES = {"results": ".txt", "lines": ".jsonl", "checkpoints": ".sqlite", "archives": ".zip"}
MADE_FROM = {"checkpoints": ("steps",), "archives": ("steps",), "pages": ("logs", "traces", "steps")}  # their inputs


def _show(kind: LogKind, path: str, data: bytes) -> None:
    with suppress(ValueError, KeyError, TypeError):  # `evalkit show` reports these errors in one line
        kind.transcript([path], lambda _: data).text()


def _logs(path: str, data: bytes) -> None:
    MINDCRAFT.parse(path, data)
    _show(MINDCRAFT, path, data)


def _traces(path: str, data: bytes) -> None:
    CRAFTER.parse(path, data)
    _show(CRAFTER, path, data)


def _steps(path: str, data: bytes) -> None:
    parsed = STEPS.parse(path, data)
    for history in histories_of(
        *([(path, *row) for row in parsed.rows.get(name, ())] for name in ("histories", "steps")), DEFAULTS
    ):
        evaluate_history(history)
        end_of_route(history)
        json.dumps(extract_key_findings_from_execution(history), allow_nan=False)


def _results(path: str, data: bytes) -> None:
    with suppress(BrokenFileError):
        parse_results(data)


def _pages(path: str, data: bytes) -> None:
    run = RunRef("a", "", [path], "", [("run", "a"), ("task", path)])
    for kind in (MINDCRAFT, CRAFTER, STEPS):
        with suppress(ValueError, KeyError, TypeError):  # as in `_show`
            transcript = kind.transcript([path], lambda _: data)
            break
    else:
        return
    run_page(run, transcript)
    half = transcript._replace(turns=transcript.turns[len(transcript.turns) // 2 :])
    pair_page((run, run), transcript, half)


def _archives(path: str, data: bytes) -> None:
    with suppress(SourceError):
        for _ in read_files(list_source(f"zip://{path}!/").files):
            pass


def _in_file(read: Callable[[str], object]) -> Callable[[str, bytes], None]:
    def run(path: str, data: bytes) -> None:
        with suppress(SourceError):
            read(path)

    return run


TARGETS: dict[str, Callable[[str, bytes], None]] = {
    "logs": _logs,
    "definitions": _in_file(load_task_definitions),
    "results": _results,
    "traces": _traces,
    "benchmark": _in_file(load_runs),
    "steps": _steps,
    "lines": _steps,
    "checkpoints": _steps,
    "pages": _pages,
    "archives": _archives,
}
KINDS = {"logs": MINDCRAFT, "traces": CRAFTER, "steps": STEPS, "lines": STEPS, "checkpoints": STEPS}


def corpus(target: str) -> list[Path]:
    """List the files of a reader's corpus."""
    folder = CORPUS / target
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def inputs(target: str, rng: random.Random) -> Iterator[bytes]:
    """Yield mutated inputs for a reader without end."""
    seeds = [path.read_bytes() for name in MADE_FROM.get(target, (target,)) for path in corpus(name)]
    values = []
    for data in seeds:
        with suppress(ValueError, RecursionError):
            values.append(json.loads(data))
    while True:
        with suppress(RecursionError):  # a mutation may nest values deeper than Python can copy
            yield _mutated(target, seeds, values, rng)


def _mutated(target: str, seeds: list[bytes], values: list[Any], rng: random.Random) -> bytes:
    if target in ("results", "lines") or not values:
        data = rng.choice(seeds)
        for _ in range(rng.choice((1, 1, 3))):
            data = mutated_bytes(data, rng)
        return data
    if target == "checkpoints":
        states = [mutated_value(rng.choice(values), values, rng) for _ in range(rng.choice((1, 2)))]
        return database([{"channel_values": {"execution_history": state}} for state in states], rng)
    if target == "archives":
        return archive([written(mutated_value(rng.choice(values), values, rng), rng) for _ in range(3)], rng)
    return written(mutated_value(rng.choice(values), values, rng), rng)


def check(target: str, path: str, data: bytes) -> str:
    """Run a reader on one input, and return the fault, or "" if there is none."""
    begun = time.process_time()  # not elapsed time, which depends on other programs
    try:
        TARGETS[target](path, data)
    except Exception:
        return traceback.format_exc()
    seconds = time.process_time() - begun
    return f"took {seconds:.1f} s" if seconds > SECONDS else ""


def check_folder(target: str, folder: str) -> str:
    """Load the inputs in a folder together, describe them, and return the fault, or "" if there is none."""
    kind = KINDS[target]
    try:
        with suppress(SourceError):
            logs = load(folder, kind, jobs=1)
            for name in dir(logs):
                getattr(logs, name)
            kind.command.describe(logs, {view.name: view.default for view in kind.command.views})
    except Exception:
        return traceback.format_exc()
    return ""


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def work(target: str, seed: int, until: float, findings: str) -> None:
    """Check up to `PER_PROCESS` inputs until a time or until memory grows, and report how many were checked.

    Each input is written to a file before it is read. If the process dies, its folder remains, and the last file is the
    cause.
    """
    sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - discard what readers print
    rng, base = random.Random(seed), _memory()
    done, wrong = 0, Counter()
    with tempfile.TemporaryDirectory(prefix=f"{target}-{seed}-", dir=findings) as folder:
        for data in inputs(target, rng):
            path = f"{folder}/{done % PER_FOLDER}{SUFFIXES.get(target, '.json')}"
            Path(path).write_bytes(data)
            fault = check(target, path, data)
            if not fault and _memory() > base + MEGABYTES:
                fault, base = f"took {_memory() - base:.0f} MB", _memory()
            if target in KINDS and not fault and done % PER_FOLDER == PER_FOLDER - 1:
                fault = check_folder(target, folder)
                data = b"".join(f.read_bytes() for f in sorted(Path(folder).iterdir())) if fault else data
            done += 1
            if fault:
                wrong[fault.strip().splitlines()[-1]] += 1
                _keep(Path(findings) / target, fault, data, folder)
            if done >= PER_PROCESS or time.time() > until or base > 1000:
                break
    Path(findings, f"count-{target}-{seed}").write_text(f"{done} {wrong.total()}")


def _keep(folder: Path, fault: str, data: bytes, inputs_of_folder: str) -> None:
    import hashlib
    import shutil

    name = hashlib.blake2b("".join(fault.splitlines()[-4:]).encode(), digest_size=4).hexdigest()
    if not (folder / name).exists():  # keep one input per fault
        shutil.copytree(inputs_of_folder, folder / f"{name}.folder", dirs_exist_ok=True)
        (folder / name).write_bytes(data)
        (folder / f"{name}.txt").write_text(fault)


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--minutes", default=1.0, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(TARGETS)))
@click.option("--seed", default=0, show_default=True)
@click.option("--findings", default="fuzz-findings", show_default=True, type=click.Path(path_type=Path))
def main(files: tuple[Path, ...], minutes: float, only: tuple[str, ...], seed: int, findings: Path) -> None:
    """Check readers in turn on mutated inputs, and print the numbers of inputs. Exit with code 1 for findings."""
    os.environ["EVALKIT_CACHE"] = "off"
    if files:
        for file in files:
            print(f"{file}: {check(file.parent.name, str(file), file.read_bytes()) or 'as it should be'}")
        return
    until = time.time() + 60 * minutes
    totals, wrong = Counter[str](), Counter[str]()
    context = get_context("fork")
    for target in TARGETS:
        (findings / target).mkdir(parents=True, exist_ok=True)
    turns: Any = [target for target in TARGETS if not only or target in only]
    while time.time() < until:
        for target in turns:
            seed += 1
            end = time.time() + min(SLICE, 60 * minutes / len(turns))
            process = context.Process(target=work, args=(target, seed, end, str(findings)))
            process.start()
            process.join(300)
            if process.is_alive():
                process.kill()
            count = findings / f"count-{target}-{seed}"
            done, faults = map(int, count.read_text().split()) if count.exists() else (0, 1)
            count.unlink(missing_ok=True)
            totals[target] += done
            wrong[target] += faults
            if not done:
                print(f"{target}: seed {seed} did not end, or died", flush=True)
    for target, count in totals.items():
        print(f"{target:12} {count:9,} inputs, {wrong[target]} findings")
    print(f"{'all':12} {totals.total():9,} inputs, {wrong.total()} findings, kept in {findings}")
    sys.exit(1 if wrong.total() else 0)


if __name__ == "__main__":
    main()
