"""Write the expected texts anew: ``python -m tests.golden``. Read the difference before you commit it."""

import os

os.environ["EVALKIT_CACHE"] = "off"

from tests.golden.record import COMMANDS, EXPECTED, record_command, record_report, reports


def write() -> None:
    """Record every report and command, and remove what is recorded no more."""
    texts = {f"reports/{path.parent.name}/{path.stem}.txt": record_report(path) for path in reports()}
    texts |= {f"commands/{name}.txt": record_command(line) for name, line in COMMANDS.items()}
    for name, text in texts.items():
        path = EXPECTED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in EXPECTED.rglob("*.txt"):
        if path.relative_to(EXPECTED).as_posix() not in texts:
            path.unlink()
    print(f"{len(texts)} texts in {EXPECTED}")


if __name__ == "__main__":
    write()
