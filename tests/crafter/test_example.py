import runpy
from pathlib import Path

from tests.crafter.traces import environment, hook, runtime, trace, write

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "score_crafter.py"


def test_the_example_scores_a_trace_a_folder_and_with_own_weights(tmp_path, capsys):
    hard = environment(0, [hook("hard_achievement", ["defeat_zombie"])])
    write(tmp_path, trace(hard, runtime(0, [hook("invalid_action")])), "a.json")
    write(tmp_path, trace(hard), "b.json")
    runpy.run_path(str(EXAMPLE))["main"](str(tmp_path))
    out = capsys.readouterr().out
    assert out.startswith("📊 Trace: a.json\n   Score: 4.95\n")
    assert "      1     5.00  +           b.json\n      2     4.95  +-          a.json\n" in out
    assert out.endswith("    10.00, was   4.95  a.json\n    10.00, was   5.00  b.json\n")
