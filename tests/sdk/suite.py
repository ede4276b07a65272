"""The official Python SDKs against a gateway: every client API, every upstream dialect, whole and streamed.

GATEWAY is the gateway's address. Models are named `HOST/CASE`: HOST is the upstream dialect (m = Anthropic
Messages, c = OpenAI Chat Completions, r = OpenAI Responses), CASE what the scripted model does. CLIENTS and HOSTS
narrow the run, as in CLIENTS=chat HOSTS=c. One line a check, and a last line with the counts.
"""

import json
import os
import sys

import anthropic
import openai

from clients import Chat, Messages, Responses, Result

GATEWAY = os.environ["GATEWAY"]
HOSTS = os.environ.get("HOSTS", "m,c,r").split(",")
CLIENTS = os.environ.get("CLIENTS", "messages,chat,responses").split(",")

SIXTEEN_WORDS = " ".join(f"word{number}" for number in range(16))
QUESTION = "Wie ist das Wetter in 東京 and Paris? ☂"
# A single red pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"


def expect(fact, *seen):
    if not fact:
        raise AssertionError("got " + ", ".join(repr(value) for value in seen))


def text(client, host, streamed):
    answer = client.ask(f"{host}/text-16", client.user(QUESTION), False, streamed)
    expect(answer.text == SIXTEEN_WORDS, answer.text)
    expect(answer.stop == "end", answer.stop)
    expect(answer.calls == [], answer.calls)
    expect(answer.output_tokens > 0, answer.output_tokens)
    if streamed:
        expect("".join(answer.deltas) == answer.text, answer.deltas)
        expect(len(answer.deltas) > 1, answer.deltas)


def parallel_calls(client, host, streamed):
    answer = client.ask(f"{host}/parallel", client.user(QUESTION), True, streamed)
    check_two_calls(answer)
    expect(answer.stop == "tools", answer.stop)
    expect(answer.text != "", answer.text)


def check_two_calls(answer):
    calls = [(call.name, call.arguments) for call in answer.calls]
    expect(calls == [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Tokyo"})], calls)
    ids = [call.id for call in answer.calls]
    expect(all(ids) and len(set(ids)) == 2, ids)


def two_results(calls):
    return [Result(calls[0], "18 degrees ☀", False), Result(calls[1], "no such station", True)]


def check_repeats(answer):
    expect("18 degrees ☀" in answer.text, answer.text)
    before, found, _ = answer.text.partition("no such station")
    expect(found and "error" in before.lower(), answer.text)
    expect(answer.calls == [] and answer.stop == "end", answer.calls, answer.stop)


def results_one_of_them_an_error(client, host, streamed):
    history = client.user(QUESTION)
    asked = client.ask(f"{host}/parallel", history, True, streamed)
    history = history + asked.history + client.results(two_results(asked.calls))
    check_repeats(client.ask(f"{host}/parallel", history, True, streamed))


def results_after_a_previous_response(client, host, streamed):
    asked = client.ask(f"{host}/parallel", client.user(QUESTION), True, streamed)
    results = client.results(two_results(asked.calls))
    # Only the results are sent; the host must see the question and the calls too.
    answer = client.ask(f"{host}/echo", results, True, streamed, previous=asked.response_id)
    parts = [part for message in json.loads(answer.text)["messages"] for part in message["parts"]]
    expect({"kind": "text", "text": QUESTION} in parts, parts)
    ids = lambda kind: [part["id"] for part in parts if part["kind"] == kind]
    expect(len(ids("call")) == 2 and ids("call") == ids("result"), parts)


def image(client, host, streamed):
    answer = client.ask(f"{host}/echo", client.user(QUESTION, png=PNG), False, streamed)
    # The host describes what it got, in the same words for every dialect.
    parts = json.loads(answer.text)["messages"][-1]["parts"]
    expect(parts == [{"kind": "text", "text": QUESTION}, {"kind": "image", "media_type": "image/png"}], parts)


def results_after_an_image(client, host, streamed):
    history = client.user(QUESTION, png=PNG)
    asked = client.ask(f"{host}/parallel", history, True, streamed)
    check_two_calls(asked)
    history = history + asked.history + client.results(two_results(asked.calls))
    check_repeats(client.ask(f"{host}/parallel", history, True, streamed))


def reasoning(client, host, streamed):
    answer = client.ask(f"{host}/reasoning", client.user(QUESTION), False, streamed)
    expect(answer.reasoning != "", answer.reasoning)
    expect(answer.text != "" and answer.reasoning not in answer.text, answer.text)
    history = client.user(QUESTION) + answer.history + client.user("And tomorrow?")
    again = client.ask(f"{host}/reasoning", history, False, streamed)
    expect(again.text == answer.text, again.text)


def token_limit(client, host, streamed):
    answer = client.ask(f"{host}/length", client.user(QUESTION), False, streamed)
    expect(answer.stop == "length", answer.stop)


def raises(kind, ask):
    try:
        answer = ask()
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, got the answer {answer.text!r}")


def rate_limit(client, host, streamed):
    error = raises(client.rate_limit, lambda: client.ask(f"{host}/error-429", client.user(QUESTION), False, streamed))
    expect(error.status_code == 429, error.status_code)


def bad_request(client, host, streamed):
    error = raises(client.bad_request, lambda: client.ask(f"{host}/error-400", client.user(QUESTION), False, streamed))
    expect(error.status_code == 400, error.status_code)


def a_cut_answer_is_an_error(client, host, streamed):
    raises(client.any_error, lambda: client.ask(f"{host}/cut", client.user(QUESTION), False, streamed))


def streamed_is_whole(client, host, _):
    for case, tools in (("text-16", False), ("parallel", True), ("reasoning", False)):
        said = [client.ask(f"{host}/{case}", client.user(QUESTION), tools, streamed) for streamed in (False, True)]
        whole, streamed = [
            (answer.text, answer.reasoning, [(call.name, call.arguments) for call in answer.calls], answer.stop)
            for answer in said
        ]
        expect(whole == streamed, case, whole, streamed)


BOTH = [
    text,
    parallel_calls,
    results_one_of_them_an_error,
    results_after_an_image,
    image,
    reasoning,
    token_limit,
    rate_limit,
    bad_request,
    a_cut_answer_is_an_error,
]


def checks():
    for client in (Messages(GATEWAY), Chat(GATEWAY), Responses(GATEWAY)):
        if client.name not in CLIENTS:
            continue
        yield f"{client.name}: models are listed", lambda c=client: expect(
            {f"{host}/text-16" for host in HOSTS} <= set(c.model_names()), c.model_names()
        )
        for host in HOSTS:
            for streamed in (False, True):
                way = "streamed" if streamed else "whole"
                for check in BOTH:
                    name = f"{client.name} -> {host}, {way}: {check.__name__.replace('_', ' ')}"
                    yield name, lambda c=client, h=host, s=streamed, k=check: k(c, h, s)
            yield f"{client.name} -> {host}: streamed is whole", lambda c=client, h=host: streamed_is_whole(c, h, None)
            # A Responses host keeps its own responses; the gateway keeps them for the others.
            if client.name == "responses" and host != "r":
                for streamed in (False, True):
                    way = "streamed" if streamed else "whole"
                    name = f"{client.name} -> {host}, {way}: results after a previous response"
                    yield name, lambda c=client, h=host, s=streamed: results_after_a_previous_response(c, h, s)


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
