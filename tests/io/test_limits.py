"""A file beyond a limit is failed with the reason, and the files beside it are read."""

import os
import re
import signal
import time
import zipfile

import fsspec
import pytest

from evalkit import mindcraft
from evalkit.io import SourceError, read_file, read_files
from evalkit.io.limits import VARIABLE, LimitError, Limits, check_size, guarded, limits
from evalkit.kinds import load, outcomes
from tests.kinds.toy import TOY, write
from tests.mindcraft.builders import write_all

MEGABYTE = 2**20
pytestmark = pytest.mark.timeout(60, method="thread")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", {}),
        ("bytes=5", {"bytes": 5}),
        (" bytes=2G , seconds=300,", {"bytes": 2 * 2**30, "seconds": 300}),
        ("bytes=3k,seconds=1M", {"bytes": 3 * 2**10, "seconds": 2**20}),
    ],
)
def test_limits_are_read_from_the_environment(text, changed, monkeypatch):
    monkeypatch.setenv(VARIABLE, text)
    assert limits() == Limits(**changed)


@pytest.mark.parametrize("text", ["bytes", "bytes=", "bytes=0", "bytes=-1", "bytes=1.5", "bytes=1T", "sizes=1", "x"])
def test_what_is_no_limit_is_refused_with_the_names_there_are(text, monkeypatch):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(SourceError, match=rf"{VARIABLE}: .*{text}.*bytes, "):
        limits()


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.json", "huge.json", "z.json")]
    for path in paths:
        with open(path, "wb") as file:
            file.write(b"x")
    os.truncate(paths[1], 2**40)  # sparse: it takes no space
    found = dict(read_files(paths))
    assert [found[paths[0]], found[paths[2]]] == [b"x", b"x"]
    assert str(2**40) in found[paths[1]].strerror
    assert next(iter(read_files(paths[1:2], 3))) == (paths[1], b"x\0\0")


@pytest.mark.parametrize("size", [5, 1025, 300 * MEGABYTE, 2**30 + 1, 10**12])
def test_the_message_says_which_limit_reads_the_file(monkeypatch, size):
    monkeypatch.setenv(VARIABLE, "bytes=1")
    with pytest.raises(LimitError) as raised:
        check_size(size)
    asked = re.search(f'{VARIABLE}="(.*)" reads it', raised.value.strerror)[1]
    monkeypatch.setenv(VARIABLE, asked)
    check_size(size)
    assert limits().bytes < 1.13 * size + 1


@pytest.mark.parametrize("path", ["/proc/self/maps", "memory://limits/a.json"])
def test_a_file_whose_size_is_not_known_is_read_up_to_the_limit(monkeypatch, path):
    if path.startswith("/proc") and not os.path.exists(path):
        pytest.skip("every file tells its size here")
    fsspec.filesystem("memory").pipe_file("/limits/a.json", bytes(2000))
    assert len(read_file(path)) > 1024
    monkeypatch.setenv(VARIABLE, "bytes=1k")
    with pytest.raises(OSError, match="more than the limit of 1024"):
        read_file(path)


def test_it_stands_in_the_ledger_until_the_limit_is_higher(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    write(tmp_path / "logs" / "a.json")
    write(tmp_path / "logs" / "b.json", task="x" * 2000)
    monkeypatch.setenv(VARIABLE, "bytes=1k")
    ledger = load(TOY, tmp_path / "logs", {}).ledger
    assert ledger["status"].tolist() == ["used", "failed"]
    assert "more than the limit of 1024; EVALKIT_LIMITS=" in ledger["reason"][1]
    monkeypatch.delenv(VARIABLE)
    assert load(TOY, tmp_path / "logs", {}).ledger["status"].tolist() == ["used", "used"]


def test_a_member_that_is_too_large_is_not_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "runs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {"a.json": b"{}", "b.json": bytes(5 * MEGABYTE)}.items():
            archive.writestr(name, data)
    urls = [f"zip://{path}!/{name}" for name in ("a.json", "b.json")]
    for limit, is_read in (("bytes=4M", False), ("bytes=8M", True)):
        monkeypatch.setenv(VARIABLE, limit)
        first, second = (data for _, data in read_files(urls))
        assert first == b"{}"
        assert isinstance(second, bytes) if is_read else "more than the limit" in str(second)


def greedy(path, data):
    """Parse a file in one of the ways that do not end well."""
    if isinstance(data, OSError):
        return f"{type(data).__name__}: {data.strerror}"
    if data == b"memory":
        raise MemoryError
    if data == b"stack":
        return greedy(path, bytes(data))
    if data == b"time":
        while True:
            try:
                time.sleep(0.01)
            except Exception:  # as a reader may that means well
                continue
    return data.decode()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such signal here")
@pytest.mark.parametrize(
    ("content", "failure"),
    [
        (b"memory", "LimitError: the memory does not suffice for this file"),
        (b"stack", "LimitError: nested too deep"),
        (b"time", f'LimitError: parsing took longer than the limit of 1 seconds; {VARIABLE}="seconds=10" allows more'),
    ],
)
def test_one_file_that_takes_too_much_fails_alone(tmp_path, content, failure, monkeypatch):
    monkeypatch.setenv(VARIABLE, "seconds=1" if content == b"time" else "seconds=30")
    paths = [str(tmp_path / name) for name in ("a", "b", "c")]
    for path, data in zip(paths, (b"good", content, b"good"), strict=True):
        with open(path, "wb") as file:
            file.write(data)
    with guarded(greedy) as parse:
        assert [parse(path, data)[0] for path, data in read_files(paths)] == ["good", failure, "good"]
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_log_beyond_a_limit_is_not_measured_and_no_failure(tmp_path, monkeypatch):
    write_all(tmp_path / "logs", {"m/cook/Andy_0_0.json": 1, "m/bake/Andy_0_0.json": 1})
    big = tmp_path / "logs/m/bake/Andy_0_0.json"
    big.write_bytes(big.read_bytes() + b" " * 100_000)
    monkeypatch.setenv(VARIABLE, "bytes=50k")
    runs = mindcraft.load(tmp_path / "logs").runs.set_index("task_id")
    assert runs.loc["bake", "status"] == "LOG_FILE_ERROR"
    assert runs["is_successful"].isna().to_dict() == {"bake": True, "cook": False}
    table = outcomes(runs.reset_index()).table.set_index("task")
    assert table.loc["bake", "outcome"] == "not measured"
