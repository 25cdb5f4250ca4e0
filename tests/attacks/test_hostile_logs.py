"""Names in logs and of files are others' text: none reaches a terminal as more than plain text, and none is endless."""

import warnings

import pytest

from evalkit import crafter, steps
from evalkit.crafter.benchmark import load_runs
from evalkit.display.follow import Following
from evalkit.kinds import RunFiles, kind_named, transcript_of
from tests.attacks.entry_points import KINDS, of_kinds, run
from tests.attacks.hostile import assert_plain, write_hostile

COMMANDS = [
    *of_kinds("detect logs/KIND", "KIND logs/KIND", "KIND logs/KIND --list all", "KIND data/KIND"),
    *of_kinds("view logs/KIND -o out", "compare logs/KIND", "compare logs/KIND --baseline good"),
    "mindcraft logs/mindcraft --tasks tasks.json --by target_items",
    "crafter logs/crafter -v --by-difficulty",
    "steps logs/steps --checks",
]


@pytest.fixture(scope="module", autouse=True)
def here(tmp_path_factory):
    """Work in a folder of hostile logs, and of datasets of them; nothing changes the logs."""
    folder = tmp_path_factory.mktemp("hostile")
    write_hostile(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for line in of_kinds("collect KIND logs/KIND -o data/KIND"):
            run(line)
        yield folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_shows_hostile_names_as_plain_text(command):
    assert_plain(run(command).output)


@pytest.mark.parametrize("kind", KINDS)
def test_runs_are_shown_and_followed_as_plain_text(here, kind):
    for path in sorted((here / "logs" / kind).rglob("*.json")):
        assert_plain(run(f"show {{}} --kind {kind}", path).output, lines=False)
    assert_plain(Following(kind_named(kind), f"logs/{kind}", {}).look(80).text, lines=False)  # it breaks lines


def test_printing_functions_print_plain_text(here, capsys):
    for path in sorted(map(str, (here / "logs" / "crafter").glob("*.json"))):
        crafter.print_trace_evaluation(crafter.evaluate_trace(path))
    crafter.print_evaluation_summary(crafter.evaluate_all_traces("logs/crafter"))
    for path in sorted((here / "logs" / "steps").glob("*d.json")):
        for record in steps.load(path).histories[0].records:
            steps.print_step_evaluation(steps.evaluate_step(record))
    for path in sorted((here / "logs" / "mindcraft").rglob("*_0_0.json")):
        print(transcript_of(kind_named("mindcraft"), RunFiles([str(path)])).text())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_runs(sorted(map(str, (here / "logs").rglob("*.json"))))
    print(*(warning.message for warning in caught))
    assert_plain(capsys.readouterr().out, lines=False)
