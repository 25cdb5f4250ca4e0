"""Many processes give what one gives: in order, nothing lost, also where a process dies."""

import os
import sys
import threading
import warnings
from functools import partial
from itertools import chain

import joblib
import pytest

import evalkit
from evalkit.io import read
from evalkit.kinds import reading
from tests.io.probes import die_elsewhere, results, size, which_process, which_thread
from tests.kinds.toy import assert_same_frames

CORES = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
EXPECTED = [(f"{i:03}.json", i) for i in range(50)] + [("gone.json", "FileNotFoundError")]


@pytest.fixture
def paths(tmp_path):
    for i in range(50):
        (tmp_path / f"{i:03}.json").write_text("x" * i)
    return [str(tmp_path / name) for name, _ in EXPECTED]


def parse_files(paths, parse, jobs=None, size=10**9):
    """Parse files in several processes, one result for each."""
    return list(chain.from_iterable(read.in_chunks(partial(results, parse=parse), paths, size, jobs)))


@CORES
@pytest.mark.parametrize("jobs", [None, 1, 2, 3, -1])
def test_results_come_in_the_order_of_the_paths(paths, jobs):
    assert parse_files(paths, size, jobs) == EXPECTED


@CORES
def test_few_files_are_read_in_this_process_and_many_in_others(paths):
    here = os.getpid()
    assert set(parse_files(paths, which_process, 2, size=10)) == {here}
    assert set(parse_files(paths, which_process, 1)) == {here}
    # how many of the processes get work is for the scheduler to decide
    assert here not in parse_files(paths, which_process, 2)
    assert here not in parse_files(paths, which_process)


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
        assert parse_files(paths, size) == EXPECTED


def test_a_cluster_reads_in_its_own_threads_and_in_order(paths):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(2, processes=False, dashboard_address=None, silence_logs=50) as cluster,
        cluster.get_client(),
        joblib.parallel_config("dask"),
    ):
        assert all("Dask" in name for name in parse_files(paths, which_thread))
        assert parse_files(paths, size) == EXPECTED


@CORES
@pytest.mark.parametrize("kind", ["mindcraft", "crafter", "steps", "trajectories"])
def test_two_processes_give_the_frames_of_one(kind, monkeypatch):
    monkeypatch.setattr(read, "SERIAL_FILES", 2)  # the samples are many enough for several processes
    load = partial(evalkit.load, f"samples:{kind}", kind)
    expected = load(jobs=1)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="worker processes failed")
        assert_same_frames(expected, load(jobs=2))


@CORES
def test_two_processes_of_which_one_is_killed_give_the_frames_of_one(monkeypatch, tmp_path):
    monkeypatch.setattr(read, "SERIAL_FILES", 2)
    load = partial(evalkit.load, "samples:steps", "steps")
    expected = load(jobs=1)

    def chunks(work, paths, size, jobs):
        """Have the first process but this one that comes to the second file killed."""
        functions, *others = work.args
        mark, then = f"{tmp_path}/killed", functions.parse
        killing = partial(die_elsewhere, home=os.getpid(), victim=paths[1], mark=mark, then=then)
        return read.in_chunks(partial(work.func, functions._replace(parse=killing), *others), paths, size, jobs)

    monkeypatch.setattr(reading, "in_chunks", chunks)
    with pytest.warns(UserWarning, match=r"worker processes failed \(BrokenProcessPool\)"):
        assert_same_frames(expected, load(jobs=2))
    assert (tmp_path / "killed").exists()
