"""Provenance: the same data give the same fingerprint wherever they lie."""

import shutil

import pandas as pd
import pytest

from evalkit import display, mindcraft
from evalkit._version import code_version
from evalkit.display import show
from tests.special_files import link_to_device, link_to_endless_file, pipe


def fingerprint(paths):
    return show.fingerprint(paths)[1]


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "one"
    (root / "sub").mkdir(parents=True)
    (root / "a.json").write_text("1")
    (root / "sub/b.json").write_text("2")
    return root


def files(root) -> list[str]:
    return [str(path) for path in root.rglob("*.json")]


def test_the_same_files_elsewhere_in_any_order_have_the_same_fingerprint(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "two")
    assert fingerprint(files(folder)) == fingerprint(reversed(files(tmp_path / "two")))
    assert len(fingerprint([])) == 16


@pytest.mark.parametrize("change", ["content", "name", "missing", "unreadable"])
def test_any_change_of_the_files_changes_the_fingerprint(folder, change):
    before = fingerprint(files(folder))
    target = folder / "sub/b.json"
    if change == "content":
        target.write_text("3")
    elif change == "name":
        target.rename(folder / "sub/c.json")
    else:
        target.unlink()
    assert fingerprint(files(folder) + [str(target)] * (change == "unreadable")) != before


def test_provenance_names_versions_parameters_and_input(folder, shown, tags):
    ledger = pd.DataFrame({"source": files(folder), "status": ["used", "skipped"], "reason": ""})
    display.provenance(ledger, runs="<b>$x$", items=["a"], api_key="hidden")
    texts = tags(shown[0][0]["text/html"]).texts
    assert texts[texts.index("parameter api_key") + 1] == "…"
    known = {"1 read, 2 seen", "'<b>$x$'", "['a']", "evalkit", "pandas", "Python", code_version(), "1 bytes in 1 file"}
    assert {*known, fingerprint(files(folder)[:1])} <= set(texts)


def test_a_dataset_stands_for_its_logs_and_what_lies_elsewhere_counts_too(folder, tmp_path, shown, tags):
    mindcraft.collect(folder / "sub", tmp_path / "made")
    ledger = pd.DataFrame({"source": files(folder), "status": "used", "reason": ""})
    display.provenance(ledger, runs=str(tmp_path / "made"), tasks=[str(folder / "a.json")])
    parts = [str(path) for path in (tmp_path / "made").rglob("*.parquet") if path.parent.name != "folders"]
    assert fingerprint([*parts, str(folder / "a.json")]) in tags(shown[0][0]["text/html"]).texts


@pytest.mark.timeout(200)  # an opened pipe would be waited for
@pytest.mark.parametrize("make", [pipe, link_to_device, link_to_endless_file])
def test_only_regular_files_of_some_size_are_read(folder, make):
    make(folder / "c.json")
    assert show.fingerprint(files(folder))[0] == 2
