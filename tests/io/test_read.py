"""Reading: in order, one file at a time in memory, whatever stands in the folder."""

import errno
import os
import tracemalloc
from pathlib import Path

import pytest

from evalkit.io import list_files, read_files


@pytest.fixture
def tree(tmp_path):
    for name in ("a.json", "b/1.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_a_file_that_can_not_be_read_is_an_error_and_the_rest_goes_on(tree):
    found = list(read_files([str(tree / "gone"), str(tree / "b"), str(tree / "a.json")]))
    assert [type(data) for _, data in found] == [FileNotFoundError, IsADirectoryError, bytes]


def test_a_file_that_may_not_be_read_is_an_error(tree, monkeypatch):
    real = os.open

    def refuse(path, *given):
        if str(path).endswith("a.json"):
            raise PermissionError(13, "Permission denied")
        return real(path, *given)

    monkeypatch.setattr(os, "open", refuse)
    assert [type(data) for _, data in read_files(list_files(tree))] == [PermissionError, bytes]


@pytest.mark.timeout(20)
def test_a_pipe_in_a_folder_is_not_waited_for(tree):
    os.mkfifo(tree / "pipe.json")
    error = dict(read_files(list_files(tree)))[str(tree / "pipe.json")]
    assert isinstance(error, OSError)
    assert error.errno == errno.EINVAL


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


def test_only_the_beginning_is_read_where_that_is_enough(tree):
    found = [data for _, data in read_files([str(tree / name) for name in ("a.json", "b", "gone")], 3)]
    assert found[0] == b"a.j"
    assert [type(data) for data in found[1:]] == [IsADirectoryError, FileNotFoundError]
