"""Failed results that are text only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.kinds.detectors import is_error

FAILED = """
Error: order 12 was not found
ERROR: cannot open file
error: pathspec 'x' did not match any file(s)
An error occurred: connection reset
Error executing tool search: timeout
Error while parsing arguments
Traceback (most recent call last):\\n  File "a.py", line 1\\nKeyError: 'x'
KeyError: 'x'
requests.exceptions.HTTPError: 404 Client Error
Tool execution failed
Failed to collect oak_log.
Could not find any oak_log nearby.
Cannot craft bread
bash: foo: command not found
sh: 1: foo: not found
cat: a.txt: No such file or directory
ls: /root: Permission denied
out\\n[exit code: 1]
Process exited with code 127
some output\\nexit code 2
Command returned non-zero exit status 1.
<returncode>1</returncode>\\n<output>\\nx</output>
HTTP 404 Not Found
HTTP/1.1 500 Internal Server Error
status code: 503
404 Not Found
Unknown tool: foo
Tool foo does not exist
Tool 'foo' not found
Command !dance does not exist.
Invalid item type: breads.
Invalid arguments for get_order
Permission denied
Request timed out
Timeout after 30 seconds
{"error": "not found"}
{"error": {"code": 404}}
{"is_error": true, "content": "x"}
{"isError": true}
{"success": false, "reason": "x"}
{"status": "error", "message": "x"}
{"status": 404}
{"statusCode": 500, "body": ""}
{"exit_code": 2, "stdout": ""}
[{"error": "x"}]
Code output:\\nFailed to reach Bob.
npm ERR! missing script: test
<tool_use_error>String not found</tool_use_error>
fatal: not a git repository
SyntaxError: invalid syntax
"""
HEALTHY = """
Collected 2 oak_log.
0 errors found
No errors found.
Errors: 0
Error rate: 0.02
{"error": null, "items": []}
{"success": true}
{"status": "ok"}
{"status": 200}
{"orders": [{"status": "failed"}]}
exit code: 0
[exit code: 0]
Process exited with code 0
<returncode>0</returncode>\\n<output>fine</output>
HTTP 200 OK
def handle_error(error):\\n    return None
The log mentions an earlier error in passing.
5 passed in 0.03s
Found 404 results
You have 500 coins.
Your order is on its way.
Returned 12 rows
def f():\n    return 1
450 passed in 0.45s
"""


def lines(text):
    return [line.replace("\\n", "\n") for line in text.strip().split("\n")]


@pytest.mark.parametrize("text", lines(FAILED))
def test_common_forms_of_failures_are_recognised(text):
    assert is_error(text)


@pytest.mark.parametrize("text", lines(HEALTHY))
def test_results_that_only_look_like_failures_are_healthy(text):
    assert not is_error(text)


@given(st.text())
def test_any_text_has_an_answer(text):
    assert is_error(text) in (True, False)
