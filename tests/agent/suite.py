"""The official Python SDKs against the real Claude Code behind the gateway, on a scripted model: what the model gets is what the client sent.

GATEWAY is the gateway's address. It knows both generations of the program as `older` and `current`, and with a built-in
tool of their own as `older-tools` and `current-tools`; each thinks with the play of its name (SCRIPTED_MODEL).
PROGRAMS and CLIENTS narrow the run. One line a check, and a last line with the counts.
"""

import os
import sys

import anthropic
import openai

from conversation import APIS, Conversation, heard, play, turn, without_own_steps

GATEWAY = os.environ["GATEWAY"]
PROGRAMS = os.environ.get("PROGRAMS", "older,current").split(",")
CLIENTS = os.environ.get("CLIENTS", ",".join(APIS)).split(",")
VERSIONS = f"anthropic {anthropic.__version__}, openai {openai.__version__}"


def expect(fact, *seen):
    if not fact:
        raise AssertionError("got " + ", ".join(repr(value) for value in seen))


def weather(id, city):
    return (id, "get_weather", {"city": city})


def single(talk, streamed):
    play(talk.model, [turn("Let me look.", weather("a", "Paris")), turn("It is 21 degrees."), turn("Gladly. ☀")])
    talk.say(f"Wie ist das Wetter in 東京? ☂ {talk.name}")
    calls = spoken(talk, streamed, "Let me look.", [("toolu_a", "get_weather", {"city": "Paris"})])
    talk.give([(calls[0], "21 C ☀\n  second line")])
    spoken(talk, streamed, "It is 21 degrees.", [])
    talk.say("Thanks")
    spoken(talk, streamed, "Gladly. ☀", [])
    expect_heard(talk, 3)


def parallel(talk, streamed):
    play(talk.model, [turn("Both.", weather("a", "Rome"), ("b", "get_time", {"city": "Oslo"})), turn("Done.")])
    talk.say(talk.name)
    calls = spoken(
        talk,
        streamed,
        "Both.",
        [("toolu_a", "get_weather", {"city": "Rome"}), ("toolu_b", "get_time", {"city": "Oslo"})],
    )
    talk.give([(calls[1], "noon"), (calls[0], "warm")])
    spoken(talk, streamed, "Done.", [])
    expect_heard(talk, 2)


def parallel_of_one_name(talk, streamed):
    # Two of the three even have the same input.
    asked = [weather("a", "Rome"), weather("b", "Rome"), weather("c", "Oslo")]
    play(talk.model, [turn("", *asked), turn("Done.")])
    talk.say(talk.name)
    calls = spoken(talk, streamed, "", [(f"toolu_{id}", name, input) for id, name, input in asked])
    talk.give([(calls[2], "three"), (calls[1], "two"), (calls[0], "one")])
    spoken(talk, streamed, "Done.", [])
    expect_heard(talk, 2)


def mixed_in_one_message(talk, streamed):
    talk.model += "-tools"
    own = ("own", "Bash", {"command": "echo by-the-agent", "description": "d"})
    play(talk.model, [turn("Both.", own, weather("a", "Rome")), turn("Done."), turn("Sure.")])
    talk.say(talk.name)
    calls = spoken(talk, streamed, "Both.", [("toolu_a", "get_weather", {"city": "Rome"})])
    talk.give([(calls[0], "warm")])
    spoken(talk, streamed, "Done.", [])
    talk.say("Sure?")
    spoken(talk, streamed, "Sure.", [])
    expect_heard(talk, 3)
    expect_ran_once(talk)


def mixed_one_after_the_other(talk, streamed):
    talk.model += "-tools"
    own = ("own", "Bash", {"command": "echo by-the-agent", "description": "d"})
    play(talk.model, [turn("", own), turn("And now yours.", weather("a", "Rome")), turn("Done.")])
    talk.say(talk.name)
    calls = spoken(talk, streamed, "And now yours.", [("toolu_a", "get_weather", {"city": "Rome"})])
    talk.give([(calls[0], "warm")])
    spoken(talk, streamed, "Done.", [])
    expect_heard(talk, 3)
    expect_ran_once(talk)


def spoken(talk, streamed, text, calls):
    """Asks, checks the answer, keeps it, and gives its calls."""
    answer = talk.ask(streamed)
    seen = [(call.id, call.name, call.arguments) for call in answer.calls]
    expect((answer.text, seen) == (text, calls), answer.text, seen)
    expect(answer.stop == ("tools" if calls else "end"), answer.stop)
    if streamed and text:
        expect("".join(answer.deltas) == text, answer.deltas)
    talk.keep(answer)
    return answer.calls


def expect_heard(talk, count):
    """Every request to the model held what the client had said until then, message by message, and nothing else."""
    requests = [without_own_steps(messages) for messages in heard(talk.model)]
    expect(len(requests) == count, len(requests), requests)
    last = talk.said[:-1]
    expect(requests[-1] == last, requests[-1], last)
    for messages in requests:
        expect(messages == last[: len(messages)], messages, last)


def expect_ran_once(talk):
    results = [
        part
        for one in heard(talk.model)[-1]
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
                    except Exception as why:  # any way to fail is a failed check, and the rest still runs
                        failed += 1
                        print(f"FAIL {name}: {type(why).__name__}: {str(why)[:2000]}")
                    else:
                        passed += 1
                        print(f"ok {name}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
