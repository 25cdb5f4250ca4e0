import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.reports.report import file_name


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([], "defaults"),
        ([""], "defaults"),
        (["all", "gpt-4o"], "all-gpt-4o"),
        ([0.5, True, 3], "0.5-True-3"),
        (["Привет"], "Привет"),
        (["meta-llama/Llama-3-8B"], "meta-llama_Llama-3-8B"),
        (["ft:gpt:x"], "ft_gpt_x"),
        (["/home/me/experiments/"], "experiments"),
        (["../../etc/passwd"], "passwd"),
        (["<script>"], "script"),
        ([["a", "b"]], "a_b"),
        (["a__b"], "a__b"),
    ],
)
def test_values_stay_readable_and_are_made_safe(values, name):
    assert file_name(values) == name


@pytest.mark.parametrize(("value", "start"), [("CON", "CON-"), ("nul.txt", "nul.txt-"), ("..", ""), ("/", "")])
def test_what_no_file_may_be_called_is_marked(value, start):
    assert re.fullmatch(re.escape(start) + "[0-9a-f]{6}", file_name([value]))


@given(st.lists(st.text() | st.integers() | st.floats() | st.lists(st.text())))
def test_names_are_safe_whatever_the_values(values):
    name = file_name(values)
    assert name
    assert len(name.encode()) <= 120
    assert not set(name) & set('/\\:*?"<>|\0\n')
    assert name not in (".", "..")
    assert not name.startswith((".", "-"))
