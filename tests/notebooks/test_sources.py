"""Every notebook takes a dataset, and a bucket, where it takes a folder."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from evalkit.io import own_sources, resolve
from evalkit.kinds import collect, kind_named
from evalkit.reports import plan, run

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
TASKS = resolve("samples:mindcraft/tasks")  # by its path: the name of sample data is left out beside other data
# notebook: what is collected, its samples, the parameter that names them, and the others
CASES = {
    "model_overview": ("mindcraft", "mindcraft/runs", "runs", {"tasks": TASKS}),
    "model_comparison": ("mindcraft", "mindcraft/runs", "runs", {"tasks": TASKS}),
    "cooking_blocked_agents": ("mindcraft", "mindcraft/runs", "runs", {"tasks": TASKS}),
    "crafter_scores": ("crafter", "crafter", "traces", {}),
    "step_evaluation": ("steps", "steps/typed.json", "history", {}),
    "leaderboard": ("mindcraft", "mindcraft/runs", "source", {}),
}


def tables_of(notebook: str, output: Path, **parameters) -> dict[str, pd.DataFrame]:
    """Make one report, and read the tables it leaves."""
    report = plan([str(NOTEBOOKS / f"{notebook}.ipynb")], values=parameters)
    assert run(report, output=output, jobs=1, say=lambda line: None).failed == []
    return {path.name.rpartition(".")[0].rpartition(".")[2]: pd.read_csv(path) for path in output.rglob("*.csv")}


def test_all_notebooks_are_here():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(CASES)


@pytest.mark.parametrize("notebook", CASES)
def test_a_notebook_says_the_same_of_a_dataset(notebook, tmp_path):
    kind, samples, name, others = CASES[notebook]
    folder = resolve(f"samples:{samples}")
    collect(kind_named(kind), folder, tmp_path / "made")
    expected = tables_of(notebook, tmp_path / "a", **{name: folder}, **others)
    found = tables_of(notebook, tmp_path / "b", **{name: str(tmp_path / "made")}, **others)
    assert len(expected) >= 1
    assert expected.keys() == found.keys()
    for table in expected:
        pd.testing.assert_frame_equal(expected[table], found[table], obj=table)


def test_the_overview_says_the_same_of_a_bucket(tmp_path, monkeypatch):
    moto = pytest.importorskip("moto.moto_server.threaded_moto_server")
    pytest.importorskip("s3fs")
    from moto.s3.models import s3_backends

    folder = Path(resolve("samples:mindcraft/runs"))
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-to-be-shown")
        backend = s3_backends["123456789012"]["aws"]
        backend.create_bucket("overview", "us-east-1")
        for path in filter(Path.is_file, folder.rglob("*")):
            backend.put_object("overview", f"runs/{path.relative_to(folder).as_posix()}", path.read_bytes())
        shutil.copytree(folder, tmp_path / "runs")
        expected = tables_of("model_overview", tmp_path / "a", runs=str(tmp_path / "runs"), tasks=TASKS)
        found = tables_of("model_overview", tmp_path / "b", runs="s3://overview/runs", tasks=TASKS)
    finally:
        server.stop()
    for table in expected:
        pd.testing.assert_frame_equal(without_place(expected[table]), without_place(found[table]), obj=table)


def without_place(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out where the files lay; a ledger is sorted by that."""
    rest = table.drop(columns=["source", "run_id"], errors="ignore")
    return rest.sort_values(list(rest), ignore_index=True) if "reason" in rest else rest


@pytest.mark.parametrize(
    ("sources", "own"),
    [
        (("samples:a", "samples:b"), ("samples:a", "samples:b")),
        (("samples:a", ""), ("samples:a", "")),
        (("mine", "samples:b"), ("mine", "")),
        (("samples:a", "mine"), ("", "mine")),
        (("mine", "yours"), ("mine", "yours")),
        (("mine", ["samples:b", "samples:c"]), ("mine", [])),
        (("samples:a", ["samples:b", "mine"]), ("", [])),
        (("", ""), ("", "")),
    ],
)
def test_sample_data_is_left_out_beside_data_of_ones_own(sources, own):
    assert own_sources(*sources) == own
