"""docs/mindcraft.md holds every column and flag of the code; ``python -m tests.mindcraft.test_docs`` writes them."""

import re
from pathlib import Path

from evalkit import mindcraft
from evalkit.mindcraft import CompletionStatus, analysis
from evalkit.mindcraft.table import AGENTS, FLAGS, FLAGS_OF_LOGS, LAZY_TABLES, RUNS

PATH = Path(__file__).parents[2] / "docs/mindcraft.md"
KINDS = {"str": "text", "category": "text", "name": "text", "int": "whole number", "int?": "whole number?",
         "float": "number", "bool": "truth value", "bool?": "truth value?", "list": "list", "time": "time"}  # fmt: skip


def _rows(*rows: tuple) -> str:
    head, *rest = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rest))


def _columns(columns) -> str:
    head = ("column", "kind", "unit", "meaning")
    return _rows(head, *((f"`{c.name}`", KINDS[c.dtype], c.unit, c.meaning) for c in columns))


TABLES = {
    "flags": _rows(
        ("flag", "of", "meaning"),
        *((f"`{name}`", "logs and runs" if name in FLAGS_OF_LOGS else "runs", text) for name, text in FLAGS.items()),
    ),
    "runs": _columns(RUNS),
    "agents": _columns(AGENTS),
    **{name: _columns([c for c in columns if c not in AGENTS]) for name, columns in LAZY_TABLES.items()},
}


def with_tables(text: str) -> str:
    """Put the tables between their marks."""
    for name, table in TABLES.items():
        marks = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text = re.sub(marks, lambda m, t=table: f"{m[1]}{t}\n{m[2]}", text, flags=re.DOTALL)
    return text


def test_the_tables_of_columns_and_flags_are_those_of_the_code():
    text = PATH.read_text(encoding="utf-8")
    assert with_tables(text) == text


def test_every_status_is_explained_and_every_analysis_that_is_named_is_there():
    text = PATH.read_text(encoding="utf-8")
    assert [status for status in CompletionStatus if f"| {status} | " not in text] == []
    for name in re.findall(r"`analysis\.(\w+)", text):
        assert hasattr(analysis, name), name
    for name in re.findall(r"`(load|aggregate_\w+|extract_\w+|analyze_\w+)\(?", text.partition("| there")[0]):
        assert hasattr(mindcraft, name), name


if __name__ == "__main__":
    PATH.write_text(with_tables(PATH.read_text(encoding="utf-8")), encoding="utf-8")
