"""The store of records, on a toy kind: only what has changed is parsed, and nothing is lost however it came about."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.io import SourceError
from evalkit.io import store as store_module
from evalkit.io.sources import list_source
from evalkit.io.store import MANIFEST, RecordStore
from evalkit.kinds import FileRules, Parsed, pipeline
from evalkit.kinds.pipeline import load
from tests.kinds.toy import OLD, TOY, write


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def parsed(monkeypatch):
    """The names of the files that are parsed."""
    names = []

    def parse_chunks(paths, parse, *args):
        paths = list(paths)
        names.extend(os.path.basename(path) for path in paths)
        return original(paths, parse, *args)

    original = pipeline.parse_chunks
    monkeypatch.setattr(pipeline, "parse_chunks", parse_chunks)
    return names


def sources(loaded) -> list[str]:
    return [os.path.basename(path) for path in loaded.runs["source"]]


def change_folder_times(folder: Path) -> None:
    """Let folders look as if they had been left alone for a while (their inodes still changed just now)."""
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            os.utime(path, (OLD, OLD))


def test_only_new_and_changed_files_are_parsed(tmp_path, cache, parsed):
    for name in "abc":
        write(tmp_path / "in" / f"{name}.json", task=name)
    assert sources(load(TOY, tmp_path / "in", {})) == ["a.json", "b.json", "c.json"]
    del parsed[:]
    assert sources(load(TOY, tmp_path / "in", {})) == ["a.json", "b.json", "c.json"]
    assert parsed == []
    write(tmp_path / "in" / "d.json", task="d")
    write(tmp_path / "in" / "b.json", task="new", age=5)
    found = load(TOY, tmp_path / "in", {})
    assert sorted(parsed) == ["b.json", "d.json"]
    assert found.runs["task_id"].tolist() == ["a", "new", "c", "d"]
    (tmp_path / "in" / "a.json").unlink()
    del parsed[:]
    assert sources(load(TOY, tmp_path / "in", {})) == ["b.json", "c.json", "d.json"]
    assert parsed == []


def test_a_change_is_seen_that_keeps_size_and_time(tmp_path, cache):
    path = write(tmp_path / "in" / "a.json", task="x")
    assert load(TOY, tmp_path / "in", {}).runs["task_id"].tolist() == ["x"]
    write(path, task="y")
    assert load(TOY, tmp_path / "in", {}).runs["task_id"].tolist() == ["y"]


def test_a_file_that_was_just_written_is_read_again(tmp_path, cache, parsed):
    os.utime(write(tmp_path / "in" / "a.json"))
    load(TOY, tmp_path / "in", {})
    load(TOY, tmp_path / "in", {})
    assert parsed == ["a.json", "a.json"]


def test_lists_and_counts_come_back_as_they_were(tmp_path, cache):
    write(tmp_path / "in" / "a.json", tags=["p", "q"])
    write(tmp_path / "in" / "b.json", tags=[])
    for _ in range(2):
        found = load(TOY, tmp_path / "in", {}).runs
        assert found["tags"].tolist() == [["p", "q"], []]
        assert found["pieces"].tolist() == [{"pawn": 1}] * 2


def test_the_ledger_names_every_file(tmp_path, cache):
    write(tmp_path / "in" / "a.json")
    (tmp_path / "in" / "b.json").write_text("{")
    (tmp_path / "in" / "c.txt").write_text("x")
    (tmp_path / "in" / "d.json").write_text("{}")
    (tmp_path / "in" / "e.json").symlink_to("nowhere")
    for _ in range(2):
        ledger = load(TOY, tmp_path / "in", {}).ledger
        assert ledger["status"].tolist() == ["used", "failed", "skipped", "skipped", "failed"]
        assert ledger["reason"][2] == "no JSON file by its name"
        assert ledger["reason"][4] == "FileNotFoundError: No such file or directory"


@pytest.mark.parametrize("row", [("m", "t", "12", None, [], {}), (1, "t"), ("m", "t", 1.0, None, [], 5)])
def test_a_file_whose_values_fit_no_column_fails_alone(tmp_path, row):
    def parse(path, data):
        return Parsed("used", rows={"games": [row]}) if path.endswith("b.json") else TOY.parse(path, data)

    for name in "abc":
        write(tmp_path / f"{name}.json", task=name)
    found = load(replace(TOY, parse=parse), tmp_path, {})
    assert found.runs["task_id"].tolist() == ["a", "c"]
    assert found.ledger["status"].tolist() == ["used", "failed", "used"]
    assert found.ledger["reason"][1].startswith("a value does not fit its column: ")


def test_names_that_are_not_utf8_are_kept_apart(tmp_path, cache):
    folder = os.fsencode(tmp_path / "in")
    os.mkdir(folder)
    for name in (b"a\xff.json", b"a\xfe.json"):
        with open(os.path.join(folder, name), "w") as file:
            json.dump({"moves": [], "task": repr(name)}, file)
        os.utime(os.path.join(folder, name), (OLD, OLD))
    for _ in range(2):
        assert load(TOY, tmp_path / "in", {}).runs["task_id"].nunique() == 2


@pytest.mark.parametrize("harm", ["manifest", "truncated", "part missing", "another kind's table", "garbage"])
def test_a_cache_that_was_damaged_is_made_again(tmp_path, cache, harm):
    write(tmp_path / "in" / "a.json", task="x")
    load(TOY, tmp_path / "in", {})
    (store,) = cache.iterdir()
    (part,) = (store / "games").iterdir()
    if harm == "manifest":
        (store / MANIFEST).write_text("[")
    elif harm == "truncated":
        part.write_bytes(part.read_bytes()[:-9])
    elif harm == "part missing":
        part.unlink()
    elif harm == "garbage":
        part.write_bytes(b"x" * 999)
    else:
        shutil.copy(next((store / "moves").iterdir()), part)
    assert load(TOY, tmp_path / "in", {}).runs["task_id"].tolist() == ["x"]
    assert load(TOY, tmp_path / "in", {}).runs["task_id"].tolist() == ["x"]


def test_without_a_cache_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    write(tmp_path / "in" / "a.json")
    load(TOY, tmp_path / "in", {})
    assert not (tmp_path / "xdg").exists()


def test_what_the_cache_folder_holds_beside_stores_stays(tmp_path, cache, monkeypatch):
    cache.mkdir()
    (cache / "mine.txt").write_text("x")
    write(tmp_path / "in" / "a.json")
    load(TOY, tmp_path / "in", {})
    (store,) = (path for path in cache.iterdir() if path.is_dir())
    (store / "games" / "mine.parquet").write_text("x")
    (store / "notes").mkdir()
    monkeypatch.setattr(store_module, "KEPT_DAYS", -1)
    store_module.tidy_cache(store_module.cache_folder())
    left = {path.relative_to(cache).as_posix() for path in cache.rglob("*") if path.is_file()}
    assert left == {"mine.txt", f"{store.name}/games/mine.parquet"}


def test_a_store_that_was_not_used_for_long_is_removed(tmp_path, cache, monkeypatch):
    write(tmp_path / "in" / "a.json")
    load(TOY, tmp_path / "in", {})
    store_module.tidy_cache(store_module.cache_folder())
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(store_module, "KEPT_DAYS", -1)
    store_module.tidy_cache(store_module.cache_folder())
    assert list(cache.iterdir()) == []


def test_other_programs_read_the_tables_with_real_lists_and_maps(tmp_path):
    store = RecordStore(str(tmp_path / "made"), TOY.records)
    for name in "ab":
        write(tmp_path / "in" / f"{name}.json", tags=["p"], task=name)
    pipeline.update(store, TOY, list_source(tmp_path / "in"))
    frame = pd.read_parquet(tmp_path / "made" / "games")
    assert frame["tags"].map(list).tolist() == [["p"], ["p"]]
    schema = pq.read_schema(next((tmp_path / "made" / "games").iterdir()))
    assert str(schema.field("tags").type).startswith("list<")
    assert str(schema.field("pieces").type).startswith("map<")


def test_parts_are_joined_until_they_are_large(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "PART_FILES", 3)
    store = RecordStore(str(tmp_path / "made"), TOY.records)
    for number in range(7):
        write(tmp_path / "in" / f"{number}.json", task=str(number))
        pipeline.update(store, TOY, list_source(tmp_path / "in"))
    sizes = [len(pq.read_table(path)) for path in sorted((tmp_path / "made" / "games").iterdir())]
    assert sorted(sizes) == [1, 3, 3]


CHANGES = st.lists(
    st.tuples(st.sampled_from(["write", "remove", "break", "rename"]), st.integers(0, 6), st.integers(0, 3)),
    max_size=12,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES)
def test_whatever_changed_the_frames_are_those_of_a_first_reading(tmp_path_factory, changes):
    root = tmp_path_factory.mktemp("x")
    folder = root / "in"
    folder.mkdir()
    write(folder / "always.json", task="always")
    with pytest.MonkeyPatch.context() as patch:
        for age, (what, number, place) in enumerate(changes, 1):
            path = folder / f"folder_{place}" / f"{number}.json"
            if what == "write":
                write(path, task=f"{age}", age=age)
            elif what == "break":
                path.parent.mkdir(exist_ok=True)
                path.write_text("{")
                os.utime(path, (OLD + age, OLD + age))
            elif what == "remove":
                path.unlink(missing_ok=True)
            elif path.exists():
                path.rename(path.with_name("renamed.json"))
            change_folder_times(folder)
            patch.setenv("EVALKIT_CACHE", str(root / "cache"))
            got = load(TOY, folder, {})
            patch.setenv("EVALKIT_CACHE", "off")
            for a, b in zip(load(TOY, folder, {}), got, strict=True):
                pd.testing.assert_frame_equal(a, b)


def test_killed_at_any_moment_it_leaves_the_former_or_the_next_state(tmp_path):
    for number in range(30):
        write(tmp_path / "in" / f"{number}.json", task="old")
    store, made = lambda: RecordStore(str(tmp_path / "made"), TOY.records), tmp_path / "made"
    pipeline.update(store(), TOY, list_source(tmp_path / "in"))
    code = textwrap.dedent(f"""
        from evalkit.io import store as records
        from evalkit.io.store import RecordStore
        from evalkit.io.sources import list_source
        from evalkit.kinds import pipeline
        from tests.kinds.toy import TOY
        store = RecordStore({str(made)!r}, TOY.records)
        store.open()
        print("go", flush=True)
        pipeline.CHUNK_FILES = 7
        pipeline.update(store, TOY, list_source({str(tmp_path / "in")!r}))
    """)
    rng = random.Random(5)
    for round_ in range(8):
        for number in range(30):
            write(tmp_path / "in" / f"{number}.json", task=f"new {round_}", age=round_ + 1)
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(rng.random() * 0.06)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        left = store()
        assert left.open()
        games = left.table("games").to_pandas()
        assert sorted(map(os.path.basename, games["source"])) == sorted(f"{n}.json" for n in range(30))
        assert games["task_id"].str.fullmatch(r"old|new \d").all()
        assert len(left.table("files")) == 30
    pipeline.update(left, TOY, list_source(tmp_path / "in"))
    assert set(left.table("games").to_pandas()["task_id"]) == {"new 7"}
    written = {path.relative_to(made).as_posix() for path in made.rglob("*.parquet")}
    assert len(written) == 4  # files, folders, games, moves


@pytest.mark.parametrize("change", ["all files", "one file less"])
@pytest.mark.parametrize("reads", range(4))  # parts that are read before another process updates the store
def test_a_reader_sees_the_former_or_the_next_state_whole(tmp_path, monkeypatch, change, reads):
    monkeypatch.setattr(store_module, "PART_FILES", 1)
    for name in "ab":
        write(tmp_path / "in" / f"{name}.json", task="old", moves=["old"])
    writer, reader = (RecordStore(str(tmp_path / "made"), TOY.records) for _ in range(2))
    monkeypatch.setattr(pipeline, "CHUNK_FILES", 1)  # a part for each file
    pipeline.update(writer, TOY, list_source(tmp_path / "in"))
    reader.open()

    def update_meanwhile():
        if change == "all files":
            for name in "ab":
                write(tmp_path / "in" / f"{name}.json", task="new", moves=["new"], age=9)
            pipeline.update(writer, TOY, list_source(tmp_path / "in"))
        else:  # no new part is made
            writer.replace({str(tmp_path / "in" / "a.json")}, {})
            writer.commit()

    coming = iter([lambda: None] * reads + [update_meanwhile])
    read_file = store_module.read_file
    monkeypatch.setattr(
        store_module, "read_file", lambda path, **more: (next(coming, lambda: None)(), read_file(path, **more))[1]
    )
    reader.load_all()
    games, moves, files = (reader.table(name).to_pandas() for name in ("games", "moves", "files"))
    assert games["source"].tolist() == moves["source"].tolist() == files["source"].tolist()
    assert games["task_id"].tolist() == moves["text"].tolist()
    assert len(set(games["task_id"])) == 1


def test_a_part_that_nobody_has_replaced_and_is_gone_is_an_error(tmp_path):
    write(tmp_path / "in" / "a.json")
    store = RecordStore(str(tmp_path / "made"), TOY.records)
    pipeline.update(store, TOY, list_source(tmp_path / "in"))
    next((tmp_path / "made" / "games").iterdir()).unlink()
    reader = RecordStore(str(tmp_path / "made"), TOY.records)
    reader.open()
    with pytest.raises(SourceError, match="a part of the dataset is missing; remove the dataset and collect it again"):
        reader.load_all()


def test_two_processes_may_load_the_same_source_at_once(tmp_path, cache):
    for number in range(50):
        write(tmp_path / "in" / f"{number}.json", task=str(number))
    code = textwrap.dedent(f"""
        from evalkit.kinds import load
        from tests.kinds.toy import TOY
        print(len(load(TOY, {str(tmp_path / "in")!r}, {{}}).runs))
    """)
    processes = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0].strip() for process in processes] == ["50"] * 3


def test_a_source_of_which_nothing_can_be_used_says_what_it_looks_like(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(SourceError, match=r"no toy game could be read in it \(1 file"):
        load(TOY, tmp_path, {})


def test_files_above_the_source_keep_the_order_of_the_kind(tmp_path):
    names = [str(write(tmp_path / f"{number}.json")) for number in (3, 1, 7, 5, 2, 6, 4, 0)]
    write(tmp_path / "in/a.json")
    kind = replace(TOY, files=FileRules(context=lambda files: names))
    listing = list_source(tmp_path / "in")
    store = RecordStore("", kind.records)
    pipeline.update(store, kind, listing)
    for table in pipeline.records_of(store, kind, listing).tables.values():
        assert table["source"].to_pylist() == [str(tmp_path / "in/a.json"), *names]
