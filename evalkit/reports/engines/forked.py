"""The forked engine: it executes cells in its own process, a child forked for one report.

The shell is ipykernel's own with a different session: what a kernel would send to a client is put into the notebook.
So display hooks, tracebacks, magics and figures are those of a Jupyter kernel.
"""

import asyncio
import builtins
import io
import os
import platform
import signal
import sys
import types
from typing import Any

import nbformat
from ipykernel.compiler import XCachingCompiler
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.error import StdinNotImplementedError
from jupyter_client.session import Session
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from papermill.engines import NotebookExecutionManager, papermill_engines
from traitlets.config import Config

from evalkit.reports.engines.journal import JournalEngine

FORKED = "evalkit-forked"
INLINE = "module://matplotlib_inline.backend_inline"

# Messages that become outputs, and the fields that are taken from them
_OUTPUTS = {
    "stream": ("name", "text"),
    "display_data": ("data", "metadata"),
    "execute_result": ("data", "metadata", "execution_count"),
    "error": ("ename", "evalue", "traceback"),
}

_LANGUAGE = {  # the metadata of an IPython kernel's language
    "codemirror_mode": {"name": "ipython", "version": sys.version_info.major},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
    "version": platform.python_version(),
}


class Recorder(Session):
    """A session that replaces a kernel's: messages become outputs of the current cell."""

    def __init__(self) -> None:
        super().__init__(key=b"")
        self.outputs: list[NotebookNode] = []
        self.displays: dict[str, list[NotebookNode]] = {}
        self.clear_next = False
        self.streams: list[Stream] = []

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
            if kind != "stream":
                self.take_printed()
            # nbformat's own function for this validates each output against the schema of a whole notebook
            output = nbformat.from_dict({"output_type": kind, **{key: content[key] for key in _OUTPUTS[kind]}})
            self.outputs.append(output)
            if name:
                self.displays.setdefault(name, []).append(output)
        return message

    def take_printed(self) -> None:
        """Add what was written to the descriptors, past Python, since the last call."""
        for stream in self.streams:
            stream.take_printed()


class Stream(io.TextIOBase):
    """Standard output or error of a notebook.

    What programs write past Python, to the process's own descriptor, goes to a file; it is added before the next output
    of another kind, and at the end of the cell.
    """

    encoding = "UTF-8"
    errors = "strict"

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder, self.name = recorder, name
        self.taken = os.fstat(self.fileno()).st_size
        recorder.streams.append(self)

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the process's own descriptor, so that programs started by the notebook can write to it."""
        return {"stdout": 1, "stderr": 2}[self.name]

    def write(self, text: str) -> int:
        """Add text to the current cell's outputs."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text:
            self.recorder.send(None, "stream", {"name": self.name, "text": text})
        return len(text)

    def take_printed(self) -> None:
        """Add what was written to the descriptor since the last call."""
        size = os.fstat(self.fileno()).st_size
        if size > self.taken:
            with open(f"/proc/self/fd/{self.fileno()}", "rb") as file:
                file.seek(self.taken)
                data = file.read(size - self.taken)
            self.taken = size
            self.write(data.decode(errors="replace"))


class ForkedShell(ZMQInteractiveShell):
    """ipykernel's shell without a kernel."""

    compiler_class = XCachingCompiler

    def enable_gui(self, gui: Any = None) -> None:
        """Do nothing: there is no event loop of a window system."""


def start_shell() -> tuple[ForkedShell, Recorder]:
    """Set this process up for a notebook: a new shell, and standard streams that go into the recorder's outputs."""
    recorder = Recorder()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # else every child would draw the same numbers
    sys.path.insert(0, "")
    sys.stdout, sys.stderr = Stream(recorder, "stdout"), Stream(recorder, "stderr")
    ForkedShell.clear_instance()
    module = types.ModuleType("__main__")
    shell = ForkedShell.instance(config=Config({"HistoryManager": {"enabled": False}}), user_module=module)
    hook: Any = shell.displayhook
    publisher: Any = shell.display_pub
    hook.session = publisher.session = recorder
    hook.topic = b"execute_result"
    sys.modules["__main__"] = module
    builtins.input = raw_input  # type: ignore[assignment]  # nobody can answer
    _show_inline()
    return shell, recorder


def _show_inline() -> None:
    """Let pyplot show figures below the cell, even if it was imported before the fork, without a shell.

    matplotlib's inline backend binds itself to the shell on import only: otherwise figures would be lost silently.
    """
    backend = os.environ["MPLBACKEND"] = os.environ.get("MPLBACKEND") or INLINE
    sys.modules.pop("matplotlib_inline.backend_inline", None)
    if "matplotlib" in sys.modules:
        sys.modules["matplotlib"].rcParams["backend"] = backend
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].switch_backend(backend)


def raw_input(prompt: str = "") -> str:
    """Replace ``input``, as a kernel's method of this name does: nobody can answer."""
    raise StdinNotImplementedError("raw_input was called, but this frontend does not support input requests.")


class ForkedEngine(JournalEngine):
    """An engine that executes a notebook in this process, which must be a child forked for it."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: NotebookExecutionManager, kernel_name: str, **_: Any) -> None:
        """Execute the cells in order, up to the first error."""
        shell, recorder = start_shell()
        signal.signal(signal.SIGINT, signal.default_int_handler)
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
        nb_man.nb.metadata["language_info"] = _LANGUAGE


def _execute_cell(cell: NotebookNode, shell: ForkedShell, recorder: Recorder, loop: asyncio.AbstractEventLoop) -> None:
    tags = cell.metadata.get("tags", [])
    if cell.cell_type != "code" or not cell.source.strip() or "skip-execution" in tags:
        return
    cell.outputs = []
    recorder.outputs = cell.outputs  # the notebook holds its own kind of list
    cell.execution_count = shell.execution_count
    try:
        ok = loop.run_until_complete(_run(shell, cell.source))
    except KeyboardInterrupt:  # while the cell was awaiting
        shell.showtraceback()
        ok = False
    if shell.payload_manager is not None:
        shell.payload_manager.clear_payload()
    if not ok and "raises-exception" not in tags:
        last: Any = next((o for o in reversed(cell.outputs) if o.output_type == "error"), {})
        raise CellExecutionError("", last.get("ename", ""), last.get("evalue", ""))


async def _run(shell: ForkedShell, source: str) -> bool:
    """Run a cell as ipykernel does: within a running event loop, and asynchronously if it awaits."""
    transformed, fault = source, None
    try:
        transformed = shell.transform_cell(source)
    except Exception:
        fault = sys.exc_info()
    if shell.should_run_async(source, transformed_cell=transformed, preprocessing_exc_tuple=fault):
        shell._last_traceback_during_displayhook = False
        result = await shell.run_cell_async(
            source, store_history=True, transformed_cell=transformed, preprocessing_exc_tuple=fault
        )
        shell.events.trigger("post_execute")
        shell.events.trigger("post_run_cell", result)
    else:
        result = shell.run_cell(source, store_history=True)
    return result.success and not getattr(shell, "_last_traceback_during_displayhook", False)  # not in every ipykernel


papermill_engines.register(FORKED, ForkedEngine)
