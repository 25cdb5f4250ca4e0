"""What reports and commands say on the samples stays what it was; ``python -m tests.golden`` writes it anew."""

import pytest

from tests.golden.record import COMMANDS, EXPECTED, differences, record_command, record_report, reports

HINT = "If this is meant: python -m tests.golden, read the difference, and commit it with its reason."


def check(name: str, got: str) -> None:
    expected = (EXPECTED / name).read_text(encoding="utf-8")
    found = differences(expected, got)
    assert not found, "\n".join([f"{name} differs in {len(found)} places:", *found[:20], HINT])


@pytest.mark.parametrize("params", reports(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_report_says_what_it_said(params):
    check(f"reports/{params.parent.name}/{params.stem}.txt", record_report(params))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_said(name):
    check(f"commands/{name}.txt", record_command(COMMANDS[name]))


def test_every_expected_text_is_recorded_by_something():
    names = {f"reports/{path.parent.name}/{path.stem}.txt" for path in reports()}
    names |= {f"commands/{name}.txt" for name in COMMANDS}
    assert {path.relative_to(EXPECTED).as_posix() for path in EXPECTED.rglob("*.txt")} == names


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        ("rate 0.512345", "rate 0.512346", True),
        ("rate 0.512", "rate 0.513", False),
        ("n 12", "n 13", False),
        ("a 1", "b 1", False),
        ("a\nb", "a", False),
        ("a", "a\nb", False),
        ("0 of 3", "0 of 3", True),
        ("−0.5 points", "0.5 points", False),
    ],
)
def test_only_the_last_digits_of_numbers_may_differ(expected, got, same):
    assert (differences(expected, got) == []) == same
