// A conversation with an agent through the JavaScript SDKs, and what the scripted model behind the agent got.
// `conversation.py` is the same in Python, and says what is set aside before the two are compared.

import { ALL_TOOLS, Chat, Messages, Responses } from "../sdk/clients.mjs";

const { GATEWAY, SCRIPTED_MODEL } = process.env;

// A busy machine needs a minute to start the program, which is 350 MB large.
const PATIENCE_MS = 300_000;
const APIS = { messages: Messages, chat: Chat, responses: Responses };
const TOOL_PREFIX = "mcp__client__";
const OWN_TOOLS = ["Bash"];

// What the model says: a text, and calls.
export function turn(text, ...calls) {
  const named = (name) => (OWN_TOOLS.includes(name) ? name : TOOL_PREFIX + name);
  return { text, pieces: 7, calls: calls.map(({ id, name, input }) => ({ id, name: named(name), input })) };
}

export async function play(name, turns) {
  const answer = await fetch(`${SCRIPTED_MODEL}/plays/${name}`, { method: "PUT", body: JSON.stringify({ turns }) });
  if (!answer.ok) throw new Error(`the play was refused: ${await answer.text()}`);
}

// Every conversation the model was asked to go on with, oldest first.
export async function heard(name) {
  const answer = await fetch(`${SCRIPTED_MODEL}/plays/${name}`);
  return (await answer.json()).map((body) => canonical(body.messages));
}

// Results come first and in a fixed order; which order they came in means nothing.
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

// What became of a call that the agent made by itself: the call and its result.
export function ownSteps(messages, id) {
  return messages.flatMap(({ parts }) => parts).filter((part) => part.call === id || part.result === id);
}

// A conversation without what the agent did by itself: what is left of it is what its client knows.
export function withoutOwnSteps(messages) {
  const all = messages.flatMap(({ parts }) => parts);
  const own = new Set(all.filter(({ name }) => OWN_TOOLS.includes(name)).map(({ call }) => call));
  const kept = [];
  for (const { role, parts } of messages) {
    const rest = parts.filter((part) => !own.has(part.call) && !own.has(part.result));
    if (rest.length === 0) continue;
    if (kept.at(-1)?.role === role) kept.push(message(role, [...kept.pop().parts, ...rest]));
    else kept.push(message(role, rest));
  }
  return kept;
}

// A client that keeps its own history and knows of no session.
export class Conversation {
  said = [];
  history = [];

  // The name goes into what is said: the same words again would be taken for a retry.
  constructor(api, model, name) {
    this.model = model;
    this.name = name;
    this.client = new APIS[api](GATEWAY, { timeout: PATIENCE_MS, tools: ALL_TOOLS });
  }

  say(text) {
    this.history.push(...this.client.user(text));
    this.said.push(message("user", [{ text }]));
  }

  // Pairs of a call and its result, in the order in which they are sent.
  give(results) {
    this.history.push(...this.client.results(results.map(([call, text]) => ({ call, text, failed: false }))));
    this.said.push(message("user", results.map(([call, text]) => ({ result: call.id, text, failed: false }))));
  }

  // Sends everything; the answer is not kept.
  ask(streamed) {
    return this.client.ask({ model: this.model, history: this.history, tools: true, streamed });
  }

  keep({ text, calls, history }) {
    this.history.push(...history);
    const spoken = text ? [{ text }] : [];
    const called = calls.map(({ id, name, arguments: input }) => ({ call: id, name, input }));
    this.said.push(message("assistant", [...spoken, ...called]));
  }
}
