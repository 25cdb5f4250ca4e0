"""Define Crafter traces as a kind of log, and shortcuts to their frames."""

import os
from collections.abc import Mapping
from typing import Unpack, cast

import pandas as pd

from evalkit import kinds
from evalkit.crafter import terminal
from evalkit.crafter.assemble import COUNTINGS, Counting, assemble, check_rules
from evalkit.crafter.events import DETECTORS
from evalkit.crafter.format import WEIGHTS
from evalkit.crafter.logs import CrafterLogs
from evalkit.crafter.parse import parse_file
from evalkit.crafter.table import FLAGS, LABELS, RECORDS, TABLES
from evalkit.crafter.transcript import transcript
from evalkit.io import Source, decode_start
from evalkit.kinds import (
    Changes,
    CollectOptions,
    Command,
    FileRules,
    LoadOptions,
    LogKind,
    Option,
    RateRules,
    ReadOptions,
)
from evalkit.kinds.names import BUILT_IN

PATTERN = "*.*json*"  # includes compressed files and JSON lines, so that the ledger lists them
BENCHMARK = "Crafter benchmark file"
_COUNTING_HELP = "Count every achievement that a hook names, or every hook once as the original trace_eval does."
_TRACE_KEYS = {"event_history", "session_time_steps", "session_metadata"}


def _recognise(head: bytes) -> str:
    keys = value.keys() if isinstance(value := decode_start(head), dict) else set()
    if "event_history" in keys or ("session_id" in keys and keys & _TRACE_KEYS):
        return KIND.title
    is_benchmark = b'"achievement_collect_wood"' in head or (b'"episode_return"' in head and b'"progression"' in head)
    return BENCHMARK if is_benchmark else ""


def _accepts(path: str) -> str:
    return "not named like a JSON file" if ".json." in os.path.basename(path).lower() else ""


KIND = LogKind(
    name="crafter",
    title="Crafter session trace",
    records=RECORDS,
    tables=TABLES,
    flags=FLAGS,
    labels=LABELS,
    parse=parse_file,
    recognises=_recognise,
    others={BENCHMARK: "evalkit.crafter.benchmark.crafter_scores"},
    logs=CrafterLogs,
    assemble=assemble,
    files=FileRules(pattern=PATTERN, accepts=_accepts),
    rates=RateRules(outcome_of={"aborted": "not measured"}, conditions=("max_turns",), excluding_flags=("duplicate",)),
    settings=("weights",),
    options=(Option("counting", COUNTINGS, "achievement", _COUNTING_HELP),),
    transcript=transcript,
    scorer="points for achievements",
    detectors=DETECTORS,
    command=Command(
        summary=BUILT_IN["crafter"].summary,
        help="""Score Crafter session traces: SOURCE is a folder, a file, a quoted glob, a URL or a dataset of
    `collect`.

    Aborted traces have no score, and means exclude them; a second row shows the mean with them at 0.

    With --follow, a trace counts as soon as it is readable. An unreadable trace that changed in the last 10 seconds
    counts as still being written.
    """,
        views=(
            Option("verbose", bool, False, "Also print the sources of each trace's points.", short="v", followed=False),
            Option("by_difficulty", bool, False, "Also print the scores by difficulty.", regroups=True),
        ),
        describe=terminal.describe,
        progress=terminal.progress,
    ),
)


class EpisodesOptions(LoadOptions, total=False):
    """The options of `load`."""

    weights: Mapping[str, float]
    counting: Counting


def load(
    path: Source,
    pattern: str = PATTERN,
    weights: Mapping[str, float] = WEIGHTS,
    counting: Counting = "achievement",
    **options: Unpack[ReadOptions],
) -> CrafterLogs:
    """Read session traces.

    Parameters
    ----------
    path : str, path, or several of them
        Folders, files, globs, URLs or a dataset of `collect`.
    pattern : str
        Glob for the names of files in folders.
    weights : mapping of str to float
        Points per hook; missing names have the points of `WEIGHTS`.
    counting : {"achievement", "hook"}
        Whether to count every achievement that a hook names, or every hook once.
    **options : Any
        Options of `evalkit.load`.

    Returns
    -------
    CrafterLogs
        ``episodes`` (one row per trace, also as ``runs``), ``events``, ``achievements`` and ``ledger``.

    Examples
    --------
    >>> sorted(crafter.load("samples:crafter").runs["difficulty"].unique())
    ['easy', 'hard', 'medium']
    """
    weights = check_rules(weights, counting)
    return cast(CrafterLogs, kinds.load(path, KIND, pattern=pattern, weights=weights, counting=counting, **options))


def collect(source: Source, output: str | os.PathLike, **options: Unpack[CollectOptions]) -> Changes:
    """Collect session traces into a dataset, or update it.

    Parameters
    ----------
    source : str, path, or several of them
        Folders, files, globs or URLs of traces.
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
    >>> crafter.collect("samples:crafter", "dataset")  # doctest: +SKIP
    """
    return kinds.collect(KIND, source, output, **options)


def episodes_df(path: Source, **options: Unpack[EpisodesOptions]) -> pd.DataFrame:
    """Read session traces as a frame of episodes.

    Parameters
    ----------
    path : str, path, or several of them
        Folders, files, globs, URLs or a dataset of `collect`.
    **options : Any
        Options of `load`.

    Returns
    -------
    DataFrame
        One row per episode, as ``load(...).episodes``.

    Examples
    --------
    >>> len(crafter.episodes_df("samples:crafter")) == len(episodes)
    True
    """
    return load(path, **options).episodes
