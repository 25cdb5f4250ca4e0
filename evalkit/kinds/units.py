"""Choose what to compare: by default models, else the values of any columns of runs, such as agents with models."""

from functools import partial
from typing import NamedTuple

import pandas as pd

from evalkit._notes import note
from evalkit._text import as_list, column_in_words, columns_in_words, did_you_mean
from evalkit.io.paths import SourceError
from evalkit.kinds.kind import Assembled, LogKind
from evalkit.kinds.runs import UNKNOWN
from evalkit.kinds.selection import changed, columns_of, named_by_id, with_logged

JOINT = " · "  # separator of the values in the name of a compared group


class _Names(NamedTuple):
    """The names of the compared groups."""

    of_run: pd.Series  # name of each run's group, by run_id
    runs: pd.DataFrame  # run_id, source, plan and agent (if the kind has them), model_name as logged, and name


def compare_units(assembled: Assembled, kind: LogKind, compare_by: str | list[str] = "") -> Assembled:
    """Compare runs by the values of columns: in all frames, `model_name` becomes these values, joined.

    By default, models are compared: with their agents if runs of one data set have several, and by folder if
    `name_by_source` notes it. A name leaves out missing values. If all values are missing, the name is ``unknown``, or
    for other columns for example ``no prompt``. If something other than the model is compared, runs get the columns
    ``logged_model`` and ``compared_by`` (the names of the columns, such as ``("agent", "model_name")``).

    Raises SourceError if runs do not have a column, or none of them has a value in it.
    """
    runs = assembled.frames[kind.runs]
    columns = columns_of(compare_by)
    by_folder: list[str] = []  # models
    for one in assembled.chosen.only("compared_by_folder").notes:
        by_folder = one.values["models"]
    if not columns:
        columns = ["model_name"] if _of_several_agents(runs).empty else ["agent", "model_name"]
        if by_folder:
            columns.append("source_name")
        if columns == ["model_name"]:
            return assembled
        if runs["model_name"].fillna(UNKNOWN).eq(UNKNOWN).all():
            columns.remove("model_name")
    if columns == ["model_name"]:
        several = _of_several_agents(runs, "model_name")["model_name"].dropna()
        if several.empty:
            return assembled
        return assembled._replace(chosen=assembled.chosen + note("agents_merged", models=sorted(several.unique())))
    texts = _texts(assembled, kind, columns)
    if by_folder:
        texts["source_name"] = texts["source_name"].where(runs["model_name"].isin(by_folder), None)
    names = _names(texts)
    known = [name for name in ("run_id", "source", "plan", "model_name", "agent") if name in runs]
    table = runs[known].assign(name=names)
    made = _Names(table.set_index("run_id")["name"], table)
    compared = changed(assembled, partial(_named, names=made))
    compared_by = pd.Series([tuple(columns)] * len(runs), runs.index, dtype="object")
    own = compared.frames[kind.runs].assign(logged_model=runs["model_name"], compared_by=compared_by)
    frames = {**compared.frames, kind.runs: own}
    return compared._replace(frames=frames, chosen=compared.chosen + note("compared_by", columns=columns))


def _of_several_agents(runs: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the runs in groups with several agents. The groups are by `columns` and type of task."""
    if "agent" not in runs:
        return runs.iloc[:0]
    keys = [*columns, "task_type"]
    n_agents = runs.reindex(columns=[*keys, "agent"]).groupby(keys, dropna=False)["agent"].transform("nunique")
    return runs[n_agents > 1]


def _texts(assembled: Assembled, kind: LogKind, columns: list[str]) -> pd.DataFrame:
    """Return columns of runs, or else of their logs, as text; None for missing values."""
    runs = assembled.frames[kind.runs]
    if not {"agent", "model_name"}.issuperset(columns):
        runs = with_logged(runs, assembled.chosen)
    texts = {}
    for name in columns:
        if name not in runs:
            hint = did_you_mean(name, runs, cutoff=0.4)
            raise SourceError(f"compare-by {name!r}: runs have no such column; {hint}")
        values = runs[name]
        if pd.api.types.is_numeric_dtype(values):  # a number means nothing without the name of its column
            named = f"{column_in_words(name)} {{:g}}"
            written = values.astype("Float64").map(named.format, na_action="ignore")
        elif pd.api.types.is_object_dtype(values):
            written = values.map(lambda items: ", ".join(map(str, as_list(items))) or None, na_action="ignore")
        else:
            written = values.astype("str").where(values.notna() & values.ne(""))
            is_value = pd.to_numeric(written, errors="coerce").notna() | written.str.lower().isin(["true", "false"])
            if name not in ("model_name", "agent") and is_value.eq(written.notna()).all():
                written = f"{column_in_words(name)} " + written
        if name == "model_name":
            written = written.mask(values.eq(UNKNOWN))
        if len(runs) and written.isna().all():
            raise SourceError(f"compare-by {name!r}: no run has a value in this column")
        texts[name] = written.astype("object").where(written.notna(), None)
    return pd.DataFrame(texts, runs.index)


def _names(texts: pd.DataFrame) -> pd.Series:
    """Join the texts of each run. Add the names of columns where different values would give the same name."""
    keys = texts.drop_duplicates()
    rows = [{name: text for name, text in row.items() if text is not None} for row in keys.to_dict("records")]
    unnamed = UNKNOWN if "model_name" in texts else f"no {columns_in_words(map(str, texts))}"
    names = pd.Series([JOINT.join(row.values()) or unnamed for row in rows], keys.index)
    with_columns = [JOINT.join(f"{name}={text}" for name, text in row.items()) or unnamed for row in rows]
    keys = keys.assign(_name=names.mask(names.duplicated(keep=False), pd.Series(with_columns, keys.index)))
    return texts.merge(keys, how="left", on=list(texts))["_name"].set_axis(texts.index).astype("str")


def _named(frame: pd.DataFrame, names: _Names) -> pd.DataFrame:
    """Replace the models in a frame with the names of groups: by run, by plan, or by file and model."""
    if "model_name" not in frame or "calls" in frame:  # in frames of calls, several models may take part in one run
        return frame
    if "planned" in frame:
        return _planned(frame, names.runs)
    if "run_id" in frame:
        return named_by_id(frame, names.of_run)
    found = pd.Series(None, frame.index, dtype="object")
    for keys in (["source", "model_name"], ["model_name", "agent"]):  # if these columns determine the name
        if set(keys) <= set(frame) and set(keys) <= set(names.runs):
            unique = names.runs.drop_duplicates([*keys, "name"]).drop_duplicates(keys, keep=False)
            name = frame[keys].merge(unique[[*keys, "name"]], how="left")["name"].set_axis(frame.index)
            found = found.fillna(name)
    return frame.assign(model_name=found.fillna(frame["model_name"]).astype(frame["model_name"].dtype))


def _planned(plans: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Divide the planned runs of a model equally among its groups; missing if the number is not divisible.

    This is valid because a job runs each of its agents on all of its tasks equally often.
    """
    parts = runs[["plan", "model_name", "name"]].dropna().drop_duplicates()
    parts["parts"] = parts.groupby(["plan", "model_name"])["name"].transform("size")
    rows = plans.merge(parts.rename(columns={"plan": "source"}), how="left", on=["source", "model_name"])
    rows["model_name"] = rows["name"].fillna(rows["model_name"]).astype(plans["model_name"].dtype)
    count = rows.pop("parts").fillna(1).astype("int64")
    for name in ("planned", "retried"):
        rows[name] = (rows[name] // count).mask(rows[name] % count != 0).astype(plans[name].dtype)
    return rows.drop(columns="name")
