"""Task definitions from many files, in which one id may mean different tasks."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from operator import eq
from typing import Any, NamedTuple

from evalkit.io import BrokenFileError, Ledger, SourceError, cut_name, decode_json, list_files, read_files
from evalkit.io.ledger import Entry
from evalkit.io.limits import MOST_MATCHED
from evalkit.mindcraft.format import ANYTHING, TASK_KEYS, describe, is_task_definition, other_kind
from evalkit.mindcraft.tasks.facts import agent_count_of, flat, metrics_of

MOST_LEVELS = 100  # of nested lists and objects in a file of definitions
MOST_METRICS = 1_000  # different metrics in one file: each is a column of the runs
Definition = dict[str, Any]


class Resolved(NamedTuple):
    """The definition of a run; `ambiguous` where the id alone, or the number of logs, had to decide."""

    definition: Definition | None
    ambiguous: bool = False


class TaskDefinitions(Mapping[str, Definition]):
    """All definitions that were loaded, by task id.

    As a mapping, it holds the first definition loaded for each id. Each definition is a dictionary as on disk, with
    ``task_id`` and ``definition_file`` added.

    Attributes
    ----------
    ledger : Ledger
        The files that were read.
    """

    def __init__(self, definitions: Mapping[str, Definition] | None = None) -> None:
        self.ledger = Ledger()
        self._by_id: dict[str, list[Definition]] = {}
        self._by_content: dict[tuple[str, str], Definition] = {}  # by id and JSON text
        for task_id, definition in (definitions or {}).items():
            self.add(task_id, definition, "")

    def add(self, task_id: str, definition: Definition, file: str) -> None:
        """Add one definition; the same content and id from another file only adds that file."""
        content = {key: value for key, value in definition.items() if key not in ("task_id", "definition_file")}
        same = (task_id, json.dumps(content, sort_keys=True, default=str))
        if same in self._by_content:
            self._by_content[same]["definition_file"] += f"{os.pathsep}{file}"
            return
        added = {**content, "task_id": task_id, "definition_file": file}
        self._by_content[same] = added
        self._by_id.setdefault(task_id, []).append(added)

    def __getitem__(self, task_id: str) -> Definition:
        return self._by_id[task_id][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def ambiguous(self) -> dict[str, list[str]]:
        """The ids with differing definitions, and their files (files of equal content are one entry)."""
        return {i: [d["definition_file"] for d in ds] for i, ds in sorted(self._by_id.items()) if len(ds) > 1}

    def candidates(self, task_id: str) -> list[Definition]:
        """All differing definitions of an id."""
        return self._by_id.get(task_id, [])

    def resolve(self, task_id: str, task_path: str | None = None, logs: int | None = None) -> Resolved:
        """Find the definition of a run.

        Parameters
        ----------
        task_id : str
        task_path : str, optional
            The definition file named by ``results.txt``; the candidate whose path has the same end is taken. If none
            has, the named file may define the task differently, which is flagged.
        logs : int, optional
            How many agents logged. The only candidate with that `agent_count` is taken and flagged, as a lost log would
            pick the wrong one.
        """
        candidates = self.candidates(task_id)
        if not candidates:
            return Resolved(None)
        if len(candidates) == 1:
            file = candidates[0]["definition_file"]
            return Resolved(candidates[0], ambiguous=bool(file and task_path and not _shared_parts(file, task_path)))
        if task_path:
            shared = [_shared_parts(c["definition_file"], task_path) for c in candidates]
            if max(shared) > 0 and shared.count(max(shared)) == 1:
                return Resolved(candidates[shared.index(max(shared))])
        fitting = [c for c in candidates if logs is not None and agent_count_of(c) == logs]
        return Resolved(fitting[0] if fitting else candidates[0], ambiguous=True)

    def longest_id(self, stem: str) -> str | None:
        """Find the longest known id that a flat log's name begins with, followed by ``_``."""
        pieces = stem[:MOST_MATCHED].split("_")
        return next((i for n in range(len(pieces) - 1, 0, -1) if (i := "_".join(pieces[:n])) in self._by_id), None)


def load_task_definitions(*paths: str | os.PathLike) -> TaskDefinitions:
    """Load task definitions; the ledger names files without any, and entries that are not definitions.

    Parameters
    ----------
    *paths : str or path
        Files, folders (read recursively), globs such as ``tasks/**/*.json``, or URLs of these.

    Raises
    ------
    SourceError
        If a path does not exist, a glob matches nothing, or none of the files of a path holds a definition.
    """
    definitions = TaskDefinitions()
    files_of = {os.fspath(path): list_files(path, "*.json") for path in paths}
    for file, data in read_files(dict.fromkeys(file for files in files_of.values() for file in files)):
        try:
            if isinstance(data, OSError):
                raise BrokenFileError(describe(data))
            value, _ = decode_json(data, ANYTHING)
            if _is_deeper(value, MOST_LEVELS):
                raise BrokenFileError(f"LimitError: nested deeper than the limit of {MOST_LEVELS} levels")
        except BrokenFileError as error:
            definitions.ledger.failed(file, str(error))
            continue
        _take(definitions, file, value)
    entries = {entry.source: entry for entry in definitions.ledger.entries}
    for path, files in files_of.items():
        if not any(entries[file].status == "used" for file in files):
            raise _no_definition(path, [entries[file] for file in files])
    return definitions


Tasks = str | os.PathLike | Iterable[str | os.PathLike] | Mapping[str, Definition] | TaskDefinitions


def as_definitions(tasks: Tasks) -> TaskDefinitions:
    """Return task definitions as they are, or load the named files."""
    if isinstance(tasks, TaskDefinitions):
        return tasks
    if isinstance(tasks, Mapping):
        return TaskDefinitions(tasks)
    paths = [tasks] if isinstance(tasks, (str, os.PathLike)) else list(tasks)
    return load_task_definitions(*(path for path in paths if os.fspath(path)))


def _no_definition(path: str, entries: list[Entry]) -> SourceError:
    """Return the error for a file or folder without task definitions."""
    if not entries:
        return SourceError(f"{path}: no task definition in it: there is no JSON file")
    first = entries[0]
    what = first.reason if first.status == "skipped" else f"no task definition can be read in it: {first.reason}"
    if first.source == path:
        return SourceError(f"{path}: {what}")
    files = "file" if len(entries) == 1 else f"{len(entries)} files"
    return SourceError(f"{path}: no task definition in its {files}, such as {first.source}: {what}")


def _is_deeper(value: Any, depth: int) -> bool:
    """Return whether lists and dictionaries are nested deeper than a number of levels."""
    level = [value]
    for _ in range(depth):
        inner = [one for one in level if isinstance(one, (dict, list))]
        level = [item for one in inner for item in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return False
    return True


def _take(definitions: TaskDefinitions, file: str, value: Any) -> None:
    if is_task_definition(value):
        value = {str(value.get("task_id") or os.path.basename(file).removesuffix(".json")): value}
    entries = value if isinstance(value, dict) and "turns" not in value else {}
    good = {
        task_id: entry for task_id, entry in entries.items() if isinstance(entry, dict) and TASK_KEYS & entry.keys()
    }
    if not good:
        definitions.ledger.skipped(file, f"holds no task definitions ({other_kind(value) or 'another shape'})")
        return
    n_metrics = len({name for definition in good.values() for name in flat(metrics_of(definition), "")})
    if n_metrics > MOST_METRICS:
        definitions.ledger.failed(file, f"LimitError: {n_metrics} metrics are more than the limit of {MOST_METRICS}")
        return
    for task_id, definition in good.items():
        definitions.add(cut_name(task_id), definition, file)
    bad = [task_id for task_id in entries if task_id not in good]
    definitions.ledger.used(file, "task definitions" + (f"; no definitions: {', '.join(bad)}" if bad else ""))


def _shared_parts(files: str, task_path: str) -> int:
    """Count the path parts that one of the files and a path share at their ends, starting with the file's name."""
    wanted, *have = (path.replace("\\", "/").split("/")[::-1] for path in (task_path, *files.split(os.pathsep)))
    return max(sum(takewhile(bool, map(eq, parts, wanted))) for parts in have)
