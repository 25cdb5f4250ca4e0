import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from evalkit.reports import processes
from evalkit.reports.notebooks import Notebook
from evalkit.reports.processes import can_fork, preload

CELLS = {
    "pyplot": "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('$x$')\nplt.show()",
    "pyplot without show": "plt.figure(figsize=(3, 2)); plt.plot([1, 3, 2])",
    "two figures": "for i in range(2):\n    plt.figure(); plt.plot([i, 1])",
    "seaborn": "import seaborn as sns\nsns.barplot(x=['a', 'b'], y=[1, 2])",
    "inline magic": "%matplotlib inline\nplt.plot([2, 1])",
    "figure as result": "fig, ax = plt.subplots(figsize=(2, 2))\nplt.close(fig)\nfig",
    "evalkit": "import evalkit\nfrom evalkit.display import new_axes\nax = new_axes()\nax.plot([1, 2])\n"
    "evalkit.show_figure(ax, alt='a line', caption='c')",
    "frame": "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', '<b>']})",
    "series": "pd.Series([1.5, None])",
    "semicolon": "1 + 1;",
    "semicolon in text": "'a;'",
    "none": "None",
    "underscore": "41 + 1",
    "underscore used": "_ + 1, Out[max(Out)]",
    "streams": "import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('out again', end='')",
    "no newline": "sys.stdout.write('x')",
    "display between": "from IPython.display import *\nprint('a')\ndisplay(HTML('<b>b</b>'))\nprint('c')",
    "rich": "display(Markdown('*m*'), Latex('$x$'), JSON({'a': [1]}))",
    "svg": "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))",
    "metadata": "display({'image/png': b'\\x89PNG'}, raw=True, metadata={'image/png': {'alt': 'A'}})",
    "update": "handle = display('before', display_id=True)\nhandle.update('after')",
    "update later": "handle.update(HTML('<i>later</i>'))",
    "clear": "print('gone')\nclear_output()\nprint('stays')",
    "clear on next": "print('gone')\nclear_output(wait=True)\nprint('stays')",
    "await": "import asyncio\nawait asyncio.sleep(0.01, 'awaited')",
    "loop": "asyncio.get_running_loop().is_running()",
    "task": "task = asyncio.create_task(asyncio.sleep(0, 'done'))",
    "task later": "await task",
    "warning": "import warnings\nwarnings.warn('careful')",
    "logging": "import logging\nlogging.warning('logged')",
    "shell": "!echo shell",
    "shell value": "lines = !echo one; echo two\nlines",
    # a kernel reads what programs print beside the cell, and loses it where the cell ends first
    "program": "import subprocess, time\n_ = subprocess.run(['echo', 'program'])\ntime.sleep(1)",
    "program's error": "_ = subprocess.run('echo wrong >&2', shell=True)\ntime.sleep(1)",
    "capture": "%%capture\nprint('not seen')",
    "bash": "%%bash\necho bash",
    "html magic": "%%html\n<p>html</p>",
    "empty": "",
    "comment": "# nothing",
    "main": "__name__",
    "pickle": "import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))) is A",
    "thread": "import threading\nt = threading.Thread(target=print, args=('thread',))\nt.start(); t.join()",
    "unicode": "print('é \\U0001f600 \\ud83d'.encode('utf-8', 'replace').decode())\n'\\x1b[31mred\\x1b[0m'",
    "repr fails": "class Bad:\n    def __repr__(self): raise RuntimeError('bad repr')\nBad()",
    "exception": "def f(): raise KeyError('k')\nf()",
    "chained": "try:\n    f()\nexcept KeyError as error:\n    raise ValueError('chained') from error",
    "syntax": "if x\n    pass",
    "indent": "  a = 1\n b = 2",
    "exit": "sys.exit(1)",
    "magic": "%no_such_magic",
    "name": "undefined_name",
    "interrupt": "raise KeyboardInterrupt",
    "after": "print('after all that')",
}
STOPS = {"repr fails", "exception", "chained", "syntax", "indent", "exit", "name", "interrupt"}


VARYING = {r"ipykernel_\d+": "ipykernel", r"0x[0-9a-f]{6,}": "ADDRESS"}


def outputs_of(cell):
    """Give what a cell shows, made comparable.

    Texts on the same stream are joined up to the next output of another kind: a kernel does not keep their order.
    """
    shown, streams = [], {}
    for output in [*cell.outputs, None]:
        if output is not None and output.output_type == "stream":
            streams[output.name] = streams.get(output.name, "") + output.text
        else:
            shown += [*sorted(streams.items()), output]
            streams = {}
    text = json.dumps([cell.id, cell.execution_count, shown], sort_keys=True)
    for pattern, word in VARYING.items():
        text = re.sub(pattern, word, text)
    return text


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Return the outputs of a forked and of a normal run of one notebook, by the name of the cell."""
    folder = tmp_path_factory.mktemp("both")
    nb = new_notebook(metadata={"kernelspec": {"name": "python3", "language": "python", "display_name": ""}})
    nb.cells = [new_markdown_cell("# All\n\nkinds of outputs")]
    for name, code in CELLS.items():
        tags = ["raises-exception"] if name in STOPS | {"magic"} else []
        nb.cells.append(new_code_cell(code, metadata={"tags": tags, "name": name}))
    nbformat.write(nb, folder / "all.ipynb")
    found = []
    # A process of its own: pytest changes how warnings and logs are shown, and ipykernel itself where pytest runs it
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    for option in ("--force", "--no-fork"):
        command = [sys.executable, "-m", "evalkit", "report", "all.ipynb", "--output", f"out{option}", option]
        subprocess.run(command, cwd=folder, env=environment, check=True)
        nb = nbformat.read(folder / f"out{option}/all/defaults.ipynb", as_version=4)
        found.append({cell.metadata.name: outputs_of(cell) for cell in nb.cells if "name" in cell.metadata})
        found[-1]["language"] = nb.metadata.language_info
    return found


@pytest.mark.parametrize("name", [*CELLS, "language"])
def test_a_forked_process_shows_what_a_kernel_shows(both, name):
    quick, normal = both
    assert quick[name] == normal[name]


def _notebook(*codes, **metadata):
    cells = [{"cell_type": "code", "source": code, "metadata": {}} for code in codes]
    return Notebook(Path("x.ipynb"), "x", {}, metadata, cells)


@pytest.fixture
def no_profile(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    return tmp_path / "profile_default"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("notebook", "quick"),
    [
        (_notebook("import pandas"), True),
        (_notebook(kernelspec={"name": "python3", "language": "python"}), True),
        (_notebook(kernelspec={"name": "ir", "language": "R"}), False),
        (_notebook(kernelspec={"name": "my-env", "language": "python"}), False),
        (_notebook("import ipywidgets as w"), False),
        (_notebook("x = 1\n%matplotlib widget"), False),
        (_notebook("%matplotlib inline"), True),
        (_notebook(evalkit={"quick": False}), False),
        (_notebook("# communication"), True),
    ],
)
def test_what_needs_a_kernel_gets_one(no_profile, notebook, quick):
    assert can_fork(notebook) is quick


@pytest.mark.parametrize(
    ("code", "imported"),
    [
        ("import scipy.stats, polars", ["scipy.stats"]),
        ("from matplotlib import ticker as t, cm\n%matplotlib inline", ["matplotlib.cm", "matplotlib.ticker"]),
        ("import numpy as (", ["numpy"]),
        (
            "import evalkit\nevalkit.compare.best(runs)",
            ["evalkit", "evalkit.compare.best", "pyarrow.dataset", "pyarrow.parquet", "seaborn"],
        ),
    ],
)
def test_what_is_imported_before_the_forks(monkeypatch, code, imported):
    found = []
    monkeypatch.setattr(processes, "resolve_name", found.append)
    monkeypatch.setattr(processes.gc, "freeze", lambda: None)
    preload([_notebook(code)], code=True)
    assert found == imported
