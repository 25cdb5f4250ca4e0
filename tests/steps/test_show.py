import io
import re
from html import unescape

import pytest

from evalkit.display import new_axes, show, show_sandboxed
from evalkit.steps import History, load, normalise_history, show_findings, show_plots, show_step_reports

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


def test_html_from_a_log_is_shown_in_a_frame_without_permissions(pages):
    [page] = pages(show_sandboxed, f"<p>{HOSTILE}</p>", f"a {HOSTILE} title")
    assert page.count("<") == 6  # tags of the fold and of the frame only
    assert 'sandbox=""' in page
    inner = unescape(re.search(r'srcdoc="([^"]*)"', page).group(1))
    assert inner.startswith('<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="default-src \'none\';')
    assert HOSTILE in inner


def test_a_frame_needs_a_title():
    with pytest.raises(ValueError, match="title"):
        show_sandboxed("<p></p>", " ")


def test_dollars_from_logs_are_drawn_as_dollars(pages):
    ax = new_axes()
    ax.plot([0], [0], label="$\\frac{1}{$")
    ax.annotate("$^$", (0, 0))
    ax.figure.legend()
    with pytest.raises(ValueError, match="frac"):
        ax.figure.savefig(io.BytesIO())
    show.show_figure(ax, alt="a legend with dollars")


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


def test_cut_plots_are_listed_and_not_shown(pages):
    record = {"function_name": "display_x", "success": True, "result_summary": "<div>" + "x" * 495}
    found = pages(show_plots, history(record))
    assert len(found) == 1
    assert "<iframe" not in found[0]


def test_many_plots_are_limited(pages):
    found = pages(show_plots, history(*[plot("<p>x</p>")] * 9), 4)
    assert sum("<iframe" in page for page in found) == 4
    assert "Only the first 4 plots" in found[-1]


def test_where_there_are_no_plots_nothing_is_shown(pages):
    assert pages(show_plots, []) == []


def test_reports_and_findings_are_escaped(pages):
    record = {"step": {"function_name": HOSTILE}, "success": True, "result": HOSTILE}
    for function in (show_step_reports, show_findings):
        found = "".join(pages(function, history(record)))
        assert found
        assert "<script" not in found
        assert "<img" not in found


def test_the_samples_plots_are_shown(pages):
    logs = load("samples:steps/typed.json")
    assert sum("<iframe" in page for page in pages(show_plots, logs.histories)) == 2
