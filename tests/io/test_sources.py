"""Listing: every file once, in order, whatever stands in the folder; unchanged folders are not looked into again."""

import os
from pathlib import Path

import pytest

from evalkit.io import SourceError, list_files, list_source, own_sources, resolve, sources
from evalkit.io.sources import KnownFolders


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


def test_folders_are_named_too(tree):
    assert names(list_source(tree).folders, tree) == [".", "b", "b/c"]


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
def test_a_broken_link_is_listed(tree, target):
    os.symlink(tree / target, tree / "circle.json")
    assert names(list_files(tree, "*.json"), tree) == ["a.json", "b/2.json", "b/c/3.json", "circle.json"]


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


@pytest.fixture
def scanned(monkeypatch):
    """The folders that are looked into, by their last name."""
    seen, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: seen.append(os.path.basename(path)) or scandir(path))
    return seen


def test_a_folder_that_can_not_be_listed_stands_among_the_files_until_it_can(tree, monkeypatch):
    scandir = os.scandir

    def refuse(path):
        if os.path.basename(path) == "b":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        patch.setattr(sources, "SETTLED", -10)
        listing = list_source(tree, "*")
        assert names(listing.files, tree) == ["a.json", "b"]
        with pytest.raises(SourceError, match=r"/b: Permission denied"):
            list_source(tree / "b")
    known = KnownFolders(listing.folders, listing.files)
    assert names(list_source(tree, known=known).files, tree) == ["a.json", "b/1.txt", "b/2.json", "b/c/3.json"]


CHANGES = {
    "nothing": (lambda root: None, []),
    "a file more": (lambda root: (root / "b/c/new.json").touch(), ["c"]),
    "a file less": (lambda root: (root / "b/2.json").unlink(), ["b"]),
    "a folder more": (lambda root: (root / "d").mkdir(), ["{root}", "d"]),
    "a folder renamed": (lambda root: (root / "b/c").rename(root / "b/z"), ["b", "z"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_only_folders_that_have_changed_are_looked_into_again(tree, monkeypatch, scanned, change):
    monkeypatch.setattr(sources, "SETTLED", -10)  # as if they had been left alone for a while
    before = list_source(tree)
    edit, expected = CHANGES[change]
    edit(tree)
    for folder in expected:  # the clock of a file system may stand still for some milliseconds
        path = next(path for path in [tree, *tree.rglob("*")] if path.name == folder.format(root=tree.name))
        os.utime(path, (1, 1))
    scanned.clear()
    found = list_source(tree, known=KnownFolders(before.folders, before.files))
    assert sorted(scanned) == sorted(folder.format(root=tree.name) for folder in expected)
    assert found == list_source(tree)


def test_a_folder_that_has_just_changed_is_looked_into_again(tree, scanned):
    before = list_source(tree)
    assert {state.modified for state in before.folders.values()} == {0}
    scanned.clear()
    list_source(tree, known=KnownFolders(before.folders, before.files))
    assert sorted(scanned) == sorted([tree.name, "b", "c"])


def test_a_link_to_a_folder_is_followed_again(tree, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(sources, "SETTLED", -10)
    other = tmp_path_factory.mktemp("other")
    os.symlink(other, tree / "z")
    before = list_source(tree)
    (other / "5.json").touch()
    found = list_source(tree, known=KnownFolders(before.folders, before.files))
    assert "z/5.json" in names(found.files, tree)


@pytest.mark.parametrize(
    ("named", "own"),
    [
        (("samples:a", "samples:b"), ("samples:a", "samples:b")),
        (("samples:a", ""), ("samples:a", "")),
        (("mine", "samples:b"), ("mine", "")),
        (("samples:a", "mine"), ("", "mine")),
        (("mine", "yours"), ("mine", "yours")),
        (("mine", ["samples:b", "samples:c"]), ("mine", [])),
        (("samples:a", ["samples:b", "mine"]), ("", [])),
        (("", ""), ("", "")),
    ],
)
def test_sample_data_is_left_out_beside_data_of_ones_own(named, own):
    assert own_sources(*named) == own
