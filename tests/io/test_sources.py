"""Sources: every file once, in order, whatever stands in the folder; credentials in URLs are found anywhere."""

import io
import os
import re
import shutil
import tarfile
import zipfile
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalkit
from evalkit.io import SourceError, list_source, own_sources, redacted, remote, resolve, sources
from tests.mindcraft.builders import write_all


def names(paths: list[str], root: Path) -> list[str]:
    return [os.path.relpath(path, root) for path in paths]


@pytest.fixture
def tree(tmp_path):
    hidden = (".hidden.json", ".folder/4.json")
    reports = ("b/.evalkit/notebook/5.json", "b/notebook/5/runs.csv", "b/index.html", "b/manifest.json")
    return write_all(tmp_path, dict.fromkeys(("b/2.JSON", "b/1.txt", "a.json", "b/c/3.json", *hidden, *reports), ""))


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        (".", {}, ["a.json", "b/1.txt", "b/2.JSON", "b/c/3.json"]),
        (".", {"pattern": "*.json"}, ["a.json", "b/2.JSON", "b/c/3.json"]),
        (".", {"recursive": False}, ["a.json"]),
        ("b/1.txt", {"pattern": "*.json"}, ["b/1.txt"]),
        (".folder", {}, [".folder/4.json"]),
    ],
)
def test_files_are_sorted_and_hidden_ones_and_reports_left_out(tree, source, options, expected):
    assert names(list_source(tree / source, **options).files, tree) == expected


def test_links_are_followed_once_and_broken_ones_listed(tree, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "5.json").touch()
    links = {"a_link": "b", "b/up": ".", "circle.json": "circle.json", "lost.json": "nowhere.json", "z": other}
    for link, target in links.items():
        (tree / link).symlink_to(tree / target)
    found = ["a.json", "b/2.JSON", "b/c/3.json", "circle.json", "lost.json", "z/5.json"]
    assert names(list_source(tree, "*.json").files, tree) == found


ABSENT = {
    "": "path is empty",
    "~no_such_user_here/x": "~no_such_user_here",
    "a\0b": "NUL character",
    "x" * 5000: "too long",
    **dict.fromkeys(("samples:nothing", "samples:"), "samples:mindcraft"),
}


@pytest.mark.parametrize("source", ABSENT)
def test_a_source_that_is_not_there_is_named(source):
    with pytest.raises(SourceError, match=ABSENT[source]):
        resolve(source)


@pytest.mark.parametrize(
    "named",
    [["{0}/runs", "runs"], ["runs/*"], ["runs/real", "runs/latest"], ["runs/latest/a.json", "runs/real/a.json"]],
)
def test_a_file_counts_once_whatever_its_names(tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/real").mkdir(parents=True)
    (tmp_path / "runs/real/a.json").write_text("1")
    (tmp_path / "runs/latest").symlink_to("real")
    files = list_source([source.format(tmp_path) for source in named]).files
    assert [os.path.realpath(file) for file in files] == [str((tmp_path / "runs/real/a.json").resolve())]


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("name", ["runs.{}", "{}://runs.{}", "{}://::runs.{}", "{}://m/*::runs.{}", "run*.{}"])
def test_an_archive_is_read_under_its_own_name(tmp_path, monkeypatch, kind, name):
    monkeypatch.chdir(tmp_path)
    write_all(tmp_path / "logs", {"m/cook/Andy_0_0.json": 1, "m/bake/Andy_0_0.json": 0})
    shutil.make_archive("runs", kind, "logs")
    runs = evalkit.load(name.format(kind, kind)).runs
    assert runs["task_id"].tolist() == ["bake", "cook"]
    assert runs["source"].str.startswith(f"{kind}://").all()


@pytest.mark.parametrize("start", ["", "./"])
def test_a_tar_archive_is_listed_from_its_index_as_fsspec_lists_it_folder_by_folder(tmp_path, monkeypatch, start):
    _packed(
        tmp_path / "a.tar", [f"{start}{name}" for name in ("a.csv", "b/a.csv", "b/c/a.csv", "bc/a.csv", "b/.h/a.csv")]
    )
    place = remote._Place(f"tar://{tmp_path}/a.tar!/")
    for root, maxdepth in product(("", ".", "b", "./b", "b/c", "b/c/a.csv", "none"), (None, 1, 2)):
        slow = type(place.fs).find(place.fs, root, maxdepth=maxdepth, withdirs=True, detail=True)
        assert place.fs.find(root, maxdepth=maxdepth) == slow
    names = [file.rpartition("!/")[2].removeprefix("./") for file in list_source(f"{tmp_path}/a.tar").files]
    assert names == ["a.csv", "b/a.csv", "b/c/a.csv", "bc/a.csv", "hard.csv", "link.csv"]
    calls = []
    monkeypatch.setattr(type(place.fs), "ls", lambda self, path, **_: calls.append(path) or [path])
    list_source(f"{tmp_path}/a.tar")
    assert calls == [""]


OUTSIDE = ["../up.csv", "a/../../up.csv", "/absolute.csv", "..\\up.csv"]


def _packed(path, names):
    data = b"model,task,score\nm,a,1\n"
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, data)
        return
    with tarfile.open(path, "w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for name in ("link.csv", "hard.csv"):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE if name == "link.csv" else tarfile.LNKTYPE, "/etc/passwd"
            archive.addfile(member)


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("name", ["a/../up.csv", *OUTSIDE])
def test_an_archive_with_a_name_that_leads_out_of_it_is_refused(tmp_path, kind, name):
    _packed(tmp_path / f"a.{kind}", ["good.csv", name])
    with pytest.raises(SourceError, match=re.escape(f"{name} is outside the archive")):
        list_source(str(tmp_path / f"a.{kind}"))


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_member_in_too_many_folders_is_refused_alone(tmp_path, kind):
    _packed(tmp_path / f"a.{kind}", ["good.csv", "a/" * 300 + "deep.csv", "b/" * 3_000 + "deeper.csv"])
    for _ in range(2):
        ledger = evalkit.load(f"{tmp_path}/a.{kind}", "trajectories").ledger.set_index("source")
        reasons = ledger.loc[ledger.index.str.contains("deep"), "reason"]
        assert reasons.tolist() == ["OSError: nested in more than 200 folders"] * 2
        assert ledger.loc[ledger.index.str.endswith("good.csv"), "status"].tolist() == ["used"]


def test_links_of_an_archive_lead_to_no_file_outside(tmp_path):
    _packed(tmp_path / "a.tar", ["good.csv", "a..b/also.csv"])
    ledger = evalkit.load(str(tmp_path / "a.tar"), "trajectories").ledger
    assert ledger["status"].tolist() == ["used", "used", "failed", "failed"]
    assert ledger["reason"].str.contains("neither a regular file nor a link to one").sum() == 2


CHANGES = {
    "nothing": lambda root: None,
    "a file more": lambda root: (root / "b/c/new.json").touch(),
    "a file less": lambda root: (root / "b/2.JSON").unlink(),
    "a folder more": lambda root: (root / "d").mkdir(),
    "a folder renamed": lambda root: (root / "b/c").rename(root / "b/z"),
}


@pytest.mark.parametrize("seconds", [60, 0])
@pytest.mark.parametrize("change", CHANGES)
def test_folders_are_listed_again_unless_none_has_changed(tree, tmp_path_factory, monkeypatch, change, seconds):
    changed = max(path.stat().st_ctime_ns for path in (tree, *tree.rglob("*")))
    now = changed / 1e9 + seconds  # the time of the first listing: this long after the last change
    monkeypatch.setattr(sources, "time", SimpleNamespace(time=lambda: now))
    before = list_source(tree)
    clock = tmp_path_factory.mktemp("clock")
    while clock.stat().st_ctime_ns <= changed:  # the clock of a file system may stand still for some milliseconds
        clock.chmod(0o700)
    CHANGES[change](tree)
    scanned, scandir = [], os.scandir
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", lambda path: scanned.append(path) or scandir(path))
        found = list_source(tree, known=before)
    assert (scanned == []) == (seconds > 0 and change == "nothing")
    assert found == list_source(tree)


def test_a_link_to_a_folder_is_followed_again_wherever_it_leads_now(tree, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(sources, "SETTLED", -10)
    other = tmp_path_factory.mktemp("other")
    (other / "link").symlink_to(tree / "b")
    (tree / "z").symlink_to(other / "link")
    before = list_source(tree)
    (other / "c").mkdir()
    (other / "c/5.json").touch()
    (other / "link").unlink()
    (other / "link").symlink_to(other / "c")
    assert "z/5.json" in names(list_source(tree, known=before).files, tree)


def test_sample_data_is_left_out_beside_data_of_ones_own():  # also in plans of reports
    assert own_sources("samples:a", ["samples:b", "mine"], "yours") == ("", [], "yours")


WITH = {
    "s3://KEY:SEKRET@bucket/p": "s3://…@bucket/p",
    "S3://SEKRET@bucket": "S3://…@bucket",
    "http://h/x?SEKRET": "http://h/x?…",
    "https://h/x?SEKRET": "https://h/x?…",
    "https://h/x#access_token=SEKRET": "https://h/x#…",
    "simplecache::s3://K:SEKRET@b/*.json": "simplecache::s3://…@b/*.json",
    "zip://inner::s3://K:SEKRET@b/x.zip": "zip://inner::s3://…@b/x.zip",
    "zip://s3://K:SEKRET@b/x.zip!/": "zip://s3://…@b/x.zip!/",
    "ftp://u:SE@K/RET@h/x": "ftp://…@h/x",
    "s3://b/x?versionId=1&X-Amz-Signature=SEKRET": "s3://b/x?…",
    "az://c/x?sv=1&sig=SEKRET": "az://c/x?…",
    "s3://b/x;secret=SEKRET": "s3://b/x;…",
}
WITHOUT = ["s3://bucket/user@host/x", "s3://bucket/run?/[ab]*.json", "s3://b/x?version=1", "http://h:8080/x", "zip:///folder/a@b.zip!/x",
           "zip://inner::s3://bucket/a@b.zip", "file:///a:b@c", "zip://::runs@v1.zip", "/home/me@here/x?token=1",
           "me@example.org", *(f"{shown}: no such file" for shown in WITH.values())]  # fmt: skip


@pytest.mark.parametrize(("url", "shown"), WITH.items())
def test_credentials_are_left_out_of_any_url_of_a_text_and_refused_as_a_source(url, shown):
    assert redacted(f"no file: ['s3://a/x', '{url} and s3://b/y") == f"no file: ['s3://a/x', '{shown} and s3://b/y"
    assert str(SourceError(f"no {url} there")) == f"no {shown} there"
    for use in (resolve, list_source):
        with pytest.raises(SourceError, match="credentials don't belong in a URL") as raised:
            use(url)
        assert "SEK" not in str(raised.value)


@pytest.mark.parametrize("text", WITHOUT)
def test_what_holds_no_credentials_stays_as_it_is(text):
    assert redacted(text) == text


_CHARACTERS = st.characters(categories=["L", "N", "P", "S"], exclude_characters="@/?#;")
_SAFE = st.text(_CHARACTERS.filter(lambda character: character != ":"), min_size=1)


@given(st.sampled_from(["s3", "ftp", "simplecache::s3", "https"]), _SAFE, st.lists(st.text(_CHARACTERS), min_size=1))
def test_no_password_is_left_whatever_it_holds(protocol, user, password):
    secret = "/".join(password)
    assert redacted(f"{protocol}://{user}:{secret}@host/path") == f"{protocol}://…@host/path"


@pytest.mark.parametrize("link", ["zip://", "zip://a/", "tar://a?token="])
def test_a_chain_of_any_length_shows_no_password(link):
    for length in (1, 10, 5_000):
        assert "SEK" not in redacted(f"{link * length}s3://K:SEK@b/x")
    assert redacted("zip://" * 10 + "s3://b/x") == "zip://" * 10 + "s3://b/x"
