"""Logs in other encodings, and in an archive that is named as any other file."""

import json
import shutil
from pathlib import Path

import pytest

import evalkit
from evalkit import crafter, steps
from evalkit.kinds.detection import kind_of_source
from tests.crafter.traces import config, environment, hook, trace
from tests.mindcraft.builders import write_all

SAMPLES = Path(evalkit.__file__).parent / "samples"
EVENT = environment(0, [hook("easy_achievement", ["collect_wood"])])


@pytest.mark.parametrize(("encoding", "flag"), [("utf-8", None), ("utf-16", "utf_16"), ("latin-1", "latin_1")])
def test_a_log_in_another_encoding_is_found_read_and_flagged(tmp_path, encoding, flag):
    text = json.dumps(trace(EVENT, metadata=[config(model_name="modèle")]), ensure_ascii=False)
    (tmp_path / "a.json").write_bytes(text.encode(encoding))
    assert kind_of_source(str(tmp_path)).name == "crafter"
    (episode,) = crafter.load(tmp_path).episodes.itertuples()
    assert episode.model_name == "modèle"
    assert episode.score == 1
    assert (flag in episode.run_flags) is (flag is not None)


def test_lines_in_utf_16_are_records_too(tmp_path):
    record = {"step": {"function_name": "f", "parameters": {"é": 1}}, "success": True, "result": "é", "error": None}
    text = "\n".join(json.dumps(record, ensure_ascii=False) for _ in range(3))
    (tmp_path / "h.jsonl").write_bytes(text.encode("utf-16"))
    logs = steps.load(tmp_path)
    assert len(logs.steps) == 3
    assert "utf_16" in logs.ledger["reason"].iloc[0]


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("name", ["runs.{}", "{}://runs.{}", "{}://::runs.{}", "run*.{}"])
def test_an_archive_is_read_under_its_own_name(tmp_path, monkeypatch, kind, name):
    monkeypatch.chdir(tmp_path)
    write_all(tmp_path / "logs", {"m/cook/Andy_0_0.json": 1, "m/bake/Andy_0_0.json": 0})
    shutil.make_archive("runs", kind, "logs")
    runs = evalkit.load(name.replace("{}", kind)).runs
    assert runs["task_id"].tolist() == ["bake", "cook"]
    assert runs["source"].str.startswith(f"{kind}://").all()
