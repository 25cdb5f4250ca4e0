"""Sessions put together from their files: subagents belong to the session that started them, and each call counts once.

A file may contain calls of another one: of the session that it continues, or of a parent whose history it replays.
The earlier file owns them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from evalkit.kinds.runs import UNKNOWN
from evalkit.trajectories.formats import claude_code, codex
from evalkit.trajectories.json_values import count_of
from evalkit.trajectories.records import SESSIONS, Facts, Joined, Runs

TOKENS = ("tokens_in", "tokens_cache", "tokens_out")
_MOST_NESTED = 100  # subagents of subagents


def join_sessions(runs: Runs, facts: Facts, tables: Mapping[str, pa.Table]) -> tuple[Joined, dict[str, pd.DataFrame]]:
    """Join the files of each session to one run, and fill in what it took.

    Returns also the frames that count calls: ``usage`` by run and model, ``tools`` by run, model and tool. In these,
    `source` is the run's.
    """
    places = [at for at, of_format in enumerate(runs["format"]) if of_format in SESSIONS]
    columns = ("source", "format", "log_id", "started")
    files = pd.DataFrame({name: [runs[name][at] for at in places] for name in columns})
    calls, tools = (tables[name].to_pandas() for name in ("calls", "tools"))
    calls["model_name"] = calls["model_name"].fillna(UNKNOWN)
    files["n"] = files["source"].map(calls["source"].value_counts()).fillna(0)
    for name in ("part_of", "forked_from"):
        files[name] = files["source"].map({one["source"]: one["value"] for one in facts if one["fact"] == name})
    files["is_part"] = files["part_of"].notna()
    files["session"] = _roots(files)
    files = files.sort_values(["started", "n", "source"], kind="stable", ignore_index=True)
    groups = files.sort_values("is_part", kind="stable").groupby(["format", "session"], sort=False)["source"]
    head = {source: own.iloc[0] for _, own in groups for source in own}
    place = dict(zip(files["source"], files.index, strict=True))
    calls = calls.assign(run=calls["source"].map(head)).sort_values(
        "source", key=lambda sources: sources.map(place), kind="stable", ignore_index=True
    )
    calls["is_own"] = ~_is_repeated(calls, files)
    most = calls.groupby("call_id")[list(TOKENS)].transform("max") if len(calls) else calls[list(TOKENS)]
    is_claude = calls["run"].map(dict(zip(files["source"], files["format"], strict=True))).eq(claude_code.FORMAT)
    for name in TOKENS:
        calls[name] = calls[name].mask(is_claude, most[name])
    own = calls[calls["is_own"]]
    sums = _sums(own, ["run"]).to_dict("index")
    with_calls = set(calls["run"])
    others: dict[str, list[str]] = {source: [] for source in head.values()}
    for source in files["source"]:
        if source not in others:
            others[head[source]].append(source)
    for at in places:
        source = runs["source"][at]
        if source not in others:
            continue
        taken = sums.get(source, {"calls": 0})
        runs["turns"][at] = taken["calls"]
        for name in TOKENS:
            runs[name][at] = count_of(taken.get(name))
        runs["trajectories"][at] = others[source]
        runs["is_copy"][at] = not taken["calls"] and source in with_calls
    keys = ["run", "model_name"]
    used = tools.merge(own[["source", "call_id", *keys]], on=["source", "call_id"])
    groups = used.assign(is_error=used["is_error"].astype("Float64")).groupby([*keys, "tool"])["is_error"]
    counts = pd.DataFrame({"calls": groups.size(), "results": groups.count(), "errors": groups.sum()})
    frames = {"usage": _sums(own, keys), "tools": counts}
    joined = Joined([at for at in places if runs["source"][at] not in others])
    return joined, {name: frame.reset_index().rename(columns={"run": "source"}) for name, frame in frames.items()}


def _sums(calls: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Count calls and add up their tokens, by run, or by run and model."""
    groups = calls.groupby(keys)
    sums = groups[list(TOKENS)].sum(min_count=1)
    sums.insert(0, "calls", groups.size())
    return sums


def _roots(files: pd.DataFrame) -> list[str]:
    """Return the session that a file's run is of: its own, or that which started it as a subagent."""
    parents = dict(zip(files["log_id"], files["part_of"], strict=True))
    roots = []
    for session in files["log_id"]:
        for _ in range(_MOST_NESTED):
            parent = parents.get(session)
            if not isinstance(parent, str) or parent == session:
                break
            session = parent
        roots.append(session)
    return roots


def _is_repeated(calls: pd.DataFrame, files: pd.DataFrame) -> np.ndarray:
    """Return which calls an earlier file contains, too; where no file shows it, tokens become missing."""
    repeated = calls["call_id"].duplicated().to_numpy(copy=True)  # of Claude Code: ids of the provider
    ids, is_replayed = calls["call_id"].to_numpy(), calls["is_replayed"].to_numpy()
    rows_of = calls.groupby("source").indices
    of_session: dict[str, np.ndarray] = {}
    for source, session, of_format, parent in _rows(files, "source", "log_id", "format", "forked_from"):
        if of_format != codex.FORMAT or source not in rows_of:
            continue
        rows = rows_of[source]
        known = of_session.get(parent, of_session.get(session))
        if known is not None:
            repeated[rows] = _replay(ids[rows].tolist(), set(known))
        else:
            repeated[rows] = is_replayed[rows] == True  # noqa: E712 - None: the file doesn't tell
            calls.loc[rows[pd.isna(is_replayed[rows])], list(TOKENS)] = np.nan
        of_session[session] = ids[rows]
    return repeated


def _rows(table: pd.DataFrame, *columns: str) -> Iterator[tuple[Any, ...]]:
    return table[list(columns)].itertuples(index=False, name=None)


def _replay(own: list[str], parent: set[str]) -> list[bool]:
    """Return which calls of a session replay those of its parent: up to the last with the same totals, and equals."""
    end = max((at + 1 for at, one in enumerate(own) if "/" in one and one in parent), default=0)
    while end < len(own) and own[end] in parent:
        end += 1
    return [at < end for at in range(len(own))]
