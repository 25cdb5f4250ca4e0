"""The store of records, on a toy kind: only what has changed is parsed, and nothing is lost however it came about."""

import json
import os
from dataclasses import replace
from pathlib import Path

import fsspec
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.io import SourceError
from evalkit.io import store as store_module
from evalkit.io.sources import list_source
from evalkit.io.store import RecordStore
from evalkit.io.write import LOCK
from evalkit.kinds import FileRules, Parsed, load, pipeline
from tests.kinds.toy import OLD, TOY, write


@pytest.fixture
def parsed(monkeypatch):
    """The names of the files that are parsed."""
    names = []

    def in_chunks(work, paths, *more):
        names.extend(map(os.path.basename, paths))
        return original(work, paths, *more)

    original = pipeline.in_chunks
    monkeypatch.setattr(pipeline, "in_chunks", in_chunks)
    return names


def listed(folder, kind=TOY):
    return pipeline.with_states(kind, list_source(folder))


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
    assert sources(load(tmp_path / "in", TOY)) == ["a.json", "b.json", "c.json"]
    del parsed[:]
    assert sources(load(tmp_path / "in", TOY)) == ["a.json", "b.json", "c.json"]
    assert parsed == []
    write(tmp_path / "in" / "d.json", task="d")
    write(tmp_path / "in" / "b.json", task="new", age=5)
    found = load(tmp_path / "in", TOY)
    assert sorted(parsed) == ["b.json", "d.json"]
    assert found.runs["task_id"].tolist() == ["a", "new", "c", "d"]
    (tmp_path / "in" / "a.json").unlink()
    del parsed[:]
    assert sources(load(tmp_path / "in", TOY)) == ["b.json", "c.json", "d.json"]
    assert parsed == []


def test_a_file_that_was_just_written_is_read_again(tmp_path, cache, parsed):
    os.utime(write(tmp_path / "in" / "a.json"))
    load(tmp_path / "in", TOY)
    load(tmp_path / "in", TOY)
    assert parsed == ["a.json", "a.json"]


def test_the_ledger_names_every_file(tmp_path, cache):
    write(tmp_path / "in" / "a.json")
    (tmp_path / "in" / "b.json").write_text("{")
    (tmp_path / "in" / "c.txt").write_text("x")
    (tmp_path / "in" / "d.json").write_text("{}")
    (tmp_path / "in" / "e.json").symlink_to("nowhere")
    for _ in range(2):
        ledger = load(tmp_path / "in", TOY).ledger
        assert ledger["status"].tolist() == ["used", "failed", "skipped", "skipped", "failed"]
        assert ledger["reason"][2] == "no JSON file by its name"
        assert ledger["reason"][4] == "FileNotFoundError: No such file or directory"


@pytest.mark.parametrize("row", [("m", "t", "12", None, [], {}), (1, "t"), ("m", "t", 1.0, None, [], 5)])
def test_a_file_whose_values_fit_no_column_fails_alone(tmp_path, row):
    def parse(path, data):
        return Parsed("used", rows={"games": [row]}) if path.endswith("b.json") else TOY.parse(path, data)

    for name in "abc":
        write(tmp_path / f"{name}.json", task=name)
    found = load(tmp_path, replace(TOY, parse=parse))
    assert found.runs["task_id"].tolist() == ["a", "c"]
    assert found.ledger["status"].tolist() == ["used", "failed", "used"]
    assert found.ledger["reason"][1].startswith("a value does not fit its column: ")


def test_files_whose_names_are_not_utf8_stand_in_the_ledger_and_the_others_are_read(tmp_path, cache):
    write(tmp_path / "in" / "a.json")
    for name in (b"a\xff.json", b"a\xfe.json"):
        with open(os.path.join(os.fsencode(tmp_path / "in"), name), "w") as file:
            json.dump({"moves": []}, file)
    for _ in range(2):
        ledger = load(tmp_path / "in", TOY).ledger
        assert [os.path.basename(path) for path in ledger["source"]] == ["a.json", r"a\udcfe.json", r"a\udcff.json"]
        assert ledger["reason"].tolist() == ["", *["OSError: its name is not UTF-8"] * 2]


def test_without_a_cache_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    write(tmp_path / "in" / "a.json")
    load(tmp_path / "in", TOY)
    assert not (tmp_path / "xdg").exists()


def test_other_programs_read_the_tables_with_real_lists_and_maps(tmp_path):
    store = RecordStore(str(tmp_path / "made"), TOY.records)
    for name in "ab":
        write(tmp_path / "in" / f"{name}.json", tags=["p"], task=name)
    pipeline.update(store, TOY, listed(tmp_path / "in"))
    frame = pd.read_parquet(tmp_path / "made" / "games")
    assert frame["tags"].map(list).tolist() == [["p"], ["p"]]
    schema = pq.read_schema(next((tmp_path / "made" / "games").iterdir()))
    assert str(schema.field("tags").type).startswith("list<")
    assert str(schema.field("pieces").type).startswith("map<")


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
            got = load(folder, TOY)
            patch.setenv("EVALKIT_CACHE", "off")
            for a, b in zip(load(folder, TOY), got, strict=True):
                pd.testing.assert_frame_equal(a, b)


@pytest.mark.parametrize("reads", range(4))  # tables that are read before another process updates the store
def test_a_reader_sees_the_former_or_the_next_state_whole(tmp_path, monkeypatch, reads):
    for name in "ab":
        write(tmp_path / "in" / f"{name}.json", task="old", moves=["old"])
    writer, reader = (RecordStore(str(tmp_path / "made"), TOY.records) for _ in range(2))
    pipeline.update(writer, TOY, listed(tmp_path / "in"))

    def update_meanwhile():
        for name in "ab":
            write(tmp_path / "in" / f"{name}.json", task="new", moves=["new"], age=9)
        pipeline.update(writer, TOY, listed(tmp_path / "in"))

    coming = iter([lambda: None] * (1 + reads) + [update_meanwhile])  # first the manifest
    read_file = store_module.read_file
    monkeypatch.setattr(
        store_module, "read_file", lambda path, **more: (next(coming, lambda: None)(), read_file(path, **more))[1]
    )
    reader.read()
    games, moves, files = (reader.tables[name].to_pandas() for name in ("games", "moves", "files"))
    assert games["source"].tolist() == moves["source"].tolist() == files["source"].tolist()
    assert games["task_id"].tolist() == moves["text"].tolist() == [games["task_id"][0]] * 2


def test_files_above_the_source_keep_the_order_of_the_kind(tmp_path):
    names = [str(write(tmp_path / f"{number}.json")) for number in (3, 1, 7, 5, 2, 6, 4, 0)]
    write(tmp_path / "in/a.json")
    kind = replace(TOY, files=FileRules(context=lambda files: names))
    listing = listed(tmp_path / "in", kind)
    store = RecordStore("", kind.records)
    pipeline.update(store, kind, listing)
    for table in pipeline.records_of(store, kind, listing).tables.values():
        assert table["source"].to_pylist() == [str(tmp_path / "in/a.json"), *names]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def games(tmp_path):
    for name in "ab":
        write(tmp_path / "games" / f"{name}.json", task=name)
    return tmp_path / "games"


def test_a_cache_that_can_not_be_written_is_done_without(games, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "file"))
    assert len(load(games, TOY).runs) == 2


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
    write(tmp_path / "more" / "games" / "c.json", task="c")
    tasks = []
    for folder in (tmp_path, tmp_path / "more"):
        monkeypatch.chdir(folder)
        tasks.append(load("games", TOY).runs["task_id"].tolist())
    assert tasks == [["a", "b"], ["c"]]


def test_it_keeps_to_the_order_of_the_sources(games, cache):
    for names in ("ab", "ba", "ab"):
        assert load([games / f"{name}.json" for name in names], TOY).runs["task_id"].tolist() == list(names)


def test_a_file_whose_time_or_rights_have_changed_is_read_again(games, cache, parsed):
    load(games, TOY)
    (games / "a.json").chmod(0o600)
    load(games, TOY)
    write(games / "b.json", task="b", age=9)
    load(games, TOY)
    assert parsed == ["a.json", "b.json", "a.json", "b.json"]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        for one, other in zip(expected, load(games, TOY), strict=True):
            pd.testing.assert_frame_equal(one, other)


def test_a_store_whose_manifest_names_a_table_that_there_is_not_is_made_again(games, cache):
    load(games, TOY)
    (manifest,) = cache.rglob(store_module.MANIFEST)
    manifest.write_text(manifest.read_text().replace('"games"', '"gamess"'))
    assert len(load(games, TOY).runs) == 2
    assert "gamess" not in manifest.read_text()


def test_a_file_behind_a_url_that_could_not_be_read_is_tried_again(cache, monkeypatch):
    files = fsspec.filesystem("memory")
    for name in "ab":
        files.pipe(f"/cached/{name}.json", b'{"moves": []}')
    with monkeypatch.context() as patch:
        fail = TimeoutError(110, "slow")
        patch.setattr(pipeline, "read_files", lambda paths, **_: ((path, fail) for path in paths))
        with pytest.raises(SourceError, match="TimeoutError: slow"):
            load("memory://cached", TOY)
    assert len(load("memory://cached", TOY).runs) == 2


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
