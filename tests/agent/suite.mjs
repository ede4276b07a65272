// The official JavaScript SDKs against the real Claude Code behind the gateway, on a scripted model: what the model gets
// is what the client sent.
//
// GATEWAY is the gateway's address, SDK_PACKAGES the folder with the installed SDKs, SCRIPTED_MODEL the model behind the
// agents. PROGRAMS and CLIENTS narrow the run. `conversation.py` says what is set aside before two conversations are
// compared, and `suite.py` is the same suite in Python. One line a check, and a last line with the counts.

import assert from "node:assert/strict";

import { Conversation, heard, ownSteps, play, turn, withoutOwnSteps } from "./conversation.mjs";
import { versions } from "../sdk/clients.mjs";

const PROGRAMS = (process.env.PROGRAMS ?? "older,current").split(",");
const CLIENTS = (process.env.CLIENTS ?? "messages,chat,responses").split(",");

const weather = (id, city) => ({ id, name: "get_weather", input: { city } });
const own = { id: "own", name: "Bash", input: { command: "echo by-the-agent", description: "d" } };

const checks = {
  async single(talk, streamed) {
    await play(talk.model, [turn("Let me look.", weather("a", "Paris")), turn("It is 21 degrees."), turn("Gladly. ☀")]);
    talk.say(`Wie ist das Wetter in 東京? ☂ ${talk.name}`);
    const [call] = await spoken(talk, streamed, "Let me look.", [weather("a", "Paris")]);
    talk.give([[call, "21 C ☀\n  second line"]]);
    await spoken(talk, streamed, "It is 21 degrees.", []);
    talk.say("Thanks");
    await spoken(talk, streamed, "Gladly. ☀", []);
    await expectHeard(talk, 3);
  },

  async parallel(talk, streamed) {
    const both = [weather("a", "Rome"), { id: "b", name: "get_time", input: { city: "Oslo" } }];
    await play(talk.model, [turn("Both.", ...both), turn("Done.")]);
    talk.say(talk.name);
    const [first, second] = await spoken(talk, streamed, "Both.", both);
    talk.give([[second, "noon"], [first, "warm"]]);
    await spoken(talk, streamed, "Done.", []);
    await expectHeard(talk, 2);
  },

  async "parallel of one name"(talk, streamed) {
    // Two of the three even have the same input.
    const three = [weather("a", "Rome"), weather("b", "Rome"), weather("c", "Oslo")];
    await play(talk.model, [turn("", ...three), turn("Done.")]);
    talk.say(talk.name);
    const [first, second, third] = await spoken(talk, streamed, "", three);
    talk.give([[third, "three"], [second, "two"], [first, "one"]]);
    await spoken(talk, streamed, "Done.", []);
    await expectHeard(talk, 2);
  },

  async "mixed in one message"(talk, streamed) {
    talk.model += "-tools";
    await play(talk.model, [turn("Both.", own, weather("a", "Rome")), turn("Done."), turn("Sure.")]);
    talk.say(talk.name);
    const [call] = await spoken(talk, streamed, "Both.", [weather("a", "Rome")]);
    talk.give([[call, "warm"]]);
    await spoken(talk, streamed, "Done.", []);
    talk.say("Sure?");
    await spoken(talk, streamed, "Sure.", []);
    await expectHeard(talk, 3);
    await expectRanOnce(talk);
  },

  async "mixed one after the other"(talk, streamed) {
    talk.model += "-tools";
    await play(talk.model, [turn("", own), turn("And now yours.", weather("a", "Rome")), turn("Done.")]);
    talk.say(talk.name);
    const [call] = await spoken(talk, streamed, "And now yours.", [weather("a", "Rome")]);
    talk.give([[call, "warm"]]);
    await spoken(talk, streamed, "Done.", []);
    await expectHeard(talk, 3);
    await expectRanOnce(talk);
  },
};

// Asks, checks the answer, keeps it, and gives its calls.
async function spoken(talk, streamed, text, calls) {
  const answer = await talk.ask(streamed);
  const wanted = calls.map(({ id, name, input }) => ({ id: `toolu_${id}`, name, arguments: input }));
  assert.deepEqual([answer.text, answer.calls], [text, wanted]);
  assert.equal(answer.stop, calls.length > 0 ? "tools" : "end");
  if (streamed && text) assert.equal(answer.deltas.join(""), text);
  talk.keep(answer);
  return answer.calls;
}

// Every request to the model held what the client had said until then, message by message, and nothing else.
async function expectHeard(talk, count) {
  const requests = (await heard(talk.model)).map(withoutOwnSteps);
  const last = talk.said.slice(0, -1);
  assert.equal(requests.length, count);
  assert.deepEqual(requests.at(-1), last);
  for (const messages of requests) assert.deepEqual(messages, last.slice(0, messages.length));
}

async function expectRanOnce(talk) {
  const steps = ownSteps((await heard(talk.model)).at(-1), "toolu_own");
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
