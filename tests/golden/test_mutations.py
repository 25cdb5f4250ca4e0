"""The list of deliberate mistakes fits the files it speaks of; ``python -m tests.golden.mutations`` makes them."""

import ast
import json

import pytest

from tests.golden.mutations import MUTATIONS, Mutation, find, part_of
from tests.golden.record import COMMANDS, reports


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mistake_can_still_be_made(mutation):
    content, old, new = find(mutation)
    wrong = content.replace(old, new)
    assert wrong != content
    (json.loads if mutation.file.endswith(".ipynb") else ast.parse)(wrong)
    words = part_of(mutation.file).split(" or ")
    assert any(word in name for word in words for name in [*COMMANDS, *(path.parent.name for path in reports())])


def test_mistakes_have_names_of_their_own():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


@pytest.mark.parametrize(("old", "times", "n"), [("no such text", 1, 0), ("[tool.ruff", 1, 4), ("[project]", 2, 1)])
def test_a_text_that_stands_elsewhere_now_is_an_error_that_names_it(old, times, n):
    with pytest.raises(ValueError, match=rf"lost: '.*' stands {n} times in pyproject\.toml, not {times}"):
        find(Mutation("lost", "pyproject.toml", old, "", times))
