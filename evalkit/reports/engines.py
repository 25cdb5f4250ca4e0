"""Papermill's engines for a batch: one executes in a Jupyter kernel, one in this process, a child forked for a report.

The forked one saves the start of a kernel and all imports: the parent has them done, has read no data, and started no
thread. Its shell is ipykernel's own with another session: what a kernel would send to a client is put into the
notebook. So display hooks, tracebacks, magics and figures are those of a Jupyter kernel.
"""

import asyncio
import io
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import IPython.core.completerlib  # noqa: F401 - every shell imports it
import nbformat
from ipykernel.compiler import XCachingCompiler
from ipykernel.ipkernel import IPythonKernel
from ipykernel.zmqshell import ZMQInteractiveShell
from jupyter_client.session import Session
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from papermill.engines import Engine, NBClientEngine, NotebookExecutionManager, papermill_engines
from traitlets.config import Config

KERNEL, FORKED = "evalkit-kernel", "evalkit-forked"

_INLINE = "module://matplotlib_inline.backend_inline"

_DESCRIPTORS = {"stdout": 1, "stderr": 2}

# Messages that become outputs, and the fields that are taken from them
_OUTPUTS = {
    "stream": ("name", "text"),
    "display_data": ("data", "metadata"),
    "execute_result": ("data", "metadata", "execution_count"),
    "error": ("ename", "evalue", "traceback"),
}


class _Manager(NotebookExecutionManager):
    """Papermill's record of an execution; it saves the notebook so far, which outlasts the process."""

    def __init__(self, nb: NotebookNode, saved: Path) -> None:
        super().__init__(nb, progress_bar=False, autosave_cell_every=0)
        self.saved = saved

    def save(self, **_: Any) -> None:
        new = self.saved.with_suffix(".new")
        new.write_text(json.dumps(self.nb), encoding="utf-8")
        new.replace(self.saved)


class _SavingEngine(Engine):
    @classmethod
    def execute_notebook(cls, nb: NotebookNode, kernel_name: str, *, saved: Path, **options: Any) -> NotebookNode:
        """Execute a notebook as papermill's engines do, but save it in the file `saved`."""
        for name in ("output_path", "progress_bar", "autosave_cell_every"):
            options.pop(name, None)
        manager = _Manager(nb, saved)
        manager.notebook_start()
        try:
            cls.execute_managed_notebook(manager, kernel_name, **options)
        finally:
            manager.notebook_complete()
        return manager.nb


class KernelEngine(_SavingEngine, NBClientEngine):
    """An engine that executes a notebook in its own Jupyter kernel, as papermill does."""


class ForkedEngine(_SavingEngine):
    """An engine that executes a notebook in this process, which must be a child forked for it."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: NotebookExecutionManager, kernel_name: str, **_: Any) -> None:
        """Execute the cells in order, up to the first error."""
        shell, recorder = _start_shell()
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            for index, cell in enumerate(nb_man.nb.cells):
                try:
                    nb_man.cell_start(cell, index)
                    _execute_cell(cell, shell, recorder, loop)
                except CellExecutionError as error:
                    nb_man.cell_exception(cell, cell_index=index, exception=error)
                    break
                finally:
                    recorder.take_printed()
                    nb_man.cell_complete(cell, cell_index=index)
        finally:
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        nb_man.nb.metadata["language_info"] = dict(IPythonKernel.language_info)


papermill_engines.register(KERNEL, KernelEngine)
papermill_engines.register(FORKED, ForkedEngine)


def _execute_cell(cell: NotebookNode, shell: "_Shell", recorder: "_Recorder", loop: asyncio.AbstractEventLoop) -> None:
    tags = cell.metadata.get("tags", [])
    if cell.cell_type != "code" or not cell.source.strip() or "skip-execution" in tags:
        return
    cell.outputs = []
    recorder.outputs = cell.outputs  # the notebook holds its own kind of list
    cell.execution_count = shell.execution_count
    transformed, fault = cell.source, None
    try:
        transformed = shell.transform_cell(cell.source)
    except Exception:
        fault = sys.exc_info()
    run = shell.run_cell_async(
        cell.source, store_history=True, transformed_cell=transformed, preprocessing_exc_tuple=fault
    )
    try:
        result = loop.run_until_complete(run)
        shell.events.trigger("post_execute")
        shell.events.trigger("post_run_cell", result)
        ok = result.success
    except (KeyboardInterrupt, TimeoutError):  # while the cell was awaiting
        shell.showtraceback()
        ok = False
    if shell.payload_manager is not None:
        shell.payload_manager.clear_payload()
    if (not ok or any(output.output_type == "error" for output in cell.outputs)) and "raises-exception" not in tags:
        raise CellExecutionError("", "", "")


class _Shell(ZMQInteractiveShell):
    """ipykernel's shell without a kernel."""

    compiler_class = XCachingCompiler

    def enable_gui(self, gui: Any = None) -> None:
        """Do nothing: there is no event loop of a window system."""


def _start_shell() -> tuple[_Shell, "_Recorder"]:
    """Set this process up for a notebook: a new shell, and standard streams that go into the recorder's outputs."""
    recorder = _Recorder()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # else every child would draw the same numbers
    sys.path.insert(0, "")
    sys.stdout, sys.stderr = _Stream(recorder, "stdout"), _Stream(recorder, "stderr")
    module = types.ModuleType("__main__")
    shell = _Shell.instance(config=Config({"HistoryManager": {"enabled": False}}), user_module=module)
    hook: Any = shell.displayhook
    publisher: Any = shell.display_pub
    hook.session = publisher.session = recorder
    hook.topic = b"execute_result"
    sys.modules["__main__"] = module
    # matplotlib's inline backend binds itself to the shell on import only: otherwise figures would be lost silently
    backend = os.environ["MPLBACKEND"] = os.environ.get("MPLBACKEND") or _INLINE
    sys.modules.pop("matplotlib_inline.backend_inline", None)
    if "matplotlib" in sys.modules:
        sys.modules["matplotlib"].rcParams["backend"] = backend
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].switch_backend(backend)
    return shell, recorder


class _Recorder(Session):
    """A session that replaces a kernel's: messages become outputs of the current cell."""

    def __init__(self) -> None:
        super().__init__(key=b"")
        self.outputs: list[NotebookNode] = []
        self.displays: dict[str, list[NotebookNode]] = {}
        self.clear_next = False
        self.taken = {name: os.fstat(descriptor).st_size for name, descriptor in _DESCRIPTORS.items()}

    def msg(self, msg_type: str, content: dict | None = None, *_: Any, **__: Any) -> dict:
        """Create a message; its header holds the type only."""
        return {"header": {"msg_type": msg_type}, "msg_type": msg_type, "content": content or {}}

    def send(self, stream: Any, msg_or_type: dict | str, content: dict | None = None, *_: Any, **__: Any) -> dict:
        """Process a message as nbclient does for one from a kernel, in its serialised form."""
        message = msg_or_type if isinstance(msg_or_type, dict) else self.msg(msg_or_type, content)
        message["content"] = self.unpack(self.pack(message["content"]))
        kind, content = message["msg_type"], message["content"]
        if kind == "clear_output" and content.get("wait", False):
            self.clear_next = True
            return message
        if kind == "clear_output" or (self.clear_next and kind in _OUTPUTS):
            self.outputs.clear()
            self.displays, self.clear_next = {name: [] for name in self.displays}, False
        name = content.get("transient", {}).get("display_id")
        if kind == "update_display_data":
            for output in self.displays.get(name, []):
                output.data = nbformat.from_dict(content["data"])
                output.metadata = nbformat.from_dict(content["metadata"])
        elif kind in _OUTPUTS:
            # nbformat's own function for this validates each output against the schema of a whole notebook
            output = nbformat.from_dict({"output_type": kind, **{key: content[key] for key in _OUTPUTS[kind]}})
            self.outputs.append(output)
            if name:
                self.displays.setdefault(name, []).append(output)
        return message

    def take_printed(self) -> None:
        """Add what programs wrote past Python, to the files behind the process's own descriptors."""
        for name, descriptor in _DESCRIPTORS.items():
            data = os.pread(descriptor, os.fstat(descriptor).st_size, self.taken[name])
            self.taken[name] += len(data)
            if data:
                self.send(None, "stream", {"name": name, "text": data.decode(errors="replace")})


class _Stream(io.TextIOBase):
    """Standard output or error of a notebook."""

    encoding = "UTF-8"
    errors = "strict"

    def __init__(self, recorder: _Recorder, name: str) -> None:
        self.recorder, self.name = recorder, name

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the process's own descriptor, so that programs started by the notebook can write to it."""
        return _DESCRIPTORS[self.name]

    def write(self, text: str) -> int:
        """Add text to the current cell's outputs."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text:
            self.recorder.send(None, "stream", {"name": self.name, "text": text})
        return len(text)
