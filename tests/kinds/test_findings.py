"""Sentences that reports of all kinds begin with."""

import pandas as pd
import pytest

from evalkit._words import counted_noun
from evalkit.display import text_of
from evalkit.kinds import data_finding, endings_finding


@pytest.mark.parametrize(
    ("n", "noun", "text"),
    [(0, "run", "0 runs"), (1, "run", "1 run"), (1200, "file", "1,200 files"), (2, "history", "2 histories"),
     (3, "way", "3 ways")],
)  # fmt: skip
def test_a_count_has_its_noun(n, noun, text):
    assert counted_noun(n, noun) == text


@pytest.mark.parametrize(
    ("endings", "n", "text"),
    [
        ({}, 7, "None of 7 runs failed."),
        ({"timed out": 1, "a score of zero": 3, "no score logged": 1}, 9,
         "5 of 9 runs did not succeed: a score of zero (3), no score logged (1), timed out (1)."),
    ],
)  # fmt: skip
def test_the_most_frequent_way_to_fail_comes_first(endings, n, text):
    assert text_of(endings_finding(endings, n, "run", "x")) == text


def _ledger(*statuses):
    return pd.DataFrame({"status": list(statuses)})


@pytest.mark.parametrize(
    ("flags", "ledger", "text"),
    [
        ({"a": [False, False]}, _ledger("used", "used"), "No run carries a flag; all 2 files were used."),
        ({"a": [False, False]}, _ledger("used"), "No run carries a flag; the one file was used."),
        ({"a_b": [True, False]}, _ledger("used", "failed"),
         "1 of 2 runs carries a flag: a b (1); of 2 files, 1 could not be read."),
        ({"a": [True, True], "b": [True, False], "c": [False, True], "d": [True, False]},
         _ledger("skipped", "skipped", "failed"),
         "2 of 2 runs carry a flag: b (1), c (1), d (1); "
         "of 3 files, 1 could not be read and 2 skipped. Every run carries the flag a."),
    ],
)  # fmt: skip
def test_what_is_doubtful_is_counted(flags, ledger, text):
    runs = pd.DataFrame({f"flag_{name}": values for name, values in flags.items()})
    assert text_of(data_finding(runs, dict.fromkeys(flags, ""), ledger, "run")) == text
