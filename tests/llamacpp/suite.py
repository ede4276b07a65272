"""The official Python SDKs, the gateway and a real model: every client API, every API of the host, whole and streamed.

GATEWAY is the gateway's address. Its models are `native/HOST` and `prompted/HOST`, where HOST is the API that the gateway
uses (m = Anthropic Messages, c = OpenAI Chat Completions, r = OpenAI Responses); `prompted` models get their tools as
text. The model is weak, so most checks are about form. CLIENTS and HOSTS narrow the run, as in CLIENTS=chat HOSTS=c.
Prints one line per check, and the counts at the end.
"""

import os
import sys
from pathlib import Path

import anthropic
import openai

sys.path.insert(0, str(Path(__file__).parent.parent / "sdk"))
from clients import Chat, Messages, Responses, Result  # noqa: E402

GATEWAY = os.environ["GATEWAY"]
HOSTS = os.environ.get("HOSTS", "m,c,r").split(",")
CLIENTS = os.environ.get("CLIENTS", "messages,chat,responses").split(",")

# Enough on a busy machine.
TIMEOUT_SECONDS = 120
QUESTION = "What is the weather in Paris?"
# What the model says does not matter, so short texts are enough. Some hosts accept no lower limit.
TEXT_TOKENS = 16
# Enough for a call.
CALL_TOKENS = 40
# Enough for the line that begins calls and some text.
PROMPTED_TOKENS = 24


def expect(fact, *seen):
    if not fact:
        raise AssertionError("got " + ", ".join(repr(value) for value in seen))


def ask(client, model, history, tools, streamed, max_tokens):
    client.max_tokens = max_tokens
    answer = client.ask(model, history, tools, streamed)
    # What may be the beginning of a call is not text, so nothing may be left of a reply that was cut off.
    expect(answer.text != "" or answer.calls != [] or answer.stop == "length", answer)
    expect(answer.stop in ("tools", "length") if answer.calls else answer.stop in ("end", "length"), answer)
    # With tools, the accumulator of this SDK stops at the limit, before the token counts.
    if not (client.name == "chat" and streamed and tools and answer.stop == "length"):
        expect(answer.input_tokens > 0 and answer.output_tokens > 0, answer.input_tokens, answer.output_tokens)
    if streamed:
        expect("".join(answer.deltas) == answer.text, answer.deltas, answer.text)
    for call in answer.calls:
        expect(call.id and call.name, call)
        # Only a call that was cut off may have other arguments.
        expect(isinstance(call.arguments, dict) or answer.stop == "length", call)
    ids = [call.id for call in answer.calls]
    expect(len(set(ids)) == len(ids), ids)
    return answer


def text(client, host, streamed):
    answer = ask(client, f"native/{host}", client.user(QUESTION), False, streamed, TEXT_TOKENS)
    expect(answer.text != "" and answer.calls == [], answer)


def tools(client, host, streamed):
    history = client.user(QUESTION)
    answer = ask(client, f"native/{host}", history, True, streamed, CALL_TOKENS)
    calls = [(call.name, call.arguments) for call in answer.calls]
    expect(calls == [("get_weather", {"city": "Paris"})], answer)
    expect(answer.stop == "tools", answer.stop)
    history = history + answer.history + client.results([Result(answer.calls[0], "18 degrees", False)])
    answer = ask(client, f"native/{host}", history, True, streamed, CALL_TOKENS)
    expect("18" in answer.text, answer.text)


def prompted_tools(client, host, streamed):
    answer = ask(client, f"prompted/{host}", client.user(QUESTION), True, streamed, PROMPTED_TOKENS)
    expect("<<CALL_" not in answer.text, answer.text)


def checks():
    for api in (Messages, Chat, Responses):
        client = api(GATEWAY, timeout=TIMEOUT_SECONDS)
        if client.name not in CLIENTS:
            continue
        for host in HOSTS:
            for streamed in (False, True):
                way = "streamed" if streamed else "whole"
                for check in (text, tools, prompted_tools):
                    name = f"{client.name} -> {host}, {way}: {check.__name__.replace('_', ' ')}"
                    yield name, lambda c=client, h=host, s=streamed, k=check: k(c, h, s)


def main():
    print(f"anthropic {anthropic.__version__}, openai {openai.__version__}")
    passed = failed = 0
    for name, check in checks():
        try:
            check()
        except Exception as why:  # any way to fail is a failed check, and the rest still runs
            failed += 1
            print(f"FAIL {name}: {type(why).__name__}: {str(why)[:600]}")
        else:
            passed += 1
            print(f"ok {name}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
