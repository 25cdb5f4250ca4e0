"""Define Mindcraft task runs as a kind of log, and shortcuts to their frames."""

import os
import re
from collections.abc import Mapping
from typing import Any, Unpack, cast

import pandas as pd

from evalkit.io import Source, decode_start
from evalkit.kinds import CollectOptions, Command, FileRules, LoadOptions, LogKind, Option, RateRules
from evalkit.kinds import collect as collect_kind
from evalkit.kinds.names import BUILT_IN
from evalkit.kinds.pipeline import load as load_logs
from evalkit.kinds.reading import Changes
from evalkit.mindcraft import table, terminal
from evalkit.mindcraft.analysis import planned_tasks
from evalkit.mindcraft.assemble import assemble
from evalkit.mindcraft.events import DETECTORS
from evalkit.mindcraft.layout import compile_layout, context_files
from evalkit.mindcraft.logs import MindcraftLogs
from evalkit.mindcraft.parse import LOG_TITLE, RESULTS, is_agent_log, parse, unreadable
from evalkit.mindcraft.tasks import TaskDefinitions, Tasks, load_task_definitions, tasks_of
from evalkit.mindcraft.transcript import run_files, transcript

_BY_HELP = "Column to group by; may be repeated.  [default: model_name]"
_TASKS_HELP = "Task definition file, folder or glob; may be repeated.  [default: the folder tasks in SOURCE]"
_DEFINITIONS = "Mindcraft task definition file"
_DEFINITION = (re.compile(rb'"goal"\s*:'), re.compile(rb'"agent_count"\s*:'))  # definitions match both


def _recognise(head: bytes) -> str:
    if (value := decode_start(head)) and is_agent_log(value):
        return LOG_TITLE
    return _DEFINITIONS if all(key.search(head) for key in _DEFINITION) else ""


def _accepts(path: str) -> str:
    name = path.rpartition("/")[2]
    return "" if name.lower().endswith(".json") or name == RESULTS else "not named like a JSON file"


def _prepare(options: Mapping[str, Any]) -> dict[str, Any]:
    if (scale := options.get("scale", "auto")) not in table.SCALES:
        raise ValueError(f"scale {scale!r}: one of {', '.join(table.SCALES)}")
    if options.get("layout"):
        compile_layout(options["layout"])
    tasks = options.get("tasks") or ()
    if isinstance(tasks, Mapping):
        definitions = tasks if isinstance(tasks, TaskDefinitions) else TaskDefinitions(tasks)
    else:
        paths = [tasks] if isinstance(tasks, (str, os.PathLike)) else tasks
        definitions = load_task_definitions(*filter(os.fspath, paths))
    return {**options, "tasks": definitions}


_CONDITIONS = ("agents_asked_for", "n_blocked_agents", "plan_availability", "depth")

KIND = LogKind(
    name="mindcraft",
    title=LOG_TITLE,
    records=table.RECORDS,
    tables=table.TABLES,
    lazy_tables=table.LAZY_TABLES,
    parse=parse,
    unreadable=unreadable,
    recognises=_recognise,
    others={_DEFINITIONS: "evalkit mindcraft RUNS --tasks"},
    files=FileRules(accepts=_accepts, context=context_files),
    prepare=_prepare,
    logs=MindcraftLogs,
    assemble=assemble,
    rates=RateRules(
        outcome_of=table.OUTCOMES,
        denominator="all",
        conditions=_CONDITIONS,
        task_conditions=_CONDITIONS,
        task_of=tasks_of,
        excluding_flags=("stale_copy",),
        lower_bounds=("turns",),
    ),
    planned=planned_tasks,
    flags=table.FLAGS,
    labels=table.LABELS,
    options=(
        Option("tasks", str, (), _TASKS_HELP, "PATH", many=True, within="tasks"),
        Option("layout", str, "", "Meaning of the folder names, such as '{model_name}/{task_id}'.", "PATTERN"),
        Option("scale", table.SCALES, "auto", "Unit of the logged construction scores."),
        Option("original_mtimes", bool, False, "File times are from the experiment; use them for durations."),
    ),
    transcript=transcript,
    detectors=DETECTORS,
    run_files=run_files,
    scorer="final message in the log",
    command=Command(
        summary=BUILT_IN["mindcraft"].summary,
        help="""Estimate success rates of Mindcraft task runs.

    SOURCE is a folder at any level, a file, a quoted glob, a URL or a dataset of `collect`.

    Every run with a folder counts: runs with broken logs or without a score are failures, and the ledger
    lists them.

    With --follow, a run is finished if one of its logs contains a final message, or if no log has changed for the time
    limit of the task. Until then it is running, and rates exclude it.
    """,
        views=(Option("by", str, (), _BY_HELP, "COLUMN", many=True, regroups=True),),
        describe=terminal.describe,
        progress=terminal.progress,
    ),
)


class RunsOptions(LoadOptions, total=False):
    """The options of `load`, without the task definitions."""

    layout: str | None
    scale: table.Scale
    original_mtimes: bool


def load(
    path: Source,
    tasks: Tasks = (),
    *,
    layout: str | None = None,
    scale: table.Scale = "auto",
    original_mtimes: bool = False,
    **options: Unpack[LoadOptions],
) -> MindcraftLogs:
    """Read a folder of task runs.

    Parameters
    ----------
    path : str, path, or several of them
        A folder at any level (experiments, one experiment, one task), a log, a glob, a URL or a dataset of `collect`.
    tasks : path, paths, mapping of task id to definition, or TaskDefinitions
        Task definitions; by default the folder ``tasks`` in `path`. Without definitions, some facts about tasks are
        inferred from their ids.
    layout : str, optional
        Meaning of the folder names, such as ``{model_name}/{task_id}``; detected by default.
    scale : {"auto", "percent", "fraction"}
        Unit of logged construction scores; ``auto`` is percent if any loaded score is above 1, else fraction.
    original_mtimes : bool
        Whether file times are from the experiment. If they are, evalkit computes durations and infers time-outs.
    **options : Any
        Options of `evalkit.load`.

    Returns
    -------
    MindcraftLogs
        ``runs`` (one row per run), ``agents`` (one row per agent log), ``messages`` and ``commands`` (read on first
        access), ``definitions``, ``all_runs`` (before `where`) and ``ledger`` (one row per input file).

    Raises
    ------
    SourceError
        If a path does not exist or contains no agent log, or a path of `tasks` contains no definition.

    Examples
    --------
    >>> mindcraft.load("samples:mindcraft/runs").runs["model_name"].nunique()
    4
    """
    own = {"tasks": tasks, "layout": layout or "", "scale": scale, "original_mtimes": original_mtimes}
    return cast(MindcraftLogs, load_logs(path, KIND, **own, **options))


def collect(source: Source, output: str | os.PathLike, **options: Unpack[CollectOptions]) -> Changes:
    """Collect task runs into a dataset, or update it.

    Parameters
    ----------
    source : str, path, or several of them
        Folders, files, globs or URLs of logs.
    output : path
        Folder or URL of the dataset.
    **options : Any
        Options of `evalkit.kinds.collect`.

    Returns
    -------
    Changes
        What was read and dropped.

    Examples
    --------
    >>> mindcraft.collect("samples:mindcraft/runs", "dataset")  # doctest: +SKIP
    """
    return collect_kind(KIND, source, output, **options)


def agents_df(path: Source, tasks: Tasks = (), **options: Unpack[RunsOptions]) -> pd.DataFrame:
    """Read a folder of task runs as a frame of agent logs.

    Parameters
    ----------
    path : str, path, or several of them
        Folders, files, globs, URLs or a dataset of `collect`.
    tasks : path, paths, mapping or TaskDefinitions
        Definitions of the tasks.
    **options : Any
        Options of `load`.

    Returns
    -------
    DataFrame
        One row per agent log, as ``load(...).agents``.

    Examples
    --------
    >>> mindcraft.agents_df("samples:mindcraft/runs")["agent_name"].iloc[0]
    'Andy_0'
    """
    return load(path, tasks, **options).agents


def models(runs: Source, tasks: Tasks = (), **options: Unpack[RunsOptions]) -> list[str]:
    """List the models of a folder of task runs, the one with the highest success rate first.

    Parameters
    ----------
    runs : str, path, or several of them
        Logs of task runs.
    tasks : path, paths, mapping or TaskDefinitions
        Definitions of the tasks.
    **options : Any
        Options of `load`, such as ``where``.

    Returns
    -------
    list of str
        Names of models.

    Examples
    --------
    >>> mindcraft.models("samples:mindcraft/runs")[0]
    'alder-large'
    """
    rows = load(runs, tasks, **options).runs
    is_successful = rows["is_successful"].fillna(False).astype("float64")  # a run that was not measured failed
    rates = is_successful.groupby(rows["model_name"]).mean()  # sorted by name
    return rates.sort_values(ascending=False, kind="stable").index.tolist()
