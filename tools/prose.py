"""Count words that make the prose of evalkit hard to read, in each file.

    python -m tools.prose           # prints the files above their limits; the exit code is 1 if there are any
    python -m tools.prose --count   # prints how often each word occurs in each file
    python -m tools.prose --draw 7  # prints twenty random sentences (seed 7); check whether a newcomer understands them
    python -m tools.prose --lower   # lowers the limits to the current counts; a limit never rises

A file may not use any of these words unless `tools/prose.json` sets a limit for it. Without that file, `--lower` writes
the current counts.
"""

import ast
import inspect
import json
import random
import re
import runpy
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = ROOT / "tools/prose.json"
WORDS = {
    "holds": r"\bholds?\b",
    "those of": r"\bthose (of|that|with|which|in)\b",
    "that of": r"\bthat of\b",
    "beside": r"\bbesides?\b",
    "stands": r"\bstands?\b(?! for)",
    "by its": r"\bby (its|their)\b",
    "told": r"\b(tells?|told)\b",
    "said": r"\bsays?\b|\b(is|are|be) said\b",
    "pictures": r"\bpictures\b",
    "doors": r"\bdoors?\b",
    "as far as": r"\bas far as\b",
    "leads to": r"\bleads? to\b|\bled to\b",
    "what can be": r"\bwhat can('t| not)? be\b",
    "not separable": r"\b(not separable|inseparable|indistinguishable)\b",
    "tie": r"\bti(e|es|ed)\b",
    "open for not decided": r"\b(is|are|stays?|remains?|leaves?) open\b",
}
BLOCK = re.compile(r"(?ms)^ *```.*?^ *```$|^ *>>> [^\n]*$|^ *\.\.\. [^\n]*$")
SECTION = re.compile(r"(?m)^[A-Z]\w+\n-{3,}$|^\S.* : .*$")  # headings and parameters of NumPy's docstrings
INLINE = re.compile(r"``[^`]*``|`[^`\n]*`|\]\([^)\s]*\)")


def count(text: str) -> Counter[str]:
    """Count each word of `WORDS` in the prose of a text, without code and addresses."""
    prose = " ".join(INLINE.sub(" ", BLOCK.sub(" ", text)).split())
    found = {word: len(re.findall(pattern, prose, re.IGNORECASE)) for word, pattern in WORDS.items()}
    return Counter({word: n for word, n in found.items() if n})


def draw(seed: int | None = None, number: int = 20) -> list[str]:
    """Return random sentences of prose, messages and pages, each with its file."""
    sentences = [
        f"{file}: {sentence}"
        for file, text in [*texts(), *messages(), *pages()]
        for paragraph in re.split(r"\n\s*\n|\n(?=- )", SECTION.sub("\n\n", BLOCK.sub("", text)))
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z])", " ".join(paragraph.split()))
        if len(sentence.split()) > 3 and "|" not in sentence and not sentence.startswith("#")
    ]
    return random.Random(seed).sample(sentences, number)


def messages() -> Iterator[tuple[str, str]]:
    """Yield the texts in evalkit's code except docstrings. Values in f-strings become ``…``."""
    for path in sorted(ROOT.glob("evalkit/**/*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        parts = [part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values]
        passed = {id(node) for node in parts} | {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
                text = node.value
            else:
                continue
            if re.match(r"[A-Za-z…][^<=]*( [^<=]*){4}$", text):
                yield f"{path.relative_to(ROOT).as_posix()}:{node.lineno}", text


def pages() -> Iterator[tuple[str, str]]:
    """Yield the expected texts of pages and of terminal output."""
    for path in sorted(ROOT.glob("tests/golden/**/*.txt")):
        lines = path.read_text("utf-8").split("\n")
        prose = [line for line in lines if line[:1].isalpha() and not re.search(r",\S|  ", line)]  # without tables
        yield path.relative_to(ROOT).as_posix(), "\n\n".join(prose)


def texts() -> Iterator[tuple[str, str]]:
    """Yield files and their prose: pages, the Markdown of notebooks, the docstrings of public names."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    for page in sorted(pages):
        yield page.relative_to(ROOT).as_posix(), page.read_text("utf-8")
    for notebook in sorted(ROOT.glob("notebooks/*.ipynb")):
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        markdown = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        yield notebook.relative_to(ROOT).as_posix(), "\n\n".join(markdown)
    yield from sorted(docstrings().items())


def docstrings() -> dict[str, str]:
    """Return the docstrings of packages and of their public functions and classes, by file."""
    found: dict[str, dict[str, str]] = {}
    for package in runpy.run_path(str(ROOT / "docs/hooks.py"))["PACKAGES"]:
        module = import_module(f"evalkit.{package}".rstrip("."))
        public = [getattr(module, name) for name in module.__all__]
        for value in [module, *(value for value in public if inspect.isfunction(value) or inspect.isclass(value))]:
            home = module if value is module else sys.modules[value.__module__]
            if home.__name__.startswith("evalkit") and value.__doc__:
                file = Path(str(home.__file__)).relative_to(ROOT).as_posix()
                name = "" if value is module else value.__qualname__
                found.setdefault(file, {})[name] = inspect.getdoc(value) or ""
    return {file: "\n\n".join(named.values()) for file, named in found.items()}


def main(arguments: list[str]) -> int:
    """Run the command line; return the exit code."""
    if "--draw" in arguments:
        seeds = [int(word) for word in arguments if word.isdecimal()]
        print("\n".join(draw(*seeds[:1])))
        return 0
    limits = json.loads(LIMITS.read_text("utf-8")) if LIMITS.exists() else None
    counts = {file: count(text) for file, text in texts()}
    if "--count" in arguments:
        for file, words in counts.items():
            if words:
                print(f"{file}: {', '.join(f'{word} {n}' for word, n in words.most_common())}")
        print(f"all files: {', '.join(f'{word} {n}' for word, n in sum(counts.values(), Counter()).most_common())}")
        return 0
    if "--lower" in arguments:
        if limits is not None:
            counts = {file: words & Counter(limits.get(file, {})) for file, words in counts.items()}
        lowered = {file: dict(sorted(words.items())) for file, words in sorted(counts.items()) if words}
        lines = [f"{json.dumps(file)}: {json.dumps(words)}" for file, words in lowered.items()]
        LIMITS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
        return 0
    above = {file: words - Counter((limits or {}).get(file, {})) for file, words in counts.items()}
    for file, words in above.items():
        for word, n in words.items():
            print(f"{file}: {word!r} occurs {counts[file][word]} times, {n} more than the limit")
    return int(any(above.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
