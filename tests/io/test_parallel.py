"""Many processes give what one gives: in order, nothing lost, also where a process dies."""

import multiprocessing
import os
import sys
import threading
import warnings
from functools import partial
from pathlib import Path

import joblib
import pandas as pd
import pytest

from evalkit.io import SourceError, parallel, parse_files
from evalkit.io.parallel import cluster
from evalkit.mindcraft import load
from evalkit.steps import load as load_steps

sys.path.append(str(Path(__file__).parent))  # where processes that are not forked find it too, by this name
from probes import die_elsewhere, size, sleep_elsewhere, which_process

CORES = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


@pytest.fixture
def paths(tmp_path):
    for i in range(50):
        (tmp_path / f"{i:03}.json").write_text("x" * i)
    return [str(tmp_path / f"{i:03}.json") for i in range(50)] + [str(tmp_path / "gone.json")]


EXPECTED = [(f"{i:03}.json", i) for i in range(50)] + [("gone.json", "FileNotFoundError")]


@CORES
@pytest.mark.parametrize("jobs", [None, 1, 2, 3, -1])
def test_results_come_in_the_order_of_the_paths(paths, jobs):
    assert list(parse_files(paths, size, jobs, serial_below=2)) == EXPECTED


@CORES
def test_few_files_are_read_in_this_process_and_many_in_others(paths):
    here = os.getpid()
    assert set(parse_files(paths, which_process, 2)) == {here}
    assert len(set(parse_files(paths, which_process, 2, serial_below=2))) == 2
    assert set(parse_files(paths, which_process, serial_below=2)) == {here}


@CORES
def test_a_thread_that_may_not_fork_starts_processes_of_its_own(paths):
    found = []
    thread = threading.Thread(target=lambda: found.extend(parse_files(paths, size, 2, serial_below=2)))
    thread.start()
    thread.join()
    assert found == EXPECTED


@pytest.mark.parametrize("backend", ["threading", "sequential", "loky"])
def test_a_backend_that_was_chosen_around_it_is_used(paths, backend):
    with joblib.parallel_config(backend, n_jobs=2):
        assert list(parse_files(paths, size, serial_below=2)) == EXPECTED


@CORES
def test_a_process_that_is_killed_loses_nothing(paths):
    parse = partial(die_elsewhere, home=os.getpid(), victim="003.json")
    with pytest.warns(UserWarning, match="a process died"):
        assert list(parse_files(paths, parse, 2, serial_below=2)) == EXPECTED


@CORES
def test_a_process_that_never_answers_is_ended_and_loses_nothing(paths, monkeypatch):
    monkeypatch.setattr(parallel, "PATIENCE", 0.5)
    parse, before = partial(sleep_elsewhere, home=os.getpid()), set(multiprocessing.active_children())
    with pytest.warns(UserWarning, match="a process died \\(TimeoutError\\)"):
        assert list(parse_files(paths, parse, 2, serial_below=2)) == EXPECTED
    for process in (left := set(multiprocessing.active_children()) - before):
        process.join(10)
    assert not [process for process in left if process.is_alive()]


@CORES
def test_the_frames_are_those_of_one_process(monkeypatch):
    monkeypatch.setattr(parallel, "SERIAL_BELOW", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, two = (load("samples:mindcraft/runs", "samples:mindcraft/tasks", jobs=jobs) for jobs in (1, 2))
        assert load_steps("samples:steps", jobs=2).ledger.equals(load_steps("samples:steps").ledger)
    for name in ("runs", "agents", "ledger"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(two, name))


@pytest.fixture(scope="module")
def scheduler():
    """Start a Dask cluster of two processes, and return its scheduler's address."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as local:
        yield local.scheduler_address


def test_a_cluster_gives_the_frames_of_one_process(scheduler, monkeypatch):
    monkeypatch.setattr(parallel, "SERIAL_BELOW", 2)
    one = load("samples:mindcraft/runs", "samples:mindcraft/tasks")
    with cluster(scheduler):
        assert os.getpid() not in set(parse_files([__file__] * 10, which_process))
        many = load("samples:mindcraft/runs", "samples:mindcraft/tasks")
    for name in ("runs", "agents", "ledger"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(many, name))


def test_a_worker_of_a_cluster_that_is_killed_loses_nothing(scheduler, paths):
    parse = partial(die_elsewhere, home=os.getpid(), victim="020.json")
    with cluster(scheduler):
        assert list(parse_files(paths, parse, serial_below=2)) == EXPECTED
    assert Path(f"{paths[20]}.killed").exists()


def test_a_scheduler_that_does_not_answer_is_one_clear_error(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(parallel, "CONNECT", 1.0)
    with (
        pytest.raises(SourceError, match=r"tcp://127.0.0.1:9: no Dask scheduler answers"),
        cluster("tcp://127.0.0.1:9"),
    ):
        pass


def test_a_cluster_without_this_version_is_refused(scheduler, monkeypatch):
    monkeypatch.setattr(parallel, "__version__", "9.9")
    with pytest.raises(SourceError, match=r"has no evalkit 9\.9"), cluster(scheduler):
        pass
