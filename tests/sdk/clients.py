"""The three client APIs through the official Python SDKs, behind one small interface.

Each client builds history in the SDK's own shapes, asks once (whole or streamed through the SDK's accumulator)
and says what it understood as an `Answer`. What an answer puts back into the history is the SDK's own object,
because that is what people send.
"""

import json
from dataclasses import dataclass, field

import anthropic
import openai

TIMEOUT_SECONDS = 20
MAX_TOKENS = 1024

CITY_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


@dataclass
class Tool:
    name: str
    description: str


WEATHER = Tool("get_weather", "The weather in a city.")
TIME = Tool("get_time", "The time in a city.")


@dataclass
class Call:
    id: str
    name: str
    arguments: dict


@dataclass
class Answer:
    text: str
    reasoning: str
    calls: list
    stop: str  # end, tools or length
    input_tokens: int
    output_tokens: int
    history: list  # what the next request says about this answer
    deltas: list = field(default_factory=list)  # pieces of text in the order they came
    response_id: str = ""


@dataclass
class Result:
    call: Call
    text: str
    failed: bool


def arguments(text):
    """The arguments of a call; those of a call that was cut short stay text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def input_tokens(usage):
    """In this API, cached tokens are counted apart from the others."""
    return usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)


class Messages:
    name = "messages"
    rate_limit = anthropic.RateLimitError
    bad_request = anthropic.BadRequestError
    any_error = anthropic.APIError

    def __init__(self, gateway, timeout=TIMEOUT_SECONDS, tools=(WEATHER,)):
        self.sdk = anthropic.Anthropic(api_key="sk-client", base_url=gateway, max_retries=0, timeout=timeout)
        self.tools = tools
        self.max_tokens = MAX_TOKENS

    def user(self, text, png=None):
        if png is None:
            return [{"role": "user", "content": text}]
        source = {"type": "base64", "media_type": "image/png", "data": png}
        return [{"role": "user", "content": [{"type": "text", "text": text}, {"type": "image", "source": source}]}]

    def results(self, results):
        blocks = []
        for result in results:
            block = {"type": "tool_result", "tool_use_id": result.call.id, "content": result.text}
            if result.failed:
                block["is_error"] = True
            blocks.append(block)
        return [{"role": "user", "content": blocks}]

    def ask(self, model, history, tools, streamed):
        request = {"model": model, "max_tokens": self.max_tokens, "messages": history}
        if tools:
            request["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": CITY_SCHEMA}
                for tool in self.tools
            ]
        deltas = []
        if streamed:
            with self.sdk.messages.stream(**request) as stream:
                for event in stream:
                    if event.type == "text":
                        deltas.append(event.text)
                message = stream.get_final_message()
        else:
            message = self.sdk.messages.create(**request)
        of = lambda kind: [block for block in message.content if block.type == kind]
        stops = {"end_turn": "end", "tool_use": "tools", "max_tokens": "length"}
        return Answer(
            text="".join(block.text for block in of("text")),
            reasoning="".join(block.thinking for block in of("thinking")),
            calls=[Call(block.id, block.name, block.input) for block in of("tool_use")],
            stop=stops.get(message.stop_reason, message.stop_reason),
            input_tokens=input_tokens(message.usage),
            output_tokens=message.usage.output_tokens,
            history=[{"role": "assistant", "content": message.content}],
            deltas=deltas,
        )

    def model_names(self):
        return [model.id for model in self.sdk.models.list()]


class Chat:
    name = "chat"
    rate_limit = openai.RateLimitError
    bad_request = openai.BadRequestError
    any_error = openai.OpenAIError

    def __init__(self, gateway, timeout=TIMEOUT_SECONDS, tools=(WEATHER,)):
        self.sdk = openai.OpenAI(api_key="sk-client", base_url=gateway + "/v1", max_retries=0, timeout=timeout)
        self.tools = tools
        self.max_tokens = openai.NOT_GIVEN

    def user(self, text, png=None):
        if png is None:
            return [{"role": "user", "content": text}]
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + png}}
        return [{"role": "user", "content": [{"type": "text", "text": text}, image]}]

    def results(self, results):
        # This API has no field for a failed call: the text says it.
        return [
            {"role": "tool", "tool_call_id": result.call.id, "content": ("error: " if result.failed else "") + result.text}
            for result in results
        ]

    def ask(self, model, history, tools, streamed):
        request = {"model": model, "messages": history, "max_completion_tokens": self.max_tokens}
        if tools:
            # The accumulator takes strict tools only.
            request["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": CITY_SCHEMA,
                        "strict": True,
                    },
                }
                for tool in self.tools
            ]
        deltas, reasoning = [], []
        if streamed:
            try:
                with self.sdk.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
                    for event in stream:
                        if event.type == "content.delta":
                            deltas.append(event.delta)
                        elif event.type == "chunk" and event.chunk.choices:
                            reasoning.append(getattr(event.chunk.choices[0].delta, "reasoning_content", None) or "")
                    completion = stream.get_final_completion()
            except openai.LengthFinishReasonError as cut:
                # The accumulator reports an answer that hit the limit this way, with what there is of it.
                completion = cut.completion
        else:
            completion = self.sdk.chat.completions.create(**request)
            reasoning.append(getattr(completion.choices[0].message, "reasoning_content", None) or "")
        choice = completion.choices[0]
        calls = [
            Call(call.id, call.function.name, arguments(call.function.arguments))
            for call in choice.message.tool_calls or []
        ]
        stops = {"stop": "end", "tool_calls": "tools", "length": "length"}
        return Answer(
            text=choice.message.content or "",
            reasoning="".join(reasoning),
            calls=calls,
            stop=stops.get(choice.finish_reason, choice.finish_reason),
            input_tokens=completion.usage.prompt_tokens if completion.usage else 0,
            output_tokens=completion.usage.completion_tokens if completion.usage else 0,
            history=[choice.message],
            deltas=deltas,
        )

    def model_names(self):
        return [model.id for model in self.sdk.models.list()]


class Responses:
    name = "responses"
    rate_limit = openai.RateLimitError
    bad_request = openai.BadRequestError
    any_error = openai.OpenAIError

    def __init__(self, gateway, timeout=TIMEOUT_SECONDS, tools=(WEATHER,)):
        self.sdk = Chat(gateway, timeout).sdk
        self.tools = tools
        self.max_tokens = openai.NOT_GIVEN

    def user(self, text, png=None):
        if png is None:
            return [{"role": "user", "content": text}]
        image = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64," + png}
        return [{"role": "user", "content": [{"type": "input_text", "text": text}, image]}]

    def results(self, results):
        return [
            {
                "type": "function_call_output",
                "call_id": result.call.id,
                "output": ("error: " if result.failed else "") + result.text,
            }
            for result in results
        ]

    def ask(self, model, history, tools, streamed, previous=None):
        request = {"model": model, "input": history, "max_output_tokens": self.max_tokens}
        if previous is not None:
            request["previous_response_id"] = previous
        if tools:
            request["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": CITY_SCHEMA,
                    "strict": True,
                }
                for tool in self.tools
            ]
        deltas = []
        if streamed:
            response = None
            with self.sdk.responses.stream(**request) as stream:
                for event in stream:
                    if event.type == "response.output_text.delta":
                        deltas.append(event.delta)
                    elif event.type == "error":
                        raise openai.OpenAIError(event.message)
                    elif event.type in ("response.incomplete", "response.failed"):
                        # The accumulator keeps complete responses only.
                        response = event.response
                response = response or stream.get_final_response()
        else:
            response = self.sdk.responses.create(**request)
        if response.status == "failed":
            raise openai.OpenAIError(response.error.message)
        of = lambda kind: [item for item in response.output if item.type == kind]
        calls = [Call(item.call_id, item.name, arguments(item.arguments)) for item in of("function_call")]
        reasoning = [part.text for item in of("reasoning") for part in list(item.summary) + list(getattr(item, "content", None) or [])]
        stop = "length" if response.status == "incomplete" else "tools" if calls else "end"
        return Answer(
            text="".join(part.text for item in of("message") for part in item.content),
            reasoning="".join(reasoning),
            calls=calls,
            stop=stop,
            input_tokens=response.usage.input_tokens if response.usage else 0,
            output_tokens=response.usage.output_tokens if response.usage else 0,
            history=list(response.output),
            deltas=deltas,
            response_id=response.id,
        )

    def model_names(self):
        return [model.id for model in self.sdk.models.list()]
