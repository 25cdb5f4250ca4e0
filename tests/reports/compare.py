"""Comparing executed notebooks: equal but for times, process numbers and addresses."""

import json
import re

VARYING = [
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?( UTC)?"), "TIME"),
    (re.compile(r"ipykernel_\d+"), "ipykernel"),
    (re.compile(r"0x[0-9a-f]{6,}"), "ADDRESS"),
]


def outputs_of(nb):
    """Return sources, outputs and execution counts of all cells, and the language, made comparable."""
    cells = [(c.cell_type, c.id, c.source, c.get("execution_count"), _ordered(c.get("outputs", []))) for c in nb.cells]
    text = json.dumps([*cells, nb.metadata.language_info], sort_keys=True)
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return json.loads(text)


def _ordered(outputs):
    """Join texts on the same stream up to the next output of another kind: a kernel does not keep their order."""
    out, streams = [], {}
    for output in [*outputs, None]:
        if output is not None and output.output_type == "stream":
            streams[output.name] = streams.get(output.name, "") + output.text
        else:
            out += [{"stream": name, "text": streams[name]} for name in sorted(streams)]
            streams = {}
            out += [output] if output is not None else []
    return out
