import html5lib
import pytest

from evalkit.reports import index

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
    ],
)
def test_a_changed_headline_is_told(old, new, said):
    previous = {"headline": old} if old else None
    assert index.change({"headline": NEW | new, "previous": previous}) == said


def test_without_a_headline_there_is_no_change():
    assert index.change({"headline": None, "previous": {"headline": NEW}}) == ""


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
        return text, [
            (group.find("h2").text, [" ".join("".join(one.itertext()).split()) for one in group.iter("li")])
            for group in groups
        ]

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


DRAWING = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><a href="runs/x.html"><path d="M0 0" /></a>{}</svg>'
)


def test_hostile_texts_in_a_record_stay_texts(page):
    bad = "</script><script>window.ran = 1</script>"
    text, _ = page(record("a", bad, bad, title=bad, findings=[{"text": bad, "section": bad}], parameters={bad: bad}),
                   record("a", "b", bad))  # fmt: skip
    assert text.count("<script") == 1
    assert "window.ran = 1</script>" not in text
