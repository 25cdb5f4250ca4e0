"""Kernels in which nbval runs notebooks: forks of a process that has imported their libraries, and nothing of evalkit.

A fork saves the time that these imports take, which is half of the time of a notebook. As in a kernel that Jupyter
starts, the notebook imports what it uses of evalkit.
"""

import multiprocessing
import os
from typing import Any

from ipykernel.kernelapp import IPKernelApp
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

LIBRARIES = ["matplotlib.pyplot", "pandas", "pyarrow.parquet", "scipy.stats", "seaborn"]
FORKS: Any = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__, *LIBRARIES])


class ForkedKernelManager(KernelManager):
    """Starts a kernel in a fork."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.provisioner = _Forked(kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self)


class _Forked(LocalProvisioner):
    async def launch_kernel(self, cmd: list[str], **options: Any) -> Any:
        process = FORKS.Process(target=run_kernel, args=(self.parent.connection_file, options["cwd"]))
        process.start()
        # what jupyter_client expects of subprocess.Popen
        process.poll = lambda: process.exitcode
        process.wait = process.join
        process.stdin = process.stdout = process.stderr = None
        self.process = process
        self.pid = self.pgid = process.pid
        return self.connection_info


def run_kernel(connection_file: str, folder: str) -> None:
    """Run a kernel in this process, in a folder, until it is told to end or its parent has ended."""
    os.setsid()
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    IPKernelApp.launch_instance(["--matplotlib=inline", "-f", connection_file], parent_handle=os.getppid())
