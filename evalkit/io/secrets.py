"""Credentials in text from logs: what they look like, as data, and masking them before the text is shown.

Every search takes time in proportion to the text: once the first characters of a credential have matched, so does all
that follows, or the search has an upper limit.
"""

import base64
import binascii
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

MASK = "EVALKIT_MASK"  # the variable that is "off" in a process that shows credentials
_is_masking: ContextVar[bool] = ContextVar("is_masking", default=os.environ.get(MASK) != "off")

# What may precede a credential: no letter or digit, unless it ends an escape: of JSON or a URL, or a colour's
_START = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=[0-9;\[(][A-Za-z])"
    r"|(?<=[%=][0-9A-Fa-f]{2})|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"
)
# What may occur within one and is not seen: colours, also as JSON has them, and characters without width
_UNSEEN = re.compile(r"(?:\x1b|\\u001[bB]|\\x1[bB])(?:\[[0-9;?]*[A-Za-z]|\([A-Z0-9])|[\xad\u200b-\u200f\u2060\ufeff]")
_GAP = r"(?:\s|%20|\\[nrt]|:|\"|'){1,8}"
_PARAMETER = r"(?:[?&;]|%26|%3F|\\u0026)"  # what precedes a parameter of a URL
_SIGNATURES = (
    r"(?:x-(?:amz|goog|oss)-)?(?:signature|security-token|credential)|sig|awsaccesskeyid|key-pair-id"
    r"|(?:access_|id_|refresh_|auth_)?token|(?:api|access)_?key|client_secret|password"
)


class Secret(NamedTuple):
    """A form of credential: what any text with one contains, in lower case; what is kept of it; and the rest of it."""

    hint: str
    kept: str
    rest: str
    flags: int = 0


SECRETS = {
    "bearer": Secret("bearer", rf"bearer{_GAP}", r"(?=[\w.~+/=-]{0,200}\d)[\w.~+/=-]{8,}", re.IGNORECASE),
    "basic": Secret("basic", rf"basic{_GAP}", r"(?P<login>[A-Za-z0-9+/]{6,}={0,2})", re.IGNORECASE),
    "OpenAI, Anthropic, OpenRouter": Secret("sk-", "sk-", r"(?:\w{1,15}+-){0,4}+\w{16,}[\w-]*"),
    "Stripe": Secret("k_", "[rs]k_(?:live|test)_", r"\w{10,}"),
    "GitHub": Secret("gh", "gh[opsur]_|github_pat_", r"\w{20,}"),
    "GitLab": Secret("-", "gl(?:pat|dt|rt|ptt|cbt|soat|ft)-", r"[\w-]{20,}"),
    "AWS id": Secret("akia", "AKIA", r"[0-9A-Z]{16}\b"),
    "AWS temporary id": Secret("asia", "ASIA", r"[0-9A-Z]{16}\b"),
    "AWS secret": Secret("access", r"secret_?access_?key(?:\W|%[0-9A-F]{2}){1,6}?", r"(?:[A-Z0-9/+]|%2[FB]){40}", re.I),
    "Azure": Secret("accountkey", "AccountKey(?:=|%3D)", r"[A-Za-z0-9+/=%]{20,}", re.IGNORECASE),
    "Google": Secret("aiza", "AIza", r"[\w-]{30,}"),
    "Google OAuth": Secret("ya29.", r"ya29\.", r"[\w.-]{20,}"),
    "Groq": Secret("gsk_", "gsk_", r"\w{20,}"),
    "Hugging Face": Secret("hf_", "hf_", r"[A-Za-z0-9]{20,}"),
    "NVIDIA": Secret("nvapi-", "nvapi-", r"[\w-]{20,}"),
    "npm": Secret("npm_", "npm_", r"[A-Za-z0-9]{30,}"),
    "Perplexity": Secret("pplx-", "pplx-", r"[A-Za-z0-9]{20,}"),
    "PyPI": Secret("pypi-", "pypi-", r"[\w-]{40,}"),
    "Replicate": Secret("r8_", "r8_", r"[A-Za-z0-9]{20,}"),
    "Slack": Secret("xox", "xox[a-z]-", r"[\w-]{10,}"),
    "Slack app": Secret("xapp-", "xapp-", r"[\w-]{10,}"),
    "Slack hook": Secret("hooks.slack.com", r"hooks\.slack\.com(?:/|%2F)services(?:/|%2F)", r"[\w/%]{10,}"),
    "xAI": Secret("xai-", "xai-", r"[A-Za-z0-9]{20,}"),
    "JSON web token": Secret("eyj", "eyJ", r"[\w-]{12,}(?:\.[\w-]*){0,2}"),
    "login of a URL": Secret("://", r"(?<![\w+.-])[\w+.-]++://[^\s/@:\"'<>]{0,99}:", r"[^\s/@\"'<>]{1,200}(?=@)", re.I),
    "login of a URL, encoded": Secret(
        "%3a%2f%2f", r"%3A%2F%2F[^\s/@:%]{0,99}%3A", r"(?:[^\s%]|%(?!40|2F)){1,200}(?=%40)", re.I
    ),
    "signed URL": Secret("=", rf"{_PARAMETER}(?:{_SIGNATURES})=", r"[\w%+/=.~-]{4,}", re.IGNORECASE),
    "signed URL, encoded": Secret("%3d", rf"{_PARAMETER}(?:{_SIGNATURES})%3D", r"(?:[\w+/=.~-]|%25)+", re.IGNORECASE),
    "private key": Secret(
        "private",
        r"-----BEGIN[A-Z0-9 %]{0,40}PRIVATE(?: |%20)KEY(?:(?: |%20)BLOCK)?-----",
        r"[^-]*+(?:-(?!----)[^-]*+)*+(?:-----END[A-Z0-9 %]{0,40}PRIVATE(?: |%20)KEY(?:(?: |%20)BLOCK)?-----|\Z)",
    ),
}
_WITHIN_WORDS = ("login", "signed", "AWS secret")  # the beginnings of forms that also occur within a word


def _form(name: str) -> str:
    """Return the pattern of a form of credential, which looks at the text before it only where it may begin."""
    start = "" if name.startswith(_WITHIN_WORDS) else rf"(?={SECRETS[name].kept}){_START}"
    return f"{start}(?P<kept>{SECRETS[name].kept}){SECRETS[name].rest}"


_PATTERNS = [(one.hint, re.compile(_form(name), one.flags | re.ASCII)) for name, one in SECRETS.items()]
_AWS_ID = re.compile(r"(?:AKIA|ASIA)(?:[0-9A-Z]{16}\b|…)")
_AWS_SECRET = re.compile(r"(?<![\w/+])(?=[a-z0-9/+]{0,39}[A-Z])[A-Za-z0-9/+]{40}(?![\w/+=])")  # no digest of a commit


def masked(text: str) -> str:
    """Replace credentials of known forms by their beginning and ``…``, even if colours split them.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        The text without credentials.

    Examples
    --------
    >>> io.masked("no key")
    'no key'
    """
    found, seen = _masked(text), _UNSEEN.sub("", text)
    if seen == text:
        return found
    as_seen = _masked(seen)
    return found if _UNSEEN.sub("", found) == as_seen else as_seen


def _masked(text: str) -> str:
    lower = text.lower()
    has_id = ("akia" in lower or "asia" in lower) and _AWS_ID.search(text)
    for hint, pattern in _PATTERNS:
        if hint in lower:
            text = pattern.sub(_mask, text)
    return _AWS_SECRET.sub("…", text) if has_id else text


def _mask(match: re.Match) -> str:
    found = match.groupdict()
    if login := found.get("login"):
        try:
            decoded = base64.b64decode(f"{login}===")  # more padding than needed does no harm
        except binascii.Error:
            decoded = b""
        if b":" not in decoded:
            return match[0]
    return f"{found['kept']}…"


@contextmanager
def masking(is_on: bool) -> Iterator[None]:
    """Mask credentials in all text that is made plain within a ``with`` block, or leave them."""
    token = _is_masking.set(is_on)
    try:
        yield
    finally:
        _is_masking.reset(token)


def is_masking() -> bool:
    """Return whether credentials are masked in text that is made plain; they are by default."""
    return _is_masking.get()
