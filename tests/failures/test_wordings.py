"""What texts of messages and results mean to detectors, in wordings of others."""

import pytest

from evalkit.compare.checks import opens_own_file
from evalkit.failures.rules import LIMIT, LIMIT_STATUS, OWN_LIMIT, cause_of, claims_success, may_name_limit
from evalkit.kinds import Call, Transcript, Turn
from evalkit.kinds.detectors import seen
from evalkit.kinds.errors import is_error, unknown_tool_in
from evalkit.mindcraft.events import ASKED, PLAN, TOLD, WAIT
from evalkit.mindcraft.transcript import FAILED
from evalkit.steps.events import NOT_GIVEN, parameter_not_given


def is_unknown_tool(text):
    return bool(is_error(text) and unknown_tool_in(text))


def in_lower_case(pattern):
    return lambda text: pattern.search(text.lower())


def _needs_parameter(error):
    """Return whether the error of a step means that a parameter is missing; another step has the parameter donor."""
    calls = [Call("g", '{"donor": 1}', "x", False), Call("f", "", f"error: {error}", True)]
    return bool(
        [*parameter_not_given(seen(Transcript("", [], [Turn("a", "action", "", call=call) for call in calls])))]
    )


CASES = {
    "asks for a recipe": (
        in_lower_case(ASKED),
        "What's the recipe for cake?|Can you tell me how to make a cake?|Do you know how to craft a bookshelf?"
        "|I don't know the recipe. Can you share it?|Please share the recipe for the cake.|what is the recipe"
        "|What do I need to craft a compass?|Could you give me the crafting plan?|How is a cake made?"
        "|Which ingredients do we need for the cake?|Tell me the recipe for rabbit stew"
        "|Which items are needed to craft a lectern?|I'd like to know the recipe for cookies."
        "|Tell me how to make bread|What goes into bread?|How are tiles smelted?|Which things does the loom require?"
        "|How many nuggets are needed to craft a chain?|How much wool does a banner require?"
        "|how many bricks for a chimney|I have no idea how to build a loom|What are the materials for the lamp?"
        "|What's in a trail mix?|Which dyes make a carpet?",
        "I have 3 wheat. Do you need it?|Let's craft a cake.|The recipe is 3 wheat.|How are you?|Where do I put it?"
        "|What does the task require?|I know the recipe, I need the ingredients.|Let me share the recipe with you."
        "|Do you want the recipe?"
        "|How many nuggets do you carry?|Which bot makes a loom?|What's in a barrel over there?"
        "|I will show Bo how to make a loom.|I don't know how far it is",
    ),
    "tells a recipe": (
        in_lower_case(TOLD),
        "To make a cake you need 3 milk, 2 sugar, 1 egg and 3 wheat.|The recipe is: 3 wheat|Recipe: 3 wheat in a row"
        "|Cake requires 3 wheat, 2 sugar and 1 egg|It takes 6 planks and 3 books.|You need 2 sticks and 3 iron ingots."
        "|A bookshelf is made of 6 planks and 3 books|You craft it with 3 wheat|Ingredients: wheat, sugar, egg."
        "|Here is the recipe for bread: Step 1: Cut the wheat."
        "|A golden carrot takes 1 carrot surrounded by 8 gold nuggets.|You make bread from 3 wheat and a bowl."
        "|Craft arrows with 1 stick.|You can craft the loom using 2 string|To craft it, put 1 egg in the middle slot"
        "|The anvil uses 4 ingots|It takes 9 nuggets to craft an ingot.|Lantern = 8 nuggets + 1 torch"
        "|A chain requires 3 nuggets|You'd need 5 ingots to make a cauldron|Doors are made from 6 planks."
        "|Boots: 4 leather in a U shape|To make the bed: 3 wool, 3 planks|8 planks make a chest"
        "|Use 2 planks to make a button.|Make carpets from 2 wool|Put 4 sticks around the coal"
        "|Six nuggets are needed for the rail.",
        "Do you have the recipe?|What is the recipe for cake?|I need 3 logs.|I have 3 wheat and 2 eggs.|Let's go."
        "|Thanks for the recipe, I look for wheat.|I crafted bread with 3 wheat|Can you craft a loom with 2 string?"
        "|Put 3 logs in the chest so that I can craft"
        "|I need 9 nuggets to craft an ingot.|It takes 9 minutes to get there|The task requires 3 beds"
        "|The other bot takes 4 torches|We need 2 more ingots to make it.|Do you need 4 sticks for the sign?"
        "|I'll make soup with 2 mushrooms|Then we 2 make a bed",
    ),
    "announces a plan": (
        PLAN.search,
        "Here's the plan: you get wood|Plan: 1. collect 2. craft|I'll gather wood and you craft.|We should split up"
        "|First, we cut wood.|We need to find sheep, then cut wool.|Strategy: you dig, I smelt.|Roadmap - logs, planks"
        "|Here's what we'll do: one digs, one cooks.|Step 1: dig|Here is a plan of attack: I dig|Our approach: you cook"
        "|Let me outline it: dig, then cook|My idea is that you cook|Your job is to dig|We could each take a side",
        "Hello Jill|OK|Thanks!|Good strategy!|I'll hang around here.|Your proposal is fine."
        "|We could not find sheep.|I did step 1|Nice approach!"
        "|Good plan!|How about you?|Then let us go on.|I'll wait for Andy.|I can't wait to see it!",
    ),
    "waits": (
        in_lower_case(WAIT),
        "I'm waiting for you.|I will wait here|Waiting...|Let me know when you are done|Standing by."
        "|I will stay here until you return.|Still waiting.|I'm staying put.|Hanging tight till then!|Holding position."
        "|Take your time, Jill.|I'm not going anywhere.|I'll hold here until dawn.|Remaining here.|I'll be right here.",
        "On my way|I have it|I'm here!|Hold this for me"
        "|No need to wait, come.|Wait, I have it already.|I can't wait to see the cake!|Don't wait for me.",
    ),
    "fails in the game": (
        FAILED.match,
        "Pathfinding stopped: Path was stopped before it could be completed!.|Took too long to decide path to goal!"
        "|The furnace is currently smelting potato.|Inventory full, no place to collect.|You have no fuel to smelt."
        "|The barrel does not contain any wheat."
        "|Block type: goldblok not found.",
        "Took 3 sticks.|The furnace is ready.|You have now 3 sticks.|Inventory:|Collected 3 logs."
        "|Block of gold placed.",
    ),
    "needs a parameter": (
        _needs_parameter,
        "Parameter 'sample' must be provided|`sample` is required|ValueError: field required: sample"
        "|Missing required parameter: sample|sample must not be empty|ValueError: `sample` cannot be None"
        "|Please provide a sample|1 validation error for Plot\nsample\n  Field required [type=missing]|No sample given"
        "|No value for the sample was given|You must specify the sample|KeyError: 'donor'|donor is missing"
        "|ValueError: donor is None|donor has no value",
        "The sample is fine|Parameter 'sample' is invalid|missing values in sample 3|KeyError: 'pca_30'|'pca_30'"
        "|pca_30 is missing|Please provide a valid sample|Please provide more samples|The matrix cannot be empty"
        "|The table was not given enough rows|input contains NaN: missing values are not allowed"
        "|donor is None of the known ones|pca_30 is None",
    ),
    "claims success": (
        claims_success,
        "I've successfully updated your order.|The booking is confirmed.|Great news! Your flight has been booked.|Done."
        "|All set! Your appointment is scheduled.|Task completed.|The issue has been resolved.|Everything works now."
        "|Your refund was processed. You will get it in 5 days.|All tests pass now.|The error is fixed."
        "|Your room's been changed.|We're all set for tonight!|I was able to add the luggage.|The upload succeeded."
        "|I went ahead and rescheduled the call.|All 7 checks pass.|Refund processed.|The seat is now reserved."
        "|Fixed!|The payment went through.|I updated the record.|It works now.|The refund has been issued."
        "|We finally made it!|Your room is now ready.|I've gone ahead and rescheduled you.|I resent the invoice."
        "|Everything is set for your tour.|Your tickets are on their way!|I've put the tour on hold."
        "|Mission accomplished.|Consider it done!|The seat has been unlocked.|I made the change."
        "|I've turned off the alarm.|The fine was waived.|You're booked for the tour."
        "|Der Sitz wurde erfolgreich getauscht.|Il tour è confermato con successo.|La cita ha sido confirmada.",
        "I could not update the order.|The update failed.|Unfortunately the booking was not completed.|Shall I proceed?"
        "|I will update it once you confirm.|There was an error, but I'm looking into it.|Once it is done I tell you."
        "|Nothing was changed.|The order remains unchanged.|I created nothing."
        "|The table was taken, it was reserved by another guest.|The call was placed on Monday.|I opened the file."
        "|Are you ready?|The boat is ready to leave.|I was able to see the order.|I verified the address."
        "|I moved nothing."
        "|The tour is scheduled for noon.|Only seats that are booked online can be moved."
        "|Tours that are booked cannot be moved."
        "|The seat has been taken by another guest; it is booked by another guest."
        "|La cita no ha sido confirmada.|The line is on hold.",
    ),
    "unknown tool": (
        is_unknown_tool,
        "Error: Tool 'x' is not available|No tool named x|Unknown function: x|Error: x is not a known tool"
        "|Tool x not found|tool_not_found: x|Error: function 'fly' is not defined|The tool `fly` does not exist"
        '|{"error": "unknown tool fly"}|ToolNotFoundError: fly|Unrecognized tool fly|There is no tool called fly'
        "|Error: Function 'fly' not supported|Error: tool `fly` is not in the list of tools"
        "|Method not found: seats.swap|Error: Function not found: swap"
        "|Tool swap_seats not available. Use one of: find_seats|swap_seats is not in the list of allowed tools"
        '|swap is not in the list of functions|{"error": {"message": "Method not found"}}'
        "|Error: no method named swap|Tool call rejected: swap isn't one of the available tools",
        "Error: file not found|Error: unknown argument x|Invalid function arguments|Error: order not found"
        "|Error: payment method not found: cash|zsh: command not found: swap"
        "|Error: the tool output is not available|Error: invalid method of payment",
    ),
    "limit": (
        LIMIT.search,
        "Maximum number of steps reached|Max steps reached.|Step limit reached (50)|Token budget exhausted"
        "|You have reached the maximum number of turns.|Context window exceeded|The agent ran out of time."
        "|max_iterations reached|Agent stopped due to iteration limit or time limit.|Stopped: token limit"
        "|Terminated due to the time limit.|The session timed out.",
        "I reached the shop on time.|Your order exceeded expectations|The time is 5|Thank you",
    ),
    "answer in place of the agent's": (
        OWN_LIMIT.match,
        "Agent stopped: it reached the maximum number of steps.|[max turns (30) exceeded]|I ran out of tokens."
        "|Recursion limit of 9 reached.|More rounds? Need more steps to go on.",
        "Your baggage limit was reached.|I set the maximum number of retries to 5.|The highest step is 42.",
    ),
    "status of a limit": (
        LIMIT_STATUS.search,
        "max_steps|timeout|LimitsExceeded|context_window_exceeded|exit_cost|AgentTimeoutError|limit_message"
        "|out_of_tokens",
        "user_stop|agent_stop|completed|Submitted|success|failed",
    ),
}
WORDINGS = [(name, text, True) for name, (_, yes, _) in CASES.items() for text in yes.split("|")]
WORDINGS += [(name, text, False) for name, (_, _, no) in CASES.items() for text in no.split("|")]


@pytest.mark.parametrize(("name", "text", "expected"), WORDINGS)
def test_wordings_are_understood(name, text, expected):
    assert bool(CASES[name][0](text)) is expected


LIMITS = [
    text
    for name in ("limit", "answer in place of the agent's", "status of a limit")
    for text in CASES[name][1].split("|")
]


@pytest.mark.parametrize("text", LIMITS)
def test_a_quick_test_does_not_rule_out_a_limit(text):
    assert may_name_limit(text)
    assert may_name_limit(text.upper())
    assert may_name_limit(text.replace("i", "ı"))  # patterns without case match this letter, too


CAUSES = {
    "KeyError: 'x'": "not found",
    "HTTP 403 Forbidden": "not permitted",
    "Request timed out": "time-out",
    "Error: missing required argument id": "invalid arguments",
    "bash: foo: command not found": "command not found",
    "429 Too Many Requests": "rate limit",
    "500 Internal Server Error": "server error",
    "SyntaxError: invalid syntax": "syntax",
    "exit code 1": "exit code",
    "You do not have the resources to craft": "not enough",
    "Unknown tool: fly": "unknown tool",
    "it broke": "other",
}


@pytest.mark.parametrize("text", CAUSES)
def test_a_failed_call_has_a_group_of_causes(text):
    assert cause_of(text) == CAUSES[text]


# Texts on which a search without bounds takes minutes: every word begins a match that fails at the end of the text
@pytest.mark.timeout(60)
@pytest.mark.parametrize("word", ["now ", "step (", "recipe:", "cat ", "a"])
def test_long_texts_are_searched_in_time_that_is_proportional_to_them(word):
    text = word * (100_000 // len(word))
    assert not claims_success(text)
    assert not LIMIT.search(text)
    assert not opens_own_file(text)
    assert not NOT_GIVEN.search(text)
    assert not any(TOLD.search(text[:2_000]) for _ in range(20))
