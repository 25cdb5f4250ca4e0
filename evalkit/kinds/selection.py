"""Select runs by conditions on their columns, rename their models, and add the families of their tasks."""

import json
import operator
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, compress
from typing import Any, NamedTuple

import pandas as pd

from evalkit._notes import NO_NOTES, Notes, note
from evalkit._text import as_list, did_you_mean
from evalkit.io.paths import INSIDE, SourceError, absolute
from evalkit.io.sources import expand, without_projects
from evalkit.io.text import short_paths
from evalkit.kinds.ids import find_runs
from evalkit.kinds.kind import Assembled, LogKind
from evalkit.kinds.runs import UNKNOWN, is_excluded
from evalkit.stats.cells import check_families

STATED = "stated"  # model_source of a name that the user gave
Renames = Mapping[str, str] | Sequence[str]
_CONDITION = re.compile(r"\s*([^\s=!<>](?:[^=!<>]*[^\s=!<>])?)\s*(>=|<=|!=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "!=": operator.ne, ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_RUN_IDS = ("log_id", "run_id", "id")
_ID = re.compile(r"(?i:(?:^|[\W_])(?:uu|u|g)?id)$|[a-z]I[dD]$")  # the end of a column's name
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def renames_of(rename: Renames, model: str = "") -> dict[str, str]:
    """Map old names to new names, from a mapping or texts ``OLD=NEW``. `model` is the new name of ``unknown``."""
    pairs = rename.items() if isinstance(rename, Mapping) else [text.partition("=")[::2] for text in as_list(rename)]
    for old, new in pairs:
        if not (old and new):
            raise SourceError(f"rename {f'{old}={new}'!r}: write OLD=NEW, the model's name and the one to read it as")
    return {**({UNKNOWN: model} if model else {}), **dict(pairs)}


def rename_models(assembled: Assembled, renames: Mapping[str, str]) -> Assembled:
    """Rename the models in all frames, including frames that are built later.

    Warn about an old name that no run has. It is no error, because an experiment may still add runs with that name.
    """
    names = next(iter(assembled.frames.values()))["model_name"].fillna(UNKNOWN)
    old = sorted(set(names))
    for name in renames.keys() - {UNKNOWN, *old}:
        hint = did_you_mean(name, old)
        warnings.warn(f"--rename {name}={renames[name]}: no run of model {name!r}; {hint}", stacklevel=3)
    return changed(assembled, partial(_renamed, renames=renames))


def columns_of(compare_by: str | list[str]) -> list[str]:
    """List the columns that the option ``compare_by`` names."""
    names = ",".join(as_list(compare_by)).split(",")
    return [name.strip() for name in names if name.strip()]


def name_by_source(
    assembled: Assembled,
    kind: LogKind,
    sources: Sequence[str],
    renames: Mapping[str, str],
    compare_by: str | list[str] = "",
    paths: Sequence[str] = (),
) -> Assembled:
    """Name models after their folder if each folder has runs of one model, and `renames` names none of these models.

    Otherwise, note the models to compare by folder: those that ran the same task in several folders. Other runs count
    together, as do runs of files that name models. With `compare_by`, all runs count together, unless it separates
    sources by their column ``source_name``, which runs get if sources share models. The folders of one glob are
    compared only if each has runs of one model, on the same tasks. The files of one glob, such as tables, are compared
    like folders if they have several runs and name no model. `paths` are the folders and files of the sources, if they
    were just listed.
    """
    runs = assembled.frames[kind.runs]
    paths = paths or _paths_of(sources)
    if len(paths) < 2 or runs.empty:  # as for most loads
        return assembled
    names = _names_of_paths(paths)
    if len(names) < 2:
        return assembled
    logs = runs["source"].map(absolute)
    source_of = {log: _name_of_source(log, names) for log in set(logs)}
    runs = runs.assign(source_name=logs.map(source_of))
    logged = runs["model_name"].fillna(UNKNOWN)
    model = logged.replace(renames)
    unit = model
    if "agent" in runs:
        unit = model.str.cat(runs["agent"].astype("str"), sep=" by ", na_rep="")
    shared = set(model[runs.groupby(unit)["source_name"].transform("nunique") > 1])
    if not shared or "" in source_of.values():
        return assembled
    is_file = logs.isin(names)
    are_alone = model.equals(logged) and model.groupby(runs["source_name"]).nunique().max() == 1
    counts = ~is_excluded(runs, kind) & model.isin(shared)
    if shared != {UNKNOWN}:
        counts &= ~is_file & (model != UNKNOWN)
    n_folders = runs[counts].groupby([unit, kind.rates.task_of(runs)])["source_name"].transform("nunique")
    if len(sources) < 2:
        are_files_of_runs = is_file.all() and runs.groupby("source").size().max() < 2  # such as repetitions of a task
        if not (are_alone and n_folders.max() > 1) or are_files_of_runs:  # such as all experiments of several models
            return assembled
    assembled = assembled._replace(frames={**assembled.frames, kind.runs: runs})
    if are_alone and not compare_by and (shared == {UNKNOWN} or not is_file.any()):
        of_ids = dict(zip(runs["source"], runs["source_name"], strict=True))
        of_ids |= dict(zip(runs["run_id"], runs["source_name"], strict=True))
        chosen = when_named(assembled.chosen, agents="its folder or file")
        chosen += note("named_by_folder", models=sorted(set(model) - {UNKNOWN}))
        return changed(assembled, partial(named_by_id, names=of_ids))._replace(chosen=chosen)
    compared = set[str]()
    if not compare_by:
        compared = set(model[counts][n_folders > 1]) - {UNKNOWN}
    merged = shared - compared
    chosen = assembled.chosen
    if compared:
        chosen += note("compared_by_folder", models=sorted(compared))
    if merged and not {"source", "source_name"} & set(columns_of(compare_by)):
        chosen += note("sources_merged", models=sorted(merged))
    return assembled._replace(chosen=chosen)


def when_named(chosen: Notes, **by: str) -> Notes:
    """Drop the note that no column names the models, which now have names; keep a note if a column may name them."""
    for doubt in chosen.only("no_model").notes:
        if doubt.values["likely"]:
            chosen += Notes((doubt._replace(code="one_model_given", values={**doubt.values, **by}),))
    return chosen.without("no_model")


def _paths_of(sources: Sequence[str]) -> list[str]:
    """Return the folders and files of sources that a dataset was collected from."""
    paths: list[str] = []
    for source in sources:
        try:
            paths += expand(source)[1]
        except SourceError:  # the folder is gone
            paths.append(source)
    return paths


def _names_of_paths(paths: Sequence[str]) -> dict[str, str]:
    """Map the path of each folder or file to its shortest distinct name; a folder precedes its contents."""
    names = {}
    for path, name in sorted(short_paths(absolute(path).rstrip("/") for path in paths).items()):
        inside = without_projects(f"{name}/").replace(INSIDE, "/").strip("/")
        names[path] = inside.replace("/", " · ")  # in the name of a model, the text before a / is a provider
    return names


def _name_of_source(log: str, names: Mapping[str, str]) -> str:
    """Return the name of the outermost source that contains a log; "" if there is none."""
    for path, name in names.items():
        if f"{log}/".startswith(f"{path}/"):
            return name
    return ""


def named_by_id(frame: pd.DataFrame, names: Mapping[str, str] | pd.Series) -> pd.DataFrame:
    """Set the model names of a frame by run_id, or by source if it has no run_id."""
    if "model_name" not in frame:
        return frame
    key = "run_id" if "run_id" in frame else "source"
    changed = {"model_name": frame[key].map(names).astype(frame["model_name"].dtype)}
    if "copied_model" in frame:
        copied = frame["copy_of"].map(names).fillna(frame["copied_model"])
        changed["copied_model"] = copied.astype(frame["copied_model"].dtype)
    return frame.assign(**changed)


def _renamed(frame: pd.DataFrame, renames: Mapping[str, str]) -> pd.DataFrame:
    if "model_name" not in frame:
        return frame
    old = frame["model_name"].fillna(UNKNOWN)
    changed = {"model_name": old.replace(renames).astype(frame["model_name"].dtype)}
    if "copied_model" in frame:
        changed["copied_model"] = frame["copied_model"].replace(renames)
    if "model_source" in frame:
        changed["model_source"] = frame["model_source"].mask(old.eq(UNKNOWN) & old.isin(renames), STATED)
    return frame.assign(**changed)


def select_runs(assembled: Assembled, kind: LogKind, where: str | Sequence[str] = (), cluster: str = "") -> Assembled:
    """Keep the runs that meet all conditions, and their rows in all other frames.

    `cluster` is the column of the logs (such as a table), or else of the runs, with the family of each task, for tasks
    that are variants of a few. It becomes the column ``cluster``, on which all intervals and comparisons are clustered.
    Conditions refer to columns of `with_logged`. Warn about a condition with ``!=`` that excludes no run. Raises
    SourceError if no run meets all conditions, or if a task belongs to two families.
    """
    runs = assembled.frames[kind.runs]
    if cluster:
        logged = logged_columns(runs, assembled.chosen)
        if cluster not in logged and cluster not in runs:
            names = [*runs, *logged]
            raise SourceError(
                f"cluster {cluster!r}: runs have no such column; {did_you_mean(cluster, names, cutoff=0.4)}"
            )
        values = logged[cluster] if cluster in logged else runs[cluster]
        runs = runs.assign(cluster=values.astype("str").where(values.notna()))
        try:
            check_families(kind.rates.task_of(runs), runs["cluster"])
        except ValueError as error:
            raise SourceError(f"cluster {cluster!r}: {error}") from None
    columns = with_logged(runs, assembled.chosen)
    met_of = {text: meets(columns, text) for text in as_list(where)}
    met = pd.Series(True, runs.index)
    for of_condition in met_of.values():
        met &= of_condition
    if len(runs) and not met.any():
        unmet = next((text for text, of_condition in met_of.items() if not of_condition.any()), "")
        why = _values_of(columns, unmet) if unmet else "some runs meet each of these conditions, but none meets all"
        raise SourceError(f"no run where {' and '.join(met_of)}; {why}")
    for text, of_condition in met_of.items():
        _, sign, value = _CONDITION.fullmatch(text).groups()  # type: ignore[union-attr]
        if sign == "!=" and value and of_condition.all():
            warnings.warn(f"--where {text} excludes no run; {_values_of(columns, text)}", stacklevel=3)
    attributes = dict(assembled.attributes)
    for name, value in attributes.items():
        if isinstance(value, list) and len(value) == len(runs):  # an item for each run
            attributes[name] = list(compress(value, met))
    return changed(assembled, partial(_of_runs, runs=runs[met], where=where))._replace(attributes=attributes)


def _values_of(columns: pd.DataFrame, condition: str) -> str:
    column = _CONDITION.fullmatch(condition)[1]  # type: ignore[index]
    values = sorted(columns[column].dropna().astype("str").unique())
    return f"of {column} {did_you_mean('', values) if values else 'there is no value in any run'}"


def logged_columns(runs: pd.DataFrame, chosen: Notes = NO_NOTES) -> pd.DataFrame:
    """Return the logs' columns under their names, as text; those read into runs (`chosen`) have the runs' values."""
    texts = runs["extra"] if "extra" in runs else pd.Series(None, runs.index, dtype="object")
    read = [json.loads(text) if isinstance(text, str) else {} for text in texts]
    table = pd.DataFrame([one if isinstance(one, dict) else {} for one in read], runs.index, dtype="object")
    table = table.astype("str").where(table.notna() & ~table.isin([""]))
    for one in chosen.only("columns").notes:
        for role, name in one.values["meaning"].items():
            if role in runs:
                table[name] = runs[role]
    return table


class _Fit(NamedTuple):
    """A column that may contain the given ids, with a run for each value."""

    n_ids: int  # number of ids that are values of the column
    level: int  # 2 for an id of runs, 1 for another id, 0 for other columns
    name: str
    run_of: dict[str, str]


def run_ids_of(given: Sequence[pd.Series], runs: pd.DataFrame, chosen: Notes = NO_NOTES) -> list[pd.Series]:
    """Return the run_id that each id refers to, for each series of ids; missing if there is none.

    An id may be a run_id from before the logs were moved. All other ids are values of one column of the runs or of the
    table that they were read from: the column, with a different value in each row, that contains most of these ids.
    Of several such columns, the one whose name is that of an id counts. Raises SourceError if this leaves several
    columns that refer to different runs.
    """
    found = [find_runs(ids, runs["run_id"]) for ids in given]
    others = pd.concat([ids[own.isna()] for ids, own in zip(given, found, strict=True)]).drop_duplicates()
    texts = runs.select_dtypes(["object", "str"]).drop(columns=["part", "extra"], errors="ignore")  # not in the logs
    fits = []
    for name, values in chain(texts.items(), logged_columns(runs, chosen).items()):
        cells = values.astype("str").str.strip()
        if values.isna().any() or cells.eq("").any() or not cells.is_unique:
            continue
        run_of = dict(zip(cells, runs["run_id"], strict=True))
        n_ids = int(others.isin(run_of).sum())
        level = 2 if name in _RUN_IDS else int(_ID.search(str(name)) is not None)
        if n_ids and (level or 2 * n_ids >= len(others)):  # a few ids may be values of any column by chance
            fits.append(_Fit(n_ids, level, str(name), run_of))
    if not fits:
        return found
    best = max(fits, key=lambda fit: (fit.n_ids, fit.level))
    for fit in fits:
        is_equal = (fit.n_ids, fit.level) == (best.n_ids, best.level)
        if is_equal and not others.map(fit.run_of).equals(others.map(best.run_of)):
            raise SourceError(f"columns {best.name} and {fit.name} contain the ids, for different runs: use run_id")
    return [own.fillna(ids.map(best.run_of)) for ids, own in zip(given, found, strict=True)]


def with_logged(runs: pd.DataFrame, chosen: Notes = NO_NOTES) -> pd.DataFrame:
    """Add the columns of logs to runs. They replace columns without values, or read from a column of another name."""
    logged = logged_columns(runs, chosen)
    meanings = [one.values["meaning"] for one in chosen.only("columns").notes]
    elsewhere = {role for meaning in meanings for role, name in meaning.items() if role != name}
    own = [name for name in logged if name not in runs or name in elsewhere or runs[name].isna().all()]
    return runs.drop(columns=own, errors="ignore").join(logged[own])


def _of_runs(frame: pd.DataFrame, runs: pd.DataFrame, where: str | Sequence[str]) -> pd.DataFrame:
    """Select the rows of some runs by run_id, or else by file and thread. Add the column cluster if the runs have it.

    Plans also contain trials that were not run, and a published figure describes many runs. For these frames, select
    the rows that meet the conditions directly, and leave out rows without a value for a condition.
    """
    if "planned" in frame or "metric" in frame:
        columns = [_CONDITION.fullmatch(text)[1] for text in as_list(where)]  # type: ignore[index]
        if not set(columns) <= {"model_name", "agent", "task_type", "task_id"}.intersection(frame):
            return frame.iloc[:0]
        is_known = (frame[columns].fillna("") != "").all(axis=1)
        return frame[meets(frame, where) & is_known]
    keys = ["run_id"] if "run_id" in frame else [key for key in ("source", "thread") if key in frame and key in runs]
    added = [*keys, "cluster"] if "cluster" in runs else keys
    return frame.merge(runs[added].drop_duplicates(keys), on=keys) if keys else frame


def changed(assembled: Assembled, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Assembled:
    """Apply a function to all frames, including frames that are built later."""
    frames = {name: change(frame) for name, frame in assembled.frames.items()}
    lazy = {name: partial(_make, make, change) for name, make in assembled.lazy.items()}
    return assembled._replace(frames=frames, lazy=lazy)


def _make(make: Callable[[], pd.DataFrame], change: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    return change(make())


def meets(runs: pd.DataFrame, where: str | Sequence[str]) -> pd.Series:
    """Return which runs meet all conditions of the form ``COLUMN=VALUE``, or with ``!=``, ``>=``, ``<=``, ``<``, ``>``.

    If VALUE is empty, ``=`` selects missing values. In a column of lists, ``=`` is true if any item is equal. A missing
    value meets only ``!=``. The id of a run may also be the id in its log. Raises SourceError if a text is not a
    condition, a column does not exist, or the column can't be compared with the value.
    """
    met = pd.Series(True, runs.index)
    for text in as_list(where):
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise SourceError(f"where {text!r}: write COLUMN=VALUE, or another of {', '.join(_COMPARED)}")
        column, sign, value = match.groups()
        if column not in runs:
            hint = did_you_mean(column, runs, cutoff=0.4)
            raise SourceError(f"where {text!r}: runs have no column {column!r}; {hint}")
        values, wanted = runs[column], value
        if column == "run_id" and "log_id" in runs:
            values = values.mask(runs["log_id"].eq(value), value)
        if not value:
            met &= values.isna() if sign == "=" else values.notna()
            continue
        try:
            if pd.api.types.is_bool_dtype(values):
                values, wanted = values.astype("boolean"), _TRUTH[value.lower()]
            elif pd.api.types.is_numeric_dtype(values):
                wanted = float(value)
            elif pd.api.types.is_datetime64_any_dtype(values):
                wanted = pd.to_datetime(value, utc=True)
            elif sign not in ("=", "!="):
                values, wanted = pd.to_numeric(values), float(value)
            elif pd.api.types.is_object_dtype(values):
                values = pd.Series([value if value in map(str, items) else "" for items in values], values.index)
        except (KeyError, ValueError):
            raise SourceError(
                f"where {text!r}: {column} can't be compared this way: it contains {values.dtype}"
            ) from None
        found = _COMPARED[sign](values, wanted).astype("boolean")
        met &= found.mask(values.isna(), sign == "!=").fillna(sign == "!=").astype(bool)
    return met
