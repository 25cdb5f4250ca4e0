"""Reports and commands show on the samples what was recorded; ``python -m tests.golden`` records it again."""

import pytest

from tests.golden.record import (
    COMMANDS,
    EXPECTED,
    PAGES,
    differences,
    name_of,
    record_command,
    record_report,
    reports,
)

HINT = "If this is meant: python -m tests.golden, read the difference, and commit it with its reason."


def check(name: str, got: str) -> None:
    expected = (EXPECTED / name).read_text(encoding="utf-8")
    found = differences(expected, got)
    assert not found, "\n".join([f"{name} differs in {len(found)} places:", *found[:20], HINT])


@pytest.mark.parametrize("params", reports(), ids=name_of)
def test_a_report_says_what_it_said(params):
    recorded = record_report(params)
    check(f"numbers/{name_of(params)}.csv", recorded.numbers)
    if name_of(params) in PAGES:
        check(f"pages/{name_of(params)}.txt", recorded.text)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_said(name):
    check(f"commands/{name}.txt", record_command(COMMANDS[name]))


def test_every_notebook_has_a_page_and_every_expected_file_is_recorded():
    assert sorted(page.partition("/")[0] for page in PAGES) == sorted({path.parent.name for path in reports()})
    names = {f"numbers/{name_of(path)}.csv" for path in reports()}
    names |= {f"pages/{page}.txt" for page in PAGES}
    names |= {f"commands/{name}.txt" for name in COMMANDS}
    assert {path.relative_to(EXPECTED).as_posix() for path in EXPECTED.rglob("*.*")} == names


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
