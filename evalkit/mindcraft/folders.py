"""Which logs belong to one run: nested and flat layouts, repetitions and agents."""

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from evalkit.io import absolute
from evalkit.mindcraft.definitions import TaskDefinitions
from evalkit.mindcraft.facts import agent_count_of
from evalkit.mindcraft.format import split_stem, stem_of
from evalkit.mindcraft.parse import AgentOutcome

# a flat log's name where its task is not among the definitions: task, agent with its server number, repetition
_FLAT = re.compile(r"(?P<task>.+)_(?P<agent>[A-Za-z][A-Za-z-]*_\d+)_(?P<repetition>\d+)")
_EXPERIMENT = re.compile(r"exp(?:eriment)?[_-].*|.*[_-]\d\d-\d\d[_-]\d\d-\d\d(?:-\d\d)?")
_GENERIC = re.compile(r"(?:experiment|log|run|result|output)s?|data|te?mp|samples?")


class RunFolder(NamedTuple):
    """The logs of one task in one folder: one repetition or several."""

    folder: str
    place: str  # the folder's absolute path
    task_id: str
    flat: bool
    logs: list[AgentOutcome]
    prefix: str = ""  # of the file names, in the flat layout


class Trial(NamedTuple):
    """The logs of one run: one repetition of a task."""

    repetition: int
    logs: list[AgentOutcome]
    rule: str


@lru_cache(maxsize=4096)
def is_experiment_name(name: str) -> bool:
    """Tell whether a folder's name says nothing of a model: an experiment's name with a date, or a generic word."""
    lower = name.lower()
    return not lower or bool(_GENERIC.fullmatch(lower) or _EXPERIMENT.fullmatch(lower))


def group_by_task(logs: Iterable[AgentOutcome], definitions: TaskDefinitions) -> list[RunFolder]:
    """Put logs together that belong to one task in one folder.

    A folder named like a known task is nested, whatever its files are called. Else a file whose name begins with a
    known task id (the longest one counts) is flat; so is a file named ``task_agent_0_1.json`` in a folder that is
    named like an experiment. What remains is nested: the folder's name is the task id.
    """
    folders: dict[str, list[AgentOutcome]] = defaultdict(list)
    for log in logs:
        folders[os.path.dirname(log["source"])].append(log)
    runs = []
    for folder, found in folders.items():
        place = absolute(folder)
        place = folder if place == folder else place  # one string less per run
        name = sys.intern(os.path.basename(place))  # many models run the same tasks
        nested = name in definitions or not (definitions or is_experiment_name(name))
        tasks: dict[str | None, list[AgentOutcome]] = {None: found} if nested else defaultdict(list)
        for log in () if nested else found:
            tasks[_flat_task(stem_of(log["source"]), name, definitions)].append(log)
        for task_id, members in tasks.items():
            flat = task_id is not None
            runs.append(RunFolder(folder, place, task_id or name, flat, members, f"{task_id}_" if flat else ""))
    return runs


def _flat_task(stem: str, folder: str, definitions: TaskDefinitions) -> str | None:
    match = _FLAT.fullmatch(stem) if is_experiment_name(folder) else None
    task_id = definitions.longest_id(stem)
    if task_id and match and stem[len(task_id) + 1].isdigit():  # no agent's name: only the id's beginning is known
        return match["task"]
    return task_id or (match["task"] if match else None)


def split_trials(logs: list[AgentOutcome], agent_count: int | None, prefix: str = "") -> list[Trial]:
    """Tell repetitions from agents by the names of the files.

    Parameters
    ----------
    logs : list of AgentOutcome
        Of one task in one folder. Their `agent_name` and `repetition` are set.
    agent_count : int or None
        As the definition says.
    prefix : str
        What the file names begin with in the flat layout.

    Returns
    -------
    list of Trial
        By repetition; none without logs. `rule` says how they were told apart:

        ``number_is_agent`` : one name without a server number, several agents (or the count unknown and several
            files), and no more files than agents, as in ``andy_0.json``, ``andy_1.json``; always where the name is the
            plain word ``agent``, which is no agent's own
        ``name_is_agent`` : the same, but each file with a name and a number of its own, as in ``andy_0.json``,
            ``jill_1.json``
        ``single`` : else, one log
        ``last_number_is_repetition`` : the rest, as in ``Andy_0_1.json``
    """
    stems = [stem_of(log["source"]).removeprefix(prefix) for log in logs]
    parsed = [split_stem(stem) for stem in stems]
    usual = _rule([(name, number) for name, number in parsed if not _is_no_name(name, number)], agent_count)
    trials: dict[int, list[AgentOutcome]] = defaultdict(list)
    rules: dict[int, str] = {}
    for log, stem, (name, number) in zip(logs, stems, parsed, strict=True):
        rule = "number_is_agent" if _is_no_name(name, number) else usual
        by_number = rule in ("last_number_is_repetition", "single")
        log["agent_name"], log["repetition"] = (name, number or 0) if by_number else (sys.intern(stem), 0)
        trials[log["repetition"]].append(log)
        if rules.setdefault(log["repetition"], rule) != "number_is_agent":
            rules[log["repetition"]] = rule
    return [Trial(repetition, members, rules[repetition]) for repetition, members in sorted(trials.items())]


def _is_no_name(name: str, number: int | None) -> bool:
    """Tell a numbered agent without a name of its own, as in ``agent_0.json``."""
    return number is not None and name.lower() == "agent"


def _rule(parsed: list[tuple[str, int | None]], agent_count: int | None) -> str:
    names = {name for name, _ in parsed}
    server_numbers = any(split_stem(name)[1] is not None for name in names)
    if not server_numbers and 1 < (agent_count or len(parsed)) >= len(parsed):
        if len(names) == 1:
            return "number_is_agent"
        if len(names) == len(parsed) and len({number for _, number in parsed}) > 1:
            return "name_is_agent"
    return "single" if len(parsed) == 1 else "last_number_is_repetition"


def expected_agents(candidates: list[dict]) -> int | None:
    """Give the number of agents that all definitions of an id agree on, else None."""
    counts = {agent_count_of(definition) for definition in candidates}
    return counts.pop() if len(counts) == 1 else None
