"""Join the files of sessions: subagents belong to the session that started them, and each call counts once.

A file may contain calls of another file: of the session that it continues, or of a parent session whose history it
replays. Such calls belong to the earlier file.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from evalkit.kinds.runs import UNKNOWN
from evalkit.trajectories.formats import claude_code, codex
from evalkit.trajectories.parse import SESSION_FORMATS
from evalkit.trajectories.records import Rows, Runs

TOKENS = ("tokens_in", "tokens_cache", "tokens_out")
_MOST_NESTED = 100  # maximum depth of subagents that start subagents
_COUNTED = {  # columns of the frames that count calls, in addition to `source`
    "usage": ("model_name", "calls", *TOKENS),
    "tools": ("model_name", "tool", "calls", "results", "errors"),
}


def join_sessions(runs: Runs, facts: Rows, tables: Mapping[str, pa.Table]) -> dict[str, pd.DataFrame]:
    """Join the files of each session into one run, and set its turns, tokens and cost.

    Returns the frames that count calls: ``usage`` by run and model, ``tools`` by run, model and tool. Their `source` is
    the source of the run.
    """
    runs = [run for run in runs if run.format in SESSION_FORMATS]
    if not runs:  # most sources have no sessions, and joining no session takes as long as joining a few
        return {name: pd.DataFrame(columns=["source", *columns]) for name, columns in _COUNTED.items()}
    columns = ("source", "format", "log_id", "started", "cost", "turns")
    files = pd.DataFrame({name: [getattr(run, name) for run in runs] for name in columns})
    files = files.astype({"source": "str", "cost": "float", "turns": "float"})
    calls, tools = (tables[name].to_pandas() for name in ("calls", "tools"))
    calls["model_name"] = calls["model_name"].fillna(UNKNOWN)
    totals = calls[calls["call_id"].eq("")]
    calls = calls[calls["call_id"].ne("")]
    files["n"] = files["source"].map(calls["source"].value_counts()).fillna(0)
    for name in ("part_of", "forked_from"):
        files[name] = files["source"].map({one["source"]: one["value"] for one in facts if one["fact"] == name})
    files["is_part"] = files["part_of"].notna()
    files["session"] = _roots(files)
    files = files.sort_values(["started", "n", "source"], kind="stable", ignore_index=True)
    sessions = files.sort_values("is_part", kind="stable").groupby(["format", "session"])
    files["run"] = sessions["source"].transform("first")
    calls = files[["source", "format", "run"]].merge(calls, on="source")  # keeps the order of files
    calls["is_own"] = ~_is_repeated(calls, files)
    of_claude = calls[calls["format"].eq(claude_code.FORMAT)]
    calls.loc[of_claude.index, list(TOKENS)] = of_claude.groupby("call_id")[list(TOKENS)].transform("max")
    own = calls[calls["is_own"]]
    keys = ["run", "model_name"]
    groups = own.groupby(keys)
    usage = groups[list(TOKENS)].sum(min_count=1)
    usage.insert(0, "calls", groups.size())
    # tokens in the totals of a model but not in its calls; totals of a resumed session include earlier files
    stated = files[["source", "run"]].merge(totals, on="source").groupby(keys)[list(TOKENS)].max()
    rest = stated - usage[list(TOKENS)].fillna(0)
    usage[list(TOKENS)] = usage[list(TOKENS)].add(rest.clip(lower=0).reindex(usage.index), fill_value=0)
    alone = stated[~stated.index.get_level_values("run").isin(own["run"])]  # totals of runs without calls
    usage = pd.concat([usage, alone.assign(calls=np.nan)])
    sums = usage.groupby("run").sum(min_count=1).to_dict("index")
    with_calls = set(calls["run"])
    continuing = set(calls.loc[~calls["is_own"], "source"])
    costs = files.groupby("run")["cost"].max()  # not the sum: the cost of a resumed session includes earlier files
    turns = files.groupby("run")["turns"].sum()
    joined = files[files["source"].ne(files["run"])]
    left_out = set(joined["source"])
    others = joined.groupby("run")["source"].agg(list).to_dict()
    for run in runs:
        source = run.source
        if source in left_out:
            run.is_left_out = True
            continue
        taken = sums.get(source, {"calls": None})
        run.turns = int(turns[source] if pd.isna(taken["calls"]) else taken["calls"])
        for name in TOKENS:
            value = taken.get(name)
            setattr(run, name, None if pd.isna(value) else int(value))
        # the logged cost of a session that continues another one is the cost of both
        run.cost = None if source in continuing or pd.isna(costs[source]) else costs[source]
        run.trajectories = others.get(source, [])
        run.is_copy = source not in sums and source in with_calls
    used = tools.merge(own[["source", "call_id", *keys]], on=["source", "call_id"])
    results = used.assign(is_error=used["is_error"].astype("Float64")).groupby([*keys, "tool"])["is_error"]
    frames = {"usage": usage, "tools": results.agg(calls="size", results="count", errors="sum")}
    return {name: frame.reset_index().rename(columns={"run": "source"}) for name, frame in frames.items()}


def _roots(files: pd.DataFrame) -> pd.Series:
    """Return the session of each file's run: the file's session, or the session that started it as a subagent."""
    started = files[files["part_of"].notna()]
    parents = dict(zip(started["log_id"], started["part_of"], strict=True))
    sessions = files["log_id"]
    for _ in range(_MOST_NESTED):
        above = sessions.map(lambda session: parents.get(session, session))
        if above.equals(sessions):
            break
        sessions = above
    return sessions


def _is_repeated(calls: pd.DataFrame, files: pd.DataFrame) -> np.ndarray:
    """Return which calls an earlier file also contains; where no file shows this, set the calls' tokens to missing."""
    repeated = calls["call_id"].duplicated().to_numpy(copy=True)  # enough for Claude Code: the provider sets the ids
    ids, is_replayed = calls["call_id"].to_numpy(), calls["is_replayed"].to_numpy()
    rows_of = calls.groupby("source").indices
    of_session: dict[Any, np.ndarray] = {}
    for file in files[files["format"].eq(codex.FORMAT) & files["n"].gt(0)].itertuples():
        rows = rows_of[file.source]
        known = of_session.get(file.forked_from, of_session.get(file.log_id))
        if known is not None:
            repeated[rows] = _replay(ids[rows].tolist(), set(known))
        else:
            repeated[rows] = is_replayed[rows] == True  # noqa: E712 - None: the file doesn't state it
            calls.loc[rows[pd.isna(is_replayed[rows])], list(TOKENS)] = np.nan
        if not repeated[rows].all():
            of_session[file.log_id] = ids[rows]
    return repeated


def _replay(own: list[str], parent: set[str]) -> list[bool]:
    """Return which calls of a session replay calls of its parent.

    These are all calls up to the last one whose id, which includes totals, also occurs in the parent, and the calls
    right after it that are equal to the parent's. The output of ``codex exec`` has no totals of single calls and
    repeats its parent.
    """
    if any("/" in one for one in parent) and not any("/" in one for one in own):
        return [True] * len(own)
    end = max((at + 1 for at, one in enumerate(own) if "/" in one and one in parent), default=0)
    while end < len(own) and own[end] in parent:
        end += 1
    return [at < end for at in range(len(own))]
