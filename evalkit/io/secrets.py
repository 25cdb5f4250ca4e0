"""Mask credentials in text from logs before it is shown. The forms of credentials are data (`SECRETS`).

The time of every search is proportional to the length of the text: after the first characters of a credential match,
either everything that follows matches too, or the length of the search is limited.
"""

import base64
import binascii
import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate
from typing import NamedTuple

MASK = "EVALKIT_MASK"  # environment variable; "off" shows credentials
_is_masking: ContextVar[bool] = ContextVar("is_masking", default=os.environ.get(MASK) != "off")

# What may precede a credential: anything but a letter or digit, unless that ends an escape of JSON, a URL or a terminal
_START = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=[0-9;\[(][A-Za-z])|(?<=\x1b[0-~])"
    r"|(?<=[%=][0-9A-Fa-f]{2})|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"
)
# Invisible text that may occur within a credential: control characters, terminal escape sequences and characters of
# zero width, also written as escapes of JSON, HTML, URLs and shells
_INVISIBLE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HEX = (
    r"(?:00(?:0[0-8b-f]|1[0-9a-f]|7f|[89][0-9a-f]|ad)|034f|061c|115f|1160|17b[45]|180[b-f]|200[b-f]|202[a-e]"
    r"|206[0-9a-f]|3164|fe0[0-9a-f]|feff|ffa0|fff[0-9a-f])"
)
_BYTE = r"(?:%|\\{1,8}x)"  # precedes each byte of UTF-8
_UTF8 = (
    rf"(?:c2{_BYTE}(?:[89][0-9a-f]|ad)|cd{_BYTE}8f|e1{_BYTE}a0{_BYTE}8[b-f]|e2{_BYTE}80{_BYTE}(?:8[b-f]|a[a-e])"
    rf"|e2{_BYTE}81{_BYTE}a[0-9a-f]|ef{_BYTE}b8{_BYTE}8[0-9a-f]|ef{_BYTE}bb{_BYTE}bf"
    rf"|f3{_BYTE}a0{_BYTE}8[01]{_BYTE}[89ab][0-9a-f]|0[0-8b-f]|1[0-9a-f]|7f)"
)
_DECIMAL = (
    r"(?:173|847|1564|444[78]|615[5-9]|820[3-7]|823[4-8]|828[89]|829\d|830[0-3]|12644|6502[4-9]|6503\d|65279|65440)"
)
_COMMAND = r"(?:\[|%5b)[0-?]*+[ -/]*+[@-~]"  # a terminal command, such as a colour
_STRING = r"[\]PX^_][^\x07\x1b\x9c\\\n]*+(?:\x07|\x9c|\\{1,8}(?:x07|a)|(?:\x1b|\\{1,8}(?:x1b|u001b|0?33|e))\\{1,8})"
_SEQUENCE = rf"(?:{_COMMAND}|{_STRING}|[ -/]++[0-~])"  # follows an escape character
_UNSEEN = re.compile(
    rf"[{_INVISIBLE}\\&%](?i:(?<=\x1b)(?:{_SEQUENCE}|[0-~])?|(?<=\x9b)[0-?]*+[ -/]*+[@-~]|(?<=\r)(?!\n)|(?<![\r\\&%])"
    rf"|(?<=\\)(?<!\\\\)\\*+(?:(?:x1b|u001b|0?33|e)(?:{_SEQUENCE})?|u{_HEX}|u\{{0*{_HEX}\}}|u000e0[0-9a-f]{{3}}"
    rf"|udb40\\{{1,8}}udc[0-9a-f]{{2}}|x{_UTF8}|x(?:[89][0-9a-f]|ad)|r)"
    rf"|(?<=&)(?:#0*+{_DECIMAL}|#x0*+{_HEX}|shy|zwn?j|lrm|rlm|nobreak|zerowidthspace);"
    rf"|(?<=%)(?:1b(?:{_SEQUENCE})?|{_UTF8}))"
)
_GAP = r"(?:\s|%20|\\[nrt]|:|\"|'){1,8}"
_IS = r"(?:[\"'\\]|&quot;|%22){0,6}\s?(?:[:=]|%3[AD])(?:[\s\"'\\]|&quot;|%2[02]){0,8}"
_OTHER = r"(?:&quot;|\W|%[0-9A-F]{2}){1,12}?"
_TOKEN = r"(?=[\w.~+/=%-]{0,200}\d|[\w.~+/=%-]{32})(?:[\w.~+/=-]|%2[BF]|%3D){8,}"  # not a word
_PASSWORD = r"(?![${*])(?:[^\x00-\x20\"'\\;&|<>,]|,(?=\S)){4,}"  # not a variable
_PARAMETER = r"(?:[?&;#]|%26|%3F|%23|\\u0026)"  # precedes a parameter of a URL
_SIGNATURES = (
    r"(?:x-(?:amz|goog|oss)-)?(?:signature|security-token|credential)|sig|awsaccesskeyid|key-pair-id"
    r"|(?:access_|id_|refresh_|auth_)?token|(?:api|access)_?key|subscription-key|client_secret|password"
)
# The login of a URL is all text up to the last @, since a password may contain an @. The port of a host without a login
# is not a password, and a short name without a password is not a secret
# The last alternative of a possessive group never matches. Without it, Python before 3.11.5 keeps what the last, failed
# repetition has consumed (https://github.com/python/cpython/issues/106052).
_LOGIN = r"[^\s\"'<>:@\\]|:(?!\\{0,8}/\\{0,8}/)|\\(?!\")|(?!)"
_ENCODED_LOGIN = r"[^\s\"'<>&%]|%(?!40|3A(?:(?:%5C){0,8}%2F){2})|(?!)"


class Secret(NamedTuple):
    """A form of credential."""

    hint: str  # text that every match contains, in lower case, for a quick test
    kept: str  # pattern of the beginning, which stays visible
    rest: str  # pattern of the rest, which is masked
    flags: int = 0
    is_within_words: bool = False  # whether it may begin in the middle of a word


SECRETS = {
    "bearer": Secret("bearer", rf"bearer{_GAP}", _TOKEN, re.IGNORECASE),
    "basic": Secret(
        "basic", rf"basic{_GAP}", r"(?P<login>[A-Za-z0-9+/]{6,}={0,2})(?:%2[BF][A-Za-z0-9+/]*|%3D)*", re.IGNORECASE
    ),
    "header": Secret("-key", rf"(?:api|subscription)-key{_IS}", _TOKEN, re.IGNORECASE),
    "header, encoded": Secret("xv0ag9yaxphdglvbj", "[QY]XV0aG9yaXphdGlvbj", r"[\w+/=-]{10,}"),  # Authorization:
    "OpenAI, Anthropic, OpenRouter": Secret("sk-", "sk-", r"(?P<body>[\w-]{20,})"),
    "Stripe": Secret("k_", "[rs]k_(?:live|test)_", r"\w{10,}"),
    "Stripe hook": Secret("whsec_", "whsec_", r"(?:[\w+/=]|%2[BF]){20,}"),
    "GitHub": Secret("gh", "gh[opsur]_", r"\w{20,}"),
    "GitHub, fine-grained": Secret("github_pat_", "github_pat_", r"\w{20,}"),
    "GitLab": Secret("gl", "gl(?:pat|dt|rt|ptt|cbt|soat|ft|imt|agent|oas|ffct)-", r"[\w-]{20,}(?:\.[\w-]+)*"),
    "AWS id": Secret("akia", "AKIA", r"[0-9A-Z]{16}\b"),
    "AWS temporary id": Secret("asia", "ASIA", r"[0-9A-Z]{16}\b"),
    "AWS secret": Secret(
        "access", rf"secret_?access_?key{_OTHER}", r"(?:[A-Z0-9/+]|%2[FB]){40}", re.IGNORECASE, is_within_words=True
    ),
    "AWS session": Secret(
        "token",
        rf"(?:session|security)_?token{_OTHER}",
        r"(?:[A-Z0-9/+=]|%2[FB]|%3D){40,}",
        re.IGNORECASE,
        is_within_words=True,
    ),
    "Azure": Secret("accountkey", "AccountKey(?:=|%3D)", r"[A-Za-z0-9+/=%]{20,}", re.IGNORECASE),
    "database": Secret(
        "passw",
        rf"(?:PGPASSWORD{_IS}|PASSW(?:OR)?D(?:=|%3D)[\"']?)",
        _PASSWORD,
        re.IGNORECASE,
        is_within_words=True,
    ),
    "Oracle": Secret(
        "oracle",
        r"oracle(?::|%3A)\w{1,20}(?::|%3A)[\w.$#-]{1,100}(?:/|%2F)",
        r"(?:[^\s@\"'\\%]|%(?!40)){1,200}(?=@|%40)",
        re.IGNORECASE,
    ),
    "sshpass": Secret("sshpass", rf"sshpass{_GAP}-p(?:{_GAP})?(?:\\{{0,8}}[\"'])?", _PASSWORD),
    "Google": Secret("aiza", "AIza", r"[\w-]{30,}"),
    "Google OAuth": Secret("ya29.", r"ya29\.", r"[\w.-]{20,}"),
    "Google client": Secret("gocspx-", "GOCSPX-", r"[\w-]{20,}"),
    "Groq": Secret("gsk_", "gsk_", r"\w{20,}"),
    "Hugging Face": Secret("hf_", "hf_", r"[A-Za-z0-9]{20,}"),
    "NVIDIA": Secret("nvapi-", "nvapi-", r"[\w-]{20,}"),
    "npm": Secret("npm_", "npm_", r"[A-Za-z0-9]{30,}"),
    "npm login": Secret("_authtoken", rf"_authToken{_IS}", _TOKEN, re.IGNORECASE),
    "Perplexity": Secret("pplx-", "pplx-", r"[A-Za-z0-9]{20,}"),
    "PyPI": Secret("pypi-", "pypi-", r"[\w-]{40,}"),
    "Replicate": Secret("r8_", "r8_", r"[A-Za-z0-9]{20,}"),
    "Slack": Secret("xox", "xox[a-z]-", r"[\w-]{10,}"),
    "Slack app": Secret("xapp-", "xapp-", r"[\w-]{10,}"),
    "Slack hook": Secret("hooks.slack.com", r"hooks\.slack\.com(?:/|%2F)services(?:/|%2F)", r"[\w/%]{10,}"),
    "xAI": Secret("xai-", "xai-", r"[A-Za-z0-9]{20,}"),
    "JSON web token": Secret("eyj", "eyJ", r"[\w-]{12,}(?:\.[\w-]*){0,4}"),
    "login of a URL": Secret(
        "@",
        r":(?:\\{0,8}/){2}",
        r"(?!\[)(?=[^\s/@:\"'<>\\]{16,}+@|[^\s/@:\"'<>\\]*+:(?!\d{1,5}[/?#\\]))"
        rf"(?:{_LOGIN})++(?:@(?:{_LOGIN})*+)*(?=@)",
        is_within_words=True,
    ),
    "login of a URL, encoded": Secret(
        "%40",
        r"%3A(?:(?:%5C){0,8}%2F){2}",
        r"(?=(?:[^\s&%]|%(?!40|2F|3A)|(?!)){16,}+%40|(?:[^\s&%]|%(?!40|2F|3A)|(?!))*+%3A(?!\d{1,5}%(?:2F|3F|23)))"
        rf"(?:{_ENCODED_LOGIN})++(?:%40(?:{_ENCODED_LOGIN})*+)*(?=%40)",
        re.IGNORECASE,
        is_within_words=True,
    ),
    "signed URL": Secret(
        "=", rf"{_PARAMETER}(?:{_SIGNATURES})=", r"[\w%+/=.~-]{4,}", re.IGNORECASE, is_within_words=True
    ),
    "signed URL, encoded": Secret(
        "%3d", rf"{_PARAMETER}(?:{_SIGNATURES})%3D", r"(?:[\w+/=.~-]|%25)+", re.IGNORECASE, is_within_words=True
    ),
    "private key": Secret(
        "private",
        r"-----BEGIN[A-Z0-9 %+]{0,40}PRIVATE(?:[ +]|%20)KEY(?:(?:[ +]|%20)BLOCK)?-----",
        r"[^-]*+(?:-(?!----)[^-]*+|(?!))*+"
        r"(?:-----END[A-Z0-9 %+]{0,40}PRIVATE(?:[ +]|%20)KEY(?:(?:[ +]|%20)BLOCK)?-----)?",
    ),
    "end of a private key": Secret(
        "private",
        r"(?<![\w+/=\s\\%])",
        r"[\w+/=\s\\%]++-----END[A-Z0-9 %+]{0,40}PRIVATE(?:[ +]|%20)KEY(?:(?:[ +]|%20)BLOCK)?-----",
        is_within_words=True,
    ),
}


def _form(secret: Secret) -> str:
    """Return the pattern of a form of credential, which checks the preceding text only where `kept` matches."""
    start = "" if secret.is_within_words else rf"(?={secret.kept}){_START}"
    return f"{start}(?P<kept>{secret.kept}){secret.rest}"


_PATTERNS = [(one.hint, re.compile(_form(one), one.flags | re.ASCII)) for one in SECRETS.values()]
_AWS_ID = re.compile(r"(?:AKIA|ASIA)[0-9A-Z]{16}\b")
_AWS_SECRET = re.compile(  # not a commit digest
    r"(?:(?<![\w/+])|(?<=A[KS]IA[0-9A-Z]{16}/))(?=[a-z0-9/+]{0,39}[A-Z])[A-Za-z0-9/+]{40}(?![\w/+=])"
)
_WORDS = re.compile(r"(?:(?:[a-z]{1,15}|[a-z]?\d{1,4})(?:[-_]+|\Z))+")  # a name such as learn-to-cook-v2


def masked(text: str) -> str:
    """Replace known forms of credentials by their beginning and ``…``, even if invisible characters split them.

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
    spans = _spans(text)
    if unseen := [match.span() for match in _UNSEEN.finditer(text)]:
        starts, ends = [0, *(end for _, end in unseen)], [*(start for start, _ in unseen), len(text)]
        pieces = list(zip(starts, ends, strict=True))
        lengths = accumulate((end - start for start, end in pieces), initial=0)
        begins = list(lengths)  # offsets of the pieces in the visible text

        def place(seen: int) -> int:
            piece = bisect_right(begins, seen) - 1
            return starts[piece] + seen - begins[piece]

        found = _spans("".join(text[start:end] for start, end in pieces))
        spans += [(place(start), place(end - 1) + 1) for start, end in found]
    parts: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if start > done or not parts:
            parts += [text[done:start], "…"]
        done = max(done, end)
    return "".join([*parts, text[done:]]) if parts else text


def _spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end of the secret part of each credential in a text."""
    lower = text.lower()
    spans = [
        (match.end("kept"), match.end())
        for hint, pattern in _PATTERNS
        if hint in lower
        for match in pattern.finditer(text)
        if match.end("kept") < match.end() and _is_secret(match)
    ]
    if spans and _AWS_ID.search(text):
        spans += [match.span() for match in _AWS_SECRET.finditer(text)]
    return spans


def _is_secret(match: re.Match) -> bool:
    found = match.groupdict()
    if body := found.get("body"):
        return not _WORDS.fullmatch(body)
    if login := found.get("login"):
        try:
            return b":" in base64.b64decode(f"{login}===")  # extra padding is ignored
        except binascii.Error:
            return False
    return True


@contextmanager
def masking(is_on: bool) -> Iterator[None]:
    """Switch the masking of credentials in plain text (`evalkit.io.plain`) on or off within a ``with`` block."""
    token = _is_masking.set(is_on)
    try:
        yield
    finally:
        _is_masking.reset(token)


def is_masking() -> bool:
    """Return whether `evalkit.io.plain` masks credentials, which is the default."""
    return _is_masking.get()
