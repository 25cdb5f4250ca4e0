"""`evalkit lab`: copies of notebooks with their parameters filled in, and JupyterLab on them, in a browser."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner, Result
from nbformat.v4 import new_code_cell
from playwright.sync_api import expect

from evalkit.cli import main
from evalkit.io import resolve
from evalkit.reports.notebooks import read_notebook
from tests.browser import needs_browser, open_browser

CONFIG = {"ServerApp": {"allow_root": True}, "LabApp": {"expose_app_in_browser": True, "news_url": None}}
LONG = 200_000  # milliseconds, ten times what is usual
WIDGET = "globalThis.jupyterapp?.shell.currentWidget"
READY = f"() => {WIDGET}?.context.isReady && {WIDGET}.sessionContext.session?.kernel?.status === 'idle'"
ALL_RUN = f"""() => {{
  const cells = [...{WIDGET}.content.model.cells].filter(cell => cell.type === 'code');
  const failed = cells.filter(cell => cell.outputs.toJSON().some(output => output.output_type === 'error'));
  return failed.length ? failed.map(cell => cell.id) : cells.every(cell => cell.executionCount) && 'all';
}}"""
LAST_FIGURE = f"""() => {{
  const cells = [...{WIDGET}.content.model.cells];
  return cells.findLastIndex(cell => (cell.getMetadata('tags') ?? []).includes('figure'));
}}"""
HOSTILE = "<img src=x onerror='globalThis.ran = 1'>"
FRAME = f"""import itables

itables.init_notebook_mode()
logs.ledger.head(1).assign(reason={HOSTILE!r})"""
browser = pytest.fixture(scope="module")(open_browser)


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["lab", *arguments, "--no-start"])


def test_copies_read_the_source_from_anywhere_and_are_kept_once_edited(here):
    shutil.copytree(resolve("samples:mindcraft"), here / "mc")
    (here / "alder-large").mkdir()  # is the name of a model, too
    made = run("mc/runs", "--tasks", "mc/tasks")
    copy = here / "evalkit-lab/model_overview.ipynb"
    values = {name: one.default for name, one in read_notebook(copy).parameters.items()}
    assert (values["runs"], values["tasks"]) == ([f"{here}/mc/runs"], [f"{here}/mc/tasks"])
    assert values["model"] == "alder-large"
    assert "  evalkit-lab/model_comparison.ipynb\n" in made.stdout
    copy.write_text(edited := copy.read_text().replace("alder-large", "dogwood-8b"))
    assert "evalkit-lab/model_overview.ipynb (kept as it was)" in run("mc/runs").stdout
    assert copy.read_text() == edited
    (here / "mc/runs").rename(here / "other")
    refused = run("other")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"reads {here}/mc/runs; choose another folder with --output DIR" in refused.stderr


def test_without_jupyterlab_its_package_is_named(here, monkeypatch):
    monkeypatch.setattr("evalkit.cli.reports.find_spec", lambda name: None)
    result = CliRunner().invoke(main, ["lab", "samples:crafter"])
    assert (result.exit_code, result.stderr) == (2, "evalkit: JupyterLab is not installed: pip install jupyterlab\n")


@pytest.fixture
def server(tmp_path):
    """Start JupyterLab on the samples of steps, with its settings in a folder of its own; yield its address."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config/jupyter_config.json").write_text(json.dumps(CONFIG))
    places = {name: str(tmp_path / name) for name in ("JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR")}
    places |= {"JUPYTERLAB_WORKSPACES_DIR": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    words = ["samples:steps", "-o", str(tmp_path / "copies")]
    assert run(*words).exit_code == 0
    (copy,) = (tmp_path / "copies").glob("*.ipynb")
    notebook = nbformat.read(copy, as_version=4)
    notebook.cells.append(new_code_cell(FRAME, metadata={"tags": ["nbval-ignore-output"]}))
    nbformat.write(notebook, copy)
    with subprocess.Popen(
        [sys.executable, "-m", "evalkit", "lab", *words, "--no-browser"],
        env=os.environ | places,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr
        try:
            addresses = (re.search(r"http://127\.0\.0\.1:\d+/lab/\S+token=\w+", line) for line in process.stderr)
            yield next(filter(None, addresses))[0]
        finally:
            os.killpg(process.pid, signal.SIGTERM)


@pytest.mark.slow
@needs_browser
@pytest.mark.timeout(1_200)
def test_run_all_in_lab_leads_to_the_last_figure_and_nbval_finds_the_stored_outputs_again(server, browser, tmp_path):
    page = browser.new_page(viewport={"width": 1280, "height": 1400})
    page.set_default_timeout(LONG)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(server)
    page.wait_for_function(READY)
    page.get_by_text("Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    assert page.wait_for_function(ALL_RUN).json_value() == "all"
    figure = f".jp-Cell[data-windowed-list-index='{page.evaluate(LAST_FIGURE)}'] .jp-RenderedSVG img"
    for shown in ("td.estimate svg", figure):
        page.locator(shown).first.scroll_into_view_if_needed()
        expect(page.locator(shown).first).to_be_in_viewport()
    page.locator(".evalkit-table th button").first.click()
    expect(page.locator("th[aria-sort=ascending]")).to_have_count(1)
    expect(page.locator("table.dataTable").get_by_text(HOSTILE)).to_have_count(1)
    assert page.evaluate("globalThis.ran") is None
    page.evaluate(f"() => {WIDGET}.context.save()")
    assert [url for url in asked if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))] == []
    plugins = ["-p", "nbval.plugin", "-p", "no:cacheprovider"]
    strict = [sys.executable, "-m", "pytest", *plugins, "--nbval", "-q", "-c", os.devnull]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other plugins take a second to import
    words = [*strict, "--rootdir", tmp_path, tmp_path / "copies"]
    found = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_the_server_listens_at_the_port_that_was_named(here, monkeypatch):
    called = []
    monkeypatch.setattr("evalkit.cli.reports.subprocess.call", lambda line: called.append(line) or 0)
    CliRunner().invoke(main, ["lab", "samples:crafter", "--port", "9123"])
    assert "--ServerApp.port=9123" in called[0]
