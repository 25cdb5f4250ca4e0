"""What pages show of failures: marks on turns, and the main reason of each model."""

import json

import pandas as pd
import pytest

import evalkit
from evalkit import compare, failures
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
        return logs, evalkit.Evidence(logs, failures.with_modes(logs), "mode", "event", "error_group"), shown

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


def test_of_many_runs_the_table_has_those_first_that_the_counts_are_about(linked):
    _, evidence, shown = linked(links.MOST_RUNS + 50, 30)
    evidence.show()
    assert sum("repeated call" in row for one in shown for row in one.split("<tr")) == 30


def test_a_leaderboard_has_the_main_reason_of_each_model():
    logs = evalkit.load("samples:mindcraft/runs")
    table = failures.with_main_reason(compare.rank_table(compare.leaderboard(logs.runs)), logs)
    failed = table["main_reason"].str.extract(r"\(\d+ of (\d+)\)")[0].astype("int64")
    [finding] = failures.reasons(logs)
    assert finding.values["failed"] - finding.values["unsearched"] == failed.sum()


@pytest.mark.parametrize(
    ("modes", "reason"),
    [
        (["stops early", *["unexplained"] * 5], "unexplained (5 of 6)"),
        (["unexplained", "stops early"], "stops early (1 of 2)"),  # a name before none
        (["stops early", "loops", "loops"], "loops (2 of 3)"),
    ],
)
def test_the_main_reason_is_the_most_frequent(monkeypatch, modes, reason):
    rows = pd.DataFrame({"model_name": "alder", "mode": modes, "leads": True})
    monkeypatch.setattr(answers, "_modes_to_name", lambda logs: (rows, ""))
    table = failures.with_main_reason(pd.DataFrame({"model_name": ["alder"]}), evalkit.load("samples:crafter"))
    assert table["main_reason"].tolist() == [reason]


def test_without_transcripts_a_leaderboard_stays_as_it_is(tmp_path):
    rows = pd.DataFrame({"task_id": ["a", "b"], "model": "alder", "success": [True, False]})
    rows.to_csv(tmp_path / "runs.csv", index=False)
    logs = evalkit.load(tmp_path)
    table = compare.rank_table(compare.leaderboard(logs.runs))
    assert "main_reason" not in failures.with_main_reason(table, logs)
    assert failures.reasons(logs) == []
