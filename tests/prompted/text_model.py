"""A model that only knows text: what it writes when it calls tools, and how a test makes it write that.

`call` renders a call as the gateway's prompt teaches it, independently of the gateway's own code. `play` hands the
scripted model the texts it is to say.
"""

import json
import os
import urllib.request

MODEL = os.environ.get("SCRIPTED_MODEL", "")

# Stands for the trigger line that the prompt of each request teaches.
TRIGGER = "\ue000"


def call(name, arguments, types=None):
    """One call; `types` tells which JSON types a parameter may have, and without it a string is just a string."""
    lines = [f'<invoke name="{name}">']
    for parameter, value in arguments.items():
        accepted = (types or {}).get(parameter, {"string"})
        lines.append(f'<parameter name="{parameter}">{written(value, accepted)}</parameter>')
    return "\n".join(lines + ["</invoke>"])


def calls(*rendered, before=""):
    """A whole answer: perhaps a sentence, then the trigger and the calls."""
    return before + ("\n" if before else "") + TRIGGER + "\n" + "\n".join(rendered) + "\n"


def written(value, accepted):
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if accepted == {"string", "null"} and value == "null":
        return "<![CDATA[null]]>"
    # A string is raw; where a number or a list could stand too, one that looks like it is written as JSON.
    if not accepted <= {"string", "null"} and could_be_something_else(value):
        return json.dumps(value, ensure_ascii=False)
    # A value of several lines stands on lines of its own.
    return f"\n{value}\n" if "\n" in value or "\r" in value else value


def could_be_something_else(text):
    if text != text.strip() or text[:1] in ('"', "{", "[", ""):
        return True
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def play(name, turns):
    """`turns` are texts, or dicts with `text`, `pieces` (a length, or [longest, seed]) and `end` (stop, length, cut)."""
    turns = [{"text": turn} if isinstance(turn, str) else turn for turn in turns]
    exchange("PUT", name, json.dumps({"turns": turns}).encode())


def heard(name):
    """The bodies of the requests that a play was asked with."""
    return json.loads(exchange("GET", name, None))


def exchange(method, name, body):
    request = urllib.request.Request(f"{MODEL}/plays/{name}", data=body, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()
