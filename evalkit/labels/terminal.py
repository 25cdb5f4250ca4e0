"""Label in a terminal, a transcript page by page with a key for the answer; and what labels show of judges."""

import shutil
import sys
import termios
import tty

import click
import pandas as pd

from evalkit._text import counted_noun, format_interval, listed
from evalkit.display.terminal import INTERVAL, Part, group_names, on_screen
from evalkit.display.words import finding_text
from evalkit.io import SourceError, plain
from evalkit.labels.judges import (
    Comparison,
    findings,
    first_judge,
    judge_table,
    model_table,
    next_units,
    precision_recall,
    verdicts_and_labels,
)
from evalkit.labels.session import NO, UNDECIDED, YES, Session

KEYS = "y yes, n no, u undecided, s later, space next page, b back, m note, q stop"
_LABELS = {"y": YES, "n": NO, "u": UNDECIDED}
_AROUND = 6  # lines of a page that are no transcript


def label_in_terminal(session: Session) -> None:
    """Ask for the label of each unit that is left, until all have one, `q`, or the end of the input."""
    while session.left:
        unit = session.left[0]
        try:
            lines = session.transcript(unit).text().splitlines()
        except SourceError as error:
            lines = [plain(f"can't be read: {error}")]
        answer = _ask(session, lines)
        if answer == "q":
            break
        if answer == "s":
            session.put_off()
    print(f"{counted_noun(session.done, 'label')} of {session.total} in {plain(session.path)}")


def _ask(session: Session, lines: list[str]) -> str:
    """Show a transcript until a key answers; keep the label, and return the key."""
    height = max(shutil.get_terminal_size().lines - _AROUND, 5)
    pages = range(0, max(len(lines), 1), height)
    page, note = 0, ""
    while True:
        click.clear()
        start = pages[page]
        print("\n".join(lines[start : start + height]))
        place = f"page {page + 1} of {len(pages)}"
        print(f"\n{place}. {plain(session.question)}\n{KEYS}")
        if note:
            print(f"note: {plain(note)}")
        key = _key()
        if key in _LABELS:
            session.save(_LABELS[key], note)
            return key
        if key in ("q", "s"):
            return key
        if key == "m":
            note = _line()
        elif key == "b":
            page = max(page - 1, 0)
        elif key in (" ", "\r", "\n"):
            page = min(page + 1, len(pages) - 1)


def _key() -> str:
    """Wait for a key; `q` at the end of the input. Keys that were typed ahead count."""
    if not sys.stdin.isatty():
        return sys.stdin.read(1) or "q"
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    try:
        tty.setcbreak(handle, termios.TCSADRAIN)
        return sys.stdin.read(1) or "q"
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def _line() -> str:
    """Wait for a line; empty at the end of the input."""
    print("note: ", end="", flush=True)
    return sys.stdin.readline().strip()


def describe_judges(comparison: Comparison, *, everything: bool = False) -> str:
    """Format what labels show of judges: sentences, rates, precision and recall, models, what to label next."""
    table = judge_table(comparison)
    lines = [plain(finding_text(finding)) for finding in findings(comparison)]
    judges = _rate_rows(table)
    models = _rate_rows(model_table(comparison))
    found = []
    both = precision_recall(*verdicts_and_labels(comparison))
    for row, name in zip(both.to_dict("records"), group_names(both["judge"]), strict=True):
        cells = {"judge": name, "labels": str(row["n"])}
        for what in ("precision", "recall"):
            bounds = (row[f"{what}_{end}"] for end in ("estimate", "low", "high"))
            cells[f"{what}{INTERVAL}"] = format_interval(*bounds)
        found.append(cells)
    best = first_judge(table)
    following = next_units(comparison, best)
    of_models = [f"{count} of {plain(name)}" for name, count in following["model_name"].value_counts().items()]
    hints = []
    if of_models:
        hints = [f"To narrow the models' intervals most, label next: {listed(of_models, 4)} (--next FILE lists them)."]
    parts = [
        Part("sentences", lines, always=True),
        Part("judges", rows=judges),
        Part("models", rows=models, left=2),
        Part("precision and recall", rows=found),
        Part("what to label next", hints),
    ]
    return on_screen(parts, everything=everything)


def _rate_rows(table: pd.DataFrame) -> list[dict[str, str]]:
    """Format the rows of `judge_table` or `model_table` as cells by header."""
    names = {name: group_names(table[name]) for name in ("judge", "model_name") if name in table}
    rows = []
    for place, row in enumerate(table.to_dict("records")):
        cells = {name.removesuffix("_name"): own[place] for name, own in names.items()}
        cells["alone"] = format_interval(row["raw"], None, None)
        cells[f"corrected{INTERVAL}"] = format_interval(row["estimate"], row["low"], row["high"])
        cells["labels"] = str(row["n"])
        if "agreement" in row:
            kappa = row["agreement"], row["agreement_low"], row["agreement_high"]
            cells["kappa"] = format_interval(*kappa, percent=False)
        rows.append(cells)
    return rows
