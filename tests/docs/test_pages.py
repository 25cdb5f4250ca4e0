"""Every code block of the READMEs and of docs/ runs, on sample data under the names that the pages use."""

import contextlib
import json
import shutil
from pathlib import Path
from unittest import mock

import fsspec
import pytest
import yaml

from evalkit.crafter.format import ACHIEVEMENTS
from evalkit.io import resolve
from evalkit.steps.judge import EVALUATORS
from tests.docs.blocks import LANGUAGES, ROOT, Block, blocks, commands, pages, run_command, run_python

MAKES_REPORTS = ROOT / "docs/tutorials/crafter.md"  # the only page whose reports are made, and not only planned
STATE_OF_STEPS = """
    state = {"execution_plan": {"steps": []}, "current_step_index": 0, "execution_history": []}
    step, result, e = {"function_name": "process_cells", "parameters": {}}, {"T cell": {}}, ValueError("x")
"""
# what a page takes as given, before its first block
SETUP = {
    "README.md": STATE_OF_STEPS,
    "docs/steps.md": STATE_OF_STEPS,
    "examples/crafter_recorder/README.md": 'agent = lambda image: ["noop"] * 500',
    "docs/crafter.md": """
        env = type("Env", (), {"step": lambda self, action: None})()
        observe, turn, metadata = lambda env: STATE, ["noop", "do"], []
    """,
    "docs/figures.md": """
        import evalkit
        from evalkit import mindcraft
        success = mindcraft.analysis.success_by(mindcraft.load("path/to/experiments").runs, ["task_type", "model_name"])
    """,
}


@pytest.fixture(scope="module")
def sample_files(tmp_path_factory) -> Path:
    """A folder in which the names that pages use stand for sample data."""
    folder = tmp_path_factory.mktemp("pages")
    crafter, steps = Path(resolve("samples:crafter")), Path(resolve("samples:steps"))
    trace = sorted(crafter.glob("*.json"))[0]
    for name, source in {
        "path/to/experiments": Path(resolve("samples:mindcraft/runs")),
        "path/to/tasks": Path(resolve("samples:mindcraft/tasks")),
        "path/to/job": Path(resolve("samples:trajectories/harbor")),
        "path/to/traces": crafter, "TRACES": crafter, "path/to/histories": steps, "HISTORIES": steps,
        "LOGS": Path(resolve("samples:trajectories/harbor")),
    }.items():  # fmt: skip
        shutil.copytree(source, folder / name)
    for name in ("path/to/traces/session.json", "session.json", "TRACE.json"):
        shutil.copy(trace, folder / name)
    shutil.copy(steps / "typed.json", folder / "execution_history.json")
    shutil.copy(resolve("samples:trajectories/table/runs.csv"), folder / "runs.csv")
    names = [f"achievement_{name}" for name in ACHIEVEMENTS]
    lines = [json.dumps({"length": 10, "reward": 1.0, **dict.fromkeys(names, n % 2)}) for n in range(4)]
    (folder / "stats.jsonl").write_text("\n".join(lines))
    (folder / "options.json").write_text("{}")
    for name in ("RUNS", "TASKS"):
        (folder / name).symlink_to(folder / "path/to" / {"RUNS": "experiments", "TASKS": "tasks"}[name])
    return folder


@pytest.fixture
def place(sample_files, tmp_path, monkeypatch):
    """The folder in which a page's blocks run; nothing leaves the machine, and no notebook is executed."""
    shutil.copytree(sample_files, tmp_path / "here", symlinks=True)
    monkeypatch.chdir(tmp_path / "here")
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path / "here/path/to/experiments"), "/bucket/prefix", recursive=True)
    with (
        mock.patch("dask.distributed.Client", return_value=contextlib.nullcontext()),
        mock.patch("joblib.parallel_config", return_value=contextlib.nullcontext()),
        mock.patch("evalkit.cli.lab.subprocess.call", return_value=0),
        mock.patch("evalkit.cli.kinds.show_live", lambda look, *_, **__: look()),
    ):
        yield tmp_path / "here"
    memory.rm("/bucket", recursive=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_code_block_of_a_page_runs(path, place):
    names: dict = {"__name__": "__main__", "STATE": {}}
    setup = "\n".join(line.strip() for line in SETUP.get(str(path.relative_to(ROOT)), "").splitlines())
    exec(setup, names)
    doors = ("evalkit.cli.reports.run", "evalkit.reports.batch.run") if path != MAKES_REPORTS else ()
    with contextlib.ExitStack() as patches:
        for door in doors:
            patches.enter_context(mock.patch(door, _planned))
        # what is in memory is also in a forked process, whatever threads other tests have left
        patches.enter_context(mock.patch("evalkit.reports.planning.start_method", return_value="fork"))
        patches.enter_context(mock.patch.dict(EVALUATORS))  # a page registers one of its own
        for block in blocks(path):
            where = f"{path.name}:{block.line}"
            bucket = block.text.replace("s3://bucket/prefix", "memory://bucket/prefix")  # instead of one in the network
            try:
                run(block._replace(text=bucket), names, where)
            except Exception as error:
                raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error


def run(block: Block, names: dict, where: str) -> None:
    assert block.language in LANGUAGES, where
    if block.language == "python":
        run_python(block, names, where)
    elif block.language == "sh":
        for line in commands(block.text):
            run_command(line)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language == "yaml":
        yaml.safe_load(block.text)


def _planned(reports, **options):
    """Take a batch that was planned and checked as made: that notebooks run is shown elsewhere."""
    from evalkit.reports import Summary

    return Summary([report.key for report in reports], [], [], False, Path("index.html"), Path("manifest.json"))
