"""Record the expected texts and numbers again: ``python -m tests.golden``. Read the difference before you commit it."""

import os

os.environ["EVALKIT_CACHE"] = "off"

from tests.golden.record import COMMANDS, EXPECTED, PAGES, name_of, record_command, record_report, reports


def write() -> None:
    """Record every report and command, and remove the files that nothing records any more."""
    texts = {f"commands/{name}.txt": record_command(line) for name, line in COMMANDS.items()}
    for path in reports():
        recorded = record_report(path)
        texts[f"numbers/{name_of(path)}.csv"] = recorded.numbers
        if name_of(path) in PAGES:
            texts[f"pages/{name_of(path)}.txt"] = recorded.text
    for name, text in texts.items():
        path = EXPECTED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in EXPECTED.rglob("*.*"):
        if path.relative_to(EXPECTED).as_posix() not in texts:
            path.unlink()
    print(f"{len(texts)} files in {EXPECTED}")


if __name__ == "__main__":
    write()
