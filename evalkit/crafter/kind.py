"""Crafter traces as a kind of log, and shortcuts to their frames."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from evalkit._lazy import later
from evalkit.crafter.evaluate import TraceScores, evaluate_file, results_of
from evalkit.crafter.format import WEIGHTS
from evalkit.crafter.parse import parse_file
from evalkit.crafter.scoring import COUNTINGS, Counting, check_rules
from evalkit.crafter.table import LABELS, LAZY_TABLES, RECORDS, TABLES
from evalkit.io import Ledger, Source, StorageOptions, decode_start, list_source, parse_files, storage
from evalkit.kinds import Command, FileRules, LogKind, Option, RateRules
from evalkit.kinds.selection import Renames

if TYPE_CHECKING:
    import pandas as pd

    from evalkit.kinds import Logs
    from evalkit.kinds.pipeline import Changes

PATTERN = "*.json"
_COUNTING_HELP = "Count every achievement that a hook names, or every hook once as the original trace_eval does."
_TRACE_KEYS = {"event_history", "session_time_steps", "session_metadata"}


def _recognise(head: bytes) -> str:
    keys = value.keys() if isinstance(value := decode_start(head), dict) else set()
    if "event_history" in keys or ("session_id" in keys and keys & _TRACE_KEYS):
        return KIND.title
    is_benchmark = b'"achievement_collect_wood"' in head or (b'"episode_return"' in head and b'"progression"' in head)
    return "Crafter benchmark file" if is_benchmark else ""


KIND = LogKind(
    name="crafter",
    title="Crafter session trace",
    records=RECORDS,
    tables=TABLES,
    labels=LABELS,
    parse=parse_file,
    recognises=_recognise,
    assemble=later("evalkit.crafter.assemble:assemble"),
    lazy_tables=LAZY_TABLES,
    files=FileRules(pattern=PATTERN),
    rates=RateRules(outcome_of={"aborted": "not measured"}, conditions=("max_turns",)),
    options=(
        Option("models", str, (), "Only these models; none means all.", "MODEL", many=True),
        Option("difficulty", str, "", "Only tasks of this difficulty.", "NAME"),
        Option("counting", COUNTINGS, "achievement", _COUNTING_HELP),
    ),
    transcript=later("evalkit.crafter.transcript:transcript"),
    command=Command(
        summary="Scores of Crafter session traces.",
        help="""Score Crafter session traces: SOURCE is a folder, a file, a quoted glob, a URL or a dataset of
    `collect`.

    Aborted traces have no score and are left out of all means; the mean with them at 0 stands beside.

    With --follow, a trace counts as soon as it can be read; one that can't, and changed less than 10 seconds ago, is
    being written.
    """,
        views=(
            Option("verbose", bool, False, "Also write what each trace's points come from.", short="v", followed=False),
            Option("by_difficulty", bool, False, "Also break the scores down by difficulty."),
        ),
        describe=later("evalkit.crafter.terminal:describe"),
        progress=later("evalkit.crafter.terminal:progress"),
        write=later("evalkit.crafter.terminal:write"),
        output_help="Write results and ledger to FILE.json, or the episodes to FILE.csv or FILE.parquet.",
    ),
)


def evaluate_all_traces(
    trace_dir: Source,
    pattern: str = PATTERN,
    weights: Mapping[str, float] = WEIGHTS,
    counting: Counting = "achievement",
    *,
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> TraceScores:
    """Score the traces of a folder, including those in folders below.

    Memory grows with the number of traces only by their results, of about 1 kB each.

    Parameters
    ----------
    trace_dir, pattern, weights, counting, recursive, jobs, storage_options
        As `path` and the others of `load`.

    Returns
    -------
    TraceScores
        A list in descending order of total_score; unreadable files, and files that are not traces, are only in its
        `ledger`. Empty if no file is a trace: `load` and the command raise then.

    Raises
    ------
    evalkit.io.SourceError
        If `trace_dir` does not exist or can't be listed.
    """
    from evalkit.io.store import read_manifest

    rules: dict[str, Any] = {"weights": check_rules(weights, counting), "counting": counting}
    ledger = Ledger()
    with storage(storage_options):
        sources = [trace_dir] if isinstance(trace_dir, (str, os.PathLike)) else list(trace_dir)
        if any(map(read_manifest, sources)):
            from evalkit.crafter.assemble import assemble
            from evalkit.kinds.pipeline import entries_of, read_records

            records = read_records(KIND, sources, pattern=pattern, recursive=recursive)
            ledger.entries += entries_of(records)
            return TraceScores(results_of(assemble(records, rules).frames["episodes"], rules), ledger)
        files = list_source(sources, pattern, recursive=recursive).files
        outcomes = list(parse_files(files, partial(evaluate_file, **rules), jobs))
    ledger.entries += [entry for entry, _ in outcomes]
    return TraceScores([result for _, result in outcomes if result is not None], ledger)


def load(
    path: Source,
    pattern: str = PATTERN,
    models: Sequence[str] = (),
    difficulty: str = "",
    weights: Mapping[str, float] = WEIGHTS,
    counting: Counting = "achievement",
    *,
    rename: Renames = (),
    model: str = "",
    where: Sequence[str] = (),
    cluster: str = "",
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> "Logs":
    """Read the session traces of a folder, including those in folders below.

    Parameters
    ----------
    path : str, path, or several of them
        A folder or one trace; ``samples:crafter`` for the samples. Also globs and URLs: see `evalkit.io.list_source`.
        A dataset of `collect` stands for the folder that it was collected from.
    pattern : str
        Glob for file names.
    models : sequence of str
        Only these models; by default all.
    difficulty : str
        Only this difficulty; ``""`` means all.
    weights, counting
        As for `evaluate_event`.
    rename, model
        Names of models: see `evalkit.load`. `models` are those that they have then.
    where : sequence of str
        Load only runs that meet conditions on their columns: ``"max_turns>=20"``; see `evalkit.kinds.selection.meets`.
    cluster : str
        Column that stands for the task, where tasks are variants of few.
    recursive : bool
        If False, read only the folder's own files, as the original trace_eval does.
    jobs : int, optional
        Processes to read with; see `evalkit.io.parse_files`.
    storage_options : mapping, optional
        Options for the file systems behind URLs, passed to fsspec.

    Returns
    -------
    Logs
        episodes : one row per trace; `table.EPISODES`
        events : one row per event; `table.EVENTS`
        achievements : one row per trace and achievement; `table.ACHIEVEMENT_ROWS`
        ledger : every file that was seen

    Raises
    ------
    evalkit.io.SourceError
        If `path` does not exist, none of its files is a session trace, or no trace is of the models or difficulty asked
        for.
    """
    from evalkit.kinds.pipeline import load as load_kind

    rules = {"weights": check_rules(weights, counting), "counting": counting}
    options = {"models": tuple(models), "difficulty": difficulty, "rename": rename, "model": model, **rules}
    options |= {"where": where, "cluster": cluster}
    return load_kind(
        KIND, path, options, pattern=pattern, recursive=recursive, jobs=jobs, storage_options=storage_options
    )


def collect(
    source: Source,
    output: str | os.PathLike,
    pattern: str = PATTERN,
    *,
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    progress: Callable[[int, int], object] | None = None,
) -> "Changes":
    """Collect session traces into a dataset, which `load` accepts in place of their folder, or update it.

    The verdicts of hooks are stored, not their scores: weights and counting are options of `load` for a dataset, too.

    Parameters
    ----------
    source, pattern, recursive, jobs, storage_options
        As for `load`; the dataset keeps to its pattern and depth.
    output : str or path
        The dataset's folder, or a URL.
    progress : function of (files read, files to read), optional
        Called after each chunk of files.

    Returns
    -------
    Changes
        How many files were new, changed, vanished and unchanged.

    Raises
    ------
    SourceError
        As `evalkit.kinds.collect`.
    """
    from evalkit.kinds.pipeline import collect as collect_kind

    reading = {"pattern": pattern, "recursive": recursive, "jobs": jobs, "storage_options": storage_options}
    return collect_kind(KIND, source, output, **reading, progress=progress)


def episodes_df(path: Source, **options: Any) -> "pd.DataFrame":
    """Return one row per trace; options as for `load`, columns in `EPISODES`."""
    return load(path, **options).episodes


def events_df(path: Source, **options: Any) -> "pd.DataFrame":
    """Return one row per event; options as for `load`, columns in `EVENTS`."""
    return load(path, **options).events


def achievements_df(path: Source, **options: Any) -> "pd.DataFrame":
    """Return one row per trace and achievement; options as for `load`, columns in `ACHIEVEMENT_ROWS`."""
    return load(path, **options).achievements
