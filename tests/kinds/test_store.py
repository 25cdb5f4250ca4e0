"""The store of records, on a toy kind: only what has changed is parsed, and nothing is lost however it came about."""

import json
import os
import time
from dataclasses import replace

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.io import SourceError
from evalkit.io import store as store_module
from evalkit.io.store import FILES, FileRow, RecordStore
from evalkit.io.write import LOCK
from evalkit.kinds import FileRules, Parsed, load, pipeline, reading
from tests.kinds.toy import OLD, TOY, assert_same_frames, write

SETTINGS = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_row_of_the_table_of_files_has_its_columns_in_order():
    assert FileRow._fields == tuple(column.name for column in FILES)


@pytest.fixture
def games(tmp_path):
    for name in "ab":
        write(tmp_path / "games" / f"{name}.json", task=name)
    return tmp_path / "games"


@pytest.fixture
def parsed(monkeypatch):
    """Return the list of the names of files that are parsed."""
    names, original = [], reading.in_chunks

    def in_chunks(work, paths, *more):
        names.extend(map(os.path.basename, paths))
        return original(work, paths, *more)

    monkeypatch.setattr(reading, "in_chunks", in_chunks)
    return names


def update(store, folder, kind=TOY):
    """Read a folder into a store, and return its listing."""
    listing = reading.list_logs(kind, folder, "*")
    reading.update(store, kind, listing)
    return listing


def test_only_new_and_changed_files_are_parsed(games, cache, parsed):
    def tasks_and_parsed():
        parsed.clear()
        return "".join(load(games, TOY).runs["task_id"]), sorted(parsed)

    assert tasks_and_parsed() == ("ab", ["a.json", "b.json"])
    assert tasks_and_parsed() == ("ab", [])
    write(games / "d.json", task="d")
    write(games / "b.json", task="B", age=5)
    assert tasks_and_parsed() == ("aBd", ["b.json", "d.json"])
    (games / "a.json").unlink()
    assert tasks_and_parsed() == ("Bd", [])
    (games / "b.json").chmod(0o600)
    assert tasks_and_parsed() == ("Bd", ["b.json"])
    later = time.time() + 3_600
    os.utime(games / "d.json", (later, later))  # not settled: it may change again within its time stamp
    assert tasks_and_parsed() == tasks_and_parsed() == ("Bd", ["d.json"])


def test_the_ledger_names_every_file(games, cache):
    for name, text in {"b.json": "{", "c.txt": "x", "d.json": "{}", "d.json.gz": "x", "z.log.gz": "x"}.items():
        (games / name).write_text(text)
    (games / "e.json").symlink_to("nowhere")
    for name in (b"f\xff.json", b"f\xfe.json"):
        with open(os.path.join(os.fsencode(games), name), "w") as file:
            json.dump({"moves": []}, file)
    for _ in range(2):
        ledger = load(games, TOY).ledger
        assert ledger["status"].tolist() == ["used", "failed", *["skipped"] * 2, *["failed"] * 4, "skipped"]
        assert ledger["reason"][2] == "not named like a JSON file"
        assert ledger["reason"][4] == "packed: unpack it first"
        assert ledger["reason"][5] == "FileNotFoundError: No such file or directory"
        assert ledger["reason"][8] == "packed: unpack it first"  # nothing of this kind, by its name
        assert [os.path.basename(path) for path in ledger["source"][6:8]] == [r"f\udcfe.json", r"f\udcff.json"]
        assert set(ledger["reason"][6:8]) == {"OSError: its name is not UTF-8"}


@pytest.mark.parametrize("row", [("m", "t", "12", None, [], {}), (1, "t"), ("m", "t", 1.0, None, [], 5)])
def test_a_file_whose_values_fit_no_column_fails_alone(games, row):
    def parse(path, data):
        return Parsed("used", rows={"games": [row]}) if path.endswith("b.json") else TOY.parse(path, data)

    write(games / "c.json", task="c")
    found = load(games, replace(TOY, parse=parse))
    assert found.runs["task_id"].tolist() == ["a", "c"]
    assert found.ledger["status"].tolist() == ["used", "failed", "used"]
    assert found.ledger["reason"][1].startswith("kind toy: ")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError("ply"), "KeyError: 'ply'"),
        (AttributeError("no ply"), "AttributeError: no ply"),
        (OSError(5, "no disk"), "OSError: no disk"),
    ],
)
def test_a_file_whose_parsing_raises_fails_alone(games, error, reason):
    def parse(path, data):
        if path.endswith("b.json"):
            raise error
        return TOY.parse(path, data)

    os.symlink("/nonexistent", games / "c.json")
    ledger = load(games, replace(TOY, parse=parse)).ledger
    assert ledger["status"].tolist() == ["used", "failed", "failed"]
    assert ledger["reason"].tolist()[1:] == [reason, "FileNotFoundError: No such file or directory"]


@pytest.mark.parametrize("place", ["off", "file", "full"])
def test_a_cache_that_is_off_or_can_not_be_written_is_done_without(games, tmp_path, monkeypatch, place):
    def refuse(data, path):
        raise SourceError(f"{path}: No space left on device")

    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALKIT_CACHE", place)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(store_module, "write_bytes", refuse)
    assert len(load(games, TOY).runs) == 2
    assert {path.name for path in tmp_path.iterdir()} - {"full"} == {"file", "games"}


def test_other_programs_read_the_tables_with_real_lists_and_maps(games, tmp_path):
    write(games / "a.json", tags=["p"])
    update(RecordStore(str(tmp_path / "made"), TOY.records), games)
    assert pd.read_parquet(tmp_path / "made/games")["tags"].map(list).tolist() == [["p"], []]
    schema = pq.read_schema(next((tmp_path / "made/games").iterdir()))
    assert str(schema.field("tags").type).startswith("list<")
    assert str(schema.field("pieces").type).startswith("map<")


@SETTINGS
@given(
    st.lists(
        st.tuples(st.sampled_from(["write", "remove", "break", "rename"]), st.integers(0, 4), st.integers(0, 2)),
        max_size=8,
    )
)
def test_whatever_changed_the_frames_are_those_of_a_first_reading(tmp_path_factory, changes):
    root = tmp_path_factory.mktemp("x")
    write(root / "in/always.json", task="always")
    with pytest.MonkeyPatch.context() as patch:
        for age, (what, number, place) in enumerate(changes, 1):
            path = root / f"in/folder_{place}/{number}.json"
            if what in ("write", "break"):
                write(path, task=f"{age}", age=age)
            if what == "break":
                path.write_text("{")
                os.utime(path, (OLD + age, OLD + age))
            elif what == "remove":
                path.unlink(missing_ok=True)
            elif what == "rename" and path.exists():
                path.rename(path.with_name("renamed.json"))
            for folder in (root / "in", *(root / "in").glob("folder_*")):  # as if they had been left alone
                os.utime(folder, (OLD, OLD))
            patch.setenv("EVALKIT_CACHE", str(root / "cache"))
            got = load(root / "in", TOY)
            patch.setenv("EVALKIT_CACHE", "off")
            assert_same_frames(load(root / "in", TOY), got)


@pytest.mark.parametrize("reads", range(4))  # tables that are read before another process updates the store
def test_a_reader_sees_the_former_or_the_next_state_whole(games, tmp_path, monkeypatch, reads):
    def write_all(text, age):
        for name in "ab":
            write(games / f"{name}.json", task=text, moves=[text], age=age)

    writer, reader = (RecordStore(str(tmp_path / "made"), TOY.records) for _ in range(2))
    write_all("old", 1)
    update(writer, games)
    done, read_file = [], store_module.read_file

    def read_and_update(path, **more):
        if len(done) == 1 + reads:  # after the manifest and some tables
            write_all("new", 9)
            update(writer, games)
        done.append(path)
        return read_file(path, **more)

    monkeypatch.setattr(store_module, "read_file", read_and_update)
    reader.read()
    games, moves, files = (reader.tables[name].to_pandas() for name in ("games", "moves", "files"))
    assert games["source"].tolist() == moves["source"].tolist() == files["source"].tolist()
    assert games["task_id"].tolist() == moves["text"].tolist() == [games["task_id"][0]] * 2


def test_files_above_the_source_keep_the_order_of_the_kind(tmp_path):
    names = [str(write(tmp_path / f"{number}.json")) for number in (3, 1, 7, 5, 2, 6, 4, 0)]
    own = str(write(tmp_path / "in/a.json"))
    kind = replace(TOY, files=FileRules(context=lambda files: names))
    store = RecordStore("", kind.records)
    records = reading.records_of(store, update(store, tmp_path / "in", kind))
    for table in records.tables.values():
        assert table["source"].to_pylist() == [own, *names]


@pytest.mark.parametrize(
    "other",
    [
        lambda games: load(games, replace(TOY, name="other")),
        lambda games: load(games, TOY, pattern="*.json"),
        lambda games: load(games, TOY, recursive=False),
        lambda games: load([games], TOY, storage_options={"anon": True}),
    ],
)
def test_other_kinds_patterns_and_storage_options_have_stores_of_their_own(games, cache, parsed, other):
    load(games, TOY)
    other(games)
    load(games, TOY)
    assert parsed == ["a.json", "b.json"] * 2
    assert len(list(cache.iterdir())) == 2


def test_other_code_reads_all_files_anew(games, cache, parsed, monkeypatch):
    load(games, TOY)
    monkeypatch.setattr(pipeline, "code_version", lambda *_: "0+1")
    load(games, TOY)
    load(games, TOY)
    assert parsed == ["a.json", "b.json"] * 2


def test_relative_paths_mean_other_files_in_another_folder(games, cache, tmp_path, monkeypatch):
    write(tmp_path / "more/games/c.json", task="c")
    for folder, tasks in ((tmp_path, "ab"), (tmp_path / "more", "c")):
        monkeypatch.chdir(folder)
        assert "".join(load("games", TOY).runs["task_id"]) == tasks


def test_frames_keep_the_order_of_the_sources(games, cache):
    for names in ("ab", "ba", "ab"):
        assert "".join(load([games / f"{name}.json" for name in names], TOY).runs["task_id"]) == names


@SETTINGS
@given(number=st.integers(0, 99), place=st.floats(0, 1, exclude_max=True), mask=st.integers(0, 255))
def test_whatever_damage_a_store_has_it_is_made_again(games, cache, number, place, mask):
    expected = load(games, TOY)
    files = sorted(path for path in cache.rglob("*") if path.is_file() and path.name != LOCK)
    path = files[number % len(files)]
    content = bytearray(path.read_bytes())
    at = int(place * len(content))
    if mask:
        content[at] ^= mask
    else:
        del content[at:]
    path.write_bytes(content)
    for _ in range(2):
        assert_same_frames(expected, load(games, TOY))


def test_a_store_whose_manifest_names_a_table_that_there_is_not_is_made_again(games, cache):
    load(games, TOY)
    (manifest,) = cache.rglob(store_module.MANIFEST)
    manifest.write_text(manifest.read_text().replace('"games"', '"gamess"'))
    assert len(load(games, TOY).runs) == 2
    assert "gamess" not in manifest.read_text()


def test_stores_that_were_not_used_for_a_month_are_removed_and_nothing_else(cache, tmp_path):
    stores = []
    for name in "ab":
        write(tmp_path / name / "x.json", task=name)
        load(tmp_path / name, TOY)
        stores += [path for path in cache.iterdir() if path not in stores]
    (cache / "film.mkv").touch()
    now = (stores[0] / LOCK).stat().st_mtime
    for path, days in ((stores[0] / LOCK, 31), (stores[1] / LOCK, 29), (cache / "film.mkv", 99)):
        os.utime(path, (now - days * 86_400,) * 2)
    load(tmp_path / "b", TOY)
    assert (stores[1] / LOCK).stat().st_mtime >= now  # each use counts
    write(tmp_path / "c" / "x.json", task="c")
    load(tmp_path / "c", TOY)
    assert [store.exists() for store in stores] == [False, True]
    assert (cache / "film.mkv").exists()
