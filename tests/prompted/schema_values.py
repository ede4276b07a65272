"""Generates values that a JSON Schema allows, including unions, references, nullable types and strings that are hard to parse."""

# The nesting depth from which only required properties are generated.
MAX_DEPTH = 4

TEXTS = [
    "plain",
    "",
    "2022",
    "null",
    "true",
    "-1.5e3",
    '"quoted"',
    "{not json}",
    '{"a": [1, null]}',
    "[1, 2]",
    " spaces around ",
    "two\nlines",
    "\n  indented\n\n",
    "tab\tand \\backslash\\ and \\n",
    "<b>&amp;</b> ]]> <!-- c -->",
    "</parameter> inside, </invoke> too",
    "Grüße 東京 🚀\u00a0\u2028",
    "crlf\r\nlines\r\n",
]
FORMATS = {
    "uuid": "1f2e3d4c-0000-4000-8000-abcdefabcdef",
    "uri": "https://example.com/a?b=c&d=%20",
    "date": "2026-11-15",
    "date-time": "2026-11-15T10:00:00Z",
    "email": "someone@example.com",
}
NUMBERS = {"integer": [0, -7, 42, 9007199254740993], "number": [0, -1.5, 3, 1e21, 0.1]}


def value(schema, root, random, depth=0):
    """A value of the schema; references are resolved in `root`."""
    schema = resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return random.choice(schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return value(random.choice(schema[union]), root, random, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else None)
    kind = random.choice(kind) if isinstance(kind, list) else kind
    if kind is None:
        return random.choice(TEXTS + [None, True, 7, [1, "a"], {"b": None}])
    return MAKERS[kind](schema, root, random, depth)


def accepted_types(schema, root):
    """The JSON types that a schema accepts; an empty schema accepts all types."""
    schema = resolved(schema, root)
    if "const" in schema or "enum" in schema:
        members = [schema["const"]] if "const" in schema else schema["enum"]
        return {JSON_TYPES[type(member)] for member in members}
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return set().union(*(accepted_types(member, root) for member in schema[union]))
    kind = schema.get("type", "object" if "properties" in schema else None)
    if kind is None:
        return set(MAKERS)
    return {kind} if isinstance(kind, str) else set(kind)


def resolved(schema, root):
    while isinstance(schema, dict) and "$ref" in schema:
        target = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            target = target[step.replace("~1", "/").replace("~0", "~")]
        schema = target
    return schema if isinstance(schema, dict) else {}


def an_object(schema, root, random, depth):
    required = schema.get("required", [])
    included = lambda name: name in required or (depth < MAX_DEPTH and random.random() < 0.7)
    members = {
        name: value(member, root, random, depth + 1)
        for name, member in schema.get("properties", {}).items()
        if included(name)
    }
    more = schema.get("additionalProperties", False)
    if more and depth and random.random() < 0.5:
        members["extra \"key\""] = value(more if isinstance(more, dict) else {}, root, random, depth + 1)
    return members


def an_array(schema, root, random, depth):
    count = random.randint(schema.get("minItems", 0), min(schema.get("maxItems", 3), 3)) if depth < MAX_DEPTH else 0
    return [value(schema.get("items", {}), root, random, depth + 1) for _ in range(count)]


def a_string(schema, root, random, depth):
    return FORMATS.get(schema.get("format")) or random.choice(TEXTS)


MAKERS = {
    "object": an_object,
    "array": an_array,
    "string": a_string,
    "integer": lambda schema, root, random, depth: random.choice(NUMBERS["integer"]),
    "number": lambda schema, root, random, depth: random.choice(NUMBERS["number"]),
    "boolean": lambda schema, root, random, depth: random.random() < 0.5,
    "null": lambda schema, root, random, depth: None,
}
JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", list: "array", dict: "object"}
