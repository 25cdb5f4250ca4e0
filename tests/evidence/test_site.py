"""Folders of pages: what is written, when it is written again, and what goes."""

import json
from pathlib import Path

import pytest

from evalkit.evidence import RunList, page_name, read_references, reference, write_pages
from evalkit.evidence.pages import LARGEST, MOST, run_page
from evalkit.kinds import Image, Transcript, Turn
from evalkit.mindcraft import load
from tests.mindcraft.builders import write_all


@pytest.fixture
def logs(tmp_path):
    return load(write_all(tmp_path / "logs", {f"exp/t{n}/Andy_0_0.json": n for n in (0, 1)}))


@pytest.fixture
def runs(pages):
    return {name: run for name, (run,) in pages.items()}


@pytest.fixture
def pages(logs):
    found = [reference(logs, run) for run in logs.runs.to_dict("records")]
    return {run.page: [run] for run in found}


def table(runs, title="table"):
    return RunList(title, "../report.html", list(runs), "key")


def test_pages_are_written_once_and_again_only_where_something_changed(tmp_path, pages, runs):
    out = tmp_path / "runs"
    assert write_pages(out, pages, [table(pages)]) == 2
    assert write_pages(out, pages, [table(pages)]) == 0
    log = Path(next(iter(runs.values())).paths[0])
    log.write_text(log.read_text().replace("hello", "good day"))
    assert write_pages(out, pages, [table(pages)]) == 1
    assert "good day" in (out / next(iter(runs))).read_text()
    assert write_pages(out, pages, [table(pages, "another")]) == 2
    next(out.glob("*.html")).unlink()
    assert write_pages(out, pages, [table(pages, "another")]) == 1


def test_pages_that_nothing_leads_to_go_and_other_files_stay(tmp_path, pages):
    out = tmp_path / "runs"
    write_pages(out, pages)
    (out / "notes.html").write_text("mine")
    first, second = pages
    write_pages(out, {first: pages[first]})
    assert {path.name for path in out.glob("*.html")} == {first, "notes.html"}
    assert second not in json.loads((out / ".evalkit/pages.json").read_text())


@pytest.mark.parametrize("page", ["..", "../kept.html", "{out}/../kept.html", "", "."])
def test_a_list_of_pages_from_elsewhere_deletes_nothing_outside_of_the_folder(tmp_path, pages, page):
    out = tmp_path / "runs"
    write_pages(out, pages)
    (tmp_path / "kept.html").write_text("mine")
    manifest = out / ".evalkit/pages.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {page.format(out=out): "x"}))
    (out / "kept.html").write_text("mine, too")
    write_pages(out, pages)
    assert (tmp_path / "kept.html").exists()
    assert (out / "kept.html").exists()


def test_pages_leave_out_the_middle_of_long_runs_the_end_of_long_turns_and_repeated_pictures(runs):
    turn = Turn("alder", "assistant", "x" * (LARGEST + 1), images=(Image(64, 64, bytes(64 * 64 * 3)),))
    turns = [turn, turn, *[Turn("alder", "assistant", "hi")] * MOST]
    page = run_page(next(iter(runs.values())), Transcript("", [], turns))
    assert "<title>t0, exp, score of zero</title>" in page
    assert page.count("the first 100,000 of 100,001 characters") == page.count('<use href="#picture-1"') == 2
    assert page.count("data:image/webp;base64,") == 1
    assert "2 turns in between are not shown" in page
    assert [f'id="t{n}"' in page for n in (1, 1000, 1001, 1002, 1003, 2002)] == [True, True, False, False, True, True]


def test_a_log_that_is_gone_has_a_page_that_says_so(tmp_path, runs):
    page, run = next(iter(runs.items()))
    Path(run.paths[0]).unlink()
    write_pages(tmp_path / "runs", {page: [run]})
    text = (tmp_path / "runs" / page).read_text()
    assert f"{run.paths[0]}: FileNotFoundError" in text
    assert 'data-events="error decision"' in text


def test_pages_name_where_they_stand_in_their_tables_and_that_of_a_pair_leads_to_both(tmp_path, pages, runs):
    first, second = runs
    pair = page_name(*(run.run_id for run in runs.values()))
    write_pages(tmp_path, {**pages, pair: list(runs.values())}, [table(runs, "runs <that> failed")])
    text = (tmp_path / first).read_text()
    link = '<a href="../report.html">runs &lt;that&gt; failed</a>'
    assert all(part in text for part in (f'<a rel="next" href="{second}#list=key">', "1 of 2", link))
    assert 'rel="prev"' not in text
    both = (tmp_path / pair).read_text()
    # the final messages differ, behind two turns that are the same
    assert all(part in both for part in (*(f'href="{page}"' for page in runs), 'first differ at <a href="#r3">'))


def test_a_run_is_described_in_words(logs):
    facts = dict(reference(logs, {**logs.runs.iloc[0].to_dict(), "duration": 57.0}).facts)
    shown = [facts[name] for name in ("kind", "model", "status", "score", "success", "duration")]
    assert shown == ["mindcraft", "exp", "score of zero", "0", "no", "57 s"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", "x" * 200, "<b>", "-x", "a\udc80"])
def test_any_id_makes_a_name_of_a_file(name):
    assert page_name(name).removesuffix(".html").isalnum()
    assert page_name("m-12_a") == "m-12_a.html"


def test_what_a_notebook_passes_on_is_read_again(runs):
    ids = [run.run_id for run in runs.values()]
    passed_on = {"runs": list(runs.values()), "pairs": [ids], "title": "t", "members": list(runs), "key": "k"}
    pages, lists = read_references([json.loads(json.dumps(passed_on))], "p")
    assert {page: [run.run_id for run in members] for page, members in pages.items()} == {
        **{page: [run.run_id] for page, run in runs.items()},
        page_name(*ids): ids,
    }
    assert lists == [RunList("t", "p", list(runs), "k")]
