"""Going through a folder: which files are logs, what the others tell of them, and which runs left no log."""

import os
from collections.abc import Iterator

from evalkit.io import BrokenFileError, Ledger, read_files
from evalkit.mindcraft.definitions import TaskDefinitions
from evalkit.mindcraft.facts import type_of
from evalkit.mindcraft.folders import RunFolder
from evalkit.mindcraft.format import model_of
from evalkit.mindcraft.naming import Naming, read_results, results_of
from evalkit.mindcraft.parse import AgentOutcome, ParsedFile, describe, parse_file

_BESIDE = ("results.txt", "results.json", "last_profile.json", "profile.json")


def read_logs(files: list[str], naming: Naming, ledger: Ledger) -> Iterator[AgentOutcome]:
    """Read every file once; yield the logs, give the rest to the naming and the ledger."""
    json_files = []
    for path in files:
        if path.endswith(".json"):
            json_files.append(path)
        elif os.path.basename(path) == "results.txt":
            try:
                naming.add_results(path, read_results(path))
                ledger.used(path, "names the model")
            except BrokenFileError as error:
                ledger.failed(path, str(error))
        elif os.path.isdir(path):  # one that can't be listed
            json_files.append(path)
        else:
            ledger.skipped(path, "no JSON file by its name")
    for path, data in read_files(json_files):
        if isinstance(data, OSError) and os.path.isdir(path):
            ledger.failed(path, f"the folder can't be listed: {describe(data)}")
            continue
        parsed = parse_file(path, data)
        if parsed.outcome is not None:
            yield parsed.outcome
        elif parsed.error:
            ledger.failed(path, parsed.error)
        else:
            ledger.skipped(path, f"not an agent log: {parsed.kind}")
            _name_from(parsed, naming)


def _name_from(parsed: ParsedFile, naming: Naming) -> None:
    if parsed.kind == "results":
        naming.add_results(parsed.source, results_of(parsed.value))
    elif parsed.kind == "agent profile" and (model := model_of(parsed.value)):
        naming.add_profile(parsed.source, model)


def beside(files: list[str]) -> list[str]:
    """Name the files above what was listed that can tell the model: one task folder's results file lies there."""
    listed = _folders_of(files)
    above = {os.path.dirname(folder) for folder in listed} - listed
    return [os.path.join(folder, name) for folder in sorted(above) for name in _BESIDE]


def look_beside(files: list[str], naming: Naming) -> None:
    """Ask the files above what was listed too."""
    for path in filter(os.path.isfile, beside(files)):
        try:
            if path.endswith(".txt"):
                naming.add_results(path, read_results(path))
            else:
                ((_, data),) = read_files([path])
                _name_from(parse_file(path, data), naming)
        except BrokenFileError:
            continue  # it lies outside of what was asked for, and only a name is lost


def empty_runs(
    files: list[str], folders: list[str], runs: list[RunFolder], definitions: TaskDefinitions, all_folders: bool
) -> list[RunFolder]:
    """Find task folders without any log: runs that broke before one was written.

    A folder counts when its name is a known task's, or when it is empty, has a task's name and lies beside other runs;
    with `all_folders` every one does.
    """
    taken: set[str] = set()
    for path in (run.place for run in runs):
        while path not in taken:
            taken.add(path)
            path = os.path.dirname(path)
    places = {folder: os.path.abspath(folder) for folder in folders}
    filled = _folders_of(files) | {os.path.dirname(place) for place in places.values()}
    beside = {os.path.dirname(run.place) for run in runs if not run.flat}
    empty = []
    for folder, path in places.items():
        name = os.path.basename(path)
        bare = path not in filled and os.path.dirname(path) in beside and type_of(name, None) != "unknown"
        if path not in taken and (all_folders or name in definitions or bare):
            empty.append(RunFolder(folder, path, name, False, []))
    return empty


def _folders_of(files: list[str]) -> set[str]:
    """Give the absolute paths of the folders that files stand in."""
    return {os.path.abspath(folder) for folder in {os.path.dirname(file) for file in files}}
