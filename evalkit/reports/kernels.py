"""Start the kernels of reports. For this Python, a kernel is a fork of a process that has imported all modules.

A fork does not need to start Python and import modules. The forked process has not read data or executed cells. Jupyter
starts all other kernels.
"""

import asyncio
import gc
import multiprocessing
import os
import pkgutil
import signal
import sys
from importlib import import_module
from typing import Any

from ipykernel.kernelapp import IPKernelApp
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

import evalkit
from evalkit.io.frames import paused_gc
from evalkit.io.read import end_with_parent

FOLDER_PREFIX = "evalkit-report-"  # prefix of temporary folders, before the process id
PYTHON = "python3"  # name of the kernel for this Python
_NEEDED_LATER = """
    IPython.core.completerlib IPython.core.oinspect ipykernel.debugger
    matplotlib_inline.config pyarrow.dataset pyarrow.parquet seaborn.matrix tornado.platform.asyncio
"""  # modules that kernels and libraries import lazily


def start_method() -> str:
    """Return the start method of processes: fork if that is safe, else spawn."""
    return "fork" if sys.platform == "linux" else "spawn"


def preload() -> None:
    """Import all modules that reports and their notebooks use, once for all forked processes."""
    sys.modules.setdefault("debugpy.server", None)  # type: ignore[arg-type]  # takes as long as all other imports
    # optional for jsonschema and not used by nbformat: building its grammar takes a second
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    has_boto = sys.modules.setdefault("boto3", None)  # type: ignore[arg-type]  # papermill needs it only for S3
    with paused_gc():
        for module in pkgutil.walk_packages(evalkit.__path__, "evalkit."):
            if not module.name.endswith("__main__"):
                import_module(module.name)
        for name in _NEEDED_LATER.split():
            import_module(name)
        import_module("evalkit.reports.page").warm_up()
        # IPython tries the name `storemagic` first, which a file in the working folder may have
        sys.modules["storemagic"] = import_module("IPython.extensions.storemagic")
    if not has_boto:
        del sys.modules["boto3"]  # notebooks may import it
    gc.collect()
    gc.freeze()  # so that collections in children don't copy memory shared with the parent


def manager_of(name: str, folder: str) -> AsyncKernelManager:
    """Return the manager of a kernel that is started later; its connection file is in `folder`."""
    manager = AsyncKernelManager(kernel_name=name, connection_file=f"{folder}/kernel.json")
    manager.transport = "tcp" if os.name == "nt" else "ipc"
    if name == PYTHON and start_method() == "fork":
        manager.provisioner = _Forked(kernel_id=manager.kernel_id, kernel_spec=manager.kernel_spec, parent=manager)
    return manager


class _Forked(LocalProvisioner):
    """Provisioner that starts a kernel in a fork of this process."""

    async def launch_kernel(self, cmd: list[str], **_: Any) -> Any:
        """Fork this process, and run a kernel in the child."""
        fork: Any = multiprocessing.get_context("fork")
        manager: Any = self.parent
        process = fork.Process(target=_run_kernel, args=(manager.connection_file, os.getpid()))
        process.start()
        # attributes of subprocess.Popen that jupyter_client uses
        process.poll = lambda: process.exitcode
        process.wait = process.join
        process.stdin = process.stdout = process.stderr = None
        self.process = process
        self.pid = self.pgid = process.pid
        return self.connection_info


def _run_kernel(connection_file: str, parent: int) -> None:
    """Run a kernel in this process, in a new session, so that signals reach all processes that it starts."""
    os.setsid()
    signal.set_wakeup_fd(-1)  # or the parent's event loop would also get this process's signals, and end the kernel
    end_with_parent(parent)
    asyncio.set_event_loop(asyncio.new_event_loop())
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # otherwise all children would draw the same numbers
    # at the end, so that modules in the working folder, which may come with the logs, don't shadow installed modules
    sys.path.append("")
    options = ["--IPKernelApp.ignore_cwd=True", "--matplotlib=inline", "--HistoryManager.enabled=False"]
    options += ["-f", connection_file]
    IPKernelApp.launch_instance(options, parent_handle=parent)
