"""Many processes give what one gives: in order, nothing lost, also where a process dies."""

import os
import sys
import threading
import warnings
from functools import partial
from itertools import chain

import joblib
import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit import crafter, mindcraft
from evalkit.cli import main
from evalkit.io import read, read_files
from evalkit.io.paths import storage_options
from evalkit.kinds import pipeline
from tests.io.probes import die_elsewhere, size, which_process

CORES = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


@pytest.fixture
def paths(tmp_path):
    for i in range(50):
        (tmp_path / f"{i:03}.json").write_text("x" * i)
    return [str(tmp_path / f"{i:03}.json") for i in range(50)] + [str(tmp_path / "gone.json")]


def results(paths, parse):
    """Parse some files; a function of a module, which other processes can import."""
    return [parse(path, data) for path, data in read_files(paths)]


def parse_files(paths, parse, jobs=None):
    """Parse files in several processes, one result for each."""
    return chain.from_iterable(read.in_chunks(partial(results, parse=parse), paths, 10**9, jobs))


EXPECTED = [(f"{i:03}.json", i) for i in range(50)] + [("gone.json", "FileNotFoundError")]


@CORES
@pytest.mark.parametrize("jobs", [None, 1, 2, 3, -1])
def test_results_come_in_the_order_of_the_paths(paths, jobs):
    assert list(parse_files(paths, size, jobs)) == EXPECTED


@CORES
def test_few_files_are_read_in_this_process_and_many_in_others(paths):
    here = os.getpid()
    few = read.in_chunks(partial(results, parse=which_process), paths, 10, 2)
    assert set(chain.from_iterable(few)) == {here}
    assert len(set(parse_files(paths, which_process, 2))) == 2
    assert len(set(parse_files(paths, which_process))) > 1
    assert set(parse_files(paths, which_process, 1)) == {here}


@CORES
def test_a_thread_that_may_not_fork_starts_processes_of_its_own(paths):
    found = []
    thread = threading.Thread(target=lambda: found.extend(parse_files(paths, size, 2)))
    thread.start()
    thread.join()
    assert found == EXPECTED


@pytest.mark.parametrize("backend", ["threading", "sequential", "loky"])
def test_a_backend_that_was_chosen_around_it_is_used(paths, backend):
    with joblib.parallel_config(backend, n_jobs=2):
        assert list(parse_files(paths, size)) == EXPECTED


KINDS = {  # what makes frames of the samples
    "mindcraft": lambda **how: mindcraft.load("samples:mindcraft/runs", "samples:mindcraft/tasks", **how),
    "crafter": lambda **how: crafter.load("samples:crafter", **how),
}


def assert_same_frames(some, others):
    for one, other in zip(some, others, strict=True):
        assert len(one) > 1
        pd.testing.assert_frame_equal(one, other)


def lower_limit(monkeypatch):
    """Let a few files be many enough for several processes, whatever their kind says."""

    monkeypatch.setattr(read, "SERIAL_FILES", 2)


@pytest.fixture(params=KINDS)
def load(request, monkeypatch):
    """Give a function that reads the samples of a kind, which are many here."""
    lower_limit(monkeypatch)
    return KINDS[request.param]


def kill_at_the_second_file(monkeypatch, mark):
    """Have the first process but this one that comes to the second file killed."""

    def chunks(work, paths, size, jobs):
        parse, *others = work.args
        killing = partial(die_elsewhere, home=os.getpid(), victim=paths[1], mark=str(mark), then=parse)
        return read.in_chunks(partial(work.func, killing, *others), paths, size, jobs)

    monkeypatch.setattr(pipeline, "in_chunks", chunks)


@CORES
def test_two_processes_give_the_frames_of_one(load):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="other processes failed")
        assert_same_frames(load(), load(jobs=2))


@CORES
def test_a_process_that_is_killed_loses_nothing(load, monkeypatch, tmp_path):
    expected = load()
    kill_at_the_second_file(monkeypatch, tmp_path / "killed")
    with pytest.warns(UserWarning, match=r"other processes failed \(BrokenProcessPool\)"):
        assert_same_frames(expected, load(jobs=2))
    assert (tmp_path / "killed").exists()


@pytest.fixture(scope="module")
def local_cluster():
    """Start a Dask cluster of two processes."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, silence_logs=50) as local:
        yield local


def test_a_cluster_reads_in_its_own_processes_and_in_order(local_cluster, paths):
    local_cluster.wait_for_workers(2, timeout=60)
    with local_cluster.get_client(), joblib.parallel_config("dask"):
        found = set(parse_files(paths, which_process))
        assert list(parse_files(paths, size)) == EXPECTED
    assert len(found) == 2
    assert os.getpid() not in found


@pytest.mark.parametrize("content", ["[1]", "{", None])
def test_storage_options_that_can_not_be_read_are_one_line_and_not_repeated(tmp_path, content):
    path = tmp_path / "secret.json"
    if content is not None:
        path.write_text(content)
    found = CliRunner().invoke(main, ["crafter", "samples:crafter", "--storage-options", str(path)])
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.startswith(f"evalkit: {path}: ")
    assert found.stderr.count("\n") == 1


def test_storage_options_of_a_file_reach_the_file_system(tmp_path, monkeypatch):
    options = tmp_path / "options.json"
    options.write_text('{"key": "abc"}')
    seen = []
    real = pipeline.list_source
    monkeypatch.setattr(pipeline, "list_source", lambda *a, **b: seen.append(dict(storage_options())) or real(*a, **b))
    assert CliRunner().invoke(main, ["crafter", "samples:crafter", "--storage-options", str(options)]).exit_code == 0
    assert {"key": "abc"} in seen
