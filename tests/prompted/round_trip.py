"""Checks that calls written as text by a model reach the official SDKs exactly, however the text is split into chunks.

GATEWAY is the gateway's address, SCRIPTED_MODEL the address of the scripted model behind it; see `cases` for the data.
EVERY limits the run to every Nth case, and WORKERS sets the number of processes. Prints a line for each case that is not
exact, statistics, and a last line with the counts.
"""

import json
import multiprocessing
import os
import sys
import time

import anthropic
import openai

import cases
import text_model

GATEWAY = os.environ["GATEWAY"]
EVERY = int(os.environ.get("EVERY", "1"))
WORKERS = int(os.environ.get("WORKERS", "2"))
TIMEOUT_SECONDS = 60
QUESTION = [{"role": "user", "content": "Please make the necessary calls."}]

# The maximum length of random chunks.
MAX_CHUNK = 12


def messages(sdk, model, case, streamed):
    tools = [{"name": name, "description": text, "input_schema": schema} for name, text, schema in case.tools]
    request = {"model": model, "max_tokens": 4096, "messages": QUESTION, "tools": tools}
    pieces = {}
    if streamed:
        with sdk.messages.stream(**request) as stream:
            for event in stream:
                if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                    pieces[event.index] = pieces.get(event.index, "") + event.delta.partial_json
            message = stream.get_final_message()
    else:
        message = sdk.messages.create(**request)
    blocks = [(index, block) for index, block in enumerate(message.content) if block.type == "tool_use"]
    text = "".join(block.text for block in message.content if block.type == "text")
    return (
        [(block.name, block.input) for _, block in blocks],
        [pieces.get(index) for index, _ in blocks],
        text,
        message.stop_reason == "tool_use",
    )


def chat(sdk, model, case, streamed):
    # The SDK's accumulator accepts strict tools only.
    tools = [
        {"type": "function", "function": {"name": name, "description": text, "parameters": schema, "strict": True}}
        for name, text, schema in case.tools
    ]
    request = {"model": model, "messages": QUESTION, "tools": tools}
    pieces = {}
    if streamed:
        with sdk.chat.completions.stream(**request) as stream:
            for event in stream:
                if event.type == "tool_calls.function.arguments.delta":
                    pieces[event.index] = pieces.get(event.index, "") + event.arguments_delta
            completion = stream.get_final_completion()
    else:
        completion = sdk.chat.completions.create(**request)
    choice = completion.choices[0]
    calls = choice.message.tool_calls or []
    return (
        [(call.function.name, json.loads(call.function.arguments)) for call in calls],
        [pieces.get(index) for index in range(len(calls))],
        choice.message.content or "",
        choice.finish_reason == "tool_calls",
    )


APIS = {
    "messages": (messages, lambda: anthropic.Anthropic(api_key="x", base_url=GATEWAY, max_retries=0, timeout=TIMEOUT_SECONDS)),
    "chat": (chat, lambda: openai.OpenAI(api_key="x", base_url=GATEWAY + "/v1", max_retries=0, timeout=TIMEOUT_SECONDS)),
}


def check(case, play, seed):
    """Sends one case in every way; returns an error for each way that is not exact."""
    rendered = [text_model.call(name, arguments, case.types(name)) for name, arguments in case.calls]
    text = text_model.calls(*rendered)
    ways = [
        ("in characters", 1, True),
        ("in random chunks", [MAX_CHUNK, seed], True),
        ("in one chunk", None, True),
        ("whole", None, False),
    ]
    errors = []
    for way, pieces, streamed in ways:
        text_model.play(play, [{"text": text, "pieces": pieces}])
        for api, (ask, _) in APIS.items():
            try:
                error = difference(case, streamed, *ask(SDKS[api], f"pc/{play}", case, streamed))
            except Exception as why:  # any failure means that the case is not exact
                error = f"{type(why).__name__}: {why}"
            if error:
                errors.append(f"{case.name}, {api}, {way}: {error}")
    return errors


def difference(case, streamed, calls, pieces, text, stopped_for_calls):
    # Compared as JSON, because in Python True == 1 == 1.0.
    exact = lambda calls: json.dumps([[name, arguments] for name, arguments in calls], sort_keys=True)
    if exact(calls) != exact(case.calls):
        return f"got {exact(calls)} for {exact(case.calls)}"
    if text.strip():
        return f"markup was forwarded as text: {text!r}"
    if not stopped_for_calls:
        return "the stop reason is not tool use"
    if streamed:
        for (_, arguments), streamed_json in zip(calls, pieces):
            if json.dumps(json.loads(streamed_json or "{}"), sort_keys=True) != json.dumps(arguments, sort_keys=True):
                return f"streamed {streamed_json} for {arguments}"
    return None


def start_worker():
    global SDKS
    SDKS = {api: make() for api, (_, make) in APIS.items()}


def work(numbered):
    number, case = numbered
    return check(case, f"worker-{os.getpid()}", number)


def main():
    print(f"anthropic {anthropic.__version__}, openai {openai.__version__}")
    bfcl, contradictions = cases.bfcl()
    server = cases.mcp_server()
    passed = failed = 0
    with multiprocessing.Pool(WORKERS, start_worker) as pool:
        for title, chosen in ((f"BFCL, {contradictions} that contradict their schema are skipped", bfcl), ("MCP server", server)):
            # The server has few cases, and each of its tools is different.
            chosen = chosen[:: EVERY if chosen is bfcl else max(1, EVERY // 8)]
            began, not_exact = time.monotonic(), 0
            for errors in pool.imap_unordered(work, enumerate(chosen)):
                not_exact += bool(errors)
                for error in errors:
                    print(f"FAIL {error[:1500]}")
            calls, seconds = sum(len(case.calls) for case in chosen), time.monotonic() - began
            print(f"{title}: {len(chosen)} answers, {calls} calls, 8 ways each; {not_exact} not exact; {seconds:.0f} s")
            passed, failed = passed + len(chosen) - not_exact, failed + not_exact
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
