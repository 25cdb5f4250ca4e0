"""Settings of every test: nothing is kept in the user's store, and notebooks run without comparing their outputs."""

import os
import sys
from pathlib import Path

import pytest

os.environ["EVALKIT_CACHE"] = "off"
# an option of jsonschema that nbformat, and so nbval, does not use: it takes two seconds to build its grammar
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
WITHOUT = str(Path(__file__).parent / "tests" / "without")  # for programs that tests start
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [WITHOUT, os.environ.get("PYTHONPATH")]))
pytest_plugins = ["nbval.plugin"]


def pytest_configure(config: pytest.Config) -> None:
    """Compare the outputs of notebooks only where `--nbval` asks for it: as an option of the project, lax would win."""
    config.option.nbval_lax = not config.option.nbval
    config.option.nbval_kernel_startup_timeout = 600  # seconds, of a busy machine
    if not config.option.nbval:
        from tests.one_kernel import share

        share(config)
