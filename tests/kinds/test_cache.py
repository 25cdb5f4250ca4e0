"""What is kept between calls: where it lies, what goes, what is not touched; without it all works too."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import fsspec
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.io import SourceError
from evalkit.io import store as store_module
from evalkit.io.write import LOCK
from evalkit.kinds import load, pipeline
from tests.kinds.toy import TOY, write

NAME = "records-" + 32 * "0"
DAY = 86_400


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def games(tmp_path):
    for name in "ab":
        write(tmp_path / "games" / f"{name}.json", task=name)
    return tmp_path / "games"


@pytest.fixture
def parsed(monkeypatch):
    """The names of the files that are parsed."""
    names, original = [], pipeline.parse_chunks

    def parse_chunks(paths, *args):
        paths = list(paths)
        names.extend(map(os.path.basename, paths))
        return original(paths, *args)

    monkeypatch.setattr(pipeline, "parse_chunks", parse_chunks)
    return names


def test_it_lies_where_caches_lie(monkeypatch, tmp_path):
    monkeypatch.delenv("EVALKIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store_module.cache_folder() == tmp_path / "evalkit"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert store_module.cache_folder() == Path("~/.cache/evalkit").expanduser()


def test_a_cache_that_can_not_be_written_is_done_without(games, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "file"))
    assert len(load(TOY, games, {}).runs) == 2


@pytest.mark.parametrize(
    "other",
    [
        lambda games: load(replace(TOY, name="other"), games, {}),
        lambda games: load(TOY, games, {}, pattern="*.json"),
        lambda games: load(TOY, games, {}, recursive=False),
        lambda games: load(TOY, [games], {}, storage_options={"anon": True}),
    ],
)
def test_other_kinds_patterns_and_storage_options_have_stores_of_their_own(games, cache, parsed, other):
    load(TOY, games, {})
    other(games)
    load(TOY, games, {})
    assert parsed == ["a.json", "b.json"] * 2
    assert len(list(cache.iterdir())) == 2


def test_options_of_assembly_parse_nothing_anew(games, cache, parsed):
    for value in (1, 2):
        load(TOY, games, {"scale": value})
    assert parsed == ["a.json", "b.json"]


def test_other_code_reads_all_files_anew(games, cache, parsed, monkeypatch):
    load(TOY, games, {})
    monkeypatch.setattr(pipeline, "code_version", lambda *_: "0+1")
    load(TOY, games, {})
    load(TOY, games, {})
    assert parsed == ["a.json", "b.json"] * 2


def test_relative_paths_mean_other_files_in_another_folder(games, cache, tmp_path, monkeypatch):
    write(tmp_path / "more" / "games" / "c.json", task="c")
    tasks = []
    for folder in (tmp_path, tmp_path / "more"):
        monkeypatch.chdir(folder)
        tasks.append(load(TOY, "games", {}).runs["task_id"].tolist())
    assert tasks == [["a", "b"], ["c"]]


def test_it_keeps_to_the_order_of_the_sources(games, cache):
    for names in ("ab", "ba", "ab"):
        assert load(TOY, [games / f"{name}.json" for name in names], {}).runs["task_id"].tolist() == list(names)


@pytest.mark.parametrize("change", ["content", "time", "rights"])
def test_a_file_whose_state_has_changed_is_read_again(games, cache, parsed, change):
    load(TOY, games, {})
    if change == "rights":
        (games / "a.json").chmod(0o600)
    else:
        write(games / "a.json", task="a" if change == "time" else "x", age=9)
    load(TOY, games, {})
    assert parsed == ["a.json", "b.json", "a.json"]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 99), place=st.floats(0, 1, exclude_max=True), mask=st.integers(0, 255))
def test_whatever_damage_a_store_has_it_is_made_again(games, cache, number, place, mask):
    expected = load(TOY, games, {})
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
        for one, other in zip(expected, load(TOY, games, {}), strict=True):
            pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("text", ["<b>é\n", "\ud83d\ude00", "\x00", ""])
def test_texts_come_back_as_they_were(games, cache, text):
    write(games / "a.json", task=text, tags=[text])
    first, second = (load(TOY, games, {}).runs for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    assert first["tags"][0] == second["tags"][0]


def test_an_error_is_passed_on_and_leaves_no_rows(games, cache):
    def fail(path, data):
        raise KeyError("x")

    with pytest.raises(KeyError):
        load(replace(TOY, parse=fail), games, {})
    assert list(cache.rglob("*.parquet")) == []
    assert len(load(TOY, games, {}).runs) == 2


def test_a_file_behind_a_url_that_could_not_be_read_is_tried_again(cache, monkeypatch):
    files = fsspec.filesystem("memory")
    for name in "ab":
        files.pipe(f"/cached/{name}.json", b'{"moves": []}')
    with monkeypatch.context() as patch:
        fail = TimeoutError(110, "slow")
        patch.setattr(
            pipeline, "parse_chunks", lambda paths, parse, pack, *_: iter([pack(parse(path, fail) for path in paths)])
        )
        with pytest.raises(SourceError, match="TimeoutError: slow"):
            load(TOY, "memory://cached", {})
    assert len(load(TOY, "memory://cached", {}).runs) == 2


def _put(path, text="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


FOREIGN = {
    "a file": lambda root: _put(root / "notes.txt"),
    "a folder": lambda root: _put(root / "thesis" / "chapter.txt"),
    "an empty folder": lambda root: (root / "later").mkdir(),
    "a folder with a store's name": lambda root: _put(root / NAME / "thesis.txt"),
    "tables in a folder with a store's name": lambda root: _put(root / NAME / "games" / "part.parquet"),
    "a folder with almost a store's name": lambda root: _put(root / f"{NAME}0" / "games" / "000001.parquet"),
    "a link with a store's name": lambda root: (
        _put(root.parent / "elsewhere" / "games" / "000001.parquet"),
        (root / NAME).symlink_to(root.parent / "elsewhere"),
    ),
    "a link in a store": lambda root: (
        _put(root.parent / "elsewhere" / "000001.parquet"),
        (root / NAME).mkdir(),
        (root / NAME / "games").symlink_to(root.parent / "elsewhere"),
    ),
    "a file with a store's name": lambda root: _put(root / NAME),
}


def everything(root):
    return {path: path.is_file() and path.read_bytes() for path in root.rglob("*")}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_it_has_not_written_stays(cache, games, tmp_path, monkeypatch, name):
    cache.mkdir()
    FOREIGN[name](cache)
    for path in [*cache.rglob("*"), *tmp_path.glob("elsewhere*")]:
        os.utime(path, (1, 1), follow_symlinks=False)
    before = everything(tmp_path)
    monkeypatch.setattr(store_module, "KEPT_BYTES", 0)
    load(TOY, games, {})
    store_module.tidy_cache(store_module.cache_folder())
    after = everything(tmp_path)
    assert {path: after.get(path) for path in before} == before


def age(store: Path, days: float, now: float) -> None:
    for path in (store, *store.iterdir()):
        os.utime(path, (now - days * DAY,) * 2)


def test_old_and_surplus_stores_go_the_oldest_first(cache, tmp_path, monkeypatch):
    stores = []
    for name in "abcd":
        write(tmp_path / name / "x.json", task=name)
        load(TOY, tmp_path / name, {})
        stores += [path for path in cache.iterdir() if path not in stores]
    now = (stores[3] / LOCK).stat().st_mtime
    for store, days in zip(stores, (31, 3, 2, 1), strict=True):
        age(store, days, now)
    _put(cache / "film.mkv", "x" * 100_000)  # the size of other things does not count
    store_module.tidy_cache(store_module.cache_folder())
    assert [store.exists() for store in stores] == [False, True, True, True]
    size = sum(path.stat().st_size for store in stores[2:] for path in store.rglob("*") if path.is_file())
    monkeypatch.setattr(store_module, "KEPT_BYTES", size)
    store_module.tidy_cache(store_module.cache_folder())
    assert [store.exists() for store in stores] == [False, False, True, True]
    assert (cache / "film.mkv").exists()


def test_what_a_killed_process_has_left_goes(cache, games):
    load(TOY, games, {})
    (store,) = cache.iterdir()
    shutil.rmtree(store / "games")
    (store / "evalkit-records.json").unlink()
    _put(store / "moves" / ".evalkit-abc.parquet")
    age(store, 31, (store / LOCK).stat().st_mtime)
    store_module.tidy_cache(store_module.cache_folder())
    assert not store.exists()


@pytest.mark.parametrize("failing", ["stat", "scandir"])
def test_a_cache_that_may_not_be_searched_is_done_without(games, tmp_path, monkeypatch, failing):
    cache = tmp_path / "closed" / "cache"
    real = getattr(os, failing)

    def refuse(path, *given, **more):
        if "closed" in str(path):
            raise PermissionError(13, "Permission denied")
        return real(path, *given, **more)

    monkeypatch.setenv("EVALKIT_CACHE", str(cache))
    monkeypatch.setattr(os, failing, refuse)
    monkeypatch.setattr(store_module, "exclusive", lambda *_: (_ for _ in ()).throw(SourceError("denied")))
    assert len(load(TOY, games, {}).runs) == 2
