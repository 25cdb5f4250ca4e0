import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.reports.filenames import LONGEST, file_name


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (["gpt-4o"], "gpt-4o"),
        (["all", "gpt-4o"], "all-gpt-4o"),
        ([], "defaults"),
        ([""], "defaults"),
        ([0.5, True, 3], "0.5-True-3"),
        (["Привет"], "Привет"),
    ],
)
def test_plain_values_stand_as_they_are(values, name):
    assert file_name(values) == name


@pytest.mark.parametrize(
    ("value", "start"),
    [
        ("meta-llama/Llama-3-8B", "meta-llama_Llama-3-8B-"),
        ("ft:gpt:x", "ft_gpt_x-"),
        ("/home/me/experiments/", "experiments-"),
        ("../../etc/passwd", "passwd-"),
        ("CON", "CON-"),
        ("nul.txt", "nul.txt-"),
        ("..", ""),
        ("<script>", "script-"),
        ("a b\n", "a_b-"),
    ],
)
def test_other_values_are_made_safe_and_marked(value, start):
    assert re.fullmatch(re.escape(start) + "[0-9a-f]{6}", file_name([value]))


def test_different_values_have_different_names():
    values = ["a/b", "a_b", "a:b", "a b", "/x/a", "/y/a", "a"]
    assert len({file_name([value]) for value in values}) == len(values)


@given(st.lists(st.text() | st.integers() | st.floats() | st.lists(st.text())))
def test_names_are_safe_whatever_the_values(values):
    name = file_name(values)
    assert name
    assert len(name.encode()) <= LONGEST
    assert not set(name) & set('/\\:*?"<>|\0\n')
    assert name not in (".", "..")
    assert not name.startswith((".", "-"))
