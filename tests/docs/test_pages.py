"""Every code block of the READMEs and of docs/ runs, on sample data under the names that the pages use.

Python is run line by line, commands of evalkit in this process; other programs are left out. A ``text`` block directly
after an ``sh`` block with one command of evalkit is the output of that command: ``...`` matches any text, and white
space is compared as in a doctest. With WRITE_OUTPUTS=1 in the environment, outputs that differ are written into pages.
"""

import contextlib
import doctest
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import fsspec
import pytest
import yaml
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.compare.check_registry import CHECKS
from evalkit.crafter.format import ACHIEVEMENTS
from evalkit.failures import search
from evalkit.io import resolve
from evalkit.reports import Summary
from evalkit.steps.judge import EVALUATORS
from tests.undrawn import undrawn

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
FENCE = re.compile(r"(?ms)^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$")
BUCKET = "s3://bucket/prefix"
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
    here = tmp_path / "here"
    (here / "path/to").mkdir(parents=True)
    for source in (*sample_files.glob("*"), *sample_files.glob("path/to/*")):
        target = here / source.relative_to(sample_files)
        if source.is_file():  # a page may write it
            shutil.copy(source, target)
        elif source.name != "path":  # logs, which pages only read
            target.symlink_to(source)
    monkeypatch.chdir(here)
    with (
        mock.patch("dask.distributed.Client", return_value=contextlib.nullcontext()),
        mock.patch("joblib.parallel_config", return_value=contextlib.nullcontext()),
        mock.patch("evalkit.cli.reports.subprocess.call", return_value=0),
        mock.patch("evalkit.cli.kinds.show_live", lambda look, *_, **__: look()),
    ):
        yield here


@contextlib.contextmanager
def bucket(runs: Path) -> Iterator[None]:
    """Keep runs in memory, as those of the bucket that pages name."""
    memory = fsspec.filesystem("memory")
    memory.put(str(runs), "/bucket/prefix", recursive=True)
    yield
    memory.rm("/bucket", recursive=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_code_block_of_a_page_runs(path, place):
    names: dict = {"__name__": "__main__", "STATE": {}}
    setup = "\n".join(line.strip() for line in SETUP.get(str(path.relative_to(ROOT)), "").splitlines())
    exec(setup, names)
    makers = ("evalkit.cli.reports.run", "evalkit.reports.batch.run") if path != MAKES_REPORTS else ()
    with contextlib.ExitStack() as patches:
        for maker in makers:
            patches.enter_context(mock.patch(maker, _planned))
        # processes must be forked even if other tests left threads, because only these have files in memory
        patches.enter_context(mock.patch("evalkit.reports.planning.start_method", return_value="fork"))
        patches.enter_context(undrawn())
        for registry in (EVALUATORS, CHECKS, search.OWN_DETECTORS):
            patches.enter_context(mock.patch.dict(registry))  # forget what the page registers
        page = path.read_text("utf-8")
        if BUCKET in page:
            patches.enter_context(bucket(place / "path/to/experiments"))
        printed, end = "", 0  # what the one command of the block before printed, and where that block ends
        outdated = []
        for fence in FENCE.finditer(page):
            line = page.count("\n", 0, fence.start()) + 1
            text = re.sub(rf"^{fence['indent']}", "", fence["text"], flags=re.MULTILINE)
            text = text.replace(BUCKET, "memory://bucket/prefix")  # instead of one in the network
            follows = not page[end : fence.start()].strip()
            if fence["language"] == "text" and printed and follows and not _agree(text, printed):
                outdated.append((fence.span("text"), printed, f"{path.name}:{line} should show\n{printed}"))
            try:
                printed, end = RUN[fence["language"]](text, names, f"{path.name}:{line}", line) or "", fence.end()
            except Exception as error:
                raise AssertionError(f"{path.name}:{line}: {type(error).__name__}: {error}") from error
    if os.environ.get("WRITE_OUTPUTS"):
        for (start, stop), printed, _ in reversed(outdated):
            printed = re.sub(r"\b\d+\.\d s\b|\d+\.\d+ MB", "...", printed.replace(str(ROOT), "..."))
            page = page[:start] + printed + page[stop:]
        path.write_text(page, "utf-8")
    if outdated:
        pytest.fail("\n".join(message for _, _, message in outdated))


def _agree(shown: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(shown, printed, doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)


def run_python(text: str, names: dict[str, Any], where: str, line: int) -> None:
    """Run a block; of one with prompts, compare what it prints."""
    if ">>> " not in text:
        exec(compile("\n" * line + text, where, "exec"), names)
        return
    examples = doctest.DocTestParser().get_doctest(text, names, where, where, line)
    said: list[str] = []
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    doctest.DocTestRunner(optionflags=flags).run(examples, out=said.append, clear_globs=False)
    names |= examples.globs
    assert not said, "".join(said)


def output_of(*words: str) -> str:
    """Run a command of evalkit, and return what it printed."""
    result = CliRunner().invoke(main, words, prog_name="evalkit", catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines()) + "\n"


output_once = cache(output_of)


def run_commands(text: str, *_: Any) -> str:
    """Run the commands of evalkit in a block, and return what one that is alone in its block printed.

    A backslash joins lines, and what comes behind ``>`` is left out.
    """
    outputs = []
    for line in text.replace("\\\n", " ").splitlines():
        program, *words = shlex.split(line, comments=True) or [""]
        if program == "evalkit":
            words = words[: words.index(">")] if ">" in words else words
            is_same = words[-1].startswith("samples:")  # wherever it runs
            outputs.append(output_once(*words) if is_same else output_of(*words))
    return outputs[0] if len(outputs) == 1 else ""


RUN = {  # by language; text, and none: output, or the shape of something
    "python": run_python,
    "sh": run_commands,
    "json": lambda text, *_: json.loads(text),
    "yaml": lambda text, *_: yaml.safe_load(text),
    **dict.fromkeys(("toml", "text", ""), lambda *_: None),
}


def _planned(reports, **options):
    """Take a batch that was planned and checked as made: that notebooks run is shown elsewhere."""
    return Summary([report.key for report in reports], [], [], False, Path("index.html"), Path("manifest.json"))
