"""Every command and function survives URLs with a secret, hostile and endless names, pipes and devices."""

import errno
import json
import logging
import os
import shutil
import traceback
import warnings
from unittest import mock

import fsspec
import pytest

from evalkit import mindcraft
from evalkit.evidence import site
from evalkit.io import SourceError, storage
from evalkit.io.sources import resolve
from evalkit.io.text import MOST_LINE
from evalkit.kinds import dataset
from evalkit.reports import batch
from tests.attacks.entry_points import FUNCTIONS, NAMED, READ, READERS, VALUES, of_kinds, run
from tests.attacks.hostile import NAME, assert_plain
from tests.io.test_sources import WITH
from tests.special_files import SPECIAL

COMMANDS = READ + NAMED
SECRET = "SEK"  # a part of every secret in WITH
URLS = [*WITH][::3]  # all are asked for in the tests of sources
LONG = "x" * 100_000


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in an empty folder, with the cache in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def _files_with_it(folder, own=""):
    """Return the files and folders whose name or content repeats the secret."""
    files = [path for path in folder.rglob("*") if path.name != own]
    return [path for path in files if SECRET in path.name or (path.is_file() and SECRET in path.read_text("latin-1"))]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_repeats_a_secret(here, command):
    for url in URLS:
        result = run(command, url)
        text = result.output + "".join(traceback.format_exception(result.exception or SystemExit()))
        assert SECRET not in text, (url, text[-500:])
        assert _files_with_it(here) == [], url


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_repeats_a_secret(here, name, capfd, caplog):
    caplog.set_level(logging.DEBUG, "evalkit")
    for url in URLS:
        with warnings.catch_warnings(record=True) as caught:
            try:
                said = repr(FUNCTIONS[name](url))
            except Exception as error:
                causes = [error, error.__cause__, error.__context__]
                said = " ".join(f"{each} {each!r} {getattr(each, 'filename', '')}" for each in causes)
        said += f"{[warning.message for warning in caught]} {capfd.readouterr()} {caplog.text}"
        assert SECRET not in said, (url, said)
        assert _files_with_it(here) == [], url


def test_storage_options_reach_the_file_system_and_stay_in_the_process(here):
    options = {"client_kwargs": {"headers": {"Authorization": "Bearer SEKRET"}}}
    with mock.patch("fsspec.core.url_to_fs", wraps=fsspec.core.url_to_fs) as opened:
        for content in (json.dumps(options), '["SEKRET"]', '{"key": "SEKRET'):
            (here / "options.json").write_text(content)
            for command in ("mindcraft {}", "collect mindcraft {} -o out", "mindcraft {} --list all"):
                result = run(f"{command} --storage-options options.json", "http://127.0.0.1:9/runs")
                assert (result.exit_code, result.output.count("\n")) == (2, 1)
                assert SECRET not in result.output
        assert {repr(call.kwargs) for call in opened.mock_calls} == {repr(options)}
    with storage(options), pytest.raises(Exception, match="127") as raised:
        mindcraft.load("http://127.0.0.1:9/runs")
    assert SECRET not in f"{raised.value} {raised.value.__cause__} {raised.value!r}"
    assert _files_with_it(here, "options.json") == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_hostile_name_is_shown_as_plain_text(command):
    assert_plain(run(command, NAME).output)


@pytest.mark.parametrize("given", [LONG, "a\0b", "http://[::1/x"], ids=["long", "NUL", "no URL"])
@pytest.mark.parametrize("command", READ + VALUES)
def test_impossible_values_are_refused_in_one_line_that_repeats_little_of_them(command, given):
    result = run(command, given)
    assert (result.exit_code, result.output.startswith("evalkit: "), result.output.count("\n")) == (2, True, 1)
    assert len(result.output) <= 2 * MOST_LINE


FOUND = {  # commands that find a special file by themselves, and its name
    **dict.fromkeys(of_kinds("KIND ."), "session_a.json"),
    "mindcraft runs": "runs/bread/results.txt",
    "steps ./lines": "lines/a.jsonl",
    "steps ./checkpoints": "checkpoints/a.sqlite",
    "steps ./write-ahead": "write-ahead/a.sqlite-wal",
    "mindcraft samples:mindcraft/runs --tasks defs": "defs/a.json",
    "report logs": "logs/a.json",
    "collect steps logs -o out": "logs/a.json",
    "steps data": "data/evalkit-records.json",
    "collect steps samples:steps -o data": "data/evalkit-records.json",
}
ANSWERED = ["detect {}", *of_kinds("collect KIND {} -o out")]  # by a count, or the ledger
CAUSES = ("not a regular file", os.strerror(errno.ENXIO))  # the second of a socket, which can't be opened
SAYS = {  # what functions that do not raise say
    "collect": lambda changes: changes.new == 1,
    "evaluate_trace": lambda score: any(cause in score["error"] for cause in CAUSES),
    "analyze_agent_log": lambda outcome: outcome["completion_status"] == "LOG_FILE_ERROR",
    "load_runs": lambda runs: any(cause in runs.ledger.entries[0].reason for cause in CAUSES),
}


@pytest.mark.filterwarnings("ignore:unclosed")
@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("place", [*FOUND, *READ])
def test_no_command_waits_for_a_pipe_or_device_and_one_that_is_named_is_refused(here, special, place):
    path = here / FOUND.get(place, "special.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".sqlite-wal":
        path.with_name("a.sqlite").write_bytes(b"SQLite format 3\0" + bytes(100))
    SPECIAL[special](path)
    result = run(place, path)
    assert "Traceback" not in result.output
    assert place in FOUND or place in ANSWERED or result.exit_code == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("name", READERS)
def test_functions_fail_or_report_a_special_file_without_reading_it(here, special, name):
    SPECIAL[special](here / "special.json")
    if name in SAYS:
        assert SAYS[name](READERS[name](str(here / "special.json")))
    else:
        with pytest.raises((SourceError, OSError, ValueError), match=r"special\.json"):
            READERS[name](str(here / "special.json"))


REPORT = "report samples:steps step_evaluation -o out"
WRITES = [  # commands that write into a folder, and the places in it where somebody may have put a link
    *[(REPORT, f"step_evaluation{below}") for below in ("", "/samples_steps", "/samples_steps/steps.csv")],
    *[(REPORT, f".evalkit{below}") for below in ("", "/step_evaluation", "/other", "/other/a.json")],
    *[(REPORT, place) for place in ("runs", "runs/.evalkit", "runs/a.html", "index.html", "manifest.json", "[a]*")],
    *[("view samples:steps -o out", place) for place in ("runs", "runs/.evalkit", "runs/a.html", "index.html")],
]


@pytest.mark.parametrize(("command", "place"), WRITES)
def test_nothing_is_written_to_a_link_or_pipe_in_a_folder_from_somebody_else(here, monkeypatch, command, place):
    made = []
    monkeypatch.setattr(batch, "_make", lambda due, *_: made.extend(due) or ())  # takes seconds
    path, elsewhere = here / "out" / place, here / "elsewhere"
    elsewhere.mkdir()
    for name in ("other", "[a]*"):
        (here / "out/.evalkit" / name).mkdir(parents=True)  # of records of reports
    if path.is_dir():
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for put in (*SPECIAL.values(), lambda path: path.symlink_to(elsewhere)):
        put(path)
        result = run(command)
        assert (result.exit_code, result.output.count("\n")) == (2, 1)
        assert f"out/{place}: a link, pipe or device" in result.output
        assert (made, list(elsewhere.iterdir())) == ([], [])
        path.unlink()
    assert run(command).exit_code == 0
    assert bool(made) == (command == REPORT)


@pytest.mark.parametrize("is_checked", [True, False])
def test_without_this_check_a_view_or_dataset_would_be_written_there(here, monkeypatch, is_checked):
    if not is_checked:
        for module in (site, dataset):
            monkeypatch.setattr(module, "check_no_links", lambda *_: None)
    shutil.copytree(resolve("samples:steps"), here / "logs")
    for line, name in (("collect steps logs -o out", "steps"), ("view logs -o pages", "runs")):
        folder = here / line.split()[-1] / name
        assert run(line).exit_code == 0
        folder.rename(here / name)
        folder.symlink_to(here / name)
    before = [path for name in ("steps", "runs") for path in (here / name).rglob("*")]
    shutil.copy(here / "logs/typed.json", here / "logs/new.json")
    for line in ("collect steps logs -o out", "view logs -o pages"):
        assert (run(line).exit_code == 2) == is_checked
    after = [path for name in ("steps", "runs") for path in (here / name).rglob("*")]
    assert (after == before) == is_checked


def test_an_output_folder_may_itself_be_a_link(here):
    (here / "elsewhere").mkdir()
    (here / "out").symlink_to(here / "elsewhere")
    assert run("view samples:steps -o out").exit_code == 0
    assert (here / "elsewhere/index.html").is_file()
