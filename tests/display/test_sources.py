"""Provenance: the same data give the same fingerprint wherever they lie."""

import shutil

import pandas as pd
import pytest

from evalkit import display, mindcraft
from evalkit.display.sources import fingerprint


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "one"
    (root / "sub").mkdir(parents=True)
    (root / "a.json").write_text("1")
    (root / "sub/b.json").write_text("2")
    return root


def files(root) -> list[str]:
    return [str(path) for path in root.rglob("*.json")]


def test_a_copy_elsewhere_has_the_same_fingerprint(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "two")
    assert fingerprint(files(folder)) == fingerprint(files(tmp_path / "two"))


def test_the_order_of_the_files_does_not_matter(folder):
    assert fingerprint(files(folder)) == fingerprint(reversed(files(folder)))


@pytest.mark.parametrize("change", ["content", "name", "missing", "unreadable"])
def test_any_change_shows(folder, change):
    before = fingerprint(files(folder))
    target = folder / "sub/b.json"
    if change == "content":
        target.write_text("3")
    elif change == "name":
        target.rename(folder / "sub/c.json")
    else:
        target.unlink()
    after = files(folder) + [str(target)] * (change == "unreadable")
    assert fingerprint(after) != before


def test_no_files_have_a_fingerprint_too():
    assert len(fingerprint([])) == 16


def test_provenance_names_versions_parameters_and_input(folder, shown, tags):
    ledger = pd.DataFrame({"source": files(folder), "status": ["used", "skipped"], "reason": ""})
    display.provenance(ledger, runs="<b>$x$", items=["a"])
    texts = tags(shown[0][0]["text/html"]).texts
    assert "1 read, 2 seen" in texts
    assert "'<b>$x$'" in texts
    assert "['a']" in texts
    assert {"evalkit", "pandas", "Python"} <= set(texts)
    assert fingerprint(files(folder)[:1]) in texts


def test_a_dataset_stands_for_its_logs_and_what_lies_elsewhere_counts_too(folder, tmp_path, shown, tags):
    logs, tasks = folder / "sub", folder / "a.json"
    mindcraft.collect(logs, tmp_path / "made")
    ledger = pd.DataFrame({"source": files(folder), "status": "used", "reason": ""})
    display.provenance(ledger, runs=str(tmp_path / "made"), tasks=[str(tasks)])
    parts = [str(path) for path in (tmp_path / "made").rglob("*.parquet")]
    assert fingerprint([*parts, str(tasks)]) in tags(shown[0][0]["text/html"]).texts
