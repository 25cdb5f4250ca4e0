"""The index of an output folder: its reports by source and question, and the models of all reports."""

import html
import re

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
def test_a_changed_headline_is_stated(old, new, said):
    previous = {"headline": old} if old else None
    assert index.change({"headline": new if new is None else NEW | new, "previous": previous}) == said


BLANK = {
    "status": "made", "headline": None, "previous": None, "made": "2026-01-01T00:00:00", "tables": [], "figures": [],
    "findings": [], "chosen": [], "error": "", "params_file": "", "executed": "", "seconds": 1.0, "parameters": {},
    "cell": None, "why": "", "kernel": "", "page_bytes": 1, "stamp": {},
}  # fmt: skip


def record(notebook, name, source="", **more):
    return {**BLANK, "notebook": notebook, "name": name, "key": f"{notebook}/{name}", "title": notebook.title(),
            "sources": [source] if source else [], "page": f"{notebook}/{name}.html", **more}  # fmt: skip


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Return a function that writes the index of records, and gives its sections: (heading, texts)."""

    def written(*records):
        monkeypatch.setattr(index, "read_records", lambda output: list(records))
        text = index.write_index(tmp_path)[0].read_text()
        tree = html5lib.parse(text, namespaceHTMLElements=False)
        groups = [group for group in tree.iter("section") if group.get("class") == "group"]
        shown = [[one for one in group.iter() if one.tag in ("h3", "li")] for group in groups]
        items = [[" ".join("".join(one.itertext()).split()) for one in group] for group in shown]
        return text, list(zip([group.find("h2").text for group in groups], items, strict=True))

    return written


def test_reports_are_grouped_by_what_tells_their_folders_apart_and_samples_come_last(page):
    text, groups = page(
        record("b", "one", "samples:mindcraft/runs"),
        record("b", "two", "/data/spring/"),
        record("a", "three", "/data/spring"),
        record("a", "four", "/old/spring"),
        record("a", "five", "/data/a, b"),
        record("a", "six", "s3://bucket/autumn"),
        record("c", "seven"),
    )
    assert [title for title, _ in groups] == ["Other reports", "a, b", "spring", "spring", "autumn", "Sample data"]
    assert [text.split()[1] for text in groups[2][1]] == ["three", "two"]
    assert "From data/spring" in text
    assert "From old/spring" in text


def test_reports_stand_under_their_questions_and_those_without_one_come_last(page):
    _, ((_, texts),) = page(
        record("a", "one", "/x"),
        record("b", "two", "/x", order=2, question="How did each do?"),
        record("c", "three", "/x", order=1, question="Which is best?"),
        record("b", "four", "/x", order=2, question="How did each do?"),
    )
    starts = [" ".join(text.split()[:2]) for text in texts]
    assert starts == ["Which is", "C three", "How did", "B four", "B two", "Further reports", "A one"]


def test_how_logs_were_read_stands_once_under_their_source(page):
    columns, score = "Columns of a.csv: score = <b>.", "Score: f1."
    reports = [record("one", "x", "/d/a", chosen=[columns]), record("two", "x", "/d/a", chosen=[columns, score])]
    text, _ = page(*reports, record("one", "y", "/d/b", chosen=[score]))
    found = [html.unescape(line) for line in re.findall('<p class="quiet">(.*)</p>', text)]
    assert [line for line in found if line in (columns, score)] == [columns, score, score]
    before, found_report, _ = text.partition("Two <span")
    assert found_report
    assert html.unescape(before).count(score) == 0  # it does not hold for the report before
    assert "<b>" not in text


def test_a_report_is_shown_with_its_answer_and_how_it_was_made(page):
    findings = [{"text": "No model is <b>best</b>.", "section": "x"}, {"text": "Second.", "section": ""}]
    _, ((_, texts),) = page(
        record("a", "one", "/x", findings=findings, parameters={"model": "alder", "runs": "/x"}, headline=NEW),
        record("a", "three", "/x", status="failed", error="KeyError: 'x'", parameters={"model": "birch", "runs": "/x"}),
        record("a", "two", "/x", headline=NEW, parameters={"runs": "/x"}),
        record("b", "four", "/x"),
    )
    said = (
        ["No model is <b>best</b>.", 'model = "alder"'],
        ["failed 2026-01-01 00:00 UTC", "KeyError: 'x'"],
        ["60 % [50, 70] rate, n = 20"],
        ["B four"],
    )
    assert all(part in text for text, parts in zip(texts, said, strict=True) for part in parts)
    assert not any(part in texts[0] for part in ("Second.", "runs", "60 %"))


BAD = "</td></script><script>window.ran = 1</script>"


def test_hostile_texts_in_a_record_stay_texts(page):
    text, _ = page(record("a", BAD, BAD, title=BAD, findings=[{"text": BAD, "section": BAD}], parameters={BAD: BAD}),
                   record("a", "b", BAD))  # fmt: skip
    assert text.count("<script") == 1


def tasks(model, n, first=0):
    return [(model, f"t{first + i}", i % 2 == 0) for i in range(n)]


@pytest.fixture
def models(tmp_path, page):
    """Return a function that writes the index of reports, as {name: (source, runs)}: its text, and its rows."""

    def written(reports):
        records = []
        for name, (source, runs) in reports.items():
            frame, path = runs_of(runs, "mindcraft"), tmp_path / f"a/{name}/standings.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            compare.standings(compare.leaderboard(frame), frame).to_csv(path, index=False)
            table = {"name": "standings", "file": f"{name}/standings.csv", "rows": 1}
            records.append(record("a", name, source, tables=[table]))
        text = page(*records)[0]
        tree = html5lib.parse(text, namespaceHTMLElements=False)
        return text, [["".join(cell.itertext()) for cell in row.iter("td")] for row in tree.iter("tr")][1:]

    return written


def test_a_model_has_one_row_per_set_of_tasks_with_its_estimate_of_most_runs_and_all_its_reports(models):
    six = tasks("alder", 6) + tasks("birch", 4, 2) + [("birch", "t0", False), ("birch", "t1", False)]
    text, rows = models({"one": ("/x", six), "two": ("/x", tasks("alder", 6) * 2), "three": ("/y", tasks("alder", 4))})
    assert [row[:2] + row[3:] for row in rows] == [
        ["alder", "A", "12", "6", "a/one, a/two"],
        ["birch", "A", "6", "6", "a/one"],
        ["alder", "B", "4", "4", "a/three"],
    ]
    assert rows[1][2] == "33 % [10, 70]"
    assert '<td><a href="a/two.html">alder</a></td>' in text
    assert "Only rows with the same letter are of the same tasks." in text
    assert "Only rows" not in models({"one": ("/x", tasks("alder", 6))})[0]


@pytest.mark.parametrize("reports", [{}, {"one": ("/x", [("unknown", "t", True)])}])
def test_without_standings_no_models_are_listed(models, reports):
    text, rows = models(reports)
    assert ("Models across reports" in text, rows) == (False, [])


def test_hostile_names_stay_texts(models):
    text, rows = models({"one": (BAD, tasks(BAD, 3))})
    assert (text.count("<script"), rows[0][0]) == (1, BAD)
