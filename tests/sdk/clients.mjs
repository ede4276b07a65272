// The three client APIs through the official JavaScript SDKs, behind one small interface.
//
// Each client builds history in the SDK's own shapes, asks once (whole or streamed through the SDK's accumulator)
// and says what it understood. What an answer puts back into the history is the SDK's own object, because that is
// what people send.

import { createRequire } from "node:module";

// The packages are installed apart from this file, once for each age of the SDKs.
const require = createRequire(`${process.env.SDK_PACKAGES}/package.json`);
const anthropic = require("@anthropic-ai/sdk");
const openai = require("openai");

export const versions = `@anthropic-ai/sdk ${installed("@anthropic-ai/sdk")}, openai ${installed("openai")}`;

const MAX_TOKENS = 1024;
const TIMEOUT_MS = 20_000;

const CITY_SCHEMA = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const WEATHER = { name: "get_weather", description: "The weather in a city.", schema: CITY_SCHEMA };
const TIME = { name: "get_time", description: "The time in a city.", schema: CITY_SCHEMA };
export const ALL_TOOLS = [WEATHER, TIME];

function installed(name) {
  const list = require(`${process.env.SDK_PACKAGES}/package-lock.json`);
  return list.packages[`node_modules/${name}`].version;
}

// The arguments of a call; those of a call that was cut short stay text.
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function openaiClient(gateway, timeout) {
  return new openai.OpenAI({ apiKey: "sk-client", baseURL: `${gateway}/v1`, maxRetries: 0, timeout });
}

async function names(page) {
  const found = [];
  for await (const model of page) found.push(model.id);
  return found;
}

export class Messages {
  name = "messages";
  errors = { rateLimit: anthropic.RateLimitError, badRequest: anthropic.BadRequestError, any: anthropic.AnthropicError };

  constructor(gateway, { timeout = TIMEOUT_MS, tools = [WEATHER] } = {}) {
    const Anthropic = anthropic.Anthropic ?? anthropic.default;
    this.sdk = new Anthropic({ apiKey: "sk-client", baseURL: gateway, maxRetries: 0, timeout });
    this.tools = tools;
  }

  user(text, png) {
    if (!png) return [{ role: "user", content: text }];
    const source = { type: "base64", media_type: "image/png", data: png };
    return [{ role: "user", content: [{ type: "text", text }, { type: "image", source }] }];
  }

  results(results) {
    const block = ({ call, text, failed }) => ({
      type: "tool_result",
      tool_use_id: call.id,
      content: text,
      ...(failed && { is_error: true }),
    });
    return [{ role: "user", content: results.map(block) }];
  }

  async ask({ model, history, tools, streamed }) {
    const request = { model, max_tokens: MAX_TOKENS, messages: history };
    if (tools) {
      request.tools = this.tools.map(({ name, description, schema }) => ({ name, description, input_schema: schema }));
    }
    const deltas = [];
    let message;
    if (streamed) {
      const stream = this.sdk.messages.stream(request).on("text", (delta) => deltas.push(delta));
      message = await stream.finalMessage();
    } else {
      message = await this.sdk.messages.create(request);
    }
    const of = (type) => message.content.filter((block) => block.type === type);
    const stops = { end_turn: "end", tool_use: "tools", max_tokens: "length" };
    return {
      text: of("text").map((block) => block.text).join(""),
      reasoning: of("thinking").map((block) => block.thinking).join(""),
      calls: of("tool_use").map(({ id, name, input }) => ({ id, name, arguments: input })),
      stop: stops[message.stop_reason] ?? message.stop_reason,
      outputTokens: message.usage.output_tokens,
      history: [{ role: "assistant", content: message.content }],
      deltas,
    };
  }

  modelNames() {
    return names(this.sdk.models.list());
  }
}

export class Chat {
  name = "chat";
  errors = { rateLimit: openai.RateLimitError, badRequest: openai.BadRequestError, any: openai.OpenAIError };

  constructor(gateway, { timeout = TIMEOUT_MS, tools = [WEATHER] } = {}) {
    this.sdk = openaiClient(gateway, timeout);
    this.tools = tools;
  }

  user(text, png) {
    if (!png) return [{ role: "user", content: text }];
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } };
    return [{ role: "user", content: [{ type: "text", text }, image] }];
  }

  results(results) {
    // This API has no field for a failed call: the text says it.
    return results.map(({ call, text, failed }) => ({
      role: "tool",
      tool_call_id: call.id,
      content: failed ? `error: ${text}` : text,
    }));
  }

  async ask({ model, history, tools, streamed }) {
    const request = { model, messages: history };
    if (tools) {
      const tool = ({ name, description, schema }) => ({ name, description, parameters: schema, strict: true });
      request.tools = this.tools.map((offered) => ({ type: "function", function: tool(offered) }));
    }
    const { completion, deltas, reasoning } = streamed ? await this.#stream(request) : await this.#whole(request);
    const { message, finish_reason: reason } = completion.choices[0];
    const stops = { stop: "end", tool_calls: "tools", length: "length" };
    return {
      text: message.content ?? "",
      reasoning,
      calls: (message.tool_calls ?? []).map((call) => ({
        id: call.id,
        name: call.function.name,
        arguments: parsed(call.function.arguments),
      })),
      stop: stops[reason] ?? reason,
      outputTokens: completion.usage?.completion_tokens ?? 0,
      history: [message],
      deltas,
    };
  }

  async #whole(request) {
    const completion = await this.sdk.chat.completions.create(request);
    return { completion, deltas: [], reasoning: completion.choices[0].message.reasoning_content ?? "" };
  }

  async #stream(request) {
    // Older majors keep the accumulator under `beta`.
    const completions = this.sdk.chat.completions.stream ? this.sdk.chat.completions : this.sdk.beta.chat.completions;
    const deltas = [];
    let reasoning = "";
    let limit;
    const stream = completions
      .stream({ ...request, stream_options: { include_usage: true } })
      .on("content", (delta) => deltas.push(delta))
      .on("chunk", (chunk) => {
        reasoning += chunk.choices[0]?.delta?.reasoning_content ?? "";
        if (chunk.choices[0]?.finish_reason === "length") limit = stream.currentChatCompletionSnapshot;
      });
    try {
      return { completion: await stream.finalChatCompletion(), deltas, reasoning };
    } catch (error) {
      // The accumulator reports an answer that hit the limit as an error.
      if (error?.constructor?.name !== "LengthFinishReasonError" || !limit) throw error;
      return { completion: limit, deltas, reasoning };
    }
  }

  modelNames() {
    return names(this.sdk.models.list());
  }
}

export class Responses {
  name = "responses";
  errors = { rateLimit: openai.RateLimitError, badRequest: openai.BadRequestError, any: openai.OpenAIError };

  constructor(gateway, { timeout = TIMEOUT_MS, tools = [WEATHER] } = {}) {
    this.sdk = openaiClient(gateway, timeout);
    this.tools = tools;
  }

  user(text, png) {
    if (!png) return [{ role: "user", content: text }];
    const image = { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${png}` };
    return [{ role: "user", content: [{ type: "input_text", text }, image] }];
  }

  results(results) {
    return results.map(({ call, text, failed }) => ({
      type: "function_call_output",
      call_id: call.id,
      output: failed ? `error: ${text}` : text,
    }));
  }

  async ask({ model, history, tools, streamed, previous }) {
    const request = { model, input: history };
    if (previous) request.previous_response_id = previous;
    if (tools) {
      const tool = ({ name, description, schema }) => ({ name, description, parameters: schema, strict: true });
      request.tools = this.tools.map((offered) => ({ type: "function", ...tool(offered) }));
    }
    const deltas = [];
    const response = streamed ? await this.#stream(request, deltas) : await this.sdk.responses.create(request);
    if (response.status === "failed") throw new openai.OpenAIError(response.error?.message);
    const of = (type) => response.output.filter((item) => item.type === type);
    const calls = of("function_call").map((item) => ({
      id: item.call_id,
      name: item.name,
      arguments: parsed(item.arguments),
    }));
    const thoughts = of("reasoning").flatMap((item) => [...item.summary, ...(item.content ?? [])]);
    return {
      text: of("message").flatMap((item) => item.content).map((part) => part.text).join(""),
      reasoning: thoughts.map((part) => part.text).join(""),
      calls,
      stop: response.status === "incomplete" ? "length" : calls.length > 0 ? "tools" : "end",
      outputTokens: response.usage?.output_tokens ?? 0,
      history: response.output,
      deltas,
      responseId: response.id,
    };
  }

  async #stream(request, deltas) {
    const stream = this.sdk.responses.stream(request);
    let ended;
    for await (const event of stream) {
      if (event.type === "response.output_text.delta") deltas.push(event.delta);
      if (event.type === "error") throw new openai.OpenAIError(event.message);
      // The accumulator keeps complete responses only.
      if (event.type === "response.incomplete" || event.type === "response.failed") ended = event.response;
    }
    return ended ?? (await stream.finalResponse());
  }

  modelNames() {
    return names(this.sdk.models.list());
  }
}
