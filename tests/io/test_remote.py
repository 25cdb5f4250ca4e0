"""Files behind URLs: an S3 server on loopback, memory, archives, a file system that fails, web servers."""

import asyncio
import json
import shutil
import threading
from collections import Counter
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pandas as pd
import pytest
from click.testing import CliRunner
from fsspec.asyn import AsyncFileSystem

from evalkit.cli import main
from evalkit.io import SourceError, list_source, read_files, remote, storage
from evalkit.io.remote import state_from
from evalkit.io.store import MANIFEST, read_manifest
from evalkit.kinds import RunFiles, transcript_of
from evalkit.mindcraft import KIND, agents_df, aggregate_results, collect, extract_task_outcome, load
from tests.kinds.toy import assert_same_frames
from tests.mindcraft.builders import SCORE, turn, write_all

SECRET = "not-to-be-shown"
EXPERIMENT = "cooking/some-org/model-7b/suite/exp_1"  # as runs are uploaded: {task_type}/{model}/{suite}/{experiment}


def said(score, who=""):
    return json.dumps({"memory": "", "turns": [turn("user", who), turn("system", f"{SCORE}{score}")]}).encode()


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
    options = {"key": "me", "secret": SECRET, "endpoint_url": f"http://{host}:{port}"}
    options["config_kwargs"] = {"retries": {"max_attempts": 1}}
    for key, content in FILES.items():
        backend.put_object("logs", key, content)
    yield options, lambda key, content: backend.put_object("logs", key, content)
    threaded.stop()


@pytest.fixture
def folder(tmp_path):
    return write_all(tmp_path, FILES)


def same_but_for_the_root(one, other, root, url):
    assert len(one) == len(other) > 0
    one, other = (frame.drop(columns="run_id", errors="ignore") for frame in (one, other))  # made of the path
    texts = [c for c in one if one[c].dtype == "str"]
    moved = one.assign(**{c: one[c].str.replace(str(root), url, regex=False) for c in texts})
    pd.testing.assert_frame_equal(moved, other)


def test_a_bucket_gives_the_frames_of_the_same_folder(server, folder):
    bucket, one = server[0], f"s3://logs/{EXPERIMENT}/bread"
    local, found = load(folder), load("s3://logs/cooking", storage_options=bucket)
    for name in ("runs", "agents", "ledger"):
        same_but_for_the_root(getattr(local, name), getattr(found, name), folder, "s3://logs")
    assert set(found.runs["model_name"]) == {"some-org/model-7b"}
    with storage(bucket):
        assert extract_task_outcome(one, None)["overall_raw_score"] == 1
        assert "Task ended with score : 1" in transcript_of(KIND, RunFiles([f"{one}/Andy_0_0.json"])).text()
    assert len(aggregate_results([one, one], storage_options=bucket)) == 1


@pytest.mark.parametrize(
    ("names", "n"), [([""], 5), (["*/Andy_0_*.json"], 3), (["bread/Jill_1_0.json"], 1), (["bread", "cake", "bread"], 4)]
)
def test_folders_globs_files_and_lists_are_listed(server, names, n):
    with storage(server[0]):
        listing = list_source([f"s3://logs/{EXPERIMENT}/{name}" for name in names])
    assert len(listing.files) == len(set(listing.files)) == n
    assert all(file.startswith("s3://logs/cooking/") for file in listing.files)
    assert set(listing.states) == set(listing.files)
    assert all(state.size and state.tag and state.modified for state in listing.states.values())


def test_a_marker_of_an_empty_folder_is_a_folder_and_a_prefix_no_beginning_of_a_name(server):
    options, put = server
    put("marked/exp_1/bread/Andy_0_0.json", said(1))
    put("marked/exp_1/multiagent_cooking_cake/", b"")
    put("markedly/exp_1/rice/Andy_0_0.json", said(1))
    runs = load("s3://logs/marked", storage_options=options).runs
    assert runs["task_id"].tolist() == ["bread", "multiagent_cooking_cake"]


@pytest.mark.parametrize("source", ["s3://logs/nothing", "s3://no-such-bucket/x", "s3://logs/nothing*", "nope://x"])
def test_what_is_not_there_is_one_clear_error(server, source):
    words = r"no such|no file|does not exist|Protocol not known"
    with storage(server[0]), pytest.raises(SourceError, match=words) as caught:
        list_source(source)
    assert SECRET not in str(caught.value)


def test_a_server_that_fails_or_is_slow_stands_in_the_ledger(server, monkeypatch):
    from moto.s3.models import S3Backend

    options, put = server
    calls, whole, released = Counter(), S3Backend.get_object, threading.Event()

    def get_object(self, bucket, key, *args, **more):
        name = key.rpartition("/")[2].partition("_")[0]
        calls[name] += 1
        if name == "broken" or (name == "flaky" and calls[name] == 1):
            raise RuntimeError("out of order")  # the server answers 500
        if name == "slow":
            released.wait(60)
        return whole(self, bucket, key, *args, **more)

    for name in ("broken", "flaky", "slow", "well"):
        put(f"shaky/exp_1/bread/{name}_0.json", said(1, name))
    monkeypatch.setattr(S3Backend, "get_object", get_object)
    monkeypatch.setattr("s3fs.core.S3FileSystem.retries", 1)
    impatient = {**options, "config_kwargs": {**options["config_kwargs"], "read_timeout": 1}}
    ledger = load("s3://logs/shaky", storage_options=impatient).ledger
    released.set()
    broken, flaky, slow, well = zip(ledger["status"], ledger["reason"], strict=True)
    assert flaky == well == ("used", "")
    assert broken[0] == slow[0] == "failed"
    assert "imeout" in slow[1]


class Shaky(fsspec.AbstractFileSystem):
    """A file system whose errors name the secret it was opened with."""

    protocol, cachable = "shaky", False

    def __init__(self, password="", token="", **more):
        super().__init__(**more)
        self.text = f"login with {password} at https://user:{password}@host/x?token={token} was refused"

    def ls(self, path, detail=True, **options):
        if "list" in path:
            raise OSError(self.text)
        return [{"name": f"{path.strip('/')}/a.json", "size": 1, "type": "file"}]

    def cat_file(self, path, start=None, end=None, **options):
        raise FileNotFoundError(path) if path.endswith(MANIFEST) else RuntimeError(self.text)

    def isdir(self, path):
        return True


def test_errors_do_not_hold_credentials():
    fsspec.register_implementation("shaky", Shaky, clobber=True)
    options = {"password": SECRET, "token": "t0ken"}
    with storage(options):
        ((_, error),) = read_files(list_source("shaky://x").files)
        with pytest.raises(SourceError) as listed:
            list_source("shaky://list")
    with pytest.raises(SourceError, match=r"shaky://x: .*: OSError: RuntimeError: login") as loaded:
        agents_df("shaky://x", storage_options=options)
    assert listed.value.__cause__ is None
    for found in (error, listed.value, loaded.value):
        assert "was refused" in str(found)
        assert SECRET not in repr(found)
        assert "t0ken" not in repr(found)


class Slow(AsyncFileSystem):
    """A file system of many small files, each of which takes a while."""

    protocol, cachable = "slow", False
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


def test_an_archive_in_a_bucket_gives_the_frames_of_the_same_folder(folder, server):
    options, put = server
    packed = shutil.make_archive(str(folder.with_name("packed")), "zip", folder, "cooking")
    put("archive/runs.zip", Path(packed).read_bytes())
    place = "s3://logs/archive/runs.zip"
    found = load(f"zip://cooking::{place}", storage_options=options)
    same_but_for_the_root(load(folder / "cooking").runs, found.runs, folder, f"zip://{place}!")
    assert len(load(f"zip://::{place}", storage_options=options).runs) == 3


def test_a_dataset_in_a_bucket_follows_a_bucket(server):
    options, put = server
    source, made = "s3://logs/gathered", "s3://logs/made/here"
    put("gathered/exp_1/bread/Andy_0_0.json", said(0))
    put("gathered/exp_1/cake/Andy_0_0.json", said(1, "b"))
    with storage(options):
        assert collect(source, made).new == 2
        put("gathered/exp_1/cake/Andy_0_0.json", said(0, "c"))
        put("gathered/exp_1/rice/Andy_0_0.json", said(1, "d"))
        assert collect(source, made)[:4] == (1, 1, 0, 1)
        assert_same_frames(load(source), load(made))
        live = {f"{made}/{name}/{number:06d}.parquet" for name, (number, _) in read_manifest(made).tables.items()}
        assert set(list_source(made, "*.parquet").files) == live
        for output in ("s3://no-such-bucket", "s3://no-such-bucket/x/y"):
            with pytest.raises(SourceError, match=f"^{output}/.*does not exist"):
                collect(source, output)
        with pytest.raises(SourceError, match="does not exist"):
            list_source("s3://no-such-bucket")  # it was not made


TIMES = {"date_time": [(1980, 0, 0, 0, 0, 0), (2107, 15, 31, 31, 63, 62)],  # as some tools write it
         "mtime": [float("nan"), 1e18, -1e18], "LastModified": ["yesterday"], "size": [2**64 - 1, -1]}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in TIMES for value in TIMES[name]])
def test_a_time_or_size_that_no_file_has_does_no_harm(name, value):
    state = state_from({name: value})
    assert state.modified == 0
    assert 0 <= state.size < 2**63


@pytest.mark.parametrize("command", ["detect", "show --list all", "compare", "audit", "failures", "view"])
def test_every_command_that_reads_a_source_takes_storage_options(server, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)  # where `view` writes its pages
    options = tmp_path / "options.json"
    options.write_text(json.dumps(server[0]))
    name, *given = command.split()
    result = CliRunner().invoke(main, [name, "s3://logs/cooking", *given, "--storage-options", str(options)])
    assert result.exit_code == 0
    assert result.stdout


def test_a_web_server_is_read(folder):
    pytest.importorskip("aiohttp")
    log = f"{EXPERIMENT}/bread/Andy_0_0.json"
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert load(f"{url}/{log}").runs["score"].tolist() == [1]
        with pytest.raises(SourceError, match=r"gone\.json: no such file"):
            load(f"{url}/gone.json")
        server.shutdown()
