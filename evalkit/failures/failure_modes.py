"""Assign failure modes to failed runs, by documented rules over their events, and estimate how often they occur."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

import pandas as pd

from evalkit._text import check_columns
from evalkit.failures.search import detectors, events, search
from evalkit.io import masked
from evalkit.io.frames import Column, frame_of
from evalkit.kinds import Logs, outcomes
from evalkit.kinds.runs import counted
from evalkit.stats import estimate_by

UNEXPLAINED = "unexplained"  # mode of a failed run that no rule explains
# mode of a failed run whose log has no turn of an agent or user, or can't be read any more
UNSEARCHED = "no transcript"
FAILED_EVENTS = ("failed_call", "invalid_action", "silent_failure")  # events whose evidence is the text of an error
ALIKE = 0.6  # minimum share of words that two error texts of one group have in common
MOST_TEXTS = 400  # maximum number of groups to which texts are compared
MOST_MASKED = 160  # maximum number of characters of a masked text

MODES = (
    Column("run_id", "str", "the run; see the table of runs"),
    Column("model_name", "name", "its model"),
    Column("task", "str", "its task, which repetitions share"),
    Column("task_type", "name", "kind of task"),
    Column("mode", "name", "why it failed; unexplained if no rule applies"),
    Column("leads", "bool", "the mode of the highest severity of this run"),
    Column("n", "int", "events that make up the mode", "events"),
    Column("turn", "int?", "turn of the first of them"),
    Column("event", "name", "name of the first of them"),
    Column("detail", "str", "detail of the first of them"),
)
_MASKS = (  # replacements in error texts, applied in this order
    (re.compile(r"https?://\S+"), "<url>"),
    (
        re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@~+-]+){2,}[\\/]?|\b[\w-]+\.(?:py|js|ts|json|txt|md|csv|yaml|yml|sh)\b"),
        "<path>",
    ),
    # quoted names, but not apostrophes: single words, and several words that are not the whole message after a colon
    (re.compile(r"(?<!\w)([\"'`‘])[^\s\"'`’]{1,80}(?:\1|’)(?!\w)"), "<name>"),
    (re.compile(r"(?!\A)(?<![\w:=])(?<![:=] )([\"'`‘])(?:(?!\1|’).){1,80}(?:\1|’)(?!\w)"), "<name>"),
    (re.compile(r"[(\[{]\s*-?\d[\d.,\s-]*[)\]}]"), "<place>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b"), "<id>"),
    (re.compile(r"#?-?\d+(?:[.,:]\d+)*"), "<n>"),
    (re.compile(r"\b\w*<n>\w*(?:_\w+)*\b|\b[a-z]+(?:_[a-z]+)+\b"), "<name>"),
)
_BEFORE_JSON = re.compile(r"[^{\[]{0,40}(?=[{\[]\s*[\"'{])")
_MESSAGE = re.compile(  # a message in JSON, or in the repr of a dictionary
    r"(?i:[\"'](?:error_?)?(?:message|msg|error|details?|reason|description|exception|stderr)[\"'])\s*:\s*"
    r"(?P<quote>[\"'])(?P<text>(?:\\.|(?!(?P=quote))[^\\])+)"
)
Rule = Literal["success", "events", "score", "unknown"]


class Failed(NamedTuple):
    """The counted runs, which of them failed, and the rule that decides it.

    `table` has one row per counted run: run_id, model_name, task, unit (the task and its conditions), family,
    task_type, failed (bool). `rule` names the evidence:

    - success: the outcome, as logged.
    - events: certain events, for kinds whose logs never record success (steps: a failed or silently failed step).
    - score: a score below the median of the task's runs, or of all runs if the task has only one run.
    - unknown: logs contain no evidence.
    """

    table: pd.DataFrame
    rule: Rule


def failed_runs(logs: Logs) -> Failed:
    """Decide which runs of logs failed.

    Parameters
    ----------
    logs : Logs

    Returns
    -------
    Failed
        Without runs that are excluded from all rates, such as copies, and without runs that have no outcome.

    Examples
    --------
    >>> table, rule = failures.failed_runs(logs)
    >>> int(table["failed"].sum()), len(table), rule
    (38, 68, 'success')
    """
    columns = ["run_id", "model_name", "task", "condition", "family", "task_type"]
    if logs.kind.failure_events:
        table = outcomes(logs.runs, kind=logs.kind).table
        found = events(logs)
        bad = set(found.loc[found["event"].isin(logs.kind.failure_events), "run_id"])
        return _failed(table[columns].assign(failed=table["run_id"].isin(bad)), "events")
    table = outcomes(logs.runs, "is_successful", logs.kind).table
    if table["value"].notna().any():
        known = table[table["value"].notna()]
        return _failed(known[columns].assign(failed=known["value"] == 0), "success")
    table = outcomes(logs.runs, "score", logs.kind).table.dropna(subset="value")
    if table.empty:
        return _failed(table[columns].assign(failed=False), "unknown")
    of_task = table.groupby(["task", "condition"])["value"]
    middle = of_task.transform("median").where(of_task.transform("size") > 1, table["value"].median())
    return _failed(table[columns].assign(failed=table["value"] < middle), "score")


def _failed(table: pd.DataFrame, rule: Rule) -> Failed:
    unit = table["task"].astype("str") + table["condition"].map(lambda text: f" ({text})" if text else "")
    return Failed(table.assign(unit=unit).drop(columns="condition").reset_index(drop=True), rule)


def modes(logs: Logs) -> pd.DataFrame:
    """Name the failure modes of every failed run, with one row per run and mode; a run may have several modes.

    A run has a mode if it has enough events of one of the mode's detectors (`Detector.mode`, `least`). The mode with
    the highest severity leads; of modes with equal severity, the first one in the order of
    `evalkit.failures.detectors`. A run without any mode gets the mode ``unexplained``, or ``no transcript`` if its log
    has no turn of an agent or user. `failed_runs` decides which runs failed.

    Parameters
    ----------
    logs : Logs

    Returns
    -------
    DataFrame
        run_id, model_name, task, task_type, mode, leads, n (events), turn, event, detail (of the first event). Rows are
        in the order of runs, with the leading mode of each run first.

    Examples
    --------
    >>> table = failures.modes(logs)
    >>> table["mode"].value_counts().head(3).to_dict()
    {'changes nothing': 25, 'calls fail': 24, 'ignores an error': 14}
    """
    return modes_of(logs, failed_runs(logs).table)


def modes_of(logs: Logs, runs: pd.DataFrame) -> pd.DataFrame:
    """Name the failure modes of every failed run, like `modes`; `runs` is the table of `failed_runs`."""
    failed = runs[runs["failed"]]
    known, found, searched = search(logs)
    explaining = sorted((one for one in known if one.mode), key=lambda one: -one.severity)
    rules = pd.DataFrame(explaining)
    rules = rules.assign(event=rules["name"], rank=rules.index)[["event", "mode", "least", "rank"]]
    of_failed = pd.Index(failed["run_id"]).unique().get_indexer(found["run_id"]) >= 0  # faster than `isin`
    events_of_runs = found[of_failed].groupby(["run_id", "event"], observed=True)
    counts = events_of_runs.agg(n=("turn", "size"), turn=("turn", "first"), detail=("detail", "first")).reset_index()
    counts = counts.merge(rules, on="event")
    enough = counts[counts["n"] >= counts["least"]].sort_values("rank")
    own = enough.groupby(["run_id", "mode"], sort=False).agg(
        {"n": "sum", "turn": "first", "event": "first", "detail": "first"}
    )
    table = failed.merge(own.reset_index(), on="run_id", how="left")
    without_mode = table.loc[table["mode"].isna(), "run_id"]
    others = [UNEXPLAINED if run_id in searched else UNSEARCHED for run_id in without_mode]
    table["mode"] = table["mode"].fillna(pd.Series(others, without_mode.index, "str"))
    table["leads"] = ~table["run_id"].duplicated()
    table = table.fillna({"n": 0, "event": "", "detail": ""})
    return frame_of({column.name: table[column.name] for column in MODES}, MODES)


def mode_shares(table: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Estimate the share of failed runs with each mode, per group; runs without a transcript are excluded.

    Parameters
    ----------
    table : DataFrame
        Result of `modes`.
    by : str or sequence of str
        Columns of the groups, such as ``model_name`` or ``task_type``; an empty list makes one group of all runs.

    Returns
    -------
    DataFrame
        The columns of `by`, mode, n (failed runs of the group with a transcript), n_tasks, runs (with the mode),
        leading (runs in which the mode leads), estimate, low, high, method, target, warning, measure. Tasks are
        clusters of equal weight (`evalkit.stats.estimate_by`). The most frequent mode is first, ``unexplained`` last.

    Examples
    --------
    >>> shares = failures.mode_shares(failures.modes(logs), [])
    >>> shares[["mode", "runs", "n", "estimate", "low", "high"]].head(2).round(2)
                  mode  runs   n  estimate   low  high
    0  changes nothing    25  38      0.64  0.50  0.76
    1       calls fail    24  38      0.66  0.52  0.78
    """
    by = [by] if isinstance(by, str) else list(by)
    check_columns(table, *by)
    table = table[table["mode"] != UNSEARCHED]
    failed = table.drop_duplicates("run_id")
    names = table["mode"].value_counts().index.tolist()
    names.sort(key=lambda name: name == UNEXPLAINED)  # moves it to the end
    parts = []
    for name in names:
        has_mode = failed["run_id"].isin(table.loc[table["mode"] == name, "run_id"])
        rows = failed.assign(value=has_mode.astype("float64"))
        parts.append(estimate_by(rows, by, "value", clusters="task").assign(mode=name, measure="share of failed runs"))
    order = [*by, "mode", "n", "n_tasks", "runs", "leading", "estimate", "low", "high"]
    order += ["method", "target", "warning", "measure"]
    if not parts:
        return pd.DataFrame(columns=order)
    groups = table.groupby([*by, "mode"], dropna=False, observed=True)["leads"]
    counts = groups.agg(runs="size", leading="sum").reset_index()
    shares = pd.concat(parts).merge(counts, on=[*by, "mode"])[order]
    return shares.sort_values(by, kind="stable", ignore_index=True) if by else shares


def with_modes(logs: Logs) -> pd.DataFrame:
    """Return the runs with the mode that leads, and lists of the run's modes, events and groups of errors."""
    lists: dict[str, Any] = {}
    for name, table in (("mode", modes(logs)), ("event", events(logs)), ("error_group", _grouped_errors(logs))):
        of_run = table.drop_duplicates(["run_id", name]).groupby("run_id")[name].agg(list).to_dict()
        lists[name] = [of_run.get(run_id, []) for run_id in logs.runs["run_id"]]
    leading = [own[0] if own else "" for own in lists["mode"]]  # the first mode of a run leads
    return logs.runs.assign(leading_mode=leading, **lists)


def masked_text(text: str) -> str:
    """Replace URLs, paths, names, positions, ids and numbers in an error text with words in angle brackets."""
    text = " ".join(masked(text)[: 4 * MOST_MASKED].split())
    if before := _BEFORE_JSON.match(text):  # keep only the messages of JSON
        messages = [match["text"] for match in _MESSAGE.finditer(text)]
        text = " ".join([before[0].strip(), *messages]).strip() if messages else text.replace('"', "")
    if text.isidentifier():  # an error code
        return text
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return text[:MOST_MASKED]


def error_groups(logs: Logs) -> pd.DataFrame:
    """Group the error texts of failed calls, invalid actions and silent failures in all runs that count in rates.

    Numbers, names, paths and positions are masked. Then texts that share at least 60 % of their words (Jaccard index)
    with the most frequent text of a group belong to this group.

    Parameters
    ----------
    logs : Logs

    Returns
    -------
    DataFrame
        error (masked text), error_group (its number), cause (the most frequent detail), calls, runs, example (text),
        run_id, turn and agent of the example; the most frequent error first.

    Examples
    --------
    >>> failures.error_groups(logs)[["cause", "calls", "runs", "turn"]]
           cause  calls  runs  turn
    0  exception     47    47    12
    """
    groups = _grouped_errors(logs).groupby("error_group")
    return groups.agg(
        error=("error", "first"),
        error_group=("error_group", "first"),
        cause=("detail", lambda details: details.value_counts().index[0]),
        calls=("turn", "size"),
        runs=("run_id", "nunique"),
        example=("evidence", "first"),
        run_id=("run_id", "first"),
        turn=("turn", "first"),
        agent=("agent", "first"),
    ).reset_index(drop=True)


def _grouped_errors(logs: Logs) -> pd.DataFrame:
    """Return the events of `error_groups` with the error, and the number of its group, from 1 by number of calls."""
    found = events(logs)
    bad = found[found["event"].isin(FAILED_EVENTS) & found["run_id"].isin(counted(logs.runs, logs.kind)["run_id"])]
    if "invalid_action" in set(bad["event"]):  # invalid actions are also events of failed_call
        bad = bad[bad["event"] != "failed_call"]
    text = bad["evidence"].where(bad["event"] != "invalid_action", bad["detail"])
    bad = bad.assign(masked=text.map(masked_text), evidence=text)
    counts = bad["masked"].value_counts()
    group: dict[str, str] = {}
    heads: list[tuple[str, int]] = []  # the most frequent text of each group, and the number of its words
    heads_with: dict[str, list[int]] = {}  # index from words to places in `heads`, to compare only texts that share one
    for pattern in counts.index:
        words = frozenset(pattern.lower().split())
        shared = Counter(chain.from_iterable(heads_with.get(word, ()) for word in words))
        alike = [place for place, n in shared.items() if n >= ALIKE * (heads[place][1] + len(words) - n)]
        if not alike and len(heads) < MOST_TEXTS:
            for word in words:
                heads_with.setdefault(word, []).append(len(heads))
            heads.append((pattern, len(words)))
        group[pattern] = heads[min(alike)][0] if alike else pattern
    errors = bad["masked"].map(group)
    counts = errors.groupby(errors, sort=False).size().sort_values(ascending=False, kind="stable")
    return bad.assign(error=errors, error_group=counts.index.get_indexer(pd.Index(errors)) + 1)


def event_counts(logs: Logs) -> pd.DataFrame:
    """Count the events of each type in all runs that count in rates.

    Parameters
    ----------
    logs : Logs
        Logs of any kind; runs that can't be shown turn by turn have no events.

    Returns
    -------
    DataFrame
        event, question, mode, events, runs (with the event), run_id and turn of the first event, n (all runs). Includes
        events that no run has.

    Examples
    --------
    >>> failures.event_counts(logs)[["event", "events", "runs", "n"]].head(3)
                     event  events  runs   n
    0          failed_call      47    47  70
    1  submitted_unchanged      39    39  70
    2        ignored_error      21    21  70
    """
    ids = set(counted(logs.runs, logs.kind)["run_id"])
    found = events(logs)
    groups = found[found["run_id"].isin(ids)].groupby("event", observed=True, sort=False)
    counts = groups.agg(
        events=("turn", "size"), runs=("run_id", "nunique"), run_id=("run_id", "first"), turn=("turn", "first")
    )
    known = pd.DataFrame(detectors(logs.kind)).rename(columns={"name": "event"})[["event", "question", "mode"]]
    table = known.join(counts, on="event").assign(n=len(ids)).fillna({"events": 0, "runs": 0})
    table = table.astype({"events": "int64", "runs": "int64", "turn": "Int64"})
    return table.sort_values("runs", ascending=False, kind="stable", ignore_index=True)
