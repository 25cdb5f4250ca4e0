"""Provenance: the same data give the same fingerprint wherever they lie, and only what changed is read again."""

import os
import shutil

import pandas as pd
import pytest

from evalkit import display, mindcraft
from evalkit.display.inputs import describe_inputs
from evalkit.io.versions import code_version
from tests.special_files import link_to_device, pipe


def fingerprint(paths):
    return describe_inputs(paths).fingerprint


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "one"
    (root / "sub").mkdir(parents=True)
    (root / "a.json").write_text("1")
    (root / "sub/b.json").write_text("2")
    return root


@pytest.fixture
def opened(monkeypatch):
    """List the files that are opened to be read."""
    paths, real = [], os.open
    monkeypatch.setattr(os, "open", lambda path, *options, **more: paths.append(path) or real(path, *options, **more))
    return paths


def files(root) -> list[str]:
    return [str(path) for path in root.rglob("*.json")]


def test_the_same_files_elsewhere_in_any_order_have_the_same_fingerprint(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "two")
    assert fingerprint(files(folder)) == fingerprint(reversed(files(tmp_path / "two")))
    assert len(fingerprint([])) == 16


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
    assert fingerprint(files(folder) + [str(target)] * (change == "unreadable")) != before


def test_provenance_names_versions_parameters_and_input(folder, shown, tags):
    ledger = pd.DataFrame({"source": files(folder), "status": ["used", "skipped"], "reason": ""})
    display.provenance(ledger, runs="<b>$x$", items=["a"])
    texts = tags(shown[0][0]["text/html"]).texts
    known = {"1 read, 2 seen", "'<b>$x$'", "['a']", "evalkit", "pandas", "Python", code_version(), "1 bytes in 1 file"}
    assert {*known, fingerprint(files(folder)[:1])} <= set(texts)


def test_a_dataset_stands_for_its_logs_and_what_lies_elsewhere_counts_too(folder, tmp_path, shown, tags):
    mindcraft.collect(folder / "sub", tmp_path / "made")
    ledger = pd.DataFrame({"source": files(folder), "status": "used", "reason": ""})
    display.provenance(ledger, runs=str(tmp_path / "made"), tasks=[str(folder / "a.json")])
    parts = [str(path) for path in (tmp_path / "made").rglob("*.parquet") if path.parent.name != "folders"]
    assert fingerprint([*parts, str(folder / "a.json")]) in tags(shown[0][0]["text/html"]).texts


@pytest.mark.timeout(200)  # an opened pipe would be waited for
@pytest.mark.parametrize("make", [pipe, link_to_device])
def test_only_regular_files_are_opened(folder, make, opened):
    make(folder / "c.json")
    inputs = describe_inputs(files(folder))
    assert (inputs.count, inputs.size, inputs.unreadable) == (3, 2, 1)
    assert str(folder / "c.json") not in opened
    assert str(folder / "a.json") in opened


def test_only_files_that_have_changed_are_read_again(folder, opened, tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("evalkit.kinds.pipeline.SETTLED", -1.0)  # all files count as left alone for long

    def read_for(paths):
        opened.clear()
        value = fingerprint(paths)
        return value, sorted(os.path.basename(path) for path in opened if path in files(folder))

    first, read_first = read_for(files(folder))
    again, read_again = read_for(files(folder))
    (folder / "sub/b.json").write_text("3")
    changed, read_changed = read_for(files(folder))
    assert (read_first, read_again, read_changed) == (["a.json", "b.json"], [], ["b.json"])
    assert first == again != changed
    assert fingerprint([str(folder / "a.json")]) != fingerprint(files(folder)) == changed  # others do not mix in
