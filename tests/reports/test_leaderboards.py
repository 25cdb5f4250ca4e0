"""The page that lists the models of all reports: what stands in it, and that it compares nothing that can't be."""

import csv

import html5lib
import pytest

from evalkit import compare
from evalkit.reports import index
from tests.compare.runs import runs_of
from tests.reports.test_index import record

BAD = "</td><script>window.ran = 1</script>"


def tasks(model, n, first=0):
    return [(model, f"t{first + i}", i % 2 == 0) for i in range(n)]


@pytest.fixture
def page(tmp_path, monkeypatch):
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


def test_every_model_of_every_report_has_a_row_with_its_interval_n_and_source(page, tmp_path):
    text = page({"one": ("/x", tasks("alder", 6) + tasks("birch", 6)), "two": ("/x", tasks("alder", 4))})
    rows = cells(text)
    assert [row[:2] for row in rows] == [["alder", "A: one"], ["alder", "A: two"], ["birch", "A: one"]]
    assert rows[0][3:] == ["50 % [19, 81]", "6", "6", "1 – 2 of 2", "/x"]
    assert rows[1][3:] == ["50 % [15, 85]", "4", "4", "–", "/x"]
    assert '<a href="a/two.html">' in text
    assert 'href="leaderboard.html"' in (tmp_path / "index.html").read_text()


def test_rows_of_the_same_tasks_have_the_same_letter_and_others_are_said_not_to_be_comparable(page):
    text = page({"one": ("/x", tasks("alder", 6)), "two": ("/y", tasks("birch", 6)), "three": ("/z", tasks("c", 6, 6))})
    assert [(row[0], row[2]) for row in cells(text)] == [("alder", "A"), ("birch", "A"), ("c", "B")]
    assert "There are 2 sets of tasks: rows with different letters can't be compared" in text
    assert "The reports are about 3 different sources" in text
    assert all(f"<li>{source}: A: {name}</li>" in text for source, name in (("/x", "one"), ("/z", "three")))


def test_without_standings_there_is_no_page_and_one_of_before_goes(page, tmp_path):
    assert page({"one": ("/x", tasks("alder", 2))})
    assert page({}) == ""
    assert "leaderboard.html" not in (tmp_path / "index.html").read_text()
    assert page({"one": ("/x", [("unknown", "t", True)])}) == ""


def test_hostile_names_stay_texts(page, tmp_path):
    text = page({"one": (BAD, tasks(BAD, 3))})
    assert text.count("<script") == 1
    assert cells(text)[0][0] == BAD
    with (tmp_path / "a/0.standings.csv").open() as file:
        assert next(csv.DictReader(file))["model_name"] == BAD
