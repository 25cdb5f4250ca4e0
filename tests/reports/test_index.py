"""The index of an output folder, and its page of the models of all reports, which compares nothing that can't be."""

import csv

import html5lib
import pytest

from evalkit import compare
from evalkit.reports import index
from tests.compare.runs import runs_of

NEW = {"label": "rate", "text": "60 % [50, 70]", "estimate": 0.6, "n": 20, "percent": True}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (NEW, {}, "as before"),
        (NEW, {"n": 21}, "was 60 % [50, 70], n = 20: +0.0 points"),
        ({**NEW, "estimate": 0.7, "text": "70 %"}, {}, "was 70 %, n = 20: -10.0 points"),
        ({**NEW, "percent": False, "estimate": 1, "text": "1.00"}, {"percent": False}, "was 1.00, n = 20: -0.40"),
        ({**NEW, "estimate": None, "text": "–", "n": None}, {}, "was –, n = –"),
        ({**NEW, "label": "another"}, {}, ""),
        (None, {}, ""),
        (NEW, None, ""),
    ],
)
def test_a_changed_headline_is_told(old, new, said):
    previous = {"headline": old} if old else None
    assert index.change({"headline": new if new is None else NEW | new, "previous": previous}) == said


BLANK = {
    "status": "made", "headline": None, "previous": None, "made": "2026-01-01T00:00:00", "tables": [], "figures": [],
    "findings": [], "error": "", "params_file": "", "executed": "", "seconds": 1.0, "parameters": {}, "cell": None,
    "why": "", "kernel": "", "page_bytes": 1, "stamp": {},
}  # fmt: skip


def record(notebook, name, source="", **more):
    return {**BLANK, "notebook": notebook, "name": name, "key": f"{notebook}/{name}", "title": notebook.title(),
            "sources": [source] if source else [], "page": f"{notebook}/{name}.html", **more}  # fmt: skip


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Return a function that writes the index of records, and gives its sections: (heading, texts of reports)."""

    def written(*records):
        monkeypatch.setattr(index, "read_records", lambda output: list(records))
        text = index.write_index(tmp_path, tmp_path)[0].read_text()
        tree = html5lib.parse(text, namespaceHTMLElements=False)
        groups = [group for group in tree.iter("section") if group.get("class") == "group"]
        items = [[" ".join("".join(one.itertext()).split()) for one in group.iter("li")] for group in groups]
        return text, list(zip([group.find("h2").text for group in groups], items, strict=True))

    return written


def test_reports_are_grouped_by_the_folder_they_are_about_and_samples_come_last(page):
    _, groups = page(
        record("b", "one", "samples:mindcraft/runs"),
        record("b", "two", "/data/spring/"),
        record("a", "three", "/data/spring/"),
        record("a", "four", "s3://bucket/autumn"),
        record("c", "five"),
    )
    assert [title for title, _ in groups] == ["Other reports", "spring", "autumn", "Sample data"]
    assert [text.split()[1] for text in groups[1][1]] == ["three", "two"]


def test_a_report_is_shown_with_its_first_finding_its_status_and_the_parameters_that_differ(page):
    findings = [{"text": "No model is <b>best</b>.", "section": "x"}, {"text": "Second.", "section": ""}]
    text, ((_, (first, second)),) = page(
        record("a", "one", "/x", findings=findings, parameters={"model": "alder", "runs": "/x"}, headline=NEW),
        record("a", "two", "/x", status="failed", error="KeyError: 'x'", parameters={"model": "birch", "runs": "/x"}),
    )
    assert "No model is <b>best</b>." in first
    assert "Second." not in first
    assert 'model = "alder"' in first
    assert "runs" not in first
    assert "60 % [50, 70] rate, n = 20" in first
    assert "failed 2026-01-01 00:00 UTC" in second
    assert "KeyError: 'x'" in second
    assert "&lt;b&gt;best" in text


def test_sources_are_told_apart_by_no_more_of_their_paths_than_is_needed(page):
    places = {"x": "/data/a, b", "y": "/data/spring/logs", "z": "/old/logs"}
    text, groups = page(*(record("a", name, place) for name, place in places.items()))
    assert [title for title, _ in groups] == ["a, b", "logs", "logs"]
    assert "From spring/logs" in text
    assert "From old/logs" in text


def test_hostile_texts_in_a_record_stay_texts(page):
    bad = "</script><script>window.ran = 1</script>"
    text, _ = page(record("a", bad, bad, title=bad, findings=[{"text": bad, "section": bad}], parameters={bad: bad}),
                   record("a", "b", bad))  # fmt: skip
    assert text.count("<script") == 1
    assert "window.ran = 1</script>" not in text


# The leaderboard

BAD = "</td><script>window.ran = 1</script>"


def tasks(model, n, first=0):
    return [(model, f"t{first + i}", i % 2 == 0) for i in range(n)]


@pytest.fixture
def leaderboard(tmp_path, monkeypatch):
    """Return a function that writes the index of reports, as {name: (source, runs)}, and gives the page's text."""

    def written(reports, kind="mindcraft"):
        records = []
        for name, (source, runs) in reports.items():
            frame = runs_of(runs, kind)
            (tmp_path / "a").mkdir(exist_ok=True)
            path = tmp_path / f"a/{len(records)}.standings.csv"
            compare.standings(compare.leaderboard(frame), frame).to_csv(path, index=False)
            table = {"name": "standings", "file": path.name, "rows": 1}
            records.append(record("a", name, source, tables=[table]))
        monkeypatch.setattr(index, "read_records", lambda output: records)
        index.write_index(tmp_path, tmp_path)
        path = tmp_path / "leaderboard.html"
        return path.read_text() if path.is_file() else ""

    return written


def cells(text):
    tree = html5lib.parse(text, namespaceHTMLElements=False)
    return [["".join(cell.itertext()) for cell in row.iter("td")] for row in tree.iter("tr")][1:]


def test_every_model_of_every_report_has_a_row_with_its_interval_n_and_source(leaderboard, tmp_path):
    text = leaderboard({"one": ("/x", tasks("alder", 6) + tasks("birch", 6)), "two": ("/x", tasks("alder", 4))})
    rows = cells(text)
    assert [row[:2] for row in rows] == [["alder", "A: one"], ["alder", "A: two"], ["birch", "A: one"]]
    assert rows[0][3:] == ["50 % [19, 81]", "6", "6", "1 – 2 of 2", "/x"]
    assert rows[1][3:] == ["50 % [15, 85]", "4", "4", "–", "/x"]
    assert '<a href="a/two.html">' in text
    assert 'href="leaderboard.html"' in (tmp_path / "index.html").read_text()


def test_rows_of_the_same_tasks_have_the_same_letter_and_others_are_said_not_to_be_comparable(leaderboard):
    others = {"two": ("/y", tasks("birch", 6)), "three": ("/z", tasks("c", 6, 6))}
    text = leaderboard({"one": ("/x", tasks("alder", 6)), **others})
    assert [(row[0], row[2]) for row in cells(text)] == [("alder", "A"), ("birch", "A"), ("c", "B")]
    assert "There are 2 sets of tasks: rows with different letters can't be compared" in text
    assert "The reports are about 3 different sources" in text
    assert all(f"<li>{source}: A: {name}</li>" in text for source, name in (("/x", "one"), ("/z", "three")))


def test_without_standings_there_is_no_page_and_one_of_before_goes(leaderboard, tmp_path):
    assert leaderboard({"one": ("/x", tasks("alder", 2))})
    assert leaderboard({}) == ""
    assert "leaderboard.html" not in (tmp_path / "index.html").read_text()
    assert leaderboard({"one": ("/x", [("unknown", "t", True)])}) == ""


def test_hostile_names_stay_texts(leaderboard, tmp_path):
    text = leaderboard({"one": (BAD, tasks(BAD, 3))})
    assert text.count("<script") == 1
    assert cells(text)[0][0] == BAD
    with (tmp_path / "a/0.standings.csv").open() as file:
        assert next(csv.DictReader(file))["model_name"] == BAD
