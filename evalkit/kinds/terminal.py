"""Terminal output for logs of any kind, the default where the kind has no output of its own."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd
from tabulate import tabulate

from evalkit._words import counted_noun, format_interval
from evalkit.io.text import distinct_names, plain
from evalkit.io.write import write_frame
from evalkit.kinds.estimates import denominators
from evalkit.kinds.findings import alike
from evalkit.kinds.kind import LogKind
from evalkit.kinds.pipeline import Logs
from evalkit.kinds.runs import UNKNOWN, outcomes
from evalkit.stats import estimate_by

MOST_FAILED = 10  # lines on files that could not be read
UNMEASURED = {
    "measured": "of those measured",
    "lowest": "if the others failed",
    "highest": "if they succeeded",
    "zero": "if the others scored 0",
}
_SHORTEST = 12  # characters left of a name
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


def summary(logs: Logs, views: Mapping[str, Any]) -> str:
    """Format logs as a command prints them: by default success rates and mean scores by model, and the files."""
    if logs.kind.command.describe:
        lines = [logs.kind.command.describe(logs, views)]
    else:
        lines = [fit_table(overview_rows(logs.runs, logs.kind), width=None)]
        lines += unmeasured_lines(logs.runs, ["model_name"], logs.kind)
        lines += file_lines(logs.ledger, len(logs.runs))
    return "\n".join([*lines, *(plain(note) for note in alike(logs.runs["model_name"].dropna()).notes)])


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
                rows[estimate["model_name"]][rated.title] = text
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
        cells = {column: names[column][place] for column in by}
        cells["not measured"] = f"{row['n_not_measured']} of {row['n_measured'] + row['n_not_measured']}"
        for name in ways:
            way = name if f"{name}_estimate" in row else ""
            bounds = (row[f"{way}_{end}".strip("_")] for end in ("estimate", "low", "high"))
            cells[UNMEASURED[name]] = format_interval(*bounds, percent="zero" not in ways)
        rows.append(cells)
    counts = "are left out above" if "measured_estimate" not in table else "count as failures above"
    lines = fit_table(rows, left=len(by), width=None)
    return ["", f"Runs that were not measured {counts}; 95 % intervals:", "", *lines.split("\n")]


def file_lines(ledger: pd.DataFrame, runs: int, most: int = MOST_FAILED) -> list[str]:
    """Describe how many runs and files there are, and which files failed (at most `most`)."""
    counts = ledger["status"].value_counts()
    seen = ", ".join(f"{counts.get(status, 0):,} {status}" for status in ("used", "skipped", "failed"))
    lines = [f"\n{counted_noun(runs, 'run')}; {counted_noun(len(ledger), 'file')}: {seen}"]
    failed = ledger[ledger["status"] == "failed"]
    lines += [f"  failed: {plain(row.source)}: {plain(row.reason)}" for row in failed.head(most).itertuples()]
    return lines + [f"  … {len(failed) - most} more; evalkit.load(…).ledger lists them all"] * (len(failed) > most)


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


def fit_table(rows: Sequence[dict[str, str]], *, left: int = 1, spare: Sequence[str] = (), width: int | None) -> str:
    """Format rows, with the same headers as keys, as a table that keeps to a width as far as possible.

    The first `left` columns hold names, aligned left. If the table is too wide, headers get a second line, columns of
    `spare` that hold only zeros are left out, then the first of `spare`, then names are cut.
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
    align = ["left"] * left + ["right"] * (len(names) - left)
    return tabulate([*rows, rules, *cells], tablefmt="plain", colalign=align, disable_numparse=True)


def _width(text: str) -> int:
    return max(map(len, text.splitlines()))
