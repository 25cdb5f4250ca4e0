"""Read tables with one row per run: map the usual names of columns to columns of runs, and convert the cells."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from evalkit._notes import Notes, note
from evalkit._text import listed
from evalkit.io.paths import SourceError
from evalkit.io.text import cut_end
from evalkit.io.write import from_spreadsheet

OWN_TASK = "file_and_row"  # task column for rows that do not name a task: each row is a separate task


class Role(NamedTuple):
    """A column of runs that tables may contain."""

    names: Sequence[tuple[str, ...]]  # usual headers; earlier tuples take precedence, names in a tuple rank equally
    dtype: Literal["str", "float", "int?", "bool?", "time"] = "str"
    is_optional: bool = False  # comparisons do not need it, so it stays unassigned if several columns match


COLUMN_NAMES = {  # by column of runs
    "task_id": Role(
        [
            ("task_id", "task", "task_name", "instance_id", "question_id", "problem_id", "sample_id", "test_id"),
            ("id", "question", "instance", "problem", "doc_id"),
            ("test_case", "test_case_id", "scenario", "scenario_id", "example_id", "item_id"),
            (OWN_TASK,),
        ]
    ),
    "model_name": Role([("model", "model_name", "model_id", "llm"), ("agent", "agent_name", "system")]),
    "agent": Role([("agent", "agent_name", "scaffold", "system"), ("harness",)]),
    "score": Role([("score", "reward", "accuracy", "acc", "grade", "points", "value", "exact_match")], "float"),
    "score_key": Role([("metric", "metric_name", "score_name", "score_key"), ("scorer", "measure")]),
    "is_successful": Role(
        [
            ("success", "is_successful", "correct", "is_correct", "passed", "resolved", "solved", "pass"),
            ("is_resolved", "is_success", "result", "outcome", "verdict"),
        ],
        "bool?",
    ),
    "repetition": Role([("repetition", "trial", "epoch", "attempt", "repeat"), ("run", "run_number")], "int?"),
    "seed": Role([("checkpoint",), ("seed",), ("session",)]),
    "dataset": Role([("dataset", "benchmark", "suite")]),
    "status": Role([("status", "exit_reason", "termination_reason", "exit_status")]),
    "started": Role(
        [("started", "started_at", "start_time", "timestamp", "created_at", "date")], "time", is_optional=True
    ),
    "duration": Role(
        [("duration", "duration_s", "seconds", "time_s", "total_time", "latency", "time", "elapsed")],
        "float",
        is_optional=True,
    ),
    "turns": Role([("turns", "n_turns", "steps", "n_steps", "num_steps")], "int?", is_optional=True),
    "tokens_in": Role(
        [("tokens_in", "input_tokens", "prompt_tokens", "n_input_tokens", "total_input_tokens")],
        "int?",
        is_optional=True,
    ),
    "tokens_out": Role(
        [("tokens_out", "output_tokens", "completion_tokens", "n_output_tokens", "total_output_tokens")],
        "int?",
        is_optional=True,
    ),
    "temperature": Role([("temperature",)], "float"),
    "cost": Role([("cost", "cost_usd", "total_cost", "price", "usd")], "float", is_optional=True),
    "retries": Role([("retries", "n_retries", "num_retries", "retry_count")], "int?", is_optional=True),
    "error": Role([("error", "exception"), ("error_type", "exception_type"), ("error_message",)], is_optional=True),
    "target": Role(
        [("target",), ("expected",), ("expected_answer",), ("reference",), ("ground_truth",), ("gold",)],
        is_optional=True,
    ),
}
# The column for each role in tables that evalkit exported (`evalkit.kinds.runs.exported`). There is none for the agent,
# because the model's name includes the agent where agents are compared
_EXPORTED = {role: role for role in (*COLUMN_NAMES, "run_flags", "counts_as")}
_EXPORTED |= {"task_id": "task", "seed": "checkpoint", "limits": "condition", "dataset": "task_type", "agent": ""}
_EXPORTED["task_version"] = "task_condition"
_ROLE_OF_NAME = {name: role for role, column in COLUMN_NAMES.items() for name in column.names[0]}
_YES = ("true", "yes", "✓", "✅", "pass", "passed", "correct", "right", "resolved", "solved", "success")
_NO = ("false", "no", "✗", "❌", "fail", "failed", "incorrect", "wrong", "unresolved", "unsolved", "failure")
WORDS = {"yes": 1.0, "no": 0.0, "missing": None}  # what words in cells mean, as in ``--column yes=accepted,merged``
_TRUTH = dict.fromkeys(_YES, 1.0) | dict.fromkeys(_NO, 0.0)
_LIMITED = "time|steps?|turns?|iterations?|tokens?|context|messages?|cost|budget"
# words for a limit that ended a run, which the agent caused; a rate limit is the provider's
_LIMIT = re.compile(
    rf"(agent )?timed? ?out|out of ({_LIMITED})|max(imum)? ({_LIMITED})( reached| exceeded)?"
    rf"|limits? ?(reached|exceeded)|({_LIMITED})( length| window)?( limit)?( reached| exceeded)|({_LIMITED}) limit"
)
_WORD = r"[^\W\d_]{2}"  # in a cell: it is neither a number nor a letter
_ALL_WORDS = [_TRUTH | {yes: 1.0, no: 0.0} for yes, no in ("tf", "yn", "pf")]  # for whole columns: F may be a grade
_MISSING = ("", "na", "n/a", "#n/a", "nan", "none", "null", "nat", "-", "–", "?")  # for numbers and times
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])", re.ASCII)
_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII)  # `float` also reads 1_0
_MINUTES = re.compile(r"\d+:\d+(\.\d+)?", re.ASCII)  # minutes and seconds
_EPOCH = re.compile(r"(\d{10}|\d{13}|\d{16}|\d{19})(\.\d+)?", re.ASCII)  # time since 1970
_EPOCH_UNITS: dict[int, Literal["s", "ms", "us", "ns"]] = {10: "s", 13: "ms", 16: "us", 19: "ns"}  # number of digits
_DAY_OR_MONTH = re.compile(r"\s*(\d{1,2})([/.])(\d{1,2})\2(\d{4})\b", re.ASCII)
_MEANINGS = "state what words mean: --column yes=WORD,WORD --column no=WORD --column missing=WORD"
MOST_AMOUNTS = 0.2  # maximum share of numbers above 1 in a column of outcomes; with more, the column is rejected
MOST_NAMES = 50  # maximum number of different values in a column that may name models
_LONGEST_NAME = 200  # maximum number of characters of a field's name if its nested fields may be columns
_LIKE_MODEL = re.compile(r"model|llm|agent|system|provider|engine|foundation|backbone", re.IGNORECASE)
_MODEL_NUMBER = re.compile(rf"({_LIKE_MODEL.pattern})s?(\W|_)*(id|no|number)?$", re.IGNORECASE)
_NO_SCORE = re.compile(r"(?i)(\b|_)(id|idx|index|row|no|num|number|version|seed|n|count|line|date|time)(\b|_)")


def is_table_of_runs(columns: Sequence[str], *also: str, rows: Iterable[Mapping[str, Any]] = ()) -> bool:
    """Return whether a table has a task column, a score or outcome column, the roles `also`, and at least 3 columns.

    A status column counts as an outcome column if all its values in `rows` are words for outcomes.
    """
    found = roles_of(columns)
    statuses = _called(columns, COLUMN_NAMES["status"].names[0])
    if any(_are_outcomes(row.get(name, "") for row in rows) for name in statuses):
        found.add("is_successful")
    return found >= {"task_id", *also} and bool(found & {"score", "is_successful"}) and len(columns) > 2


def roles_of(columns: Sequence[str]) -> set[str]:
    """Return the columns of runs that the columns of a table match by name."""
    return {role for role, column in COLUMN_NAMES.items() if any(_called(columns, names) for names in column.names)}


def meanings(table: pd.DataFrame, given: Mapping[str, str]) -> dict[str, str]:
    """Map columns of runs to the columns of a table: as `given`, and the others by their names.

    Without scores, a status column with words for success and for failure, and no others, becomes is_successful.
    If several columns match a role that comparisons do not need, it stays unassigned. Raises SourceError if several
    match another role, a given name does not exist, or the table has no tasks, or neither scores nor outcomes.
    """
    columns = list(map(str, table))
    there = ", ".join(columns)
    given = {_ROLE_OF_NAME.get(role, role): name for role, name in given.items()}
    for role, name in given.items():
        if role not in COLUMN_NAMES:
            raise SourceError(f"{role!r} is not a column of runs; there are {', '.join(COLUMN_NAMES)}")
        if name not in columns:
            raise SourceError(f"no column {name!r}; there are {there}")
    found = dict(given)
    usual = COLUMN_NAMES
    if "counts_as" in columns:
        usual = {}
        found = {role: name for role, name in _EXPORTED.items() if name in columns} | given
    for role, column in usual.items():
        for level in column.names:
            names = [name for name in _called(columns, level) if name not in found.values()]
            if role in found or not names:
                continue
            if len(names) > 1 and column.is_optional:
                break
            if len({name.rpartition(".")[0] or name for name in names}) > 1:  # not model.name and model.id
                both = f"columns {' and '.join(names)} could both be the {role}"
                raise SourceError(f"{both}; choose one: --column {role}={shlex.quote(names[0])}")
            found[role] = names[0]
    outcomes = {"score", "is_successful"}
    needed = {"task_id": {"task_id"}, "is_successful": outcomes, "score": outcomes, "model_name": {"model_name"}}
    for role, any_of in needed.items():  # the last part of a name, as in config.task_id
        names = [name for name in columns if _called([re.split("[./]", name)[-1]], COLUMN_NAMES[role].names[0])]
        if len(names) != 1 or names[0] in found.values() or role in found or "counts_as" in columns:
            continue
        if not found.keys() & any_of or _are_values(table[names[0]], role):
            found[role] = names[0]
    finished = ""  # about a status column that is no outcome
    if not found.keys() & outcomes and "status" in found and _are_outcomes(table[found["status"]]):
        name = found["status"]
        if truths_or_numbers(table[name]).nunique() > 1:
            found["is_successful"] = name
        else:
            option = f"--column success={shlex.quote(name)}"
            finished = f"; {name} has one outcome, perhaps because runs finished ({option} uses it)"
    missing = [role for role in needed if role != "is_successful" and not found.keys() & needed[role]]
    if missing and missing != ["model_name"]:
        first, *more = missing
        also = "".join(f"; nor for the {role}: --column {role}=NAME" for role in more)
        choose = f"choose one: --column {first}=NAME{also}{finished}"
        if more and "score" in missing and _has_column_per_model(table):
            choose += "; a table with a column for each model or task needs one row per run (see pandas' `melt`)"
        raise SourceError(f"no column for the {first}; there are {there}; {choose}")
    return found


def _called(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    return [column for column in columns if _normalised(column) in names]


@lru_cache(maxsize=1_000)  # each name is looked up for each role
def _normalised(column: str) -> str:
    """Return a header in the form of the names in `COLUMN_NAMES`: lower case, with underscores between words."""
    return re.sub(r"\W+", "_", column.strip().lower()).strip("_")


def _are_outcomes(values: Iterable[Any]) -> bool:
    """Return whether all known values are words for outcomes. Numbers do not count, since 0 may mean success."""
    words = {str(value).strip().lower() for value in values} - {"", "none", "nan"}
    return bool(words) and any(words <= known.keys() for known in _ALL_WORDS)


def _are_values(cells: pd.Series, role: str = "score") -> bool:
    """Return whether all known cells are numbers or truth values; for outcomes, 0, 1 or truth values."""
    values = truths_or_numbers(pd.Series(list(_known(cells)), dtype="object"))
    return bool((values.isin([0, 1]) if role == "is_successful" else values.notna()).all())


def _has_column_per_model(table: pd.DataFrame) -> bool:
    """Return whether nearly all columns without a known name contain values, judged by the first 1,000 rows."""
    unknown = [name for name in map(str, table) if not roles_of([name])]
    first = table.head(1_000)
    values = [name for name in unknown if first[name].notna().any() and _are_values(first[name])]
    return len(values) > 1 and len(unknown) - len(values) <= 1


def _known(cells: pd.Series) -> Iterator[Any]:
    """Yield the cells that are not missing."""
    return (cell for cell in cells.dropna() if str(cell).strip().lower() not in _MISSING)


def columns_of_runs(
    table: pd.DataFrame, meaning: Mapping[str, str], files: Sequence[str] = ()
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Convert the cells of one or more tables with the same columns to columns of runs.

    `meaning` maps columns of runs to columns of the table (`meanings`). `files` gives the file of each row; by default
    all rows are from one file. The unit of scores, the meaning of letters and the order of day and month are decided
    for each file separately. Returns the columns of runs, in which unreadable cells are missing, and a frame of the
    unreadable cells as they are in the table.
    """
    if "counts_as" in meaning:  # evalkit wrote this table, perhaps with text escaped for spreadsheets
        table = table.map(from_spreadsheet)
    file = pd.Series(list(files) or "", table.index)
    columns, unread = {}, {}
    for role, name in meaning.items():
        cells = table[name].tolist()
        texts = [str(cell).strip().lower() for cell in cells]
        dtype = COLUMN_NAMES[role].dtype if role in COLUMN_NAMES else "str"
        missing = ("",) if dtype == "str" and role != "model_name" else _MISSING
        is_missing = [is_na or text in missing for text, is_na in zip(texts, table[name].isna(), strict=True)]
        known = [None if none else cell for cell, none in zip(cells, is_missing, strict=True)]
        values = pd.Series(known, table.index, dtype="object")
        if role in ("score", "is_successful"):
            truths = _by_file(truths_or_numbers, values, file)
            if truths.dropna().isin([0, 1]).all():
                is_limit = [bool(_LIMIT.fullmatch(re.sub(r"[\W_]+", " ", text).strip())) for text in texts]
                truths = truths.mask(np.array(is_limit, dtype="bool"), 0.0)
        if dtype == "time":
            column = _by_file(_times, values, file)
        elif role == "is_successful":
            column = truths.round().where((truths - truths.round()).abs().le(1e-6) & truths.between(-0.5, 1.5))
        elif role == "score":
            is_percent = pd.Series([text.endswith("%") for text in texts], table.index, dtype="bool")
            in_percent = is_percent.groupby(file).transform("any")
            has_unit = [text in _TRUTH or "%" in text or "/" in text for text in texts]
            is_clear = truths.eq(0) | np.array(has_unit, dtype="bool")  # 90 next to 80% is ambiguous
            column = truths.where(~in_percent | is_clear)
            if "%" in name and column.max() > 1:  # the header contains the unit, such as ``score (%)``
                column = column.where(in_percent, column / 100)
        elif role == "duration":
            seconds = values.map(_seconds).astype("float64")
            column = seconds.where(seconds >= 0)
        elif dtype != "str":
            numbers = values.map(_number).astype("float64")
            column = numbers.where((numbers % 1 == 0) & (numbers >= 0)) if dtype == "int?" else numbers
        else:
            column = values.map(lambda value: str(value).strip(), na_action="ignore")
            if role in ("task_id", "seed") and all(re.fullmatch(r"\d+(\.0)?", text) for text in column.dropna()):
                column = column.str.removesuffix(".0")  # a float column writes 3 as 3.0
        columns[role] = column
        is_unread = values.notna() & column.isna()
        if is_unread.any():
            unread[name] = values.where(is_unread, None)
    runs = pd.DataFrame(columns, table.index)
    name = meaning.get("score", "score")
    if "score_key" not in meaning and not _called([name], ("score",)):
        runs["score_key"] = name  # such as wer: the name tells what the score is
    return runs, pd.DataFrame(unread, table.index)


def _by_file(read: Callable[[pd.Series], pd.Series], values: pd.Series, file: pd.Series) -> pd.Series:
    parts = [read(own) for _, own in values.groupby(file)]
    return pd.concat(parts).loc[values.index] if parts else read(values)


def other_scores(runs: pd.DataFrame, key: str) -> pd.Index:
    """Return the rows with other scores than `key`, if the table has one row per score of a run; else no rows.

    Raises SourceError if such a table has no score named `key`.
    """
    if "score_key" not in runs or "counts_as" in runs:
        return runs.index[:0]
    of_run = [name for name in ("model_name", "agent", "dataset", "task_id") if name in runs]
    if runs.groupby(of_run, dropna=False)["score_key"].nunique().max() < 2:
        return runs.index[:0]
    is_other = runs["score_key"] != key
    if is_other.all():
        there = listed(map(str, runs["score_key"].dropna().unique()), MOST_NAMES)
        raise SourceError(f"a run has a row for each score; --score NAME (parameter score) selects one of {there}")
    return runs.index[is_other]


def add_outcomes(tables: Sequence[pd.DataFrame], *, are_alone: bool = True) -> None:
    """Add is_successful to runs that were loaded together, and scores where only is_successful is known.

    If all scores of a dataset are 0 or 1, they also are its outcomes. A score between 0 and 1 measures how much a run
    achieved, not whether it succeeded. Scores stay missing if other tables have scores, or the tables are not alone.
    """
    has_scores = not are_alone or any("score" in runs for runs in tables)
    scored = [runs[["score"]].assign(dataset=runs.get("dataset")) for runs in tables if "is_successful" not in runs]
    if scored:
        together = pd.concat(scored)
        success = together["score"].where(_is_binary(together["score"], together["dataset"].fillna("")))
    for runs in tables:
        if "is_successful" not in runs:
            runs["is_successful"] = success[runs.index]
        elif not has_scores:
            runs["score"] = runs["is_successful"]
        if "counts_as" in runs:  # it takes precedence, since a run that was not measured may count as a failure
            counted = runs["counts_as"].map({"success": 1.0, "failure": 0.0})
            runs["is_successful"] = counted.where(counted.notna(), runs["is_successful"])
        runs["is_successful"] = runs["is_successful"].gt(0.5).where(runs["is_successful"].notna(), None)


def unread_cells(runs: pd.DataFrame, unread: pd.DataFrame, meaning: Mapping[str, str]) -> Notes:
    """Note unreadable cells of a file. Raise SourceError for mostly unreadable scores, or for outcomes with amounts."""
    notes = Notes()
    for role, name in meaning.items():
        if name not in unread or unread[name].isna().all():
            continue
        cells = unread[name].dropna()
        example = cut_end(str(cells.iloc[0]), 40)
        if role in ("score", "is_successful"):
            filled = len(cells) + runs[role].count()
            amounts = [cell for cell in cells if (_number(cell) or 0) > 1]
            if role == "is_successful" and len(amounts) > MOST_AMOUNTS * filled:
                option = f"--column score={shlex.quote(name)}"
                raise SourceError(f"column {name}: {amounts[0]} is no outcome; {option} makes it a score")
            if role == "score" and (numbers := [cell for cell in cells if _number(cell) is not None]):
                raise SourceError(f"column {name}: write % in all cells or none; {numbers[0]!r} has none")
            if len(cells) > filled / 2:
                wanted = "0, 1 or truth value" if role == "is_successful" else "number or truth value"
                raise SourceError(f"column {name}: no {wanted} in most of its cells, such as {example!r}; {_MEANINGS}")
            words = cells.astype("str")[lambda texts: texts.str.contains(_WORD)]
            if len(words) > 1 and (role == "is_successful" or runs[role].dropna().isin([0, 1]).all()):
                shown = listed((repr(cut_end(word, 40)) for word in words.unique()), 5)
                instead = f"write success, failure or nothing (not measured), or {_MEANINGS}; or --column {role}=NAME"
                raise SourceError(f"column {name}: in {len(words):,} cells, no outcome: {shown}; {instead}")
        notes += note("unread", column=name, count=len(cells), example=example)
    return notes


def choices_of(
    table: pd.DataFrame, meaning: Mapping[str, str], file: str, given: Iterable[str] = (), *, n_files: int = 1
) -> Notes:
    """Note the meanings of columns, and unused numbers; if no column is the model, `given` or not, all unused ones."""
    used = {role: name for role, name in meaning.items() if next(_known(table[name]), None) is not None}
    unused = [name for name in map(str, table) if name not in meaning.values()]
    doubtful = {}
    for role in sorted(role for role, column in COLUMN_NAMES.items() if column.is_optional and role not in meaning):
        several = [names for level in COLUMN_NAMES[role].names if len(names := _called(unused, level)) > 1]
        if several:
            doubtful[role] = several[0]
    left = {name: table[name].astype("str").nunique() for name in unused}
    numbers = [name for name in unused if left[name] > 1 and _are_values(table[name])]
    scores = list[str]()
    if "counts_as" not in meaning:
        scores = [name for name in numbers if not _NO_SCORE.search(name)]
    chosen = note("columns", file=file, meaning=used, doubtful=doubtful, scores=scores)
    agents = used.get("model_name", "")
    if {"model", "model_name"} & set(given) or (agents and not _called([agents], COLUMN_NAMES["model_name"].names[1])):
        return chosen
    if not agents and "agent" in used and table[used["agent"]].nunique() > 1:
        agents = used["agent"]
    options = [name for name, n in left.items() if 1 < n < len(table) and (n <= MOST_NAMES or _LIKE_MODEL.search(name))]
    likely = [name for name in options if name not in numbers]
    if agents:  # they are the models, unless another column has several values within an agent and task
        of_run = [agents, *(meaning[role] for role in ("dataset", "task_id", "repetition") if role in meaning)]
        for name in list(likely):
            keys = [agents] if _LIKE_MODEL.search(name) else of_run
            if table[[*keys, name]].astype("str").groupby(keys)[name].nunique().le(1).all():
                likely.remove(name)
        if not likely:
            return chosen
    likely.sort(key=lambda name: (not _LIKE_MODEL.search(name), left[name]))
    likely += [*filter(_MODEL_NUMBER.search, options), *_called([used.get("seed", "")], ("checkpoint",)), ""]
    doubt = note("no_model", file=file, rows=len(table), left=left, likely=likely[0], agents=agents, n_files=n_files)
    return doubt + chosen


def told_apart(runs: pd.DataFrame, table: pd.DataFrame, meaning: Mapping[str, str], file: str) -> Notes:
    """Note an unused column that tells apart rows of the same model, task and repetition, such as items of a task.

    It has the name of an item, or models share most of its values, unlike ids of runs and measurements.
    """
    key = [role for role in ("model_name", "agent", "dataset", "task_id", "repetition", "seed") if role in runs]
    count = int(runs.duplicated(key).sum())
    if "counts_as" in meaning or not count:
        return Notes()
    unused = [name for name in map(str, table) if name not in meaning.values()]
    items = [
        name for level in COLUMN_NAMES["task_id"].names[:-1] for name in _called(unused, level) if name.lower() != "id"
    ]
    for name in dict.fromkeys([*items, *unused]):
        values = runs[key].assign(value=table[name].astype("str"))
        n_shared = len(values) - len(values.drop(columns="model_name", errors="ignore").drop_duplicates())
        if not values.duplicated().any() and (name in items or n_shared >= len(values) / 3):
            task = meaning["task_id"]
            return note("told_apart", file=file, count=count, column=name, task=task, is_item=name in items)
    return Notes()


def fields(row: Mapping[str, Any], depth: int = 5) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a row; fields of an object have names such as ``model.name``."""
    for name, value in row.items():
        if depth and value and isinstance(value, Mapping) and len(name) <= _LONGEST_NAME:
            yield from ((f"{name}.{inner}", cell) for inner, cell in fields(value, depth - 1))
        else:
            yield name, value


def _is_binary(scores: pd.Series, datasets: pd.Series) -> pd.Series:
    """Return for each score whether all scores of its dataset are 0 or 1 within 1e-6; False if all are tiny."""
    size = scores.abs()
    is_between = size.gt(1e-6) & (scores - 1).abs().gt(1e-6)
    largest = size.groupby(datasets).transform("max")
    return ~is_between.groupby(datasets).transform("any") & ~largest.between(0, 0.5, inclusive="neither")


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        text = _without_thousands(value.strip().lower().lstrip("$€£"))
        above, _, below = text.partition("/")  # a fraction, such as 3/4
        above, below = above.strip(), below.strip()
        if "/" in text and (above.endswith("%") or not below):
            return None
        below = below or ("100" if above.endswith("%") else "1")
        parts = [above.rstrip(" %"), below]
        if not all(map(_DECIMAL.fullmatch, parts)) or float(below) == 0:
            return None
        value = float(parts[0]) / float(below)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if np.isfinite(number) else None


def truths_or_numbers(values: pd.Series) -> pd.Series:
    """Return 1 or 0 for truth values and words for outcomes, numbers for numeric texts, and NaN for anything else."""
    cells = values.tolist()
    texts = [str(cell).strip().lower() for cell in cells]
    known = {text for text, is_known in zip(texts, values.notna() & values.ne(""), strict=True) if is_known}
    words = next((words for words in _ALL_WORDS if known <= words.keys()), _TRUTH)
    found = [words[text] if text in words else _number(cell) for text, cell in zip(texts, cells, strict=True)]
    return pd.Series(found, values.index, dtype="float64", name=values.name)


def _without_thousands(text: str) -> str:
    return _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)


def _seconds(value: Any) -> float | None:
    """Return a duration in seconds, from a number or a text: ``46s``, ``12,5 s``, ``1:03``, ``1 day, 2:03:04``."""
    if not isinstance(value, str):
        return _number(value)
    text = re.sub(r"(?<=\d),(?=\d)", ".", _without_thousands(value.strip()))
    text = re.sub(r"(?i)(hr|min|sec)s\b", r"\1", text)  # pandas knows only the singular of these
    number = _number(text)
    if number is not None or re.search(r"\d[.,]?\s+\d", text):  # pandas reads ``12, 5 s`` as 125 seconds
        return number
    try:
        return pd.Timedelta(f"0:{text}" if _MINUTES.fullmatch(text) else text).total_seconds()
    except ValueError:
        return None


def _times(values: pd.Series) -> pd.Series:
    """Parse the times of a column: texts, or numbers of seconds, milli-, micro- or nanoseconds since 1970.

    In dates such as ``01/02/2026``, the month comes first unless the first number is above 12 in any cell of the column
    or the separators are dots.
    """
    dates = [match for value in values if (match := _DAY_OR_MONTH.match(str(value)))]
    is_day_first = any(match[2] == "." or int(match[1]) > 12 for match in dates)
    times = [_time(value, is_day_first) for value in values]
    return pd.to_datetime(pd.Series(times, values.index), errors="coerce", utc=True, format="mixed")


def _time(value: Any, is_day_first: bool) -> Any:
    """Return a time in a form that pandas can parse; None for a number that is not a time."""
    text = str(value).strip()
    if match := _EPOCH.fullmatch(text):
        number = float(text) if match[2] else int(text)
        return pd.to_datetime(number, unit=_EPOCH_UNITS[len(match[1])], utc=True, errors="coerce")
    if match := _DAY_OR_MONTH.match(text):
        day, month = (match[1], match[3]) if is_day_first else (match[3], match[1])
        return f"{match[4]}-{month:0>2}-{day:0>2}{text[match.end() :]}"
    return None if isinstance(value, int | float) else value
