"""What commands print of logs of any kind: the answer on one screen, and everything on demand."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd
from tabulate import tabulate

from evalkit._words import counted_noun, format_interval
from evalkit.io.frames import summarise
from evalkit.io.text import distinct_names, plain
from evalkit.io.write import write_frame
from evalkit.kinds.estimates import denominators
from evalkit.kinds.findings import alike
from evalkit.kinds.kind import LogKind
from evalkit.kinds.pipeline import Logs
from evalkit.kinds.runs import UNKNOWN, outcomes
from evalkit.stats import estimate_by

SCREEN = 24  # lines
MOST_ROWS, LAST_ROWS = 10, 2  # of a table on one screen, and how many of these are the last ones
MOST_REASONS = 2  # why files could not be read
UNMEASURED = {
    "measured": "of those measured",
    "lowest": "if the others failed",
    "highest": "if they succeeded",
    "zero": "if the others scored 0",
}
_SHORTEST = 12  # characters left of a name
_NUMBER = re.compile(r"[-+]?\d|\[|[–…]?$")  # how the cells of a column of numbers begin
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
NAME_WIDTH = 48  # characters of a name or a cell
INTERVAL = " [95 %]"  # behind what an estimate is, in the header of its column


class Part(NamedTuple):
    """A part of what a command prints: its lines, and what they are, for the line that says what is left out."""

    title: str
    lines: Sequence[str]
    always: bool = False  # shown even where the screen is full
    more: str = ""  # what is left out of its lines


def table_part(
    title: str,
    rows: Sequence[dict[str, str]],
    *,
    everything: bool,
    most: int = MOST_ROWS,
    left: int = 1,
    always: bool = True,
) -> Part:
    """Format rows as a table; of many, unless everything is asked for, the first and the last ones."""
    shown, more = list(rows), ""
    if len(rows) > most and not everything:
        gap = dict.fromkeys(rows[0], "…")
        shown = [*rows[: most - LAST_ROWS - 1], gap, *rows[-LAST_ROWS:]]
        more = f"{len(rows) - most + 1:,} more {title}"
    return Part(title, table_lines(shown, left) if shown else [], always, more)


def on_screen(parts: Iterable[Part], *, everything: bool) -> str:
    """Join the parts that one screen has room for, the most important first; a last line names what is left out."""
    parts = [part for part in parts if part.lines]
    room = SCREEN - 1 - sum(len(part.lines) + 1 for part in parts if part.always)
    shown, left_out = list[Part](), list[str]()
    for part in parts:
        if everything or part.always or len(part.lines) + 1 <= room:
            shown.append(part)
            left_out += [part.more] * bool(part.more)
            room -= 0 if part.always else len(part.lines) + 1
        else:
            left_out.append(part.title)
    text = "\n\n".join("\n".join(part.lines) for part in shown)
    return text + f"\n--all also prints {', '.join(left_out)}" * bool(left_out)


def summary(logs: Logs, views: Mapping[str, Any], answer: str = "") -> str:
    """Format logs as a command prints them, the answer first: what the kind shows, and the files.

    By default a kind shows success rates and mean scores by model. What does not fit on a screen is left out, unless
    `views` ask for all.
    """
    everything = bool(views.get("all"))
    if logs.kind.command.describe:
        parts = list(logs.kind.command.describe(logs, views))
    else:
        unmeasured = unmeasured_lines(logs.runs, ["model_name"], logs.kind)
        parts = [
            table_part("models", overview_rows(logs.runs, logs.kind), everything=everything),
            Part("rates without the runs that were not measured", unmeasured),
        ]
    notes = [plain(note) for note in alike(logs.runs["model_name"].dropna()).notes]
    files = file_lines(logs.ledger, len(logs.runs), everything=everything)
    first, last = Part("the answer", answer.split("\n") * bool(answer), always=True), Part("files", files, always=True)
    return on_screen([first, *parts, Part("notes", notes), last], everything=everything)


def overview_rows(runs: pd.DataFrame, kind: LogKind | None = None) -> list[dict[str, str]]:
    """Return success rates and mean scores by model, as cells under their headers."""
    models = runs["model_name"].fillna(UNKNOWN)
    names = distinct_names(models.unique())
    sizes = models.value_counts().sort_index()
    rows = {model: {"model": names[str(model)], "n": str(n)} for model, n in sizes.items()}
    for column in ("is_successful", "score"):
        if runs[column].notna().any():
            rated = outcomes(runs, column, kind)
            for estimate in estimate_by(rated.table, "model_name", "value", "task", rated.kind).to_dict("records"):
                text = format_interval(*(estimate[end] for end in ("estimate", "low", "high")), percent=rated.is_share)
                rows[estimate["model_name"]][f"{rated.title}{INTERVAL}"] = text
    headers = list(dict.fromkeys(name for row in rows.values() for name in row))
    return [{name: row.get(name, "–") for name in headers} for row in rows.values()]


def unmeasured_lines(runs: pd.DataFrame, by: Sequence[str], kind: LogKind, value: str = "") -> list[str]:
    """Format the rates of the groups in which runs were not measured, with these counted in every way."""
    table = denominators(runs, by, value, kind)
    table = table[(table["n_not_measured"] > 0) & (table["n_measured"] > 0)]  # others have no rate in any way
    if table.empty:
        return []
    ways = ["measured", "zero"] if "zero_estimate" in table else ["measured", "lowest", "highest"]
    names, rows = {column: group_names(table[column]) for column in by}, []
    for place, row in enumerate(table.to_dict("records")):
        cells = {title_of(column): names[column][place] for column in by}
        cells["not measured"] = f"{row['n_not_measured']} of {row['n_measured'] + row['n_not_measured']}"
        for name in ways:
            way = name if f"{name}_estimate" in row else ""
            bounds = (row[f"{way}_{end}".strip("_")] for end in ("estimate", "low", "high"))
            cells[UNMEASURED[name]] = format_interval(*bounds, percent="zero" not in ways)
        rows.append(cells)
    counts = "are left out above" if "measured_estimate" not in table else "count as failures above"
    return [f"Runs that were not measured {counts}:", *table_lines(rows, len(by))]


def title_of(column: str) -> str:
    """Return the header of a column to group by."""
    return "model" if column == "model_name" else column


def file_lines(ledger: pd.DataFrame, runs: int, noun: str = "run", *, everything: bool) -> list[str]:
    """Count runs and files, and say which could not be read; with `everything`, also which were skipped.

    Of files with one reason only the first is named.
    """
    lines = [f"{counted_noun(runs, noun)}; {summarise(ledger['status'])}"]
    for status in ["failed", "skipped"] if everything else ["failed"]:
        files = ledger[ledger["status"] == status]
        reasons = list(files.groupby("reason", sort=False)["source"])
        for reason, sources in reasons if everything else reasons[:MOST_REASONS]:
            others = f" and {counted_noun(len(sources) - 1, 'other file')}" if len(sources) > 1 else ""
            lines.append(f"  {status}: {plain(sources.iloc[0])}{others}: {plain(reason)}")
    more = len(reasons) - MOST_REASONS
    return lines + [f"  … {counted_noun(more, 'more reason')}: --all"] * (not everything and more > 0)


def choose(runs: pd.DataFrame, which: Which) -> pd.DataFrame:
    """Select runs by how they ended.

    ``failed`` are runs without success or, if no run says whether it succeeded, those without a score or with a status
    that names an error; ``flagged`` are runs with a flag.
    """
    if which == "all":
        return runs
    if which == "flagged":
        return runs[[len(flags) > 0 for flags in runs["run_flags"]]]
    if runs["is_successful"].notna().any():
        return runs[~runs["is_successful"].astype("boolean").fillna(False).to_numpy(dtype=bool)]
    return runs[(runs["score"].isna() | runs["status"].isin(_ENDED_BADLY)).to_numpy(dtype=bool)]


def list_runs(logs: Logs, which: Which) -> str:
    """Format runs with their ids, as `evalkit show SOURCE --run` accepts them."""
    chosen = choose(logs.runs, which)
    rows = [
        {
            name: plain(cell_text(run.get(column)) or "–", None if name == "run" else NAME_WIDTH)
            for column, name in _LISTED.items()
        }
        for run in chosen.assign(status=chosen["status"].replace(logs.kind.labels)).to_dict("records")
    ]
    used = [name for name in _LISTED.values() if any(row[name] != "–" for row in rows)]
    end = f"{counted_noun(len(chosen), 'run')} of {len(logs.runs)}, {which}"
    if not rows:
        return end
    table = fit_table([{name: row[name] for name in used} for row in rows], left=len(used), width=None)
    return f"{table}\n\n{end}; evalkit show {plain(logs.source)} --run RUN shows one"


def cell_text(value: Any) -> str:
    """Format a cell of a frame; empty if it is missing."""
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        items = value if isinstance(value, (list, tuple)) else value.tolist()
        if isinstance(items, (list, tuple)):
            return plain(", ".join(str(item).replace("_", " ") for item in items))
        value = items
    if value is None or value != value or str(value) in ("<NA>", "NaT"):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if hasattr(value, "isoformat"):
        return value.strftime("%Y-%m-%d %H:%M:%S %Z").strip()
    return plain(f"{value:.4g}" if isinstance(value, float) else value)


def group_names(values: pd.Series, width: int = NAME_WIDTH) -> list[str]:
    """Return the name of each row's group: plain text of one line, cut in its middle to a width, and still distinct."""
    texts = values.astype("object").map(str)
    missing = "unknown (missing)" if texts[values.notna()].eq("unknown").any() else "unknown"
    texts = texts.where(values.notna(), missing)
    return texts.map(distinct_names(texts.unique(), width)).tolist()


def write_output(logs: Logs, views: Mapping[str, Any], path: str) -> None:
    """Write ``--output``: what the kind writes, else its runs."""
    if logs.kind.command.write:
        logs.kind.command.write(logs, views, path)
    else:
        write_frame(logs.runs, path)


def table_lines(rows: Sequence[dict[str, str]], left: int = 1) -> list[str]:
    """Format rows, as wide as they are; see `fit_table`."""
    return fit_table(rows, left=left, width=None).split("\n")


def fit_table(rows: Sequence[dict[str, str]], *, left: int = 1, spare: Sequence[str] = (), width: int | None) -> str:
    """Format rows, with the same headers as keys, as a table that keeps to a width as far as possible.

    The first `left` columns hold names, aligned left; of the others, those of numbers are aligned right. If the table
    is too wide, headers get a second line, columns of `spare` that hold only zeros are left out, then the first of
    `spare`, then names are cut.
    """
    table = [dict(row) for row in rows]
    text = _write(table, left, broken=False)
    if width is None or _width(text) <= width:
        return text
    for name in [name for name in spare if all(row[name] == "0" for row in table)]:
        table = [{key: cell for key, cell in row.items() if key != name} for row in table]
    text = _write(table, left, broken=True)
    if _width(text) > width and spare:
        table = [{key: cell for key, cell in row.items() if key != spare[0]} for row in table]
        text = _write(table, left, broken=True)
    for name in list(table[0])[:left]:
        if (over := _width(text) - width) > 0:
            keep = max(max(len(row[name]) for row in table) - over, _SHORTEST, len(name))
            shown = distinct_names([row[name] for row in table], keep)
            table = [{**row, name: shown[row[name]]} for row in table]
            text = _write(table, left, broken=True)
    return text


def _write(table: list[dict[str, str]], left: int, *, broken: bool) -> str:
    """Format rows below their headers; as plain rows, since tabulate makes columns wider than their headers."""
    names = list(table[0])
    heads = [name.rpartition(" ")[::2] if broken else ("", name) for name in names]
    above, below = ([head[i] for head in heads] for i in (0, 1))
    rows = [above] * any(above) + [below]
    cells = [list(row.values()) for row in table]
    rules = ["-" * max(map(len, column)) for column in zip(*rows, *cells, strict=True)]
    columns = list(zip(*cells, strict=True))
    align = ["left"] * left + ["right" if all(map(_NUMBER.match, column)) else "left" for column in columns[left:]]
    return tabulate([*rows, rules, *cells], tablefmt="plain", colalign=align, disable_numparse=True)


def _width(text: str) -> int:
    return max(map(len, text.splitlines()))
