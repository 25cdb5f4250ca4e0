"""What the table of a growing source says of rates that are looked at again and again."""

import re

from evalkit.kinds.terminal import any_look_lines
from tests.compare.runs import runs_of


def test_while_following_rates_and_differences_hold_at_every_look():
    wins = {"strong": 27, "weak": 3, "also weak": 5}
    runs = runs_of([(m, f"t{t}", t * 7 % 30 < n) for m, n in wins.items() for t in range(30)])
    text = " ".join(any_look_lines(runs, 60))
    assert "strong is ahead of weak" in text
    assert "weak is ahead of also weak" not in text
    assert "also weak is ahead" not in text
    for model in wins:
        low, high = map(int, re.search(rf"[:;] {model} \[(\d+), (\d+)\]", text).groups())
        assert low < 100 * wins[model] / 30 < high
        assert high - low > 20  # wider than an interval that may be looked at once
    assert max(map(len, any_look_lines(runs, 60))) <= 60
    many = runs_of([(f"m{m}", f"t{t}", m < 3) for m in range(6) for t in range(40)])
    assert any_look_lines(many, 60) == ["9 of 15 pairs of models differ, however often one looks"]
    assert any_look_lines(runs.iloc[:0], 60) == any_look_lines(runs_of([("m", "t", 7.5)], kind="crafter"), 60) == []
