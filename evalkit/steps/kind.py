"""Execution histories as a kind of log, and shortcuts to their frames."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Unpack, cast

import pandas as pd

from evalkit import kinds
from evalkit.io import Source, decode_start
from evalkit.kinds import Command, FileRules, LoadOptions, LogKind, Option, RateRules, RunFiles
from evalkit.kinds.names import BUILT_IN
from evalkit.steps.assemble import assemble, frames_of
from evalkit.steps.events import DETECTORS, FAILURES
from evalkit.steps.format import DEFAULTS, Options, is_record
from evalkit.steps.judge import StoredRecords, as_history
from evalkit.steps.logs import StepsLogs
from evalkit.steps.parse import companions, parse_file, state_in
from evalkit.steps.table import LABELS, RECORDS, TABLES
from evalkit.steps.terminal import describe, progress
from evalkit.steps.transcript import transcript

_TITLE = "execution history"
_STATE = re.compile(rb'\ASQLite format 3|"execution_history"\s*:\s*\[')


def _recognises(head: bytes) -> str:
    """Return the title of this kind if the first bytes of a file belong to a history, else an empty string."""
    value = decode_start(head)
    entries = value if isinstance(value, list) else [value]
    is_history = _STATE.search(head) or state_in(value) or any(map(is_record, entries))
    return _TITLE if is_history else ""


def _prepare(options: Mapping[str, Any]) -> Mapping[str, Any]:
    given = options.get("options")
    if given and not isinstance(given, Options):
        raise TypeError(f"options of steps are an evalkit.steps.Options, not {type(given).__name__}")
    return options


KIND = LogKind(
    name="steps",
    title=_TITLE,
    records=RECORDS,
    tables=TABLES,
    labels=LABELS,
    parse=parse_file,
    recognises=_recognises,
    files=FileRules(companions=companions),
    logs=StepsLogs,
    prepare=_prepare,
    assemble=assemble,
    rates=RateRules(outcome_of={"unfinished": "not measured"}, excluding_flags=("duplicate",)),
    settings=("options",),
    transcript=transcript,
    detectors=DETECTORS,
    failure_events=FAILURES,
    run_files=lambda logs, run: RunFiles([run["source"]], run["thread"]),
    scorer="share of confirmed steps",
    command=Command(
        summary=BUILT_IN["steps"].summary,
        help="""Judge the steps of an analysis agent.

    SOURCE is a file (JSON, JSONL, SQLite checkpoint), a folder, a quoted glob, a URL or a dataset of `collect`.

    One history is shown step by step. Several are summarised: a row per history, the lowest confirmed success first,
    and a row for all of them together; --all adds the steps of each.

    Records and steps count from 1 here and in reports, from 0 in the columns position and step_index of written files.
    With --follow, a history that has not changed for --idle seconds (60) counts as finished.
    """,
        views=(Option("checks", bool, False, "Show every check of every step.", followed=False),),
        describe=describe,
        progress=progress,
    ),
)


def load(source: Source, options: Options = DEFAULTS, **others: Unpack[LoadOptions]) -> StepsLogs:
    """Read and judge histories: JSON, JSONL, LangGraph's SQLite checkpoints, or ``samples:steps``.

    Each call judges the steps again, with the evaluators that are registered at that time.

    Parameters
    ----------
    source : str, path, or several of them
        Folders, files, globs, URLs or a dataset of `collect`.
    options : Options
        Settings of the judge.
    **others : Any
        Options of `evalkit.load`.

    Returns
    -------
    StepsLogs
        ``runs`` (one row per history), ``steps``, ``checks`` (one row per step and check), ``results`` (one row per
        number or name found), ``ledger``, and ``histories``, a list of `History`.

    Examples
    --------
    >>> len(steps.load("samples:steps/typed.json").runs)
    1
    """
    return cast(StepsLogs, kinds.load(source, KIND, options=options, **others))


def steps_df(source: Source | StoredRecords, options: Options = DEFAULTS) -> pd.DataFrame:
    """Return the steps of a source or of a list of records.

    Parameters
    ----------
    source : str, path, several of them, or mappings
        A source as for `load`, a list of records, or a state that contains one.
    options : Options
        Settings of the judge.

    Returns
    -------
    DataFrame
        One row per step; see `table.STEPS`.

    Examples
    --------
    >>> len(steps.steps_df("samples:steps/typed.json")) > 0
    True
    """
    return _frame(source, options, "steps")


def checks_df(source: Source | StoredRecords, options: Options = DEFAULTS) -> pd.DataFrame:
    """Return the checks of a source or of a list of records.

    Parameters
    ----------
    source : str, path, several of them, or mappings
        A source as for `load`, a list of records, or a state that contains one.
    options : Options
        Settings of the judge.

    Returns
    -------
    DataFrame
        One row per step and check; see `table.CHECKS`.

    Examples
    --------
    >>> len(steps.checks_df("samples:steps/typed.json")) > 0
    True
    """
    return _frame(source, options, "checks")


def _frame(source: Source | StoredRecords, options: Options, which: str) -> pd.DataFrame:
    items = source if isinstance(source, Sequence) and not isinstance(source, str) else [source]
    if any(isinstance(item, Mapping) for item in items):
        return frames_of([as_history(cast(StoredRecords, source), options)])[which]
    return load(cast(Source, source), options)[which]
