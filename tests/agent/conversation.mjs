// A conversation with an agent through the JavaScript SDKs, and the requests that the scripted model received.
// `conversation.py` is the same in Python and lists what the comparison ignores.

import { ALL_TOOLS, Chat, Messages, Responses } from "../sdk/clients.mjs";

const { GATEWAY, SCRIPTED_MODEL } = process.env;

// The program has 350 MB; a busy machine needs a minute to start it.
const TIMEOUT_MS = 300_000;
const APIS = { messages: Messages, chat: Chat, responses: Responses };
const TOOL_PREFIX = "mcp__client__";
const BUILTIN_TOOLS = ["Bash"];

// A message of the model: a text and calls.
export function turn(text, ...calls) {
  const named = (name) => (BUILTIN_TOOLS.includes(name) ? name : TOOL_PREFIX + name);
  return { text, pieces: 7, calls: calls.map(({ id, name, input }) => ({ id, name: named(name), input })) };
}

export async function scriptModel(name, turns) {
  const answer = await fetch(`${SCRIPTED_MODEL}/plays/${name}`, { method: "PUT", body: JSON.stringify({ turns }) });
  if (!answer.ok) throw new Error(`the script was rejected: ${await answer.text()}`);
}

// The messages of every model request, oldest first.
export async function modelRequests(name) {
  const answer = await fetch(`${SCRIPTED_MODEL}/plays/${name}`);
  return (await answer.json()).map((body) => canonical(body.messages));
}

// Sorts results to the front: their order means nothing.
function message(role, parts) {
  const results = parts.filter((part) => "result" in part).sort((a, b) => (a.result < b.result ? -1 : 1));
  return { role, parts: [...results, ...parts.filter((part) => !("result" in part))] };
}

function canonical(messages) {
  return messages.filter(({ role }) => role !== "system").map(({ role, content }) => message(role, parts(content)));
}

function parts(content) {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return blocks.flatMap((block) => {
    switch (block.type) {
      case "text":
        return block.text.startsWith("<system-reminder>") ? [] : [{ text: block.text }];
      case "tool_use":
        return [{ call: block.id, name: block.name.replace(TOOL_PREFIX, ""), input: block.input }];
      case "tool_result": {
        const text = parts(block.content ?? "").map((part) => part.text).join("");
        return [{ result: block.tool_use_id, text, failed: block.is_error ?? false }];
      }
      default:
        return [block];
    }
  });
}

// A built-in call and its result.
export function hiddenSteps(messages, id) {
  return messages.flatMap(({ parts }) => parts).filter((part) => part.call === id || part.result === id);
}

// Removes built-in calls and results: the rest is what the client knows.
export function withoutHiddenSteps(messages) {
  const all = messages.flatMap(({ parts }) => parts);
  const own = new Set(all.filter(({ name }) => BUILTIN_TOOLS.includes(name)).map(({ call }) => call));
  const visible = [];
  for (const { role, parts } of messages) {
    const rest = parts.filter((part) => !own.has(part.call) && !own.has(part.result));
    if (rest.length === 0) continue;
    if (visible.at(-1)?.role === role) visible.push(message(role, [...visible.pop().parts, ...rest]));
    else visible.push(message(role, rest));
  }
  return visible;
}

// A client that keeps its own history and knows no session.
export class Conversation {
  expected = [];
  history = [];

  // The name is part of the user text: an identical request may count as a retry.
  constructor(api, model, name) {
    this.model = model;
    this.name = name;
    this.client = new APIS[api](GATEWAY, { timeout: TIMEOUT_MS, tools: ALL_TOOLS });
  }

  addUserText(text) {
    this.history.push(...this.client.user(text));
    this.expected.push(message("user", [{ text }]));
  }

  // Pairs of a call and its result, in the order in which they are sent.
  addResults(results) {
    this.history.push(...this.client.results(results.map(([call, text]) => ({ call, text, failed: false }))));
    this.expected.push(message("user", results.map(([call, text]) => ({ result: call.id, text, failed: false }))));
  }

  // Sends the conversation; does not add the answer.
  ask(streamed) {
    return this.client.ask({ model: this.model, history: this.history, tools: true, streamed });
  }

  addAnswer({ text, calls, history }) {
    this.history.push(...history);
    const texts = text ? [{ text }] : [];
    const called = calls.map(({ id, name, arguments: input }) => ({ call: id, name, input }));
    this.expected.push(message("assistant", [...texts, ...called]));
  }
}
