"""Text from logs is untrusted: before it is printed or drawn it becomes plain text of one line."""

import re
import unicodedata

# controls, format characters (direction overrides), surrogates, private, unassigned
_DROPPED = {"Cc", "Cf", "Cs", "Co", "Cn"}
_JOINERS = {"\u200d", "\ufe0f"}  # keep composed emoji whole


def plain(text: object, width: int | None = None, *, keep_lines: bool = False) -> str:
    r"""Make any text safe to print in a terminal or to draw in a figure.

    Control and format characters (escape sequences, carriage returns, direction overrides, lone surrogates) are
    replaced by ``\ufffd``; line breaks and tabs become spaces.

    Parameters
    ----------
    text : object
        Anything; ``str()`` is taken.
    width : int, optional
        Longest result in characters; a longer text ends in ``…``.
    keep_lines : bool
        Keep line breaks and tabs.

    Returns
    -------
    str
    """
    text = str(text)
    if not (text.isascii() and text.isprintable()):
        text = "".join(_clean(character, keep_lines) for character in text)
    if width is not None and len(text) > width:
        text = text[: max(width - 1, 0)] + "…"
    return text


def _clean(character: str, keep_lines: bool) -> str:
    if character in "\u2028\u2029":  # the separators of lines and paragraphs
        character = "\n"
    if character in "\n\t":
        return character if keep_lines else " "
    if character == "\r":
        return "" if keep_lines else " "
    if unicodedata.category(character) in _DROPPED and character not in _JOINERS:
        return "\ufffd"
    return character


def is_local_link(address: object) -> bool:
    """Tell whether a link stays beside its page: relative or an anchor, without scheme, host, space or backslash."""
    return (
        isinstance(address, str)
        and bool(address)
        and address.isprintable()
        and not re.match(r"/|[^/?#]*:|.*[ \\]", address)
    )
