import errno
import json
import multiprocessing
import os
import re
import signal
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from click.testing import CliRunner
from nbformat.v4 import new_markdown_cell, new_notebook

from evalkit.__main__ import run as command_line
from evalkit.cli import main
from evalkit.reports import kernels, plan, run
from evalkit.reports.batch import line_of
from evalkit.reports.report import input_fingerprint, read_record, stamp_of
from tests.mindcraft.builders import write_all

FORK = multiprocessing.get_context("fork")  # saves the time that Python and evalkit take to start


@pytest.fixture
def batch(tmp_path):
    """Return a function that plans and runs a batch; `lines` of what it returns holds what was said."""

    def go(targets=(), **options):
        planned = {key: options.pop(key) for key in ("values", "texts", "name") if key in options}
        lines = []
        summary = run(plan(targets, **planned), output=tmp_path / "out", say=lines.append, **{"jobs": 2, **options})
        go.lines = lines
        return summary

    go.output = tmp_path / "out"
    go.record = lambda key: read_record(tmp_path / "out", key)
    go.notebook = lambda key: nbformat.read(tmp_path / "out" / f"{key}.ipynb", as_version=4)
    go.page = lambda key: (tmp_path / "out" / f"{key}.html").read_text()
    go.files = lambda: sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*"))
    return go


def texts(nb):
    return [output.get("text", "") for cell in nb.cells for output in cell.get("outputs", [])]


def test_a_report_gets_its_parameters_with_their_types(project, batch):
    cell = "a: str = ''\nb: float = 0.0\nc: list[int] = []\nd: bool = False\ne: dict[str, str] = {}"
    values = {"a": "x\"y'z\n{b}", "b": 1, "c": [1, 2], "d": True, "e": {"k": "v"}}
    project("one", "print([a, b, c, d, e])", parameters=cell)
    (key,) = batch(["one"], values=values).made
    assert texts(batch.notebook(key)) == [f"{[values['a'], 1.0, [1, 2], True, {'k': 'v'}]}\n"]


FROM_ELSEWHERE = [
    {"tables": [{"name": "t", "file": "../../victim/kept.txt", "rows": 1}]},
    {"figures": ["{victim}/kept.txt"]},
    {"page": "../victim/kept.txt"},
    {"tables": 5},
    {"headline": "x"},
    {"seconds": None},
]


def test_a_record_from_elsewhere_can_name_no_file_of_others_and_the_report_is_made_again(project, batch, tmp_path):
    project("one", "print(1)")
    victim = tmp_path / "victim" / "kept.txt"
    write_all(tmp_path, {"victim/kept.txt": "kept"})
    batch(["one"])
    path = batch.output / ".evalkit/one/defaults.json"
    made = json.loads(path.read_text())
    for change in FROM_ELSEWHERE:
        path.write_text(json.dumps(made | change).replace("{victim}", str(victim.parent)))
        assert batch(["one"]).made == ["one/defaults"]
        assert victim.read_text() == "kept"


def test_each_report_runs_in_a_process_of_its_own(project, batch):
    code = "import os, numpy\nstate = globals().get('state', 0) + 1\nprint(state, os.getpid(), numpy.random.random())"
    project("one", code, parameters="i: int = 0", params={"s.yaml": "i: [1, 2, 3]"})
    states, processes, numbers = zip(*(texts(batch.notebook(key))[0].split() for key in batch().made), strict=True)
    assert states == ("1",) * 3
    assert len(set(processes)) == len(set(numbers)) == 3


CELLS = {
    "figure": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    "streams": "import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('more')",
    "program": "!echo shell",
    "later": "from IPython.display import *\nhandle = display('before', display_id=True)\nhandle.update('after')",
    "await": "import asyncio\nawait asyncio.sleep(0.01, 'awaited')",
    "pickle": "import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))) is A",
    "error": "def f(): raise KeyError('k')\nf()",
}


def test_a_forked_kernel_shows_what_one_started_anew_shows(project, batch, monkeypatch):
    project("one", *CELLS.values(), tags=["raises-exception"])
    shown = []
    for method in ("fork", "spawn"):
        monkeypatch.setattr(kernels, "start_method", lambda method=method: method)
        (key,) = batch(["one"], force=True).made
        cells = json.dumps([cell.get("outputs") for cell in batch.notebook(key).cells])
        shown.append(re.sub(r"ipykernel_\d+|0x[0-9a-f]{6,}", "", cells))
    assert shown[0] == shown[1]
    assert shown[0].count("image/png") == 1


@pytest.mark.skipif(kernels.start_method() != "fork", reason="kernels of Jupyter begin with the working folder")
def test_modules_of_the_working_folder_can_be_imported_and_hide_no_installed_ones(project, batch, tmp_path):
    ran = tmp_path / "ran"
    files = {f"{name}.py": f"open({str(ran)!r}, 'w')" for name in ("storemagic", "wave", "seaborn")}
    write_all(tmp_path, {**files, "mine.py": "value = 5"})
    project("one", "import mine, seaborn, wave\nprint(mine.value, hasattr(wave, 'open'))")
    (key,) = batch(["one"]).made
    assert texts(batch.notebook(key)) == ["5 True\n"]
    assert not ran.exists()


NEEDS_MEMORY = """
import resource
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, used + 2**27))
bytearray(2**30)
"""
BAD = {
    "fails": (["raise ValueError('no')", "print('after')"], "ValueError: no"),
    "dies": (["import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"], "DeadKernelError: "),
    "runs out of memory": ([NEEDS_MEMORY], "MemoryError"),
    "is interrupted": (["import signal\nsignal.raise_signal(signal.SIGINT)", "print(1)"], "KeyboardInterrupt: "),
    "needs a kernel that is not there": ([], "NoSuchKernel: No such kernel named no-such"),
}
HANGS = {
    "hangs": "time.sleep(60)",
    "will not be interrupted": "while True:\n    try:\n        time.sleep(60)\n    except TimeoutError:\n        pass",
}
LATE = "import os, time\nopen(f'late-{os.getppid()}', 'w').close()\nprint('before')"  # an hour passes for this report


class Clock:
    """The clock of the processes that make reports, by which a time limit ends after a cell, however busy it is."""

    @staticmethod
    def monotonic():
        return time.monotonic() + 3600 * Path(f"late-{os.getpid()}").exists()


@pytest.mark.slow
def test_a_bad_notebook_harms_only_its_own_report(project, batch, monkeypatch):
    monkeypatch.setattr("evalkit.reports.build.time", Clock)
    causes = {name: error for name, (_, error) in BAD.items()}
    for name, (codes, _) in BAD.items():
        kernel = {"kernelspec": {"name": "no-such", "language": "python", "display_name": ""}} if not codes else {}
        project(name, "print('before')", *codes, metadata=kernel)
    for name, code in HANGS.items():
        project(name, LATE, code)
        causes[name] = "TimeoutError: not finished after 600 s"
    project("good", "print('good')")
    summary = batch([*causes, "good"])
    assert summary.made == ["good/defaults"]
    assert sorted(summary.failed) == sorted(f"{name}/defaults" for name in causes)
    for name, error in causes.items():
        record = batch.record(f"{name}/defaults")
        assert record["error"].startswith(error)
        page, said = batch.page(record["key"]), texts(batch.notebook(record["key"]))
        assert "This report failed." in page
        if "kernel" not in name:
            assert record["cell"] == 2
            assert said[:1] == ["before\n"]
            assert "after\n" not in said
            assert 'id="failed"' in page
    assert any(re.match(r"\[\d/8\] FAILED    fails/defaults  ValueError: no  \(\d", line) for line in batch.lines)


def test_an_error_that_holds_credentials_does_not_hand_them_out_as_the_cause(project, batch, tmp_path, monkeypatch):
    monkeypatch.setenv("PLACE", "s3://KEY:SEKRET@bucket/p")
    project("one", "import os\nraise OSError(os.environ['PLACE'])")
    batch(["one"])
    made = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert [path.name for path in made if "SEKRET" in path.read_text()] == []
    assert batch.notebook("one/defaults").cells[-1].outputs[-1].evalue == "s3://…@bucket/p"
    assert batch(["one"]).failed == ["one/defaults"]
    assert batch.record("one/defaults")["why"] == "failed last time"


def test_one_plain_line_per_report():
    record = {"key": "one/a", "seconds": 1.24, "why": "new", "error": "E: \x1b[31mx\nmore"}
    small, large = (
        {"headline": None, "page_bytes": 123_456},
        {"headline": {"text": "60 %", "label": "success\x1b[31m"}, "page_bytes": 1_500_001},
    )
    assert line_of(record | small, "made") == "made      one/a  (1.2 s, 0.12 MB, new)"
    end = "(1.2 s, 1.50 MB, more than 1.5, new)"
    assert line_of(record | large, "made") == f"made      one/a  60 % success\ufffd[31m  {end}"
    assert line_of(record | small, "failed") == "FAILED    one/a  E: \ufffd[31mx  (1.2 s)"


def _runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


def test_nothing_is_made_twice_and_every_change_is_named(project, batch, tmp_path):
    cell, stored = 'runs: str = ""\nn: int = 1', tmp_path / "out/.evalkit/one/a.json"
    (tmp_path / "logs/sub").mkdir(parents=True)
    for name in ("a.json", "sub/b.json"):
        (tmp_path / "logs" / name).write_text("{}")
    project("one", "print(n)", parameters=cell, params={"a.yaml": "runs: logs"})

    def why(**options):
        made = batch(**options).made
        return batch.record("one/a")["why"] if made else "unchanged"

    def store(part, value):
        record = json.loads(stored.read_text())
        record["stamp"][part] = value
        stored.write_text(json.dumps(record))

    changes = {
        "new": lambda: None,
        "unchanged": lambda: None,
        "changed parameters: n": lambda: (tmp_path / "params/one/a.yaml").write_text("runs: logs\nn: 2"),
        "changed notebook": lambda: project("one", "print(n + 1)", parameters=cell),
        "one of its files is missing": (tmp_path / "out/one/a.html").unlink,
        "changed packages: pandas": lambda: store(
            "packages", {**batch.record("one/a")["stamp"]["packages"], "pandas": 0}
        ),
        "changed evalkit": lambda: store("evalkit", "0+0"),
    }
    for said, make in changes.items():
        make()
        assert why() == said
    stored.write_text("{")
    assert why() == "new"
    assert why(force=True) == "forced"
    assert why(code=False) == "changed page options"
    assert "print(n" not in batch.page("one/a")
    assert why(code=False) == "unchanged"


def test_a_report_is_due_if_its_notebook_gives_a_section_another_key(tmp_path):
    stamps = set()
    for tags in ([], ["section:runs"], ["section:pairs"]):
        cells = [new_markdown_cell("## Runs", metadata={"tags": tags}, id="runs")]
        nbformat.write(new_notebook(cells=cells), tmp_path / "one.ipynb")
        (report,) = plan([str(tmp_path / "one.ipynb")])
        stamps.add(stamp_of(report, [], str)["notebook"])
    assert len(stamps) == 3


def test_every_change_below_a_folder_changes_the_mark_of_an_input(tmp_path):
    file, other = tmp_path / "a.json", tmp_path / "sub/b.json"
    other.parent.mkdir()
    changes = (
        lambda: file.write_text("{}"),
        lambda: os.utime(file, (1, 1)),
        lambda: file.write_text("[1]") and os.utime(file, (1, 1)),
        lambda: file.rename(tmp_path / "z.json"),
        other.touch,
        other.unlink,
    )
    marks = []
    for change in changes:
        change()
        marks.append(input_fingerprint(str(tmp_path)))
    assert len(set(marks[:5])) == 5
    assert marks[5] == marks[3]


def test_what_names_no_file_has_no_mark_and_urls_always_have_another():
    texts = ["gpt-4o", "meta-llama/Llama-3-8B", "nowhere/*.json", "samples:none", "a\0b", "x" * 5000]
    assert [text for text in texts if input_fingerprint(text)] == []
    assert len(input_fingerprint("samples:mindcraft")) == 16
    assert input_fingerprint("s3://bucket/logs") != input_fingerprint("s3://bucket/logs")


SHOW_ALL = """
import evalkit
import pandas as pd
from evalkit.display import new_axes

evalkit.headline({"estimate": share, "low": 0.3, "high": 0.5, "n": 4}, "share")
evalkit.publish(runs=pd.DataFrame({"a": [1], "b": [2]}))
evalkit.show_figure(new_axes(), alt="Empty.", name="NAME")
"""


def test_headline_tables_and_named_figures_are_saved_beside_the_page_which_links_to_them(project, batch, tmp_path):
    cell, params = "share: float = 0.5", {"a.yaml": "share: 0.4"}
    project("one", SHOW_ALL.replace("NAME", "first"), parameters=cell, params=params)
    batch()
    page, folder, record = batch.page("one/a"), tmp_path / "out/one/a", batch.record("one/a")
    assert record["headline"]["text"] == "40 % [30, 50]"
    assert record["tables"] == [{"name": "runs", "file": "a/runs.csv", "rows": 1}]
    assert (folder / "runs.csv").read_text() == "a,b\n1,2\n"
    assert '<a href="a/runs.csv">runs.csv</a>' in page
    assert "[runs.csv](<a/runs.csv>): 1 row" in str(batch.notebook("one/a").cells[-1])
    begins = {"svg": b"<svg ", "pdf": b"%PDF", "png": b"\x89PNG"}
    assert all((folder / f"first.{form}").read_bytes().startswith(begin) for form, begin in begins.items())
    assert record["figures"] == [f"a/first.{form}" for form in begins]
    assert re.findall(r'<a href="([^"]*)">(?:SVG|PDF|PNG)</a>', page) == record["figures"]
    assert not re.search("vnd.evalkit.(table|figure)", str(batch.notebook("one/a").cells[1:]))
    (folder / "first.pdf").unlink()
    assert batch().made == ["one/a"]
    project("one", SHOW_ALL.replace("NAME", "second"), parameters=cell)
    batch()
    assert {name for name in batch.files() if "first." in name} == set()


@pytest.mark.parametrize("full", ["defaults.html", "defaults.ipynb"])
def test_a_full_disk_fails_one_report_in_a_sentence_and_the_batch_goes_on(project, batch, monkeypatch, full):
    fault = f"large/{full}: No space left on device"
    for name in ("large", "small"):
        project(name, "print(1)")
    replace = os.replace

    def move(source, target):  # what is forked later inherits it
        if str(target).endswith(f"large/{full}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        return replace(source, target)

    monkeypatch.setattr(os, "replace", move)
    monkeypatch.setattr("evalkit.reports.batch.start_method", lambda: "fork")  # whatever threads other tests have left
    summary = batch(["large", "small"])
    assert (summary.made, summary.failed) == (["small/defaults"], ["large/defaults"])
    (line,) = [line for line in batch.lines if "FAILED" in line]
    assert fault in line
    assert batch.record("large/defaults")["error"].endswith(fault)
    assert "No space left on device" in summary.index.read_text()


@pytest.mark.parametrize("moment", [1, 2, 3])
def test_a_report_that_is_killed_as_it_writes_leaves_no_half_file_and_is_made_again(
    project, batch, monkeypatch, moment
):
    project("one", "print(1)")
    replace, this, moves = os.replace, os.getpid(), []

    def move(source, target):
        moves.append(target)
        if os.getpid() != this and len(moves) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", move)
        patched.setattr("evalkit.reports.batch.start_method", lambda: "fork")
        assert batch(["one"]).failed == ["one/defaults"]
    assert batch.record("one/defaults")["error"] == "the report's process ended with exit code -9"
    whole = [file for file in batch.files() if re.fullmatch(r"one/[^.].*\.(html|ipynb)", file)]
    assert len(whole) == moment - 1
    assert all((batch.output / file).read_text().rstrip().endswith(("</html>", "}")) for file in whole)
    assert batch(["one"]).made == ["one/defaults"]
    assert {"one/defaults.html", "one/defaults.ipynb"} <= set(batch.files())


def test_two_batches_at_once_write_whole_files_into_one_folder(project, batch, tmp_path):
    project("one", "print(1)")
    both = [FORK.Process(target=batch, args=(["one"],)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert batch(["one"]).unchanged == ["one/defaults"]
    assert batch.page("one/defaults").rstrip().endswith("</html>")
    assert "one/defaults.html" in (tmp_path / "out/index.html").read_text()


STARTS_OTHERS = """
import os, subprocess, time
if i:
    children = [subprocess.Popen(["sleep", "60"], start_new_session=own).pid for own in (False, True)]
    open(f"new-{i}", "w").write(" ".join(map(str, [os.getpid(), *children])))
    os.rename(f"new-{i}", f"began-{i}")
    time.sleep(60)
"""


def _command(*words):
    """Run a command in this process, in a session of its own, with its output in files."""
    os.setsid()
    sys.argv = ["evalkit", *words]
    with open("out.txt", "w") as sys.stdout, open("err.txt", "w") as sys.stderr:
        command_line()


@pytest.mark.parametrize(("how", "pause"), [(signal.SIGINT, 0), (signal.SIGTERM, 0.02), (signal.SIGKILL, 0)])
def test_a_batch_is_ended_with_all_that_it_started_and_keeps_what_is_made(project, batch, tmp_path, how, pause):
    project("one", STARTS_OTHERS, parameters="i: int = 0", params={"s.yaml": "i: [0, 1, 2, 3]"})
    process = FORK.Process(target=_command, args=("report", "--output", "out", "--jobs", "2"))
    process.start()
    _until(lambda: all((tmp_path / f"began-{i}").exists() for i in (1, 2)))
    started = {int(number) for i in (1, 2) for number in (tmp_path / f"began-{i}").read_text().split()}
    below = {child.pid for child in psutil.Process(process.pid).children(recursive=True)}
    os.kill(process.pid, how)
    time.sleep(pause)
    os.kill(process.pid, how)  # a second one changes nothing
    process.join()
    if how == signal.SIGKILL:
        assert process.exitcode == -how
        below -= started  # what a notebook started is left alone
    else:
        assert (process.exitcode, (tmp_path / "err.txt").read_text()) == (130, "")
        assert "Stopped; run the same command to continue. 1 made" in (tmp_path / "out.txt").read_text()
        below |= started
    _until(lambda: not any(map(_runs, below)))
    (record,) = map(json.loads, (path.read_text() for path in (tmp_path / "out/.evalkit/one").glob("*.json")))
    assert record["name"] == "s-0"
    assert batch.page("one/s-0").rstrip().endswith("</html>")
    nbformat.validate(batch.notebook("one/s-0"))
    assert batch(["one"], values={"i": 0}, name="s-0").unchanged == ["one/s-0"]


def _until(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_command_says_what_became_of_each_and_exits_with_1_after_a_failure(project):
    project("one", "print(1)")
    project("two", "raise ValueError('no')")
    project("empty", "import evalkit", "evalkit.crafter.load('notebooks')")
    result = CliRunner().invoke(main, ["report", "one", "two", "empty", "--output", "out"])
    assert (result.exit_code, result.stderr) == (1, "")
    for said in ("made      one/", "FAILED    two/defaults  ValueError: no ", "FAILED    empty/defaults  notebooks: "):
        assert f"/3] {said}" in result.stdout
    assert "\n1 made, 2 failed in " in result.stdout


def test_the_command_says_once_how_the_logs_of_equal_reports_were_read(project):
    for name in ("east", "west"):
        Path(f"{name}.csv").write_text("who,quest,marks\nelm,q1,0.5\n")
    code = "import evalkit\nlogs = evalkit.load(path, columns=columns)\nevalkit.provenance(logs, path=path)"
    project("one", code, parameters='path: str = ""\nnumber: int = 0\ncolumns: list[str] = []')
    given = ["-p", "number", "1", "-p", "number", "2", "-p", "path", "east.csv", "-p", "path", "west.csv"]
    for role in ("model_name=who", "task_id=quest", "score=marks"):
        given += ["-p", "columns", role]
    for status in ("4 made", "4 unchanged"):
        said = CliRunner().invoke(main, ["report", "one", *given, "--output", "out"]).stdout.splitlines()
        assert status in said[-2]
        for name in ("east", "west"):
            line = f"  Columns of {name}.csv: model_name = who, task_id = quest, score = marks."
            assert said.count(line) == 1
            assert f"{name}.csv" in said[said.index(line) - 1]
            assert line.strip() in Path("out/index.html").read_text()


def test_the_command_names_notebooks_of_the_current_folder_that_it_executes(project):
    project("one", "print(1)")
    result = CliRunner().invoke(main, ["report", "one", "--output", "out"])
    assert result.stdout.startswith("executing notebooks of the current folder: notebooks/one.ipynb\n")
    given = CliRunner().invoke(main, ["report", "one", "--notebooks", "notebooks", "--output", "out"])
    assert "executing" not in given.stdout


def test_a_report_of_other_parameters_gets_a_marked_name_and_keeps_it(project, batch):
    project("one", "print(path)", parameters='path: str = ""')
    assert batch(["one"], values={"path": "/a/runs"}).made == ["one/runs"]
    (other,) = batch(["one"], values={"path": "/b/runs"}).made
    assert re.fullmatch("one/runs-[0-9a-f]{6}", other)
    assert batch(["one"], values={"path": "/b/runs"}).unchanged == [other]
    assert batch(["one"], values={"path": "/a/runs"}).unchanged == ["one/runs"]
