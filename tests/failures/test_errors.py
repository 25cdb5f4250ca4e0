"""Failed results that are text only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.kinds.errors import is_error

FAILED = """
unsupported call: shell
Temporary failure in name resolution
Transient failure: the node left the cluster
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
Forbidden
Unauthorized: the token has expired
Rate limit exceeded
Failure: the order is closed
Fatal error: out of memory
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
Forbidden
Unauthorized: the token has expired
Rate limit exceeded
Failure: the order is closed
Fatal error: out of memory
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
aiohttp.ConnectTimeout: the host took too long
django.core.exceptions.ObjectDoesNotExist
(pymysql.err.ProgrammingError) (1146, "no such table")
ZeroDivisionError('division by zero')
curl: (6) Could not resolve host: shop.test
python: can't open file '/app/run.py': [Errno 2] No such file or directory
sum.c: In function 'add':\\nsum.c:9:3: error: 'total' undeclared\\ncompilation terminated.
src/sum.ts(3,5): error TS2322: a string is no number
cc -c sum.c\\nmake: *** [Makefile:3: all] Error 2
node:fs:12\\n  throw e;\\n\\nError: Cannot find module 'sum'\\nRequire stack:\\n- /app/a.js\\n    at load (node:1:2)
Segmentation fault (core dumped)
Collecting sum\\nERROR: No matching distribution found for sum
(1146, "Table 'shop.orders' doesn't exist")
ORA-00942: table or view does not exist
The path /app/sum.py does not exist. Give another one.
No replacement was performed, old_str `x` did not appear in /app/sum.py.
String to replace not found in file.
Order not found
ENOENT: no such file or directory, open 'a.txt'
HTTPSConnectionPool(host='shop.test', port=443): Max retries exceeded
net::ERR_NAME_NOT_RESOLVED at https://shop.test
Navigation timeout of 30000 ms exceeded
2 validation errors for Order
<html><head><title>502 Bad Gateway</title></head>
{'error': 'no such order'}
{"output": "Error: no such order"}
tuple index out of range
name 'total' is not defined
'list' object has no attribute 'split'
float division by zero
could not convert string to float: 'n/a'
fetch() missing 2 required positional arguments: 'a' and 'b'
send_mail() got an unexpected keyword argument 'cc'
{'success': False, 'data': None}
{'ok': False, 'reason': "the room's closed"}
403: Forbidden
Too many requests, wait a minute
Quota exceeded for requests per day
Connection aborted.
Broken pipe
Access is denied.
Operation not permitted
<api_error>the room is closed</api_error>
Status: failed\\nReason: the room is closed
some output\\n[exit 3]
panic: assignment to entry in nil map
thread 'tokio-1' panicked at src/lib.rs:9
error TS1005: ';' expected.
Uncaught TypeError: x.map is no function
Tool 'rooms' raised a ValueError
{"detail": [{"loc": ["body", "id"], "msg": "value is not a valid integer"}]}
{"message": "Service unavailable"}
{"errorCode": 17, "errorMsg": "closed"}
{"output": "3 failed", "metadata": {"exit_code": 1, "duration": 2}}
{"status": "failed", "message": "the room is closed"}
{"errors": [{"message": "no field roomz"}], "data": null}
Your proposed edit has introduced new syntax error(s).
The server returned 502.
MCP error -32601: no such method
The connection to the host db:5432 was refused
Insufficient balance to send 40 coins
Not permitted: the room is locked
You don't have access to this folder.
Card was declined by the bank
The user rejected this command
Invalid colour
Invalid URL: no scheme
No guest with this number
Seat 14 could not be found.
`room` is required
room is a required property
17 is not of type 'string'
RoomServiceError - the kitchen is closed
QuotaExceeded: 40 of 40 rooms
Err: closed
**ERROR**: closed
podman: Error response from daemon: no space
page.fill: Timeout 5000ms exceeded.
driver.get: Error: the tab crashed
rooms: Error 409: the room is taken
mongo: duplicate key in rooms
su: a terminal is required to read the name
nc: connect to host db port 5432: Connection timed out
Auto-merging a.py\\nCONFLICT (content): Merge conflict in a.py
Updating\\nAutomatic merge failed; fix conflicts and commit the result.
{"success": "False", "text": "closed"}
{"code": "ROOM_NOT_FOUND", "message": "none"}
{"fault": {"code": "x", "string": "closed"}}
The upload failed because the disk is full
{"status": "fail", "data": {"room": "none"}}
{"ok": "False"}
[ERR] the room is closed
The room couldn't be found.
{"type": "about_error", "title": "Closed", "status": 409}
Failed: no seat
Fehler: Raum 3 ist belegt
Erreur : la salle est fermée
Ошибка: зал закрыт
エラー：部屋がありません
Der Raum 3 wurde nicht gefunden.
Acceso denegado a la sala
La réservation de la salle a échoué
{"detail": "Not logged in"}
gh: Not Found (HTTP 410)
Sorry, this room could not be reserved.
No room with code R7 exists.
Invalid room: 7
Invalid parking permit number: K7
Invalid phone number
No such terminal: 4
No such terminal
No crew found with id 7
No gate found: C9
Gate is not available
Gate 4 is already taken
Meal out of stock
Booking already closed
Not enough seats in row 9
Your session has expired. Sign in.
Expected number, but got text
Internal error, call the desk
The operation is not permitted for crew
Upgrade limit exceeded
Something happened, please try again
{"result": "{\\"error\\": \\"gate closed\\"}"}
{"output": {"success": false}}
[{"type": "text", "text": "Error: gate closed"}]
{"type": "text", "value": "Error: gate closed"}
{"type": "error-text", "value": "gate closed"}
Porte non trouvée
Fehler beim Laden der Karte
The requested page was not found on this server.
tar: Exiting with failure status due to previous errors
"""
HEALTHY = """
Temporary failure rate of the last hour is 2 %
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
598 server/app.py\\n627 client.py\\n1225 total
timeout|count\\nalder|3
#1 Error when saving (open)\\n#2 Login failed (closed)
{"error": "none", "items": [1]}
{"errors": 0, "output": "fine"}
Saved 'Error: look again'
Failed: 0, passed: 12
name: Unknown Soldier
total: (3) items
Forbidden City: open from 9 to 5
Rate limit: 100 per minute
Failed logins: 3
Failure rate: 0.02
Fatal accidents in 2020: 3
photo.JPG\\nnotes.MD
The search returned 451 rows
error.txt\\nmain.py
Unknown users: 12
Not found: 3, found: 40
Access denied attempts: 7
Timeout: 60
Cannot recommend this place enough!
Could not be happier with it
{"invoice": "i3", "status": "failed", "tries": 2}
{"code": 500, "name": "Great hall"}
{"suite": "unit", "errors": ["test_b"], "n": 30}
{"visa": "B", "status": "denied"}
{"error": "success", "rows": 3}
All failed uploads were sent again.
The last failed attempt was in May.
No job failed.
Failed 0 of 40 checks
Failed deliveries go back to the depot.
failed\\n---------\\n 12
Timeout: never
Broken pipe. Reconnected; 40 rows copied
Request timed out, retry succeeded: 12 rows
Missing value handling is documented in chapter 4
Error 418 is a joke of 1998
Cannot be missed: the old town
Invalid seats: none
Insufficient funds: 3
Required fields: name, date
Not allowed pets: dogs
No guest with these dates prefers a sea view
{"type": "room", "code": "A_12", "title": "Great hall"}
Payment: accepted
Fail to pass tests: test_sum
Rooms can be found on floor 2.
{"status": "pending", "message": "Nothing failed"}
Fehler: 0
Estado: acceso denegado
Fehlerliste der Woche
La salle a été trouvée
部屋が見つかりました
Rooms cannot be changed after booking.
No breakfast with this room
Invalid permits: 3
Invalid permits: none
No such luck today, all seats are taken
No crews found with id below 7
Gate is available
Gate 4 opens at 9, gate 5 is not available today, use gate 6 instead
Seats already taken: 4 of 9
Expected arrival: 9:00
Sessions expired today: 3
Failure to appear, case 7
Not enough data for a forecast
Try again button: hidden
The guest could not be reached; a note was left.
{"result": "{\\"error\\": null}"}
{"output": {"seats": 4}}
{"type": "text", "text": "All seats are free"}
"""
# results of calls that show what others wrote, by the name and the arguments of the call
SHOWN = {
    "a log": ("bash", '{"command":"tail -n 2 app.log"}', "ERROR: the shop is closed\nINFO open again"),
    "a log with a traceback": ("bash", "cat app.log", "start\nTraceback (most recent call last):\nValueError: x"),
    "a list of files": ("bash", "ls", "error.log"),
    "commits": ("bash", "git log --oneline", "ab12 Fix error: handle None\ncd34 Failed login: say why"),
    "lines of code": ("bash", "cd /app && grep -rn raise .", "./a.py:3:    raise ValueError: x"),
    "a page": ("fetch", '{"url":"x"}', 'Questions\n"Unknown tool: fly" in my agent, what now?'),
    "titles of pages": ("web_search", "", "1. HTTP 500 Internal Server Error explained\n2. Error 404"),
    "rows": ("run_sql", "", "level|text\nERROR|Error: the shop answered HTTP 500\nINFO|fine"),
    "a row": ("query", "", "(1064, 'Desk lamp')"),
    "a report in JSON": ("bash", '{"keystrokes":"cat ci.json"}', '{"status": "failed", "errors": ["x"]}'),
    "a file": ("read_file", '{"path":"a.md"}', "# Error handling\nWhat to do on HTTP 503"),
}
NOT_SHOWN = {
    "no file": ("bash", "cat a.txt", "cat: a.txt: No such file or directory"),
    "no repository": ("bash", "git log", "fatal: not a git repository"),
    "an exit code": ("bash", '{"command":"grep x a.txt"}', "\n[exit code: 2]"),
    "no page": ("fetch", '{"url":"x"}', "HTTP Error 404: Not Found"),
    "no table": ("run_sql", "", 'ERROR:  relation "orders" does not exist\nLINE 1: SELECT'),
    "a page that was not changed": ("update_page", "", "Report\nTraceback (most recent call last):\nValueError: x"),
    "no such file": ("read_file", '{"path":"a.md"}', "File not found: a.md"),
}


def lines(text):
    return [line.replace("\\n", "\n") for line in text.strip().split("\n")]


@pytest.mark.parametrize("text", lines(FAILED))
def test_common_forms_of_failures_are_recognised(text):
    assert is_error(text)


@pytest.mark.parametrize("text", lines(HEALTHY))
def test_results_that_only_look_like_failures_are_healthy(text):
    assert not is_error(text)


@pytest.mark.parametrize("case", SHOWN)
def test_what_a_call_shows_of_others_does_not_make_it_fail(case):
    name, arguments, result = SHOWN[case]
    assert not is_error(result, name, arguments)


@pytest.mark.parametrize("case", NOT_SHOWN)
def test_a_call_that_has_nothing_to_show_fails(case):
    name, arguments, result = NOT_SHOWN[case]
    assert is_error(result, name, arguments)


@given(st.text())
def test_any_text_is_classified_as_an_error_or_not(text):
    assert is_error(text) in (True, False)
