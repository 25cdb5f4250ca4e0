"""Collecting on the real kinds of logs: the dataset gives what the folder gives, however it came about."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import zlib
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit import crafter, mindcraft, steps
from evalkit.io import SourceError, collect, dataset, output, versions
from evalkit.samples import make_crafter

OLD = 1_600_000_000


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Let every collection of some files take several chunks."""
    monkeypatch.setattr(collect.Kind, "chunk", 3)
    monkeypatch.setattr("evalkit.crafter.collecting._CrafterTraces.chunk", 3)


def write(path: Path, text: str, age: float = 0) -> None:
    """Write a file that looks as if it had been left alone for a while."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (OLD + age,) * 2)


def log(score, who="") -> str:
    turns = [{"role": "user", "content": who}, {"role": "system", "content": f"Task ended with score : {score}"}]
    return json.dumps({"memory": "", "turns": turns, "taskStart": 1_757_845_200_000 + zlib.crc32(who.encode())})


def experiment(folder: Path, model: str, runs: int) -> None:
    """Write an experiment of some runs of two agents, one of them broken, and the file that names its model."""
    for run in range(runs):
        for agent in range(2):
            text = log(run % 2, f"{folder.name} {run} {agent}")
            write(folder / f"multiagent_cooking_{run}_bread" / f"Agent_{agent}_0.json", text)
    write(folder / "multiagent_cooking_0_bread" / "Broken_0_0.json", '{"turns": [')
    write(folder / "results.txt", repr({"model": model, "exp_name": folder.name, "total": 9}))


@pytest.fixture
def runs(tmp_path):
    """Write two experiments of Mindcraft runs, with files that are no logs."""
    folder = tmp_path / "runs"
    experiment(folder / "exp_a_01-01_10-00", "org/model-7b", 4)
    experiment(folder / "exp_b_01-02_10-00", "ft:gpt:x", 3)
    write(folder / "notes.txt", "hello")
    (folder / "exp_b_01-02_10-00" / "multiagent_cooking_7_bread").mkdir()
    return folder


def assert_same(folder, made, room=mindcraft, **options):
    """Compare the frames of the folder with those of the dataset."""
    expected, got = room.load(folder, **options), room.load(made, **options)
    for name in expected._fields:
        if isinstance(getattr(expected, name), pd.DataFrame):
            pd.testing.assert_frame_equal(getattr(expected, name), getattr(got, name), obj=name)


def test_a_dataset_of_task_runs_gives_what_the_folder_gives(runs, tmp_path):
    done = mindcraft.collect(runs, tmp_path / "made")
    assert done.new == len(mindcraft.load(runs).ledger)
    assert_same(runs, tmp_path / "made")
    assert_same(runs, tmp_path / "made", tasks={"multiagent_cooking_1_bread": {"goal": "", "agent_count": 3}})
    assert_same(runs, tmp_path / "made", original_mtimes=True)


def test_samples_give_the_same_as_a_dataset(tmp_path):
    tasks = "samples:mindcraft/tasks"
    folder = Path(mindcraft.load("samples:mindcraft/runs").ledger["source"][0])
    folder = next(parent for parent in folder.parents if parent.name == "runs")
    mindcraft.collect(folder, tmp_path / "made")
    assert_same(folder, tmp_path / "made", tasks=tasks)
    assert_same(folder, tmp_path / "made", tasks=tasks, missing="skip", scale="percent")


def test_other_programs_read_the_tables_split_by_model(runs, tmp_path):
    mindcraft.collect(runs, tmp_path / "made")
    logs = pd.read_parquet(tmp_path / "made" / "logs")
    assert logs.groupby("model_name", observed=True).size().to_dict() == {"ft:gpt:x": 7, "org/model-7b": 9}


def test_nothing_is_read_again_where_nothing_changed(runs, tmp_path, monkeypatch):
    mindcraft.collect(runs, tmp_path / "made")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "made").rglob("*.parquet")}
    monkeypatch.setattr(collect, "parse_files", lambda paths, *_: iter([]) if not list(paths) else pytest.fail("read"))
    done = mindcraft.collect(runs, tmp_path / "made")
    assert (done.new, done.changed, done.vanished) == (0, 0, 0)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "made").rglob("*.parquet")} == before


def test_a_dataset_knows_its_layout(tmp_path):
    for maker in ("openai", "azure"):
        write(tmp_path / "runs" / "e" / maker / "gpt-4o" / "task_1" / "a_0.json", log(1, maker))
    mindcraft.collect(tmp_path / "runs", tmp_path / "made", layout="{experiment}/{model_name}/{task_id}")
    assert mindcraft.load(tmp_path / "made").runs["model_name"].tolist() == ["azure/gpt-4o", "openai/gpt-4o"]
    stated = mindcraft.load(tmp_path / "made", layout="{model_name}/{task_id}").runs
    assert set(stated["model_name"]) == {"e/azure/gpt-4o", "e/openai/gpt-4o"}


def test_a_file_that_was_just_written_is_read_again(tmp_path):
    write(tmp_path / "runs" / "m" / "task_1" / "a_0.json", log(0))
    os.utime(tmp_path / "runs" / "m" / "task_1" / "a_0.json")
    mindcraft.collect(tmp_path / "runs", tmp_path / "made")
    assert mindcraft.collect(tmp_path / "runs", tmp_path / "made").changed == 1


EDITS = {
    "changed": lambda f: write(f / "exp_a_01-01_10-00/multiagent_cooking_0_bread/Agent_0_0.json", log(1, "x"), age=9),
    "mended": lambda f: write(f / "exp_b_01-02_10-00/multiagent_cooking_0_bread/Broken_0_0.json", log(1, "y"), age=9),
    "new": lambda f: experiment(f / "exp_c_01-03_10-00", "third", 2),
    "copied": lambda f: write(
        f / "exp_b_01-02_10-00/multiagent_cooking_1_bread/Agent_9_0.json",
        (f / "exp_a_01-01_10-00/multiagent_cooking_1_bread/Agent_0_0.json").read_text(),
    ),
    "gone": lambda f: shutil.rmtree(f / "exp_a_01-01_10-00" / "multiagent_cooking_1_bread", ignore_errors=True),
    "all of a model gone": lambda f: shutil.rmtree(f / "exp_b_01-02_10-00", ignore_errors=True),
    "model renamed": lambda f: write(f / "exp_a_01-01_10-00/results.txt", "{'model': 'other', 'total': 2}", age=9),
    "model unnamed": lambda f: (f / "exp_a_01-01_10-00" / "results.txt").unlink(missing_ok=True),
    "model named above": lambda f: write(f.parent / "results.txt", "{'model': 'above', 'total': 2}"),
    "empty folder": lambda f: (f / "exp_a_01-01_10-00" / "multiagent_cooking_8_bread").mkdir(exist_ok=True),
    "broken link": lambda f: (
        (lost := f / "exp_a_01-01_10-00/multiagent_cooking_0_bread/Lost_0_0.json").is_symlink()
        or lost.symlink_to(f / "nowhere")
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_after_an_edit_the_dataset_follows(runs, tmp_path, name):
    mindcraft.collect(runs, tmp_path / "made")
    EDITS[name](runs)
    mindcraft.collect(runs, tmp_path / "made")
    assert_same(runs, tmp_path / "made")
    by_model = mindcraft.load(runs).agents.groupby("model_name").size()
    collected = pd.read_parquet(tmp_path / "made" / "logs").groupby("model_name", observed=True).size()
    assert collected.to_dict() == by_model.to_dict()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8, deadline=None)
@given(st.lists(st.lists(st.sampled_from(sorted(EDITS)), max_size=3), max_size=4))
def test_after_any_edits_the_dataset_follows(tmp_path, rounds):
    root = tmp_path / str(random.getrandbits(64))
    experiment(root / "runs" / "exp_a_01-01_10-00", "a", 3)
    experiment(root / "runs" / "exp_b_01-02_10-00", "b", 2)
    for edits in [[], *rounds]:
        for edit in edits:
            with contextlib.suppress(FileNotFoundError):  # an earlier edit has removed what this one needs
                EDITS[edit](root / "runs")
        mindcraft.collect(root / "runs", root / "made")
        assert_same(root / "runs", root / "made")


def test_traces_give_the_same_from_a_dataset(tmp_path):
    make_crafter_traces(tmp_path / "traces")
    crafter.collect(tmp_path / "traces", tmp_path / "made")
    assert_same(tmp_path / "traces", tmp_path / "made", crafter)
    one = sorted(crafter.load(tmp_path / "traces").episodes["model_name"].unique())[0]
    assert_same(tmp_path / "traces", tmp_path / "made", crafter, models=[one])
    assert_same(tmp_path / "traces", tmp_path / "made", crafter, pattern="*1*.json")
    scores = crafter.evaluate_all_traces(tmp_path / "made")
    assert scores == crafter.evaluate_all_traces(tmp_path / "traces")
    assert scores.ledger.entries == crafter.evaluate_all_traces(tmp_path / "traces").ledger.entries
    with pytest.raises(SourceError, match="was collected with"):
        crafter.load(tmp_path / "made", weights={"easy_achievement": 7})


@pytest.mark.parametrize(("pattern", "found"), [("*.json", 3), ("??.json", 1), ("é.json", 1), ("*.j???", 3)])
def test_scores_of_traces_of_any_name_are_the_same_from_a_dataset(tmp_path, pattern, found):
    texts = [path.read_text() for path in sorted((Path(make_crafter.__file__).parent / "crafter").glob("*.json"))]
    for name, text in zip(("\udcff\udcfe.json", "é.json", "a\nb.json"), texts, strict=False):
        write(tmp_path / "traces" / name, text)
    crafter.collect(tmp_path / "traces", tmp_path / "made")
    ours, theirs = (crafter.evaluate_all_traces(tmp_path / name, pattern) for name in ("made", "traces"))
    assert len(theirs) == found
    assert ours == theirs
    assert ours.ledger.entries == theirs.ledger.entries


def make_crafter_traces(folder: Path) -> None:
    """Copy the sample traces, with one broken file and one that is none."""
    shutil.copytree(Path(make_crafter.__file__).parent / "crafter", folder)
    write(folder / "broken.json", '{"event_history": [')
    write(folder / "other.json", "[1]")
    for path in folder.rglob("*"):
        os.utime(path, (OLD,) * 2)


def test_histories_give_the_same_from_a_dataset(tmp_path):
    folder = tmp_path / "steps"
    shutil.copytree(Path(make_crafter.__file__).parent / "steps", folder)
    write(folder / "broken.json", "{")
    for path in folder.rglob("*"):
        os.utime(path, (OLD,) * 2)
    steps.collect(folder, tmp_path / "made")
    assert_same(folder, tmp_path / "made", steps)
    assert steps.load([tmp_path / "made"]).histories == steps.load(folder).histories
    with pytest.raises(SourceError, match="other options"):
        steps.load(tmp_path / "made", steps.Options(text_limit=7))


ROOMS = {"mindcraft": mindcraft, "crafter": crafter, "steps": steps}


@pytest.mark.parametrize("room", ROOMS)
def test_files_of_any_name_stand_in_the_order_of_the_folder(tmp_path, room):
    samples = Path(make_crafter.__file__).parent
    found = [path.read_text() for path in sorted((samples / room).rglob("*.json"))]
    texts = [log(1, name) for name in "abcdef"] if room == "mindcraft" else found
    names = ("b/a\udcff_0_0.json", "b/az_0_0.json", "b-1\udcfe/x\n_0_0.json", "b/%='\"_0_0.json", "b-1/é_0_0.json")
    for name, text in zip(names, texts, strict=False):
        write(tmp_path / "logs" / name, text)
    write(tmp_path / "logs" / "b-1\udcfe" / "results.txt", repr({"model": "named", "total": 1}))
    ROOMS[room].collect(tmp_path / "logs", tmp_path / "made")
    assert_same(tmp_path / "logs", tmp_path / "made", ROOMS[room])
    ROOMS[room].collect(f"{tmp_path}/logs/b*", tmp_path / "of a glob")
    assert_same(f"{tmp_path}/logs/b*", tmp_path / "of a glob", ROOMS[room])
    if room == "mindcraft":
        assert (tmp_path / "made" / "logs" / "model_name=named").is_dir()


@pytest.mark.parametrize("odd", ["[" * 300 + "]" * 300, "[NaN, -Infinity]", "1" * 400, '"\\ud800\\u0000"', "-0.0"])
def test_odd_values_in_histories_come_back_as_they_were(tmp_path, odd):
    record = '{"step": {"function_name": "f", "parameters": {"odd": %s}}, "success": true, "result": "x"}'
    write(tmp_path / "steps" / "a.json", f"[{record % odd}, {record % 'NaN'}]")
    steps.collect(tmp_path / "steps", tmp_path / "made")
    assert_same(tmp_path / "steps", tmp_path / "made", steps)
    expected = steps.load(tmp_path / "steps").histories
    assert len(expected[0].records) == 2
    assert repr(steps.load(tmp_path / "made").histories) == repr(expected)


STOPPED = """
    import sys, os
    from evalkit import mindcraft
    from evalkit.io import collect
    collect.Kind.chunk = 2
    mindcraft.collect(sys.argv[1], sys.argv[2], progress=lambda done, of: print(done, flush=True))
"""


@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_killed_at_any_moment_it_goes_on_from_there(runs, tmp_path, chunks):
    command = [sys.executable, "-c", textwrap.dedent(STOPPED), str(runs), str(tmp_path / "made")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(chunks):
            read = int(process.stdout.readline())
        time.sleep(random.random() * 0.02)
        process.send_signal(signal.SIGKILL)
    done = mindcraft.collect(runs, tmp_path / "made")
    assert done.unchanged >= read
    assert_same(runs, tmp_path / "made")
    listed = {part.file for part in dataset.open_dataset(tmp_path / "made", "mindcraft", {}).parts}
    there = {path.relative_to(tmp_path / "made").as_posix() for path in (tmp_path / "made").rglob("*.parquet")}
    assert there == listed


WITH_WORKERS = """
    import os, sys, time
    from evalkit import mindcraft
    from evalkit.io import collect
    from evalkit.mindcraft import collecting
    here = os.getpid()
    def slow(*given):
        if os.getpid() != here:
            print("worker", os.getpid(), flush=True)
        time.sleep(0.05)
        return collecting.parse_file(*given)
    collecting._MindcraftLogs.parse = staticmethod(slow)
    collect.Kind.chunk, collect.Kind.serial_below = 8, 2
    mindcraft.collect(sys.argv[1], sys.argv[2], jobs=2, progress=lambda done, of: print(done, flush=True))
"""


def _runs(process):
    try:
        return Path("/proc", process, "cmdline").read_bytes() != b""  # empty once it has ended and nobody took note
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_a_parent_that_is_killed(runs, tmp_path, kill):
    command = [sys.executable, "-c", textwrap.dedent(WITH_WORKERS), str(runs), str(tmp_path / "made")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.stdout.readline().startswith("worker"):
            pass  # until a chunk is written
        _, worker = process.stdout.readline().split()
        process.send_signal(kill)
        process.wait(10)
        with output.locked(str(tmp_path / "made")):  # the worker does not hold it, whether it has ended or not
            pass
        process.communicate(timeout=5)  # nobody holds the pipe any more
    assert not _runs(worker)
    mindcraft.collect(runs, tmp_path / "made", jobs=2)
    assert_same(runs, tmp_path / "made")


def test_whatever_is_no_part_is_never_removed(runs, tmp_path):
    made, other = tmp_path / "made", tmp_path / "other"
    mindcraft.collect(runs, made)
    mindcraft.collect(runs, other)
    (made / "logs" / "model_name=linked").symlink_to(other / "logs" / "model_name=ft%3Agpt%3Ax")
    (made / "files" / "000001.parquet").symlink_to(next((other / "files").iterdir()))
    kept = [made / "mine.parquet", made / "logs" / "x.parquet", made / "mine" / "000001.parquet"]
    kept += [made / "copy" / "logs" / "000001.parquet"]
    for path in kept:
        write(path, "my only copy")
    kept += list(other.rglob("*.parquet"))
    former, aside = made / "logs" / "model_name=a" / "999999.parquet", made / "logs" / ".evalkit-0.parquet"
    write(former, "left by an edit that was stopped")
    write(aside, "half a part")
    for run in ("exp_c_01-03_10-00", None):
        experiment(runs / run, "third", 2) if run else None
        mindcraft.collect(runs, made)
        assert [path for path in kept if not path.exists()] == []
        assert not former.exists()
        assert not aside.exists()
    assert_same(runs, made)


def test_what_a_full_disk_has_left_goes_before_anything_is_written(runs, tmp_path, monkeypatch):
    mindcraft.collect(runs, tmp_path / "made")
    left = tmp_path / "made" / "logs" / "model_name=a" / "999999.parquet"
    write(left, "of an edit that found no room")
    written = dataset.write_bytes
    monkeypatch.setattr(dataset, "write_bytes", lambda *to: pytest.fail("no room") if left.exists() else written(*to))
    EDITS["new"](runs)
    mindcraft.collect(runs, tmp_path / "made")
    assert_same(runs, tmp_path / "made")


def test_a_folder_that_holds_parquet_files_is_no_place_for_a_dataset(runs, tmp_path):
    write(tmp_path / "made" / "logs" / "000001.parquet", "my only copy")
    with pytest.raises(SourceError, match="holds other files than a dataset, such as 000001"):
        mindcraft.collect(runs, tmp_path / "made")
    assert (tmp_path / "made" / "logs" / "000001.parquet").read_text() == "my only copy"


def test_a_dataset_keeps_its_parts_however_its_url_is_written(runs):
    for url in ("memory:///made", "memory://made//twice", "memory://made/slash/"):
        mindcraft.collect(runs, url)
        assert_same(runs, url)


EDITED = {
    "above": lambda about: about["parts"][0].__setitem__(2, "../000001.parquet"),
    "absolute": lambda about: about["parts"][0].__setitem__(2, "/etc/passwd"),
    "elsewhere": lambda about: about["parts"][0].__setitem__(0, "logs"),
    "no name": lambda about: about["parts"][0].__setitem__(2, 5),
    "cut": lambda about: about["parts"][0].pop(),
    "without a word": lambda about: about.pop("sources"),
    "number": lambda about: about.__setitem__("number", "x"),
}


@pytest.mark.parametrize("name", EDITED)
def test_a_list_that_no_dataset_would_say_is_refused(runs, tmp_path, name):
    mindcraft.collect(runs, tmp_path / "made")
    about = json.loads((tmp_path / "made" / dataset.MANIFEST).read_text())
    EDITED[name](about)
    (tmp_path / "made" / dataset.MANIFEST).write_text(json.dumps(about))
    for use in (mindcraft.load, lambda made: mindcraft.collect(runs, made)):
        with pytest.raises(SourceError, match="no list of a dataset"):
            use(tmp_path / "made")


def test_a_list_that_may_not_be_read_is_not_taken_for_none(runs, tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    mindcraft.collect(runs, tmp_path / "made")
    monkeypatch.setattr("evalkit.io.manifest.read_file", refuse)
    with pytest.raises(SourceError, match="made: Permission denied"):
        mindcraft.load(tmp_path / "made")


def test_a_low_number_in_the_list_overwrites_no_part(runs, tmp_path):
    mindcraft.collect(runs, tmp_path / "made")
    about = json.loads((tmp_path / "made" / dataset.MANIFEST).read_text())
    (tmp_path / "made" / dataset.MANIFEST).write_text(json.dumps(about | {"number": 0}))
    EDITS["new"](runs)
    mindcraft.collect(runs, tmp_path / "made")
    assert_same(runs, tmp_path / "made")


@pytest.mark.filterwarnings("ignore:.*collected by another evalkit")
def test_where_all_logs_are_gone_another_version_keeps_the_dataset_too(runs, tmp_path, monkeypatch):
    mindcraft.collect(runs, tmp_path / "made")
    shutil.rmtree(runs)
    runs.mkdir()
    monkeypatch.setattr(versions, "code_version", lambda *_: "another")
    with pytest.raises(SourceError, match="is there any more"):
        mindcraft.collect(runs, tmp_path / "made")
    assert len(mindcraft.load(tmp_path / "made").runs)


def test_an_unfinished_dataset_says_so(runs, tmp_path):
    def stop(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mindcraft.collect(runs, tmp_path / "made", progress=stop)
    with pytest.warns(UserWarning, match="was stopped"):
        assert len(mindcraft.load(tmp_path / "made").ledger) == 3


def test_a_dataset_of_another_evalkit_says_so(runs, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(versions, "code_version", lambda *_: "0.0.1+abc")
        mindcraft.collect(runs, tmp_path / "made")
    with pytest.warns(UserWarning, match=r"another evalkit \(0.0.1\+abc\)"):
        assert len(mindcraft.load(tmp_path / "made").ledger)


def test_models_swap_their_names(runs, tmp_path):
    a, b = (runs / name / "results.txt" for name in ("exp_a_01-01_10-00", "exp_b_01-02_10-00"))
    mindcraft.collect(runs, tmp_path / "made")
    first, second = a.read_text(), b.read_text()
    write(a, second, age=9)
    write(b, first, age=9)
    mindcraft.collect(runs, tmp_path / "made")
    assert_same(runs, tmp_path / "made")
    logs = pd.read_parquet(tmp_path / "made" / "logs")
    assert logs.groupby("model_name", observed=True).size().to_dict() == {"ft:gpt:x": 9, "org/model-7b": 7}


def test_many_small_additions_leave_few_parts(tmp_path):
    for n in range(20):
        write(tmp_path / "runs" / "m" / f"task_{n}" / "a_0.json", log(n % 2, str(n)))
        mindcraft.collect(tmp_path / "runs", tmp_path / "made")
    assert len(list((tmp_path / "made" / "logs").rglob("*.parquet"))) <= 6
    assert_same(tmp_path / "runs", tmp_path / "made")


REFUSED = {
    "no such file or folder": lambda runs, out: mindcraft.collect(runs / "nowhere", out),
    "can't lie in its own source": lambda runs, out: mindcraft.collect(runs, runs / "made"),
    "holds other files": lambda runs, out: mindcraft.collect(runs, runs.parent / "other"),
    "is a file, not a folder": lambda runs, out: mindcraft.collect(runs, runs.parent / "other" / "thesis.txt"),
    r"zip://a\.zip: a dataset can't be written into an archive": lambda runs, out: mindcraft.collect(
        runs, "zip://a.zip"
    ),
    "can't be written into an archive; name a folder": lambda runs, out: mindcraft.collect(runs, "tar://ds::mc.tar"),
    "was also collected from": lambda runs, out: mindcraft.collect(runs / "exp_a_01-01_10-00", out),
    "was collected with": lambda runs, out: mindcraft.collect(runs, out, layout="{model_name}/{task_id}"),
    "a dataset of mindcraft logs, not of crafter logs": lambda runs, out: crafter.collect(runs, out),
    "not of crafter": lambda runs, out: crafter.load(out),
    "is there any more": lambda runs, out: (shutil.rmtree(runs), runs.mkdir(), mindcraft.collect(runs, out)),
    "no path was given": lambda runs, out: mindcraft.collect([], out),
    "path is empty": lambda runs, out: mindcraft.collect("", out),
    "'': no name for a dataset": lambda runs, out: mindcraft.collect(runs, ""),
    "samples:x: no name": lambda runs, out: mindcraft.collect(runs, "samples:x"),
    r"memory://\*: no name": lambda runs, out: mindcraft.collect(runs, "memory://*"),
    "linked: a dataset can't lie": lambda runs, out: (
        (runs.parent / "link").symlink_to(runs) or mindcraft.collect(runs, runs.parent / "link" / "linked")
    ),
    "url: a dataset can't lie": lambda runs, out: mindcraft.collect(runs, f"file://{runs}/url"),
    "is a dataset itself": lambda runs, out: mindcraft.collect([runs, out], runs.parent / "new"),
    "not beside other sources": lambda runs, out: mindcraft.load([runs, out]),
    "no list of a dataset": lambda runs, out: (out / dataset.MANIFEST).write_text("{") and mindcraft.load(out),
    "of another layout": lambda runs, out: (
        (out / dataset.MANIFEST).write_text('{"layout": 99}') and mindcraft.load(out)
    ),
    "remove the dataset and collect it again": lambda runs, out: (
        [path.write_bytes(b"PAR1") for path in (out / "logs").rglob("*.parquet")] and mindcraft.load(out)
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_can_not_be_is_refused_in_plain_words(runs, tmp_path, message):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("my only copy")
    mindcraft.collect(runs, tmp_path / "made")
    before = set(tmp_path.rglob("*"))
    with pytest.raises(SourceError, match=message):
        REFUSED[message](runs, tmp_path / "made")
    assert (tmp_path / "other" / "thesis.txt").read_text() == "my only copy"
    assert set(tmp_path.rglob("*")) - before <= {tmp_path / "link"}  # nothing is left behind


def test_a_lock_file_of_somebody_else_is_not_emptied(runs, tmp_path):
    write(tmp_path / "made" / ".lock", "mine")
    mindcraft.collect(runs, tmp_path / "made")
    assert (tmp_path / "made" / ".lock").read_text() == "mine"


def test_two_at_once_are_refused(runs, tmp_path):
    with output.locked(str(tmp_path / "made")), pytest.raises(SourceError, match="another process"):
        mindcraft.collect(runs, tmp_path / "made")


def test_sources_may_be_added(runs, tmp_path):
    a, b = (runs / name for name in ("exp_a_01-01_10-00", "exp_b_01-02_10-00"))
    mindcraft.collect(a, tmp_path / "made")
    done = mindcraft.collect([a, b], tmp_path / "made")
    assert done.vanished == 0
    assert_same([a, b], tmp_path / "made")


def test_a_file_beside_the_source_counts_once_its_folder_is_added(runs, tmp_path):
    experiment = runs / "exp_a_01-01_10-00"
    task = experiment / "multiagent_cooking_1_bread"
    mindcraft.collect(task, tmp_path / "made")
    assert_same(task, tmp_path / "made")
    mindcraft.collect([task, experiment], tmp_path / "made")
    assert_same([task, experiment], tmp_path / "made")


def test_a_folder_that_can_not_be_listed_keeps_its_files(runs, tmp_path, monkeypatch):
    mindcraft.collect(runs, tmp_path / "made")
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("multiagent_cooking_1_bread"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        assert mindcraft.collect(runs, tmp_path / "made").vanished == 0
    assert mindcraft.collect(runs, tmp_path / "made").vanished == 2  # the folders, as files that could not be read
    assert_same(runs, tmp_path / "made")
