"""Code blocks of pages, and how they are run: Python line by line, commands of evalkit in this process."""

import doctest
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from evalkit.cli import main

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"(?ms)^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$")
LANGUAGES = {"python", "sh", "json", "yaml", "toml", "text", ""}  # text, and none: output, or the shape of something


class Block(NamedTuple):
    """A code block of a page."""

    language: str
    text: str
    line: int


def blocks(path: Path) -> list[Block]:
    """List the code blocks of a page."""
    page, found = path.read_text("utf-8"), []
    for fence in FENCE.finditer(page):
        text = re.sub(rf"^{fence['indent']}", "", fence["text"], flags=re.MULTILINE)
        found.append(Block(fence["language"], text, page.count("\n", 0, fence.start()) + 1))
    return found


def pages() -> list[Path]:
    """List the pages whose blocks are run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]


def commands(text: str) -> Iterator[str]:
    """Give the commands of a block, without comments; a backslash joins lines."""
    for line in text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield shlex.join(words) if ">" not in words else shlex.join(words[: words.index(">")])


def run_python(block: Block, names: dict[str, Any], where: str) -> None:
    """Run a block; of one with prompts, compare what it prints."""
    if ">>> " not in block.text:
        exec(compile("\n" * block.line + block.text, where, "exec"), names)
        return
    examples = doctest.DocTestParser().get_doctest(block.text, names, where, where, block.line)
    said: list[str] = []
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    doctest.DocTestRunner(optionflags=flags).run(examples, out=said.append, clear_globs=False)
    names |= examples.globs
    assert not said, "".join(said)


def run_command(line: str) -> str:
    """Run a command of evalkit and give what it prints; other programs are left out."""
    program, *words = shlex.split(line)
    if program != "evalkit":
        return ""
    result = CliRunner().invoke(main, words, prog_name="evalkit", catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output
