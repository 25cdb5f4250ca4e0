"""What the wheel gives, in a fresh environment outside the checkout: everything that reports need."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from evalkit.io import resolve

ROOT = Path(__file__).parents[1]


def call(*words, cwd: Path, **more) -> subprocess.CompletedProcess:
    """Run a program that sees nothing of the checkout."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["JUPYTER_PATH"] = os.path.join(sys.prefix, "share", "jupyter")  # data files of the dependencies
    return subprocess.run(list(map(str, words)), cwd=cwd, env=environment, capture_output=True, text=True, **more)


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory) -> Path:
    """The command of an environment that has the dependencies of this one, and evalkit from the file alone."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    site = sysconfig.get_path("purelib", vars={"base": str(folder)})
    Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    (file,) = dist.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet"]
    call(*pip, "--no-deps", "--no-index", "--no-build-isolation", file, cwd=folder, check=True)
    place = call(folder / "bin/python", "-c", "import evalkit; print(evalkit.__file__)", cwd=folder, check=True).stdout
    assert Path(place).is_relative_to(site)
    return folder / "bin/evalkit"


def test_the_wheel_holds_all_notebooks_params_samples_templates_and_the_mark_of_types(dist):
    (wheel,) = dist.glob("*.whl")
    names = set(ZipFile(wheel).namelist())
    for folder, pattern in [("notebooks", "*.ipynb"), ("params", "*/*.yaml")]:
        assert {f"evalkit/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / folder).glob(pattern)} <= names
    package = [path for path in (ROOT / "evalkit").rglob("*") if path.is_file() and path.suffix not in {".pyc", ".pyo"}]
    assert {path.relative_to(ROOT).as_posix() for path in package} <= names
    assert "evalkit/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/", "tools/"))]


@pytest.mark.slow
def test_a_folder_gets_its_reports_from_any_folder(installed, tmp_path):
    shutil.copytree(Path(resolve("samples:steps/typed.json")).parent, tmp_path / "logs")
    done = call(installed, "report", "logs", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "reports/index.html"
    assert {path.parent.name for path in (tmp_path / "reports").glob("*/*.html")} == {"runs", "step_evaluation"}
