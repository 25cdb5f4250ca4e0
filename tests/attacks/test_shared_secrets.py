"""Secrets that logs and parameters hold do not reach what is handed out."""

import html
import json
import math
import stat
import string
import zipfile
from contextlib import nullcontext
from random import Random
from urllib.parse import quote

import nbformat
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_notebook

from evalkit.cli import main
from evalkit.failures.failure_modes import masked_text
from evalkit.io import cut_name, masked, masking, message_pattern, plain
from evalkit.io.paths import is_secret_name
from evalkit.io.secrets import SECRETS
from evalkit.io.text import cut_end, cut_line, shorten
from evalkit.io.write import WRITERS
from evalkit.kinds.detectors import shortened
from evalkit.kinds.headers import unread_cells
from evalkit.reports import PlanError, plan
from evalkit.reports.report import file_name
from tests.mindcraft.builders import SCORE, log, turn, write_all
from tests.undrawn import undrawn

SOME = "abcdefghij0123456789ABCDEFGHIJ"
AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
KEYS = {  # by form: what is shown, and the credential
    "bearer": ("Bearer …", "Bearer abcdef0123456789.xyz"),
    "basic": ("Basic …", "Basic dXNlcjpwYXNzd29yZA=="),
    "OpenAI, Anthropic, OpenRouter": ("sk-…", "sk-ant-api03-AbCdEf0123456789_-xyzQ"),
    "header": ("x-api-key: …", f"x-api-key: {SOME}"),
    "header, encoded": ("QXV0aG9yaXphdGlvbj…", "QXV0aG9yaXphdGlvbjogQmVhcmVyIGFiY2RlZjAxMjM0NTY3ODk="),
    "Stripe": ("rk_test_…", "rk_test_abcdefghij0123456789"),
    "Stripe hook": ("whsec_…", f"whsec_{SOME}"),
    "GitHub": ("ghp_…", f"ghp_{SOME}"),
    "GitHub, fine-grained": ("github_pat_…", f"github_pat_{SOME}_{SOME}"),
    "GitLab": ("glpat-…", "glpat-abcdefghij0123456789"),
    "AWS id": ("AKIA…", "AKIAIOSFODNN7EXAMPLE"),
    "AWS temporary id": ("ASIA…", "ASIAIOSFODNN7EXAMPLE"),
    "AWS secret": ("secret_access_key = …", f"secret_access_key = {AWS}"),
    "AWS session": ("SessionToken=…", f"SessionToken={AWS}"),
    "Azure": ("AccountKey=…", f"AccountKey={SOME}=="),
    "database": ("PGPASSWORD=…", "PGPASSWORD=hunter2pass"),
    "Oracle": ("jdbc:oracle:thin:me/…@db:5432/x", "jdbc:oracle:thin:me/hunter2pass@db:5432/x"),
    "sshpass": ("sshpass -p …", "sshpass -p hunter2pass"),
    "Google": ("AIza…", "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234"),
    "Google OAuth": ("ya29.…", f"ya29.{SOME}"),
    "Google client": ("GOCSPX-…", f"GOCSPX-{SOME}"),
    "Groq": ("gsk_…", f"gsk_{SOME}"),
    "Hugging Face": ("hf_…", f"hf_{SOME}"),
    "NVIDIA": ("nvapi-…", f"nvapi-{SOME}"),
    "npm": ("npm_…", f"npm_{SOME}"),
    "npm login": ("_authToken=…", f"_authToken={SOME}"),
    "Perplexity": ("pplx-…", f"pplx-{SOME}"),
    "PyPI": ("pypi-…", f"pypi-{SOME}{SOME}"),
    "Replicate": ("r8_…", f"r8_{SOME}"),
    "Slack": ("xoxb-…", "xoxb-123456789012-abcdefghijkl"),
    "Slack app": ("xapp-…", "xapp-1-A0123456789"),
    "Slack hook": ("hooks.slack.com/services/…", "hooks.slack.com/services/T0/B0/abcdefghij"),
    "xAI": ("xai-…", f"xai-{SOME}"),
    "JSON web token": ("eyJ…", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"),
    "login of a URL": ("postgresql://…@db:5432/x", "postgresql://me:hunter2pass@db:5432/x"),
    "login of a URL, encoded": ("mysql%3A%2F%2F…%40db", "mysql%3A%2F%2Fme%3Ahunter2pass%40db"),
    "signed URL": ("https://x/a?e=1&X-Amz-Signature=…", "https://x/a?e=1&X-Amz-Signature=abcdef0123456789"),
    "signed URL, encoded": ("https%3A%2F%2Fx%3Fsig%3D…", "https%3A%2F%2Fx%3Fsig%3Dabcdef0123456789"),
    "private key": (
        "-----BEGIN RSA PRIVATE KEY-----…",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIabc+/\n-----END RSA PRIVATE KEY-----",
    ),
    "end of a private key": ("(…", "(cdef+/=\n-----END PRIVATE KEY-----"),
}
WITHIN = {  # where a credential may stand, and forms that have no place there
    "a {}, b": (),
    '{{"a": "x\\n{}"}}': (),
    "\x1b[1;32m{}\x1b[0m": (),
    "token%3D{}": (),
    "key_{}": ("bearer", "basic", "AWS secret"),
    "\\u0022{}\\u0022": (),
    "\\u000A{}": (),
    "q%3d{}": (),
    "=3D{}": (),
    "\x1b[K{}": (),
    "\x1b(B{}": (),
    "&quot;{}&quot;": ("Azure", "login of a URL", "signed URL"),
    '"{{\\"a\\": \\"x\\\\n{}\\"}}"': (),
}
WRITINGS = {  # other ways to write a form, and what is shown
    f"DATABASE_PASSWORD={SOME}": "DATABASE_PASSWORD=…",
    "host=h password='s3cr,t!' user=u": "host=h password='…' user=u",
    'mysql_passwd%3Dhunter2 "': 'mysql_passwd%3D… "',
    "jdbc:oracle:oci:scott/tiger#1@//h/x": "jdbc:oracle:oci:scott/…@//h/x",
    "oracle%3Athin%3Au%2Fpa%24s%40h": "oracle%3Athin%3Au%2F…%40h",
    'sshpass -p"hunter2pass" ssh h': 'sshpass -p"…" ssh h',
    f"https://x/cb#access_token={SOME}&state=1": "https://x/cb#access_token=…&state=1",
    f"https%3A%2F%2Fx%2Fcb%23id_token%3D{SOME}": "https%3A%2F%2Fx%2Fcb%23id_token%3D…",
    f"AKIAIOSFODNN7EXAMPLE/{AWS}": "AKIA…/…",
    f"ASIAIOSFODNN7EXAMPLE:{AWS}": "ASIA…:…",
}
HARMLESS = [
    "Password: at least 8 characters",
    "export MY_PASSWORD=$SECRET",
    "oracle:thin:client and a/b@c",
    "sshpass -h",
    f"x/{AWS}",
    "the bearer certificate",
    "basic understanding of JavaScript",
    "task-sk-learn-is-a-library-v1",
    "risk-assessment_of_everything_else",
    "hf_model",
    "AKIAIOSFODNN7EXAMPLES",
    "eyJ.a.b",
    "http://host:8080/a@b",
    "https://example.org/?page=2&key=name&sort=desc",
    "commit 0123456789abcdef0123456789abcdef01234567",
    "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
]
NAMES = {
    **dict.fromkeys(["api_key", "apiKey", "auth_token", "db_password", "SECRET", "authorization", "pwd"], True),
    **dict.fromkeys(["tokens_in", "max_tokens", "max_token", "sort_key", "author", "tokenizer", "passes"], False),
}


@pytest.mark.parametrize("within", WITHIN)
def test_a_credential_of_each_form_is_masked_wherever_it_stands(within):
    assert KEYS.keys() == SECRETS.keys()
    shown = {name: masked(within.format(key)) for name, (_, key) in KEYS.items() if name not in WITHIN[within]}
    assert shown == {name: within.format(KEYS[name][0]) for name in shown}


UNSEEN = [
    "\x1b[0m", "\x1b[m\x1b[K", "\x1b[38:5:1m", "\x1b[>4;2m", "\x9b31m", "\x1b]8;;http://a/\x1b\\", "\x1b]0;t\x07",
    "\x1b(0", "\x1b=", "\0", "\x01", "\x7f", "\r", "\xad", "\u034f", "\u180e", "\u200b", "\u202e", "\u2060", "\u2063",
    "\u2066", "\u3164", "\ufe0f", "\ufffd", "\ud800", "\U000e0041", "\u200b\u200c", "\\u001b[1;31m", "\\x1b[31m",
    "\\033[31m", "\\e[31m", "\\u200b", "\\\\u200b", "\\u{200b}", "\\udb40\\udc41", "\\xe2\\x80\\x8b", "\\xad", "\\r",
    "&#8203;", "&#x200B;", "&ZeroWidthSpace;", "%E2%80%8B", "%C2%AD", "%1B[31m", "%1B%5B31m",
]  # fmt: skip


@pytest.mark.parametrize("split", UNSEEN)
def test_a_credential_that_is_split_by_what_is_not_seen_is_masked(split):
    shown = {name: masked(f"a {key[:-5]}{split}{key[-5:]}, b").replace(split, "") for name, (_, key) in KEYS.items()}
    assert shown == {name: f"a {KEYS[name][0]}, b" for name in KEYS}
    assert masked(f"a {split} b") == f"a {split} b"


ALNUM = string.ascii_letters + string.digits
URL = f"{ALNUM}-_"
BASE64 = f"{ALNUM}+/"
HEX = string.digits + "abcdef"
UPPER = string.ascii_uppercase + "234567"
DRAWN = [  # credentials of which most characters are drawn: what is shown, then texts, and alphabets with lengths
    ("sk-", "proj-", (URL, 156)), ("sk-", "svcacct-", (URL, 120)), ("sk-", (ALNUM, 48)), ("sk-", (HEX, 32)),
    ("sk-", "ant-api03-", (URL, 93), "AA"), ("sk-", "or-v1-", (HEX, 64)), ("sk_live_", (ALNUM, 24)),
    ("whsec_", (BASE64, 32)), ("ghp_", (ALNUM, 36)), ("github_pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    ("glpat-", (URL, 20)), ("glpat-", (URL, 27), ".01.", (HEX, 9)), ("AKIA", (UPPER, 16)), ("AIza", (URL, 35)),
    ("ya29.", "a0", (URL, 100)), ("GOCSPX-", (URL, 28)), ("gsk_", (ALNUM, 52)), ("hf_", (ALNUM, 34)),
    ("xai-", (ALNUM, 80)), ("nvapi-", (URL, 64)), ("npm_", (ALNUM, 36)), ("pypi-", "AgEIcHlwaS5vcmc", (URL, 100)),
    ("r8_", (ALNUM, 37)), ("pplx-", (ALNUM, 48)), ("xoxb-", (string.digits, 11), "-", (ALNUM, 24)),
    ("Bearer ", (BASE64, 40)), ("eyJ", (URL, 33), ".", (URL, 80), ".", (URL, 43)), ("AccountKey=", (BASE64, 86), "=="),
    ("x-api-key: ", (URL, 40)), ("aws_secret_access_key = ", (BASE64, 40)), ('SessionToken": "', (BASE64, 200)),
    ("_authToken=", (ALNUM, 36)), ("PGPASSWORD=", (ALNUM, 16)), ("QXV0aG9yaXphdGlvbj", "og", (ALNUM, 60)),
    ("?subscription-key=", (HEX, 32)), ("&X-Amz-Signature=", (HEX, 64)), ("postgres://", "u:", (ALNUM, 14), "@h/x"),
    ("redis://", ":", (ALNUM, 14), "@h:6379"), ("postgres://", "u:p@", (ALNUM, 14), "@h"),
    ("postgres://", "u:ab/", (ALNUM, 14), "@h/x"), ("https://", (ALNUM, 40), "@h/a"),
    ("https:\\/\\/", (ALNUM, 20), ":x-oauth-basic@h"), ("https://", (HEX, 32), ":", (HEX, 32), "@h/1"),
    ("-----BEGIN PRIVATE KEY-----", "\n", (BASE64, 64), "\n", (BASE64, 64), "\n-----END PRIVATE KEY-----"),
    ("-----BEGIN PRIVATE KEY-----", "\n", (BASE64, 64), "\n[truncated]\n\n-----\nnext"),
    ("-----BEGIN PRIVATE KEY-----", "\n", (BASE64, 64), "\n(cut)\n-----BEGIN CERTIFICATE-----\nabc"),
    ("-----BEGIN PRIVATE KEY-----", "\n-----\n", (BASE64, 64), "\n-----END PRIVATE KEY-----"),
]  # fmt: skip
PLACES = {
    "plain": "a {} b".format,
    "key": "key={}".format,
    "JSON": lambda key: json.dumps({"a": key}),
    "JSON in JSON": lambda key: json.dumps(json.dumps({"a": key})),
    "Python": lambda key: repr({"a": key.encode()}),
    "HTML": html.escape,
    "URL": lambda key: quote(f" {key}", safe=""),
}


def drawn(random, parts):
    """Draw a credential; return it, and its pieces that no text may show."""
    texts = [part if isinstance(part, str) else "".join(random.choices(part[0], k=part[1])) for part in parts]
    bodies = [text for part, text in zip(parts, texts, strict=True) if not isinstance(part, str)]
    return "".join(texts), {body[at : at + 8] for body in bodies for at in range(len(body) - 7)}


def shown_of(pieces, text):
    return [piece for piece in pieces if piece in text]


@given(seed=st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_no_drawn_credential_is_shown_in_any_place_or_form(seed):
    random = Random(seed)
    for parts in DRAWN:
        key, pieces = drawn(random, parts)
        split = random.randrange(1, len(key))
        texts = {place: written(key) for place, written in PLACES.items()}
        texts |= {unseen: f"a {key[:split]}{unseen}{key[split:]} b" for unseen in UNSEEN}
        for place, text in texts.items():
            for output in (masked(text), plain(text, keep_lines=True)):
                assert not shown_of(pieces, output), (parts[0], place, text)
        assert shown_of(pieces, key)
        with masking(False):
            assert shown_of(pieces, plain(key))


PIECES = [*UNSEEN, *(key[:4] for _, key in KEYS.values()), *(key for _, key in KEYS.values()), "a", " ", "\n", "@", ":"]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("".join))
@settings(max_examples=30)
def test_masking_any_text_only_replaces_pieces_of_it(text):
    text = text.replace("…", "")
    place = 0
    for piece in masked(text).split("…"):
        found = text.find(piece, place)
        assert found >= 0
        place = found + len(piece)


def unread_cell(text):
    """Return the note on a cell that is no number, which quotes the beginning of the cell."""
    cells = pd.DataFrame({"seconds": [text]})
    return str(unread_cells(pd.DataFrame({"duration": [math.nan]}), cells, {"duration": "seconds"}))


CUTS = {  # what makes texts shorter, or replaces characters in them
    "line": cut_line,
    "name": cut_name,
    "end": lambda text: cut_end(text, 200),
    "middle": lambda text: shorten(text, 60),
    "event": shortened,
    "unread cell": unread_cell,
    "pattern": message_pattern,
    "pattern of errors": masked_text,
}


@pytest.mark.parametrize("cut", CUTS)
@given(seed=st.integers(0, 2**32), before=st.integers(0, 250), after=st.integers(0, 60))
@settings(max_examples=10, deadline=None)
def test_what_cuts_or_rewrites_a_text_leaves_no_part_of_a_credential(cut, seed, before, after):
    for parts in DRAWN:
        key, pieces = drawn(Random(seed), parts)
        text = f"{'x ' * before} {key}{' y' * after}"
        assert not shown_of(pieces, masked(CUTS[cut](text)))


def test_a_second_credential_that_a_cut_brings_into_view_is_masked_whole():
    for before in range(700, 800, 7):
        assert "Ab1cdEf2" not in cut_end(f"eyJ{'a' * before} ghp_Ab1cdEf2ghIj3klMn4opQr5stUv6wxYz7ABC", 200)


def test_a_cut_before_masking_would_show_a_part_of_a_credential():
    key, pieces = drawn(Random(1), ("-----BEGIN PRIVATE KEY-----", "\n", (BASE64, 900)))
    text = f"{'x ' * 150}{key}"
    assert shown_of(pieces, masked(text[:200] + text[-200:]))
    assert not shown_of(pieces, masked(cut_line(text)))


@pytest.mark.parametrize("name", [name for name in KEYS if not name.endswith("encoded")])
def test_a_credential_in_a_url_is_masked(name):
    _, key = KEYS[name]
    secret = key.removesuffix("@db:5432/x").removesuffix("\n-----END RSA PRIVATE KEY-----")
    assert quote(secret.rstrip("="), safe="")[-6:] not in masked(f"https://x/?q={quote(key, safe='')}&r=1")


@pytest.mark.parametrize("text", WRITINGS)
def test_other_ways_to_write_a_credential_are_masked(text):
    assert masked(text) == WRITINGS[text]
    assert masked(json.dumps({"a": text})) == json.dumps({"a": WRITINGS[text]}, ensure_ascii=False)


def test_other_text_stays_and_the_secret_of_an_aws_id_does_not():
    assert [masked(text) for text in HARMLESS] == HARMLESS
    assert masked(f"{AWS} is no secret alone") == f"{AWS} is no secret alone"
    assert masked(f"AKIAIOSFODNN7EXAMPLE, then {AWS}") == "AKIA…, then …"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", KEYS)
def test_a_quarter_of_a_megabyte_of_the_beginnings_of_a_credential_is_masked(name):
    _, key = KEYS[name]
    texts = [key[:4], f"-{key[:4]}", key[:-4], f"{key[:8]} "]
    texts += [key.replace(part, escaped)[:-6] for part, escaped in (("/", "\\\\/"), ("%2F", "%5C%2F")) if part in key]
    for text in texts:  # quadratic time would take minutes for each
        assert masked(f"{key} {text * (250_000 // len(text))}")  # the first has all that a search looks for


BODIES = {
    name: f"{SOME[number:]}{SOME[:number]}" for number, name in enumerate(("plain", "colour", "unseen", "escape"))
}
WRITTEN = {  # the keys of these bodies, as a log may have them
    "plain": f"hf_{BODIES['plain']}",
    "colour": f"hf_{BODIES['colour'][:15]}\x1b[31m{BODIES['colour'][15:]}",
    "unseen": f"hf_{BODIES['unseen'][:15]}\u200b{BODIES['unseen'][15:]}",
    "escape": f"\\nhf_{BODIES['escape']}",
}
COMMANDS = {  # places other than a folder of reports, and the command that writes there
    "terminal": "trajectories logs",
    "listing": "trajectories logs --list all",
    "comparison": "compare logs",
    "a run": "show logs --kind trajectories",
} | {
    suffix: f"trajectories logs --list all --output table{suffix}"
    for suffix in WRITERS
    if suffix not in (".json", ".parquet")  # which programs read
}


@pytest.fixture
def logs_with_keys(tmp_path, monkeypatch):
    """Write a table with each key in each of its fields."""
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rows = [
        {"task": f"t{n} {key}", "model": f"m{n % 2} {key}", "score": n % 2, "status": f"failed: {key}", "agent": key,
         "error": key, key: key, "started": key, "messages": [
             {"role": "user", "name": key, "content": f"I say {key}"}, {"role": key, "content": "b", "timestamp": key}]}
        for key in WRITTEN.values() for n in range(3)
    ]  # fmt: skip
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/runs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def text_of(path):
    """Return all text in a file; of an Excel file, in the members of the archive that it is."""
    if path.suffix != ".xlsx":
        return path.read_text("latin-1")
    with zipfile.ZipFile(path) as archive:
        return "".join(archive.read(name).decode("latin-1") for name in archive.namelist())


def leaked(text):
    """Return the keys of which a text has one half or both."""
    return {name for name, body in BODIES.items() if body[:15] in text or body[15:] in text}


@pytest.mark.parametrize("place", COMMANDS)
def test_no_output_of_a_command_has_a_key_of_a_log_in_any_form(logs_with_keys, place):
    for is_masked in (True, False):
        with masking(is_masked):
            result = CliRunner().invoke(main, COMMANDS[place].split())
        assert result.exit_code == 0, result.output
        text = result.output + "".join(map(text_of, logs_with_keys.glob("table.*")))
        assert bool(leaked(text)) == (not is_masked)


def test_the_name_of_a_report_has_no_key_of_the_folder_that_it_is_named_after():
    name = file_name([f"logs/{WRITTEN['plain']}"])
    assert name.startswith("logs_hf_")
    assert not leaked(name)
    assert name != file_name([f"logs/{WRITTEN['plain'][:-1]}x"])
    with masking(False):
        assert leaked(file_name([f"logs/{WRITTEN['plain']}"]))


def test_no_file_of_a_report_holds_a_key_that_stands_anywhere_in_a_log(logs_with_keys):
    for flag in ([], ["--no-mask"]):
        out = logs_with_keys / f"out{len(flag)}"
        with undrawn() if flag else nullcontext():
            result = CliRunner().invoke(main, ["report", "logs", "trajectories", "-o", str(out), *flag])
        assert result.exit_code == 0, result.output
        files = [path for path in out.rglob("*") if path.is_file()]
        assert {path.suffix for path in files} >= {".html", ".csv", ".ipynb", ".json", *([] if flag else [".svg"])}
        found = {path.suffix for path in files if leaked(text_of(path))}
        assert found >= {".html", ".csv", ".ipynb"} if flag else found == set()
        assert str(logs_with_keys) not in "".join(map(text_of, files))
    cached = [path for path in (logs_with_keys / "cache").rglob("*") if path.name != ".evalkit.lock"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in cached} == {0o700, 0o600}


@pytest.mark.parametrize(("folder", "flag"), [("{}", ()), (".", ()), (".", ("--no-mask",))])
def test_a_key_in_a_path_of_the_user_or_the_name_of_an_unreadable_log_is_in_no_file_of_a_report(
    tmp_path, monkeypatch, folder, flag
):
    monkeypatch.chdir(tmp_path)
    key = WRITTEN["plain"]
    logs = {"Andy_0_0": log(f"{SCORE}1"), f"Bob_{key}_1": "{"}
    write_all(tmp_path, {f"runs {key}/logs/m/cook/{name}.json": content for name, content in logs.items()})
    source = f"{folder.format(tmp_path)}/runs {key}/logs"
    with nullcontext() if folder == "{}" else undrawn():
        result = CliRunner().invoke(main, ["report", source, "leaderboard", "-o", "out", *flag])
    assert result.exit_code == 0, result.output
    leaking = {path.suffix for path in (tmp_path / "out").rglob("*") if path.is_file() and leaked(text_of(path))}
    assert leaking >= {".ipynb"} if flag else leaking == set()
    assert str(tmp_path) not in (tmp_path / "out/manifest.json").read_text()
    page = "".join(path.read_text() for path in tmp_path.glob("out/runs/*.html"))
    assert "Bob_hf_" in page
    assert bool(leaked(page)) == bool(flag)


@pytest.mark.parametrize("flag", [(), ("--no-mask",)])
def test_runs_are_shown_without_keys_unless_asked_for(tmp_path, monkeypatch, flag):
    monkeypatch.chdir(tmp_path)
    content = log(f"{SCORE}1")
    content["turns"][:0] = [turn("assistant", f"I say {key}") for _, key in KEYS.values()]
    write_all(tmp_path, {"logs/m/cook/Andy_0_0.json": content})
    shown = CliRunner().invoke(main, ["show", "logs/m/cook/Andy_0_0.json", *flag]).output
    of_run = CliRunner().invoke(main, ["show", "logs", "--kind", "mindcraft", *flag]).output
    assert CliRunner().invoke(main, ["view", "logs", "-o", "out", *flag]).exit_code == 0
    pages = "".join(path.read_text() for path in tmp_path.glob("out/**/*.html"))
    for text in (shown, of_run, pages):
        assert "I say" in text
        keys = [key for _, key in KEYS.values() if "\n" not in key and "&" not in key]  # which pages escape
        assert [key for key in keys if key in text] == (keys if flag else [])


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
    assert "would show this value" in result.output
    assert "SEKRET" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine.ipynb"]


def test_one_without_a_value_is_not_refused_and_a_default_is(tmp_path):
    path = tmp_path / "mine.ipynb"
    path.write_text(nbformat.writes(NOTEBOOK))
    assert len(plan([str(path)], values={"port": 2})) == 1
    path.write_text(nbformat.writes(NOTEBOOK).replace('api_key: str = \\"\\"', 'api_key: str = \\"SEKRET\\"'))
    with pytest.raises(PlanError, match="api_key: the page, its file name") as raised:
        plan([str(path)], values={"port": 2})
    assert "SEKRET" not in str(raised.value)
