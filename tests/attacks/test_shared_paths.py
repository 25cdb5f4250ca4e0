"""What is handed out of a folder of reports names no folder of its maker: neither that of the logs nor the home."""

import os
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner

import evalkit
from evalkit.cli import main
from evalkit.io import shown_paths
from tests.mindcraft.builders import write_all

SAMPLES = Path(evalkit.__file__).parent / "samples"


@pytest.mark.parametrize(
    ("sources", "text", "shown"),
    [
        (["/data/anna/exp_2"], "'/data/anna/exp_2/m/t.json', /data/anna/exp_2.", "'exp_2/m/t.json', exp_2."),
        (["/data/anna/exp_2"], "/data/anna/exp_20 and /data/anna/exp", "anna/exp_20 and anna/exp"),
        (["/data/anna/exp_2"], "/other/data/anna/exp_2", "/other/data/anna/exp_2"),
        (["/data/anna/exp_2", "/data/anna/exp_2/sub"], "/data/anna/exp_2/sub/a.json", "sub/a.json"),
        (["/data/anna/exp_*"], "/data/anna/exp_1/a.json", "anna/exp_1/a.json"),
        (["~/exp_2"], "~/exp_2 is /home/anna/exp_2", "~/exp_2 is exp_2"),
        (["gpt-4o", "", "a\0b", "/"], "/home/anna/x, /home/annabel", "~/x, /home/annabel"),
        (["zip:///data/anna/runs.zip"], "zip:///data/anna/runs.zip!/a.json", "zip://runs.zip!/a.json"),
        (["s3://bucket/runs"], "s3://bucket/runs/a.json", "s3://bucket/runs/a.json"),
        (["samples:crafter"], f"{SAMPLES}/crafter/a.json", "crafter/a.json"),
        (["/data/anna/exp_2"], "?a=%2Fdata%2Fanna%2Fexp_2%2Fm", "?a=exp_2%2Fm"),
    ],
)
def test_a_path_begins_with_the_last_part_of_its_source(monkeypatch, sources, text, shown):
    monkeypatch.setenv("HOME", "/home/anna")
    assert shown_paths(sources)(text) == shown


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a home with logs of two kinds, and reports and pages on them that were made there."""
    home = tmp_path_factory.mktemp("users") / "anna-smith"
    write_all(home / "work/steps", {"typed.json": (SAMPLES / "steps/typed.json").read_bytes()})
    logs = {f"{name}/task_{i}/Andy_0_0.json": float(name == "alder") for name in ("alder", "birch") for i in range(4)}
    write_all(home / "work/exp_1", logs)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOME", str(home))
        patched.chdir(home)
        for source, *more in (("steps", "step_evaluation"), ("exp_1", "leaderboard")):
            result = CliRunner().invoke(main, ["report", str(home / "work" / source), *more, "-o", "out", "-j", "2"])
            assert result.exit_code == 0, result.output
        assert CliRunner().invoke(main, ["view", str(home / "work/exp_1"), "-o", "out/view"]).exit_code == 0
    return home


def _streams(data):
    """Yield the data of a PDF, and what its streams hold."""
    yield data
    for part in data.split(b"stream\n")[1::2]:
        try:
            yield zlib.decompress(part)
        except zlib.error:
            continue


@pytest.mark.slow
def test_no_file_of_a_report_folder_names_the_folder_of_the_logs_or_the_home(home):
    files = [path for path in (home / "out").rglob("*") if path.is_file() and ".evalkit" not in path.parts]
    assert {path.suffix for path in files} >= {".html", ".csv", ".ipynb", ".json", ".svg", ".pdf", ".png"}
    leaks = [
        (path.relative_to(home), part)
        for path in files
        for part in (os.fsencode(home), os.fsencode(home.parent), b"anna-smith")
        if any(part in data for data in _streams(path.read_bytes()))
    ]
    assert leaks == []
