"""Credentials in parameters: refused before anything is made of them, and repeated nowhere."""

import os

import nbformat
import pytest

from evalkit.reports import PlanError, plan, run
from tests.io.test_sources import WITH

CELL = 'runs: str = ""\nlogs: list[str] = []\nby: dict[str, str] = {}\nn: int = 1'
SECRET = "SEK"  # a part of every secret in WITH
WAYS = {
    "a value": {"values": lambda url: {"runs": url}},
    "an item": {"values": lambda url: {"logs": ["x", url]}},
    "a sweep": {"values": lambda url: {"runs": ["x", url]}},
    "a mapping": {"values": lambda url: {"by": {"x": url}}},
    "its key": {"values": lambda url: {"by": {url: "x"}}},
    "a wrong type": {"values": lambda url: {"n": url}},
    "no parameter": {"values": lambda url: {url: "x"}},
    "typed": {"texts": lambda url: [("runs", url)]},
    "typed as a list": {"texts": lambda url: [("logs", f"[x, '{url}']")]},
    "typed for a number": {"texts": lambda url: [("n", url)]},
}


@pytest.mark.parametrize("url", WITH)
@pytest.mark.parametrize("way", WAYS)
def test_no_report_is_planned_with_credentials(project, url, way):
    project("one", parameters=CELL)
    with pytest.raises(PlanError) as raised:
        plan(["one"], **{name: make(url) for name, make in WAYS[way].items()})
    assert SECRET not in f"{raised.value} {raised.value.faults} {raised.value.__cause__}"


@pytest.mark.parametrize("url", WITH)
def test_nor_with_those_of_a_params_file_or_of_the_notebook_itself(project, url):
    project("one", parameters=CELL, params={"a.yaml": f"runs: '{url}'"})
    project("two", parameters=f"runs: str = {url!r}", params={"b.yaml": ""})
    with pytest.raises(PlanError) as raised:
        plan()
    files = ["params/one/a.yaml", "params/two/b.yaml"]
    assert [fault.partition(": runs: ")[0] for fault in raised.value.faults] == files
    assert SECRET not in str(raised.value)


def test_an_error_that_holds_some_reaches_neither_page_nor_record_as_the_cause(project, tmp_path):
    project("one", "import os\nraise OSError(os.environ['PLACE'])")
    os.environ["PLACE"] = "s3://KEY:SEKRET@bucket/p"
    try:
        run(plan(["one"]), output=tmp_path / "out", say=lambda line: None)
    finally:
        del os.environ["PLACE"]
    made = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert [path.name for path in made if SECRET in path.read_text()] == []
    nb = nbformat.read(tmp_path / "out/one/defaults.ipynb", as_version=4)
    assert nb.cells[-1].outputs[-1].evalue == "s3://…@bucket/p"
