"""Crafter traces as a kind of log, and shortcuts to their frames."""

import os
from collections.abc import Mapping
from typing import Any, Unpack

import pandas as pd

from evalkit import kinds
from evalkit.crafter import terminal
from evalkit.crafter.assemble import COUNTINGS, Counting, assemble, check_rules
from evalkit.crafter.events import DETECTORS
from evalkit.crafter.format import WEIGHTS
from evalkit.crafter.parse import parse_file
from evalkit.crafter.table import FLAGS, RECORDS, TABLES
from evalkit.crafter.transcript import transcript
from evalkit.io import Source, decode_start
from evalkit.kinds import Changes, Command, FileRules, LogKind, Logs, Option, RateRules, ReadOptions

PATTERN = "*.json"
BENCHMARK = "Crafter benchmark file"
_COUNTING_HELP = "Count every achievement that a hook names, or every hook once as the original trace_eval does."
_TRACE_KEYS = {"event_history", "session_time_steps", "session_metadata"}


def _recognise(head: bytes) -> str:
    keys = value.keys() if isinstance(value := decode_start(head), dict) else set()
    if "event_history" in keys or ("session_id" in keys and keys & _TRACE_KEYS):
        return KIND.title
    is_benchmark = b'"achievement_collect_wood"' in head or (b'"episode_return"' in head and b'"progression"' in head)
    return BENCHMARK if is_benchmark else ""


KIND = LogKind(
    name="crafter",
    title="Crafter session trace",
    records=RECORDS,
    tables=TABLES,
    flags=FLAGS,
    parse=parse_file,
    recognises=_recognise,
    others={BENCHMARK: "evalkit.crafter.benchmark.crafter_scores"},
    assemble=assemble,
    files=FileRules(pattern=PATTERN),
    rates=RateRules(outcome_of={"aborted": "not measured"}, conditions=("max_turns",), excluding_flags=("duplicate",)),
    settings=("weights",),
    options=(Option("counting", COUNTINGS, "achievement", _COUNTING_HELP),),
    transcript=transcript,
    detectors=DETECTORS,
    command=Command(
        summary="Scores of Crafter session traces.",
        help="""Score Crafter session traces: SOURCE is a folder, a file, a quoted glob, a URL or a dataset of
    `collect`.

    Aborted traces have no score and are left out of all means; a second row shows the mean with them at 0.

    With --follow, a trace counts as soon as it can be read. One that can't be read, and changed less than 10 seconds
    ago, is still being written.
    """,
        views=(
            Option("verbose", bool, False, "Also write what each trace's points come from.", short="v", followed=False),
            Option("by_difficulty", bool, False, "Also break the scores down by difficulty.", regroups=True),
        ),
        describe=terminal.describe,
        progress=terminal.progress,
    ),
)


def load(
    path: Source,
    pattern: str = PATTERN,
    weights: Mapping[str, float] = WEIGHTS,
    counting: Counting = "achievement",
    **options: Unpack[ReadOptions],
) -> Logs:
    """Read session traces into `Logs`; `weights`, `counting` as for `evaluate_event`, others as for `evalkit.load`."""
    weights = check_rules(weights, counting)
    return kinds.load(path, KIND, pattern=pattern, weights=weights, counting=counting, **options)


def collect(source: Source, output: str | os.PathLike, **options: Any) -> Changes:
    """Collect session traces into a dataset, or update it; parameters and result as of `evalkit.kinds.collect`."""
    return kinds.collect(KIND, source, output, **options)


def episodes_df(path: Source, **options: Any) -> pd.DataFrame:
    """Return the frame `episodes` of `load`."""
    return load(path, **options).episodes
