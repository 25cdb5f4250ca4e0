"""Files behind URLs: on a real S3 server on loopback, in memory, in archives, and on a file system that fails."""

import asyncio
import json
import threading
import time
import zipfile
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import pandas as pd
import pytest
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from evalkit import crafter
from evalkit.io import SourceError, list_files, list_source, read_file, read_files, remote, storage
from evalkit.io.limits import VARIABLE
from evalkit.io.records import MANIFEST, read_manifest
from evalkit.io.remote import state_from
from evalkit.kinds import update
from evalkit.mindcraft import agents_df, aggregate_results, collect, conversation, extract_task_outcome, load
from tests.crafter.traces import config, environment, hook, trace

SECRET = "not-to-be-shown"
EXPERIMENT = "cooking/some-org/model-7b/suite/exp_1"  # as runs are uploaded: {task_type}/{model}/{suite}/{experiment}


def said(score, who=""):
    turns = [{"role": "user", "content": who}, {"role": "system", "content": f"Task ended with score : {score}"}]
    return json.dumps({"memory": "", "turns": turns}).encode()


FILES = {
    f"{EXPERIMENT}/bread/Andy_0_0.json": said(1, "a"),
    f"{EXPERIMENT}/bread/Jill_1_0.json": said(0, "b"),
    f"{EXPERIMENT}/cake/Andy_0_0.json": said(0.5, "c"),
    f"{EXPERIMENT}/cake/Andy_0_1.json": b"{",
    f"{EXPERIMENT}/.trash/Andy_0_0.json": said(1, "d"),
    f"{EXPERIMENT}/notes.txt": b"hello",
}


@pytest.fixture(scope="module")
def server():
    """Start an S3 server; return the storage options to reach it with, and what puts files into the bucket `logs`."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer
    from moto.s3.models import s3_backends

    threaded = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    threaded.start()
    host, port = threaded.get_host_and_port()
    backend = s3_backends["123456789012"]["aws"]  # the server runs in this process
    backend.create_bucket("logs", "us-east-1")
    options = {
        "key": "me",
        "secret": SECRET,
        "endpoint_url": f"http://{host}:{port}",
        "config_kwargs": {"retries": {"max_attempts": 1}},
    }
    yield options, lambda key, content: backend.put_object("logs", key, content)
    threaded.stop()


@pytest.fixture(scope="module")
def bucket(server):
    """Fill the bucket with the runs of `FILES`; return the storage options."""
    options, put = server
    for key, content in FILES.items():
        put(key, content)
    return options


@pytest.fixture
def folder(tmp_path):
    for key, content in FILES.items():
        path = tmp_path / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path


def same_but_for_the_root(one, other, root, url):
    for frame in (one, other):
        assert len(frame)
    one, other = (frame.drop(columns="run_id", errors="ignore") for frame in (one, other))  # made of the path
    texts = [c for c in one if one[c].dtype == "str"]
    moved = one.assign(**{c: one[c].str.replace(str(root), url, regex=False) for c in texts})
    pd.testing.assert_frame_equal(moved, other)


def test_a_bucket_gives_the_frames_of_the_same_folder(bucket, folder):
    local, found = load(folder), load("s3://logs/cooking", storage_options=bucket)
    same_but_for_the_root(local.runs, found.runs, folder, "s3://logs")
    same_but_for_the_root(local.agents, found.agents, folder, "s3://logs")
    same_but_for_the_root(local.ledger, found.ledger, folder, "s3://logs")
    assert set(found.runs["model_name"]) == {"some-org/model-7b"}
    assert set(found.runs["model_source"]) == {"s3_path"}


@pytest.mark.parametrize(
    ("source", "n"),
    [
        ("s3://logs", 5),
        (f"s3://logs/{EXPERIMENT}/", 5),
        (f"s3://logs/{EXPERIMENT}/*/Andy_0_*.json", 3),
        (f"s3://logs/{EXPERIMENT}/bread/Jill_1_0.json", 1),
        ([f"s3://logs/{EXPERIMENT}/bread", f"s3://logs/{EXPERIMENT}/cake", f"s3://logs/{EXPERIMENT}/bread"], 4),
    ],
)
def test_folders_globs_files_and_lists_are_listed(bucket, source, n):
    with storage(bucket):
        listing = list_source(source)
    assert len(listing.files) == len(set(listing.files)) == n
    assert all(file.startswith("s3://logs/cooking/") for file in listing.files)
    assert set(listing.states) == set(listing.files)
    assert all(state.size and state.tag and state.modified for state in listing.states.values())


def test_single_functions_take_urls(bucket):
    folder = f"s3://logs/{EXPERIMENT}/bread"
    with storage(bucket):
        assert extract_task_outcome(folder, None)["overall_raw_score"] == 1
        assert "Task ended with score : 1" in conversation(f"{folder}/Andy_0_0.json")
        assert read_file(f"{folder}/Andy_0_0.json") == FILES[f"{EXPERIMENT}/bread/Andy_0_0.json"]
    assert len(aggregate_results([folder, folder], storage_options=bucket)) == 1


def test_a_marker_of_an_empty_folder_is_a_folder(server):
    options, put = server
    put("marked/exp_1/bread/Andy_0_0.json", said(1))
    put("marked/exp_1/multiagent_cooking_cake/", b"")
    put("markedly/exp_1/rice/Andy_0_0.json", said(1))  # its name only begins like that of the folder
    runs = load("s3://logs/marked", storage_options=options).runs
    assert runs["task_id"].tolist() == ["bread", "multiagent_cooking_cake"]


@pytest.mark.parametrize("source", ["s3://logs/nothing", "s3://no-such-bucket/x", "s3://logs/nothing*"])
def test_what_is_not_there_is_one_clear_error(bucket, source):
    with storage(bucket), pytest.raises(SourceError, match=r"no such|no file|does not exist") as caught:
        list_source(source)
    assert SECRET not in str(caught.value)


def test_a_server_that_fails_or_is_slow_is_asked_again_and_then_in_the_ledger(server, monkeypatch):
    from moto.s3.models import S3Backend

    options, put = server
    calls, whole = {}, S3Backend.get_object

    def get_object(self, bucket, key, *args, **more):
        name = key.rpartition("/")[2]
        calls[name] = calls.get(name, 0) + 1
        if name.startswith("broken") or (name.startswith("flaky") and calls[name] == 1):
            raise RuntimeError("out of order")  # the server answers 500
        if name.startswith("slow"):
            time.sleep(1)
        return whole(self, bucket, key, *args, **more)

    for name in ("broken", "flaky", "slow", "well"):
        put(f"shaky/exp_1/bread/{name}_0.json", said(1, name))
    monkeypatch.setattr(S3Backend, "get_object", get_object)
    monkeypatch.setattr(remote, "TIMEOUT", 0.7)
    monkeypatch.setattr("s3fs.core.S3FileSystem.retries", 2)
    ledger = load("s3://logs/shaky", storage_options=options).ledger
    status = {row.source.rpartition("/")[2]: (row.status, row.reason) for row in ledger.itertuples()}
    assert status["flaky_0.json"] == status["well_0.json"] == ("used", "")
    assert status["broken_0.json"][0] == status["slow_0.json"][0] == "failed"
    assert status["slow_0.json"][1].startswith("TimeoutError")
    assert calls["broken_0.json"] > 1


class Shaky(fsspec.AbstractFileSystem):
    """A file system whose errors name the secret it was opened with."""

    protocol = "shaky"
    cachable = False

    def __init__(self, password="", token="", **more):
        super().__init__(**more)
        self.text = f"login with {password} at https://user:{password}@host/x?token={token} was refused"

    def ls(self, path, detail=True, **options):
        if "list" in path:
            raise OSError(self.text)
        return [{"name": f"{path.strip('/')}/a.json", "size": 1, "type": "file"}]

    def cat_file(self, path, **options):
        raise FileNotFoundError(path) if path.endswith(MANIFEST) else RuntimeError(self.text)

    def isdir(self, path):
        return True


@pytest.fixture
def shaky(monkeypatch):
    fsspec.register_implementation("shaky", Shaky, clobber=True)
    return {"password": SECRET, "token": "t0ken"}


def test_errors_do_not_hold_credentials(shaky, recwarn):
    with storage(shaky):
        ((_, error),) = read_files(list_files("shaky://x"))
        with pytest.raises(SourceError) as caught:
            list_files("shaky://list")
    for found in (error, caught.value):
        assert "was refused" in str(found)
        assert SECRET not in repr(found)
        assert "t0ken" not in repr(found)
    assert caught.value.__cause__ is None
    with pytest.raises(SourceError, match=r"shaky://x: .*: OSError: RuntimeError: login") as caught:
        agents_df("shaky://x", storage_options=shaky)
    assert SECRET not in str(caught.value)


class Slow(AsyncFileSystem):
    """A file system of many small files, each of which takes a while."""

    protocol = "slow"
    cachable = False
    under_way = most = 0

    async def _cat_file(self, path, start=None, end=None, **options):
        Slow.under_way += 1
        Slow.most = max(Slow.most, Slow.under_way)
        await asyncio.sleep(0.02)
        Slow.under_way -= 1
        return path.encode()


def test_remote_files_are_read_side_by_side_in_order():
    fsspec.register_implementation("slow", Slow, clobber=True)
    urls = [f"slow://x/{i}" for i in range(200)]
    assert [(url, b"x/%d" % i) for i, url in enumerate(urls)] == list(read_files(urls))
    assert 4 < Slow.most <= remote.AT_A_TIME


def test_local_and_remote_files_may_be_mixed(folder):
    with fsspec.open("memory://mixed/a.json", "wb") as file:
        file.write(b"{}")
    named = ["memory://mixed/a.json", str(folder / "cooking"), "memory://mixed"]
    found = list_source(named)
    assert found.files[0] == "memory://mixed/a.json"
    assert len(found.files) == 6
    assert next(read_files(found.files))[1] == b"{}"


@pytest.mark.parametrize("where", ["local", "bucket"])
def test_an_archive_gives_the_frames_of_the_same_folder(folder, server, where):
    options, put = server
    with zipfile.ZipFile(folder / "runs.zip", "w") as archive:
        for key, content in FILES.items():
            archive.writestr(key, content)
    place = str(folder / "runs.zip")
    if where == "bucket":
        put("archive/runs.zip", (folder / "runs.zip").read_bytes())
        place = "s3://logs/archive/runs.zip"
    found = load(f"zip://cooking::{place}", storage_options=options)
    same_but_for_the_root(load(folder / "cooking").runs, found.runs, folder, f"zip://{place}!")
    assert len(load(f"zip://::{place}", storage_options=options).runs) == 3


def test_file_urls_are_local_paths_and_an_unknown_protocol_is_named(folder):
    assert list_files(f"file://{folder}/cooking") == list_files(folder / "cooking")
    with pytest.raises(SourceError, match=r"nope://x: .*Protocol not known"):
        list_source("nope://x")


def test_a_stored_parse_of_a_bucket_is_used_until_an_object_changes(server, monkeypatch, tmp_path):
    options, put = server
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path))
    put("kept/exp_1/bread/Andy_0_0.json", said(0))
    assert load("s3://logs/kept", storage_options=options).runs["overall_score"].tolist() == [0]
    with monkeypatch.context() as patch:
        patch.setattr(update, "parse_chunks", lambda paths, *_: iter([]) if not paths else pytest.fail("read again"))
        assert load("s3://logs/kept", storage_options=options).runs["overall_score"].tolist() == [0]
    put("kept/exp_1/bread/Andy_0_0.json", said(1))
    assert load("s3://logs/kept", storage_options=options).runs["overall_score"].tolist() == [1]
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_dataset_in_a_bucket_follows_a_bucket(server):
    options, put = server
    put("gathered/exp_1/bread/Andy_0_0.json", said(0))
    put("gathered/exp_1/cake/Andy_0_0.json", said(1, "b"))
    with storage(options):
        assert collect("s3://logs/gathered", "s3://logs/made/here").new == 2
        put("gathered/exp_1/cake/Andy_0_0.json", said(0, "c"))
        put("gathered/exp_1/rice/Andy_0_0.json", said(1, "d"))
        done = collect("s3://logs/gathered", "s3://logs/made/here")
        assert (done.new, done.changed, done.unchanged) == (1, 1, 1)
        expected, found = load("s3://logs/gathered"), load("s3://logs/made/here")
        made = read_manifest("s3://logs/made/here")
        live = {part.path("s3://logs/made/here", name) for part in (*made.parts, made.folders) for name in part.tables}
        assert set(list_files("s3://logs/made/here", "*.parquet")) == live
    pd.testing.assert_frame_equal(expected.runs, found.runs)
    pd.testing.assert_frame_equal(expected.ledger, found.ledger)


@pytest.mark.parametrize("output", ["s3://no-such-bucket", "s3://no-such-bucket/x", "s3://no-such-bucket/x/y"])
def test_a_dataset_in_a_bucket_that_is_not_there_is_refused_and_makes_none(server, output):
    options, put = server
    put("few/exp_1/bread/Andy_0_0.json", said(0))
    with storage(options):
        with pytest.raises(SourceError, match=f"^{output}/.*does not exist"):
            collect("s3://logs/few", output)
        with pytest.raises(SourceError, match="does not exist"):
            list_source("s3://no-such-bucket")


class Folders(MemoryFileSystem):
    """A file system with real folders, as most have: what lies in none can't be written."""

    protocol = "folders"
    store, pseudo_dirs = {}, [""]

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("folders://").strip("/") if path.strip("/") else ""

    def pipe_file(self, path, value, mode="overwrite", **options):
        if not self.isdir(self._parent(path)):
            raise FileNotFoundError(path)
        super().pipe_file(path, value, mode, **options)


def test_folders_are_made_where_a_file_system_has_them():
    fsspec.register_implementation("folders", Folders, clobber=True)
    Folders().mkdir("host")
    for name in ("a/b/c.bin", "a/d/e.bin", "f.bin"):
        remote.write_remote(f"folders://host/{name}", b"x")
    assert sorted(Folders.store) == ["/host/a/b/c.bin", "/host/a/d/e.bin", "/host/f.bin"]


@pytest.mark.parametrize(
    "info",
    [
        {"date_time": (1980, 0, 0, 0, 0, 0)},  # as some tools write it
        {"date_time": (2107, 15, 31, 31, 63, 62)},
        {"mtime": float("inf")},
        {"mtime": float("nan")},
        {"mtime": 1e18},
        {"mtime": -1e18},
        {"LastModified": "yesterday"},
        {"size": 2**64 - 1},
        {"size": -1},
    ],
)
def test_a_time_or_size_that_no_file_has_does_no_harm(info):
    state = state_from(info)
    assert state.modified == 0
    assert 0 <= state.size < 2**63


def test_a_damaged_member_of_an_archive_is_an_error(tmp_path):
    path = tmp_path / "runs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.json"), b"x" * 100)
    path.write_bytes(path.read_bytes().replace(b"x" * 100, b"y" * 100))
    [(_, error)] = read_files([f"zip://{path}!/a.json"])
    assert "CRC" in str(error)


@contextmanager
def _web_server(send):
    """Serve what a function writes for each request, without ever saying how much that is."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(200)
            self.end_headers()

        def do_GET(self):
            self.do_HEAD()
            sent.append(0)
            with suppress(OSError):  # the reader has left
                for part in send():
                    self.wfile.write(part)
                    sent[-1] += len(part)

        def log_message(self, *_):
            pass

    sent = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/a.json", sent
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.timeout(60)
def test_a_web_server_that_tells_no_size_is_read_up_to_the_limit(monkeypatch):
    pytest.importorskip("aiohttp")
    monkeypatch.setenv(VARIABLE, "bytes=1M")
    most = 40 * 2**20
    with _web_server(lambda: iter([b"[" + b" " * 2**16] * (most // 2**16))) as (url, sent):
        with pytest.raises(OSError, match="more than the limit of 1048576"):
            read_file(url)
        [(_, head)] = read_files([url], 100)
        assert head == b"[" + b" " * 99
        with pytest.raises(SourceError, match=r"more than the limit of 1048576"):
            crafter.load(url)
        assert max(sent) < most / 2  # what sockets hold beside
    with _web_server(lambda: iter([said(1)])) as (url, _):
        assert read_file(url) == said(1)


TRACE = json.dumps(
    trace(environment(0, [hook("easy_achievement", ["collect_wood"])]), metadata=[config(model_name="m")])
)


@contextmanager
def _answering(monkeypatch, answer):
    """Serve one trace; a function of (handler, is the trace asked for, is its body) writes every answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, *, body):
            with suppress(OSError):
                answer(self, self.path == "/s.json", body)

        def reply(self, status, content, body):
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, *_):
            pass

    pytest.importorskip("aiohttp")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/s.json"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(("status", "content"), [(200, b"<html>"), (404, b"{}"), (500, b"[1]"), (200, TRACE.encode())])
def test_a_file_is_read_whatever_the_web_server_answers_to_unknown_paths(monkeypatch, status, content):
    def answer(handler, is_trace, body):
        handler.reply(200 if is_trace else status, TRACE.encode() if is_trace else content, body)

    with _answering(monkeypatch, answer) as url:
        assert crafter.load(url).episodes["score"].tolist() == [1]


def _hang(handler, is_trace, body):
    time.sleep(3)


def _drip(handler, is_trace, body):
    handler.reply(200 if is_trace else 404, TRACE.encode(), body=False)
    for byte in TRACE.encode()[:30] if body else b"":
        handler.wfile.write(bytes([byte]))
        time.sleep(0.1)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("answer", [_hang, _drip])
def test_a_web_server_that_hangs_or_drips_ends_with_the_reason_in_time(monkeypatch, answer):
    monkeypatch.setattr(remote, "TIMEOUT", 0.5)
    begun = time.monotonic()
    with _answering(monkeypatch, answer) as url, pytest.raises(SourceError, match="no whole answer within 0"):
        crafter.load(url)
    assert time.monotonic() - begun < 3


def _status_line(handler, is_trace, body):
    handler.wfile.write(b"SECRET CONTENT\r\n\r\n")


def _chunks(handler, is_trace, body):
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"SECRET\r\n" if body else b"")


def _reason(handler, is_trace, body):
    handler.send_response(503, "SECRET")
    handler.end_headers()


@pytest.mark.parametrize(
    ("answer", "words"),
    [(_status_line, "no valid HTTP"), (_chunks, "no valid HTTP|no whole answer"), (_reason, "it answered 503")],
)
def test_a_message_repeats_nothing_of_what_a_web_server_sent(monkeypatch, answer, words):
    monkeypatch.setattr(remote, "TIMEOUT", 2.0)
    with _answering(monkeypatch, answer) as url:
        with pytest.raises(SourceError, match=words) as raised:
            crafter.load(url)
        with pytest.raises(OSError, match=words):
            read_file(url)
    assert "SECRET" not in str(raised.value)
