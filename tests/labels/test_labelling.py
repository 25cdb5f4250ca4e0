import csv
import io
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading

import pandas as pd
import pytest
from click.testing import CliRunner

import evalkit
from evalkit.cli import main
from evalkit.io import SourceError, resolve
from evalkit.kinds import Call, Transcript, Turn
from evalkit.labels import (
    Session,
    compare_judges,
    draw,
    label_widget,
    majority,
    of_question,
    read_labels,
    terminal,
    write_page,
)
from evalkit.labels.answers import COLUMNS, Table, append_answer
from evalkit.labels.blind import HIDDEN, blinded
from tests.browser import needs_browser, open_browser

browser = pytest.fixture(scope="module")(open_browser)
SOURCE, QUESTION = "samples:trajectories/harbor", "Did the agent test, and <b>fix</b>?"


@pytest.fixture(scope="module")
def logs():
    return evalkit.load(SOURCE)


def press(keys, path, *options):
    arguments = ["label", SOURCE, "--question", QUESTION, "--output", str(path), "--who", "ann", *options]
    result = CliRunner().invoke(main, arguments, input=keys)
    assert result.exit_code == 0, result.output
    return result.output


def test_any_first_units_have_the_models_and_outcomes_of_all(logs):
    units = draw(logs)
    shares = units.groupby(["model_name", "outcome"]).size() / len(units)
    for n in (10, 20, 40):
        counts = units.head(n).groupby(["model_name", "outcome"]).size().reindex(shares.index, fill_value=0)
        assert ((counts - n * shares).abs() <= 1).all()
    assert draw(logs)["run_id"].equals(units["run_id"])
    assert not draw(logs, seed=1)["run_id"].equals(units["run_id"])


def test_each_unit_is_as_likely_to_be_among_the_first(logs):
    first = pd.concat([draw(logs, seed=seed).head(20) for seed in range(50)])
    counts = first["run_id"].value_counts().reindex(logs.runs["run_id"], fill_value=0)
    assert abs(counts.mean() - 50 * 20 / 70) < 1e-9
    assert counts.between(1, 30).all()  # 14 on average, standard deviation 3.2


def test_keys_label_runs_and_a_later_session_goes_on(tmp_path):
    path = tmp_path / "labels.csv"
    assert "5 labels of 60" not in press("y n", path)
    assert "4 labels of 60" in press("msaw it, twice\nusyq", path)
    rows = pd.read_csv(path, dtype="str", keep_default_na=False)
    assert tuple(rows) == COLUMNS
    assert rows["label"].tolist() == ["1", "0", "", "1"]
    assert rows["note"].tolist() == ["", "", "saw it, twice", ""]
    assert rows["run_id"].is_unique
    assert set(rows["question"]) == {QUESTION}


def test_without_single_keys_a_line_is_read(monkeypatch, logs, tmp_path):
    class Lines(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(terminal, "HAS_KEYS", False)
    monkeypatch.setattr("sys.stdin", Lines("y\n\nm\nsaw it\nNO\n"))
    session = Session(logs, QUESTION, tmp_path / "labels.csv", number=5)
    terminal.label_in_terminal(session)
    rows = read_labels(session.path).rows
    assert rows["label"].tolist() == [1, 0]
    assert rows["note"].tolist() == ["", "saw it"]


def test_labels_are_not_added_to_a_file_with_other_columns(logs, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("run_id,label\na,1\n")
    with pytest.raises(SourceError, match="its columns are not run_id, turn"):
        Session(logs, QUESTION, path)
    assert path.read_text() == "run_id,label\na,1\n"
    path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8-sig")  # as spreadsheets save it
    assert Session(logs, QUESTION, path).done == 0


def test_others_label_the_same_runs_in_the_same_file(tmp_path, logs):
    path = tmp_path / "labels.csv"
    press("yy", path)
    bob = Session(logs, QUESTION, path, who="bob")
    assert bob.done == 0
    bob.save("0")
    bob.save("1")
    found = majority(of_question(read_labels(str(path)).rows))
    assert (found.people, found.several, found.disagreed, found.ties, len(found.rows)) == (2, 2, 1, 1, 1)
    assert Session(logs, "Another question?", path, who="ann").done == 0


def test_people_label_copies_of_a_folder_under_different_paths(tmp_path):
    folders = [shutil.copytree(resolve(SOURCE), tmp_path / name) for name in ("ann/runs", "bob's copy")]
    people = [evalkit.load(folder) for folder in folders]
    paths = [str(tmp_path / f"labels-{place}.csv") for place in range(2)]
    for copy, path, who in zip(people, paths, ("ann", "bob"), strict=True):
        session = Session(copy, QUESTION, path, who=who, number=12)
        for label in ("1", "0") * 5:
            session.save(label)
    assert Session(people[1], QUESTION, paths[0], who="ann", number=12).done == 10
    judged = people[1].runs[["run_id"]].assign(turn=pd.NA, judge="j", verdict=1.0).astype({"turn": "Int64"})
    for copy in people:
        found = compare_judges(copy, read_labels(paths), Table(judged, [])).people
        assert (found.people, found.several, found.disagreed, len(found.rows)) == (2, 10, 0, 10)


def test_a_killed_process_loses_at_most_the_current_label(tmp_path):
    path = tmp_path / "labels.csv"
    program = f"""
from evalkit.labels.answers import append_answer
for place in range(100_000):
    append_answer({str(path)!r}, (f"run-{{place}}", None), "q", "1", "ann", "a, note")
    print(place, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        for _ in range(50):
            last = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        last = max([last, *map(int, process.stdout.read().split())])
    rows = read_labels(str(path)).rows
    assert len(rows) >= last + 1
    with path.open("a") as file:
        file.write("run-cut,,q,")  # of a disk that was full
    append_answer(str(path), ("run-after", None), "q", "0", "ann")
    assert read_labels(str(path)).rows["run_id"].iloc[-1] == "run-after"


def test_no_spreadsheet_takes_a_cell_of_labels_for_a_formula(tmp_path):
    path = str(tmp_path / "labels.csv")
    append_answer(path, ("-3", None), "=1+1", "1", "@who", "+SUM(A1)")
    with open(path, encoding="utf-8") as file:
        cells = list(csv.reader(file))[1]
    assert [cell for cell in cells if cell.startswith(("=", "+", "@"))] == []
    row = read_labels(path).rows.iloc[0]
    assert [row["run_id"], row["question"], row["who"], row["note"]] == ["-3", "=1+1", "@who", "+SUM(A1)"]


def test_several_people_write_into_one_file_at_a_time(tmp_path):
    path = str(tmp_path / "labels.csv")

    def work(who):
        for place in range(50):
            append_answer(path, (f"run-{place}", place), "q", "1", who)

    people = [threading.Thread(target=work, args=(who,)) for who in ("ann", "bob", "eve")]
    for person in people:
        person.start()
    for person in people:
        person.join()
    rows = read_labels(path).rows
    assert rows.groupby("who").size().tolist() == [50, 50, 50]


def test_transcripts_hide_model_outcome_and_path():
    turns = [
        Turn("lab/Ash-2", "system", "Work in /runs/ash-2/logs", ("final message",)),
        Turn("ash-2", "assistant", "I am Ash-2; the score is mine", ("decided",), ("decision",)),
        Turn("verifier", "system", "reward = 1.0"),
        Turn("", "system", "washed-2x ash-22 stays"),
    ]
    given = Transcript("/runs/ash-2/1.json", ["model lab/ash-2", "success yes"], turns)
    found = blinded(given, ["lab/ash-2"], "1 of 9", "task of ash-2")
    assert found.title == "1 of 9"
    assert found.facts == ["task task of [model]"]
    assert [turn.text for turn in found.turns] == [
        HIDDEN, "I am [model]; the score is mine", HIDDEN, "washed-2x ash-22 stays",
    ]  # fmt: skip
    assert not any(turn.marks or turn.events for turn in found.turns)
    assert "ash-2/" not in found.text().lower()


@pytest.mark.parametrize(
    ("role", "text", "shown"),
    [
        ("tool", "Final score: 0.75\nReward: 1\nrows: 3", "rows: 3"),
        ("user", "RESULT: PASS", HIDDEN),
        ("tool", "Grade = 3", HIDDEN),
        ("user", "Result: FAILED: two tests are red", "two tests are red"),
        ("user", "The result: passports are printed", "The result: passports are printed"),
        ("assistant", "Score: 3", "Score: 3"),
        ("tool", "", ""),
    ],
)
def test_lines_at_the_end_that_state_the_outcome_are_hidden(role, text, shown):
    found = blinded(Transcript("", [], [Turn("x", "assistant", "Hello"), Turn("x", role, text)]), [], "")
    assert found.turns[1].text.strip() == shown


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("Task failed: 3 of 4", "done"),
        ("score: 0.5", "done\ncall: verify"),
        ("rows: 3", "done\ncall: verify\nresult: rows: 3"),
    ],
)
def test_results_of_calls_that_state_the_outcome_are_hidden(result, shown):
    turn = Turn("x", "action", "done", call=Call("verify", "", result))
    found = blinded(Transcript("", [], [turn, Turn("x", "assistant", "Bye")]), [], "")
    assert found.turns[0].text == shown


@pytest.mark.parametrize("keys", ["\x1b[B", "\x1bOQ", "\x1bOS", "\x1b[15~", "\x1b[1;5D", "\x1b[[A"])
def test_arrows_and_function_keys_are_no_answers(monkeypatch, keys):
    fd, end = pty.openpty()
    with os.fdopen(end, encoding="utf-8") as terminal_input:
        monkeypatch.setattr("sys.stdin", terminal_input)
        os.write(fd, f"{keys}y".encode())
        assert [terminal._key(), terminal._key()] == ["\x1b", "y"]
    os.close(fd)


@pytest.mark.parametrize("source", [SOURCE, "samples:mindcraft/runs", "samples:crafter", "samples:steps"])
def test_no_name_of_a_model_and_no_path_is_shown(source, tmp_path):
    logs = evalkit.load(source)
    session = Session(logs, QUESTION, tmp_path / "labels.csv", number=8)
    shown = "".join(session.transcript(unit).text() for unit in session.left).lower()
    assert len(shown) > 200
    assert str(os.path.dirname(logs.runs["source"].iloc[0])).lower() not in shown
    for name in logs.runs["model_name"].dropna().unique():
        assert name.lower() not in shown.replace("[model]", "")


def test_people_without_a_name_are_those_of_their_files(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "labels.csv").write_text("run_id,label,who\nx,1,\nx,0,\ny,1,eve\n")
    found = majority(read_labels([str(tmp_path / folder / "labels.csv") for folder in ("a", "b")]).rows)
    assert (found.people, found.several, found.rows["label"].tolist()) == (3, 1, [0, 1])


@pytest.mark.parametrize(
    ("text", "rows", "problem"),
    [
        ("run_id,label\na,yes\nb,NO\nc,\n", 3, ""),
        ("run_id,label\na,perhaps\nb,1\n", 1, "row 1: label 'perhaps' is no label"),
        ("run_id,label\na,0.5\nb,1\n", 1, "row 1: a label is 0 or 1"),
        ("run_id,label\n,1\nb,1\n", 1, "run_id '' is no run_id"),
        ("run_id,turn,label\na,x,1\nb,2,1\n", 1, "row 1: turn 'x' is no turn"),
        ("Run_ID,Label\na,1\nRun_ID,Label\nb,0\n", 2, ""),
        ('{"run_id": "a", "label": true}\n{"run_id": "b", "label": 0}\n{"run', 2, "1 broken line left out"),
    ],
)
def test_rows_that_are_no_labels_are_named(text, rows, problem, tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text(text)
    found = read_labels(str(path))
    assert len(found.rows) == rows
    assert problem in "; ".join(found.problems)
    assert bool(found.problems) == bool(problem)


def test_several_questions_in_a_file_need_a_choice():
    labels = pd.DataFrame({"run_id": ["a", "a"], "question": ["x?", "y?"], "label": [1.0, 0.0]})
    assert of_question(labels, "y?")["label"].tolist() == [0.0]
    for question in ("", "z?"):
        with pytest.raises(SourceError, match="question"):
            of_question(labels, question)


@needs_browser
def test_the_page_keeps_labels_and_saves_them_without_a_network(browser, logs, tmp_path):
    path = tmp_path / "label.html"
    write_page(Session(logs, QUESTION, tmp_path / "labels.csv", who="ann", number=4), path)
    text = path.read_text()
    assert "default-src &#39;none&#39;" in text
    context = browser.new_context(offline=True, accept_downloads=True)
    page = context.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(path.as_uri())
    assert page.locator("h1").inner_text() == QUESTION
    page.keyboard.press("y")
    page.fill("#note", '=a "quote", y')
    page.click("[data-label='0']")
    page.reload()  # as after a crash
    assert "2 of 4" in page.locator("#progress").inner_text()
    page.keyboard.press("u")
    with page.expect_download() as download:
        page.keyboard.press("d")
    saved = tmp_path / "saved.csv"
    download.value.save_as(saved)
    rows = read_labels(str(saved)).rows
    assert rows["label"].fillna(-1).tolist() == [1, 0, -1]
    assert rows["note"].tolist() == ["", '=a "quote", y', ""]
    assert '"\'=a ""quote' in saved.read_text()  # an apostrophe, so that no spreadsheet computes it
    assert set(rows["question"]) == {QUESTION}
    assert set(rows["run_id"]) <= set(logs.runs["run_id"])
    assert not complaints
    context.close()


def test_a_cell_of_a_notebook_stores_labels(logs, tmp_path):
    widgets = pytest.importorskip("ipywidgets")
    path = tmp_path / "labels.csv"
    box = label_widget(Session(logs, QUESTION, path, who="ann", number=2))
    buttons = {child.description: child for child in box.children[2].children if isinstance(child, widgets.Button)}
    buttons["later"].click()
    buttons["yes"].click()
    buttons["no"].click()
    assert "2 of 2" in box.children[0].value
    assert "<b>fix" not in box.children[0].value
    assert buttons["yes"].disabled
    assert read_labels(str(path)).rows["label"].tolist() == [1, 0]
