"""Read the layout of task runs on disk: which logs belong to one run, which are repetitions, and which model ran."""

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

_LAST_OF_ID = r"(?:access|agents|depth|variant)_"  # words before the last number of a task id
_ENDS_ID = re.compile(rf"_{_LAST_OF_ID}\d+\Z")
# file name of a flat log whose task has no definition: task, agent, server number, repetition
_FLAT = re.compile(
    rf"(?P<task>.+)_(?!{_LAST_OF_ID})(?P<agent>[A-Za-z][A-Za-z0-9.-]*)(?:(?P<server>_\d+)?(?P<repetition>_\d+))?"
)
_TYPE_FOLDERS = (*TYPES, *TYPE_NAMES)  # folders with these names are not models
_ANY_TYPE = "|".join(_TYPE_FOLDERS)
# what task ids begin with, or what only they contain; task types also occur in names of models and of sets of tasks
_TASK_ID = re.compile(
    r"(?!.*_(?:eval|experiment|log|result|run|task)s?(?:_|\Z))"
    rf"(?:multiagent_|(?:{_ANY_TYPE})_\d+(?:_|\Z)|.*(?:rooms?_\d|num_agents_\d))"
)
_EXPERIMENT = re.compile(r"exp(?:eriment)?[_-].*|.*[_-]\d\d-\d\d[_-]\d\d-\d\d(?:-\d\d)?")
_REPETITION = re.compile(  # a number, alone or after a word such as "seed", or a date
    r"(?:(?:seed|rep|repeat|repetition|run|trial|try|attempt|iter|iteration|round)[_-]?)?\d{1,4}"
    r"|(?:20\d\d[-_.]?)?\d\d[-_.]?\d\d(?:[-_t]\d\d[-_.]?\d\d(?:[-_.]?\d\d)?)?",
    re.IGNORECASE,
)
_GENERIC = re.compile(r"(?:experiment|log|run|result|output)s?|data|te?mp|samples?")
_LEFT_BY_RUNS = tuple(f"/{name}" for name in NOT_LOGS_BY_NAME)
_NAMING_MODELS = (RESULTS, "results.json", "last_profile.json", "profile.json")
_TYPE_AT_END = re.compile(rf"\A(?:{_ANY_TYPE})[_-]+|[_-]+(?:{_ANY_TYPE})\Z")
_FIELDS = ("model_name", "task_id", "task_type", "suite", "experiment")


class TaskFolder(NamedTuple):
    """The logs of one task in one folder, of one or several repetitions."""

    folder: str
    path: str  # absolute
    experiment: str  # the experiment's folder: the parent of the task's folder; in the flat layout, this folder
    task_id: str
    flat: bool
    logs: Sequence[int] = ()  # positions in the list of all logs
    model_folder: str = ""  # model's folder, if it is inside the task's; else ""


def task_folders(
    logs: Sequence[str],
    broken: set[int],
    only_in_runs: Collection[str],
    listing: Listing,
    definitions: TaskDefinitions,
    *,
    asked: Collection[str] = (),
    own_id: str = "",
) -> list[TaskFolder]:
    """Find the folders of task runs, including folders without logs: their runs broke before they wrote a log.

    `broken` has the positions of unreadable logs, `only_in_runs` the paths of files that are logs only within a run. If
    the user named task folders (`asked`), only these and the repetitions in them count. `own_id` is the task of the one
    folder in `asked`, regardless of its name; flat logs of other tasks in that folder are left out.

    A folder without logs is a run if its name is a known task id. It is also a run if it contains only files that runs
    leave next to their logs, and is either named like a task and next to other runs, or named like a repetition and
    next to repetitions of a task.

    A folder with only broken logs is not a run if other runs are in it. Otherwise it is a run if its name is a task's,
    or if it is as deep as a readable run (if there is any) and either next to one or not near files of another kind.
    A folder with only broken logs in `only_in_runs` must be as deep as a readable run, and either have a task's name or
    be next to a readable run and have file names like agents' logs.
    """
    folders = group_by_task(logs, definitions, own_id, asked)
    if own_id:
        folders = [run._replace(task_id=own_id) for run in folders if run.task_id == own_id or not run.flat]
    above = set[str]()  # folders that have runs in them
    for run in folders:
        parent = run.path if run.flat else _parent(run.path)
        while parent not in above:
            above.add(parent)
            parent = _parent(parent)
    if broken and not asked:
        doubtful = {place for place in broken if logs[place] in only_in_runs}
        holding_others = {_parent(absolute(name)) for name in only_in_runs}
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
    beside_runs = set[str]()  # folders of experiments
    repeated = dict[str, TaskFolder]()  # by the folder of a task: a repetition in it
    for run in folders:
        if not run.flat:
            beside_runs.add(run.experiment)
        above_it = _parent(run.path)
        if run.experiment == _parent(above_it):
            repeated[above_it] = run
    known = {*above, *map(attrgetter("path"), folders)}
    paths = list(map(absolute, listing.folders))
    without = [pair for pair in zip(listing.folders, paths, strict=True) if pair[1] not in known]
    filled = {_parent(file) for file in listing.files if not file.endswith(_LEFT_BY_RUNS)} if without else ()
    filled = {*map(absolute, filled), *map(_parent, paths)}
    for folder, path in without:
        name = os.path.basename(path)
        above_it = _parent(path)
        is_bare = path not in filled
        if is_bare and above_it in repeated and _REPETITION.fullmatch(name):
            folders.append(repeated[above_it]._replace(folder=folder, path=path, logs=()))
            continue
        is_broken_run = is_bare and above_it in beside_runs and type_in(name) != UNKNOWN
        is_task = name in definitions or is_broken_run
        if asked:
            is_task = path in asked
        if is_task:
            folders.append(TaskFolder(folder, path, above_it, own_id or name, False))
    return folders


def group_by_task(
    logs: Sequence[str], definitions: TaskDefinitions, own_id: str, asked: Collection[str]
) -> list[TaskFolder]:
    """Group logs by task and folder.

    A folder named like a known task, or like `own_id`, is nested, regardless of the names of its files. In other
    folders, a file is flat if its name begins with a known task id (the longest that matches), or if it has the form
    ``task_agent_0_1.json`` and the folder is named like an experiment. A file is also flat if its name contains a task
    type and the folder's name does not; such a name may lack the server number, the repetition and the agent. All other
    files are nested: their task is the nearest folder with a task's name, else their folder.
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
        stems = [stem_of(logs[place]) for place in places]
        matches = list(map(_FLAT.fullmatch, stems))
        # without server numbers, the word before the last number is an agent if tasks share it, else part of the id
        ends = {match.group("task", "agent") for match in matches if match and not match["server"]}
        words = {word for _, word in ends}
        are_agents = len(words) < max(len(ends), 3)
        tasks: dict[str, list[int]] = defaultdict(list)
        for place, stem, match in zip(places, stems, matches, strict=True):
            task_id = stem[:MOST_MATCHED] if definitions else ""
            while task_id and task_id not in definitions:
                task_id = task_id.rpartition("_")[0]
            if match and (not task_id or stem[len(task_id) + 1 :][:1].isdigit()):  # no agent's name begins with a digit
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
    # if several folders above tasks may be models, the folders inside tasks are not
    above = {run.experiment for run in folders if run.model_folder}
    if sum(map(_may_be_model, map(os.path.basename, above))) > 1:
        folders = [run._replace(model_folder="") for run in folders]
    return folders


def _task_above(path: str, definitions: TaskDefinitions) -> tuple[str, str]:
    """Return the nearest task's folder at or above a folder of logs, and the model's between them; "" if absent."""
    model_folder = ""
    may_be_custom = True  # whether a name with a task type counts as a task id even if it is unlike MineCollab's
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
    """Return the folder in `asked` that is this folder or contains it as a repetition; "" if there is none."""
    while path not in asked:
        name = os.path.basename(path)
        if not (_REPETITION.fullmatch(name) or _GENERIC.fullmatch(name.lower())):
            return ""
        path = _parent(path)
    return path


def _may_be_model(name: str) -> bool:
    """Return whether a folder's name is not that of a task type, an experiment or a repetition."""
    return not (_REPETITION.fullmatch(name) or name in _TYPE_FOLDERS or is_experiment_name(name))


def _parent(path: str) -> str:
    """Return the folder of a path; for many paths, `os.path.dirname` would take twice as long."""
    end = path.rfind("/")
    return path[:end] if end > 0 else os.path.dirname(path)


def context_files(files: Sequence[str]) -> list[str]:
    """Return the files above the listed folders that may name the model, such as the results file of a task folder."""
    listed = set(map(absolute, set(map(_parent, files))))
    above = sorted(set(map(_parent, listed)) - listed)
    return list(map("/".join, product(above, _NAMING_MODELS)))


class Repetition(NamedTuple):
    """One run, as a repetition of a task, with its logs."""

    number: int
    rule: str  # rule that distinguished repetitions from agents; see `split_repetitions`
    logs: tuple[int, ...]  # positions in the folder
    agents: tuple[str, ...]  # name of the agent of each log


@lru_cache(maxsize=4096)  # the folders of runs have the same few names
def split_repetitions(names: tuple[str, ...], agent_count: int | None) -> tuple[Repetition, ...]:
    """Decide from the file names in a folder (without a task's prefix) whether numbers mean repetitions or agents.

    - ``number_is_agent``: all files have the same name without a server number, the task has several agents (if their
      number is unknown: the folder has several files), and there are no more files than agents, as in ``andy_0.json``,
      ``andy_1.json``. This rule always applies if a name is the plain word ``agent``, which identifies no agent.
    - ``name_is_agent``: each file has a different name, without a server number, and not all numbers are equal, as in
      ``andy_0.json``, ``jill_1.json``. The number of agents does not matter.
    - ``single``: there is one log.
    - ``last_number_is_repetition``: all other folders, as in ``Andy_0_1.json``.
    """
    if not names:
        return (Repetition(0, "none", (), ()),)
    stems = list(map(stem_of, names))
    parsed = list(map(split_stem, stems))
    numbered = [(name, number) for name, number in parsed if number is not None] or parsed  # ignore other names
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
    """The model and experiment of a run, and other values from its path and its results file."""

    model_name: str
    model_source: str  # origin of the name: layout, results, s3_path, profile, parent_folder or unknown
    experiment_folder: str | None
    experiment: str | None
    fields: Mapping[str, str]  # values in the path, such as task_id, task_type, suite
    task_path: str | None  # definition file that the results file names
    total: int | None  # number of tasks of the experiment, from the results file
    fits_layout: bool  # whether the path matches the user's layout; True without a layout


def name_models(
    folders: Sequence[TaskFolder], root: str, layout: str | None, others: Iterable[Mapping[str, Any]]
) -> list[Named]:
    """Name the model of each run from the first of: layout, results file, S3-like path, profiles, parent folder.

    Results files and profiles (`others` has their records) apply to the runs in their folder and one level below it.
    A layout is matched with the path below `root`, the loaded folder, else with the last parts of the whole path. An
    S3-like path that begins above `root` may be a coincidence, so it counts only if its task type is the task's.
    """
    root = absolute(root).rstrip(os.sep)
    n_above = 0 if is_url(root) else root.count(os.sep)  # number of path parts above the root
    patterns = compile_layout(layout) if layout else None
    results: dict[str, Mapping[str, Any]] = {}  # record of each folder's results file
    profiles: dict[str, set[str]] = defaultdict(set)
    for row in others:
        folder = os.path.dirname(absolute(row["source"]))
        if row["profile_model"] is not None:
            profiles[folder].add(row["profile_model"])
        is_stated = any(row[name] is not None for name in ("results_model", "task_path", "total"))
        if is_stated and (row["results_model"] or folder not in results):
            results[folder] = row

    named = []
    n_flat = Counter(run.path for run in folders if run.flat)  # number of tasks per flat folder
    alike: dict[tuple, Named] = {}  # results to reuse: runs of the same experiment have the same model
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
        of_results = results.get(run.path) or results.get(experiment, {})
        of_profiles = profiles.get(run.path) or profiles.get(experiment, set())
        # The folder above a task names the model if it is in the source. Folders of task types, experiments and
        # repetitions are not models: skip them. The folder above a skipped repetition may be a model, and the folder
        # above a skipped task type is one, even outside of the source. A folder above a skipped experiment is not.
        above = run.model_folder or experiment
        if run.flat and (n_flat[run.path] == 1 or run.path == root):  # it may be one run's folder, or any folder
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
            "results": of_results.get("results_model"),
            "s3_path": of_path.get("model_name"),
            "profile": " + ".join(sorted(of_profiles)),
            "parent_folder": os.path.basename(model_folder),
            UNKNOWN: UNKNOWN,
        }
        source, model = next(filter(itemgetter(1), candidates.items()))
        if match and "experiment" in stated:
            experiment = match.string[: match.end("experiment")]
        elif os.path.basename(model_folder) == model and not run.model_folder:  # the experiment has a folder per model
            experiment = repetition or os.path.dirname(model_folder)
        fields = {**of_path, **stated}
        name = fields.get("experiment") or os.path.basename(experiment)
        fits_layout = not patterns or match is not None
        task_path, total = of_results.get("task_path"), of_results.get("total")
        alike[key] = Named(
            model_name=str(model),
            model_source=source,
            experiment_folder=experiment,
            experiment=name,
            fields=fields,
            task_path=task_path,
            total=total,
            fits_layout=fits_layout,
        )
        named.append(alike[key])
    return _without_types(folders, named)


def _without_types(folders: Sequence[TaskFolder], named: list[Named]) -> list[Named]:
    """Remove types of tasks from the names of models that only folders state.

    Folders such as cooking_gpt and construction_gpt belong to one model if each contains only tasks of its type.
    """
    types: dict[str, set[str]] = defaultdict(set)
    for run, own in zip(folders, named, strict=True):
        types[own.model_name].add(type_in(run.task_id) if own.model_source == "parent_folder" else "")
    typed: dict[str, dict[str, str]] = defaultdict(dict)  # by name without the type: the type in each folder's name
    for name, own_types in types.items():
        if own_types == {type_in(name)}:
            typed[_TYPE_AT_END.sub("", name)][name] = type_in(name)
    bare: dict[str, str] = {}
    for short, types_of in typed.items():
        if len(set(types_of.values())) > 1:
            bare |= dict.fromkeys(types_of, short)
    if not bare:
        return named
    return [
        own._replace(model_name=bare[own.model_name], experiment=own.model_name) if own.model_name in bare else own
        for own in named
    ]


@lru_cache(maxsize=4096)
def is_experiment_name(name: str) -> bool:
    """Return whether a folder's name is no model's: it is an experiment's, ends with a date, or is a generic word."""
    lower = name.lower()
    return not lower or bool(_GENERIC.fullmatch(lower) or _EXPERIMENT.fullmatch(lower))


def compile_layout(layout: str) -> tuple[re.Pattern, re.Pattern]:
    """Compile a layout such as ``{model_name}/{task_id}`` to two patterns.

    The first matches the whole path below the loaded folder; a model's name in it may contain ``/``. The second matches
    the last parts of a path, even above the loaded folder. Raise SourceError for unknown or repeated fields.
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
    """Match the end of a path with ``{task_type}/{model}/{suite}/{experiment}``; ignore its first `above` parts."""
    parts = experiment.split(os.sep)
    for i in range(len(parts) - 4, above - 1, -1):
        if parts[i] in _TYPE_FOLDERS and "experiments" not in parts[i:]:
            model = "/".join(parts[i + 1 : -2])
            return {"task_type": parts[i], "model_name": model, "suite": parts[-2], "experiment": parts[-1]}
    return {}
