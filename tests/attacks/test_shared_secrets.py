"""Secrets that logs and parameters hold do not reach what is handed out."""

import nbformat
import pytest
from click.testing import CliRunner
from nbformat.v4 import new_code_cell, new_notebook

from evalkit.cli import main
from evalkit.io import masked
from evalkit.io.paths import is_secret_name
from evalkit.reports import PlanError, plan
from tests.mindcraft.builders import SCORE, log, turn, write_all

KEYS = {
    "Bearer …": "Bearer abcdef0123456789.xyz",
    "sk-…": "sk-proj-abcdefghij0123456789",
    "sk-… ": "sk-ant-api03-AbCdEf0123456789_-xyzQ ",
    "ghp_…": "ghp_abcdefghijklmnopqrstuvwx0123456789",
    "github_pat_…": "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuv",
    "AKIA…": "AKIAIOSFODNN7EXAMPLE",
    "AIza…": "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
    "xoxb-…": "xoxb-123456789012-abcdefghijkl",
    "hf_…": "hf_abcdefghijklmnopqrstuvwxyz012345",
    "eyJ…": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
}
HARMLESS = ["the bearer certificate", "task-sk-learn-is-a-library-v1", "hf_model", "AKIAIOSFODNN7EXAMPLES", "eyJ.a.b"]
NAMES = {
    **dict.fromkeys(["api_key", "apiKey", "auth_token", "db_password", "SECRET", "authorization", "pwd"], True),
    **dict.fromkeys(["tokens_in", "max_tokens", "max_token", "sort_key", "author", "tokenizer", "passes"], False),
}


@pytest.mark.parametrize(("shown", "text"), [*KEYS.items(), *zip(HARMLESS, HARMLESS, strict=True)])
def test_a_key_of_a_known_form_is_masked_and_other_text_stays(shown, text):
    assert masked(f"a {text}, b") == f"a {shown}, b"


@pytest.mark.parametrize("flag", [(), ("--no-mask",)])
def test_runs_are_shown_without_keys_unless_asked_for(tmp_path, monkeypatch, flag):
    monkeypatch.chdir(tmp_path)
    content = log(f"{SCORE}1")
    content["turns"][:0] = [turn("assistant", f"I say {key}") for key in KEYS.values()]
    write_all(tmp_path, {"logs/m/cook/Andy_0_0.json": content})
    shown = CliRunner().invoke(main, ["show", "logs/m/cook/Andy_0_0.json", *flag]).output
    of_run = CliRunner().invoke(main, ["show", "logs", "--kind", "mindcraft", *flag]).output
    assert CliRunner().invoke(main, ["view", "logs", "-o", "out", *flag]).exit_code == 0
    pages = "".join(path.read_text() for path in tmp_path.glob("out/**/*.html"))
    for text in (shown, of_run, pages):
        assert "I say" in text
        assert [key for key in KEYS.values() if key.strip() in text] == (list(KEYS.values()) if flag else [])


def test_a_name_of_a_secret_is_known():
    assert {name: is_secret_name(name) for name in NAMES} == NAMES


PARAMETERS = 'api_key: str = ""\nport: int = 1\nheaders: dict = {}\npassword: int = 0'
NOTEBOOK = new_notebook(cells=[new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})])


@pytest.mark.parametrize("name", ["api_key", "password"])
def test_a_parameter_named_like_a_secret_is_refused_before_anything_is_written(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.ipynb").write_text(nbformat.writes(NOTEBOOK))
    result = CliRunner().invoke(main, ["report", "mine.ipynb", "-p", name, "SEKRET"])
    assert result.exit_code == 2
    assert "a value of this name would stand on the page" in result.output
    assert "SEKRET" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine.ipynb"]


def test_one_without_a_value_is_not_refused_and_a_default_is(tmp_path):
    path = tmp_path / "mine.ipynb"
    path.write_text(nbformat.writes(NOTEBOOK))
    assert len(plan([str(path)], values={"port": 2})) == 1
    path.write_text(nbformat.writes(NOTEBOOK).replace('api_key: str = \\"\\"', 'api_key: str = \\"SEKRET\\"'))
    with pytest.raises(PlanError, match="api_key: a value of this name") as raised:
        plan([str(path)], values={"port": 2})
    assert "SEKRET" not in str(raised.value)
