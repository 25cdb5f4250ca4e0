"""The layout of task runs on disk: which logs belong to one run, which are repetitions, and which model ran."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from evalkit.io import Listing, SourceError, absolute, is_url
from evalkit.io.text import MOST_MATCHED
from evalkit.mindcraft.parse import NOT_LOGS_BY_NAME, RESULTS, UNKNOWN, split_stem, stem_of
from evalkit.mindcraft.tasks import TYPE_NAMES, TYPES, TaskDefinitions, type_in

_LAST_OF_ID = r"(?:access|agents|depth|variant)_"  # the word before the last number of a task id
_ENDS_ID = re.compile(rf"_{_LAST_OF_ID}\d+\Z")
# a flat log's name where its task is not among the definitions: task, agent, server number, repetition
_FLAT = re.compile(
    rf"(?P<task>.+)_(?!{_LAST_OF_ID})(?P<agent>[A-Za-z][A-Za-z0-9.-]*)(?:(?P<server>_\d+)?(?P<repetition>_\d+))?"
)
# how task ids begin, or what only they contain: names of models and of sets of tasks contain types of tasks, too
_TASK_ID = re.compile(
    r"(?!.*_(?:eval|experiment|log|result|run|task)s?(?:_|\Z))"
    r"(?:multiagent_|(?:cooking|crafting|techtree|construction|debug)_\d+(?:_|\Z)|.*(?:rooms?_\d|num_agents_\d))"
)
_EXPERIMENT = re.compile(r"exp(?:eriment)?[_-].*|.*[_-]\d\d-\d\d[_-]\d\d-\d\d(?:-\d\d)?")
_REPETITION = re.compile(  # a number, alone or of a seed, or a date
    r"(?:(?:seed|rep|repeat|repetition|run|trial|try|attempt|iter|iteration|round)[_-]?)?\d{1,4}"
    r"|(?:20\d\d[-_.]?)?\d\d[-_.]?\d\d(?:[-_t]\d\d[-_.]?\d\d(?:[-_.]?\d\d)?)?",
    re.IGNORECASE,
)
_GENERIC = re.compile(r"(?:experiment|log|run|result|output)s?|data|te?mp|samples?")
_LEFT_BY_RUNS = tuple(f"/{name}" for name in NOT_LOGS_BY_NAME)
_NAMING_MODELS = (RESULTS, "results.json", "last_profile.json", "profile.json")
_TYPE_FOLDERS = (*TYPES, *TYPE_NAMES)  # folders with these names are not models
_TYPE_AT_END = re.compile(rf"\A(?:{'|'.join(_TYPE_FOLDERS)})[_-]+|[_-]+(?:{'|'.join(_TYPE_FOLDERS)})\Z")
_FIELDS = ("model_name", "task_id", "task_type", "suite", "experiment")


class TaskFolder(NamedTuple):
    """The logs of one task in one folder: one repetition or several."""

    folder: str
    path: str  # absolute
    experiment: str  # the folder of all its runs: above this one, or this one in the flat layout
    task_id: str
    flat: bool
    logs: Sequence[int] = ()  # positions in the list of all logs
    model_folder: str = ""  # where a model's folder is below the task's


def task_folders(
    logs: Sequence[str],
    broken: set[int],
    others: Iterable[Mapping[str, Any]],
    listing: Listing,
    definitions: TaskDefinitions,
    *,
    asked: Collection[str] = (),
    own_id: str = "",
) -> list[TaskFolder]:
    """Find the folders of task runs, including those without any log: of runs that broke before one was written.

    `broken` are positions of logs, `others` the records of other files. A folder without logs counts if its name is a
    known task's, or if it contains only files that a run leaves next to its logs, and is next to other runs with a
    task's name, or next to repetitions of a task. With `asked`, the folders that count are these and the repetitions in
    them. A folder of broken logs only is no task's if other runs are in it or below. Else it is one if its name is a
    task's, or if another run is equally deep, and either is next to it or no file of another kind is. A folder with
    only files that are logs within a run alone (`others` names them) needs another run equally deep, and the name of a
    task, or files named like logs of agents next to another run.

    With an `own_id`, the one folder asked for is this task's, whatever its name, except the flat logs of other tasks.
    """
    folders = group_by_task(logs, definitions, own_id, asked)
    if own_id:
        folders = [run._replace(task_id=own_id) for run in folders if run.task_id == own_id or not run.flat]
    above = set[str]()
    for parent in {*(run.experiment for run in folders), *(_parent(run.path) for run in folders)}:
        while parent not in above:
            above.add(parent)
            parent = _parent(parent)
    if broken and not asked:
        names = {row["source"] for row in others if row["other"]}
        doubtful = {place for place in broken if logs[place] in names}
        holding_others = {_parent(absolute(name)) for name in names}
        foreign = holding_others | set(map(_parent, holding_others))
        read = [run for run in folders if not broken.issuperset(run.logs)]
        depths, experiments = {run.path.count("/") for run in read}, {run.experiment for run in read}
        kept = []
        for run in folders:
            is_known = run.task_id in definitions or type_in(run.task_id) != UNKNOWN
            as_deep = not depths or run.path.count("/") in depths
            is_beside = run.experiment in experiments and run.path not in holding_others
            is_likely = is_beside or foreign.isdisjoint((run.path, run.experiment))
            if not broken.issuperset(run.logs):
                is_run = True
            elif run.flat:
                is_run = is_known or not doubtful.issuperset(run.logs)
            elif run.path in above:
                is_run = False
            elif doubtful.issuperset(run.logs):
                agents = [split_stem(stem_of(logs[place]))[0] for place in run.logs]
                are_agents = all(split_stem(agent)[1] is not None for agent in agents)  # with server numbers
                is_run = as_deep and (is_known or (are_agents and run.experiment in experiments))
            else:
                is_run = is_known or (as_deep and is_likely)
            if is_run:
                kept.append(run)
        folders = kept
    beside_runs = {run.experiment for run in folders if not run.flat}
    repeated = {_parent(run.path): run for run in folders if run.experiment == _parent(_parent(run.path))}
    known = {*above, *map(attrgetter("path"), folders)}
    paths = list(map(absolute, listing.folders))
    without = [pair for pair in zip(listing.folders, paths, strict=True) if pair[1] not in known]
    filled = {_parent(file) for file in listing.files if not file.endswith(_LEFT_BY_RUNS)} if without else ()
    filled = {*map(absolute, filled), *map(_parent, paths)}
    for folder, path in without:
        name = os.path.basename(path)
        above_it, is_bare = _parent(path), path not in filled
        if is_bare and above_it in repeated and _REPETITION.fullmatch(name):
            folders.append(repeated[above_it]._replace(folder=folder, path=path, logs=()))
            continue
        is_bare = is_bare and above_it in beside_runs and type_in(name) != UNKNOWN
        if path in asked if asked else (name in definitions or is_bare):
            folders.append(TaskFolder(folder, path, above_it, own_id or name, False))
    return folders


def group_by_task(
    logs: Sequence[str], definitions: TaskDefinitions, own_id: str, asked: Collection[str]
) -> list[TaskFolder]:
    """Group logs by task and folder.

    A folder named like a known task, or like `own_id`, is nested, whatever its files are called. Else a file whose name
    begins with a known task id (the longest one counts) is flat; so is a file named ``task_agent_0_1.json`` in a folder
    that is named like an experiment, or if its name contains a type of task, and the folder's none; then the number of
    the server, the repetition and the agent may be absent. All others are nested: the task is the nearest folder with
    the name of a task, else their own.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for place, path in enumerate(logs):
        members[_parent(path)].append(place)
    folders = []
    for folder, places in members.items():
        path = absolute(folder)
        name = os.path.basename(path)
        if asked and not _asked_for(path, asked):
            continue
        may_be_flat = definitions or is_experiment_name(name) or type_in(name) == UNKNOWN
        if name == own_id or name in definitions or not may_be_flat:
            folders.append(TaskFolder(folder, path, _parent(path), name, False, places))
            continue
        stems = {place: stem_of(logs[place]) for place in places}
        matches = {place: match for place, stem in stems.items() if (match := _FLAT.fullmatch(stem))}
        # without server numbers, words before the last number are agents if tasks share them, else parts of task ids
        ends = {match.group("task", "agent") for match in matches.values() if not match["server"]}
        words = {word for _, word in ends}
        are_agents = len(words) < max(len(ends), 3)
        tasks: dict[str, list[int]] = defaultdict(list)
        for place, stem in stems.items():
            task_id = stem[:MOST_MATCHED] if definitions else ""
            while task_id and task_id not in definitions:
                task_id = task_id.rpartition("_")[0]
            match = matches.get(place)
            if match and (not task_id or stem[len(task_id) + 1 :][:1].isdigit()):  # a digit begins no agent's name
                named = match["task"] if match["server"] or are_agents else f"{match['task']}_{match['agent']}"
                is_id = named not in _TYPE_FOLDERS and (_TASK_ID.match(named) or match["repetition"])
                is_typed = type_in(named) != UNKNOWN and type_in(name) == UNKNOWN
                if (is_id and is_typed) or (match["server"] and is_experiment_name(name)):
                    task_id = named
            elif not match and not task_id and type_in(name) == UNKNOWN and _TASK_ID.match(stem):
                task_id = stem if _ENDS_ID.search(stem) else split_stem(stem)[0]
            tasks[task_id].append(place)
        for task_id, of_task in tasks.items():
            if task_id:
                folders.append(TaskFolder(folder, path, path, task_id, True, of_task))
                continue
            of_path, model_folder = _task_above(path, definitions)
            task_path = of_path or _asked_for(path, asked) or path
            task_id = os.path.basename(task_path)
            folders.append(TaskFolder(folder, path, _parent(task_path), task_id, False, of_task, model_folder))
    # below tasks of several models, a folder is none
    above = {run.experiment for run in folders if run.model_folder}
    if sum(map(_may_be_model, map(os.path.basename, above))) > 1:
        folders = [run._replace(model_folder="") for run in folders]
    return folders


def _task_above(path: str, definitions: TaskDefinitions) -> tuple[str, str]:
    """Return the folder of a task at or above a folder of logs, and a model's between them; empty if there is none."""
    model_folder = ""
    may_be_custom = True  # an id unlike those of MineCollab, which contains the type of task
    while name := os.path.basename(path):
        is_typed = _may_be_model(name) and type_in(name) != UNKNOWN
        if name in definitions or (is_typed and (may_be_custom or _TASK_ID.match(name))):
            return path, model_folder
        if _REPETITION.fullmatch(name):
            may_be_custom = may_be_custom and not name.isdigit()
        elif not _GENERIC.fullmatch(name.lower()):
            if model_folder:
                break
            model_folder = "" if is_experiment_name(name) else path
            may_be_custom = False
        path = _parent(path)
    return "", ""


def _asked_for(path: str, asked: Collection[str]) -> str:
    """Return the folder of those asked for that is this one, or of which this one is a repetition; else empty."""
    while path not in asked:
        name = os.path.basename(path)
        if not (_REPETITION.fullmatch(name) or _GENERIC.fullmatch(name.lower())):
            return ""
        path = _parent(path)
    return path


def _may_be_model(name: str) -> bool:
    """Return whether a folder's name is none of a type of task, an experiment or a repetition."""
    return not (_REPETITION.fullmatch(name) or name in _TYPE_FOLDERS or is_experiment_name(name))


def _parent(path: str) -> str:
    """Return the folder of a path; `os.path.dirname` takes twice as long, and there are many."""
    end = path.rfind("/")
    return path[:end] if end > 0 else os.path.dirname(path)


def context_files(files: Sequence[str]) -> list[str]:
    """Return the files above the listed folder that can name the model, such as the results file of one task folder."""
    listed = set(map(absolute, set(map(_parent, files))))
    above = sorted(set(map(_parent, listed)) - listed)
    return list(map("/".join, product(above, _NAMING_MODELS)))


class Repetition(NamedTuple):
    """The logs of one run, a repetition of a task: the position of each log in the folder, and its agent's name."""

    number: int
    rule: str
    logs: tuple[int, ...]
    agents: tuple[str, ...]


@lru_cache(maxsize=4096)  # every run's folder has the same few names
def split_repetitions(names: tuple[str, ...], agent_count: int | None) -> tuple[Repetition, ...]:
    """Distinguish repetitions of a task from agents by the names of the files of a folder, but for a task's prefix.

    The rules are ``number_is_agent`` (one name without a server number, several agents (or the count unknown and
    several files), and no more files than agents, as in ``andy_0.json``, ``andy_1.json``; always where the name is the
    plain word ``agent``, which is no agent's own), ``name_is_agent`` (each file with a name and a number of its own,
    without server numbers, whatever the number of agents, as in ``andy_0.json``, ``jill_1.json``), else ``single`` (one
    log), and ``last_number_is_repetition`` (the rest, as in ``Andy_0_1.json``).
    """
    if not names:
        return (Repetition(0, "none", (), ()),)
    stems = list(map(stem_of, names))
    parsed = list(map(split_stem, stems))
    numbered = [(name, number) for name, number in parsed if number is not None] or parsed  # others may be no logs
    agent_names, numbers = {name for name, _ in numbered}, {number for _, number in numbered}
    count = agent_count or len(names)
    if any(number is not None and name.lower() == "agent" for name, number in numbered):
        rule = "number_is_agent"
    elif any(split_stem(name)[1] is not None for name in agent_names):  # server numbers
        rule = "last_number_is_repetition"
    elif len(agent_names) == len(numbered) and len(agent_names) > 1 and len(numbers) > 1:
        rule = "name_is_agent"
    elif len(agent_names) == 1 and count > 1 and count >= len(numbered):
        rule = "number_is_agent"
    else:
        rule = "last_number_is_repetition"
    if rule != "last_number_is_repetition":
        return (Repetition(0, rule, tuple(range(len(names))), tuple(stems)),)
    members: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for place, (name, number) in enumerate(parsed):
        members[number or 0].append((place, name))
    rule = "single" if len(names) == 1 else rule
    own = sorted(members.items())
    return tuple(Repetition(number, rule, *map(tuple, zip(*entries, strict=True))) for number, entries in own)


class Named(NamedTuple):
    """A run's model, the source of the name, its experiment, and other fields of the path and the results file."""

    model_name: str
    model_source: str  # layout, results, s3_path, profile, parent_folder or unknown
    experiment_folder: str | None
    experiment: str | None
    fields: Mapping[str, str]  # of the path: task_id, task_type, suite
    task_path: str | None  # the definition file that the results file names
    total: int | None  # tasks of the experiment, likewise
    fits_layout: bool


def name_models(
    folders: Sequence[TaskFolder], root: str, layout: str | None, others: Iterable[Mapping[str, Any]]
) -> list[Named]:
    """Name the model of every run: by the stated layout, results file, S3-like path, profiles, parent folder.

    Results files and profiles (`others` are their records) apply to the runs in their folder and in those just below.
    A layout is matched below `root`, the folder that was loaded. An S3-like path that begins above it may be a
    coincidence, unless its type is the task's.
    """
    n_above = 0 if is_url(root) else absolute(root).rstrip(os.sep).count(os.sep)  # parts of a path above the root
    root = absolute(root).rstrip(os.sep)
    patterns = compile_layout(layout) if layout else None
    results: dict[str, tuple[str | None, str | None, int | None]] = {}  # model, task_path, total
    profiles: dict[str, set[str]] = defaultdict(set)
    for row in others:
        folder = os.path.dirname(absolute(row["source"]))
        if row["profile_model"] is not None:
            profiles[folder].add(row["profile_model"])
        named_by_results = (row["results_model"], row["task_path"], row["total"])
        if named_by_results != (None, None, None) and (row["results_model"] or folder not in results):
            results[folder] = named_by_results

    named = []
    n_flat = Counter(run.path for run in folders if run.flat)  # tasks
    alike: dict[tuple, Named] = {}  # the runs of an experiment share a name
    for run in folders:
        experiment, task_type = run.experiment, type_in(run.task_id)
        is_own = patterns or run.path in results or run.path in profiles
        key = (run.path, run.task_id) if is_own else (experiment, run.flat, task_type, run.model_folder)
        if key in alike:
            named.append(alike[key])
            continue
        match = None
        if patterns:
            whole_path, last_parts = patterns
            path = os.path.join(run.path, run.task_id if run.flat else "").replace(os.sep, "/").rstrip("/")
            match = whole_path.match(path, len(root) + 1) or last_parts.search(path)
        stated = match.groupdict() if match else {}
        of_path = s3_fields(experiment)
        type_of_path = of_path.get("task_type", "")
        if task_type != TYPE_NAMES.get(type_of_path, type_of_path):
            of_path = s3_fields(experiment, n_above)
        model_of_results, task_path, total = results.get(run.path) or results.get(experiment, (None, None, None))
        of_profiles = profiles.get(run.path) or profiles.get(experiment, set())
        # a task's parent names the model if it is in the source; task types, experiments and repetitions are no
        # models, but the folder above a repetition is one, and that above a task type, even above the source
        above = run.model_folder or experiment
        if run.flat and (n_flat[run.path] == 1 or run.path == root):  # it may be a run's folder, or any
            above = ""
        below = repetition = ""
        while name := os.path.basename(above):
            if _REPETITION.fullmatch(name):
                repetition = above
            elif name in _TYPE_FOLDERS or is_experiment_name(name):
                below = name
            else:
                break
            above = os.path.dirname(above)
        in_source = not below and f"{above}/".startswith(f"{root}/")
        model_folder = above if in_source or below in _TYPE_FOLDERS else ""
        candidates = {
            "layout": stated.get("model_name"),
            "results": model_of_results,
            "s3_path": of_path.get("model_name"),
            "profile": " + ".join(sorted(of_profiles)),
            "parent_folder": os.path.basename(model_folder),
            UNKNOWN: UNKNOWN,
        }
        source, model = next(filter(itemgetter(1), candidates.items()))
        if match and "experiment" in stated:
            experiment = match.string[: match.end("experiment")]
        elif os.path.basename(model_folder) == model and not run.model_folder:  # models side by side in an experiment
            experiment = repetition or os.path.dirname(model_folder)
        fields = {**of_path, **stated}
        name = fields.get("experiment") or os.path.basename(experiment)
        fits_layout = not patterns or match is not None
        alike[key] = Named(str(model), source, experiment, name, fields, task_path, total, fits_layout)
        named.append(alike[key])
    # folders such as cooking_gpt and construction_gpt, each with tasks of its type only, are of one model
    types: dict[str, set[str]] = defaultdict(set)
    for run, own in zip(folders, named, strict=True):
        types[own.model_name].add(type_in(run.task_id) if own.model_source == "parent_folder" else "")
    typed = [name for name, own_types in types.items() if own_types == {type_in(name)}]
    bare = {name: _TYPE_AT_END.sub("", name) for name in typed}
    several = {name for name, short in bare.items() if len({type_in(n) for n in typed if bare[n] == short}) > 1}
    for place, own in enumerate(named):
        if own.model_name in several:
            named[place] = own._replace(model_name=bare[own.model_name], experiment=own.model_name)
    return named


@lru_cache(maxsize=4096)
def is_experiment_name(name: str) -> bool:
    """Return whether a folder's name does not name a model: an experiment's name with a date, or a generic word."""
    lower = name.lower()
    return not lower or bool(_GENERIC.fullmatch(lower) or _EXPERIMENT.fullmatch(lower))


def compile_layout(layout: str) -> tuple[re.Pattern, re.Pattern]:
    """Compile a layout such as ``{model_name}/{task_id}`` to patterns; SourceError for unknown or repeated fields.

    The first is for the whole path below the loaded folder, where a model's name may contain ``/``; the second for the
    last parts of a path, even if they are above the loaded folder.
    """
    pieces = re.split(r"\{(\w*)\}", layout.strip("/"))
    fields = pieces[1::2]
    if not fields or len(set(fields)) < len(fields) or not set(fields) <= set(_FIELDS):
        known = ", ".join(f"{{{field}}}" for field in _FIELDS)
        raise SourceError(f"layout {layout!r}: use each of {known} at most once, and at least one")
    pieces[0::2] = map(re.escape, pieces[0::2])
    pieces[1::2] = [f"(?P<{field}>[^/]+)" for field in fields]
    last_parts = "".join(pieces)
    whole_path = last_parts.replace("(?P<model_name>[^/]+)", "(?P<model_name>.+?)")
    return re.compile(rf"{whole_path}\Z"), re.compile(rf"/{last_parts}\Z")


@lru_cache(maxsize=4096)
def s3_fields(experiment: str, above: int = 0) -> dict[str, str]:
    """Match the end of an experiment's path with ``{task_type}/{model}/{suite}/{experiment}``."""
    parts = experiment.split(os.sep)
    for i in range(len(parts) - 4, above - 1, -1):
        if parts[i] in _TYPE_FOLDERS and "experiments" not in parts[i:]:
            model, (suite, experiment) = "/".join(parts[i + 1 : -2]), parts[-2:]
            return {"task_type": parts[i], "model_name": model, "suite": suite, "experiment": experiment}
    return {}
