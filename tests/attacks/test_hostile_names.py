"""Names in logs, of files and of options are others' text: none reaches a terminal as more than plain text."""

import json
import shutil
import unicodedata
import warnings

import pytest
from click.testing import CliRunner

from evalkit import crafter, mindcraft, steps
from evalkit.cli import main
from evalkit.crafter.benchmark import load_runs
from evalkit.kinds import kind_named
from evalkit.kinds.follow import Following
from tests.crafter.test_follow import episode

EVIL = "\x1b]0;t\x07\x1b[31mx\x9b2J\u202egnp\u2066\r\nINJECTED\x00\x7f\u200b\u2028INJECTED"
NAME = EVIL.replace("\x00", "")  # what a file can be called
KINDS = ("mindcraft", "crafter", "steps")
DOORS = {
    **{f"detect {kind}": ("detect", f"logs/{kind}") for kind in KINDS},
    **{kind: (kind, f"logs/{kind}") for kind in KINDS},
    **{f"{kind} --list": (kind, f"logs/{kind}", "--list", "all") for kind in KINDS},
    **{f"{kind} of a dataset": (kind, f"data/{kind}") for kind in KINDS},
    **{f"{kind} --output": (kind, f"logs/{kind}", "--output", f"{NAME}.csv") for kind in KINDS},
    **{f"collect {kind}": ("collect", kind, f"logs/{kind}", "-o", NAME) for kind in KINDS},
    **{f"view {kind}": ("view", f"logs/{kind}", "-o", NAME) for kind in KINDS},
    **{f"compare {kind}": ("compare", f"logs/{kind}") for kind in KINDS},
    **{f"compare {kind} --baseline": ("compare", f"logs/{kind}", "--baseline", "good") for kind in KINDS},
    **{f"{kind} that is not there": (kind, NAME) for kind in KINDS},
    "mindcraft --tasks": ("mindcraft", "logs/mindcraft", "--tasks", "tasks.json", "--cooking"),
    "mindcraft --tasks of a name": ("mindcraft", "logs/mindcraft", "--tasks", NAME),
    "crafter --verbose": ("crafter", "logs/crafter", "-v", "--by-difficulty"),
    "crafter --models": ("crafter", "logs/crafter", "--models", EVIL),
    "steps --details": ("steps", "logs/steps", "--details", "--checks"),
    "show --run": ("show", "logs/mindcraft", "--run", EVIL),
    "show --kind": ("show", "logs/mindcraft", "--kind", EVIL),
    "compare --option": ("compare", "logs/mindcraft", "--option", EVIL, EVIL),
    "report": ("report", NAME),
    "report --name": ("report", "step_evaluation", "-p", "history", "logs/steps", "--name", EVIL),
    "report of a value": ("report", "step_evaluation", "-p", "history", NAME, "-o", "out", "-j", "1"),
    "report -o": ("report", "step_evaluation", "-p", "history", NAME, "-o", f"file/{NAME}"),
    "report --remove": ("report", "--remove", EVIL),
    "a command that is none": (EVIL,),
    "an option that is none": ("mindcraft", f"--{EVIL}"),
    "a choice that is none": ("mindcraft", "logs/mindcraft", "--list", EVIL),
}


def _write(folder):
    """Write logs of all kinds in which every name is hostile, and a model `good` beside."""
    turns = [{"role": role, "content": f"{EVIL} !{NAME}({EVIL})"} for role in ("user", "assistant", "system")]
    for model in (NAME, "good"):
        for task in (NAME, "bread"):
            for number, score in enumerate((0, 1)):
                log = [*turns, {"role": "system", "content": f"Task ended with score : {score}"}]
                path = folder / "logs" / "mindcraft" / model / f"{task}{number}" / f"{NAME}_0_0.json"
                path.parent.mkdir(parents=True)
                path.write_text(json.dumps({"memory": EVIL, "turns": log}))
                (path.parent / f"broken{NAME}_1.json").write_text("{" + EVIL)
    definition = {"goal": EVIL, "type": "cooking", "agent_count": 1, "blocked_actions": {EVIL: [EVIL]}, EVIL: EVIL}
    (folder / "tasks.json").write_text(json.dumps({f"{NAME}0": definition, "bread0": definition, "bread1": {EVIL: 1}}))
    traces = folder / "logs" / "crafter"
    traces.mkdir()
    for number, model in enumerate((EVIL, "good")):
        trace = json.loads(episode(model))
        trace |= {"session_id": f"crafter_episode_{number}_{model}"}
        for event in trace["event_history"]:
            event["event_metadata"] = [
                {"hook_name": EVIL, "data": {"achievements": [EVIL], EVIL: EVIL, "reason": EVIL}}
            ]
            event["metadata"] = {"turn": 1, "observation_text": EVIL, EVIL: EVIL}
        trace["session_metadata"] += [{"metadata_type": "error", "data": {"message": EVIL, "error": EVIL}}]
        (traces / f"session_{number}{NAME}.json").write_text(json.dumps(trace))
    (traces / f"broken{NAME}.json").write_text("{" + EVIL)
    records = [
        {"step": {"function_name": name, "parameters": {EVIL: EVIL}}, "success": success, "result": EVIL, "error": EVIL}
        for name in (EVIL, "perform_enrichment_analyses")
        for success in (True, False)
    ]
    (folder / "logs" / "steps").mkdir()
    for name in (f"{NAME}.json", "good.json"):
        (folder / "logs" / "steps" / name).write_text(json.dumps({"execution_history": records, "plan": [EVIL]}))
    (folder / "logs" / "steps" / f"broken{NAME}.json").write_text('{"execution_history": [' + EVIL)
    (folder / "file").touch()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a folder of hostile logs, and of datasets of them."""
    folder = tmp_path_factory.mktemp("hostile")
    _write(folder)
    for module, kind in zip((mindcraft, crafter), KINDS, strict=False):
        module.collect(str(folder / "logs" / kind), str(folder / "data" / kind))
    CliRunner().invoke(main, ["collect", "steps", str(folder / "logs" / "steps"), "-o", str(folder / "data" / "steps")])
    return folder


@pytest.fixture
def here(written, tmp_path, monkeypatch):
    shutil.copytree(written, tmp_path / "own")
    monkeypatch.chdir(tmp_path / "own")
    return tmp_path / "own"


def _check(text, *, lines=True):
    """Assert that a text holds nothing but lines of plain text."""
    controls = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t"} | {
        c for c in text if c in "\u2028\u2029"
    }
    assert controls == set()
    if lines:
        assert [line for line in text.splitlines() if line.startswith("INJECTED")] == []


@pytest.mark.parametrize("door", DOORS)
def test_a_command_shows_hostile_names_as_plain_text(here, door):
    result = CliRunner().invoke(main, DOORS[door])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.output
    _check(result.output)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_shown_as_plain_text(here, kind):
    for path in sorted((here / "logs" / kind).rglob("*.json")):
        _check(CliRunner().invoke(main, ["show", str(path), "--kind", kind]).output, lines=False)


@pytest.mark.parametrize("kind", KINDS)
def test_what_following_shows_is_plain_text(here, kind):
    _check(Following(kind_named(kind), f"logs/{kind}", {}).look(80).text, lines=False)  # it breaks lines


def test_printing_functions_print_plain_text(here, capsys):
    traces = sorted(map(str, (here / "logs" / "crafter").glob("*.json")))
    for path in traces:
        crafter.print_trace_evaluation(crafter.evaluate_trace(path))
    crafter.print_evaluation_summary(crafter.evaluate_all_traces("logs/crafter"))
    for path in sorted((here / "logs" / "steps").glob("*d.json")):
        for record in steps.load_history(path):
            steps.print_step_evaluation(steps.evaluate_step(record))
    for path in sorted((here / "logs" / "mindcraft").rglob("*_0_0.json")):
        print(mindcraft.conversation(path))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_runs(sorted(map(str, (here / "logs").rglob("*.json"))))
    print(*(warning.message for warning in caught))
    _check(capsys.readouterr().out, lines=False)
