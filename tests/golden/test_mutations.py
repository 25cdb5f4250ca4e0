"""The list of deliberate mistakes fits the files it speaks of; ``python -m tools.mistakes`` makes them."""

import ast
import json

import pytest

from tests.golden.record import COMMANDS, reports
from tools.mistakes import MUTATIONS, find, part_of


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_mutation_changes_code_that_exists_into_valid_code(mutation):
    content, old, new = find(mutation)
    wrong = content.replace(old, new)
    assert wrong != content
    (json.loads if mutation.file.endswith(".ipynb") else ast.parse)(wrong)
    words = part_of(mutation.file).split(" or ")
    assert any(word in name for word in words for name in [*COMMANDS, *(path.parent.name for path in reports())])
