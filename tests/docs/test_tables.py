"""Tables of docs that repeat what the code declares: events with their modes, and the checks of the audit."""

import re
from pathlib import Path

import pytest

from evalkit.compare.audit import CHECKS  # which registers them
from evalkit.failures.rules import COMMON
from evalkit.kinds import kind_named
from evalkit.kinds.detectors import Detector
from evalkit.kinds.names import kind_names

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


def test_the_docs_name_the_checks_of_the_audit():
    table = (DOCS / "audit.md").read_text("utf-8").partition("## The checks")[2].partition("\n## ")[0]
    named = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)[1:]
    assert sorted(named) == sorted(CHECKS)
