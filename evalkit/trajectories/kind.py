"""Define trajectories of agents as a kind of log, and the functions that load them."""

import os
from collections.abc import Sequence
from typing import Unpack, cast

import pandas as pd

from evalkit import kinds
from evalkit._text import as_list
from evalkit.io import Source
from evalkit.kinds import Changes, CollectOptions, Command, FileRules, LoadOptions, LogKind, Option, RateRules
from evalkit.kinds.names import BUILT_IN
from evalkit.kinds.pipeline import load as load_logs
from evalkit.trajectories import terminal
from evalkit.trajectories.analysis import over_planned
from evalkit.trajectories.assemble import assemble
from evalkit.trajectories.events import DETECTORS
from evalkit.trajectories.logs import TrajectoriesLogs
from evalkit.trajectories.parse import accepts, context_files, excerpt, parse, recognises
from evalkit.trajectories.records import TITLE
from evalkit.trajectories.table import ENDINGS, FLAGS, LAZY_TABLES, NAME, RECORDS, TABLES
from evalkit.trajectories.transcript import run_files, transcript


def _task_of(runs: pd.DataFrame) -> pd.Series:
    """Return the identity of each task, which includes its dataset because many datasets number their tasks."""
    return runs["task_type"].fillna("").str.cat(runs["task_id"], sep="/").str.removeprefix("/")


KIND = LogKind(
    name=NAME,
    title=TITLE,
    records=RECORDS,
    log_records=("runs", "plans", "published"),
    parse=parse,
    recognises=recognises,
    others={"spreadsheet": "pandas.read_excel"},
    files=FileRules(accepts=accepts, context=context_files, excerpt=excerpt, excerpted=(".eval",)),
    tables=TABLES,
    lazy_tables=LAZY_TABLES,
    logs=TrajectoriesLogs,
    assemble=assemble,
    options=(
        Option(
            "columns", str, (), "Meaning of a column, such as score=reward.", "ROLE=NAME", many=True, short="column"
        ),
        Option("score", str, "", "Score to use, if there are several.", "KEY"),
        Option("outcomes", str, "", "CSV file that overrides single runs: run_id, outcome, reason.", "FILE"),
    ),
    rates=RateRules(
        outcome_of={"running": "running"},
        conditions=("limits", "task_version"),
        task_conditions=("task_version",),
        reported_settings=("agent", "agent_version", "temperature"),
        task_of=_task_of,
        # runs of a table may have training seeds; the seed of a chat model only affects sampling
        seed_of=lambda runs: runs["seed"].where(runs["format"] == "table"),
        excluding_flags=("superseded", "duplicate"),
    ),
    over_planned=lambda logs, runs: over_planned(runs, logs.plans),
    transcript=transcript,
    detectors=DETECTORS,
    run_files=run_files,
    flags=FLAGS,
    labels={name: ending.text for name, ending in ENDINGS.items() if name != ending.text},
    command=Command(
        summary=BUILT_IN["trajectories"].summary,
        help="""Estimate how often agents solve their tasks, from Harbor jobs, runs of Terminal-Bench and its public
    leaderboard, ATIF trajectories, logs of inspect_ai, results of tau-bench and tau2-bench, samples of
    lm-evaluation-harness, outputs of OpenHands, trajectories of SWE-agent and mini-swe-agent with SWE-bench's reports,
    sessions of Claude Code, Codex, Gemini CLI and Qwen Code, and tables of runs and chats.

    SOURCE is a folder, a file, a quoted glob, a URL or a dataset of `collect`.

    Runs that something other than the agent ended were not measured: rates are shown without them, and with them as
    failures and as successes.
    """,
        describe=terminal.describe,
        progress=terminal.progress,
    ),
)


class RunsOptions(LoadOptions, total=False):
    """The options of `load`."""

    columns: str | Sequence[str]
    score: str
    outcomes: str | os.PathLike


def load(
    path: Source,
    *,
    columns: str | Sequence[str] = (),
    score: str = "",
    outcomes: str | os.PathLike = "",
    **options: Unpack[LoadOptions],
) -> TrajectoriesLogs:
    """Read trajectories of any known format, and tables of runs.

    Parameters
    ----------
    path : str, path, or several of them
        Folders, files, globs, URLs or a dataset of `collect`.
    columns : str or sequence of str
        Meanings of a table's columns, such as ``score=reward``; by default detected from their names.
    score : str
        Score or reward to use, if there are several; by default ``reward``, else the first. For lm-eval
        (``metric,filter``), the default is the first that is always 0 or 1.
    outcomes : path
        A CSV file with the columns ``run_id``, ``outcome`` (success, failure or not measured) and ``reason``. It
        overrides the logs.
    **options : Any
        Options of `evalkit.load`.

    Returns
    -------
    TrajectoriesLogs
        ``runs``, ``scores``, ``plans``, ``published``, ``usage``, ``tools`` and ``ledger``, as well as ``messages``,
        ``tool_calls`` and ``turns``, which evalkit reads on first access.

    Examples
    --------
    >>> len(trajectories.load("samples:trajectories/table/runs.csv").runs) > 0
    True
    """
    own = {"columns": tuple(as_list(columns)), "score": score, "outcomes": os.fspath(outcomes)}
    return cast(TrajectoriesLogs, load_logs(path, KIND, **own, **options))


def collect(source: Source, output: str | os.PathLike, **options: Unpack[CollectOptions]) -> Changes:
    """Collect trajectories into a dataset, or update the dataset.

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
    >>> trajectories.collect("samples:trajectories/harbor", "dataset")  # doctest: +SKIP
    """
    return kinds.collect(KIND, source, output, **options)


def runs_df(path: Source, **options: Unpack[RunsOptions]) -> pd.DataFrame:
    """Read trajectories as a frame of runs.

    Parameters
    ----------
    path : str, path, or several of them
        Folders, files, globs, URLs or a dataset of `collect`.
    **options : Any
        Options of `load`.

    Returns
    -------
    DataFrame
        One row per run, equal to ``load(...).runs``.

    Examples
    --------
    >>> len(trajectories.runs_df("samples:trajectories/harbor")) == len(runs)
    True
    """
    return load(path, **options).runs
