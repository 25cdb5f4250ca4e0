"""The short way: session traces in, frames of episodes, events and achievements out, every file accounted for."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.crafter.collecting import EVERY, collected_frames, open_collected
from evalkit.crafter.parse import SERIAL_BELOW
from evalkit.crafter.scoring import WEIGHTS, Counting, check_rules
from evalkit.crafter.table import TABLES, TraceRows, mark_repeats, order_difficulties, rows_of_file
from evalkit.io import Ledger, Source, SourceError, StorageOptions, frame, list_source, parse_files, paused_gc, storage
from evalkit.io.frames import as_named
from evalkit.io.ledger import Entry
from evalkit.kinds import nothing_used

if TYPE_CHECKING:
    import pandas as pd


TITLE = "Crafter session trace"
MOST_CAUSES = 3


class CrafterTraces(NamedTuple):
    """Session traces as frames; columns are those of `EPISODES`, `EVENTS` and `ACHIEVEMENT_ROWS`."""

    episodes: "pd.DataFrame"
    events: "pd.DataFrame"
    achievements: "pd.DataFrame"
    ledger: "pd.DataFrame"


def load(
    path: Source,
    pattern: str = EVERY,
    models: Sequence[str] = (),
    difficulty: str = "",
    weights: Mapping[str, float] = WEIGHTS,
    counting: Counting = "achievement",
    *,
    recursive: bool = True,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> CrafterTraces:
    """Read the session traces of a folder, also those of folders below, once and into all tables.

    Parameters
    ----------
    path : str, path, or several of them
        A folder or one trace; ``samples:crafter`` for the samples. Also globs and URLs: see `evalkit.io.list_source`.
        A dataset of `collect` stands for the folder that it was collected from.
    pattern : str
        Glob for file names.
    models : sequence of str
        Only these models; none means all.
    difficulty : str
        Only this difficulty; ``""`` means all.
    weights, counting
        As for `evaluate_event`.
    recursive : bool
        False: only the folder's own files, as the original trace_eval reads it.
    jobs : int, optional
        Processes to read with; see `evalkit.io.parse_files`.
    storage_options : mapping, optional
        For the file systems behind URLs, as fsspec takes them.

    Returns
    -------
    CrafterTraces

    Raises
    ------
    evalkit.io.SourceError
        Where `path` is not there, none of its files is a session trace, no trace is of the models or the difficulty
        asked for, or a dataset was collected with other weights or another counting, or is not to be read with the
        folders below.
    """
    from evalkit.io import cached_frames

    rules = {"weights": dict(check_rules(weights, counting)), "counting": counting}
    with storage(storage_options):
        if dataset := open_collected(path):
            frames = collected_frames(dataset, pattern, rules, recursive)
        else:
            listing = list_source(path, pattern, recursive=recursive)

            def build() -> "dict[str, pd.DataFrame]":
                return _frames(parse_files(listing.files, partial(rows_of_file, **rules), jobs, SERIAL_BELOW))

            frames = cached_frames("crafter", listing.files, build, listing.marks, order=listing.files, **rules)
        if frames["episodes"].empty:
            ledger = map(Entry._make, frames["ledger"].itertuples(index=False))
            raise no_traces(path, list(ledger), pattern, recursive=recursive)
    return CrafterTraces(**_choose(frames, models, difficulty))


@paused_gc()
def _frames(found: Iterable[TraceRows]) -> "dict[str, pd.DataFrame]":
    rows: dict[str, list] = {name: [] for name in TABLES}
    ledger = Ledger()
    for entry, episode, events, achievements in found:
        ledger.entries.append(entry)
        rows["episodes"] += [episode] if episode is not None else []
        rows["events"] += events
        rows["achievements"] += achievements
    return {name: frame(rows[name], columns) for name, columns in TABLES.items()} | {"ledger": ledger.frame()}


def _choose(frames: "Mapping[str, pd.DataFrame]", models: Sequence[str], difficulty: str) -> "dict[str, pd.DataFrame]":
    """Leave out what was not asked for, and mark sessions that stand in several of the files that stay."""
    episodes, ledger = frames["episodes"], frames["ledger"]
    difficulties = [difficulty] if difficulty else []
    asked = {"model_name": list(models), "difficulty": difficulties}
    left_out = episodes["source"].isna()
    for column, chosen in asked.items():
        _check_choice(column.removesuffix("_name"), chosen, order_difficulties(episodes[column]))
        left_out |= ~episodes[column].isin(chosen) if chosen else False
    chosen = {name: frames[name] for name in TABLES}
    if left_out.any():
        gone = episodes[left_out].set_index("source")
        chosen = {n: f[~f["source"].isin(gone.index)].reset_index(drop=True) for n, f in chosen.items()}
        reasons = "not asked for: " + gone["model_name"] + ", " + gone["difficulty"]
        skipped = ledger["source"].isin(gone.index)
        ledger = ledger.assign(
            status=ledger["status"].mask(skipped, "skipped"),
            reason=ledger["reason"].mask(skipped, ledger["source"].map(reasons)),
        )
    return chosen | {"episodes": mark_repeats(chosen["episodes"]), "ledger": ledger}


def episodes_df(path: Source, **options: Any) -> "pd.DataFrame":
    """Return one row per trace; options as for `load`, columns in `EPISODES`."""
    return load(path, **options).episodes


def events_df(path: Source, **options: Any) -> "pd.DataFrame":
    """Return one row per event; options as for `load`, columns in `EVENTS`."""
    return load(path, **options).events


def achievements_df(path: Source, **options: Any) -> "pd.DataFrame":
    """Return one row per trace and achievement; options as for `load`, columns in `ACHIEVEMENT_ROWS`."""
    return load(path, **options).achievements


def no_traces(source: Source, entries: Sequence[Entry], pattern: str, *, recursive: bool = True) -> SourceError:
    """Make the error of a source of which no file could be used as a trace.

    Parameters
    ----------
    source : str, path, or several of them
        What the user named.
    entries : sequence of Entry
        The ledger of the files that were looked at.
    pattern, recursive
        How they were chosen.

    Returns
    -------
    SourceError
        As `evalkit.kinds.nothing_used` makes it; where all files are broken, or there is only one, with the causes.
    """
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else ", ".join(map(os.fspath, source))
    if entries:
        error = nothing_used(name, [as_named(entry.source) for entry in entries], TITLE)
        because = len(entries) == 1 or all(entry.status == "failed" for entry in entries)
        causes = list(dict.fromkeys(entry.reason for entry in entries))[:MOST_CAUSES]
        return SourceError(f"{error}: {'; '.join(causes)}") if because else error
    files = list_source(source, recursive=recursive).files
    if files and pattern != EVERY:
        return SourceError(f"{name}: no file matches {pattern} ({len(files)} other file{'s' * (len(files) > 1)})")
    hint = f"; none is named {pattern}" if files else "" if recursive else "; folders below are not looked into"
    return SourceError(f"{nothing_used(name, files, TITLE)}{hint}")


def _check_choice(what: str, chosen: Sequence[str], seen: Sequence[str]) -> None:
    if missing := [name for name in chosen if name not in seen]:
        raise SourceError(f"no trace has the {what} {missing[0]!r}; there are {', '.join(seen)}")
