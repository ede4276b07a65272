"""Writes the JSON schemas of the vendors' request and reply types, from the pinned SDK packages.

    generate.py FOLDER

Each file has the `$defs` of one API and its `roots`: `request`, `reply` and `event`, as far as the SDK has types for
them. Unknown keys are refused, and descriptions are left out. `cargo xtask schemas` runs it.
"""

import importlib
import json
import sys
from pathlib import Path

from pydantic import TypeAdapter

FILES = {
    "anthropic-messages": {
        "request": "anthropic.types.message_create_params.MessageCreateParams",
        "beta_request": "anthropic.types.beta.message_create_params.MessageCreateParams",
        "reply": "anthropic.types.Message",
        "event": "anthropic.types.RawMessageStreamEvent",
    },
    "openai-chat": {
        "request": "openai.types.chat.completion_create_params.CompletionCreateParams",
        "reply": "openai.types.chat.ChatCompletion",
        "event": "openai.types.chat.ChatCompletionChunk",
    },
    "openai-responses": {
        "request": "openai.types.responses.response_create_params.ResponseCreateParams",
        "reply": "openai.types.responses.Response",
        "event": "openai.types.responses.ResponseStreamEvent",
    },
    "groq-chat": {"request": "groq.types.chat.completion_create_params.CompletionCreateParams"},
    "cerebras-chat": {"request": "cerebras.cloud.sdk.types.chat.completion_create_params.CompletionCreateParams"},
    "mistral-chat": {"request": "mistralai.client.models.ChatCompletionRequest"},
    "together-chat": {"request": "together.types.chat.completion_create_params.CompletionCreateParams"},
}

# Keywords that say nothing about which values are accepted.
ANNOTATIONS = {"title", "description", "default", "examples", "deprecated", "discriminator", "format"}


def named(path):
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


def strict(schema):
    """The schema without annotations, with unknown keys refused."""
    if not isinstance(schema, dict):
        return schema
    result = {}
    for keyword, value in schema.items():
        if keyword in ANNOTATIONS:
            continue
        if keyword in ("properties", "$defs"):
            value = {name: strict(child) for name, child in value.items()}
        elif keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
            value = [strict(child) for child in value]
        elif keyword in ("items", "additionalProperties"):
            value = strict(value)
        result[keyword] = value
    if "oneOf" in result:
        result["anyOf"] = result.pop("oneOf")
    # An object without properties is free-form.
    if result.get("properties"):
        result["additionalProperties"] = False
    return result


def generate(roots):
    """One API's roots and the definitions they share."""
    adapters = [(root, "validation", TypeAdapter(named(path))) for root, path in roots.items()]
    schemas, definitions = TypeAdapter.json_schemas(adapters)
    definitions = strict(definitions).get("$defs", {})
    return {root: strict(schemas[root, "validation"]) for root in roots}, definitions


def write(folder, name, roots):
    schemas, definitions = generate(roots)
    line = lambda item: f"  {json.dumps(item[0])}: {json.dumps(item[1], separators=(',', ':'), sort_keys=True)}"
    block = lambda items: "{\n" + ",\n".join(map(line, sorted(items.items()))) + "\n}"
    text = f'{{"roots": {block(schemas)},\n"$defs": {block(definitions)}}}\n'
    (folder / f"{name}.json").write_text(text)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    for file, file_roots in FILES.items():
        write(target, file, file_roots)
