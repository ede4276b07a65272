// The official JavaScript SDKs against a gateway: every client API, every upstream dialect, whole and streamed.
//
// GATEWAY is the gateway's address, SDK_PACKAGES the folder with the installed SDKs. Models are named HOST/CASE: HOST
// is the upstream dialect (m = Anthropic Messages, c = OpenAI Chat Completions, r = OpenAI Responses), CASE what the
// scripted model does. CLIENTS and HOSTS narrow the run, as in CLIENTS=chat HOSTS=c. One line a check, and a last line
// with the counts.

import assert from "node:assert/strict";

import { Chat, Messages, Responses, versions } from "./clients.mjs";

const { GATEWAY } = process.env;
const HOSTS = (process.env.HOSTS ?? "m,c,r").split(",");
const CLIENTS = (process.env.CLIENTS ?? "messages,chat,responses").split(",");

const DEADLINE_MS = 25_000;
const SIXTEEN_WORDS = Array.from({ length: 16 }, (_, number) => `word${number}`).join(" ");
const QUESTION = "Wie ist das Wetter in 東京 and Paris? ☂";
// A single red pixel.
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

const checks = {
  async text({ client, host, streamed }) {
    const answer = await client.ask({ model: `${host}/text-16`, history: client.user(QUESTION), streamed });
    assert.equal(answer.text, SIXTEEN_WORDS);
    assert.equal(answer.stop, "end");
    assert.deepEqual(answer.calls, []);
    assert.ok(answer.outputTokens > 0, `${answer.outputTokens} output tokens`);
    if (streamed) {
      assert.equal(answer.deltas.join(""), answer.text);
      assert.ok(answer.deltas.length > 1, "the text came in one piece");
    }
  },

  async "parallel calls"({ client, host, streamed }) {
    const history = client.user(QUESTION);
    const answer = await client.ask({ model: `${host}/parallel`, history, tools: true, streamed });
    checkTwoCalls(answer);
    assert.equal(answer.stop, "tools");
    assert.notEqual(answer.text, "");
  },

  async "results, one of them an error"({ client, host, streamed }) {
    await checkResults({ client, host, streamed, question: client.user(QUESTION) });
  },

  async "results after an image"({ client, host, streamed }) {
    await checkResults({ client, host, streamed, question: client.user(QUESTION, PNG) });
  },

  async image({ client, host, streamed }) {
    const answer = await client.ask({ model: `${host}/echo`, history: client.user(QUESTION, PNG), streamed });
    // The host describes what it got, in the same words for every dialect.
    const { parts } = JSON.parse(answer.text).messages.at(-1);
    assert.deepEqual(parts, [
      { kind: "text", text: QUESTION },
      { kind: "image", media_type: "image/png" },
    ]);
  },

  async reasoning({ client, host, streamed }) {
    const question = client.user(QUESTION);
    const answer = await client.ask({ model: `${host}/reasoning`, history: question, streamed });
    assert.notEqual(answer.reasoning, "");
    assert.notEqual(answer.text, "");
    assert.ok(!answer.text.includes(answer.reasoning), answer.text);
    const history = [...question, ...answer.history, ...client.user("And tomorrow?")];
    const again = await client.ask({ model: `${host}/reasoning`, history, streamed });
    assert.equal(again.text, answer.text);
  },

  async "token limit"({ client, host, streamed }) {
    const answer = await client.ask({ model: `${host}/length`, history: client.user(QUESTION), streamed });
    assert.equal(answer.stop, "length");
  },

  async "rate limit"({ client, host, streamed }) {
    const error = await raised({ client, model: `${host}/error-429`, streamed, kind: client.errors.rateLimit });
    assert.equal(error.status, 429);
  },

  async "bad request"({ client, host, streamed }) {
    const error = await raised({ client, model: `${host}/error-400`, streamed, kind: client.errors.badRequest });
    assert.equal(error.status, 400);
  },

  async "a cut answer is an error"({ client, host, streamed }) {
    await raised({ client, model: `${host}/cut`, streamed, kind: client.errors.any });
  },
};

function checkTwoCalls(answer) {
  const calls = answer.calls.map((call) => [call.name, call.arguments]);
  assert.deepEqual(calls, [["get_weather", { city: "Paris" }], ["get_weather", { city: "Tokyo" }]]);
  const ids = answer.calls.map((call) => call.id);
  assert.ok(ids.every(Boolean) && new Set(ids).size === 2, `ids ${ids}`);
}

function twoResults(calls) {
  return [
    { call: calls[0], text: "18 degrees ☀", failed: false },
    { call: calls[1], text: "no such station", failed: true },
  ];
}

function checkRepeats(answer) {
  assert.ok(answer.text.includes("18 degrees ☀"), answer.text);
  assert.match(answer.text, /error.*no such station/is);
  assert.deepEqual(answer.calls, []);
  assert.equal(answer.stop, "end");
}

async function checkResults({ client, host, streamed, question }) {
  const model = `${host}/parallel`;
  const asked = await client.ask({ model, history: question, tools: true, streamed });
  checkTwoCalls(asked);
  const history = [...question, ...asked.history, ...client.results(twoResults(asked.calls))];
  checkRepeats(await client.ask({ model, history, tools: true, streamed }));
}

async function checkPreviousResponse({ client, host, streamed }) {
  const question = client.user(QUESTION);
  const asked = await client.ask({ model: `${host}/parallel`, history: question, tools: true, streamed });
  // Only the results are sent; the host must see the question and the calls too.
  const history = client.results(twoResults(asked.calls));
  const previous = asked.responseId;
  const answer = await client.ask({ model: `${host}/echo`, history, tools: true, streamed, previous });
  const parts = JSON.parse(answer.text).messages.flatMap((message) => message.parts);
  assert.ok(parts.some((part) => part.kind === "text" && part.text === QUESTION), answer.text);
  const ids = (kind) => parts.filter((part) => part.kind === kind).map((part) => part.id);
  assert.equal(ids("call").length, 2, answer.text);
  assert.deepEqual(ids("call"), ids("result"));
}

async function raised({ client, model, streamed, kind }) {
  let answer;
  try {
    answer = await client.ask({ model, history: client.user(QUESTION), streamed });
  } catch (error) {
    if (error instanceof kind) return error;
    throw error;
  }
  throw new Error(`expected ${kind.name}, got the answer "${answer.text}"`);
}

async function checkStreamedIsWhole({ client, host }) {
  for (const [name, tools] of [["text-16", false], ["parallel", true], ["reasoning", false]]) {
    const said = [];
    for (const streamed of [false, true]) {
      const answer = await client.ask({ model: `${host}/${name}`, history: client.user(QUESTION), tools, streamed });
      const { text, reasoning, stop } = answer;
      said.push({ text, reasoning, stop, calls: answer.calls.map((call) => [call.name, call.arguments]) });
    }
    assert.deepEqual(said[1], said[0]);
  }
}

function* allChecks() {
  for (const client of [new Messages(GATEWAY), new Chat(GATEWAY), new Responses(GATEWAY)]) {
    if (!CLIENTS.includes(client.name)) continue;
    yield [`${client.name}: models are listed`, async () => {
      const listed = await client.modelNames();
      for (const host of HOSTS) assert.ok(listed.includes(`${host}/text-16`), `got ${listed}`);
    }];
    for (const host of HOSTS) {
      for (const streamed of [false, true]) {
        const way = `${client.name} -> ${host}, ${streamed ? "streamed" : "whole"}`;
        for (const [name, check] of Object.entries(checks)) {
          yield [`${way}: ${name}`, () => check({ client, host, streamed })];
        }
        // A Responses host keeps its own responses; the gateway keeps them for the others.
        if (client.name === "responses" && host !== "r") {
          yield [`${way}: results after a previous response`, () => checkPreviousResponse({ client, host, streamed })];
        }
      }
      yield [`${client.name} -> ${host}: streamed is whole`, () => checkStreamedIsWhole({ client, host })];
    }
  }
}

// Also keeps the process alive: a promise that nobody will settle must not end the run in silence.
async function withDeadline(work) {
  let timer;
  const deadline = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${DEADLINE_MS} ms`)), DEADLINE_MS);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

// Some accumulators report an error a second time, to nobody.
process.on("unhandledRejection", () => {});

console.log(versions);
let passed = 0;
let failed = 0;
for (const [name, check] of allChecks()) {
  try {
    await withDeadline(check());
    passed += 1;
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error?.constructor?.name}: ${String(error?.message).slice(0, 600)}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
