import os

import pytest

from evalkit.reports.records import input_fingerprint


@pytest.fixture
def folder(tmp_path):
    for name in ("a.json", "sub/b.json"):
        (tmp_path / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / name).write_text("{}")
    return tmp_path / "logs"


CHANGES = {
    "content": lambda f: (f / "a.json").write_text("[1]"),
    "time": lambda f: os.utime(f / "a.json", (1, 1)),
    "new": lambda f: (f / "sub/c.json").touch(),
    "gone": lambda f: (f / "sub/b.json").unlink(),
    "name": lambda f: (f / "a.json").rename(f / "z.json"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_below_a_folder_changes_its_fingerprint(folder, change):
    before = input_fingerprint(str(folder))
    assert before == input_fingerprint(str(folder))
    CHANGES[change](folder)
    assert input_fingerprint(str(folder)) != before


@pytest.mark.parametrize(
    "text", ["gpt-4o", "meta-llama/Llama-3-8B", "nowhere/*.json", "samples:none", "a\0b", "x" * 5000]
)
def test_what_names_no_file_has_no_fingerprint(text):
    assert input_fingerprint(text) == ""


def test_samples_have_a_fingerprint_and_urls_are_remote():
    assert len(input_fingerprint("samples:mindcraft")) == 16
    assert input_fingerprint("s3://bucket/logs") == "remote"
