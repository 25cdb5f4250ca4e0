"""The methods paragraph describes what a comparison used, and cites it."""

from pathlib import Path

import pytest

from evalkit import compare
from evalkit.compare.methods import REFERENCES
from tests.compare.runs import reached, runs_of

WINS = reached("a", [True] * 8 + [False] * 4) + reached("b", [True] * 3 + [False] * 9)
OTHERS = reached("a", [True, False, True], "xyz") + reached("b", [False] * 3, "uvw")
SCORES = reached("a", [3.0, 5.0, 4.0]) + reached("b", [1.0, 2.0, 7.0])


@pytest.mark.parametrize(
    ("rows", "included", "left_out"),
    [
        (WINS, ["success rates", "McNemar 1947", "Wilson 1927"], ["max-T", "Lipták", "not measured", "seeds"]),
        (WINS + reached("c", [True] * 12), ["all 3 pairs", "Romano and Wolf 2005"], ["Lipták"]),
        (WINS + OTHERS, ["Lipták 1958"], ["max-T"]),
        (WINS + reached("b", [None], ["late"]), ["1 of 25 runs were not measured"], []),
        (SCORES, ["mean scores", "Student's t", "Hall 1992"], ["Wilson", "McNemar"]),
        (reached("a", [True, False]), ["Wilson 1927"], ["pair"]),
        (reached("a", [7.0]), ["We report mean scores. Tasks"], ["ntervals", "Hall"]),
    ],
)
def test_only_methods_that_were_used_are_described_and_cited(rows, included, left_out):
    kind = "crafter" if isinstance(rows[0][2], float) else "mindcraft"
    paragraph, *references = compare.methods_text(compare.leaderboard(runs_of(rows, kind))).split("\n")
    assert [text for text in included if text not in paragraph] == []
    assert [text for text in left_out if text in paragraph] == []
    assert references == [full for citation, full in REFERENCES.items() if citation in paragraph]


def test_without_an_estimate_there_are_no_methods():
    nothing = reached("a", [None] * 3) + reached("b", [None] * 2)
    assert compare.methods_text(compare.leaderboard(runs_of(nothing, "crafter"))) == ""


def test_references_are_those_of_the_page_on_statistics():
    page = (Path(__file__).parents[2] / "docs/statistics.md").read_text("utf-8").replace("*", "")
    assert [full for full in REFERENCES.values() if full not in page] == []
