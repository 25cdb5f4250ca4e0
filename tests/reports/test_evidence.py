"""Pages of the runs that reports lead to: which, how many, and that each is written once."""

import pytest

from evalkit.reports import plan, run
from evalkit.reports.index import is_missing
from tests.mindcraft.builders import write_all

SHOW = """
import evalkit

logs = evalkit.mindcraft.load(runs)
evalkit.show_runs(logs, logs.runs[logs.runs["score"] < 1][["task_id", "run_id"]], "failed <runs>")
"""
PAIRS = """
from evalkit import compare

evalkit.show_pairs(logs, compare.discordant(logs.runs), "opposite")
"""

LINKED = """
import evalkit

logs = evalkit.mindcraft.load(runs)
evidence = evalkit.Evidence(logs, logs.runs)
evalkit.show_table(evidence.link(logs.runs[["task_id", "run_id"]]), "linked")
"""


@pytest.fixture
def reports(project, tmp_path):
    logs = {f"{model}/{task}/agent_0.json": float(task == model) for model in "ab" for task in "abc"}
    write_all(tmp_path / "logs", logs)
    text = f"runs: {tmp_path}\n"  # in which the reports are written, too
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
    pair = next((reports / "out/runs").glob("*--*.html")).read_text()
    assert '<a href="../two/z.html">opposite</a>' in pair
    assert "vnd.evalkit.evidence" not in (reports / "out/one/x.ipynb").read_text()


def test_which_runs_get_pages_can_be_chosen_and_changed(reports):
    for evidence, links in ((True, 4), (False, 0)):
        make(reports, "params/one/x.yaml", evidence=evidence)
        assert (linked(reports, "one/x"), len(pages(reports))) == (links, links)


@pytest.mark.parametrize("cache", ["on", "off"])
def test_pages_that_a_stopped_batch_left_out_are_written_by_the_next(reports, monkeypatch, tmp_path_factory, cache):
    monkeypatch.setenv("EVALKIT_CACHE", cache if cache == "off" else str(tmp_path_factory.mktemp("cache")))
    make(reports, "params/one/x.yaml")
    (reports / "out/runs/.evalkit/pages.json").unlink()
    assert is_missing(reports / "out")
    again = make(reports, "params/one/x.yaml")
    assert bool(again.made) == (cache == "off")  # without stored evidence, reports are made again
    assert not is_missing(reports / "out")


@pytest.mark.parametrize(("last", "n_links"), [("evidence.show()", 12), ("1 / 0", 0)])
def test_a_page_has_no_link_to_runs_that_a_report_failed_to_pass_on(reports, project, last, n_links):
    logs = reports / "logs"
    project("three", LINKED, last, parameters='runs: str = ""', params={"w.yaml": f"runs: {logs}\n"})
    make(reports, "params/three/w.yaml")
    assert (linked(reports, "three/w"), len(pages(reports))) == (n_links, n_links / 2)
    assert ">linked " in (reports / "out/three/w.html").read_text()
