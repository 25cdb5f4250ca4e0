"""Decide from the text of a result whether its call failed.

A failed result reports the failure at its beginning, or in lines before or after the output, such as an exit code. How
to judge the output between them depends on the call. A traceback in the output of a program is a failure. Errors in
contents that a call only shows, such as a file, a page or rows of a table, are no evidence of a failure.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

RAISED = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Timeout|Exit|Interrupt|Group))(?=\W|$)")  # ValueError: …
EDGE = 600  # number of characters that are searched at each end of a result, and at the beginning of a name

_WRAPPING = re.compile(  # words before the actual text, such as ``Tool output:``, but not a heading
    r"[^\w#]*(?:(?:tool|code|action|command|execution|function|api|request)?s? ?"
    r"(?:output|result|call|execution|observation)s?\b(?!\s+\w)\W*)?(?:(?:sorry|oops|unfortunately|uncaught|unhandled)\b\W*)?",
    re.IGNORECASE,
)
_EXCEPTION = (  # httpx.ReadTimeout: …, KeyError('x')
    r"(?:[a-z_]\w*\.)+[A-Z]\w*(?=:\s|\()"
    r"|(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Timeout|Expired|Interrupt|NotFound|DoesNotExist|Violation"
    r"|Denied|Exceeded|Refused|Unavailable|Unauthorized|Forbidden|Failure|Conflict)(?=:\s|[()]|\s*$|\s[-–—]\s)"
)
_REFUSES = (
    r"(?i:(?:fatal|failed to|unable to|cannot|can['’]t|could not|couldn['’]t|no such|permission denied"
    r"|connection (?:refused|timed out|reset by)|command not found|duplicate (?:key|entry)"
    r"|timeout \d+ ?m?s exceeded|a (?:password|terminal) is required|error (?:response )?from|(?:is|not) a directory"
    r"|(?:invalid|unrecogni[sz]ed|illegal|unknown|missing) (?:option|argument|command|operand|file|syntax|flag"
    r"|parameter|user|host)s?|exiting with failure)\b|not found(?: \(http \d+\))?$|error(?: \d{3})?: )"
)
# messages of programs: cat: a.txt: No such file or directory; curl: (7) Failed to connect; make: *** [all] Error 1
_PROGRAM = re.compile(
    rf"[a-z][\w.+/-]*: (?:[^:\n]{{1,80}}: )*{_REFUSES}|curl: \(\d+\) |make(?:\[\d+\])?: \*\*\* |fatal: "
    r"|npm ERR!|npm error|CONFLICT \(|Automatic merge failed"
    r"|(?:Segmentation fault|Bus error|Killed|Aborted)(?: \(core dumped\))?$",
    re.MULTILINE,
)
_NAMED = re.compile(
    rf"{_EXCEPTION}|(?:[Ee]rr(?:or)?|ERR(?:OR)?|[Ff]atal|FATAL)[*_]*(?:: | - |\] )|E: "
    r"|(?i:fehler|erreur|errore?|erro|fout|fel|fe[ij]l|błąd|hata|virhe|chyba|hiba|lỗi|ошибка|помилка|خطأ|エラー"
    r"|错误|錯誤|오류)(?: ?: | ?：| (?:beim?|lors|durante|al|ao|tijdens)\b)",
    re.MULTILINE,
)
_CODE = r"[45]\d\d\b"
_THEN = (  # what follows a verb such as failed, but not an adjective, as in failed payments, or a header of a table
    r"(?:[ \t]*(?:[.:!,;(\[–—]|- |\Z|\n(?!\s*[-=+|]))|\s+(?:to|with|because|due|after|for|on|in|at|as|while|when|during"
    r"|by|since|again|unexpectedly|\d+ times)\b)"
)
_DENIED = r"(?:\s*(?:[.:!,(]|$)| (?:to|for|by|on|in|with|when|because|due|error)\b)"  # what follows a refusal
_FIRST = re.compile(  # for texts in lower case
    "|".join((
        r"something went wrong(?! in)",
        rf"(?:temporary |transient )?fail(?:ed|ure)(?! to (?:thrive|appear)\b)(?:{_THEN}"
        r"|\s+(?:\w+ing|assertion|validation|\S*/\S+))",
        r"(?:unable to|could ?n[o']t|cannot|can['’]?t)\b(?! (?:be (?:\w+er|beaten|missed)|recommend|wait|complain)\b)",
        r"fatal(?: error|\s*[:!-])|traceback \(most recent|\d+ validation errors? for ",
        r"(?:unknown|unrecogni[sz]ed|unsupported|undefined|no such|invalid|bad|missing) (?:\w+ ){0,2}?(?:tool|function"
        r"|command|action|argument|parameter|option|request|file|directory|path|table|column|method|input|value|item"
        r"|key|id|name|type|field|order|user|syntax|credentials)s?\b(?! handling)",
        r"(?:no such|(?:invalid|unsupported)(?: [\w-]+){0,2}) [\w-]+(?<!ed)(?:\s*[!(]|\.?\s*\Z|: (?!none\b)| \S*\d)",
        r"duplicate (?:key|entry)\b|internal (?:\w+ )?(?:error|failure)(?: \d+)?\s*[,;]",
        r"not enough (?!data)[\w ]{1,60}\.?\s*\Z",
        r"expected [\w -]{1,40},? (?:but )?(?:got|received|found|was)\b|unexpected (?:end of|token|eof)|out of memory",
        r"you (?:do not|don['’]t) have (?:\w+ ){0,2}?(?:permissions?|access|rights?|privileges?)\b"
        r"|(?:the )?user (?:has )?(?:rejected|denied|declined) (?:the|this|your)\b",
        r"(?:insufficient \w+|(?:you (?:are not|aren['’]t) |not )(?:authori[sz]ed|authenticated|logged in"
        r"|allowed|permitted)"
        r"|(?:th\w+ )?(?:payment|card|transaction|charge|request|(?:tool )?call|command|action|operation|login|access"
        r"|permission|user) (?:was |has been |is )?(?:declined|denied|rejected|refused"
        rf"|not (?:allowed|permitted|supported|authori[sz]ed|authenticated))){_DENIED}",
        r"no \w+(?: (?<!s )found)? (?:with|for) (?:(?:that|this|the|such an?) )?(?:given )?"
        r"(?:id|name|number|key|code|reference|email)\b|no \w+ (?<!s )found: \S",
        r"(?:unauthori[sz]ed|forbidden|not found|denied|rejected|aborted)\s*(?:[.:!,(]|$)",
        # messages of Python exceptions, of operating systems and networks, and of other languages
        r"(?:\w+ )?index out of range|name '\w+' is not defined|'?\w+' object (?:is not|has no|does not)"
        r"|(?:\w+ )?division (?:or modulo )?by zero|invalid literal for|could not convert|expecting value: line"
        r"|(?:not enough|too many) values to unpack|unhashable type|unsupported operand|no module named"
        r"|[\w.]+\(\) (?:missing \d|got (?:an unexpected|multiple)|takes )|missing \d+ required",
        r"(?:the )?connection (?:reset|refused|aborted|closed|timed out|to .{1,80} (?:was|is) )|panic: "
        r"|(?:no route to host|name or service not known|network is unreachable|broken pipe|operation not permitted"
        r"|no space left|too many requests|(?:\w+ ){0,2}(?:limit|quota|deadline) exceeded|internal server error"
        r"|(?:service|server|system|database) (?:is )?(?:temporarily )?(?:unavailable|busy|locked)|login required"
        rf"|bad gateway|gateway time-?out|bad request){_DENIED}",
        r"thread '[^'\n]*' panicked|your (?:proposed )?edit [^\n]{0,40}\b(?:error|not )|\S+' is not recognized as"
        r"|(?:success|ok)': false\b",
        rf"status: (?:error|fail(?:ed|ure)?)(?: [-–]|\n(?:message|reason|error|detail))|{_CODE}: [a-z]",
        r"rate.?limit(?:ed| exceeded| reached| hit| error)",
        rf"{_CODE} (?:bad request|unauthori|payment req|forbidden|not (?:found|acc|impl)|method not|request time"
        r"|conflict|gone\b|too many|internal server|service un|gateway time|bad gateway|(?:client |server )?error"
        r"|unproc)",
        rf"(?:html>\s*<head>\s*<)?title>\s*{_CODE}",
        r"(?:net::)?err[_ ]\w+|e(?:noent|acces|perm|exist|isdir|notdir|pipe|timedout|notfound|conn\w+|addrinuse): ",
        r"https?connectionpool\(|[a-z]{2,4}-\d{4,5}: |errno \d",  # urllib3, Oracle, Python
        r"\d{4}, [\"'][^\n]*(?:error|unknown|n't exist|denied|duplicate|can't|cannot|lost connection)",  # MySQL
        r"no (?:\w+ )?(?:replacement|edit|match)\w* (?:was|were) (?:performed|made|applied)",  # editors
        r"(?:the )?(?:string|text|pattern|old_str\w*|snippet)\b.{0,80}\bnot (?:found|appear|match)",
        r"command (?:failed|not found)|(?:\w+_)?error>|syntax ?error|code threw",
        # forms that begin with words of the call, such as Request failed
        r"(?:an? |the )?(?:\w+ ){0,2}?(?:error|exception)['\"]?(?:\s*[:(\[\]!]|\.(?=\s|$)|\s+[–—-]\s|\s*\Z"
        r"|\s+(?:[a-z]{1,4}\d+:|-?\d{3,5}\b(?! (?:is|was) an?\b))"
        r"|\s+(?:execut|runn|read|writ|open|load|pars|process|fetch|connect|creat|call|invok|updat)ing\b"
        r"|\s+(?:while|during|in|on|at|when|from|(?:has )?occurred|code)\b)",
        r"(?:[\w'\"`.]+ ){1,3}raised (?:an? )?(?:exception|\w*error)\b",
        rf"(?!(?:no|none|nothing)\b)(?:[a-z_]\w* ){{1,3}}failed\b(?!\s*[:=]\s*\d){_THEN}",
        r"(?:[\w'\"./#-]+ ){1,5}(?:not|not be|\w+n['’]t be) found"
        r"(?: on (?:this|the) server| in (?:the|our|this) (?:system|database|records|registry))?\s*(?:[.:!,(]|$)",
        # not about people, as in: The guest could not be reached
        r"(?!(?:the |a )?(?:some|customer|client|guest|patient|recipient|person)s?\b)"
        r"(?:[\w'\"./#-]+ ){1,6}could(?: not|n['’]t) be (?!\w+er\b)\w+\b",
        r"[\w.-]{1,60}['\"`] is (?:a required|required\s*(?:[.:!,(]|$))|[^\s'\"]{1,60}['\"]? is not of type\b",
        r"(?:[^\s:]*[^\s:.] ){1,7}?(?:does not|doesn['’]t) exist\b(?! in .{1,20}:)|(?:\w+ ){0,3}timed out\b",
        r"(?:\w+ )?time-?out(?:\s*[.!]|\s*\Z|:\s*(?!(?:no|none|never|off|disabled)\b)[^\d\s]"
        r"|\s+(?:after|while|waiting|expired|exceeded|error|reached|of|\d+ ?m?s exceeded)\b)",
        rf"(?:\w+ ){{0,3}}(?:http|status)\b[/\d. ]*(?:error|status|code|[: ])*{_CODE}",
        r"(?:\w+ ){0,3}(?:request|server|api|service|endpoint|url|http|host) returned "
        rf"{_CODE}\s*(?:[.:!,(]|$)",
        # refusals, most of which must be the whole text
        r"(?:[\w'\"#-]+ ){1,5}?(?:(?:is |are )?(?:(?:not|no longer) available|unavailable|out of stock)"
        r"(?: (?:on|for|in|at) [\w ]{1,40})?|(?:is |was |has been )?already (?:taken|in use|\w+ed))[.!]?\s*\Z"
        r"|(?:\w+ ){0,2}?(?:session|token|password|key|login) (?:has |is )?expired\s*(?:[.!,]|\Z)"
        r"|(?:[\w' ]{1,60}[,.;!] )?(?:please )?try again(?: later)?\s*(?:[.!]|\Z)",
    )),
    re.MULTILINE,
)  # fmt: skip
# a parameter is required; the first word of a sentence has a capital letter
_REQUIRED = re.compile(r"[a-z]\w* is (?:a required|required\s*(?:[.:!,(]|$))", re.MULTILINE)
_OTHER_LANGUAGES = (  # not found, denied and failed
    "nicht gefunden", "introuvable", "non trouvé", "no encontrad", "não encontrad", "não foi encontrad", "non trovat",
    "niet gevonden", "не найден", "找不到", "未找到", "見つかりません", "찾을 수 없", "zugriff verweigert",
    "accès refusé", "acceso denegado", "permiso denegado", "acesso negado", "accesso negato", "toegang geweigerd",
    "доступ запрещ", "拒绝访问", "アクセスが拒否", "접근이 거부", "ist fehlgeschlagen", "a échoué", "не удалось",
    "konnte nicht ", "no se pudo", "impossible de", "não foi possível", "impossibile ",
)  # fmt: skip
_IN_OTHER_LANGUAGES = re.compile(rf"[^\n.:：]{{0,60}}?(?:{'|'.join(_OTHER_LANGUAGES)})")  # for texts in lower case
# exit codes other than 0 in the first or last line, in lower case, by a word that each match contains. Searching for a
# word first is faster than searching for the pattern
_STATUS = {
    "exit": re.compile(
        r"(?:^|[\s(\[<])exit[ _-]?(?:code|status)\W{0,3}(?:is |was |of |with )?(?!0\b)-?[1-9]\d{0,2}\b"
        r"|\[exit:? (?!0\b)-?\d+\]|(?:^|\s)exit=(?!0\b)-?\d+\b"
        r"|exit(?:ed)? (?:with )?(?:code|status)[ :=]*(?!0\b)-?[1-9]\d{0,2}\b|non-?zero exit"
    ),
    "return": re.compile(
        r"(?:^|[\s(\[<])return[ _-]?(?:code|status)\W{0,3}(?:is |was |of |with )?(?!0\b)-?[1-9]\d{0,2}\b"
        r"|<returncode>\s*(?!0\s*<)-?\d+"
    ),
}
_NODE_OR_JAVA = re.compile(r"^(?:Uncaught )?[\w.]*(?:Error|Exception)\b.*\n(?:.*\n){0,3}?\s+at ", re.MULTILINE)
# errors in lines of the output of programs, including compilers, by a text that each match contains
_IN_OUTPUT = {
    "Traceback": re.compile(r"^Traceback \(most recent call last\)", re.MULTILINE),
    "error": re.compile(r"^\S+(?::\d+(?::\d+)?|\(\d+,\d+\)): (?:fatal )?error\b", re.MULTILINE),
    ".go:": re.compile(r"^\S+\.go:\d+:\d+: ", re.MULTILINE),
    "make": re.compile(r"^make(?:\[\d+\])?: \*\*\* ", re.MULTILINE),
    ": command not found": re.compile(r": command not found$", re.MULTILINE),
    ": not found": re.compile(r": not found$", re.MULTILINE),
    ": No such file": re.compile(r": No such file or directory$", re.MULTILINE),
    ": Permission denied": re.compile(r": Permission denied$", re.MULTILINE),
    "Error": _NODE_OR_JAVA,
    "Exception": _NODE_OR_JAVA,
}
_SHOWS = re.compile(  # names of tools that show files, pages, rows or logs; a tool such as update_page changes them
    r"(?!(?:.*(?:__|[.:/]))?(?:move|book|update|create|delete|remove|submit|add|set|cancel|send|save|write|edit|insert)[_-])"
    r"(?:\w*[_.-])?(?:read|view|open|cat|grep|glob|find|ls|search|fetch|browse|visit|scrape|crawl|query|sql|http|url"
    r"|page|web|documents?|logs?)(?:[_.-]\w*)?|(?:read|view|fetch|search|grep|query|web)\w*",
    re.IGNORECASE,
)
_shows_contents = lru_cache(maxsize=1024)(_SHOWS.fullmatch)  # a log has few different names of tools
_SHELL_SHOWS = re.compile(  # shell commands that show files, pages, rows or logs
    r"\W*+(?:(?:command|cmd|script|input|keystrokes|code)\W++)?(?:cd [^;&|]+(?:&&|;)\s*)?(?:sudo )?(?:cat|head|tail"
    r"|less|more|nl|sed|awk|e?grep|rg|ag|find|ls|tree|diff|jq|zcat|strings|journalctl"
    r"|git (?:-\S+ )*(?:log|diff|show|blame|grep)|(?:docker|kubectl) logs)\b"
)
# a label and a count, such as ``failed: 3``; after words such as error or exit, a number may be a code instead, and
# after one thing, as in ``invalid room: 3``, its id
_COUNT = re.compile(
    r"(?![\w /-]*\b(?:error|exception|code|status|exit|http)\b"
    r"|(?:invalid|no such) (?:[\w-]+ ){0,2}[\w-]*(?:(?<!e)d|[^sd\W]|us|ss): *[1-9])"
    r"[\w /-]+[:=] *\d[\d.,]* *%?(?: \w+)? *(?:,|$)",
    re.IGNORECASE | re.MULTILINE,
)
_RECOVERED = re.compile(  # a failure after which the same call succeeded
    r"\b(?:reconnected\b|(?:retry|attempt|fallback) (?:\w+ )?succeeded\b|succeeded (?:on|after) )", re.IGNORECASE
)
_NO_ERROR = re.compile(r"\W*(?:no errors?\b|0 errors?\b|errors?\W+(?:0|none|null|false)\b)", re.IGNORECASE)
_TOOLS = ("tool", "function", "method", "command", "action")
_A_TOOL = rf"(?:{'|'.join(_TOOLS)})"
_KNOWN = r"(?:valid|known|allowed|registered|available|existing|recogni[sz]ed)"
# messages that a tool does not exist, in lower case, by words of which each match contains one
_UNKNOWN_TOOL = {
    _TOOLS: re.compile(
        rf"(?:unknown|unrecogni[sz]ed|undefined|unsupported|unavailable|no such|invalid|non-?existent)\s+{_A_TOOL}"
        r"(?! of)(?: name)?s?\b(?!\s*(?:arg|param|call arg|input|line|option))"
        rf"|(?<!payment )\b{_A_TOOL}(?: named| called| name)?:? (?!(?:output|result|item|argument|return)s?(?:ed)?\b)"
        r"\S{1,80} (?:you \w+ )?(?:does not exist|doesn't exist|is unknown|(?:is |(?<=['\"`] ))not (?:defined|found"
        r"|recogni[sz]ed|registered|supported|in (?:the|my|your) |a )|(?:is )?not available\b|(?:was )?not found"
        r"|is (?:undefined|invalid))"
        rf"|(?:^|[:\"'{{(]\s*)(?:the )?(?:requested )?{_A_TOOL} (?:(?<!command )not found"
        r"|not (?:recogni[sz]ed|supported)|does not exist)\b(?=\s*(?:[:\"'(\[}]|$))"
        rf"|(?:\bnot|isn['’]t) (?:an? {_KNOWN} {_A_TOOL}\b"
        rf"|(?:in|on|one of|among) (?:the |my |your )?(?:list of )?(?:{_KNOWN} )?{_A_TOOL}s\b)"
        rf"|\b(?:no|have an?) {_A_TOOL} (?:named|called|['\"`])|there(?: is|'s) no {_A_TOOL}\b"
        r"|(?:tool|function)_?not_?found|unknown_(?:tool|function)",
        re.MULTILINE,
    ),
    ("unsupported call",): re.compile(r"unsupported call: \w"),
}
_QUOTES = re.compile(r"[\"“?]")
# the key of a result in JSON
_WRAPPER = re.compile(r"(?:tool)?(?:results?|output|response)|content|text|value|data|body")
_NONE = ("none", "null", "false", "no", "0", "ok", "success")  # values of an error field that mean no error
# keys of JSON that reports how a call went; JSON with other keys describes an object with a status or errors
_REPORT = re.compile(
    r"(?:http)?status(?:code)?|code|type|title|value|message|msg|errors?|error(?:message|msg|code)|details?|reason"
    r"|description|success|ok|succeeded|data|body|results?|output|content|stdout|stderr|traceback|exception|instance"
    r"|path|timestamp|(?:request|trace)id|method|url|help|hint"
)


def unknown_tool_in(text: str) -> re.Match | None:
    """Search for a message that a tool does not exist. A quick test for words rules out most texts."""
    lowered = _lower(text)
    for words, pattern in _UNKNOWN_TOOL.items():
        if contains_any(lowered, words) and (found := pattern.search(lowered)):
            return found
    return None


def contains_any(text: str, words: Iterable[str]) -> bool:
    """Return whether a text contains one of the words. This is faster than a search for a pattern."""
    return any(map(text.__contains__, words))


def _lower(text: str) -> str:
    """Return a text in lower case, with the same length: `lower` would turn İ into two characters."""
    return text.replace("İ", "i").lower()


def is_error(result: str, name: str = "", arguments: str = "") -> bool:
    """Return whether the text of a result reports, in one of the common forms, that its call failed.

    The name and arguments of the call identify calls that only show contents. For a tool that shows a page or rows,
    only the beginning and an exit code count. For a shell command that shows a file, only errors of the command count.
    """
    judge = _remembered if len(result) <= EDGE else _judged
    is_shell = _SHELL_SHOWS.match(arguments) is not None
    is_viewer = _shows_contents(name[:EDGE]) is not None
    return judge(result, is_shell, is_viewer)


def _judged(result: str, is_shell: bool, is_viewer: bool) -> bool:
    """Return whether a result reports a failure; a shell command or a viewer may only show errors of something else."""
    if result.startswith(("{", "[")):
        answer = _json_says(result)
        if answer is not None:
            return answer and not is_shell
    head, tail = result[:EDGE], result[-EDGE:]
    first, last = head.partition("\n")[0], tail.rpartition("\n")[2]
    if _states_code(first) or (last != first and _states_code(last)) or _PROGRAM.match(head):
        return True
    if _NO_ERROR.match(head) or is_shell:
        return False
    wrapping = _WRAPPING.match(head)
    start = wrapping.end() if wrapping else 0
    lowered = _lower(head[start:])
    if (
        _NAMED.match(head, start)
        or _FIRST.match(lowered)
        or _REQUIRED.match(head, start)
        or (contains_any(lowered, _OTHER_LANGUAGES) and _IN_OTHER_LANGUAGES.match(lowered))
    ):
        return not _COUNT.match(head, start) and not _RECOVERED.search(head)
    unknown = unknown_tool_in(first)
    if unknown and not _QUOTES.search(first, 0, unknown.start()):
        return True
    if is_viewer:
        return False
    if last != first and (_NAMED.match(last) or _PROGRAM.match(last)):
        return True
    return _shows_error(head) or (len(result) > EDGE and _shows_error(tail))


# runs of one task have many results in common, but results of hundreds of other tasks may lie between them
_remembered = lru_cache(maxsize=16_384)(_judged)


def _shows_error(output: str) -> bool:
    """Return whether the output of a program contains an error."""
    return any(text in output and pattern.search(output) for text, pattern in _IN_OUTPUT.items())


def _states_code(line: str) -> bool:
    """Return whether a line contains an exit code other than 0."""
    lowered = _lower(line)
    return any(word in lowered and pattern.search(lowered) for word, pattern in _STATUS.items())


def _json_says(text: str) -> bool | None:
    """Return whether JSON reports an error; None if the text is not valid JSON."""
    try:
        return _value_says(msgspec.json.decode(text))
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def _value_says(value: object) -> bool:
    """Return whether a value in JSON reports an error."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return False
    keys = {str(name).lower().replace("_", ""): given for name, given in value.items()}
    for name in ("error", "iserror", "errormessage", "errormsg", "errorcode", "exception", "traceback", "errors"):
        given = keys.get(name)
        is_given = bool(given) and str(given).lower() not in _NONE
        if is_given and (name != "errors" or all(map(_REPORT.fullmatch, keys))):
            return True
    if any(str(keys.get(name)).lower() == "false" for name in ("success", "ok", "succeeded")):
        return True
    others = keys.keys() - {"type"}
    if len(others) == 1:
        name = others.pop()
        only = keys[name]
        is_wrapper = _WRAPPER.fullmatch(name) is not None
        if isinstance(only, str) and (is_wrapper or len(keys) == 1) and is_error(only):
            return True
        if is_wrapper and _value_says(only):
            return True
        if isinstance(only, list) and "detail" in keys:  # FastAPI
            return all(isinstance(one, dict) and "msg" in one for one in only)
        if isinstance(only, dict) and "fault" in keys:  # SOAP
            return True
    if keys.get("stderr") and (keys.get("exitcode") or keys.get("returncode")):
        return True
    about = keys["metadata"] if isinstance(keys.get("metadata"), dict) else {}  # Codex
    codes = [keys.get(name) for name in ("exitcode", "returncode", "exitstatus")] + [about.get("exit_code")]
    if any(isinstance(code, int) and code for code in codes):
        return True
    stated = [keys.get(name) for name in ("status", "statuscode", "code", "httpstatus", "type")]
    words = [re.sub("[_-]", " ", one.lower()).removesuffix(" text") for one in stated if isinstance(one, str)]
    has_failed = any(isinstance(one, int) and 400 <= one < 600 for one in stated) or any(map(is_error, words))
    return (has_failed or "fail" in words) and all(map(_REPORT.fullmatch, keys))
