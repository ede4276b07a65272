"""The official Python SDKs against the real Claude Code behind the gateway, with a scripted model: the model must get
exactly what the client sent.

GATEWAY is the gateway's address. Its models `older` and `current` are the two supported versions of the program;
`older-tools` and `current-tools` also have a built-in tool. Each uses the script of its name at SCRIPTED_MODEL.
PROGRAMS and CLIENTS select a part of the checks. Prints one line per check, and the counts at the end.
"""

import os
import sys

import anthropic
import openai

from conversation import APIS, Conversation, model_requests, script_model, turn, without_hidden_steps

GATEWAY = os.environ["GATEWAY"]
PROGRAMS = os.environ.get("PROGRAMS", "older,current").split(",")
CLIENTS = os.environ.get("CLIENTS", ",".join(APIS)).split(",")
VERSIONS = f"anthropic {anthropic.__version__}, openai {openai.__version__}"


def expect(fact, *seen):
    if not fact:
        raise AssertionError("got " + ", ".join(repr(value) for value in seen))


def weather(id, city):
    return (id, "get_weather", {"city": city})


def single(conversation, streamed):
    script_model(conversation.model, [turn("Let me look.", weather("a", "Paris")), turn("It is 21 degrees."), turn("Gladly. ☀")])
    conversation.add_user_text(f"Wie ist das Wetter in 東京? ☂ {conversation.name}")
    calls = ask_and_check(conversation, streamed, "Let me look.", [("toolu_a", "get_weather", {"city": "Paris"})])
    conversation.add_results([(calls[0], "21 C ☀\n  second line")])
    ask_and_check(conversation, streamed, "It is 21 degrees.", [])
    conversation.add_user_text("Thanks")
    ask_and_check(conversation, streamed, "Gladly. ☀", [])
    expect_model_requests(conversation, 3)


def parallel(conversation, streamed):
    script_model(conversation.model, [turn("Both.", weather("a", "Rome"), ("b", "get_time", {"city": "Oslo"})), turn("Done.")])
    conversation.add_user_text(conversation.name)
    calls = ask_and_check(
        conversation,
        streamed,
        "Both.",
        [("toolu_a", "get_weather", {"city": "Rome"}), ("toolu_b", "get_time", {"city": "Oslo"})],
    )
    conversation.add_results([(calls[1], "noon"), (calls[0], "warm")])
    ask_and_check(conversation, streamed, "Done.", [])
    expect_model_requests(conversation, 2)


def parallel_of_one_name(conversation, streamed):
    # Two of the three also have the same input.
    asked = [weather("a", "Rome"), weather("b", "Rome"), weather("c", "Oslo")]
    script_model(conversation.model, [turn("", *asked), turn("Done.")])
    conversation.add_user_text(conversation.name)
    calls = ask_and_check(conversation, streamed, "", [(f"toolu_{id}", name, input) for id, name, input in asked])
    conversation.add_results([(calls[2], "three"), (calls[1], "two"), (calls[0], "one")])
    ask_and_check(conversation, streamed, "Done.", [])
    expect_model_requests(conversation, 2)


def mixed_in_one_message(conversation, streamed):
    conversation.model += "-tools"
    own = ("own", "Bash", {"command": "echo by-the-agent", "description": "d"})
    script_model(conversation.model, [turn("Both.", own, weather("a", "Rome")), turn("Done."), turn("Sure.")])
    conversation.add_user_text(conversation.name)
    calls = ask_and_check(conversation, streamed, "Both.", [("toolu_a", "get_weather", {"city": "Rome"})])
    conversation.add_results([(calls[0], "warm")])
    ask_and_check(conversation, streamed, "Done.", [])
    conversation.add_user_text("Sure?")
    ask_and_check(conversation, streamed, "Sure.", [])
    expect_model_requests(conversation, 3)
    expect_ran_once(conversation)


def mixed_one_after_the_other(conversation, streamed):
    conversation.model += "-tools"
    own = ("own", "Bash", {"command": "echo by-the-agent", "description": "d"})
    script_model(conversation.model, [turn("", own), turn("And now yours.", weather("a", "Rome")), turn("Done.")])
    conversation.add_user_text(conversation.name)
    calls = ask_and_check(conversation, streamed, "And now yours.", [("toolu_a", "get_weather", {"city": "Rome"})])
    conversation.add_results([(calls[0], "warm")])
    ask_and_check(conversation, streamed, "Done.", [])
    expect_model_requests(conversation, 3)
    expect_ran_once(conversation)


def ask_and_check(conversation, streamed, text, calls):
    """Sends the conversation, checks the answer, adds it, and returns its calls."""
    answer = conversation.ask(streamed)
    seen = [(call.id, call.name, call.arguments) for call in answer.calls]
    expect((answer.text, seen) == (text, calls), answer.text, seen)
    expect(answer.stop == ("tools" if calls else "end"), answer.stop)
    if streamed and text:
        expect("".join(answer.deltas) == text, answer.deltas)
    conversation.add_answer(answer)
    return answer.calls


def expect_model_requests(conversation, count):
    """Checks that every model request contained exactly the client's messages up to then."""
    requests = [without_hidden_steps(messages) for messages in model_requests(conversation.model)]
    expect(len(requests) == count, len(requests), requests)
    last = conversation.expected[:-1]
    expect(requests[-1] == last, requests[-1], last)
    for messages in requests:
        expect(messages == last[: len(messages)], messages, last)


def expect_ran_once(conversation):
    results = [
        part
        for one in model_requests(conversation.model)[-1]
        for part in one["parts"]
        if part.get("result") == "toolu_own" or part.get("call") == "toolu_own"
    ]
    expect(len(results) == 2, results)
    expect(results[1]["text"] == "by-the-agent" and not results[1]["failed"], results)


CHECKS = [single, parallel, parallel_of_one_name, mixed_in_one_message, mixed_one_after_the_other]


def main():
    print(VERSIONS)
    passed = failed = 0
    for program in PROGRAMS:
        for api in CLIENTS:
            for streamed in (False, True):
                for check in CHECKS:
                    way = "streamed" if streamed else "whole"
                    name = f"{api} -> {program}, {way}: {check.__name__.replace('_', ' ')}"
                    try:
                        check(Conversation(api, GATEWAY, program, f"{name} ({VERSIONS})"), streamed)
                    except Exception as why:  # any exception is a failed check; the others still run
                        failed += 1
                        print(f"FAIL {name}: {type(why).__name__}: {str(why)[:2000]}")
                    else:
                        passed += 1
                        print(f"ok {name}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
