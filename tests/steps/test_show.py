import pytest

from evalkit.display import show
from evalkit.steps import History, normalise_history, show_findings, show_plots, show_step_reports

HOSTILE = '</iframe><script>alert(1)</script><img src=x onerror=alert(2)>"\' srcdoc="<b>'


@pytest.fixture
def pages(monkeypatch):
    """Return a function that calls another and gives the HTML it showed."""
    shown = []
    monkeypatch.setattr(show, "display", lambda data, **_: shown.append(data.get("text/html", "")))

    def pages(function, *arguments):
        shown.clear()
        function(*arguments)
        return list(shown)

    return pages


def history(*records):
    return [History("h.json", "", normalise_history(list(records)))]


def plot(result, function="display_x"):
    return {"step": {"function_name": function}, "success": True, "result": result, "result_type": "visualization"}


def test_stored_plots_are_shown_in_frames_only(pages):
    records = [
        plot(f"<div>{HOSTILE}</div>"),
        plot({"multiple_plots": True, "plots": [{"title": HOSTILE, "html": "<p>1</p>"}, {"html": "<p>2</p>"}]}),
        plot({"type": "file_ref", "path": "a.html"}),
        plot(f"Error: {HOSTILE}"),
        plot(None),
    ]
    found = pages(show_plots, history(*records))
    frames = [page for page in found if "<iframe" in page]
    assert len(frames) == 3
    assert all("<script" not in page and "<img" not in page for page in found)


def test_many_plots_are_limited(pages):
    found = pages(show_plots, history(*[plot("<p>x</p>")] * 9), 4)
    assert sum("<iframe" in page for page in found) == 4
    assert "Only the first 4 plots" in found[-1]


def test_reports_and_findings_are_escaped(pages):
    record = {"step": {"function_name": HOSTILE}, "success": True, "result": HOSTILE}
    for function in (show_step_reports, show_findings):
        found = "".join(pages(function, history(record)))
        assert found
        assert "<script" not in found
        assert "<img" not in found
