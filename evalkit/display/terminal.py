"""Format what commands print for logs of any kind: the answer on one screen, or everything with ``--all``."""

import os
import re
import shlex
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd
from tabulate import tabulate

from evalkit._text import columns_in_words, counted_noun, format_interval, sentence
from evalkit.io.frames import summarise
from evalkit.io.screen import screen_width
from evalkit.io.text import distinct_names, plain, shorten
from evalkit.kinds.findings import similar_names
from evalkit.kinds.kind import LogKind
from evalkit.kinds.logs import Logs
from evalkit.kinds.runs import Value, compared_in, outcomes
from evalkit.kinds.success_rates import rates, rates_by_denominator
from evalkit.kinds.transcript import cell_text

SCREEN = 24  # number of lines on one screen
MOST_ROWS = 10  # maximum number of rows shown of a table on one screen
LAST_ROWS = 2  # number of rows among these that come from the end of the table
FEWEST_ROWS = 5  # minimum number of rows shown of a table on a full screen
MOST_REASONS = 2  # maximum number of reasons shown why files could not be read
WARNED = ("no_model", "one_model_given", "named_by_folder", "compared_by_folder", "sources_merged", "told_apart")
MOST_CHOSEN = 4  # maximum number of notes shown on choices, such as the columns of a table
ANSWER = "the answer"  # title of the part that contains a kind's own answer
UNMEASURED = {
    "measured": "of those measured",
    "lowest": "if the others failed",
    "highest": "if they succeeded",
    "zero": "if the others scored 0",
}
_SHORT, _SHORTEST = 20, 14  # minimum length of a shortened name in characters: before and after dropping columns
_PATH = 64  # maximum length of the path of an unreadable file, in characters
_NUMBER = re.compile(r"[-+]?\d|\[|[–…]?$")  # the beginning of each cell in a column of numbers
_COUNT = re.compile(r"[1-9]\d{3,}", re.ASCII)  # a whole number that gets thousands separators
Which = Literal["failed", "flagged", "all"]
_ENDED_BADLY = frozenset(("error", "aborted", "failed"))
_LISTED = {
    "run_id": "run",
    "model_name": "model",
    "task_id": "task",
    "repetition": "repetition",
    "status": "status",
    "score": "score",
    "run_flags": "flags",
}
NAME_WIDTH = 120  # maximum length of a name or a cell in characters; a narrow terminal shows fewer
_LEFT_OUT = "--all also prints 00 more models, rates of measured runs only, notes"  # the longest last line
INTERVAL = " [95 %]"  # suffix of the header of a column of estimates


class Part(NamedTuple):
    """A part of a command's output: lines of text, or the rows of a table."""

    title: str  # what the last line calls the part if it is left out
    lines: Sequence[str] = ()
    always: bool = False  # shown even if the screen is full
    rows: Sequence[dict[str, str]] = ()
    most: int | None = MOST_ROWS  # maximum number of rows shown, fewer if the screen is full; None for all
    last: int = LAST_ROWS  # number of rows among these that come from the end of the table
    left: int = 1  # number of columns with names, aligned left
    spare: Sequence[str] = ()  # columns that can be dropped on a narrow screen
    frame: pd.DataFrame | None = None  # the rows as a frame, for ``--output``

    def printed(self, most: int | None, width: int | None) -> list[str]:
        """Return the part's lines; of a table, only `most` rows from its beginning and end, or all if it is None."""
        if not self.rows:
            return [piece for line in self.lines for piece in _wrapped(line, width)]
        rows = list(self.rows)
        if most is not None and len(rows) > most + 1:  # hiding two rows would save only one line
            rows[most - self.last - 1 : len(rows) - self.last] = [dict.fromkeys(rows[0], "…")]
        return fit_table(rows, left=self.left, spare=self.spare, width=width).split("\n")


def on_screen(parts: Iterable[Part], *, everything: bool, compared_by: Sequence[str] = ()) -> str:
    """Join the parts that fit on one screen, or `everything`; a last line names what is left out.

    `compared_by` lists the compared columns, for the header of the column of names; by default, models are compared.
    """
    head = columns_in_words(compared_by or ("model_name",))
    parts = [part for part in parts if part.lines or part.rows]
    for place, part in enumerate(parts):
        rows = [{head if name == "model" else name: text for name, text in row.items()} for row in part.rows]
        parts[place] = part._replace(rows=rows)
    if everything:
        return "\n\n".join("\n".join(part.printed(None, None)) for part in parts)
    width = screen_width()
    shown: list[list[str]] = []
    left_out: list[str] = []
    texts = [part.printed(None, width) for part in parts if part.always and not part.rows]
    room = SCREEN - len(_wrapped(_LEFT_OUT, width)) - sum(len(lines) + 1 for lines in texts)
    for place, part in enumerate(parts):
        most = len(part.rows) if part.most is None else min(part.most, len(part.rows))
        lines = part.printed(most, width)
        tables = [other.printed(FEWEST_ROWS, width) for other in parts[place + 1 :] if other.always and other.rows]
        left = room - sum(len(table) + 1 for table in tables)
        if part.rows and part.most and left <= len(lines):
            most = max(most - (len(lines) + 1 - left), min(FEWEST_ROWS, most))
            lines = part.printed(most, width)
        if part.always or len(lines) < room:
            shown.append(lines)
            if part.rows or not part.always:  # other parts are already subtracted from `room`
                room -= len(lines) + 1
            if len(part.rows) > most + 1:
                left_out.append(f"{len(part.rows) - most + 1:,} more {part.title}")
        else:
            left_out.append(part.title)
    text = "\n\n".join(map("\n".join, shown))
    if left_out:
        text = "\n".join([text, *_wrapped(f"--all also prints {', '.join(left_out)}", width)])
    return text


def _wrapped(line: str, width: int | None) -> list[str]:
    """Wrap a line at spaces; continuation lines of an indented line are indented further."""
    if not width or not line:
        return [line]
    indent = "    " if line.startswith(" ") else ""
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)


class Answer(NamedTuple):
    """Which model is best, and the adjusted rates that tables of models show if they change the order."""

    text: str = ""
    column: str = ""  # title of the column of adjusted rates
    cells: Mapping[str, str] = {}  # formatted adjusted rates, by model; empty for no column
    adjusted: pd.DataFrame | None = None  # these rates with bounds: model_name, measure and the columns of `rank_table`


NO_ANSWER = Answer()


def summary(logs: Logs, views: Mapping[str, Any], answer: Answer = NO_ANSWER) -> str:
    """Format logs as a command prints them: the answer, the parts of the kind, and the files."""
    everything = bool(views.get("all"))
    parts = parts_of(logs, views)
    notes = [plain(note) for note in similar_names(logs.runs).notes]
    files = file_lines(logs.ledger, len(logs.runs), everything=everything)
    own = parts.pop(0).lines if parts[0].title == ANSWER else []
    text = answer.text
    if own and logs.runs["model_name"].nunique() < 2:
        text = ""
    warned, chosen = chosen_lines(logs, stated=["compared_by"] if text else [], everything=everything)
    for place, part in enumerate(parts):
        if answer.cells and part.rows and "model" in part.rows[0]:
            rows = [{**row, answer.column: answer.cells.get(row["model"], "")} for row in part.rows]
            parts[place] = part._replace(rows=rows)
    first = Part(ANSWER, [*warned, *filter(None, text.split("\n")), *own, *chosen], always=True)
    parts = [first, *parts, Part("notes", notes), Part("files", files, always=True)]
    return on_screen(parts, everything=everything, compared_by=compared_in(logs.runs))


def parts_of(logs: Logs, views: Mapping[str, Any]) -> list[Part]:
    """Return the parts that a kind prints, by default success rates and mean scores by model."""
    if logs.kind.command.describe:
        return list(logs.kind.command.describe(logs, views))
    rows, frame = overview(logs.runs, logs.kind)
    unmeasured = unmeasured_lines(logs.runs, ["model_name"], logs.kind)
    return [
        Part("models", rows=rows, always=True, frame=frame),
        Part("rates of measured runs only", unmeasured),
    ]


def printed_table(logs: Logs, views: Mapping[str, Any], answer: Answer = NO_ANSWER) -> pd.DataFrame:
    """Return the table that `summary` prints, with all rows and with unformatted numbers."""
    table = pd.concat([part.frame for part in parts_of(logs, views) if part.frame is not None], ignore_index=True)
    if answer.adjusted is None or "model_name" not in table:
        return table
    return table.merge(answer.adjusted, how="left", on=[name for name in ("model_name", "measure") if name in table])


def chosen_lines(logs: Logs, *, stated: Sequence[str] = (), everything: bool = False) -> tuple[list[str], list[str]]:
    """Return two lists of lines: warnings about the model or rows that repeat, to print first, and notes on choices.

    `stated` has the codes of notes that are printed elsewhere.
    """
    warned = [plain(sentence(note)) for note in logs.chosen.only(*WARNED).notes]
    chosen = [plain(sentence(note)) for note in logs.chosen.without(*WARNED, *stated).notes]
    if len(chosen) > MOST_CHOSEN and not everything:
        chosen[MOST_CHOSEN:] = [f"… {counted_noun(len(chosen) - MOST_CHOSEN, 'more note')}; the ledger has all of them"]
    return warned, chosen


def overview(runs: pd.DataFrame, kind: LogKind) -> tuple[list[dict[str, str]], pd.DataFrame]:
    """Return success rates and mean scores by model, as formatted cells by header and as a frame."""
    rows: dict[str, dict[str, str]] = {}
    frames = []
    values: tuple[Value, ...] = ("is_successful", "score")
    by_value = {value: outcomes(runs, value, kind) for value in values}
    measured = {value: data for value, data in by_value.items() if data.table["value"].notna().any()}
    for value, data in (measured or {"score": by_value["score"]}).items():
        table = rates(runs, value=value, kind=kind)
        frames.append(table.assign(value=value))
        for row in rate_rows(table, ["model_name"], data.title, percent=data.is_share):
            rows.setdefault(row["model"], row).update(row)
    return list(rows.values()), pd.concat(frames)


def rate_rows(table: pd.DataFrame, by: Sequence[str], title: str, *, percent: bool = True) -> list[dict[str, str]]:
    """Format groups as cells by header: names (shortened but still distinct), number of runs, and rate."""
    names = {column: group_names(table[column]) for column in by}
    rows = []
    for place, row in enumerate(table.to_dict("records")):
        keys = {column_title(column): names[column][place] for column in by}
        rate = format_interval(row["estimate"], row["low"], row["high"], percent=percent)
        rows.append({**keys, "runs": str(row["n"]), f"{title}{INTERVAL}": rate})
    return rows


def unmeasured_lines(runs: pd.DataFrame, by: Sequence[str], kind: LogKind, value: Value = "") -> list[str]:
    """Format the rates of groups with unmeasured runs, with these runs counted in each possible way."""
    table = rates_by_denominator(runs, by, value, kind)
    table = table[(table["n_not_measured"] > 0) & (table["n_measured"] > 0)]  # only these have different rates
    if table.empty:
        return []
    titles = {column: column_title(column) for column in by}
    if "model_name" in titles and compared_in(runs):
        titles["model_name"] = columns_in_words(compared_in(runs))
    ways = ["measured", "zero"] if "zero_estimate" in table else ["measured", "lowest", "highest"]
    names = {column: group_names(table[column]) for column in by}
    rows = []
    for place, row in enumerate(table.to_dict("records")):
        cells = {titles[column]: names[column][place] for column in by}
        cells["not measured"] = f"{row['n_not_measured']} of {row['n_measured'] + row['n_not_measured']}"
        for name in ways:
            way = name if f"{name}_estimate" in row else ""
            bounds = (row[f"{way}_{end}".strip("_")] for end in ("estimate", "low", "high"))
            cells[UNMEASURED[name]] = format_interval(*bounds, percent="zero" not in ways)
        rows.append(cells)
    counts = "are left out above" if "measured_estimate" not in table else "count as failures above"
    return [f"Runs that were not measured {counts}:", *fit_table(rows, left=len(by), width=screen_width()).split("\n")]


def column_title(column: str) -> str:
    """Return the header of a column that runs are grouped by."""
    return "model" if column == "model_name" else column


def file_lines(ledger: pd.DataFrame, runs: int, noun: str = "run", *, everything: bool = False) -> list[str]:
    """Count runs and files, and name the first failed file for each reason; with `everything`, of all files."""
    lines = [f"{counted_noun(runs, noun)}; {summarise(ledger['status'])}"]
    root = os.path.commonprefix(ledger["source"].tolist()).rpartition("/")[0] + "/"  # noqa: RUF071
    statuses = ["failed", "skipped", "used"] if everything else ["failed"]
    for status in statuses:
        rows = ledger[ledger["status"].eq(status) & ledger["reason"].ne("")]
        reasons = list(rows.groupby("reason", sort=False)["source"])
        most = len(reasons) if everything else MOST_REASONS
        for reason, sources in reasons[:most]:
            others = f" and {counted_noun(len(sources) - 1, 'other file')}" if len(sources) > 1 else ""
            path = plain(sources.iloc[0].removeprefix(root))
            lines.append(f"  {status}: {path if everything else shorten(path, _PATH)}{others}: {plain(reason)}")
        if len(reasons) > most:
            lines.append(f"  … {counted_noun(len(reasons) - most, 'more reason')}")
    return lines


def choose(runs: pd.DataFrame, which: Which) -> pd.DataFrame:
    """Select runs. ``failed`` are runs without success or, if no run records it, with no score or an error status."""
    if which == "all":
        return runs
    if which == "flagged":
        return runs[[len(flags) > 0 for flags in runs["run_flags"]]]
    if runs["is_successful"].notna().any():
        return runs[~runs["is_successful"].astype("boolean").fillna(False).to_numpy(dtype=bool)]
    return runs[(runs["score"].isna() | runs["status"].isin(_ENDED_BADLY)).to_numpy(dtype=bool)]


def list_runs(logs: Logs, which: Which) -> str:
    """Format a table of runs with their ids, which `evalkit show SOURCE --run` accepts."""
    chosen = choose(logs.runs, which)
    titles = {**_LISTED, "model_name": columns_in_words(compared_in(logs.runs) or ("model_name",))}
    rows = []
    for run in chosen.assign(status=chosen["status"].replace(logs.kind.labels)).to_dict("records"):
        texts = {name: cell_text(run.get(column)) or "–" for column, name in titles.items()}
        rows.append({name: plain(text, None if name == "run" else NAME_WIDTH) for name, text in texts.items()})
    used = [name for name in titles.values() if any(row[name] != "–" for row in rows)]
    warned, notes = chosen_lines(logs)
    end = "\n".join([*notes, f"{counted_noun(len(chosen), 'run')} of {len(logs.runs):,}, {which}"])
    if not rows:
        return "\n".join([*warned, end])
    table = fit_table([{name: row[name] for name in used} for row in rows], left=len(used), width=screen_width())
    show = f"evalkit show {shlex.quote(plain(logs.source))} --run RUN"
    return "\n\n".join([*warned, table, f"{end}; {show} shows one"])


def group_names(values: pd.Series) -> list[str]:
    """Return the name of each row's group as one line of plain text, shortened in the middle but still distinct."""
    texts = values.astype("object").map(str)
    missing = "unknown (missing)" if texts[values.notna()].eq("unknown").any() else "unknown"
    texts = texts.where(values.notna(), missing)
    return texts.map(distinct_names(texts.unique(), NAME_WIDTH)).tolist()


def fit_table(rows: Sequence[dict[str, str]], *, left: int = 1, spare: Sequence[str] = (), width: int | None) -> str:
    """Format rows, with headers as keys, as a table that fits a width if possible. The first `left` columns are names.

    If the table is too wide, headers are wrapped and the `spare` columns with only zeros are dropped. Then texts are
    shortened, and then the other `spare` columns are dropped one by one.
    """
    rows = [dict(row) for row in rows]
    for row in rows:
        for name in list(row)[left:]:
            if _COUNT.fullmatch(row[name]):
                row[name] = f"{int(row[name]):,}"
    text = _write(rows, left, broken=False)
    if width is None or _width(text) <= width:
        return text
    gone = [name for name in spare if all(row.get(name) in ("0", "…") for row in rows)]
    for name, shortest in [("", _SHORT), *((name, _SHORT) for name in spare), ("", _SHORTEST)]:
        gone.append(name)
        table = _cut([{key: row[key] for key in row if key not in gone} for row in rows], left, shortest, width)
        text = _write(table, left, broken=True)
        if _width(text) <= width:
            break
    return text


def _cut(table: list[dict[str, str]], left: int, shortest: int, width: int) -> list[dict[str, str]]:
    """Shorten the longest texts of a table to fit a width, but not below `shortest` characters; keep numbers whole."""
    over = _width(_write(table, left, broken=True)) - width
    texts = [n for n in table[0] if not (n.endswith(INTERVAL) or all(_NUMBER.match(row[n]) for row in table))]
    longest = {name: max(len(row[name]) for row in table) for name in texts}
    keep = max(longest.values(), default=0)
    while keep > shortest and sum(max(0, size - keep) for size in longest.values()) < over:
        keep -= 1
    shown = {name: distinct_names([row[name] for row in table], keep) for name in longest}
    return [row | {name: shown[name][row[name]] for name in shown} for row in table]


def _write(table: list[dict[str, str]], left: int, *, broken: bool) -> str:
    """Format rows under their headers, passed as plain rows, since tabulate pads columns beyond their headers."""
    names, cells = list(table[0]), [list(row.values()) for row in table]
    columns = list(zip(*cells, strict=True))
    heads = [[name] for name in names]
    for place, column in enumerate(columns if broken else ()):  # wrap to the column's width
        whole = names[place].replace(INTERVAL, INTERVAL.replace(" %", "\xa0%"))
        lines = textwrap.wrap(whole, max(map(_cells, column)), break_long_words=False)
        heads[place] = [line.replace("\xa0", " ") for line in lines]
    height = max(map(len, heads))
    padded = [[""] * (height - len(head)) + head for head in heads]
    rows = list(zip(*padded, strict=True))
    rules = ["-" * max(map(_cells, column)) for column in zip(*rows, *cells, strict=True)]
    align = ["left"] * left + ["right" if all(map(_NUMBER.match, column)) else "left" for column in columns[left:]]
    return tabulate([*rows, rules, *cells], tablefmt="plain", colalign=align, disable_numparse=True)


def _width(text: str) -> int:
    return max(map(_cells, text.splitlines()))


def name_width() -> int:
    """Return how many characters of a model's name fit in a sentence: a third of a line of a narrow terminal."""
    width = screen_width()
    return min(NAME_WIDTH, width // 3) if width else NAME_WIDTH


def _cells(text: str) -> int:
    """Return the width of a text in a terminal, where East Asian characters take two cells."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text if not unicodedata.combining(one))
