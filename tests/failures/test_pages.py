"""What pages show of failures: marks on turns, and the main reason of each model."""

import pandas as pd
import pytest

import evalkit
from evalkit import compare, failures
from evalkit.evidence import RunRef, read_references
from evalkit.failures import answers
from evalkit.kinds import Transcript, Turn

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
