"""Label transcripts in a terminal, page by page, with one key per answer; format the evaluation of judges."""

import shutil
import sys

import click
import pandas as pd

from evalkit._text import counted_noun, listed
from evalkit.display.terminal import INTERVAL, Part, column_title, group_names, on_screen
from evalkit.display.words import finding_text
from evalkit.io import SourceError, plain
from evalkit.labels.judges import (
    Comparison,
    findings,
    first_judge,
    intervals,
    judge_table,
    label_plan,
    model_table,
    next_units,
    precision_recall,
    verdicts_and_labels,
)
from evalkit.labels.session import ANSWERS, Session

try:
    import termios
    import tty
except ImportError:  # on Windows, users press Enter after a key
    HAS_KEYS = False
else:
    HAS_KEYS = True

KEYS = "y yes, n no, u undecided, s later, space next page, b back, m note, q stop"
_LABELS = {name[0]: label for name, label in ANSWERS.items()}
_AROUND = 6  # lines of a page that are not part of the transcript


def label_in_terminal(session: Session) -> None:
    """Ask for the label of each remaining unit, until all are labelled, the user presses `q`, or input ends."""
    key = ""
    while session.left and key != "q":
        try:
            lines = session.transcript(session.left[0]).text().splitlines()
        except SourceError as error:
            lines = [plain(f"can't be read: {error}")]
        key = _ask(session, lines)
    print(f"{counted_noun(session.done, 'label')} of {session.total} in {plain(session.path)}")


def _ask(session: Session, lines: list[str]) -> str:
    """Show a transcript until the user labels it, postpones it or quits, and return the last key."""
    width, lines_of_screen = shutil.get_terminal_size()
    lines = [line[at : at + width] for line in lines for at in range(0, max(len(line), 1), width)]
    height = max(lines_of_screen - _AROUND, 5)
    last = max(len(lines) - 1, 0) // height
    page, note = 0, ""
    while True:
        click.clear()
        print("\n".join(lines[page * height : (page + 1) * height]))
        print(f"\npage {page + 1} of {last + 1}. {plain(session.question)}\n{KEYS}")
        if note:
            print(f"note: {plain(note)}")
        key = _key()
        if key in _LABELS:
            session.save(_LABELS[key], note)
            return key
        if key == "s":
            session.put_off()
            return key
        if key == "q":
            return key
        if key == "m":
            print("note: ", end="", flush=True)
            note = sys.stdin.readline().strip()
        elif key == "b":
            page = max(page - 1, 0)
        elif key in (" ", "\r", "\n"):
            page = min(page + 1, last)


def _key() -> str:
    """Return the next key, including keys typed ahead, or `q` at the end of the input."""
    if not sys.stdin.isatty():
        return sys.stdin.read(1).lower() or "q"
    if not HAS_KEYS:
        line = sys.stdin.readline()
        return line.strip()[:1].lower() or (" " if line else "q")
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    try:
        tty.setcbreak(handle, termios.TCSADRAIN)
        key = sys.stdin.read(1).lower() or "q"
        if key == "\x1b" and sys.stdin.read(1) in ("[", "O"):  # skip arrow and function keys, which end with a letter
            following = sys.stdin.read(1)
            while following and following in "[;0123456789":
                following = sys.stdin.read(1)
        return key
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def describe_judges(comparison: Comparison, *, everything: bool = False) -> str:
    """Format the evaluation of judges: findings, rates, models, precision and recall, and what to label next."""
    lines = [plain(finding_text(finding)) for finding in findings(comparison)]
    table = judge_table(comparison)
    judges = _rates(table)
    judges["kappa"] = intervals(table, "agreement_estimate", "agreement_low", "agreement_high", percent=False)
    both = precision_recall(*verdicts_and_labels(comparison))
    found = {"judge": group_names(both["judge"]), "labels": [str(n) for n in both["n"]]}
    for name in ("precision", "recall"):
        found[f"{name}{INTERVAL}"] = intervals(both, f"{name}_estimate", f"{name}_low", f"{name}_high")
    best = first_judge(table)
    following = next_units(comparison, best)["model_name"].value_counts()
    hints = []
    plan = label_plan(comparison, best, more=()).query("more > 0")
    if len(plan):
        needed = [f"{more:.0f} for ± {100 * half:.0f}" for more, half in plan.itertuples(index=False)]
        hints.append(f"More labels that narrow the interval of {plain(best)}: {listed(needed)}.")
    if len(following):
        of_models = listed([f"{count} of {plain(name)}" for name, count in following.items()], 4)
        hints.append(f"To narrow the models' intervals most, label next: {of_models} (--next FILE lists them).")
    parts = [
        Part("sentences", lines, always=True),
        Part("judges", rows=_rows(judges)),
        Part("models", rows=_rows(_rates(model_table(comparison))), left=2),
        Part("precision and recall", rows=_rows(found)),
        Part("what to label next", hints),
    ]
    return on_screen(parts, everything=everything)


def _rates(table: pd.DataFrame) -> dict[str, list[str]]:
    """Format `judge_table` or `model_table` as a mapping from titles to columns of text."""
    shown = {column_title(name): group_names(table[name]) for name in ("judge", "model_name") if name in table}
    shown["alone"] = intervals(table, "raw")
    shown[f"corrected{INTERVAL}"] = intervals(table, "estimate", "low", "high")
    shown["labels"] = [str(n) for n in table["n"]]
    return shown


def _rows(columns: dict[str, list[str]]) -> list[dict[str, str]]:
    """Convert columns of text to rows."""
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
