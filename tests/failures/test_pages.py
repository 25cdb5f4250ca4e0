"""What pages show of failures: marks on turns, and the main reason of each model."""

import json

import pandas as pd
import pytest

import evalkit
from evalkit import compare, failures
from evalkit.display import finding_text
from evalkit.display.show import REPORT, SORTING
from evalkit.evidence import RunRef, links, read_references
from evalkit.failures import answers
from evalkit.kinds import Transcript, Turn
from tests.browser import needs_browser, open_browser
from tests.reports.pages import Visit

TRANSCRIPT = Transcript("", [], [Turn("a", "user", "x"), Turn("a", "assistant", "y", ("final",))])


def test_marks_stand_on_their_turns_and_others_are_left_out():
    run = RunRef("r", "steps", [], "", [], [(2, "repeated call: 3"), (9, "no such turn")])
    assert [turn.marks for turn in run.on(TRANSCRIPT).turns] == [(), ("final", "repeated call: 3")]


def test_marks_of_several_reports_are_merged():
    one = RunRef("r", "steps", [], "", [], [(1, "a")])
    merged = one._replace(marks=[(1, "a"), (2, "b")]).merged(one)
    assert list(merged.marks) == [(1, "a"), (2, "b")]
    assert list(one._replace(marks=[]).merged(one).marks) == [(1, "a")]


def test_a_report_passes_the_marks_of_events_on(monkeypatch):
    monkeypatch.setenv("EVALKIT_REPORT", "1")
    logs = evalkit.load("samples:steps")
    evidence = evalkit.Evidence(logs, failures.with_modes(logs), "mode", "event")
    shown = []
    monkeypatch.setattr("evalkit.evidence.links.display", lambda data, **_: shown.append(data))
    monkeypatch.setattr("evalkit.evidence.links.has_run_pages", lambda: True)
    evidence.mark(failures.events(logs))
    evidence.show()
    data = next(value for one in shown for name, value in one.items() if "evidence" in name)
    pages, _ = read_references([data], "../failures.html")
    marks = {mark for [run] in pages.values() for _, mark in run.marks}
    assert "repeated call: 5" in marks


def _chats(n, failing):
    """Return rows of chats; some runs call a failing tool three times, whose errors have two causes."""
    rows = []
    for run in range(n):
        spoken = [{"role": "user", "content": f"Water plant {run % 5}."}]
        for turn in range(3):
            spoken.append({"role": "assistant", "content": "", "tool_calls": [{"name": "water", "arguments": "{}"}]})
            answer = "done" if run >= failing else ("Error: the tank is empty", "Error: no such plant")[run % 2]
            spoken.append({"role": "tool", "content": answer if run < failing else f"{answer} {turn}"})
        spoken.append({"role": "assistant", "content": "I tried."})
        rows.append({"task_id": f"t{run % 5}", "model": "ash", "success": run >= failing, "messages": spoken})
    return rows


browser = pytest.fixture(scope="module")(open_browser)


@pytest.fixture
def linked(monkeypatch, tmp_path):
    """Return a function that gives the evidence of chats, and the HTML that a report shows."""
    monkeypatch.setenv(REPORT, "1")
    shown = []
    for module in ("evalkit.evidence.links", "evalkit.display.show"):
        monkeypatch.setattr(f"{module}.display", lambda data, **_: shown.append(data.get("text/html", "")))

    def make(n, failing):
        (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, _chats(n, failing))))
        logs = evalkit.load(tmp_path / "chats.jsonl")
        columns = ("leading_mode", "mode", "event", "error_group")
        return logs, evalkit.Evidence(logs, failures.with_modes(logs), *columns), shown

    return make


@needs_browser
def test_a_link_from_a_count_shows_as_many_runs_as_it_counts(linked, browser, tmp_path):
    logs, evidence, shown = linked(30, 14)
    counts = []
    for table, by in ((failures.event_counts(logs), "event"), (failures.error_groups(logs), "error_group")):
        table = evidence.link_counts(table[table["runs"] > 0], by)
        links.show_runs(logs, table, percent=False)
        counts += zip(table["runs_href"], table["runs"], strict=True)
    of_types = evidence.link(failures.mode_shares(failures.modes(logs), "task_type"))
    compared = evidence.link(failures.contrast(logs))
    evidence.show()
    assert all("task_type" not in href for href in of_types["href"])  # no run has a type
    assert set(compared["href"]) <= {href for href, _ in counts}
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>x</title><body>{''.join(shown)}<script>{SORTING}</script>")
    assert [n for _, n in counts] == [14, 14, 14, 7, 7]
    with Visit(browser, page) as visit:
        for href, n in counts:
            visit.page.evaluate("href => { document.querySelector(`a[href='${href}']`).click(); }", href)
            visit.until(f"document.querySelector('.chosen')?.textContent.startsWith('{n} of 30 rows have ')")


def test_of_many_runs_the_table_has_some_of_each_group_that_a_table_counts(linked, monkeypatch):
    monkeypatch.setattr(links, "MOST_ROWS", 20)
    logs, evidence, shown = linked(90, 9)
    modes = failures.modes(logs)
    hrefs = [*evidence.link(failures.mode_shares(modes))["href"]]
    for table, by in ((failures.event_counts(logs), "event"), (failures.error_groups(logs), "error_group")):
        hrefs += evidence.link_counts(table[table["runs"] > 0], by)["runs_href"].tolist()
    assert "" not in hrefs
    evidence.show()
    page = "".join(shown)
    assert page.count("<tr data-run") == 20
    assert page.partition("<tbody>")[2].count("repeated call") == 9
    assert "20 of 90 runs, chosen evenly by model, status and main reason. Links may" in page


@needs_browser
def test_counts_of_main_reasons_link_to_their_runs(linked, browser, tmp_path):
    logs, evidence, shown = linked(30, 14)
    modes = failures.modes(logs)
    evalkit.show_answer(evidence.cite(failures.reasons(logs)), failures.mode_shares(modes, []))
    shares = failures.mode_shares(modes)
    table = evidence.link_counts(shares, "model_name", "mode", count="leading", mode="leading_mode")
    evalkit.show_table(table)
    board = pd.DataFrame({"model_name": ["ash", "elm"]})
    evalkit.show_table(failures.with_main_reason(board, failures.with_leading_mode(logs.runs, logs), evidence.link))
    evidence.show()
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>x</title><body>{''.join(shown)}<script>{SORTING}</script>")
    [(mode, n)] = failures.reasons(logs)[0].values["reasons"]
    expected = {f"{mode} ({n})": n, f"{mode} ({n} of {n})": n}
    expected |= {str(row.leading): row.leading for row in shares.itertuples() if row.leading}
    with Visit(browser, page) as visit:
        for text, count in expected.items():
            visit.page.evaluate(
                "text => { [...document.links].find(link => link.textContent === text).click(); }", text
            )
            visit.until(f"document.querySelector('.chosen')?.textContent.startsWith('{count} of 30 rows have ')")
            visit.page.evaluate("() => { document.querySelector('.chosen').firstChild.textContent = ''; }")


def test_a_mode_of_some_models_is_counted_in_all_models(tmp_path):
    rows = [row | {"model": ("ash", "elm")[place % 2]} for place, row in enumerate(_chats(12, 12))]
    for row in rows[1::2]:  # elm fails in another way
        row["messages"] = [row["messages"][0], {"role": "assistant", "content": "I tried."}]
    (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, rows)))
    texts = [finding_text(finding) for finding in failures.findings(evalkit.load(tmp_path))]
    assert any("6 of 6 of ash and 0 of 6 of elm" in text for text in texts)


def test_failures_of_steps_are_those_that_are_reported_and_those_that_are_not(monkeypatch):
    monkeypatch.setattr(answers, "LONG_LOOP", 5)
    logs = evalkit.load("samples:steps")
    texts = [finding_text(finding) for finding in failures.findings(logs)]
    assert any("calls failed or failed silently" in text for text in texts)
    [loops] = failures.loops(logs)
    assert loops.values["most"] == 5


def test_a_leaderboard_has_the_main_reason_of_each_model():
    logs = evalkit.load("samples:mindcraft/runs")
    table = failures.with_main_reason(
        compare.rank_table(compare.leaderboard(logs.runs)), failures.with_leading_mode(logs.runs, logs)
    )
    failed = table["main_reason"].str.extract(r"\(\d+ of (\d+)\)")[0].astype("int64")
    [finding] = failures.reasons(logs)
    assert finding.values["failed"] - finding.values["unsearched"] == failed.sum()


@pytest.mark.parametrize(
    ("modes", "reason"),
    [
        (["stops early", *["unexplained"] * 5], "unexplained (5 of 6), stops early (1 of 6)"),
        (["unexplained"], "unexplained (1 of 1)"),
        (["unexplained", "stops early"], "stops early (1 of 2)"),  # a name before none
        (["stops early", "loops", "loops"], "loops (2 of 3)"),
    ],
)
def test_the_main_reason_is_the_most_frequent(modes, reason):
    runs = pd.DataFrame({"model_name": "alder", "leading_mode": [*modes, "", "no transcript"]})
    table = failures.with_main_reason(pd.DataFrame({"model_name": ["alder"]}), runs)
    assert table["main_reason"].tolist() == [reason]


def test_without_transcripts_a_leaderboard_stays_as_it_is(tmp_path):
    rows = pd.DataFrame({"task_id": ["a", "b"], "model": "alder", "success": [True, False]})
    rows.to_csv(tmp_path / "runs.csv", index=False)
    logs = evalkit.load(tmp_path)
    table = compare.rank_table(compare.leaderboard(logs.runs))
    assert "main_reason" not in failures.with_main_reason(table, failures.with_leading_mode(logs.runs, logs))
    assert failures.reasons(logs) == []
