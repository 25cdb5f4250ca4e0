"""What calls do with code, and the events of runs that edit it."""

import json

import pytest

from evalkit.kinds import Call, Transcript, Turn
from evalkit.kinds.detectors import seen
from evalkit.trajectories.events import DETECTORS, work_of

HEREDOC = "cat > {} <<'EOF'\ndef test_sum():\n    assert total > 3\nEOF"
COMMANDS = {  # what a shell command does: examples, and others that do not
    "tests": (
        "pytest -x|cd /app && python3 -m pytest -q 2>&1 ; tail -5 log|DEBUG=1 tox -e py3|npm run test|bin/test a"
        "|make check"
        "|go test ./...|python manage.py test|python setup.py test|timeout 60 uv run pytest|bash run_tests.sh"
        "|rake spec|make -s ci|yarn jest src|pnpm exec mocha|npm run jest|hatch run tox"
        "|npm t|cabal test all|php artisan test|Rscript -e 'devtools::test()'"
        "|python /tmp/reproduce.py|sed -i s/a/b/ x.py && ctest|./tests/runtests.py a"
        "|make -C out check|npm --prefix web test",
        "grep -n pytest setup.cfg|cat tests/test_sum.py|git add tests|test -f a.py && echo|pip install pytest"
        "|yarn add jest|npm install mocha"
        "|python main.py|make -C out all"
        f"|echo 'run the tests'|make build|ls tests|{HEREDOC.format('tests/test_sum.py')}",
    ),
    "edits": (
        "sed -i.bak 's/a/b/' a.py|sed -E -i s/a/b/ a.py|perl -pi -e s/a/b/ a.py|patch -p1 < /tmp/a.diff"
        "|git apply a.diff|perl -0777pi -e 's/a/b/' a.py|gsed -i s/a/b/ a.py|cp -f /tmp/new.py a.py"
        "|echo 'x' >> a.py|python -c \"open('a.py', 'w').write('x')\"|str_replace_editor create /a.py --file_text 'x'"
        "|isort .|python3 -m black lib|ruff check lib --fix|eslint --fix lib|gofmt -l -w a.go|prettier --write a.ts"
        "|dd if=b of=a.py|rm -f lib/old/a.py"
        f"|edit 3:5\nx = 1\nend_of_edit|{HEREDOC.format('a.py')}",
        "sed -n 1,5p a.py|sed -n 1p built-in.txt|python -c 'print(3 > 2)'|pytest > /tmp/log 2>&1|ls > /dev/null"
        "|black --check lib|ruff check lib|pip install black|gofmt -l a.go|rm -rf out|rm debug.py|rm /tmp/out/a.py"
        "|awk '$1 > 3' a.csv|git diff > /tmp/a.diff|grep -rn 'x > 1' src",
    ),
    "undoes": (
        "git checkout -- a.py|git checkout .|git restore a.py|git reset --hard|str_replace_editor undo_edit a.py"
        "|git restore --staged --worktree lib|cp -f lib/a.py.orig lib/a.py|mv b.js.bak b.js"
        "|git reset HEAD~1 --hard|git apply --reverse a.diff|patch -p1 -R < a.diff",
        "git checkout -b fix|git checkout fix/b.py-typo -b c|git apply a.diff|git revert --help"
        "|cp a.py a.py.bak|cp a.py.bak b.py|git checkout main|git stash|git restore --staged a.py|git log",
    ),
    "reads": (
        "cat a.py|sed -n '1,20p' a.py|cd /app && head a.py|str_replace_editor view /a.py --view_range 1 9",
        f"grep x a.py|python a.py|sed -i s/a/b/ a.py|{HEREDOC.format('a.py')}",
    ),
    "may_change": (
        "cp a.py b.py|mkdir out|cd /app && python fix.py|pip install -e .|git commit -am x|make all|sed -i s/a/b/ a.py",
        "ls|git log|git diff HEAD|cat a.py|python -c 'print(1)'|pytest -q|python tests/run.py|grep -rn make .",
    ),
    "submits": ("submit|echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "git commit -m 'submit it'|ls"),
}
CASES = [(what, command, True) for what, (yes, _) in COMMANDS.items() for command in yes.split("|")]
CASES += [(what, command, False) for what, (_, no) in COMMANDS.items() for command in no.split("|")]


@pytest.mark.parametrize(("what", "command", "expected"), CASES)
def test_a_command_is_understood_as_text_and_as_a_value(what, command, expected):
    lists = {"cmd": ["bash", "-lc", command]}, {"commands": [{"keystrokes": f"{command}\n", "duration": 1}]}
    for given in (command, {"command": command}, {"keystrokes": command, "wait": 2}, {"line": command}, *lists):
        arguments = given if isinstance(given, str) else json.dumps(given)
        assert getattr(work_of("bash", arguments), what) is expected, arguments


TOOLS = {  # what a tool is, by its name and arguments
    "test": (
        ("run_unit_tests", {"path": "a"}),
        ("runTests", {}),
        ("execute_pytest", {"args": "-q"}),
        ("test_suite", {}),
    ),
    "shell": (
        ("run_in_terminal", {"command": "ls"}),
        ("Bash", {"command": "ls"}),
        ("execute", {"line": "ls"}),
        ("container.exec", {"cmd": ["ls"]}),
        ("type", {"keystrokes": "ls"}),
    ),
    "code": (("python", {"code": "1 > x"}), ("execute_ipython_cell", {"code": "1"}), ("run_code", {"code": "1"})),
    "editor": (
        ("update_file", {"name": "a.py"}),
        ("apply_patch", {"input": "x"}),
        ("MultiEdit", {"file_path": "a.py"}),
        ("NotebookEdit", {"cell": 1}),
        ("mcp__files__replace_in_file", {}),
        ("insert", {"line": 3, "text": "x"}),
        ("str_replace_based_edit_tool", {"command": "view", "path": "a.py"}),
    ),
    "reader": (("read_file", {"path": "a.py"}), ("Read", {"target": "a.py"}), ("get_file_contents", {"name": "a"})),
    "": (
        ("run_search", {"q": "different > same"}),
        ("execute_sql", {"query": "select 1"}),
        ("edit_profile", {"photo": "profile.png"}),
        ("update_order", {"path": "x"}),
        ("create_directory", {"path": "out"}),
        ("patch_user", {"path": "/users/3"}),
        ("create_test_user", {"name": "x"}),
        ("open_account", {"owner": "Bo"}),
        ("apply_coupon", {"code": "x", "path": "/cart"}),
    ),
}


@pytest.mark.parametrize(("tool", "call"), [(tool, call) for tool, calls in TOOLS.items() for call in calls])
def test_a_tool_is_known_by_whole_words_of_its_name_and_arguments(tool, call):
    name, given = call
    assert work_of(name, json.dumps(given)).tool == tool


def test_an_editor_that_only_shows_edits_nothing():
    shows, replaces = (work_of("editor", json.dumps({"command": c, "path": "a.py"})) for c in ("view", "str_replace"))
    assert (shows.reads, shows.edits) == (True, False)
    assert (replaces.reads, replaces.edits) == (False, True)


def test_code_that_compares_writes_no_file():
    for code, edits in {"if x > y: pass": False, "!sed -i s/a/b/ a.py": True, "open('a', 'w')": True}.items():
        assert work_of("python", json.dumps({"code": code})).edits is edits


def bash(command, result=""):
    return Turn("agent", "action", command, call=Call("bash", command, result))


def use(name, result="", **given):
    return Turn("agent", "action", name, call=Call(name, json.dumps(given), result))


def say(text, role="assistant"):
    return Turn("agent" if role == "assistant" else role, role, text)


def found(*turns):
    transcript = seen(Transcript("", [], turns))
    return {one.name for one in DETECTORS for _ in one.find(transcript)}


SWAP = "str_replace_editor str_replace {} --old_str 'a = {}' --new_str 'a = {}'"
FIRST, BACK, OTHER = (bash(SWAP.format(*given)) for given in (("a.py", 1, 2), ("a.py", 2, 1), ("b.py", 2, 1)))
CAT = bash("cat a.py", "x")
EDIT, TEST, DONE = bash("sed -i s/a/b/ a.py"), bash("pytest", "3 passed"), say("The sum is right now.")
PATCH = "*** Begin Patch\n*** Update File: {}\n@@ def f():\n-    return {}\n+    return {}\n*** End Patch"
RUNS = {
    "an edit that is tested": ([EDIT, TEST, DONE], set()),
    "an edit after tests": ([TEST, EDIT, DONE], {"test_not_run"}),
    "an edit between tests": ([EDIT, TEST, EDIT, bash("yarn jest src"), DONE], set()),
    "an edit after the last test": ([EDIT, TEST, EDIT, DONE], {"test_not_run"}),
    "tests that are only read": ([EDIT, bash("cat tests/test_a.py", "x"), DONE], {"test_not_run"}),
    "an edit that is swapped back": ([FIRST, BACK, TEST, DONE], {"edit_undone"}),
    "a substitution that is swapped back": (
        [bash("sed -i 's|x y|z|' lib/a.py"), bash("sed -i 's|z|x y|' lib/a.py"), TEST, DONE], {"edit_undone"},
    ),
    "a patch that another one takes back": ([use("apply_patch", input=PATCH.format("a.py", *at)) for at in ("xy", "yx")]
        + [TEST, DONE], {"edit_undone"}),
    "a patch of another file": ([use("apply_patch", input=PATCH.format(*at)) for at in (("a.c", 1, 2), ("b.c", 2, 1))]
        + [TEST, DONE], set()),
    "a diff that another one takes back": ([bash(f"git apply <<'E'\n--- a/m.c\n+++ b/m.c\n@@ -1 +1 @@\n{at}\nE")
        for at in ("+int n;", "-int n;")] + [TEST, DONE], {"edit_undone"}),
    "another substitution": ([EDIT, bash("sed -i s/b/c/ a.py"), bash("sed -i 's/b/a/' b.py"), TEST, DONE], set()),
    "an edit of another file": ([FIRST, OTHER, TEST, DONE], set()),
    "work that is handed in": ([EDIT, TEST, bash("submit")], set()),
    "work without an edit": ([bash("ls", "a.py"), bash("submit")], {"submitted_unchanged"}),
    "a diff that is handed in": ([bash("python fix.py"), bash("submit", "diff --git a/a.py b/a.py")], set()),
    "a file that is read twice": ([CAT, bash("ls"), CAT, DONE], {"file_read_again"}),
    "a file that has changed": ([CAT, EDIT, bash("cat a.py", "y"), TEST, DONE], set()),
    "a file that is restored": ([CAT, EDIT, bash("git checkout a.py"), CAT, TEST, DONE], {"edit_undone"}),
    "an edit that is stashed": ([EDIT, TEST, bash("cd /app && git stash -u"), DONE], {"edit_undone"}),
    "an edit that is stashed for a test": ([EDIT, bash("git stash; pytest; git stash pop"), TEST, DONE], set()),
    "a look at stashes": ([EDIT, TEST, bash("git stash list"), bash("git log --grep 'git stash'"), DONE], set()),
    "a file that is read around another edit": ([CAT, OTHER, CAT, TEST, DONE], {"file_read_again"}),
    "an answer that is handed in": ([bash("ls", "a.csv"), use("submit", total="4")], set()),
    "an answer in words": ([bash("ls", "a.csv"), use("finish", message="It is 4.")], set()),
    "a flag that is handed in": ([bash("cat a.txt", "x"), bash("submit 'flag{x}'")], set()),
    "words after a look at code": (
        [use("file_editor", "x", command="view", path="a.py"), use("finish", message="Done.")], {"submitted_unchanged"},
    ),
    "work that a script may have changed": ([bash("python migrate.py", "ok"), use("done")], set()),
    "a look in a terminal": (
        [use("bash_command", "a", keystrokes="ls\n"), use("mark_task_complete")], {"submitted_unchanged"},
    ),
    "a call at the end": ([bash("ls", "a.py")], {"cut_off"}),
    "a question at the end": ([say("Done."), say("And the other one?", "user")], {"cut_off"}),
    "thanks at the end": ([say("Done."), say("Thank you, goodbye!", "user")], set()),
    "thanks in German": ([say("Done."), say("Danke, das passt.", "user")], set()),
    "thanks in Chinese": ([say("Done."), say("谢谢", "user")], set()),
    "no more to do": ([say("Done."), say("Great, that will be all.", "user")], set()),
    "thanks with a request": ([say("Done."), say("Thanks. Please move the second one too.", "user")], {"cut_off"}),
    "a request in French": ([say("Done."), say("Merci de changer aussi la date", "user")], {"cut_off"}),
}  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
def test_a_run_has_its_events_and_no_others(run):
    turns, expected = RUNS[run]
    assert found(*turns) == expected


FORMS = {
    "Respond with JSON only.": ('{"a": 1}', "Here it is: a is 1"),
    "Return raw JSON.": ("Thought: I know it.\nFinal Answer: [3]", "Final Answer: it is 3"),
    "Answer with a single integer.": ("12", "About a dozen."),
    "Please reply with yes or no only.": ("No.", "It depends."),
    "Put the result in \\boxed{}.": ("\\boxed{3}", "3"),
    "Please answer true or false.": ("False", "Who knows?"),
    "Reply with yes or no.": ("yes", "Perhaps, it depends."),
    "Answer with the letter only.": ("C", "It is the third one."),
    "Give a single word.": ("Whale", "It is a whale."),
    "Enclose your final result in <total> tags.": ("<total>3</total>", "3"),
    "Write the answer after ####.": ("so\n#### 3", "It is 3."),
    "Return a valid JSON list.": ("[3]", "It is 3."),
}
OF_OTHERS = (
    "Write a script that returns only a number.",
    "Our service must answer with JSON only. Please write the manual.",
    "Tell me what \\boxed does.",
    "Write an essay about JSON.",
    "Should he say yes or no?",
    "The tool gives its result in <rows> tags.",
)


@pytest.mark.parametrize("asked", FORMS)
def test_an_answer_has_the_form_that_was_asked_for(asked):
    right, wrong = FORMS[asked]
    assert found(say(asked, "user"), say(right)) == set()
    assert found(say(asked, "user"), say(wrong)) == {"wrong_answer_form"}
    assert found(say("The tools answer in JSON.", "user"), say(wrong)) == set()


@pytest.mark.parametrize("instruction", OF_OTHERS)
def test_an_instruction_about_something_else_asks_for_no_form_of_the_answer(instruction):
    assert found(say(instruction, "user"), say("Here is what I think about it.")) == set()
