import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.cli.reports import remove_reports
from evalkit.reports import plan, run
from evalkit.reports.records import read_record

HEADLINE = (
    "from IPython.display import display\n"
    "display({'application/vnd.evalkit.headline+json': "
    "{'label': 'share', 'text': f'{share} %', 'estimate': share / 100, 'n': 4, 'percent': True}, "
    "'text/plain': 'x'}, raw=True)"
)


@pytest.fixture
def batch(tmp_path):
    """Return a function that plans and runs a batch; `lines` of what it returns holds what was said."""

    def go(targets=(), **options):
        planned = {key: options.pop(key) for key in ("values", "texts", "name") if key in options}
        lines = []
        summary = run(plan(targets, **planned), output=tmp_path / "out", say=lines.append, **{"jobs": 2, **options})
        go.lines = lines
        return summary

    go.record = lambda key: read_record(tmp_path / "out", key)
    go.notebook = lambda key: nbformat.read(tmp_path / "out" / f"{key}.ipynb", as_version=4)
    go.page = lambda key: (tmp_path / "out" / f"{key}.html").read_text()
    go.files = lambda: sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*"))
    return go


def texts(nb):
    return [output.get("text", "") for cell in nb.cells for output in cell.get("outputs", [])]


@pytest.mark.parametrize("fork", [True, False])
def test_a_report_gets_its_parameters_with_their_types(project, batch, fork):
    cell = "a: str = ''\nb: float = 0.0\nc: list[int] = []\nd: bool = False\ne: dict[str, str] = {}"
    values = {"a": "x\"y'z\n{b}", "b": 1, "c": [1, 2], "d": True, "e": {"k": "v"}}
    project("one", "print([a, b, c, d, e])", parameters=cell)
    assert batch(["one"], values=values, fork=fork).failed == []
    (key,) = batch(["one"], values=values, fork=fork).unchanged
    assert texts(batch.notebook(key)) == [f"{[values['a'], 1.0, [1, 2], True, {'k': 'v'}]}\n"]
    assert batch.record(key)["kernel"] == ("quick" if fork else "normal")


def test_each_report_runs_in_a_process_of_its_own(project, batch):
    code = "import os, numpy\nstate = globals().get('state', 0) + 1\nprint(state, os.getpid(), numpy.random.random())"
    project("one", code, parameters="i: int = 0", params={"s.yaml": "i: [1, 2, 3]"})
    made = batch().made
    printed = [texts(batch.notebook(key))[0].split() for key in made]
    assert [state for state, *_ in printed] == ["1"] * 3
    assert len({process for _, process, _ in printed}) == 3
    assert len({number for *_, number in printed}) == 3


BAD = {
    "fails": (["print('before')", "raise ValueError('no')", "print('after')"], "ValueError: no", 2),
    "dies": (["print('before')", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"], "DeadKernelError: ", 2),
    "hangs": (["print('before')", "import time\ntime.sleep(60)"], "TimeoutError: not finished after ", 2),
}


@pytest.mark.parametrize("fork", [True, False])
def test_a_bad_notebook_harms_only_its_own_report(project, batch, fork):
    for name, (codes, *_) in BAD.items():
        project(name, *codes)
    project("good", "print('good')")
    summary = batch([*BAD, "good"], fork=fork, timeout=3 if fork else 8)  # a kernel starts slowly on a busy machine
    assert summary.made == ["good/defaults"]
    assert sorted(summary.failed) == sorted(f"{name}/defaults" for name in BAD)
    for name, (_, error, cell) in BAD.items():
        record = batch.record(f"{name}/defaults")
        assert record["error"].startswith(error)
        assert record["cell"] == cell
        assert "before\n" in texts(batch.notebook(record["key"]))
        assert "after\n" not in texts(batch.notebook(record["key"]))
        page = batch.page(record["key"])
        assert "This report failed." in page
        assert 'id="failed"' in page
    assert f"[4/4] FAILED    {summary.failed[-1]}" in batch.lines[-1]


def test_a_notebook_that_will_not_be_interrupted_is_ended(project, batch, monkeypatch):
    monkeypatch.setattr("evalkit.reports.batch.GRACE", 0.5)
    code = "import time\nwhile True:\n    try:\n        time.sleep(60)\n    except TimeoutError:\n        pass"
    project("hangs", "print('before')", code)
    batch(["hangs"], timeout=1)
    assert batch.record("hangs/defaults")["error"] == "TimeoutError: not finished after 1 s"
    assert texts(batch.notebook("hangs/defaults")) == ["before\n"]


def _runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_kernel_that_does_not_start_fails_the_report(project, batch):
    project("one", "print(1)", metadata={"kernelspec": {"name": "no-such", "language": "python", "display_name": ""}})
    assert batch(["one"]).failed == ["one/defaults"]
    assert "no-such" in batch.record("one/defaults")["error"]


def test_nothing_is_made_twice_and_every_change_is_named(project, batch, tmp_path):
    cell = 'runs: str = ""\nn: int = 1'
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/a.json").write_text("{}")
    project("one", "print(n)", parameters=cell, params={"a.yaml": "runs: logs"})

    def why():
        summary = batch()
        assert len(summary.made) + len(summary.failed) + len(summary.unchanged) == 1
        return batch.record("one/a")["why"] if summary.made else "unchanged"

    assert why() == "new"
    assert why() == "unchanged"
    (tmp_path / "logs/b.json").write_text("{}")
    assert why() == "changed input: runs"
    (tmp_path / "params/one/a.yaml").write_text("runs: logs\nn: 2")
    assert why() == "changed parameters: n"
    project("one", "print(n + 1)", parameters=cell)
    assert why() == "the notebook changed"
    (tmp_path / "out/one/a.html").unlink()
    assert why() == "a file of it is missing"
    (tmp_path / "out/.evalkit/one/a.json").write_text("{")
    assert why() == "new"
    assert why() == "unchanged"
    assert batch(force=True).made
    assert batch.record("one/a")["why"] == "forced"
    assert batch(code=False).made
    assert batch.record("one/a")["why"] == "other page options"
    assert "print(n" not in batch.page("one/a")
    record = batch.record("one/a")
    for part, change, said in [
        ("packages", {**record["stamp"]["packages"], "pandas": "0"}, "changed packages: pandas"),
        ("evalkit", "0+0", "evalkit changed"),
    ]:
        changed = {**record, "stamp": {**record["stamp"], part: change}}
        (tmp_path / "out/.evalkit/one/a.json").write_text(json.dumps(changed))
        assert batch(code=False).made
        assert batch.record("one/a")["why"] == said


def test_tables_and_headline_are_handed_over(project, batch, tmp_path):
    table = (
        "from IPython.display import display\n"
        "for name in names:\n"
        "    display({'application/vnd.evalkit.table+json': {'name': name, 'csv': 'a,b\\n1,2\\n', 'rows': 1},"
        " 'text/plain': 'x'}, raw=True)"
    )
    cell = "share: int = 50\nnames: list[str] = ['runs']"
    project("one", table, HEADLINE, parameters=cell, params={"a.yaml": "share: 40"})
    batch()
    assert (tmp_path / "out/one/a.runs.csv").read_text() == "a,b\n1,2\n"
    assert batch.record("one/a")["tables"] == [{"name": "runs", "file": "a.runs.csv", "rows": 1}]
    assert batch.record("one/a")["headline"]["text"] == "40 %"
    assert '<a href="a.runs.csv">runs.csv</a>: 1 row' in batch.page("one/a")
    assert not any("vnd.evalkit.table" in str(cell.outputs) for cell in batch.notebook("one/a").cells[1:])


FIGURE_FILES = "application/vnd.evalkit.figure+json"
SHOW_NAMED = (
    "import evalkit\nfrom evalkit.display import new_axes\nevalkit.show_figure(new_axes(), 'Empty.', name='NAME')"
)


def test_named_figures_are_saved_beside_the_page_which_links_to_them(project, batch, tmp_path):
    project("one", SHOW_NAMED.replace("NAME", "first"))
    batch(["one"])
    page, folder = batch.page("one/defaults"), tmp_path / "out/one"
    assert (folder / "defaults.first.svg").read_text().startswith("<svg ")
    assert (folder / "defaults.first.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "defaults.first.pdf").read_bytes().startswith(b"%PDF")
    names = [f"defaults.first.{form}" for form in ("svg", "pdf", "png")]
    assert re.findall(r'<a href="([^"]*)">(?:SVG|PDF|PNG)</a>', page) == names
    assert batch.record("one/defaults")["figures"] == names
    assert FIGURE_FILES not in str(batch.notebook("one/defaults").cells)
    (folder / "defaults.first.pdf").unlink()
    assert batch(["one"]).made == ["one/defaults"]
    project("one", SHOW_NAMED.replace("NAME", "second"))
    batch(["one"])
    assert {name for name in batch.files() if ".first." in name} == set()


def start_cli(tmp_path, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "evalkit", "report", "--output", "out", "--jobs", "2", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("full", "fault"),
    [
        (["*-defaults.html"], "large/defaults.html: No space left on device"),
        (["*-defaults.ipynb"], "large/defaults.ipynb: No space left on device"),
        (["*-defaults.json"], "large/defaults.json: No space left on device"),
    ],
)
def test_a_full_disk_fails_one_report_in_a_sentence_and_the_batch_goes_on(project, batch, monkeypatch, full, fault):
    for name in ("large", "small"):
        project(name, "print(1)")
    write_bytes = Path.write_bytes

    def write(path, data):  # what is forked later inherits it
        if path.parent.name == "0" and any(map(path.match, full)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", write)
    summary = batch(["large", "small"])
    assert (summary.made, summary.failed) == (["small/defaults"], ["large/defaults"])
    (line,) = [line for line in batch.lines if "FAILED" in line]
    assert fault in line
    assert batch.record("large/defaults")["error"].endswith(fault)
    assert "No space left on device" in summary.index.read_text()


STARTS_OTHERS = """
import os, subprocess, time
children = [subprocess.Popen(["sleep", "60"], start_new_session=own).pid for own in (False, True)]
open(f"new-{i}", "w").write(" ".join(map(str, [os.getpid(), *children])))
os.rename(f"new-{i}", f"began-{i}")
time.sleep(0.3 if i < 2 else 60)
"""


@pytest.mark.parametrize(("how", "fork", "pause"), [(signal.SIGINT, True, 0), (signal.SIGTERM, False, 0.02)])
def test_a_signal_stops_cleanly_and_another_changes_nothing(project, tmp_path, how, fork, pause):
    project("one", STARTS_OTHERS, parameters="i: int = 0", params={"s.yaml": "i: [0, 1, 2, 3, 4]"})
    process = start_cli(tmp_path, *["--no-fork"] * (not fork))
    _until(lambda: all((tmp_path / f"began-{i}").exists() for i in (2, 3)), 100)
    started = {int(number) for i in (2, 3) for number in (tmp_path / f"began-{i}").read_text().split()}
    below = {child.pid for child in psutil.Process(process.pid).children(recursive=True)}
    process.send_signal(how)
    time.sleep(pause)
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert "Stopped; run it again to go on. 2 made" in out
    assert sorted(path.name for path in (tmp_path / "out/.evalkit/one").glob("*.json")) == ["s-0.json", "s-1.json"]
    assert not list((tmp_path / "out").glob(".work-*"))
    _until(lambda: not any(map(_runs, started | below)))


def test_killed_at_any_moment_a_batch_is_resumed(project, tmp_path):
    project("one", f"print('x' * 20_000)\n{HEADLINE}", parameters="share: int = 0",
            params={"s.yaml": f"share: {list(range(8))}"})  # fmt: skip
    process = start_cli(tmp_path)
    _until(lambda: len(list((tmp_path / "out/.evalkit").glob("one/*.json"))) >= 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    records = [json.loads(path.read_text()) for path in (tmp_path / "out/.evalkit").glob("one/*.json")]
    assert 3 <= len(records) < 8
    for record in records:
        assert (tmp_path / "out" / record["page"]).read_text().rstrip().endswith("</html>")
        nbformat.validate(nbformat.read(tmp_path / "out" / record["executed"], as_version=4))
    out, _ = start_cli(tmp_path).communicate(timeout=120)
    assert f"{len(records)} unchanged" in out
    assert len(list((tmp_path / "out/.evalkit").glob("one/*.json"))) == 8
    assert not list((tmp_path / "out").glob(".work-*"))


def _until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err"),
    [
        (["one"], 0, "[1/1] made      one/defaults", ""),
        (["two"], 1, "[1/1] FAILED    two/defaults  ValueError: no", ""),
        (
            ["empty"],
            2,
            "[1/1] FAILED    empty/defaults  SourceError: there: no Crafter session trace could be read",
            "",
        ),
        (["one", "-p", "x", "1"], 2, "", "evalkit: command line: unknown parameter x; there is none\n"),
        (["one", "-y", "["], 2, "", "evalkit: -y: not YAML"),
        (["one", "-f", "no.yaml"], 2, "", "evalkit: no.yaml: No such file or directory\n"),
        (["one", "--jobs", "0"], 2, "", "Usage: "),
    ],
)
def test_the_command_says_what_became_of_it(project, tmp_path, arguments, code, out, err):
    project("one", "print(1)")
    project("two", "raise ValueError('no')")
    project("empty", "import evalkit", "evalkit.crafter.load('there')")
    (tmp_path / "there").mkdir()
    (tmp_path / "there/a.json").write_text("[1]")
    result = CliRunner().invoke(main, ["report", "--output", "out", *arguments])
    assert result.exit_code == code
    assert result.stdout.startswith(out)
    assert result.stderr.startswith(err)
    assert (result.stderr == "") == (err == "")


def test_a_report_of_other_parameters_gets_a_marked_name_and_keeps_it(project, batch):
    project("one", "print(path)", parameters='path: str = ""')
    assert batch(["one"], values={"path": "/a/runs"}).made == ["one/runs"]
    (other,) = batch(["one"], values={"path": "/b/runs"}).made
    assert re.fullmatch("one/runs-[0-9a-f]{6}", other)
    assert batch(["one"], values={"path": "/b/runs"}).unchanged == [other]
    assert batch(["one"], values={"path": "/a/runs"}).unchanged == ["one/runs"]


def test_reports_are_removed_by_name_with_all_their_files(project, batch, capsys):
    project("one", HEADLINE, parameters="share: int = 50", params={"a.yaml": "share: 40", "b.yaml": "share: 50"})
    output = batch().index.parent
    assert remove_reports(["c"], output) == 2
    assert "c: no such report; there are 'one/a', 'one/b'" in capsys.readouterr().err
    assert remove_reports(["one/a"], output) == 0
    assert sorted(path.name for path in (output / "one").iterdir()) == ["b.html", "b.ipynb"]
    assert 'href="one/a.html"' not in (output / "index.html").read_text()
    assert remove_reports(["b"], output) == 0
    assert not (output / "one").exists()
