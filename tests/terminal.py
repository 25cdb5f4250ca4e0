"""A terminal as far as redrawing needs one: what stands on it after everything that was written to it."""

import re

_CODE = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|(\r\n|\n)|(\r)|([^\x1b\r\n]+)")


def screen(written: str) -> list[str]:
    """Give the lines that stand on an endless screen; trailing empty ones are left out."""
    lines, row, column = [""], 0, 0
    at = 0
    while at < len(written):
        match = _CODE.match(written, at)
        assert match, f"a control code that this terminal does not know: {written[at : at + 12]!r}"
        at = match.end()
        numbers, letter, newline, carriage, text = match.groups()
        if text:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + text + line[column + len(text) :]
            column += len(text)
        elif newline:
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif carriage:
            column = 0
        elif letter == "A":  # up
            row -= int(numbers or 1)
            assert row >= 0, "above the screen"
        elif letter == "K":  # erase the line, or the rest of it
            lines[row] = "" if numbers == "2" else lines[row][:column]
        else:
            assert letter in "mhl", match[0]  # colours, and modes such as the cursor's visibility
    while lines and not lines[-1].strip():
        lines.pop()
    return [line.rstrip() for line in lines]
