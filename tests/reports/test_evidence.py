"""Pages of the runs that reports lead to: which, how many, and that each is written once."""

import json

import pytest

from evalkit.evidence import links
from evalkit.reports import plan, run
from evalkit.reports.evidence import is_missing
from tests.mindcraft.builders import write_all

SHOW = """
import evalkit

logs = evalkit.mindcraft.load(runs)
evalkit.show_runs(logs, logs.runs[~logs.runs["overall_is_successful"]][["task_id", "run_id"]], "failed <runs>")
"""
PAIRS = """
from evalkit import compare

evalkit.show_pairs(logs, compare.discordant(logs.runs), "opposite")
"""


@pytest.fixture
def reports(project, tmp_path):
    logs = {f"{model}/{task}/agent_0.json": float(task == model) for model in "ab" for task in "abc"}
    write_all(tmp_path / "logs", logs)
    text = f"runs: {tmp_path / 'logs'}\n"
    project("one", SHOW, parameters='runs: str = ""', params={"x.yaml": text, "y.yaml": text + "\n"})
    project("two", SHOW, PAIRS, parameters='runs: str = ""', params={"z.yaml": text})
    return tmp_path


def make(reports, *targets, **options):
    return run(plan(targets), output=reports / "out", say=lambda _: None, **options)


def pages(reports):
    return {path.name for path in (reports / "out/runs").glob("*.html")}


def linked(reports, key):
    return (reports / f"out/{key}.html").read_text().count('href="../runs/')


def test_tables_lead_to_runs_and_each_run_has_one_page(reports):
    assert make(reports).failed == []
    assert linked(reports, "one/x") == linked(reports, "one/y") == 4
    assert linked(reports, "two/z") == 4 + 2
    names = pages(reports)
    assert len([name for name in names if "--" in name]) == 2
    assert len(names) == 6 + 2  # the two that succeeded are in pairs
    text = next(path for path in (reports / "out/runs").glob("*.html") if "one/x" in path.read_text()).read_text()
    assert all(f'<a href="../{key}.html">failed &lt;runs&gt;</a>' in text for key in ("one/x", "one/y", "two/z"))
    assert "vnd.evalkit.evidence" not in (reports / "out/one/x.ipynb").read_text()


def test_nothing_is_written_again_where_nothing_changed(reports):
    make(reports)
    times = {path: path.stat().st_mtime_ns for path in (reports / "out/runs").glob("*.html")}
    assert make(reports).made == []
    make(reports, force=True)
    assert {path: path.stat().st_mtime_ns for path in (reports / "out/runs").glob("*.html")} == times


@pytest.mark.parametrize(("evidence", "links", "runs"), [("none", 0, 0), ("linked", 4, 4), ("all", 4, 6)])
def test_which_runs_get_pages_can_be_chosen_and_changed(reports, evidence, links, runs):
    make(reports, "params/one/x.yaml", evidence="linked")
    make(reports, "params/one/x.yaml", evidence=evidence)
    assert linked(reports, "one/x") == links
    assert len(pages(reports)) == runs


def test_pages_that_a_stopped_batch_left_out_are_written_by_the_next(reports):
    make(reports)
    (reports / "out/runs/.evalkit/pages.json").unlink()
    assert is_missing(reports / "out")
    assert make(reports).made == []
    assert not is_missing(reports / "out")


@pytest.fixture
def shown(monkeypatch):
    """Be within a report that leads to three runs at most; gives what is shown."""
    out = []
    monkeypatch.setenv(links.VARIABLE, "linked")
    monkeypatch.setattr(links, "MOST_RUNS", 3)
    monkeypatch.setattr(links, "_linked", {})
    monkeypatch.setattr(links, "display", lambda data, **_: out.append(data))
    monkeypatch.setattr("evalkit.display.show.display", lambda data, **_: out.append(data))
    return out


def test_a_report_leads_to_so_many_runs_at_most_and_says_so(tmp_path, shown):
    from evalkit.mindcraft import load

    logs = load(write_all(tmp_path, {f"e/t{n}/Andy_0_0.json": 0 for n in range(5)}))
    table = logs.runs[["task_id", "run_id"]]
    links.show_runs(logs, table, "t")
    given, page, note = shown
    assert len(given[links.EVIDENCE]["runs"]) == 3
    assert page["text/html"].count("<a href") == 3
    assert "a report links to at most 3 runs" in note["text/plain"]
    shown.clear()
    links.show_runs(logs, table.head(2), "again")  # what was counted once is not counted again
    assert shown[1]["text/html"].count("<a href") == 2
    json.dumps(given[links.EVIDENCE])
