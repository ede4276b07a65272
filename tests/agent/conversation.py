"""A conversation with an agent: what its client says and hears, and what the scripted model behind the agent got.

`said` is what the client sent, in a form that is the same for all APIs: a list of messages, each a role and its parts.
`heard` brings what the model was asked with into the same form. Only these things are set aside on the way:
- what the program says for itself: messages of the role `system`, and texts that begin with `<system-reminder>`;
- `cache_control` and `caller` of a block, and an `is_error` that is false;
- the prefix of tool names, under which the program lists the tools of a server;
- whether a text stands as a string or as the only block;
- the order of results within one message, which is that of the calls.
"""

import json
import os
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sdk"))
from clients import TIME, WEATHER, Chat, Messages, Responses, Result  # noqa: E402

MODEL = os.environ["SCRIPTED_MODEL"]
# A busy machine needs a minute to start the program, which is 350 MB large.
PATIENCE_SECONDS = 300
APIS = {"messages": Messages, "chat": Chat, "responses": Responses}
TOOL_PREFIX = "mcp__client__"
OWN_TOOLS = ("Bash",)


def client_of(api, gateway):
    return APIS[api](gateway, timeout=PATIENCE_SECONDS, tools=(WEATHER, TIME))


def turn(text, *calls):
    """What the model says: a text, and calls as (id, name, input)."""
    return {
        "text": text,
        "pieces": 7,
        "calls": [
            {"id": id, "name": name if name in OWN_TOOLS else TOOL_PREFIX + name, "input": input}
            for id, name, input in calls
        ],
    }


def play(name, turns):
    exchange("PUT", name, json.dumps({"turns": turns}).encode())


def heard(name):
    """Every conversation the model was asked to go on with, oldest first."""
    return [canonical(body["messages"]) for body in json.loads(exchange("GET", name, None))]


def exchange(method, name, body):
    request = urllib.request.Request(f"{MODEL}/plays/{name}", data=body, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        return answer.read()


def text(said):
    return {"text": said}


def call(id, name, input):
    return {"call": id, "name": name, "input": input}


def result(id, said, failed=False):
    return {"result": id, "text": said, "failed": failed}


def message(role, parts):
    """Results come first and in a fixed order; which order they came in means nothing."""
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


def without_own_steps(messages):
    """A conversation without what the agent did by itself: what is left of it is what its client knows."""
    own = {part["call"] for one in messages for part in one["parts"] if part.get("name") in OWN_TOOLS}
    kept = []
    for one in messages:
        rest = [part for part in one["parts"] if part.get("call") not in own and part.get("result") not in own]
        if not rest:
            continue
        if kept and kept[-1]["role"] == one["role"]:
            kept[-1] = message(one["role"], kept[-1]["parts"] + rest)
        else:
            kept.append(message(one["role"], rest))
    return kept


class Conversation:
    """A client that keeps its own history and knows of no session."""

    def __init__(self, api, gateway, model, name):
        # The name goes into what is said: the same words again would be taken for a retry.
        self.api, self.model, self.name = api, model, name
        self.said = []
        self.history = []
        self.connect(gateway)

    def connect(self, gateway):
        self.client = client_of(self.api, gateway)

    def say(self, words):
        self.history += self.client.user(words)
        self.said.append(message("user", [text(words)]))

    def give(self, results):
        """`results` are (call, text), in the order in which they are sent."""
        self.history += self.client.results([Result(call, words, False) for call, words in results])
        self.said.append(message("user", [result(call.id, words) for call, words in results]))

    def ask(self, streamed):
        """Sends everything; the answer is not kept."""
        return self.client.ask(self.model, self.history, True, streamed)

    def keep(self, answer):
        self.history += answer.history
        spoken = [text(answer.text)] if answer.text else []
        self.said.append(
            message("assistant", spoken + [call(one.id, one.name, one.arguments) for one in answer.calls])
        )
