"""A conversation with an agent, and the requests that the scripted model behind the agent received.

`Conversation.expected` has the client's messages in one form for all APIs: a list of messages, each a role and its
parts. `model_requests` converts the model's requests to the same form. It ignores only:
- what the program adds: messages with the role `system`, and texts that start with `<system-reminder>`;
- `cache_control` and `caller` of a block, and `is_error` if it is false;
- the prefix of tool names;
- whether a text is a string or a single block;
- the order of results within one message.
"""

import json
import os
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sdk"))
from clients import TIME, WEATHER, Chat, Messages, Responses, Result  # noqa: E402

MODEL = os.environ["SCRIPTED_MODEL"]
# The program has 350 MB; a busy machine needs a minute to start it.
TIMEOUT_SECONDS = 300
APIS = {"messages": Messages, "chat": Chat, "responses": Responses}
TOOL_PREFIX = "mcp__client__"
BUILTIN_TOOLS = ("Bash",)


def client_of(api, gateway):
    return APIS[api](gateway, timeout=TIMEOUT_SECONDS, tools=(WEATHER, TIME))


def turn(text, *calls):
    """A message of the model: a text, and calls as (id, name, input)."""
    return {
        "text": text,
        "pieces": 7,
        "calls": [
            {"id": id, "name": name if name in BUILTIN_TOOLS else TOOL_PREFIX + name, "input": input}
            for id, name, input in calls
        ],
    }


def script_model(name, turns):
    exchange("PUT", name, json.dumps({"turns": turns}).encode())


def model_requests(name):
    """The messages of every model request, oldest first."""
    return [canonical(body["messages"]) for body in json.loads(exchange("GET", name, None))]


def exchange(method, name, body):
    request = urllib.request.Request(f"{MODEL}/plays/{name}", data=body, method=method)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        return answer.read()


def text(value):
    return {"text": value}


def call(id, name, input):
    return {"call": id, "name": name, "input": input}


def result(id, value, failed=False):
    return {"result": id, "text": value, "failed": failed}


def message(role, parts):
    """Sorts results to the front: their order means nothing."""
    return {"role": role, "parts": sorted(parts, key=lambda part: (0, part["result"]) if "result" in part else (1, ""))}


def canonical(messages):
    return [message(one["role"], list(parts(one["content"]))) for one in messages if one["role"] != "system"]


def parts(content):
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        kind = block["type"]
        if kind == "text":
            if not block["text"].startswith("<system-reminder>"):
                yield text(block["text"])
        elif kind == "tool_use":
            yield call(block["id"], block["name"].removeprefix(TOOL_PREFIX), block["input"])
        elif kind == "tool_result":
            inner = "".join(part["text"] for part in parts(block.get("content", "")))
            yield result(block["tool_use_id"], inner, block.get("is_error", False))
        else:
            yield block


def without_hidden_steps(messages):
    """Removes built-in calls and results: the rest is what the client knows."""
    builtin = {part["call"] for one in messages for part in one["parts"] if part.get("name") in BUILTIN_TOOLS}
    visible = []
    for one in messages:
        rest = [part for part in one["parts"] if part.get("call") not in builtin and part.get("result") not in builtin]
        if not rest:
            continue
        if visible and visible[-1]["role"] == one["role"]:
            visible[-1] = message(one["role"], visible[-1]["parts"] + rest)
        else:
            visible.append(message(one["role"], rest))
    return visible


class Conversation:
    """A client that keeps its own history and knows no session."""

    def __init__(self, api, gateway, model, name):
        # The name is part of the user text: an identical request may count as a retry.
        self.api, self.model, self.name = api, model, name
        self.expected = []
        self.history = []
        self.connect(gateway)

    def connect(self, gateway):
        self.client = client_of(self.api, gateway)

    def add_user_text(self, words):
        self.history += self.client.user(words)
        self.expected.append(message("user", [text(words)]))

    def add_results(self, results):
        """`results` are pairs (call, text), in the order in which they are sent."""
        self.history += self.client.results([Result(call, words, False) for call, words in results])
        self.expected.append(message("user", [result(call.id, words) for call, words in results]))

    def ask(self, streamed):
        """Sends the conversation; does not add the answer."""
        return self.client.ask(self.model, self.history, True, streamed)

    def add_answer(self, answer):
        self.history += answer.history
        texts = [text(answer.text)] if answer.text else []
        self.expected.append(
            message("assistant", texts + [call(one.id, one.name, one.arguments) for one in answer.calls])
        )
