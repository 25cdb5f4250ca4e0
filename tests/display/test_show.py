"""What notebooks show: escaped, with alt text, with n and interval."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit import display
from evalkit.display.show import FIGURE, FINDINGS, HEADLINE, HIDDEN, TABLE
from evalkit.display.words import format_interval
from evalkit.stats import proportion_interval

HOSTILE = '<script>alert(1)</script> $x$ \x1b[31m \u202e "quoted" & <img src=x onerror=y>'


@pytest.mark.parametrize(
    ("estimate", "low", "high", "options", "text"),
    [
        (0.63, 0.52, 0.73, {}, "63 % [52, 73]"),
        (0.0, 0.0, 0.04, {}, "0 % [0, 4]"),
        (1.0, 0.9, 1.0, {}, "100 % [90, 100]"),
        (0.025, 0.011, 0.06, {}, "2.5 % [1.1, 6.0]"),
        (0.5, math.nan, math.nan, {}, "50 %"),
        (0.5, None, 0.6, {}, "50 %"),
        (math.nan, 0.1, 0.2, {}, "–"),
        (None, None, None, {}, "–"),
        (pd.NA, pd.NA, pd.NA, {}, "–"),
        (1.25, 0.8, 1.7, {"percent": False}, "1.25 [0.80, 1.70]"),
        (np.float64(2), np.float64(1), np.int64(3), {"percent": False, "digits": 1}, "2.0 [1.0, 3.0]"),
        (-0.2, -0.3, -0.1, {}, "-20 % [-30, -10]"),
    ],
)
def test_an_estimate_is_written_with_its_interval(estimate, low, high, options, text):
    assert format_interval(estimate, low, high, **options) == text


def table_page(shown) -> str:
    return shown[-1][0]["text/html"]


def cells(page) -> list[str]:
    """The texts of a table from its head on: its summary says what it is, and how many rows it has."""
    return page.texts[page.texts.index(next(text for text in page.texts if re.fullmatch(r"[\d,]+ rows?", text))) + 1 :]


def test_cells_headers_and_captions_are_escaped(shown, tags):
    display.show_table(pd.DataFrame({HOSTILE: [HOSTILE], "items": [[HOSTILE]], "map": [{"a": HOSTILE}]}), HOSTILE)
    page = tags(table_page(shown))
    assert not {"script", "img"} & set(page.tags)
    assert sum("<script>" in text for text in page.texts) == 5
    assert HOSTILE not in table_page(shown)
    for kind in ("text/html", "text/plain"):
        assert not {"\x1b", "\u202e"} & set(shown[0][0][kind])


def test_texts_and_details_are_escaped(shown, tags):
    display.show_text(f"one\n{HOSTILE}")
    display.show_details(HOSTILE, f"one\n{HOSTILE}")
    for data, _ in shown:
        page = tags(data["text/html"])
        assert set(page.tags) <= {"p", "details", "summary", "pre"}
        assert "one\n<script>" in "".join(page.texts)
        assert not {"\x1b", "\u202e"} & set(data["text/html"] + data["text/plain"])


def test_estimates_stand_in_one_column_with_their_interval(shown, tags):
    table = pd.DataFrame({"model": ["a", "b"], "n": [10, 0], "estimate": [0.5, math.nan]})
    display.show_table(table.assign(low=[0.25, math.nan], high=[0.75, math.nan]))
    texts = cells(tags(table_page(shown)))
    assert texts == ["model", "runs", "success rate [95\u00a0%]", "a", "10", "50 % [25, 75]", "b", "0", "–"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "yes"),
        (np.False_, "no"),
        (None, "–"),
        (math.nan, "–"),
        (pd.NA, "–"),
        (0.12345, "0.123"),
        (["a", "b"], "a, b"),
        (12, "12"),
    ],
)
def test_values_are_written_for_readers(shown, tags, value, text):
    display.show_table(pd.DataFrame({"x": pd.Series([value, "other"], dtype="object")}))
    assert cells(tags(table_page(shown)))[1] == text


def test_texts_stand_on_the_left_in_every_front_end_and_numbers_on_the_right(shown):
    display.show_table(pd.DataFrame({"name": ["a"], "n": [1]}))
    page = table_page(shown)
    assert re.findall(r"<t[hd](?: [^>]*)?>", page) == [
        '<th scope="col" style="text-align:left" data-column="name">',
        '<th scope="col" class="number" data-column="n">',
        '<td style="text-align:left">', '<td class="number">',
    ]  # fmt: skip


def test_a_long_table_says_how_much_it_leaves_out(shown):
    display.show_table(pd.DataFrame({"x": range(5)}), rows=3)
    assert "2 more rows are not shown." in table_page(shown)
    assert "2 more rows are not shown." in shown[0][0]["text/plain"]


@pytest.mark.parametrize(
    ("sources", "expected", "folder"),
    [
        (["/logs/a/1.json", "/logs/b/2.json"], ["a/1.json", "b/2.json"], "/logs"),
        (["/logs/a/1.json"], ["1.json"], "/logs/a"),
        (["logs/a/1.json", "logs/a/2.json"], ["1.json", "2.json"], "logs/a"),
        (["1.json", "a/2.json"], ["1.json", "a/2.json"], ""),
        (["s3://logs/a/1.json", "s3://logs/b/2.json"], ["a/1.json", "b/2.json"], "s3://logs"),
        (["/logs/1.json", None], ["/logs/1.json", "–"], ""),
    ],
)
def test_sources_are_shortened_and_their_folder_is_named(shown, tags, sources, expected, folder):
    display.show_table(pd.DataFrame({"source": sources}))
    texts = cells(tags(table_page(shown)))
    assert texts[1 : 1 + len(expected)] == expected
    assert texts[1 + len(expected) :] == ([f"Sources lie in {folder}"] if folder else [])


def test_what_holds_nothing_is_left_out(shown):
    display.show_table(pd.DataFrame({"source": pd.Series([], dtype="str"), "n": pd.Series([], dtype="int64")}))
    display.show_text("\n")
    display.show_details("runs", [])
    assert shown == []


def test_a_figure_with_nothing_to_draw_is_hidden_and_known_as_a_figure(shown):
    display.show_figure(display.nothing_to_draw(), alt="no runs", name="runs")
    ((data, metadata),) = shown
    assert (data, metadata) == ({FIGURE: {}, "text/plain": ""}, {HIDDEN: True})


def test_how_estimates_were_made_stands_below_and_what_rows_differ_in_stands_in_notes(shown, tags):
    table = pd.DataFrame({"n": [3, 4], "method": ["wilson"] * 2, "target": ["new tasks"] * 2, "warning": ["few", ""]})
    display.show_table(table)
    texts = cells(tags(table_page(shown)))
    assert texts == ["runs", "notes", "3", "few", "4", "Method: wilson. Target: new tasks like these."]
    shown.clear()
    display.show_table(table.assign(method=["wilson", "t"], warning="few"))
    assert cells(tags(table_page(shown)))[-1] == "Method: wilson, t. Target: new tasks like these. Warning: few."


def test_columns_without_any_value_and_the_estimate_under_a_second_name_are_left_out(shown, tags):
    table = pd.DataFrame({"estimate": [0.5], "success_rate": [0.5], "cost": [math.nan], "error": [""]})
    display.show_table(table, estimate="share of runs")
    assert cells(tags(table_page(shown))) == ["share of runs", "0.500"]


def test_statuses_and_flags_are_said_in_words(shown, tags):
    columns = {"overall_completion_status": ["NO_SCORE_LOGGED", "NEW"], "flag": ["stale_copy", "new_flag"]}
    display.show_table(pd.DataFrame(columns), counted="episodes")
    expected = ["how it ended", "flag", "no score logged", "copy of another run's log", "NEW", "new_flag"]
    assert cells(tags(table_page(shown))) == expected


@pytest.mark.parametrize("href", ["runs/m-1.html#turn-3", "javascript:alert(1)", "//example.org", None])
def test_a_row_knows_its_run_and_leads_to_pages_of_the_site_only(shown, href):
    display.show_table(pd.DataFrame({"task_id": ["a"], "run_id": ['m-1"><b>'], "href": [href]}))
    page = table_page(shown)
    assert '<tr data-run="m-1&quot;&gt;&lt;b&gt;">' in page
    assert ('<a href="runs/m-1.html#turn-3">a</a>' in page) == ("<a " in page) == (href == "runs/m-1.html#turn-3")
    assert "m-1" not in shown[0][0]["text/plain"]


def test_a_long_text_is_folded_under_its_beginning(shown, tags):
    display.show_table(pd.DataFrame({"text": ["word " * 100]}))
    assert "word " * 100 in cells(tags(table_page(shown)))
    assert "<summary>word" in table_page(shown)


def test_findings_lead_to_their_sections_and_are_handed_over(shown, tags):
    display.show_findings([(HOSTILE, "By <i> task"), "A sentence alone."])
    ((data, _),) = shown
    assert [one["section"] for one in data[FINDINGS]] == ["By <i> task", ""]
    page = tags(data["text/html"])
    assert page.tags == ["ul", "li", "a", "li"]
    assert 'href="#By-%3Ci%3E-task"' in data["text/html"]
    assert not {"\x1b", "\u202e"} & set(data["text/html"] + data["text/plain"] + json.dumps(data[FINDINGS]))


def test_a_caption_is_shown_by_front_ends_and_hidden_from_pages(shown):
    display.show_figure(display.new_axes(), alt="empty axes", caption="What <b> it shows")
    (_, _), (data, metadata) = shown
    assert "What &lt;b&gt; it shows" in data["text/html"]
    assert metadata[HIDDEN]


def test_a_headline_is_shown_and_handed_over(shown):
    display.headline(proportion_interval(12, 20), "success rate of <b>")
    ((data, _),) = shown
    handed = data[HEADLINE]
    assert handed["n"] == 20
    assert handed["estimate"] == pytest.approx(0.6)
    assert handed["text"].startswith("60 % [")
    assert "<b>" not in data["text/html"]
    assert "n = 20" in data["text/html"]
    json.dumps(handed)


def test_a_headline_without_data_says_so(shown):
    display.headline({"estimate": math.nan, "low": math.nan, "high": math.nan, "n": 0}, "success rate")
    handed = shown[0][0][HEADLINE]
    assert (handed["estimate"], handed["low"], handed["n"], handed["text"]) == (None, None, 0, "–")
    json.dumps(handed, allow_nan=False)


def test_a_table_is_handed_over_as_csv(shown):
    display.publish(pd.DataFrame({"a": ["é", None], "b": [1, 2]}), "my_table-1")
    ((data, metadata),) = shown
    assert data[TABLE] == {"name": "my_table-1", "csv": "a,b\né,1\n,2\n", "rows": 2}
    assert (data["text/plain"], metadata[HIDDEN]) == ("", True)  # a file that was not written is not named


@pytest.mark.parametrize("name", ["", "../x", "a b", "a.csv", "é", "a/b"])
def test_a_published_name_can_not_leave_its_folder(shown, name):
    with pytest.raises(ValueError, match="name"):
        display.publish(pd.DataFrame(), name)


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
