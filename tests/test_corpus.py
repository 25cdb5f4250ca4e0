"""Readers keep their word on the kept inputs, and on a few mutations; `python -m tools.fuzz` makes more."""

import itertools
import random

import pytest

from tools.fuzz import KINDS, SUFFIXES, TARGETS, check, check_folder, corpus, inputs

KEPT = [(target, path) for target in TARGETS for path in corpus(target)]
MUTATIONS = 60


@pytest.mark.parametrize(("target", "path"), KEPT, ids=[f"{target}-{path.stem}" for target, path in KEPT])
def test_a_kept_input_is_read_without_an_error_soon(target, path, tmp_path):
    kept = tmp_path / path.name
    kept.write_bytes(path.read_bytes())
    assert check(target, str(kept), path.read_bytes()) == ""
    if target in KINDS:
        assert check_folder(target, str(tmp_path)) == ""


@pytest.mark.parametrize("target", TARGETS)
def test_mutations_are_read_without_an_error_soon(target, tmp_path):
    for i, data in enumerate(itertools.islice(inputs(target, random.Random(1)), MUTATIONS)):
        path = tmp_path / f"{i}{SUFFIXES.get(target, '.json')}"
        path.write_bytes(data)
        assert check(target, str(path), data) == ""
    if target in KINDS:
        assert check_folder(target, str(tmp_path)) == ""
