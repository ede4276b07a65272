// The official JavaScript SDKs against the real Claude Code behind the gateway, with a scripted model: the model must get
// exactly what the client sent.
//
// GATEWAY is the gateway's address, SDK_PACKAGES the folder with the installed SDKs, SCRIPTED_MODEL the model behind the
// agents. PROGRAMS and CLIENTS select a part of the checks. `conversation.py` lists what the comparison ignores, and
// `suite.py` is the same suite in Python. Prints one line per check, and the counts at the end.

import assert from "node:assert/strict";

import { Conversation, modelRequests, hiddenSteps, scriptModel, turn, withoutHiddenSteps } from "./conversation.mjs";
import { versions } from "../sdk/clients.mjs";

const PROGRAMS = (process.env.PROGRAMS ?? "older,current").split(",");
const CLIENTS = (process.env.CLIENTS ?? "messages,chat,responses").split(",");

const weather = (id, city) => ({ id, name: "get_weather", input: { city } });
const own = { id: "own", name: "Bash", input: { command: "echo by-the-agent", description: "d" } };

const checks = {
  async single(conversation, streamed) {
    await scriptModel(conversation.model, [turn("Let me look.", weather("a", "Paris")), turn("It is 21 degrees."), turn("Gladly. ☀")]);
    conversation.addUserText(`Wie ist das Wetter in 東京? ☂ ${conversation.name}`);
    const [call] = await askAndCheck(conversation, streamed, "Let me look.", [weather("a", "Paris")]);
    conversation.addResults([[call, "21 C ☀\n  second line"]]);
    await askAndCheck(conversation, streamed, "It is 21 degrees.", []);
    conversation.addUserText("Thanks");
    await askAndCheck(conversation, streamed, "Gladly. ☀", []);
    await expectModelRequests(conversation, 3);
  },

  async parallel(conversation, streamed) {
    const both = [weather("a", "Rome"), { id: "b", name: "get_time", input: { city: "Oslo" } }];
    await scriptModel(conversation.model, [turn("Both.", ...both), turn("Done.")]);
    conversation.addUserText(conversation.name);
    const [first, second] = await askAndCheck(conversation, streamed, "Both.", both);
    conversation.addResults([[second, "noon"], [first, "warm"]]);
    await askAndCheck(conversation, streamed, "Done.", []);
    await expectModelRequests(conversation, 2);
  },

  async "parallel of one name"(conversation, streamed) {
    // Two of the three also have the same input.
    const three = [weather("a", "Rome"), weather("b", "Rome"), weather("c", "Oslo")];
    await scriptModel(conversation.model, [turn("", ...three), turn("Done.")]);
    conversation.addUserText(conversation.name);
    const [first, second, third] = await askAndCheck(conversation, streamed, "", three);
    conversation.addResults([[third, "three"], [second, "two"], [first, "one"]]);
    await askAndCheck(conversation, streamed, "Done.", []);
    await expectModelRequests(conversation, 2);
  },

  async "mixed in one message"(conversation, streamed) {
    conversation.model += "-tools";
    await scriptModel(conversation.model, [turn("Both.", own, weather("a", "Rome")), turn("Done."), turn("Sure.")]);
    conversation.addUserText(conversation.name);
    const [call] = await askAndCheck(conversation, streamed, "Both.", [weather("a", "Rome")]);
    conversation.addResults([[call, "warm"]]);
    await askAndCheck(conversation, streamed, "Done.", []);
    conversation.addUserText("Sure?");
    await askAndCheck(conversation, streamed, "Sure.", []);
    await expectModelRequests(conversation, 3);
    await expectRanOnce(conversation);
  },

  async "mixed one after the other"(conversation, streamed) {
    conversation.model += "-tools";
    await scriptModel(conversation.model, [turn("", own), turn("And now yours.", weather("a", "Rome")), turn("Done.")]);
    conversation.addUserText(conversation.name);
    const [call] = await askAndCheck(conversation, streamed, "And now yours.", [weather("a", "Rome")]);
    conversation.addResults([[call, "warm"]]);
    await askAndCheck(conversation, streamed, "Done.", []);
    await expectModelRequests(conversation, 3);
    await expectRanOnce(conversation);
  },
};

// Sends the conversation, checks the answer, adds it, and returns its calls.
async function askAndCheck(conversation, streamed, text, calls) {
  const answer = await conversation.ask(streamed);
  const wanted = calls.map(({ id, name, input }) => ({ id: `toolu_${id}`, name, arguments: input }));
  assert.deepEqual([answer.text, answer.calls], [text, wanted]);
  assert.equal(answer.stop, calls.length > 0 ? "tools" : "end");
  if (streamed && text) assert.equal(answer.deltas.join(""), text);
  conversation.addAnswer(answer);
  return answer.calls;
}

// Checks that every model request contained exactly the client's messages up to then.
async function expectModelRequests(conversation, count) {
  const requests = (await modelRequests(conversation.model)).map(withoutHiddenSteps);
  const last = conversation.expected.slice(0, -1);
  assert.equal(requests.length, count);
  assert.deepEqual(requests.at(-1), last);
  for (const messages of requests) assert.deepEqual(messages, last.slice(0, messages.length));
}

async function expectRanOnce(conversation) {
  const steps = hiddenSteps((await modelRequests(conversation.model)).at(-1), "toolu_own");
  assert.equal(steps.length, 2);
  assert.deepEqual(steps[1], { result: "toolu_own", text: "by-the-agent", failed: false });
}

console.log(versions);
let passed = 0;
let failed = 0;
for (const program of PROGRAMS) {
  for (const api of CLIENTS) {
    for (const streamed of [false, true]) {
      for (const [check, run] of Object.entries(checks)) {
        const name = `${api} -> ${program}, ${streamed ? "streamed" : "whole"}: ${check}`;
        try {
          await run(new Conversation(api, program, `${name} (${versions})`), streamed);
          passed += 1;
          console.log(`ok ${name}`);
        } catch (why) {
          failed += 1;
          console.log(`FAIL ${name}: ${String(why?.message ?? why).slice(0, 2000)}`);
        }
      }
    }
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
