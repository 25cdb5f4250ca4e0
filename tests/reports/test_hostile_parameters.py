"""Parameters that look small and are not: a sentence, soon."""

import os
import time
from itertools import pairwise

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.reports.parameters import Parameter, from_text, parse_values, read_values

_LEVELS = "abcdefghi"


def bomb(form):
    """Write levels of which each holds the one before nine times."""
    lines = [f"a: &a {form.format('x')}"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in pairwise(_LEVELS)]
    return "\n".join(lines)


def merges():
    lines = ["a0: &a0 {x: 1}"]
    for i in range(9):
        parts = ", ".join([f"*a{i}"] * 9)
        lines.append(f"a{i + 1}: &a{i + 1}\n  <<: [{parts}]\n  k{i}: 1")
    return "\n".join(lines)


HOSTILE = {
    "aliases of aliases": (bomb("[{0}, {0}, {0}]"), "aliases .* stand for more than 10000 values"),
    "a list that holds itself": ("a: &a [*a]", "aliases .* stand for more than 10000 values"),
    "a mapping that holds itself": ("a: &a {b: *a}", "aliases .* stand for more than 10000 values"),
    "merges of merges": (merges(), r"merges \(<<\) make more than 10000 names"),
    "5,000 brackets": ("a: " + "[" * 5000, "nested too deep"),
    "5,000 braces": ("{a: " * 5000, "nested too deep"),
    "5,000 brackets that are closed": ("a: " + "[" * 5000 + "]" * 5000, "nested too deep"),
    "a name that is a list": ("? [a, b]\n: 1", "a name must be a text"),
    "much text": ("a: " + "x" * 300_000, "longer than 200000 characters"),
    "a number of many digits": ("a: " + "9" * 5000, "4300 digits"),
    "an object": ("a: !!python/object/apply:os.system [id]", "not YAML"),
    "a set that is none": ("a: !!set 5", "not YAML"),
    "a truth value that is none": ("a: !!bool 5", "not YAML"),
    "a time that is none": ("a: !!timestamp x", "not YAML"),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_hostile_yaml_is_refused_with_a_sentence(attack, tmp_path):
    text, cause = HOSTILE[attack]
    begun = time.perf_counter()
    with pytest.raises(ValueError, match=cause):
        parse_values(text)
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ValueError, match=cause):
        read_values(tmp_path / "p.yaml")
    assert time.perf_counter() - begun < 10


@pytest.mark.parametrize("attack", ["aliases of aliases", "5,000 brackets"])
def test_the_command_answers_with_a_line(attack, tmp_path):
    text, _ = HOSTILE[attack]
    (tmp_path / "p.yaml").write_text(text)
    for given in (["-y", text], ["-f", str(tmp_path / "p.yaml")]):
        result = CliRunner().invoke(main, ["report", "crafter_scores", "-o", str(tmp_path / "out"), *given])
        assert result.exit_code == 2, result.output
        assert isinstance(result.exception, SystemExit)
        assert not (tmp_path / "out").exists()


def test_the_value_of_one_parameter_is_checked_alike():
    kind = Parameter("models", "list[str]", [])
    for text in ("[" * 5000, "[&a [*a]]", "[" + "9" * 5000 + "]"):
        value, fault = from_text(text, kind)
        assert value == text
        assert fault.startswith("models must be list[str], not")
        assert len(fault) < 400


def test_aliases_and_merges_of_people_are_read():
    text = "base: &base {a: 1, b: [x, y]}\nother:\n  <<: *base\n  c: 2\nsame: *base"
    assert parse_values(text) == {
        "base": {"a": 1, "b": ["x", "y"]},
        "other": {"a": 1, "b": ["x", "y"], "c": 2},
        "same": {"a": 1, "b": ["x", "y"]},
    }


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_a_params_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "p.yaml")
    with pytest.raises(ValueError, match="not a regular file"):
        read_values(tmp_path / "p.yaml")
