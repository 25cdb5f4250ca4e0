"""The ledger: every file once, with the entry that says most."""

import pytest

from evalkit.io import Ledger
from evalkit.io.ledger import LEDGER


def entries(ledger: Ledger) -> dict[str, tuple[str, str]]:
    return {entry.source: (entry.status, entry.reason) for entry in ledger.entries}


def test_an_empty_ledger_has_its_columns():
    table = Ledger().frame()
    assert list(table) == [column.name for column in LEDGER]
    assert table.dtypes.astype(str).tolist() == ["str"] * 3


def test_the_summary_counts_by_status():
    ledger = Ledger()
    ledger.used("a")
    ledger.used("b", "mended")
    ledger.skipped("c", "no log")
    ledger.failed("d", "broken")
    ledger.add("e", "failed", "broken too")
    assert ledger.summary() == "5 files: 2 used, 1 skipped, 2 failed"
    assert ledger.frame()["status"].tolist() == ["used", "used", "skipped", "failed", "failed"]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("skipped", "used", "used"),
        ("used", "skipped", "used"),
        ("failed", "used", "used"),
        ("skipped", "failed", "failed"),
        ("failed", "skipped", "failed"),
    ],
)
def test_a_file_in_two_ledgers_keeps_the_entry_that_says_most(first, second, kept):
    one, two = Ledger(), Ledger()
    one.add("x", first, first)
    two.add("./x", second, second)
    two.add("y", second, second)
    one.include(two)
    assert [(entry.status, entry.reason) for entry in one.entries] == [(kept, kept), (second, second)]
    assert entries(two) == {"./x": (second, second), "y": (second, second)}
