"""Detect events in runs of all kinds. The docstring of each detector and docs/failures.md define its rule.

Detectors compare the calls of each agent, in the order of turns. Two results are equal if their texts are equal,
ignoring surrounding spaces and memory addresses. A result that was not logged equals no other result.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, zip_longest
from operator import itemgetter

from evalkit.kinds.detectors import Detector, Found, Made, Seen, failed_tries, shortened
from evalkit.kinds.errors import contains_any, unknown_tool_in
from evalkit.kinds.turns import Turn

LEAST_REPEATS = 3  # minimum number of equal calls, or rounds of a cycle, that are an event
LONG_REPEATS = 10  # minimum number of equal calls that are an event even if a later one returns something else
DIFFERENT_CALLS = 10  # minimum number of different calls with the same result that show no progress
STALE_CALLS = 5  # minimum number of different calls in the last third of a run without a new result
LATE, LATE_SHARE = 5, 0.25  # minimum number of messages before a late first call, and their minimum share of all turns

_UNKNOWN_TOOL = "unknown tool"
_INVALID = re.compile(r"invalid \w+: ")
CAUSES = {  # causes of failed calls, with patterns of their results in lower case; the first match counts
    name: re.compile(pattern)
    for name, pattern in {
        "command not found": r"command not found|: not found$",
        "rate limit": r"rate.?limit|\b429\b|too many requests|quota",
        "time-out": r"time[d -]*out|\b(?:408|504)\b|deadline exceeded",
        "not permitted": r"permission|denied|unauthori[sz]ed|forbidden|\b40[13]\b|not allowed|credential",
        "server error": r"\b50[0-3]\b|internal server|service unavailable|bad gateway",
        "connection": r"connection|network|\bdns\b|unreachable|socket|refused",
        "syntax": r"syntax ?error|unexpected token|parse error|jsondecode|indentation|unterminated|malformed",
        "invalid arguments": r"invalid|missing|required|validation|unexpected keyword|typeerror|valueerror|argument"
        r"|parameter|schema|\b(?:400|422)\b",
        "not found": r"not found|no such|does(?: not|n't) exist|\b404\b|keyerror|no module|modulenotfound"
        r"|could ?n[o']t find|no .{1,40} (?:nearby|available|found)",
        "not enough": r"not enough|insufficient|do(?: not|n't) have|out of (?:memory|stock|space)|lack",
        "out of reach": r"reach|path|too far|stuck|blocked",
        "exception": r"traceback|exception|\w+error\b|has no attribute|object is not",
        "exit code": r"exit|returncode|return code|non-?zero",
    }.items()
}
_DONE = (
    r"(?:re)?(?:completed?|done|fixed|resolved|finished|booked|cancell?ed|updated|changed|placed|processed|refunded|confirmed"
    r"|scheduled|deleted|added|removed|delivered|deployed|uploaded|sent|saved|created|crafted|built|installed|issued"
    r"|written|implemented|submitted|set up|solved|passing|working|in (?:place|order)|live|reserved|rescheduled|moved"
    r"|renamed|replaced|transferred|activated|published|merged|restored|upgraded|registered|green|(?:un)?(?:b?locked)"
    r"|secured|extended|renewed|reset|credited|returned|waived|turned (?:off|on)|applied|sorted|on (?:its|their) way"
    r"|corrected|enabled|disabled|exchanged|put [^.\n]{1,40} on hold|(?<!line is )on hold|yours|taken care of)"
)
_DO = r"(?:complete|finish|fix|resolve|book|cancel|update|change|place|process|refund|schedule|delete|add|move|send)"
_CLAIM = re.compile(
    r"\bsuccessfully\b|\b(?:(?:(?:is|are)(?! scheduled (?:for|at|to)\b)|has been|have been|I've|I have|it's|you're"
    r"|all|now|we've|everything's)(?![^.\n]{0,40} by (?:another|others?|someone|your)\b)\s+|['’]s been "
    r"|(?:was|were)(?![^.\n]{0,40} (?:by|on)\b)\s+)"  # excludes "was booked by …", which is about others
    rf"(?:now |all |been |just |gone ahead and |successfully ){{0,4}}{_DONE}\b"
    rf"|\bI (?:just |then |also |now |went ahead and )?(?!set up|live|in ){_DONE}\b|\bI (?:was able|managed) to {_DO}\b"
    r"|\b(?:task (?:is )?(?:completed?|done|finished)|mission accomplished|consider it done|everything is set)\b"
    r"|\bI(?: have|'ve)? made (?:the|your|all|this) (?:\w+ )?(?:change|booking|payment)s?\b|\btook care of\b"
    r"|\bwe (?:just |finally )?(?:finished|completed|did it|made it)\b"
    r"|\b(?:is|are) (?:now )?ready\b(?! (?:to|for|when))|\bsucceeded\b|\ball set\b"
    rf"|^\W*(?:(?:success|(?:problem )?{_DONE}(?=\W*$|\W*[.!:,–—-]))\b|\w+ (?:made|{_DONE})\W*$)"
    r"|\b(?:(?:everything|it) (?:now )?works|(?:went|gone) through)\b"
    r"|\b(?:all|the) (?:\d+ )?(?:tests|checks) (?:now )?pass|(?<!no )\bha sido \w+d[oa]\b"
    r"|\b(?<!nicht )(?:erfolgreich|avec succès|con éxito|com sucesso|con successo)\b",
    re.IGNORECASE,
)
_IF = re.compile(
    r"\b(?:if|once|when|unless|(?<!hold )until|before|after|will|would|shall|should|to be)\b|^\W*only\b|\?|s that are",
    re.IGNORECASE,
)
_ADMITTED = re.compile(
    r"\b(?:unable|cannot|(?:could|did|was|were|has|have|is|are|does|can)(?: not|n['’]t)|can['’]t|not (?:able"
    r"|possible|been)|failed|fails|failure|failing|sorry|unfortunately|apologi[sz]e|unsuccessful\w*|nothing|unfinished"
    r"|incomplete|unchanged|(?:problem|issue) with|try again|retry|(?:an|the same|got|returned|with) error)\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
# results that only acknowledge a call: repeating them does not mean that there is no progress
_ACKNOWLEDGED = re.compile(
    r"\W*(?:(?:the |your |file |edit |tool |command |changes? |thought |note |message |memory |plan |event |answer "
    r"|todos? |list |key |action |(?:has|have|was) (?:been )?|code output:? ?"
    r"|action output:? ?)*(?:ok(?:ay)?|done|success"
    r"(?:ful(?:ly)?)?|true|null|none|created|updated|saved|written|wrote|added|deleted|removed|applied|sent|accepted"
    r"|received|moved|collected|placed|crafted|ran|executed|completed?|noted"
    r"|(?:logged|recorded|stored)(?! in\b|:? \w+:)|copied|clicked|typed|pressed)\b.{0,80})\Z"
    r"|.{0,60}\b(?:successfully|has been (?:updated|edited|created|written|saved))\b.{0,80}\Z"
    r"|\{\W*(?:ok|success|status|result)\W+(?:true|ok|success|done)\W*\}\Z",
    re.IGNORECASE | re.DOTALL,
)
LIMIT = re.compile(  # a limit that is reached, in a message at the end of a run
    r"\b(?:max(?:imum)?|the)?[ _]?(?:number of |allowed )?(?:step|turn|iteration|message|action|token|time"
    r"|cost|context|budget|episode|call|output|request|round)s?(?:[ _-](?:limit|length|window|budget|count))?"
    r"(?: \([^)]{0,80}\)| of \S{1,80}(?: [a-z]{1,10})?)?(?: (?:was|were|has been|is|are))?"
    r"[ _-](?:exceed|reach|exhaust|hit|used up)\w*"
    r"|\b(?:reached|exceeded|hit|exhausted)\b[^.\n]{0,40}\b(?:limit|max(?:imum)?|budget)\b"
    r"|\bout of (?:\w+ )?(?:steps|turns|iterations|tokens|time|context|budget)\b"
    r"|\bmax(?:imum)?[ _](?:number of )?(?:steps|turns|iterations|messages|actions|tokens)\b(?: (?:exceeded"
    r"|reached))?\W*$|limits?[ _]?(?:exceeded|reached)|(?:(?:task|agent) time-?out|time-?out reached)\w*"
    r"|(?:stopp|terminat|abort|end)ed\b[^.\n]{0,40}\blimit|(?:session|run|conversation|task|agent|episode) timed out",
    re.IGNORECASE | re.MULTILINE,
)
_UNIT = r"(?:steps?|turns?|iterations?|rounds?|recursion|tokens?|context|tool calls?)"
OWN_LIMIT = re.compile(  # a limit in a short message that a framework writes in place of the agent's answer
    # answers to a user often name limits of cost and time, so the message must begin with such a limit
    r"\W*(?:stopp\w+\W+|error\W+)?(?:max(?:imum)? |execution )?(?:cost|time|budget|conversation)(?: limit)?(?: of \S+)?"
    r"(?: [a-z]+)? (?:exceeded|reached|exhausted)\b(?! for)"
    r"|(?=.*\b(?:reach|exceed|exhaust|hit\b|stopp|r[au]n out|used up|need more)).*\b(?:(?:max(?:imum)?|limit|out of"
    r"|need more|used up)\b.{0,20}"
    rf"\b{_UNIT}|{_UNIT} (?:limit|budget|window))\b",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_LIMIT = 200  # maximum number of characters of such a message
LIMIT_STATUS = re.compile(  # a status that names a limit, but not a time-out of the environment or of a service
    r"(?!.*(?:environment|setup|install|verifier|test_?time|docker|container|sandbox|runtime_?time|rate_?limit"
    r"|(?:api|connect|connection|read|request|gateway|server)_?time))"
    r".*(?:limit|max_|\bmax |exceeded|time-?_?out|exit_(?:cost|context|total_execution_time)|too_many|length|out_of"
    r"|exhausted|budget)",
    re.IGNORECASE | re.DOTALL,
)
_WORDS_OF_LIMITS = (  # every match of these three patterns contains one of the words, in upper or lower case
    *("exceed", "reach", "exhaust", "hit", "used up", "out", "max", "limit", "stopp", "need more"),
    *("exit_", "too_many", "length", "budget"),
)
_WORDS_OF_WAITING = ("wait", "sleep", "pause", "delay")  # every match of `_WAITS` contains one of these
_WAITS = re.compile(  # the name and the arguments of a call that only waits
    r"(?:\S*[_.!:/-])?(?:wait|sleep|pause|delay)(?:_(?:for_)?(?:ms|seconds|minutes|time))? .*"
    r"|\S+ (?:\W*\w+)??\W*sleep [\d.]+\w?\W*",
    re.IGNORECASE,
)


def _only_waits(made: Made) -> bool:
    """Return whether a call only waits, as between two looks at a job. A quick test for words rules out most calls."""
    if made.has_failed:
        return False
    text = f"{made.name[:99]} {made.arguments[:99]}"
    return contains_any(text.lower(), _WORDS_OF_WAITING) and _WAITS.fullmatch(text) is not None


def _in_turn(keys: Sequence[object], period: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each stretch in which `period` different keys alternate at least `LEAST_REPEATS` times."""
    start = 0
    while start + LEAST_REPEATS * period <= len(keys):
        repeated = start  # becomes the first position whose key is not repeated one period later
        while (
            repeated + period < len(keys) and keys[repeated] is not None and keys[repeated] == keys[repeated + period]
        ):
            repeated += 1
        end = repeated + period
        if end - start >= LEAST_REPEATS * period and len(set(keys[start : start + period])) == period:
            yield start, end
        start = max(repeated, start + 1)


def cycle(transcript: Seen) -> Iterator[Found]:
    """Find two or three different calls that alternate at least three times, each with the same result every time.

    Calls that only wait don't count. The detail is the number of rounds.
    """
    for agent, calls in transcript.calls_of_agents.items():
        if transcript.repeats[agent] < 2 * (LEAST_REPEATS - 1):  # too few for a cycle of two calls
            continue
        equal: dict[tuple, list[Made]] = {}
        for made in calls:
            equal.setdefault((made.name, made.arguments, made.result), []).append(made)
        often = [same for same in equal.values() if len(same) >= LEAST_REPEATS and same[0].result is not None]
        active = [same for same in often if not all(_only_waits(made) for made in same)]
        if len(active) < 2:  # a cycle has at least two calls that recur often, have a result, and do more than wait
            continue
        calls = [made for made in calls if not _only_waits(made)]
        keys = [None if made.result is None else (made.name, made.arguments, made.result) for made in calls]
        done = 0  # end of the last cycle, so that no call belongs to two cycles
        for period in (2, 3):
            for start, end in _in_turn(keys, period):
                if start >= done:
                    rounds = " → ".join(made.text for made in calls[start : start + period])
                    yield calls[start].turn, str((end - start) // period), rounds
                    done = end


def repeated_call(transcript: Seen) -> Iterator[Found]:
    """Find a call that an agent makes at least three times with the same arguments and the same result.

    Other calls may occur in between, as in a cycle. If the next equal call returns something else, the repetition is
    healthy polling, unless ten calls returned the same before or the agent made other calls in the meantime. Calls that
    only wait don't count. The turn is the turn of the first call, and the detail is the number of calls.
    """
    for agent, calls in transcript.calls_of_agents.items():
        if transcript.repeats[agent] < LEAST_REPEATS - 1:
            continue
        equal: dict[tuple[str, str], list[tuple[int, Made]]] = {}
        for place, made in enumerate(calls):
            equal.setdefault(made.call, []).append((place, made))
        often = [same for same in equal.values() if len(same) >= LEAST_REPEATS and not _only_waits(same[0][1])]
        if not often:
            continue
        last: dict[str, int] = {}  # the last call of each name so far
        before: list[int] = []  # for each call, the last one of this name before it
        for place, made in enumerate(calls):
            before.append(last.get(made.name, -1))
            last[made.name] = place
        # earliest[k]: the minima of `before` over each 2**k calls in a row, so that no check below visits all calls
        earliest = [before]
        while (width := 2 ** len(earliest)) <= len(calls):
            earliest.append(list(map(min, earliest[-1], earliest[-1][width // 2 :])))
        for numbered in often:
            stretches = [list(same) for _, same in groupby(numbered, lambda one: one[1].result)]
            for stretch, following in zip_longest(stretches, stretches[1:]):
                n = len(stretch)
                (start, first), (end, _) = stretch[0], stretch[-1]
                if first.result is None or n < LEAST_REPEATS:
                    continue
                if following and n < LONG_REPEATS:
                    stop = following[0][0]
                    k = (stop - end).bit_length() - 1
                    if min(earliest[k][end], earliest[k][stop - 2**k]) >= start:  # no call of a name that is new since
                        continue
                yield first.turn, str(n), f"{first.text} → {shortened(first.result)}"


def failed_call(transcript: Seen) -> Iterator[Found]:
    """Find each call that failed, judged by the log or the text of its result; the detail is the cause."""
    for made in transcript.failed_calls:
        yield made.turn, cause_of(made.result or ""), shortened(made.result or made.text)


def cause_of(result: str) -> str:
    """Return the cause of a failed call, one of `CAUSES`, "unknown tool", "invalid action" or "other"."""
    return _cause_of(result[:1000])


@lru_cache(maxsize=1024)  # the same errors recur
def _cause_of(text: str) -> str:
    if unknown_tool_in(text):
        return _UNKNOWN_TOOL
    if _INVALID.match(text):
        return "invalid action"
    lowered = text.lower()
    return next((name for name, pattern in CAUSES.items() if pattern.search(lowered)), "other")


def unknown_tool(transcript: Seen) -> Iterator[Found]:
    """Find each call of a tool, function or command that does not exist; the detail is its name."""
    for made in transcript.failed_calls:
        result = made.result or ""
        is_undefined = any(f"{of} '{made.name}'" in result for of in ("name", "attribute"))  # in Python's words
        if is_undefined or cause_of(result) == _UNKNOWN_TOOL:
            yield made.turn, made.name, shortened(result)


def ignored_error(transcript: Seen) -> Iterator[Found]:
    """Find a failed call after which the agent repeats the call unchanged, and it fails again, or claims success.

    The repeated call must be the agent's next call, and the claim must come before any other call. Retries that end
    with a success are healthy. The detail is ``called again`` or ``claimed success``.
    """
    turns = transcript.turns_of_agents
    for calls in transcript.calls_of_agents.values() if transcript.failed_calls else ():
        for tries, following in failed_tries(calls):
            failed = tries[0]
            if len(tries) > 1:
                yield failed.turn, "called again", f"{failed.text} → {shortened(failed.result or '')}"
            last = following.turn if following else len(transcript.turns)
            own = turns.get(failed.agent, [])
            place = bisect_right(own, tries[-1].turn, key=itemgetter(0))
            while place < len(own) and own[place][0] <= last:
                number, turn = own[place]
                if turn.role == "assistant" and claims_success(turn.text):
                    yield number, "claimed success", shortened(turn.text)
                    break
                place += 1


def claims_success(text: str) -> bool:
    """Return whether a message claims that something was done, and nowhere admits a failure."""
    if not _CLAIM.search(text) or _ADMITTED.search(text):
        return False
    return any(_CLAIM.search(sentence) and not _IF.search(sentence) for sentence in _SENTENCES.split(text))


def no_progress(transcript: Seen) -> Iterator[Found]:
    """Find ten different calls with the same result, or a last third of a run's calls without a new result.

    The last third must contain at least five different calls, and all its results must have occurred before. Results
    that only acknowledge a call, such as ``ok`` or ``file written``, don't count. The detail is the number of calls.
    """
    for calls in transcript.calls_of_agents.values():
        if len(calls) < DIFFERENT_CALLS or len(calls) - len({made.result for made in calls}) < STALE_CALLS:
            continue
        with_result: dict[str, list[Made]] = {}
        for made in calls:
            if made.result:
                with_result.setdefault(made.result, []).append(made)
        stale = set[str]()  # results that occur several times, without those that only acknowledge a call
        found: list[tuple[Made, int]] = []  # the first call with a result, and the number of different calls with it
        for result, same in with_result.items():
            if len(same) == 1:
                continue
            if _ACKNOWLEDGED.match(result[:200]):
                same = [made for made in same if made.has_failed]
            if same:
                stale.add(result)
            n = len({made.call for made in same})
            if n >= DIFFERENT_CALLS:
                found.append((same[0], n))
        for made, n in sorted(found, key=lambda one: one[0].turn):
            yield made.turn, str(n), shortened(made.result or "")
        last = calls[len(calls) - len(calls) // 3 :]
        if found or len({made.call for made in last}) < STALE_CALLS:
            continue
        earlier = {made.result for made in calls[: len(calls) - len(last)]}
        if all(made.result in stale and made.result in earlier for made in last):
            yield last[0].turn, str(len(last)), shortened(last[0].result or "")


def _is_result(turns: Sequence[Turn], number: int) -> bool:
    """Return whether the turn with a number shows the result of a call."""
    return any(turn.call and place + turn.call.result_after == number for place, turn in enumerate(turns, 1))


def may_name_limit(text: str) -> bool:
    """Return whether a pattern of a limit may match a text. This quick test rules out most messages and statuses."""
    # in other texts, the patterns also match letters such as ſ, which `lower` does not turn into s
    return not text.isascii() or contains_any(text.lower(), _WORDS_OF_LIMITS)


def limit_reached(transcript: Seen) -> Iterator[Found]:
    """Find a run that a limit (steps, tokens, time, cost) ended, according to its status or its last two turns.

    A kind of log may mark a turn that reports a limit, whatever its words, with `is_limit` in its values.
    """
    ended = transcript.ended
    turns = transcript.turns
    if ended and may_name_limit(ended) and LIMIT_STATUS.match(ended):
        yield max(len(turns), 1), ended, ended
        return
    for number in range(max(len(turns) - 1, 1), len(turns) + 1):
        text = turns[number - 1].text
        if limit := _limit_in(turns, number):
            yield number, shortened(limit.strip())[:80], shortened(text)
            return


def _limit_in(turns: Sequence[Turn], number: int) -> str:
    """Return the text of one of the last turns that reports a limit; empty if it reports none."""
    turn = turns[number - 1]
    match = None
    if may_name_limit(turn.text):
        if turn.role in ("system", "user") and not _is_result(turns, number):
            match = LIMIT.search(turn.text)
        elif turn.role == "assistant" and number == len(turns) and len(turn.text) <= _LONGEST_LIMIT:
            match = OWN_LIMIT.match(turn.text)
    if match:
        return match[0]
    return turn.text if turn.values.get("is_limit") else ""


def late_first_action(transcript: Seen) -> Iterator[Found]:
    """Find an agent whose first call comes after at least five messages, which are at least a quarter of its turns.

    Commands that only observe or talk count neither as messages nor as calls, if the kind of log distinguishes them.
    The detail is the number of messages.
    """
    for own in transcript.turns_of_agents.values():
        n = 0
        for number, turn in own:
            if turn.call is None:
                n += 1
            elif turn.values.get("acts", True):
                if n >= max(LATE, LATE_SHARE * len(own)):
                    yield number, str(n), shortened(turn.text)
                break


_LOOP = "repeats calls without effect"
COMMON = (
    Detector("repeated_call", "Is a call repeated, with the same result?", repeated_call, _LOOP, 8),
    Detector("cycle", "Do two or three calls take turns, with the same results?", cycle, _LOOP, 8),
    Detector("no_progress", "Do different calls bring nothing new?", no_progress, "makes no progress", 7),
    Detector(
        "limit_reached", "Did a limit of steps, tokens, time or cost end it?", limit_reached, "reaches a limit", 5
    ),
    Detector("ignored_error", "Is an error ignored?", ignored_error, "ignores an error", 4),
    Detector("unknown_tool", "Is a tool called that does not exist?", unknown_tool, "calls unknown tools", 4),
    Detector("late_first_action", "Does it act late?", late_first_action, "acts late", 2),
    Detector("failed_call", "Which calls fail, and why?", failed_call, "calls fail", 2),
)
