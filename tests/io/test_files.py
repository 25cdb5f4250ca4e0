"""Listing and reading: every file once, in order, whatever stands in the folder."""

import errno
import os
import tracemalloc
from pathlib import Path

import pytest

from evalkit.io import SourceError, list_files, list_tree, read_file, read_files, resolve
from evalkit.io.files import READ_AHEAD

needs_permissions = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


def names(paths: list[str], root: Path) -> list[str]:
    return [os.path.relpath(path, root) for path in paths]


@pytest.fixture
def tree(tmp_path):
    for name in ("b/2.json", "b/1.txt", "a.json", "b/c/3.json", ".hidden.json", ".folder/4.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["a.json", "b/1.txt", "b/2.json", "b/c/3.json"]),
        ({"pattern": "*.json"}, ["a.json", "b/2.json", "b/c/3.json"]),
        ({"recursive": False}, ["a.json"]),
    ],
)
def test_files_are_sorted_and_hidden_ones_left_out(tree, options, expected):
    assert names(list_files(tree, **options), tree) == expected


def test_a_single_file_is_listed_as_itself_whatever_the_pattern(tree):
    assert list_files(tree / "b/1.txt", "*.json") == [str(tree / "b/1.txt")]


def test_the_tree_names_the_folders_too(tree):
    assert names(list_tree(tree)[1], tree) == [".", "b", "b/c"]


def test_an_empty_folder_has_no_files(tmp_path):
    assert list_files(tmp_path) == []


def test_a_folder_linked_in_a_circle_is_listed_once(tree):
    os.symlink(tree, tree / "b/up")
    assert names(list_files(tree, "*.json"), tree) == ["a.json", "b/2.json", "b/c/3.json"]


def test_a_real_folder_keeps_its_name_beside_a_link_to_it(tree):
    os.symlink(tree / "b", tree / "a_link")
    assert names(list_files(tree, "*.txt"), tree) == ["b/1.txt"]


def test_a_linked_folder_from_elsewhere_is_followed(tree, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "5.json").touch()
    os.symlink(other, tree / "z")
    assert "z/5.json" in names(list_files(tree), tree)


@pytest.mark.parametrize("target", ["circle.json", "nowhere.json"])
def test_a_broken_link_is_listed_and_fails_when_read(tree, target):
    os.symlink(tree / target, tree / "circle.json")
    files = list_files(tree, "*.json")
    assert names(files, tree) == ["a.json", "b/2.json", "b/c/3.json", "circle.json"]
    assert isinstance(dict(read_files(files))[str(tree / "circle.json")], OSError)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nothing/here", "nothing/here: no such file or folder"),
        ("", "path is empty"),
        ("~no_such_user_here/x", "~no_such_user_here"),
        ("a\0b", "no such"),
        ("x" * 5000, "too long"),
        ("samples:nothing", "samples:mindcraft"),
        ("samples:", "samples:mindcraft"),
    ],
)
def test_a_source_that_is_not_there_is_named(source, words):
    with pytest.raises(SourceError, match=words):
        resolve(source)


def test_home_and_samples_are_resolved(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "runs").mkdir()
    assert resolve("~/runs") == str(tmp_path / "runs")
    assert os.path.isdir(resolve("samples:mindcraft"))


def test_files_are_read_in_order_also_beyond_the_read_ahead(tmp_path):
    paths = []
    for i in range(READ_AHEAD * 2 + 3):
        paths.append(str(tmp_path / f"{i:04}"))
        Path(paths[-1]).write_text(str(i))
    assert list(read_files(paths)) == [(path, str(i).encode()) for i, path in enumerate(paths)]


def test_a_file_that_can_not_be_read_is_an_error_and_the_rest_goes_on(tree):
    found = list(read_files([str(tree / "gone"), str(tree / "b"), str(tree / "a.json")]))
    assert [type(data) for _, data in found] == [FileNotFoundError, IsADirectoryError, bytes]


@needs_permissions
def test_what_may_not_be_read_is_listed_and_says_so(tree):
    (tree / "a.json").chmod(0)
    (tree / "b").chmod(0)
    try:
        found = dict(read_files(list_files(tree)))
    finally:
        (tree / "b").chmod(0o755)
    assert [type(data) for data in found.values()] == [PermissionError, PermissionError]


@pytest.mark.timeout(20)
def test_a_pipe_in_a_folder_is_not_waited_for(tree):
    os.mkfifo(tree / "pipe.json")
    error = dict(read_files(list_files(tree)))[str(tree / "pipe.json")]
    assert isinstance(error, OSError)
    assert error.errno == errno.EINVAL


def test_read_file_gives_the_bytes(tree):
    assert read_file(tree / "a.json") == b"a.json"


def test_one_file_is_held_at_a_time(tmp_path):
    paths = [str(tmp_path / name) for name in "abcd"]
    for path in paths:
        Path(path).write_bytes(bytes(1_000_000))
    tracemalloc.start()
    try:
        for _, data in read_files(paths):
            assert len(data) == 1_000_000
            del data
        assert tracemalloc.get_traced_memory()[1] < 1_500_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "sources",
    [["{0}/runs", "runs"], ["runs/*"], ["runs/real", "runs/latest"], ["runs/latest/a.json", "runs/real/a.json"]],
)
def test_a_file_counts_once_whatever_its_names(tmp_path, monkeypatch, sources):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/real").mkdir(parents=True)
    (tmp_path / "runs/real/a.json").write_text("1")
    (tmp_path / "runs/latest").symlink_to("real")
    files = list_files([source.format(tmp_path) for source in sources])
    assert [os.path.realpath(file) for file in files] == [str((tmp_path / "runs/real/a.json").resolve())]


def test_endings_may_be_in_capitals(tmp_path):
    for name in ("a.json", "b.JSON", "C.Json", "d.txt"):
        (tmp_path / name).write_text("1")
    assert [Path(file).name for file in list_files(tmp_path, "*.json")] == ["C.Json", "a.json", "b.JSON"]
