"""Tables of docs that repeat what the code declares: events with their modes, and the checks of the audit."""

import re
from pathlib import Path

import pytest

from evalkit.compare.audit import CHECKS  # which registers them
from evalkit.failures.rules import COMMON
from evalkit.io.store import RecordStore
from evalkit.kinds import kind_named
from evalkit.kinds.detectors import Detector
from evalkit.kinds.names import BUILT_IN, kind_names

DOCS = Path(__file__).parents[2] / "docs"
RULES, MEASURED = (DOCS / "failures.md").read_text("utf-8").split("<!-- what follows is written by")
DETECTORS = [*COMMON, *(one for name in kind_names() for one in kind_named(name).detectors)]


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda one: one.name)
def test_an_event_has_its_rule_its_severity_and_its_measured_precision_in_the_docs(detector: Detector):
    event = f"`{detector.name}`"
    assert event in RULES.partition("## Your own detectors")[0]
    assert f"| {event} |" in MEASURED  # which needs a planted cause
    if detector.mode:
        (modes,) = re.findall(rf"^\| {detector.severity} \| (.+) \|$", RULES, re.MULTILINE)
        assert detector.mode in modes.split(", ")


def test_the_docs_list_the_tables_of_the_datasets_of_each_kind():
    table = (DOCS / "scale.md").read_text("utf-8").partition("| kind | tables |")[2].partition("\n\n")[0]
    rows = re.findall(r"\| `(\w+)` \| (.+) \|", table)
    listed = {kind: set(re.findall(r"`(\w+)`", names)) for kind, names in rows}
    assert listed == {name: set(RecordStore("", kind_named(name).records).tables) for name in BUILT_IN}


@pytest.mark.parametrize("name", BUILT_IN)
def test_help_describes_a_kind_as_the_kind_itself_does(name):
    assert kind_named(name).summary == BUILT_IN[name].summary


def test_the_docs_name_the_checks_of_the_audit():
    table = (DOCS / "audit.md").read_text("utf-8").partition("## The checks")[2].partition("\n## ")[0]
    named = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)[1:]
    assert sorted(named) == sorted(CHECKS)
