import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_runs_and_says_what_it_promises(tmp_path):
    done = subprocess.run(
        [sys.executable, "examples/judge_steps.py", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "genes_scored: 2 of 3" in done.stdout
    assert "   Critical: 🚨 YES" in done.stdout
    assert "match=True, precision=1.0" in done.stdout
    assert "the workflow ended in a critical failure" in done.stdout or "evalkit[workflow]" in done.stdout
    assert (tmp_path / "history.json").is_file()
