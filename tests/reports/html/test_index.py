import pytest

from evalkit.reports.html import index

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


def test_notebooks_stand_by_the_names_they_are_shown_under(tmp_path, monkeypatch):
    record = {
        "status": "made", "headline": None, "previous": None, "made": "2026-01-01T00:00:00", "tables": [],
        "error": None, "params_file": "", "page": "", "executed": "", "seconds": 1.0, "warnings": [], "report": "one",
    }  # fmt: skip
    titles = {"a": "Mindcraft: tasks", "b": "Crafter", "c": "Mindcraft: models"}
    records = [{**record, "notebook": notebook, "title": title} for notebook, title in titles.items()]
    monkeypatch.setattr(index, "read_records", lambda output: records)
    page = index.write_index(tmp_path, tmp_path)[0].read_text()
    assert sorted(titles.values(), key=page.index) == sorted(titles.values())
