"""Going through a folder: which files are logs, what the others tell of them, and which runs left no log."""

import os
from collections.abc import Iterable, Iterator

from evalkit.io import Ledger, absolute, parse_files, read_files
from evalkit.mindcraft.definitions import TaskDefinitions
from evalkit.mindcraft.facts import type_of
from evalkit.mindcraft.folders import RunFolder
from evalkit.mindcraft.format import NOT_LOGS_BY_NAME, RESULTS
from evalkit.mindcraft.naming import Naming
from evalkit.mindcraft.parse import AgentOutcome, ParsedFile, parse_file

_LEFT_BY_RUNS = tuple(f"/{name}" for name in NOT_LOGS_BY_NAME)
BESIDE = (RESULTS, "results.json", "last_profile.json", "profile.json")


def parse_tree(files: list[str], jobs: int | None = None) -> Iterator[ParsedFile]:
    """Read and parse each file of a listing that can tell anything; the others are only named."""
    telling, others = sift(files)
    yield from others
    yield from parse_files(telling, parse_file, jobs)


def sift(files: list[str]) -> tuple[list[str], list[ParsedFile]]:
    """Part the files that can tell anything, and are worth reading, from the others."""
    return list(filter(may_tell, files)), [unread(path) for path in files if not may_tell(path)]


def may_tell(path: str) -> bool:
    """Tell by its name whether a file can be of use."""
    return path.lower().endswith(".json") or os.path.basename(path) == RESULTS or os.path.isdir(path)


def unread(path: str) -> ParsedFile:
    """Say of a file that can't be of use why."""
    return ParsedFile(path, "no JSON file by its name")


def sort_out(
    parsed: Iterable[ParsedFile], naming: Naming, ledger: Ledger, legacy: dict[str, list[str]]
) -> Iterator[AgentOutcome]:
    """Yield the outcomes of the logs; give the rest to the naming and the ledger.

    What the original scripts find in each JSON file goes to `legacy`, by folder.
    """
    for file in parsed:
        if file.source.endswith(".json"):
            legacy.setdefault(file.source.rpartition("/")[0], []).append(file.legacy)
        if file.outcome is not None:
            yield file.outcome
        elif file.error:
            ledger.failed(file.source, file.error)
        elif file.kind == RESULTS:
            ledger.used(file.source, "names the model")
        else:
            note = "" if file.kind.startswith("no JSON") else "not an agent log: "
            ledger.skipped(file.source, note + file.kind)
        name_from(file, naming)


def name_from(file: ParsedFile, naming: Naming) -> None:
    """Give the naming what a file says of the model."""
    if file.results is not None:
        naming.add_results(file.source, file.results)
    if file.model is not None:
        naming.add_profile(file.source, file.model)


def beside(files: list[str]) -> list[str]:
    """Name the files above what was listed that can tell the model: one task folder's results file lies there."""
    listed = _folders_of(files)
    above = {os.path.dirname(folder) for folder in listed} - listed
    return [os.path.join(folder, name) for folder in sorted(above) for name in BESIDE]


def parse_beside(files: list[str]) -> Iterator[ParsedFile]:
    """Read and parse the files above what was listed; one that can't be read is left out, for only a name is lost."""
    for path, data in read_files(beside(files)):
        if not isinstance(data, OSError):
            yield parse_file(path, data)


def part_stray(runs: list[RunFolder]) -> tuple[list[RunFolder], list[AgentOutcome]]:
    """Part the runs from broken files that are none: no task's folder has other runs in it, or below."""
    broken = [run for run in runs if not run.flat and not any(log["agent_log_processed"] for log in run.logs)]
    if not broken:
        return runs, []
    above = _with_parents(run.place if run.flat else os.path.dirname(run.place) for run in runs)
    stray = {run.place for run in broken if run.place in above}
    logs = [log for run in broken if run.place in stray for log in run.logs]
    return [run for run in runs if run.flat or run.place not in stray], logs


def empty_runs(
    files: list[str], folders: list[str], runs: list[RunFolder], definitions: TaskDefinitions, all_folders: bool
) -> list[RunFolder]:
    """Find task folders without any log: runs that broke before one was written.

    A folder counts when its name is a known task's, or when it holds nothing but what a run leaves beside its logs, has
    a task's name and lies beside other runs; with `all_folders` every one does.
    """
    taken = _with_parents(run.place for run in runs)
    places = {folder: absolute(folder) for folder in folders}
    filled = _folders_of([file for file in files if not file.endswith(_LEFT_BY_RUNS)])
    filled |= {os.path.dirname(place) for place in places.values()}
    beside = {os.path.dirname(run.place) for run in runs if not run.flat}
    empty = []
    for folder, path in places.items():
        name = os.path.basename(path)
        bare = path not in filled and os.path.dirname(path) in beside and type_of(name, None) != "unknown"
        if path not in taken and (all_folders or name in definitions or bare):
            empty.append(RunFolder(folder, path, name, False, []))
    return empty


def _with_parents(paths: Iterable[str]) -> set[str]:
    """Give paths, and all those above them."""
    found: set[str] = set()
    for path in paths:
        while path not in found:
            found.add(path)
            path = os.path.dirname(path)
    return found


def _folders_of(files: list[str]) -> set[str]:
    """Give the absolute paths of the folders that files stand in."""
    folders = {file[: file.rfind("/") + 1] for file in files}  # far fewer than files
    return {absolute(folder[:-1] or folder) for folder in folders}
