"""What a notebook hands over in its outputs: findings, a headline, tables, named figures."""

import base64
import re
from typing import Any

from nbformat import NotebookNode

from evalkit.io.paths import redacted
from evalkit.io.text import plain

HEADLINE = "application/vnd.evalkit.headline+json"  # as evalkit.display.HEADLINE, which would import pandas
TABLE = "application/vnd.evalkit.table+json"
FINDINGS = "application/vnd.evalkit.findings+json"
FIGURE = "application/vnd.evalkit.figure+json"
EVIDENCE = "application/vnd.evalkit.evidence+json"


def extract_tables(nb: NotebookNode, name: str) -> tuple[dict | None, list[dict]]:
    """Take headline and published tables out of a notebook's outputs; a link to the table's file takes its place."""
    headline, tables = None, {}
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            headline = _headline(data.get(HEADLINE)) or headline
            if _is_table(data.get(TABLE)):
                table = dict(data.pop(TABLE))
                file = f"{name}.{table['name']}.csv"
                tables[file] = {**table, "file": file}
                rows = f"{table['rows']:,} row{'' if table['rows'] == 1 else 's'}"
                data["text/markdown"] = f"[{table['name']}.csv](<{file}>): {rows}"
    return headline, list(tables.values())


def extract_findings(nb: NotebookNode) -> list[dict[str, str]]:
    """Give the sentences that a notebook begins with, each with the heading of its section."""
    given = (output.get("data", {}).get(FINDINGS) for cell in nb.cells for output in cell.get("outputs", []))
    listed = next((found for found in given if isinstance(found, list)), [])
    texts = (one for one in listed if isinstance(one, dict) and isinstance(one.get("text"), str))
    return [{"text": plain(one["text"]), "section": plain(one.get("section", ""))} for one in texts]


def extract_figures(nb: NotebookNode, name: str) -> dict[str, str | bytes]:
    """Take named figures out of a notebook's outputs: files with their contents, as SVG, PDF and PNG."""
    files: dict[str, str | bytes] = {}
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            about = output.get("metadata", {}).get("image/svg+xml")
            if isinstance(about, dict) and isinstance(data.get(FIGURE), dict) and "narrow" in data[FIGURE]:
                about["narrow"] = data[FIGURE].pop("narrow")  # until the page is made
            if not _is_figure(data.get(FIGURE)):
                continue
            figure = data.pop(FIGURE)
            forms = {
                "svg": data.get("image/svg+xml"),
                "pdf": _decoded(figure["pdf"]),
                "png": _decoded(data.get("image/png")),
            }
            own = {f"{name}.{figure['name']}.{form}": content for form, content in forms.items() if content}
            files |= own
            for about in filter(lambda value: isinstance(value, dict), output.metadata.values()):
                about["files"] = list(own)
    return files


def extract_evidence(nb: NotebookNode) -> list[Any]:
    """Take out of a notebook's outputs what pages of runs are made from."""
    found = []
    for cell in nb.cells:
        if "outputs" in cell:
            found += [output.data[EVIDENCE] for output in cell.outputs if EVIDENCE in output.get("data", {})]
            cell.outputs = [output for output in cell.outputs if EVIDENCE not in output.get("data", {})]
    return found


def redact_errors(nb: NotebookNode) -> None:
    """Take credentials in URLs out of the errors that a notebook shows."""
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                output.evalue = redacted(output.evalue)
                output.traceback = list(map(redacted, output.traceback))


def _is_figure(given: Any) -> bool:
    """Tell a figure that has a name; its name becomes part of files' names."""
    if not isinstance(given, dict) or not _is_name(given.get("name")):
        return False
    return isinstance(given.get("pdf"), str)


def _decoded(given: Any) -> bytes:
    try:
        return base64.b64decode(given) if isinstance(given, str) else b""
    except ValueError:
        return b""


def _headline(given: Any) -> dict | None:
    """Take of a headline what the index can show; None where it is none."""
    if not isinstance(given, dict) or not isinstance(given.get("text"), str):
        return None
    numbers = {key: given.get(key) for key in ("estimate", "low", "high", "n")}
    return {
        "label": plain(given.get("label", "")),
        "text": plain(given["text"]),
        **{key: value if isinstance(value, (int, float)) else None for key, value in numbers.items()},
        "percent": bool(given.get("percent")),
    }


def _is_table(given: Any) -> bool:
    """Tell a published table; its name becomes part of a file's."""
    if not isinstance(given, dict) or not _is_name(given.get("name")):
        return False
    return isinstance(given.get("csv"), str) and isinstance(given.get("rows"), int)


def _is_name(given: Any) -> bool:
    return isinstance(given, str) and bool(re.fullmatch(r"[A-Za-z0-9_-]{1,80}", given))
