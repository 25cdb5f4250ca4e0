"""Trajectories of agents as a kind of log, and shortcuts to their frames."""

import os
from collections.abc import Sequence
from typing import Any, Unpack

import pandas as pd

from evalkit import kinds
from evalkit._text import as_list
from evalkit.io import Source
from evalkit.kinds import Changes, Command, FileRules, LoadOptions, LogKind, Logs, Option, RateRules
from evalkit.kinds.pipeline import load as load_logs
from evalkit.trajectories import terminal
from evalkit.trajectories.assemble import assemble
from evalkit.trajectories.events import DETECTORS
from evalkit.trajectories.parse import accepts, excerpt, parse, recognises
from evalkit.trajectories.records import RECORDS, TITLE
from evalkit.trajectories.table import ENDINGS, EXCLUDING_FLAGS, FLAGS, LAZY_TABLES, NAME, TABLES
from evalkit.trajectories.transcript import run_files, transcript


def _task_of(runs: pd.DataFrame) -> pd.Series:
    """Return the identity of tasks: within its dataset, since datasets number their tasks alike."""
    return runs["dataset"].fillna("").str.cat(runs["task_id"], sep="/").str.removeprefix("/")


KIND = LogKind(
    name=NAME,
    title=TITLE,
    records=RECORDS,
    log_records=("runs", "plans"),
    parse=parse,
    recognises=recognises,
    others={"spreadsheet": "pandas.read_excel"},
    files=FileRules(accepts=accepts, excerpt=excerpt, excerpted=(".eval",)),
    tables=TABLES,
    lazy_tables=LAZY_TABLES,
    assemble=assemble,
    options=(
        Option("columns", str, (), "What a column means, as in score=reward.", "ROLE=NAME", many=True, short="column"),
        Option("score", str, "", "Which of several scores counts.", "KEY"),
        Option("outcomes", str, "", "CSV file that overrules single runs: run_id, outcome, reason.", "FILE"),
    ),
    rates=RateRules(
        outcome_of={"running": "running"},
        conditions=("limits", "task_version"),
        reported_settings=("agent", "agent_version", "temperature"),
        task_of=_task_of,
        # tables may be of trained checkpoints; the seed of a chat model only draws its words
        seed_of=lambda runs: runs["seed"].where(runs["format"] == "table"),
        excluding_flags=EXCLUDING_FLAGS,
    ),
    transcript=transcript,
    detectors=DETECTORS,
    run_files=run_files,
    flags=FLAGS,
    labels={name: ending.text for name, ending in ENDINGS.items() if name != ending.text},
    command=Command(
        summary="Outcomes of agents' trajectories: Harbor, inspect_ai, tau2-bench, SWE-agent, tables.",
        help="""Estimate how often agents solve their tasks, from Harbor jobs, ATIF trajectories, logs of inspect_ai,
    results of tau2-bench, trajectories of SWE-agent and mini-swe-agent with SWE-bench's reports, and tables of runs.

    SOURCE is a folder, a file, a quoted glob, a URL or a dataset of `collect`.

    Runs that something other than the agent ended were not measured: rates are shown without them, and with them as
    failures and as successes.
    """,
        describe=terminal.describe,
        progress=terminal.progress,
    ),
)


def load(
    path: Source,
    *,
    columns: str | Sequence[str] = (),
    score: str = "",
    outcomes: str | os.PathLike = "",
    **options: Unpack[LoadOptions],
) -> Logs:
    """Read trajectories of any format that is known, and tables of runs; what is not listed is as for `evalkit.load`.

    Parameters
    ----------
    columns : str or sequence of str
        What the columns of a table of runs mean, such as ``score=reward``, where their names don't tell.
    score : str
        Which of several scores or rewards counts; by default ``reward``, else the first.
    outcomes : path
        A CSV file of ``run_id``, ``outcome`` (success, failure or not measured) and ``reason``, which overrules logs.

    Returns
    -------
    Logs
        The frames ``runs``, ``scores``, ``plans`` and ``ledger``; ``messages``, ``tool_calls`` and ``turns``, which are
        read when first used.
    """
    return load_logs(path, KIND, columns=tuple(as_list(columns)), score=score, outcomes=os.fspath(outcomes), **options)


def collect(source: Source, output: str | os.PathLike, **options: Any) -> Changes:
    """Collect trajectories into a dataset, or update it; parameters and result as in `evalkit.kinds.collect`."""
    return kinds.collect(KIND, source, output, **options)


def runs_df(path: Source, **options: Any) -> pd.DataFrame:
    """Return one row per run; options as for `load`."""
    return load(path, **options).runs
