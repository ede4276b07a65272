"""A scripted text-only model.

`call` renders a call in the format of the gateway's prompt, independently of the gateway's code. `play` gives the
scripted model the texts of its replies.
"""

import json
import os
import urllib.request

MODEL = os.environ.get("SCRIPTED_MODEL", "")

# Placeholder for the trigger line in the prompt of each request.
TRIGGER = "\ue000"


def call(name, arguments, types=None):
    """Renders one call. `types` maps parameters to the JSON types they accept; the default is string."""
    lines = [f'<invoke name="{name}">']
    for parameter, value in arguments.items():
        accepted = (types or {}).get(parameter, {"string"})
        lines.append(f'<parameter name="{parameter}">{written(value, accepted)}</parameter>')
    return "\n".join(lines + ["</invoke>"])


def calls(*rendered, before=""):
    """A whole answer: optional text, then the trigger and the calls."""
    return before + ("\n" if before else "") + TRIGGER + "\n" + "\n".join(rendered) + "\n"


def written(value, accepted):
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if accepted == {"string", "null"} and value == "null":
        return "<![CDATA[null]]>"
    # Strings are raw, except that a string that looks like another accepted type is written as JSON.
    if not accepted <= {"string", "null"} and looks_like_another_type(value):
        return json.dumps(value, ensure_ascii=False)
    # A multi-line value starts and ends on its own lines.
    return f"\n{value}\n" if "\n" in value or "\r" in value else value


def looks_like_another_type(text):
    if text != text.strip() or text[:1] in ('"', "{", "[", ""):
        return True
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def play(name, turns):
    """`turns` are texts, or dicts with `text`, `pieces` (a length, or [maximum length, seed]) and `end` (stop, length, cut)."""
    turns = [{"text": turn} if isinstance(turn, str) else turn for turn in turns]
    exchange("PUT", name, json.dumps({"turns": turns}).encode())


def received(name):
    """The bodies of the requests that the model received for a play."""
    return json.loads(exchange("GET", name, None))


def exchange(method, name, body):
    request = urllib.request.Request(f"{MODEL}/plays/{name}", data=body, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()
