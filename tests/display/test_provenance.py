"""Provenance: the same data give the same fingerprint wherever they lie."""

import os
import shutil
import threading

import pandas as pd
import pytest

from evalkit import display, mindcraft
from evalkit.display._provenance import describe_inputs
from evalkit.io import read
from evalkit.io.store import dataset_files
from evalkit.io.versions import code_version
from tests.special_files import link_to_device, pipe, unix_socket


def fingerprint(paths):
    return describe_inputs(paths).fingerprint


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
    assert code_version() in texts
    assert "1 bytes in 1 file" in texts
    assert fingerprint(files(folder)[:1]) in texts


def test_a_dataset_stands_for_its_logs_and_what_lies_elsewhere_counts_too(folder, tmp_path, shown, tags):
    logs, tasks = folder / "sub", folder / "a.json"
    mindcraft.collect(logs, tmp_path / "made")
    ledger = pd.DataFrame({"source": files(folder), "status": "used", "reason": ""})
    display.provenance(ledger, runs=str(tmp_path / "made"), tasks=[str(tasks)])
    parts = [str(path) for path in (tmp_path / "made").rglob("*.parquet") if path.parent.name != "folders"]
    assert fingerprint([*parts, str(tasks)]) in tags(shown[0][0]["text/html"]).texts


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Have the contents of files kept; all files count as left alone for long."""
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("evalkit.kinds.pipeline.SETTLED", -1.0)


@pytest.fixture
def opened(monkeypatch):
    """List the files that are opened to be read."""
    paths, real = [], read._open
    monkeypatch.setattr(read, "_open", lambda path: paths.append(path) or real(path))
    return paths


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [pipe, unix_socket, link_to_device])
def test_only_regular_files_are_opened(folder, make, opened):
    special = folder / "c.json"
    make(special)
    inputs = describe_inputs(files(folder))
    assert (inputs.count, inputs.size, inputs.unreadable) == (3, 2, 1)
    assert sorted(opened) == sorted(set(files(folder)) - {str(special)})


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_a_datasets_manifest_is_not_waited_for(folder):
    os.mkfifo(folder / "evalkit-records.json")
    reader = threading.Thread(target=_dataset_or_error, args=(str(folder),), daemon=True)
    reader.start()
    reader.join(10)
    assert not reader.is_alive()


def _dataset_or_error(path):
    with pytest.raises(ValueError, match="not a regular file"):
        dataset_files(path)


@pytest.mark.usefixtures("cache")
def test_only_files_that_have_changed_are_read_again(folder, opened):
    def read_for(make):
        opened.clear()
        value = make()
        return value, [os.path.basename(path) for path in opened if path.endswith(".json") and "cache" not in path]

    first, read_first = read_for(lambda: fingerprint(files(folder)))
    again, read_again = read_for(lambda: fingerprint(files(folder)))
    (folder / "sub/b.json").write_text("3")
    changed, read_changed = read_for(lambda: fingerprint(files(folder)))
    assert (sorted(read_first), read_again, read_changed) == (["a.json", "b.json"], [], ["b.json"])
    assert first == again != changed


@pytest.mark.usefixtures("cache")
def test_other_files_of_the_same_folder_do_not_mix(folder):
    whole, part = fingerprint(files(folder)), fingerprint([str(folder / "a.json")])
    assert (fingerprint(files(folder)), fingerprint([str(folder / "a.json")])) == (whole, part)


def test_a_name_of_bytes_that_are_no_text_is_found_again(folder):
    name = folder / os.fsdecode(b"\xff.json")
    name.write_text("4")
    assert describe_inputs([str(folder / "\\udcff.json")]).unreadable == 0
