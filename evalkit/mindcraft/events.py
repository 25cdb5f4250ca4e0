"""Detect events in task runs: plans, messages and recipes between agents, items, and trouble in the game."""

import re
from collections.abc import Iterator
from itertools import groupby

from evalkit.kinds import Detector, Found, Seen, Turn
from evalkit.kinds.detectors import agent_of, shortened
from evalkit.mindcraft.parse import EVENT

LEAST_WAITS = 3  # minimum number of turns in a row
MOST_READ = 2_000  # maximum number of characters of a message that patterns search

PLAN = re.compile(
    r"\b(?:plan(?: of \w+)?|strategy|roadmap|proposal|approach|roles|step (?:1|one))(?::| -)"
    r"|\b(?:(?:the|my|our|a|this) plan\b(?!\W*$)|plan (?:is|to)|here(?:['’]s| is) what we(?:['’]ll)? do"
    r"|we (?:need to|have to|could(?! not))|step (?:1|one) is|first,? (?:we|you|I|let)"
    r"|let(?:'?s| us) (?!go\b(?! to)|see|wait|know|do |continue|keep|meet)|how about (?!you\b)|I (?:propose|suggest)"
    r"|let me (?:lay out|outline|sketch)|(?:my|the|our) idea is|your (?:job|task|part) is"
    r"|(?:I|we)(?:'ll| will| can(?!['’]t)| should| am going to| are going to|'m going to|'re going to)"
    r"(?! (?:wait|stay|be here|stand|hang))|you (?:can|should|could|collect|gather|get|craft|take|cook|mine|make))\b",
    re.IGNORECASE,
)
# the following patterns search texts in lower case, which is several times as fast as ignoring case
WAIT = re.compile(
    r"(?<!need to )(?<!n['’]t )(?<!not )\b(?:wait(?:ing)?(?!\s*[,!])|hold(?:ing)? (?:on|position|here)|stand(?:ing)? by"
    r"|stay(?:ing)? put|remain(?:ing)? here|hang(?:ing)? (?:on|tight|around)|let me know (?:when|once|if)"
    r"|i(?:'ll| will|'m| am) (?:be|stay|staying) (?:right )?here|ready when you)\b|take your time"
    r"|\bnot going anywhere\b",
)
# matches every message about a recipe, and is faster than the patterns for questions and answers
_OF_RECIPES = re.compile(
    r"recipe|plan|ingredient|how|need|requir|take|use|ma[dk]e|craft|cook|combine| row\b|what|give|=| in an? "
)
_RECIPE = r"(?:recipe|crafting plan)"
_KNOW_HOW = rf"(?:{_RECIPE}|ingredients?)"
_MAKE = r"(?:craft(?:ed)?|make|made|cook(?:ed)?|baked?|smelt(?:ed)?|build|built)"
_OFFER = r"(?:i(?:'ll| will| can)? |let me |do you (?:need|want)|should i|shall i|want me|i have |i(?:'ve)? got )"
ASKED = re.compile(
    rf"(?:^|[.!?\n])[^\S\n]*(?!{_OFFER})[^.!?\n]{{0,99}}(?:\b{_KNOW_HOW}\b[^.!?\n]{{0,99}}\?"
    rf"|\b(?:what(?:'s| is| are)|which|tell|share|give|send|show|can you)\b[^.!?\n]{{0,99}}\b{_RECIPE}\b"
    r"|\b(?:how (?:do|can|should|would|to|is|are)|what do (?:i|we|you) need to)\b[^.!?\n]{0,99}"
    rf"\b{_MAKE}\b[^.!?\n]{{0,99}}\?|\bwhat goes into\b[^.!?\n]{{0,99}}\?)"
    rf"|\bhow (?:many|much) [\w ]{{0,40}}\b(?:needed (?:for|to)|for (?:an?|the|one)|need to {_MAKE} (?:an?|the))\b"
    r"|\b(?:what|how m[\w ]{3,40}) do(?:es)? (?:an?|the|one) (?!other|task)[\w ]{1,30}(?:need|take|require)\b"
    r"|\b(?:what|which) (?!one|of|agent|bot|player)\w+ makes? an?\b|\bwhat(?: is|'s) in an? (?!chest|barrel|bag)"
    r"|\bwhat(?: is|'s| are) (?:the )?(?:materials?|components?|ingredients?|items) (?:for|of|in|to)\b"
    rf"|\b(?:(?:don't|anyone|not) know|no idea|not sure|find out) how (?:to|do i|do we|an?|the)[\w ]{{0,30}} {_MAKE}\b"
    rf"|\b(?:how|what)(?: is|'s) (?:an?|the) [\w ]{{1,30}} {_MAKE}\b|\bwhat (?:should|can|do) (?:i|we) use to {_MAKE}\b"
    rf"|(?<!you )\b(?:need|want|like|looking for) (?:to (?:know|have|get) )?(?:the |a |your )?(?:\w+ )?{_RECIPE}\b"
    rf"|(?<!can )(?<!will )(?<!'ll )\b(?:tell|show|teach|explain)\b[^.!?\n]{{0,20}}\bhow to {_MAKE}\b"
    rf"|\b(?:what|which)\b[^.!?\n]{{0,99}}\bneed(?:ed)? (?:for|to {_MAKE})\b[^.!\n]{{0,99}}\?"
    r"|\b(?:what|which)\b(?![^.!?\n]{0,99}\b(?:task|goal)\b)[^.!?\n]{0,99}\brequire[ds]?\b[^.!?\n]{0,99}\?"
    rf"|\b(?:(?:do not|don't|not) (?:know|have)|lack)\b[^.!?\n]{{0,99}}\b{_RECIPE}\b",
)
_NUMBER = r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine)"
_SOME = (  # a number of an ingredient, not in a question
    rf"\b(?!an? ){_NUMBER} (?!(?:more|of|or|minutes|seconds|hours|days|blocks|stacks)\b)[a-z]\w+(?![^.!\n]{{0,99}}\?)"
)
_NEED = r"(?:you|we)(?:'ll|'d| will)? need"
TOLD = re.compile(
    rf"\b{_KNOW_HOW}\b[^.?!\n]{{0,99}}(?:\bis\b|\bare\b|:|\bneeds?\b|\brequires?\b|=)[^.?!\n]{{0,99}}"
    r"(?:\d|\w,|\band\b)(?![^.!\n]{0,99}\?)"
    rf"|\b{_RECIPE}\b[^.?!\n]{{0,80}}[.:]\s*(?:\W{{0,4}}|step )1\b"  # numbered steps follow
    rf"|\b(?:{_NEED}|needs?|requires?|takes|(?:is|are) (?:made (?:of|from|with)|crafted with"
    rf"|just)?|craft(?:ed)?(?: it)? (?:with|from)|makes? \w+ (?:with|from))\s+{_NUMBER}\s+"
    r"[\w ]{1,99}(?:,| and | \+ | plus | surrounded by |in a row|in the (?:middle|centre|center))\s*"
    r"(?:\d+|one|two|three|a|an|some|in|[.!]|\Z)"
    # one ingredient is enough in a sentence about an item
    r"|(?:(?<!goal )(?<!task )\brequires?|\b(?:an?|the|one) (?!other|agent|bot|player)\w+(?: \w+)? (?:needs|takes|uses)"
    rf"|\b(?:is|are) {_MAKE} (?:of|from|with|using)) {_SOME}"
    rf"|(?:\b{_NEED}|\bit (?:takes|needs)|(?:^|[.!?] |\byou )use) {_SOME}[\w ]{{0,30}} (?:to {_MAKE}|for (?:an?|the)) "
    rf"|\bto {_MAKE} [\w ]{{1,40}}(?:,? {_NEED}|,? use|:) {_SOME}"
    rf"|\w ?(?:= {_SOME}|: {_SOME}[\w ]{{0,30}}\bin an? \w+(?: \w+)? (?:shape|pattern))"
    rf"|(?:^|[.!?\n]) ?{_SOME}(?: (?!and|then|to|we|you|i|can|will)\w+){{0,2}} (?:makes?|gives?) {_NUMBER} \w"
    rf"|{_SOME}[\w ]{{0,30}}\b(?:is|are) (?:needed|required) (?:for|to)\b"
    rf"|(?<!\bi )(?<!'ll )(?<!will )\b(?:craft(?:ed)?|make|bake) (?:\w+ ){{1,4}}(?:with|from|using) {_SOME}"
    rf"|\b(?:place|put) {_NUMBER} \w+ (?:around|in the (?:top|middle|cent|bottom|left|right|first|second|upper))"
    r"|\b\d+ \w+ in a row\b"
    r"|\bcombine [^.!?\n]{0,99}\b(?:with|and|to make)\b"
    r"|\bfor (?:a |the |one )?\w[\w ]{0,30}? (?:you|we) need\b(?![^.!\n]{0,99}\?)",
)
_MADE = re.compile(  # such as: Successfully smelted sand, got 2 glass
    r"Successfully (?:crafted|(?:smelted|cooked)(?: [\w ]+, got)?)\s+(?:\d+\s+)?(?P<item>[a-z_]+)", re.IGNORECASE
)
_ITEM = re.compile(r"[a-z][a-z_]{2,}")
# ingredients of many items, and tools: making one of these is not a mistake
_ON_THE_WAY = re.compile(
    r"(?:.*_)?(?:planks|log|stick|sticks|ingot|nugget|dye|string|leather|paper|sugar|wheat|flour|bucket|coal|charcoal"
    r"|torch|crafting_table|furnace|smoker|chest|glass|glass_pane|brick|pickaxe|axe|shears|dust|bone_meal|gunpowder"
    r"|cocoa_beans|milk)|(?:smooth_)?stone|cobblestone|redstone"
)
_NEEDED_FOR = {  # by the last word of an item: words of targets that need it
    "slab": {"barrel", "lectern", "composter", "stand", "detector"},
    "wool": {"bed", "carpet", "banner", "painting"},
    "block": {"anvil", "beacon", "apple"},
    "book": {"bookshelf", "lectern", "enchanting"},
    "bowl": {"soup", "stew"},
}
_REQUEST = re.compile(
    r"\?|\b(?:please|can you|could you|would you|need|give|bring|tell|send|show|share|help|let'?s|let us|come"
    r"|where|what|do you)\b",
)
_BYE = re.compile(r"!endconversation|\b(?:bye|goodbye|thank(?:s| you)|see you|well done|great job|good job)\b")


def plan_not_started(transcript: Seen) -> Iterator[Found]:
    """Find an agent that announces a plan but never gives a command that changes anything in the game."""
    for agent, turns in transcript.turns_of_agents.items():
        if any(turn.call and turn.values.get("acts") for _, turn in turns):
            continue
        for number, turn in turns:
            if PLAN.search(turn.values.get("words", "")):
                yield number, agent, shortened(turn.text)
                break


def waiting(transcript: Seen) -> Iterator[Found]:
    """Find an agent that only waits, in words or with ``!stay``, for at least three of its turns in a row.

    The detail is the number of these turns.
    """
    for own in transcript.turns_of_agents.values():
        for is_waiting, turns in groupby(own, lambda numbered: _waits(numbered[1])):
            waits = list(turns)
            if is_waiting and len(waits) >= LEAST_WAITS:
                number, first = waits[0]
                yield number, str(len(waits)), shortened(first.text)


def _waits(turn: Turn) -> bool:
    if turn.values.get("acts"):
        return False
    if turn.call and turn.call.name in ("!stay", "!wait"):
        return True
    return WAIT.search(turn.text.lower()) is not None


def unanswered_message(transcript: Seen) -> Iterator[Found]:
    """Find messages that their receiver never answers, although it acts or gets more messages.

    A single message counts if it asks for something. Farewells and thanks need no answer. If an agent begins a
    conversation, takes three more turns and receives no message, its message is unanswered, too. The detail is the
    number of messages.
    """
    heard: dict[str, dict[str, list[int]]] = {}  # turns by receiver and sender, since the receiver last spoke
    acted: dict[str, int] = {}  # number of turns of the receiver since then
    receivers: set[str] = set()
    begun: dict[str, list[int]] = {}  # for each agent that began a conversation, that turn and its turns since
    for number, turn in enumerate(transcript.turns, 1):
        if turn.role == "system":
            continue
        agent = agent_of(turn)
        if sender := turn.values.get("from"):
            receivers.add(agent)
            begun.pop(agent, None)
            if not _BYE.search(turn.values["words"].lower()):
                heard.setdefault(agent, {}).setdefault(sender, []).append(number)
        elif turn.role == "assistant":
            is_start = bool(turn.call and turn.call.name == "!startConversation")
            if turn.values.get("words", "").strip() or is_start:
                heard.pop(agent, None)
            acted[agent] = acted.get(agent, 0) + 1 if agent in heard else 0
            if agent in begun:
                begun[agent].append(number)
            elif is_start:
                begun[agent] = [number]
    for agent, senders in heard.items():
        for numbers in senders.values():
            first = transcript.turns[numbers[0] - 1]
            is_due = _REQUEST.search(first.values["words"].lower())
            if (acted.get(agent) and is_due) or len(numbers) > 1:
                yield numbers[0], str(len(numbers)), shortened(first.text)
    for agent, numbers in begun.items():
        if agent not in receivers and len(numbers) > LEAST_WAITS:
            yield numbers[0], "1", shortened(transcript.turns[numbers[0] - 1].text)


def recipe_asked(transcript: Seen) -> Iterator[Found]:
    """Find each message in which an agent asks another one for a recipe, its ingredients, or how to make something."""
    yield from _said(transcript, ASKED)


def recipe_told(transcript: Seen) -> Iterator[Found]:
    """Find each message in which an agent tells another one a recipe: what it is, or the numbers of ingredients."""
    yield from _said(transcript, TOLD)


def _said(transcript: Seen, pattern: re.Pattern[str]) -> Iterator[Found]:
    """Yield the turns in which an agent's words, up to any command, match a pattern."""
    for turns in transcript.turns_of_agents.values():
        for number, turn in turns:
            words = turn.values.get("words", "")[:MOST_READ].lower()
            if words and _OF_RECIPES.search(words) and pattern.search(words):
                yield number, "", shortened(turn.text)


def wrong_item(transcript: Seen) -> Iterator[Found]:
    """Find each item that an agent makes although the task neither asks for it nor names it, nor needs it on the way.

    Planks, ingots, tools to mine and the like are needed on the way, as are wool for a bed and a bowl for soup. A
    task's definition or id gives the items that it asks for; without any, no item is wrong. The detail is the item.
    """
    targets = set(_ITEM.findall(transcript.target.lower()))
    if not targets:
        return
    parts = {word for target in targets for word in target.split("_")}
    goals = [turn.text for turn in transcript.turns if turn.role == "system" and "goal" in turn.text]
    goal_text = " ".join(goals).lower().replace("_", " ")
    for made in transcript.calls:
        match = _MADE.search(made.result or "")
        item = match["item"].lower() if match else ""
        if not item or item in targets or item.rstrip("s") in targets or _ON_THE_WAY.fullmatch(item):
            continue
        is_needed = item in parts or not parts.isdisjoint(_NEEDED_FOR.get(item.rpartition("_")[2], ()))
        if not is_needed and item.replace("_", " ") not in goal_text:
            yield made.turn, item, shortened(made.result or "")


def death(transcript: Seen) -> Iterator[Found]:
    """Find each death of an agent, which the game reports."""
    yield from _reported(transcript, "deaths")


def restart(transcript: Seen) -> Iterator[Found]:
    """Find each restart of an agent's process, and each loss of its connection to the game's server."""
    yield from _reported(transcript, "restarts", "disconnects")


def _reported(transcript: Seen, *events: str) -> Iterator[Found]:
    """Yield the turns in which the game reports one of `events`, names in `evalkit.mindcraft.table.EVENTS`."""
    for number, turn in enumerate(transcript.turns, 1):
        if turn.marks and turn.marks[0] in events:
            match = EVENT.search(turn.text)
            yield number, "", shortened(turn.text[match.start() :] if match else turn.text)


DETECTORS = (
    Detector("restart", "Does an agent's process break down?", restart, "breaks down", 9),
    Detector("plan_not_started", "Is a plan made and never begun?", plan_not_started, "never begins", 9),
    Detector("death", "Does an agent die?", death, "dies", 6),
    Detector("wrong_item", "Is something made that nobody asked for?", wrong_item, "makes the wrong item", 4),
    Detector("waiting", "Does an agent only wait?", waiting, "waits", 3),
    Detector("unanswered_message", "Is a message never answered?", unanswered_message, "does not answer", 3),
    Detector("recipe_asked", "Is a recipe asked for?", recipe_asked),
    Detector("recipe_told", "Is a recipe told?", recipe_told),
)
