"""What the original scripts would have read in the same logs."""

import pytest

from evalkit.mindcraft import legacy_summary, runs_df
from tests.mindcraft.builders import SCORE, log, task, write_all

# a score as JavaScript writes it: what it begins with says success, failure or nothing
DIGITS = [
    ("1", 1), ("0", 0), ("1.0", 1), ("0.85", 0), ("0.3", 0), ("0.1", 0), ("0.00001", 0), ("0.000001", 0),
    ("9.5e-7", 0), ("1e-7", 1), ("1.5e-8", 1), ("2e-7", 0), ("5e-324", 0), ("-0", 0), ("0.9999999999999999", 0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "success"), DIGITS)
def test_scores_are_read_by_the_digit_their_text_begins_with(tmp_path, text, success):
    write_all(tmp_path, {"exp/craft/Andy_0_0.json": log(f"{SCORE}{text}")})
    totals = legacy_summary(runs_df(tmp_path, {"craft": task("techtree")})).totals
    (crafting,) = totals[totals["script"] == "crafting"].to_dict("records")
    assert (crafting["their_n"], crafting["their_rate"]) == (1, success)
