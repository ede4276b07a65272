"""Test cases: tools, and calls of these tools.

BFCL is the folder in which the Python package `bfcl-eval` is installed: its questions contain tools, its ground truths
calls. MCP_SERVER is the script of a real MCP server. Calls of its tools, and of one tool defined here, are generated from
their schemas.
"""

import ast
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bfcl_eval.constants import executable_backend_config

import schema_values

# The number of cases generated for each tool.
CASES_PER_TOOL = 12

# The benchmark's names for JSON Schema types; its other names (any, and Java classes) have no equivalent.
BFCL_TYPES = {"dict": "object", "float": "number", "double": "number", "tuple": "array", "String": "string", "Boolean": "boolean"}

# A tool with unions, nullable types and references, one of them recursive.
HARD_TOOL = {
    "name": "hard",
    "description": "Has every kind of parameter that could be confused with another.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "nullable": {"type": ["string", "null"]},
            "nullable_too": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "number_or_text": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "list_or_text": {"oneOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]},
            "listed": {"enum": ["one", 1, None, True, "two words"]},
            "maybe_listed": {"type": ["string", "null"], "enum": ["a", "b c", None]},
            "referred": {"$ref": "#/$defs/text"},
            "tree": {"$ref": "#/$defs/tree"},
            "anything": {},
            "map": {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
        },
        "required": ["nullable", "tree"],
        "$defs": {
            "text": {"type": "string"},
            "tree": {
                "type": "object",
                "properties": {
                    "name": {"$ref": "#/$defs/text"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                },
                "required": ["name"],
            },
        },
    },
}


@dataclass
class Case:
    name: str
    tools: list  # name, description, schema
    calls: list  # name, arguments

    def types(self, tool):
        """The JSON types that each parameter of a tool accepts."""
        schema = next(schema for name, _, schema in self.tools if name == tool)
        properties = schema.get("properties", {})
        return {name: schema_values.accepted_types(property, schema) for name, property in properties.items()}


def bfcl():
    """Returns the cases, and the number of ground truths skipped because they contradict their own schema."""
    data = Path(os.environ["BFCL"]) / "bfcl_eval/data"
    possible = []
    for answers in sorted((data / "possible_answer").iterdir()):
        questions = {line["id"]: line for line in json_lines(data / answers.name)}
        for line in json_lines(answers):
            name, truth, question = line["id"], line["ground_truth"], questions.get(line["id"], {})
            if "function" in question:
                turns, tools = [ground_truth(truth)], listed(question["function"])
            elif "multi_turn" in name:
                tools = tools_of_classes(data, question["involved_classes"])
                turns = [python_calls(turn, tools) for turn in truth]
            else:
                continue
            possible += [Case(f"{name}, turn {turn}", tools, calls) for turn, calls in enumerate(turns) if calls]
    cases = [case for case in possible if not contradicts(case)]
    return cases, len(possible) - len(cases)


def mcp_server():
    tools = [(tool["name"], tool.get("description", ""), tool["inputSchema"]) for tool in [HARD_TOOL] + listed_tools()]
    cases = []
    for name, _, schema in tools:
        for seed in range(CASES_PER_TOOL):
            random = Random(f"{name} {seed}")
            # Two calls of the same tool in each answer.
            calls = [(name, schema_values.value(schema, schema, random)) for _ in range(2)]
            cases.append(Case(f"{name} {seed}", tools, calls))
    return cases


def json_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ground_truth(truth):
    """The first accepted value of each parameter; empty if the ground truth is not a list of calls."""
    calls = []
    for call in truth:
        if not isinstance(call, dict):
            return []
        name, parameters = next(iter(call.items()))
        firsts = {parameter: accepted[0] for parameter, accepted in parameters.items() if accepted}
        # An empty string means that the parameter is omitted.
        calls.append((name, {parameter: first for parameter, first in firsts.items() if first != ""}))
    return calls


def python_calls(calls, tools):
    """The calls of one turn of a multi-turn conversation, which are Python expressions."""
    read = []
    for call in calls:
        call = ast.parse(call, mode="eval").body
        schema = next(schema for name, _, schema in tools if name == call.func.id)
        arguments = dict(zip(schema["properties"], map(ast.literal_eval, call.args)))
        arguments.update({given.arg: ast.literal_eval(given.value) for given in call.keywords})
        read.append((call.func.id, arguments))
    return read


def tools_of_classes(data, classes):
    files = executable_backend_config.MULTI_TURN_FUNC_DOC_FILE_MAPPING
    return listed([tool for name in classes for tool in json_lines(data / "multi_turn_func_doc" / files[name])])


def listed(functions):
    return [(tool["name"], tool["description"], renamed_types(tool["parameters"])) for tool in functions]


def renamed_types(schema):
    if isinstance(schema, list):
        return [renamed_types(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {key: renamed_types(member) for key, member in schema.items()}
    kind = schema.get("type")
    if isinstance(kind, str):
        del renamed["type"]
        known = BFCL_TYPES.get(kind, kind)
        renamed.update({"type": known} if known in schema_values.MAKERS else {})
    return renamed


def contradicts(case):
    """True if a required value is missing (the gateway would request it) or a value does not match its schema."""
    for name, arguments in case.calls:
        schema = next((schema for tool, _, schema in case.tools if tool == name), None)
        if schema is None or not set(schema.get("required", [])) <= set(arguments):
            return True
        for parameter, value in arguments.items():
            property = schema.get("properties", {}).get(parameter)
            if property is None:
                continue
            if "enum" in property and value not in property["enum"]:
                return True
            accepted = schema_values.accepted_types(property, schema)
            kind = schema_values.JSON_TYPES[type(value)]
            if kind not in accepted and not (kind == "integer" and "number" in accepted):
                return True
    return False


def listed_tools():
    """Starts the MCP server, lists its tools and stops it."""
    server = subprocess.Popen(
        ["node", os.environ["MCP_SERVER"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )

    def ask(number, method, parameters):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())["result"]

    try:
        client = {"name": "toolgate-test", "version": "1"}
        ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        return ask(2, "tools/list", {})["tools"]
    finally:
        server.kill()
        server.wait()
