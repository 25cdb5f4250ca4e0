"""Group messages of errors by what they say, whatever they name."""

import re

NAME, NUMBER = "…", "#"  # what stands for names and paths, and for numbers
_MOST_WORDS = 3  # of a name; a longer quotation is a message of its own
_LEFT = f"{{0}}{NAME}{{0}}"  # of a quoted name
_QUOTED = re.compile(r"(?<!\w)(?:'([^'\n]*)'|\"([^\"\n]*)\"|`([^`\n]*)`)(?!\w)")
_ID = re.compile(r"(?<![\w.])(?:0x[0-9a-fA-F]+|(?=\w*\d)(?=[\w-]*[a-f])[0-9a-f]{8,}(?:-[0-9a-f]{4,})*)\b")
_PATH = re.compile(
    r"\w+://\S+|(?<![\w/])(?:[A-Za-z]:\\|~?/|\.{1,2}/)?(?:[\w.@+-]+[\\/])+[\w.@+-]*|(?<![\w/<])/[\w.@+-]+"
)
_NUMBER = re.compile(r"(?<![\w#])(?<!Errno )[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?%?|(?<=[A-Za-z_])\d+")


def message_pattern(message: str) -> str:
    """Replace what varies in a message: numbers, paths, ids, and quoted names within a sentence; never all of it.

    Examples
    --------
    >>> message_pattern("No cells of type 'B' in /data/run7.h5ad")
    "No cells of type '…' in …"
    >>> message_pattern("'leiden'")
    "'leiden'"
    """
    bare = message.strip()
    if len(bare) > 1 and bare[0] in "'\"`" and bare.find(bare[0], 1) == len(bare) - 1:  # all of it is quoted
        return f"{bare[0]}{message_pattern(bare[1:-1])}{bare[0]}" if len(bare.split()) > _MOST_WORDS else message
    text = _QUOTED.sub(
        lambda found: found[0] if len(found[0].split()) > _MOST_WORDS else _LEFT.format(found[0][0]), message
    )
    text = _NUMBER.sub(NUMBER, _PATH.sub(NAME, _ID.sub(NAME, text)))
    return text if re.search(r"[^\W\d_]{2}", text) else message
