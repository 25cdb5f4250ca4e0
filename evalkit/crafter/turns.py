"""Episodes turn by turn: transcripts, and the frames of turns and actions.

An event that names no turn belongs to that of the next one that does, since a model's call comes before the actions
that it chose; after the last one, to the last.
"""

import os
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any

from evalkit.crafter.format import (
    TIER_OF,
    WEIGHTS,
    Event,
    State,
    TimeRecord,
    action_names,
    kind_of,
    peek,
    read_trace,
    turn_of,
)
from evalkit.crafter.images import images_of
from evalkit.crafter.parse import NO_TOKENS, Judged, add_tokens, judge_trace, tokens_of
from evalkit.crafter.scoring import DIGITS, Verdict, read_invalid, score_verdicts
from evalkit.crafter.table import ACTION_ROWS, TURNS
from evalkit.io import BrokenFileError, SourceError, frame_of
from evalkit.kinds import Transcript, Turn

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

VITALS = ("health", "food", "drink", "energy")


def transcript(paths: Sequence[str], read: Callable[[str], bytes]) -> Transcript:
    """Return the transcript of a trace: per turn its actions and why, invalid ones, unlocked achievements and state.

    Raises
    ------
    evalkit.io.SourceError
        For a file that is not a session trace, or a broken one.
    """
    (path,) = paths
    data = read(path)
    try:
        trace, notes = read_trace(data)
    except BrokenFileError as error:
        raise SourceError(f"{path}: {error}") from error
    judged = judge_trace(trace)
    numbers = _fill([turn_of(event) for event in judged.events])
    steps = enumerate(zip(numbers, judged.events, judged.verdicts, strict=True))
    groups = groupby(steps, lambda step: f"event {step[0]}" if step[1][0] is None else f"turn {step[1][0]}")
    images, turns, points = images_of(data), [], []
    for name, group in groups:
        members = list(group)
        turn = _turn(name, [(event, verdict) for _, (_, event, verdict) in members])
        seen = [images[place] for place, _ in members if place in images][-1:]
        turns.append(turn._replace(images=tuple(seen)))
        points.append(score_verdicts([verdict for _, (_, _, verdict) in members], WEIGHTS, "achievement").score)
    if points:  # the turn that raised the score most or, if nothing was unlocked, lowered it most
        place = points.index(max(points) if max(points) > 0 else min(points))
        turns[place] = turns[place]._replace(events=(*turns[place].events, "decision"))
    if judged.session.error is not None:
        text = f"error: {judged.session.error or 'no message'}"
        turns.append(Turn("session", "system", text, ("error",), ("error",)))
    return Transcript(os.path.basename(path), _facts(judged, notes), turns)


def _facts(judged: Judged, notes: Sequence[str]) -> list[str]:
    session = judged.session
    facts = [session.model_name, f"difficulty {session.difficulty}"]
    facts += [f"task {session.task_id}"] * (session.task_id is not None)
    if not judged.events:
        return [*facts, "aborted: no events"]
    scored = score_verdicts(judged.verdicts, WEIGHTS, "achievement")
    facts.append(f"score {scored.score:.2f}")
    if judged.unlocked is not None:
        facts.append(f"{len(judged.unlocked)} of {len(TIER_OF)} achievements")
    return facts + [flag.replace("_", " ") for flag in (*judged.flags, *notes)]


def _fill(turns: list[int | None]) -> list[int | None]:
    """Fill missing turns of events with that of the next one, else of the last one."""
    for there, order in ((1, reversed(range(len(turns) - 1))), (-1, range(1, len(turns)))):
        for i in order:
            turns[i] = turns[i + there] if turns[i] is None else turns[i]
    return turns


def _turn(name: str, steps: list[tuple[Event, Verdict]]) -> Turn:
    actions = [str(action) for event, _ in steps for action in action_names(event.actions) or ()]
    reasonings = [peek(event.metadata.action_reasoning, str) for event, _ in steps if event.metadata]
    invalid = [one for event, verdict in steps for one in read_invalid(event, verdict)]
    unlocked = [f"{name} ({TIER_OF.get(name, 'unknown')})" for _, verdict in steps for name in verdict.achievements]
    lines = [", ".join(actions) or "no action", *filter(None, reasonings)]
    for one in invalid:
        doubt = " (judged over the whole turn)" if one.suspect else ""
        lines.append(f"invalid {one.action or 'action'}: {one.reason or 'no reason'}{doubt}")
    lines += [f"unlocked {', '.join(unlocked)}"] * bool(unlocked)
    events = [event for event, _ in steps]
    lines += filter(None, ["; ".join(filter(None, (_state(events), _tokens(events))))])
    marks = ["unlocked"] * bool(unlocked)
    marks += ["invalid"] * any(not one.suspect for one in invalid) + ["suspect"] * any(one.suspect for one in invalid)
    happened = ["command"] * bool(actions) + ["error"] * bool(invalid) + ["achievement"] * bool(unlocked)
    same = ", ".join([*actions, *unlocked])  # reasoning and tokens always differ
    return Turn(name, "action", "\n".join(lines), tuple(marks), tuple(happened), _time(events), same)


def _time(events: list[Event]) -> str:
    """Return the time of the first event that has one, as the trace writes it."""
    times = (peek(peek(event.time_record, TimeRecord).event_time, str) for event in events if event.time_record)
    return next((time[:40] for time in times if time), "")


def _state(events: list[Event]) -> str:
    """Format the vitals after a turn, and the inventory, as far as an observation shows them."""
    for event in reversed(events):
        for raw in (event.system_state_after, event.system_state_before):
            state = peek(raw, State)
            shown = (state.public_state or state.observation) if state else None
            if shown and shown.inventory:
                has = {name: n for name, n in shown.inventory.items() if isinstance(n, int | float)}
                names = [name for name in VITALS if name in has] + [
                    name for name in has if name not in VITALS and has[name]
                ]
                return ", ".join(f"{name} {has[name]}" for name in names)
    return ""


def _tokens(events: list[Event]) -> str:
    prompt, completion, total = reduce(
        add_tokens, (tokens_of(e) for e in events if kind_of(e) == "language_model"), NO_TOKENS
    )
    if prompt is None and completion is None:
        return "" if total is None else f"{total} tokens"
    return f"{prompt or 0} + {completion or 0} tokens"


def turns(events: "pd.DataFrame", records: "pa.Table") -> "pd.DataFrame":
    """Build the frame of turns, see `table.TURNS`; traces whose events name no turn have none.

    Parameters
    ----------
    events : DataFrame
        As `load` returns it.
    records : pyarrow.Table
        The records it was built from.
    """
    names = records["action_names"].to_pylist()
    texts = [None if row is None else " ".join(map(str, row)) for row in names]
    named: dict[str, Any] = {"action_names": texts}
    rows = events.assign(turn=_turns_of(events), **named, events=1).dropna(subset="turn")
    groups = rows.groupby(["source", "turn"], sort=False)
    sums = ("actions", "score", "total_tokens")
    counts = ("events", *(f"{name}s" for name in WEIGHTS), "suspect_invalid_actions")
    made: dict[str, Any] = {name: groups[name].first() for name in ("model_name", "task_id", "difficulty")}
    made |= {name: groups[name].sum() for name in counts}
    made |= {name: groups[name].sum(min_count=1) for name in sums}
    made["score"] = made["score"].round(DIGITS) + 0.0
    for name, separator in {"action_names": " ", "achievements": " ", "reason": "; "}.items():
        joined = rows.dropna(subset=name).groupby(["source", "turn"], sort=False)[name].agg(separator.join)
        made[name] = joined.reindex(made["score"].index)
    index = made["score"].index
    made |= {name: index.get_level_values(name).to_series() for name in ("source", "turn")}
    return frame_of(made, TURNS)


def actions(events: "pd.DataFrame", records: "pa.Table") -> "pd.DataFrame":
    """Build the frame of actions, see `table.ACTION_ROWS`; parameters as for `turns`."""
    import numpy as np
    import pyarrow.compute as pc

    names = records["action_names"].combine_chunks()
    lengths = pc.list_value_length(names).fill_null(0).to_numpy()
    of = np.repeat(np.arange(len(lengths)), lengths)  # the event of each action
    judged = pc.is_valid(records["reasons"]).to_numpy() & (lengths > 0)
    reasons = np.full(len(of), None, dtype=object)
    reasons[judged[of]] = pc.list_flatten(records["reasons"].filter(judged)).to_pylist()
    invalid, suspect = (events[name].to_numpy()[of] for name in ("invalid_actions", "suspect_invalid_actions"))
    verdicts = np.select([suspect == 0, suspect == invalid], ["invalid", "suspect"], default="")
    rows = events.assign(turn=_turns_of(events)).iloc[of]
    made: dict[str, Any] = {
        name: rows[name] for name in ("source", "model_name", "task_id", "difficulty", "turn", "event")
    }
    made |= {
        "action": rows.groupby(["source", "turn"], sort=False, dropna=False).cumcount(),
        "name": pc.list_flatten(names),
        "verdict": [
            None if reason is None else str(verdict) or None for reason, verdict in zip(reasons, verdicts, strict=True)
        ],
        "reason": reasons.tolist(),
    }
    return frame_of(made, ACTION_ROWS)


def _turns_of(events: "pd.DataFrame") -> "pd.Series":
    """Fill missing turns of events with that of the next one of their trace, else of the last one."""
    filled = events.groupby("source", sort=False)["turn"].bfill()
    return filled.groupby(events["source"], sort=False).ffill()
