"""Reading: in order, one file at a time in memory; what can't be read is failed with the reason, the rest is read."""

import errno
import gc
import os
import tracemalloc
import weakref
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest

from evalkit.io import SourceError, read_file, read_files
from evalkit.io.paths import MOST_BYTES
from evalkit.kinds import load
from tests.kinds.toy import TOY, write
from tests.mindcraft.builders import write_all


def test_an_error_of_reading_keeps_no_caller_and_what_it_holds_in_memory():
    class Logs:
        pass

    def caller():
        logs = Logs()
        with suppress(FileNotFoundError):
            read_file("nowhere")
        return weakref.ref(logs)

    gc.disable()
    try:
        assert caller()() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("most", [None, 3])
def test_what_can_not_be_read_is_an_error_and_the_rest_goes_on(tmp_path, monkeypatch, most):
    real = os.open

    def refuse(path, *given):
        if str(path).endswith("1.txt"):
            raise PermissionError(13, "Permission denied")
        return real(path, *given)

    monkeypatch.setattr(os, "open", refuse)
    write_all(tmp_path, {"a.json": b"a.json", "b/1.txt": b"", "huge": b""})
    os.truncate(tmp_path / "huge", 2**40)  # sparse: it takes no space
    paths = [str(tmp_path / name) for name in ("gone", "b", "b/1.txt", "huge", "a.json")]
    *errors, huge, whole = (data for _, data in read_files(paths, most))
    assert [error.errno for error in errors] == [errno.ENOENT, errno.EISDIR, errno.EACCES]
    assert (whole, huge if most else str(2**40) in huge.strerror) == (b"a.json"[:most], bytes(3) if most else True)


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


@pytest.mark.parametrize("path", ["/proc/self/maps", "memory://limits/a.json", "zip://runs.zip!/a.json"])
def test_a_file_whose_size_is_not_known_is_read_up_to_the_limit(tmp_path, monkeypatch, path):
    if path.startswith("/proc") and not os.path.exists(path):
        pytest.skip("every file tells its size here")
    monkeypatch.chdir(tmp_path)
    fsspec.filesystem("memory").pipe_file("/limits/a.json", bytes(2000))
    with zipfile.ZipFile("runs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", bytes(2000))
    assert len(read_file(path)) > 1024
    monkeypatch.setenv(MOST_BYTES, "1024")
    with pytest.raises(OSError, match="more than the limit of 1024"):
        read_file(path)


def test_files_above_the_limit_fail_until_the_limit_is_higher(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    write(tmp_path / "logs" / "a.json")
    write(tmp_path / "logs" / "b.json", task="x" * 2000)
    monkeypatch.setenv(MOST_BYTES, "1e3")
    ledger = load(tmp_path / "logs", TOY).ledger
    assert ledger["status"].tolist() == ["used", "failed"]
    assert "more than the limit of 1000; EVALKIT_MAX_BYTES=" in ledger["reason"][1]
    monkeypatch.setenv(MOST_BYTES, "1 GB")
    with pytest.raises(SourceError, match="EVALKIT_MAX_BYTES=1 GB: write a number"):
        load(tmp_path / "logs", TOY)
    monkeypatch.delenv(MOST_BYTES)
    assert load(tmp_path / "logs", TOY).ledger["status"].tolist() == ["used", "used"]


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_one_file_that_takes_too_much_fails_alone(tmp_path, error):
    def greedy(path, data):
        if path.endswith("b.json"):
            raise error
        return TOY.parse(path, data)

    for name in "abc":
        write(tmp_path / f"{name}.json")
    ledger = load(tmp_path, replace(TOY, parse=greedy)).ledger
    assert ledger["status"].tolist() == ["used", "failed", "used"]
    reason = f"LimitError: parsing this file needs more memory or stack than available ({error.__name__})"
    assert ledger["reason"][1] == reason
    assert gc.isenabled()  # it pauses meanwhile
