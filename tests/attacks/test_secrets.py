"""A secret in a URL, through every door: no message, file, name of a file, cache or dataset repeats it."""

import json
import logging
import traceback
import warnings
from functools import partial

import pytest
from click.testing import CliRunner

import evalkit
from evalkit import crafter, mindcraft, steps
from evalkit.cli import main
from evalkit.crafter import benchmark
from evalkit.io import read_file, storage, write_frame
from evalkit.kinds.detection import describe_source
from evalkit.kinds.follow import Following
from evalkit.kinds.transcript import show_source
from evalkit.reports import plan
from tests.io.test_sources import WITH

SECRET = "SEK"  # a part of every secret in WITH
KINDS = ("mindcraft", "crafter", "steps")
DOORS = {
    **{f"{kind} SOURCE": (kind, "{}") for kind in KINDS},
    **{f"{kind} --list": (kind, "{}", "--list", "all") for kind in KINDS},
    **{f"{kind} --output": (kind, f"samples:{kind}", "--output", "{}") for kind in KINDS},
    **{f"collect {kind} SOURCE": ("collect", kind, "{}", "-o", "out") for kind in KINDS},
    **{f"collect {kind} -o": ("collect", kind, f"samples:{kind}", "-o", "{}") for kind in KINDS},
    "--tasks": ("mindcraft", "samples:mindcraft/runs", "--tasks", "{}"),
    "--storage-options": ("mindcraft", "samples:mindcraft/runs", "--storage-options", "{}"),
    "--pattern": ("mindcraft", "samples:mindcraft/runs", "--pattern", "{}"),
    "--models": ("crafter", "samples:crafter", "--models", "{}"),
    "show": ("show", "{}"),
    "show --run": ("show", "samples:mindcraft/runs", "--run", "{}"),
    "view": ("view", "{}", "-o", "out"),
    "view -o": ("view", "samples:steps", "-o", "{}"),
    "detect": ("detect", "{}"),
    "compare": ("compare", "{}"),
    "compare --baseline": ("compare", "samples:mindcraft/runs", "--baseline", "{}"),
    "report SOURCE": ("report", "{}"),
    "report -p": ("report", "step_evaluation", "-p", "history", "{}"),
    "report, a parameter's name": ("report", "step_evaluation", "-p", "{}", "a"),
    "report -f": ("report", "step_evaluation", "-f", "{}"),
    "report -f FILE": ("report", "step_evaluation", "-f", "given.yaml"),
    "report -y": ("report", "step_evaluation", "-y", "history: '{}'"),
    "report -y, broken": ("report", "step_evaluation", "-y", "[history: '{}'"),
    "report --name": ("report", "step_evaluation", "-p", "history", "samples:steps", "--name", "{}"),
    "report --remove": ("report", "--remove", "{}"),
    "notebooks": ("notebooks", "{}"),
}
FUNCTIONS = {
    "load": evalkit.load,
    **{f"{module.__name__}.load": module.load for module in (mindcraft, crafter, steps)},
    "tasks": lambda url: mindcraft.load("samples:mindcraft/runs", tasks=url),
    "collect": partial(mindcraft.collect, output="out"),
    "load_task_definitions": mindcraft.load_task_definitions,
    "analyze_agent_log": mindcraft.analyze_agent_log,
    "evaluate_trace": crafter.evaluate_trace,
    "load_history": steps.load_history,
    "read_file": read_file,
    "write_frame": lambda url: write_frame(benchmark.reference_scores(), f"{url}.csv"),
    "describe_source": describe_source,
    "show_source": show_source,
    "Following": lambda url: Following(mindcraft.KIND, url, {}).look().text,
    "plan": lambda url: plan(["step_evaluation"], values={"history": url}),
    "provenance": lambda url: evalkit.provenance(url),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return an empty current folder, with its cache in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def _files_with_it(folder, own=()):
    """Name the files and folders whose name or content repeats the secret."""
    files = [path for path in folder.rglob("*") if path.name not in own]
    named = [path for path in files if SECRET in path.name]
    return named + [path for path in files if path.is_file() and SECRET.encode() in path.read_bytes()]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("door", DOORS)
def test_no_command_repeats_a_secret(here, door):
    for number, url in enumerate(WITH):
        given = json.dumps({"history": url})
        place = here / "params" / "step_evaluation"
        place.mkdir(parents=True, exist_ok=True)
        for path in (here / "given.yaml", place / "given.yaml"):
            path.write_text(given)
        result = CliRunner().invoke(main, [argument.format(url) for argument in DOORS[door]])
        text = result.output + "".join(traceback.format_exception(result.exception or SystemExit()))
        assert SECRET not in text, (url, text[-500:])
        assert _files_with_it(here, ["given.yaml"]) == [], (number, url)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nor_does_a_function(here, name, capfd, caplog):
    caplog.set_level(logging.DEBUG, "evalkit")
    for url in WITH:
        with warnings.catch_warnings(record=True) as caught:
            try:
                said = repr(FUNCTIONS[name](url))
            except Exception as error:
                causes = [error, error.__cause__, error.__context__]
                said = " ".join(f"{each} {each!r} {getattr(each, 'filename', '')}" for each in causes)
        said += "".join(str(warning.message) for warning in caught) + "".join(capfd.readouterr()) + caplog.text
        assert SECRET not in said, (url, said)
        assert _files_with_it(here) == [], url


def test_storage_options_stay_in_the_process(here):
    options = {"client_kwargs": {"headers": {"Authorization": "Bearer SEKRET"}}}
    (here / "options.json").write_text(json.dumps(options))
    for command in (("mindcraft",), ("collect", "mindcraft", "-o", "out"), ("mindcraft", "--list", "all")):
        arguments = [*command, "http://127.0.0.1:9/runs", "--storage-options", "options.json"]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 2
        assert SECRET not in result.output
    with storage(options), pytest.raises(Exception, match="127") as raised:
        mindcraft.load("http://127.0.0.1:9/runs")
    assert SECRET not in f"{raised.value} {raised.value.__cause__} {raised.value!r}"
    assert _files_with_it(here, ["options.json"]) == []
