"""Settings of every test: nothing is kept in the user's store, and notebooks run without comparing their outputs."""

import os

import pytest

os.environ["EVALKIT_CACHE"] = "off"


def pytest_configure(config: pytest.Config) -> None:
    """Compare the outputs of notebooks only where `--nbval` asks for it: as an option of the project, lax would win."""
    if hasattr(config.option, "nbval"):
        config.option.nbval_lax = not config.option.nbval
        config.option.nbval_kernel_startup_timeout = 600  # seconds, of a busy machine
