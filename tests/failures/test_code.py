"""What calls do with code, and the events of runs that edit it."""

import json

import pytest

from evalkit.kinds import Call, Transcript, Turn
from evalkit.kinds.detectors import seen
from evalkit.trajectories.events import DETECTORS, _work

HEREDOC = "cat > {} <<'EOF'\ndef test_sum():\n    assert total > 3\nEOF"
COMMANDS = {  # what a shell command does: examples, and others that do not
    "tests": (
        "pytest -x|cd /app && python3 -m pytest -q 2>&1 ; tail -5 log|DEBUG=1 tox -e py3|npm run test|bin/test a"
        "|make check"
        "|go test ./...|python manage.py test|python setup.py test|timeout 60 uv run pytest|bash run_tests.sh"
        "|python /tmp/reproduce.py|sed -i s/a/b/ x.py && ctest|./tests/runtests.py a",
        "grep -n pytest setup.cfg|cat tests/test_sum.py|git add tests|test -f a.py && echo|pip install pytest"
        "|python main.py"
        f"|echo 'run the tests'|make build|ls tests|{HEREDOC.format('tests/test_sum.py')}",
    ),
    "edits": (
        "sed -i.bak 's/a/b/' a.py|sed -E -i s/a/b/ a.py|perl -pi -e s/a/b/ a.py|patch -p1 < /tmp/a.diff"
        "|git apply a.diff"
        "|echo 'x' >> a.py|python -c \"open('a.py', 'w').write('x')\"|str_replace_editor create /a.py --file_text 'x'"
        f"|edit 3:5\nx = 1\nend_of_edit|{HEREDOC.format('a.py')}",
        "sed -n 1,5p a.py|sed -n 1p built-in.txt|python -c 'print(3 > 2)'|pytest > /tmp/log 2>&1|ls > /dev/null"
        "|awk '$1 > 3' a.csv|git diff > /tmp/a.diff|grep -rn 'x > 1' src",
    ),
    "undoes": (
        "git checkout -- a.py|git checkout .|git restore a.py|git reset --hard|str_replace_editor undo_edit a.py",
        "git checkout -b fix|git checkout main|git stash|git restore --staged a.py|git log",
    ),
    "reads": (
        "cat a.py|sed -n '1,20p' a.py|cd /app && head a.py|str_replace_editor view /a.py --view_range 1 9",
        f"grep x a.py|python a.py|sed -i s/a/b/ a.py|{HEREDOC.format('a.py')}",
    ),
    "submits": ("submit|echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "git commit -m 'submit it'|ls"),
}
CASES = [(what, command, True) for what, (yes, _) in COMMANDS.items() for command in yes.split("|")]
CASES += [(what, command, False) for what, (_, no) in COMMANDS.items() for command in no.split("|")]


@pytest.mark.parametrize(("what", "command", "expected"), CASES)
def test_a_command_is_understood_as_text_and_as_a_value(what, command, expected):
    for arguments in (command, json.dumps({"command": command}), json.dumps({"cmd": ["bash", "-lc", command]})):
        assert getattr(_work("bash", arguments), what) is expected, arguments


def bash(command, result=""):
    return Turn("agent", "action", command, call=Call("bash", command, result))


def say(text, role="assistant"):
    return Turn("agent" if role == "assistant" else role, role, text)


def found(*turns):
    transcript = seen(Transcript("", [], turns))
    return {one.name for one in DETECTORS for _ in one.find(transcript)}


SWAP = "str_replace_editor str_replace {} --old_str 'a = {}' --new_str 'a = {}'"
FIRST, BACK, OTHER = (bash(SWAP.format(*given)) for given in (("a.py", 1, 2), ("a.py", 2, 1), ("b.py", 2, 1)))
CAT = bash("cat a.py", "x")
EDIT, TEST, DONE = bash("sed -i s/a/b/ a.py"), bash("pytest", "3 passed"), say("The sum is right now.")
RUNS = {
    "an edit that is tested": ([EDIT, TEST, DONE], set()),
    "an edit after tests": ([TEST, EDIT, DONE], {"test_not_run"}),
    "an edit between tests": ([EDIT, TEST, EDIT, DONE], set()),
    "tests that are only read": ([EDIT, bash("cat tests/test_a.py", "x"), DONE], {"test_not_run"}),
    "an edit that is swapped back": ([FIRST, BACK, TEST, DONE], {"edit_undone"}),
    "an edit of another file": ([FIRST, OTHER, TEST, DONE], set()),
    "work that is handed in": ([EDIT, TEST, bash("submit")], set()),
    "work without an edit": ([bash("ls", "a.py"), bash("submit")], {"submitted_unchanged"}),
    "a diff that is handed in": ([bash("python fix.py"), bash("submit", "diff --git a/a.py b/a.py")], set()),
    "a file that is read twice": ([CAT, bash("ls"), CAT, DONE], {"file_read_again"}),
    "a file that has changed": ([CAT, EDIT, bash("cat a.py", "y"), TEST, DONE], set()),
    "a call at the end": ([bash("ls", "a.py")], {"cut_off"}),
    "a question at the end": ([say("Done."), say("And the other one?", "user")], {"cut_off"}),
    "thanks at the end": ([say("Done."), say("Thank you, goodbye!", "user")], set()),
}  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
def test_a_run_has_its_events_and_no_others(run):
    turns, expected = RUNS[run]
    assert found(*turns) == expected


FORMS = {
    "Respond with JSON only.": ('{"a": 1}', "Here it is: a is 1"),
    "Answer with a single integer.": ("12", "About a dozen."),
    "Please reply with yes or no only.": ("No.", "It depends."),
    "Put the result in \\boxed{}.": ("\\boxed{3}", "3"),
}


@pytest.mark.parametrize("asked", FORMS)
def test_an_answer_has_the_form_that_was_asked_for(asked):
    right, wrong = FORMS[asked]
    assert found(say(asked, "user"), say(right)) == set()
    assert found(say(asked, "user"), say(wrong)) == {"wrong_answer_form"}
    assert found(say("The tools answer in JSON.", "user"), say(wrong)) == set()
