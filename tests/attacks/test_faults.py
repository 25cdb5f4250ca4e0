"""A disk that is full or fails at any write, folders that can't be written or searched, clocks that are set back."""

import contextlib
import errno
import os
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit import mindcraft
from evalkit.cli import main
from evalkit.io import SourceError, write
from evalkit.io.write import is_temporary
from evalkit.reports import records

FAULTS = {"full": errno.ENOSPC, "broken": errno.EIO, "read-only": errno.EROFS, "unsearchable": errno.EACCES}
COMMANDS = {
    "collect": ("collect", "mindcraft", "logs", "-o", "out"),
    "output": ("mindcraft", "logs", "--output", "out.csv"),
    "view": ("view", "logs", "-o", "out"),
}
PLACES = ((write, "open"), (os, "fsync"), (os, "replace"), (os, "makedirs"), (shutil, "copyfile"))


class Disk:
    """Operations of a disk, of which the one with a certain number fails, and all later ones."""

    def __init__(self, monkeypatch, folder):
        self.done, self.fails_at, self.cause, self._folder = 0, None, 0, str(folder)
        for module, name in PLACES:
            monkeypatch.setattr(module, name, self._failing(getattr(module, name, open)), raising=False)

    def _failing(self, real):
        def operation(*args, **options):
            self.done += 1
            if self.fails_at is not None and self.done >= self.fails_at:
                raise OSError(self.cause, os.strerror(self.cause))
            return real(*args, **options)

        return operation

    def fail(self, number, cause):
        self.done, self.fails_at, self.cause = 0, number, cause


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a folder with some runs, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    shutil.copytree(Path(mindcraft.__file__).parents[1] / "samples" / "mindcraft" / "runs", tmp_path / "all")
    first = sorted(path for path in (tmp_path / "all").rglob("*.json") if "broken" not in str(path))[:12]
    for path in first:
        new = tmp_path / "logs" / path.relative_to(tmp_path / "all")
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, new)
    return tmp_path


def _made(folder):
    """Give what a command has made, without times."""
    found = {}
    for path in sorted([*folder.glob("out*"), *folder.glob("out/**/*")]):
        if path.is_file() and path.suffix in (".csv", ".json", ".html", ".ipynb") and "records" not in path.name:
            found[str(path.relative_to(folder))] = re.sub(rb"\d{4}-\d\d-\d\dT[\d:.+]+", b"", path.read_bytes())
    if (folder / "out" / "evalkit-records.json").exists():
        with contextlib.suppress(SourceError):  # it may hold nothing yet
            found["runs"] = mindcraft.load(str(folder / "out")).runs.to_csv()
    return found


def _clear(folder):
    shutil.rmtree(folder / "out", ignore_errors=True)
    for path in folder.glob("out.*"):
        path.unlink()


@pytest.mark.filterwarnings("ignore:.*collecting was stopped")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_that_fails_at_any_write_gives_a_line_and_nothing_half_written(here, monkeypatch, name):
    assert CliRunner().invoke(main, COMMANDS[name]).exit_code == 0
    whole = _made(here)
    disk = Disk(monkeypatch, here)
    _clear(here)
    disk.fail(None, 0)
    CliRunner().invoke(main, COMMANDS[name])
    operations = disk.done
    assert operations > 0
    for number, cause in ((number, errno.ENOSPC) for number in range(1, operations + 1)):
        _clear(here)
        disk.fail(number, cause)
        result = CliRunner().invoke(main, COMMANDS[name])
        assert result.exit_code in (0, 2), (number, result.exception)  # 0: what failed was not needed
        assert result.exit_code == 0 or os.strerror(cause) in result.output, number
        assert len(result.output.strip().splitlines()) == 1 or result.exit_code == 0 or name == "output"
        assert [path for path in here.rglob("*") if is_temporary(path.name)] == []
        disk.fail(None, 0)
        half = {path: data for path, data in _made(here).items() if path != "runs"}
        assert {path: whole[path] for path in half if path in whole} == half
        again = CliRunner().invoke(main, COMMANDS[name])
        assert again.exit_code == 0, again.output
        assert _made(here) == whole


@pytest.mark.parametrize("cause", FAULTS.values())
@pytest.mark.parametrize("place", ["write_bytes", "replace", "mkdir"])
def test_a_file_of_a_report_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch, place, cause):
    page, work = tmp_path / "out" / "page.html", tmp_path / "work"
    work.mkdir()
    records.write_file(page, "old", work)

    def fails(*_, **__):
        raise OSError(cause, os.strerror(cause))

    with monkeypatch.context() as patch:
        patch.setattr(Path, place, fails)
        with pytest.raises(OSError, match=os.strerror(cause)) as raised:
            records.write_file(page, "new", work)
    assert raised.value.filename == str(page)
    assert page.read_text() == "old"
    assert list(work.iterdir()) == []
