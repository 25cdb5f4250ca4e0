import pytest

from evalkit.reports.index import change

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
    assert change({"headline": NEW | new, "previous": previous}) == said


def test_without_a_headline_there_is_no_change():
    assert change({"headline": None, "previous": {"headline": NEW}}) == ""
