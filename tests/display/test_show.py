"""What notebooks show: escaped, with n and interval, and passed on to the page and the index."""

import json
import math
import re

import html5lib
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit import display
from evalkit._text import Part, fill, listed, listed_parts
from evalkit.display.show import FIGURE, FINDINGS, HEADLINE, HIDDEN, TABLE
from evalkit.display.tables import linked_parts, table_html
from evalkit.io import plain
from evalkit.kinds import Finding
from evalkit.stats import proportion_interval

HOSTILE = '<script>alert(1)</script> $x$ \x1b[31m \u202e "quoted" & <img src=x onerror=y>'
NAN = math.nan


def page_of(shown) -> str:
    return shown[-1][0]["text/html"]


def cells(page) -> list[str]:
    """The texts of a table from its head on: its summary says what it is, and how many rows it has."""
    return page.texts[page.texts.index(next(text for text in page.texts if re.fullmatch(r"[\d,]+ rows?", text))) + 1 :]


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        (  # estimates stand in one column with their interval
            {"model": ["a", "b"], "n": [10, 0], "estimate": [0.5, NAN], "low": [0.25, NAN], "high": [0.75, NAN]},
            {},
            ["model", "runs", "success rate [95\u00a0%]", "a", "10", "50 % [25, 75]", "b", "0", "–"],
        ),
        (  # what holds nothing is left out
            {"estimate": [0.5], "cost": [NAN], "error": [""]},
            {"estimate": "share of runs"},
            ["share of runs", "0.500"],
        ),
        (  # how estimates were made stands below, what rows differ in stands in notes
            {"n": [3, 4], "method": ["wilson"] * 2, "target": ["new tasks"] * 2, "warning": ["few", ""]},
            {},
            ["runs", "notes", "3", "few", "4", "Method: Wilson interval. Target: new tasks like these."],
        ),
        (
            {"n": [3, 4], "method": ["wilson", "t"], "warning": ["few", "few"]},
            {"counted": "steps"},
            ["steps", "3", "4", "Method: Wilson interval, Student's t. Warning: few."],
        ),
        (  # statuses, flags and columns have the labels of their kind
            {"overall_completion_status": ["NO_SCORE_LOGGED", "NEW"], "flag": ["stale_copy", "new_flag"]},
            {},
            ["how it ended", "flag", "no score logged", "copy of another run's log", "NEW", "new_flag"],
        ),
        ({"truncated_a": ["x"], "model_b": ["y"]}, {}, ["result cut, a", "model b", "x", "y"]),
        ({"source": ["/logs/a/1", "/logs/b/2"]}, {}, ["a/1", "b/2", "Paths are relative to /logs."]),
        ({"source": ["s3://l/a/1", "s3://l/b/2"]}, {}, ["a/1", "b/2", "Paths are relative to s3://l."]),
        (  # folders that Claude Code names after a person's
            {"source": ["/x/-home-ann-t/1", "/x/-other/2"]},
            {},
            ["project-45648a/1", "project-6f1339/2", "Paths are relative to /x."],
        ),
        ({"source": ["/x/-other/1", "/x/-other/2"]}, {}, ["1", "2", "Paths are relative to /x/project-6f1339."]),
        ({"source": ["/logs/1.json", None]}, {}, ["/logs/1.json", "–"]),
        ({"x": range(5)}, {"rows": 3}, ["x", "0", "1", "2", "2 more rows are not shown: rows=5 shows them."]),
        ({"x": pd.Series([True, np.False_, None, pd.NA, ["a", "b"], 12], dtype="object")}, {},
         ["x", "yes", "no", "–", "–", "a, b", "12"]),
        ({"n": pd.array([12345, None], dtype="Int64"), "seed": [12345, 7], "task_id": ["12345", "t"]}, {},
         ["runs", "seed", "task", "12,345", "12345", "12345", "–", "7", "t"]),
        ({"x": [0.12345, NAN], "p_value": [0.0001, 0.02]}, {}, ["x", "p", "0.123", "< 0.001", "–", "0.020"]),
        ({"estimate": [0.52], "low": [0.21], "high": [0.72], "none_estimate": [0.6], "none_low": [0.5],
          "none_high": [0.7]}, {"estimate": "drop", "unit": "points"},
         ["drop [95\xa0%]", "without blocked agents [95\xa0%]", "52 points [21, 72]", "60 % [50, 70]"]),
        ({"cost": [0.0179, 0.00032, 1e-17]}, {}, ["cost", "0.018", "0.00032", "0.000"]),
        ({"cost": [0.00123, 0.0], "y": [0.5, 1.5]}, {"digits": 2}, ["cost", "y", "0.0012", "0.50", "0.0000", "1.50"]),
    ],
)  # fmt: skip
def test_a_table_is_written_for_readers(shown, tags, columns, options, expected):
    display.show_table(pd.DataFrame(columns), **options)
    found = cells(tags(page_of(shown)))
    assert found == expected or found[1:] == expected  # the head of sources is not repeated above


def test_cells_heads_captions_texts_and_details_are_escaped(shown, tags):
    display.show_table(pd.DataFrame({HOSTILE: [HOSTILE], "items": [[HOSTILE]], "map": [{"a": HOSTILE}]}), HOSTILE)
    display.show_text(f"one\n{HOSTILE}")
    display.show_details(HOSTILE, f"one\n{HOSTILE}")
    display.show_findings([Finding("", "a", {"x": HOSTILE}, template="{x}")])
    for data, _ in shown:
        page = tags(data["text/html"])
        assert not {"script", "img", "i"} & set(page.tags)
        assert "<script>" in "".join(page.texts)
        assert not {"\x1b", "\u202e"} & set(data["text/html"] + data["text/plain"])


def test_details_without_text_show_nothing(shown):
    display.show_details("Every pair in words", "")
    assert not shown


@pytest.mark.parametrize("href", ["runs/m-1.html#turn-3", "javascript:alert(1)", "//example.org", None])
def test_a_row_knows_its_run_and_leads_to_pages_of_the_site_only(shown, href):
    display.show_table(pd.DataFrame({"task_id": ["a"], "run_id": ['m-1"><b>'], "href": [href]}))
    page = page_of(shown)
    assert '<tr data-run="m-1&#34;&gt;&lt;b&gt;">' in page
    assert ('<a href="runs/m-1.html#turn-3">a</a>' in page) == ("<a " in page) == (href == "runs/m-1.html#turn-3")


def test_what_holds_nothing_is_not_shown(shown):
    display.show_table(pd.DataFrame({"source": pd.Series([], dtype="str")}))
    display.show_text("\n")
    assert shown == []
    display.show_figure(display.nothing_to_draw(), name="runs")
    assert shown == [({FIGURE: {}, "text/plain": ""}, {HIDDEN: True})]


@pytest.mark.parametrize(("n", "folded"), [(4, 0), (6, 2)])
def test_a_page_begins_with_four_findings_and_folds_the_others(n, folded, shown):
    display.show_findings([Finding("", "", {"i": i}, template="finding {i}") for i in range(n)])
    first, *rest = page_of(shown).split("<details>")
    assert first.count("<li>") == 4
    assert [one.count("<li>") for one in rest] == [folded] * bool(folded)
    assert len(shown[-1][0][FINDINGS]) == n


@pytest.mark.parametrize(
    ("estimate", "text"), [(proportion_interval(12, 20), "60 % ["), ({"estimate": NAN, "low": NAN, "n": 0}, "–")]
)
def test_a_headline_is_shown_and_passed_on(shown, estimate, text):
    display.headline(estimate, "success rate of <b>")
    ((data, _),) = shown
    assert data[HEADLINE]["text"].startswith(text)
    assert "<b>" not in data["text/html"]
    assert ("n = 20" in data["text/html"]) == (text != "–")
    json.dumps(data[HEADLINE], allow_nan=False)


def test_tables_are_published_whole_as_csv_under_a_name_that_stays_in_its_folder(shown):
    display.publish(**{"my_table-1": pd.DataFrame({"a": ["é", None], "b": [1, 2]})})
    display.show_table(pd.DataFrame({"a": [1, 2, 3]}), rows=2, name="numbers")
    ((data, metadata), (own, _), (seen, _)) = shown
    assert data[TABLE] == {"name": "my_table-1", "csv": "a,b\né,1\n,2\n", "rows": 2}
    assert (data["text/plain"], metadata[HIDDEN]) == ("", True)  # a file that was not written is not named
    assert (own[TABLE]["csv"], TABLE in seen) == ("a\n1\n2\n3\n", False)
    display.show_table(pd.DataFrame({"estimate": [0.25]}), estimate="share of stops", name="stops")
    assert shown[-2][0][TABLE]["csv"] == "estimate,measure\n0.25,share of stops\n"
    display.show_table(pd.DataFrame({"estimate": [0.25], "measure": "of stops"}), estimate="share", name="stops")
    assert shown[-2][0][TABLE]["csv"] == "estimate,measure\n0.25,of stops\n"
    assert "of stops" not in shown[-1][0]["text/plain"]
    for name in ("", "../x", "a b", "a.csv", "é"):
        with pytest.raises(ValueError, match="name"):
            display.publish(**{name: pd.DataFrame()})


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters()))
def test_no_text_becomes_markup(shown, tags, text):
    display.show_table(pd.DataFrame({"x": pd.Series([text], dtype="object")}), text)
    display.show_details(text, text)
    display.show_text(text)
    allowed = {"div", "table", "span", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre", "p"}
    for data, _ in shown:
        assert set(tags(data["text/html"]).tags) <= allowed
        data["text/html"].encode("utf-8")
    shown.clear()


def test_an_answer_stands_where_no_model_has_an_estimate():
    table = pd.DataFrame({"model_name": ["a"], "n": [1], "estimate": [NAN], "low": [NAN], "high": [NAN]})
    form = {"digits": 2, "percent": True, "rows": 9, "estimate": "", "counted": "runs"}
    assert "a" in table_html(table, "", bars=True, **form)[1]


@pytest.mark.parametrize(
    "labels",
    [
        ["out (1)", "timed out (1)", "lost (2)"],  # a label that is a part of another one
        ["timed out", "timed out", "and"],  # equal labels, and one that is in the sentence
        ["{}", "{0}", "{text}", "%s", "{{", "\x00"],  # what looks like a field of a template
        [HOSTILE, "<a href='#0'>x</a>", "&lt;"],
        ["two\nlines", "a\r\nb", "\u2028", " "],
        ["Reasons: ", ", ", "."],
    ],
)  # fmt: skip
def test_each_part_of_a_sentence_keeps_its_link_whatever_its_text(shown, labels):
    parts = [Part(label, number) for number, label in enumerate(labels)]
    texts = [*labels[:3], f"{len(labels) - 3} more"] if len(labels) > 3 else labels
    finding = Finding(
        "reasons",
        "",
        {"parts": parts},
        template=lambda parts: fill("Reasons: {}; {}, {}.", listed_parts(parts, 3), parts[0], "{} as text"),
        links={number: f"#{number}" for number in range(len(labels))},
    )
    display.show_findings([finding])
    page = html5lib.parse(page_of(shown), namespaceHTMLElements=False)
    found = [("".join(link.itertext()), link.get("href")) for link in page.iter("a")]
    assert found == [(plain(labels[n]), f"#{n}") for n in (*range(min(len(labels), 3)), 0)]
    sentence = f"Reasons: {listed(texts)}; {labels[0]}, {{}} as text."
    assert display.finding_text(finding) == sentence
    assert "".join(page.find(".//li").itertext()) == plain(sentence)


def test_a_credential_that_extends_over_parts_of_a_sentence_is_masked():
    parts = fill("AWS_SECRET_ACCESS_KEY={}", Part("abcdefghijklmnopqrstuvwxyz0123456789ABCD", "key"))
    assert linked_parts(parts, {"key": "#a"}) == [("AWS_SECRET_ACCESS_KEY=…", "")]


@pytest.mark.parametrize("href", ["javascript:alert(1)", "//example.org", {"leading_mode": "x"}, None, ""])
def test_a_part_without_a_local_address_is_text(href):
    assert linked_parts(fill("{}", Part("a", "key")), {"key": href}) == [("a", "")]
