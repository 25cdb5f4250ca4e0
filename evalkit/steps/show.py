"""What notebooks show of stored plots and of the report of a step."""

import json
from collections.abc import Sequence

import pandas as pd

from evalkit.display import show_details, show_sandboxed, show_table, show_text
from evalkit.io import Column, frame
from evalkit.steps.contents import IDS, each_record, ids_of, numbered
from evalkit.steps.evaluators import evaluate_records
from evalkit.steps.findings import extract_key_findings_from_execution
from evalkit.steps.format import DEFAULTS, Options
from evalkit.steps.parse import History
from evalkit.steps.report import format_step_evaluation
from evalkit.steps.results import content, read_plots

_MAX_HTML = 2_000_000  # characters; a larger page is named, not shown


def plots(histories: Sequence[History]) -> pd.DataFrame:
    """List the plots that histories hold: ids, type, plots, html_length (missing: unknown), path."""
    rows = [
        ids_of(history, position, record) | read_plots(record)._asdict()
        for history, position, record in each_record(histories)
        if record["result_type"] == "visualization" and record["success"] is True
    ]
    return frame(rows, _PLOT_COLUMNS)


def show_plots(histories: Sequence[History], limit: int = 6) -> None:
    """Show the stored plots of histories: a table of all, and the first in sandboxed frames.

    Only HTML that is whole is shown, and only inside frames that run no script and load nothing.

    Parameters
    ----------
    histories : sequence of History
    limit : int
        At most so many frames.
    """
    table = plots(histories)
    if table.empty:
        show_text("No plots are stored.")
        return
    show_table(numbered(table).drop(columns="history"), "Stored plots")
    shown = 0
    for history, position, record in each_record(histories):
        if record["result_type"] != "visualization" or record["result_metadata"].get("truncated"):
            continue
        for title, page in _pages(content(record)):
            if shown == limit:
                show_text(f"Only the first {limit} plots are shown.")
                return
            if read_plots(record).type in ("html", "multiple_plots") and len(page) <= _MAX_HTML:
                name = title or record["step"]["function_name"]
                show_sandboxed(page, f"{name}, record {position + 1} of {history.label}")
                shown += 1


def show_step_reports(histories: Sequence[History], options: Options = DEFAULTS) -> None:
    """Show the report of every step of histories, folded."""
    for history in histories:
        for position, evaluation in enumerate(evaluate_records(history.records, options)):
            place = f"{position + 1} of {len(history.records)}"
            title = f"{place}: {evaluation['function_name']} – {evaluation['verdict']}"
            show_details(title, format_step_evaluation(evaluation))


def show_findings(histories: Sequence[History], options: Options = DEFAULTS) -> None:
    """Show the key findings of histories, folded by kind."""
    for history in histories:
        for kind, found in extract_key_findings_from_execution(history.records, options).items():
            text = json.dumps(found, indent=2, ensure_ascii=False)
            show_details(f"{history.label}: {kind.replace('_', ' ')}, {len(found)}", text)


_PLOT_COLUMNS = (
    *IDS,
    Column("type", "str", "html, multiple_plots, file_ref, image, text (a message in the plot's place) or none"),
    Column("plots", "int?", "number of plots"),
    Column("html_length", "int?", "length of the HTML; missing where it was cut or is in a file", "characters"),
    Column("path", "str", "file of a plot that was stored as a file"),
)


def _pages(value: object) -> list[tuple[str, str]]:
    """Give title and HTML of each plot in a result."""
    if isinstance(value, dict):
        entries = value.get("plots") if isinstance(value.get("plots"), list) else [value]
        pairs = [(entry.get("title"), entry.get("html")) for entry in entries if isinstance(entry, dict)]
        return [(str(title or ""), page) for title, page in pairs if isinstance(page, str)]
    return [("", value)] if isinstance(value, str) else []
