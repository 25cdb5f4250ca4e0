"""The short way: session traces in, frames of episodes, events and achievements out, every file accounted for."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.crafter.collecting import collected_frames, open_collected
from evalkit.crafter.parse import SERIAL_BELOW
from evalkit.crafter.scoring import WEIGHTS, Counting, check_rules
from evalkit.crafter.table import TABLES, TraceRows, rows_of_file
from evalkit.io import Ledger, Source, SourceError, StorageOptions, frame, list_source, parse_files, paused_gc, storage

if TYPE_CHECKING:
    import pandas as pd


class CrafterTraces(NamedTuple):
    """Session traces as frames; columns are those of `EPISODES`, `EVENTS` and `ACHIEVEMENT_ROWS`."""

    episodes: "pd.DataFrame"
    events: "pd.DataFrame"
    achievements: "pd.DataFrame"
    ledger: "pd.DataFrame"


def load(
    path: Source,
    pattern: str = "*.json",
    models: Sequence[str] = (),
    difficulty: str = "",
    weights: Mapping[str, float] = WEIGHTS,
    counting: Counting = "achievement",
    *,
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
        Where `path` is not there, no trace is of the models or the difficulty asked for, or a dataset was collected
        with other weights or another counting.
    """
    from evalkit.io import cached_frames

    rules = {"weights": dict(check_rules(weights, counting)), "counting": counting}
    with storage(storage_options):
        if dataset := open_collected(path):
            frames = collected_frames(dataset, pattern, rules)
        else:
            listing = list_source(path, pattern)

            def build() -> "dict[str, pd.DataFrame]":
                return _frames(parse_files(listing.files, partial(rows_of_file, **rules), jobs, SERIAL_BELOW))

            frames = cached_frames("crafter", listing.files, build, listing.marks, order=listing.files, **rules)
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
        _check_choice(column.removesuffix("_name"), chosen, set(episodes[column]))
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
    sessions = chosen["episodes"]["session_id"]
    repeated = sessions.notna() & sessions.duplicated(keep=False)
    return chosen | {"episodes": chosen["episodes"].assign(flag_duplicate_session=repeated), "ledger": ledger}


def episodes_df(path: Source, **options: Any) -> "pd.DataFrame":
    """Return one row per trace; options as for `load`, columns in `EPISODES`."""
    return load(path, **options).episodes


def events_df(path: Source, **options: Any) -> "pd.DataFrame":
    """Return one row per event; options as for `load`, columns in `EVENTS`."""
    return load(path, **options).events


def achievements_df(path: Source, **options: Any) -> "pd.DataFrame":
    """Return one row per trace and achievement; options as for `load`, columns in `ACHIEVEMENT_ROWS`."""
    return load(path, **options).achievements


def _check_choice(what: str, chosen: Sequence[str], seen: set[str]) -> None:
    if missing := [name for name in chosen if name not in seen]:
        known = ", ".join(sorted(seen)) or "none"
        raise SourceError(f"no trace has the {what} {missing[0]!r}; there are {known}")
