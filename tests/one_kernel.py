"""One kernel of Jupyter for all notebooks that nbval runs in a process: starting one takes as long as a notebook."""

from queue import Empty
from typing import Any

import pytest
from nbval import plugin
from nbval.kernel import RunningKernel

# figures are made and described, but not drawn: tests of pages look at the drawn figures of the same notebooks
BEGIN = """
import gc
from evalkit.display import drawing, show

gc.set_threshold(100_000)
show.draw = lambda figure, alt, pdf=False, drawn=drawing.Drawing("", b"", b""): drawn
"""


class SharedKernel(RunningKernel):
    """The kernel of the notebooks before, without their names."""

    running: "SharedKernel | None" = None
    given: Any = None  # what the running kernel was started with

    def __init__(self, name: str, **options: Any) -> None:
        before = SharedKernel.running
        if before and before.given != (name, options):
            before.end()
        if not SharedKernel.running:
            super().__init__(name, **options)
            self.given = name, options
            self.run(BEGIN)
            SharedKernel.running = self
        self.__dict__ = SharedKernel.running.__dict__

    def run(self, code: str) -> None:
        """Execute code and wait for its end."""
        message = self.execute_cell_input(code)
        self.await_reply(message, timeout=60)
        self.await_idle(message, timeout=60)

    def stop(self) -> None:
        """Leave the kernel to the next notebook, but end one that has died or does not answer."""
        try:
            self.run("%reset -f")
        except (Empty, RuntimeError):
            self.end()

    def end(self) -> None:
        """End the kernel."""
        SharedKernel.running = None
        super().stop()


def share(config: pytest.Config) -> None:
    """Let nbval run its notebooks in one kernel, which ends with the tests."""
    plugin.RunningKernel = SharedKernel
    config.add_cleanup(lambda: SharedKernel.running and SharedKernel.running.end())
