"""A disk that is full or fails at any write, and an output that is full or closed."""

import contextlib
import errno
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import warnings

import pytest
from click.testing import CliRunner

from evalkit import mindcraft
from evalkit.cli import main
from evalkit.io import SourceError, store, write
from evalkit.io import read as read_module
from evalkit.io.write import TEMPORARY, remove_left
from evalkit.kinds import load
from evalkit.kinds.detection import kind_of_source
from evalkit.reports.kernels import FOLDER_PREFIX
from tests.mindcraft.builders import write_all

COMMANDS = {
    "collect": ("collect", "mindcraft", "logs", "-o", "out"),
    "output": ("mindcraft", "logs", "--output", "out.csv"),
    "view": ("view", "logs", "-o", "out"),
}
FULL = os.strerror(errno.ENOSPC)
PLACES = ((write, "open"), (os, "replace"), (os, "makedirs"), (shutil, "copyfile"))


class Disk:
    """Operations of a disk: it is full from the one with a certain number on."""

    def __init__(self, monkeypatch):
        self.done, self.full_at = 0, math.inf
        for module, name in PLACES:
            monkeypatch.setattr(module, name, self._counted(getattr(module, name, open)), raising=False)

    def _counted(self, real):
        def operation(*args, **options):
            self.done += 1
            if self.done >= self.full_at:
                raise OSError(errno.ENOSPC, FULL)
            return real(*args, **options)

        return operation


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a folder with some runs, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    return write_all(tmp_path, {f"logs/m/{task}/Andy_0_0.json": int(task == "cake") for task in ("bread", "cake")})


def _made(folder):
    """Return what a command has made, without times."""
    found = {}
    for path in sorted([*folder.glob("out*"), *folder.glob("out/**/*")]):
        if path.is_file() and path.suffix in (".csv", ".json", ".html", ".ipynb") and "records" not in path.name:
            found[str(path.relative_to(folder))] = re.sub(rb"\d{4}-\d\d-\d\dT[\d:.+]+", b"", path.read_bytes())
    if (folder / "out" / "evalkit-records.json").exists():
        with contextlib.suppress(SourceError):  # it may hold nothing yet
            found["runs"] = mindcraft.load(str(folder / "out")).runs.to_csv()
    return found


@pytest.mark.filterwarnings("ignore:.*collecting was stopped")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_that_fails_at_any_write_gives_a_line_and_nothing_half_written(here, monkeypatch, name):
    disk = Disk(monkeypatch)

    def run(full_at=math.inf):
        disk.done, disk.full_at = 0, full_at
        return CliRunner().invoke(main, COMMANDS[name])

    assert run().exit_code == 0
    whole, operations = _made(here), disk.done
    assert operations > 0
    for number in range(1, operations + 1):
        shutil.rmtree(here / "out", ignore_errors=True)
        (here / "out.csv").unlink(missing_ok=True)
        result = run(number)
        assert result.exit_code in (0, 2), (number, result.exception)  # 0: what failed was not needed
        assert result.exit_code == 0 or FULL in result.output, number
        assert len(result.output.strip().splitlines()) == 1 or result.exit_code == 0 or name == "output"
        assert list(here.rglob(f"{TEMPORARY}*")) == []
        disk.full_at = math.inf
        half = {path: data for path, data in _made(here).items() if path != "runs"}
        assert {path: whole[path] for path in half if path in whole} == half
        again = run()
        assert again.exit_code == 0, again.output
        assert _made(here) == whole


@pytest.mark.parametrize("name", COMMANDS)
def test_a_limit_on_the_size_of_files_gives_a_line_and_nothing_half_written(here, name):
    _, most = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))
    try:
        ended = CliRunner().invoke(main, COMMANDS[name])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
    assert os.strerror(errno.EFBIG) in ended.stderr
    assert list(here.rglob(f"{TEMPORARY}*")) == []
    assert CliRunner().invoke(main, COMMANDS[name]).exit_code == 0


def test_a_log_that_changes_is_read_again_where_its_time_is_in_the_future(here, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", str(here / "cache"))
    log, later = here / "logs/m/bread/Andy_0_0.json", time.time() + 10**8
    won, lost = (here / f"logs/m/{task}/Andy_0_0.json" for task in ("cake", "bread"))
    os.utime(log, (later, later))
    assert mindcraft.load("logs").runs["is_successful"].tolist() == [False, True]
    lost.write_bytes(won.read_bytes())
    os.utime(log, (later, later))
    assert mindcraft.load("logs").runs["is_successful"].tolist() == [True, True]


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /dev/full")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--help > /dev/full", "No space left on device"),
        ("show samples:steps/typed.json > /dev/full", "No space left on device"),
        ("--help >&-", "is closed"),
    ],
)
def test_an_output_that_can_not_be_written_ends_in_one_line(command, words):
    ended = subprocess.run(["sh", "-c", f"{sys.executable} -m evalkit {command}"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert words in ended.stderr


def test_a_reader_that_leaves_is_no_failure():
    line = f"{sys.executable} -m evalkit show samples:steps/typed.json | head -n 1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert ended.returncode == 0
    assert "No log names a model" in ended.stderr  # a note on the run, and nothing about the reader
    assert ended.stderr.count("\n") == 1


def test_a_cache_that_can_not_be_written_is_said_once_and_not_needed(here, monkeypatch):
    (here / "cache").write_text("a file, and no folder")
    monkeypatch.setenv("EVALKIT_CACHE", str(here / "cache"))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        counts = [len(mindcraft.load("logs").runs) for _ in range(2)]
    assert counts == [2, 2]
    assert [str(one.message).endswith("continuing without the cache") for one in warned] == [True]
    monkeypatch.setenv("EVALKIT_CACHE", str(here / "other"))
    mindcraft.load("logs")
    assert (here / "other").is_dir()


@pytest.mark.parametrize("operation", ["TemporaryFile", "write_bytes"])
def test_a_cache_that_is_read_only_is_said_once_and_not_needed(here, monkeypatch, operation):
    def refused(*_, **__):
        raise {"TemporaryFile": OSError, "write_bytes": SourceError}[operation](os.strerror(errno.EROFS))

    for cache in ("writable", "read-only"):
        monkeypatch.setenv("EVALKIT_CACHE", str(here / cache))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            assert [len(mindcraft.load("logs").runs) for _ in range(2)] == [2, 2]
        assert len(warned) == (cache == "read-only")
        monkeypatch.setattr(store, operation, refused)


def test_of_a_folder_of_many_files_some_are_read_to_detect_the_kind_and_all_to_load(here, monkeypatch):
    for number in range(330):
        (here / f"many/{number % 30}").mkdir(parents=True, exist_ok=True)
        (here / f"many/{number % 30}/{number}.csv").write_text(f"model,task,score\nm,{number},1\n")
    read = []
    monkeypatch.setattr(read_module, "check_regular", lambda status: read.append(status.st_ino))
    assert kind_of_source("many").name == "trajectories"
    assert 0 < len(set(read)) <= 300
    assert len(load("many", jobs=1).runs) == 330
    assert len(set(read)) == 330


@pytest.mark.parametrize("prefix", [FOLDER_PREFIX, TEMPORARY])
def test_what_killed_processes_left_is_removed_and_all_else_stays(tmp_path, prefix):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    names = {f"{prefix}{ended.pid}-x": False, f"{prefix}{os.getpid()}-x": True, f"{prefix}1x-x": True, "other": True}
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.csv").touch()
    remove_left(str(tmp_path), prefix)
    assert {name: (tmp_path / name).exists() for name in names} == names
    assert {name: (tmp_path / f"{name}.csv").exists() for name in names} == names


def test_a_command_that_was_killed_while_it_wrote_leaves_nothing_once_it_has_run_again(here):
    line = "import os, pandas\nfrom evalkit.cli import main\npandas.DataFrame.to_csv = lambda *_, **__: "
    killed = "(open(_[1], 'w').close(), os.kill(os.getpid(), 9))"
    arguments = f"main({list(COMMANDS['output'])})"
    subprocess.run([sys.executable, "-c", f"{line}{killed}\n{arguments}"], capture_output=True)
    assert len(list(here.glob(f"{TEMPORARY}*"))) == 1
    assert CliRunner().invoke(main, COMMANDS["output"]).exit_code == 0
    assert (list(here.glob(f"{TEMPORARY}*")), (here / "out.csv").exists()) == ([], True)
