"""Conversations survive `kill -9` of the agent's processes, of their supervisors and of the gateway, at random moments.

TOOLGATE is the gateway's program, CLAUDE_CODE_OLDER and CLAUDE_CODE_CURRENT are the agents', SCRIPTED_MODEL is the model
behind them. KILLS is the number of kills per program (50), SEED repeats the same choices, PROGRAMS selects programs,
MOMENT=between kills only between two requests.

A conversation has rounds of three requests: a text and a call; results, then three parallel calls; results, then a
built-in call and a text. Each request gets one kill, after a random time of about the duration of a request: while it
runs, or after it, when the client has calls without results. The client then does what clients do: it repeats the
request until it gets an answer. After each request:

- the answer is complete, and is what the model said;
- the model was called once per step, and at most once more if the kill interrupted the request;
- every model request contained exactly the client's messages up to then, with the hidden steps where they belong. Only
  the result of an interrupted built-in call may be the notice about the interruption;
- no built-in call ran twice, and one that was not interrupted ran once;
- after a kill of the gateway, all of its processes end by themselves.

Prints one line per kill, and the counts of checks at the end.
"""

import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from conversation import APIS, Conversation, call, message, model_requests, script_model, text, turn
from killable_gateway import SUPERVISE_COMMAND, Gateway, expect

ALL_PROGRAMS = {"older": os.environ["CLAUDE_CODE_OLDER"], "current": os.environ["CLAUDE_CODE_CURRENT"]}
PROGRAMS = os.environ.get("PROGRAMS", "older,current").split(",")
KILLS = int(os.environ.get("KILLS", "50"))
MOMENT = os.environ.get("MOMENT", "any")  # or "between": only while no request runs
SEED = int(os.environ.get("SEED") or random.randrange(1 << 32))
# The start of the gateway's result for an interrupted built-in call.
INTERRUPTED = "The connection was lost while this tool was running."
# The model's text before a built-in call.
BUILTIN_TEXT = "I make a file. "
# The maximum delay of a kill, relative to the duration of a request.
DELAY_FACTOR = 1.3
INITIAL_ESTIMATE_SECONDS = 4.0
MAX_TRIES = 4


class Script:
    """The model's messages in a conversation of this many requests, and what the client should see of them."""

    def __init__(self, api, requests):
        self.api = api
        self.turns = []
        self.answers = []  # for each request: the texts, the calls, and the number of model calls
        for number in range(requests):
            weather = lambda id: (f"{id}{number}", "get_weather", {"city": f"city {number}"})
            time_call = (f"t{number}", "get_time", {"city": f"city {number}"})
            match number % 3:
                case 0:
                    self.add(f"Let me look, {number}.", [weather("a")])
                case 1:
                    self.add("", [weather("a"), weather("b"), time_call])
                case _:
                    self.turns.append(turn(BUILTIN_TEXT, (f"own{number}", "Bash", self.command(number))))
                    self.add(f"All is done, {number}.", [], builtin_text=BUILTIN_TEXT)

    def trace(self, number):
        """The name prefix of the files that a built-in call creates, one per run."""
        return f"ran-{self.api}-{number}-"

    def command(self, number):
        return {"command": f"mktemp {self.trace(number)}XXXXXX", "description": "d"}

    def add(self, words, calls, builtin_text=""):
        self.turns.append(turn(words, *calls))
        steps = 2 if builtin_text else 1
        self.answers.append((builtin_text, words, [(f"toolu_{id}", name, input) for id, name, input in calls], steps))


class Kill:
    """A kill that a timer thread executes."""

    def __init__(self, choices, typical_seconds):
        self.victim = choices.choice(["process", "supervisor", "gateway"])
        self.delay = choices.uniform(0, DELAY_FACTOR * typical_seconds)
        self.done = threading.Event()
        self.is_over = False

    def start(self, gateway):
        self.gateway = gateway
        if MOMENT == "any":
            self.timer = threading.Timer(self.delay, self.execute)
            self.timer.start()

    def execute(self):
        if self.victim == "process":
            self.gateway.kill_processes()
        elif self.victim == "supervisor":
            self.gateway.kill_processes(SUPERVISE_COMMAND)
        else:
            self.gateway.process.kill()
        self.at = time.monotonic()
        self.done.set()

    def finish(self):
        """Returns after the kill."""
        if MOMENT == "any":
            self.timer.join()
        else:
            self.execute()


class InterruptedConversation:
    """One conversation with a kill at each of its requests."""

    def __init__(self, gateway, api, name, requests, choices):
        self.gateway, self.choices = gateway, choices
        self.script = Script(api, requests)
        script_model("kills", self.script.turns)
        self.conversation = Conversation(api, gateway.url, "kills", name)
        self.requests_seen = 0
        self.model_history = []  # what the model should have received, hidden steps included
        self.durations = [INITIAL_ESTIMATE_SECONDS]
        self.calls = []

    def request(self, number):
        """Repeats one request until it is answered, kills once, and checks everything. Returns a summary."""
        builtin_text, words, calls, steps = self.script.answers[number]
        before = len(self.conversation.expected)
        if self.calls:
            self.conversation.add_results([(one, f"result of {one.id}") for one in reversed(self.calls)])
        else:
            self.conversation.add_user_text(f"{self.conversation.name}, request {number}")
        self.model_history += self.conversation.expected[before:]
        kill = Kill(self.choices, statistics.median(self.durations))
        streamed = self.choices.random() < 0.5
        answer, tries, failures, ended = None, 0, [], None
        kill.start(self.gateway)
        while answer is None:
            tries += 1
            expect(tries <= MAX_TRIES, "no answer", failures)
            began = time.monotonic()
            try:
                answer = self.conversation.ask(streamed)
                ended = time.monotonic()
            except Exception as why:  # the kill broke the request: the client retries
                expect(kill.done.wait(0.5), "a failure before any kill", why)
                failures.append(f"{type(why).__name__}: {str(why)[:120]}")
                self.restart_gateway(kill)
        kill.finish()
        # A request that ended before the kill was not interrupted.
        interrupted = kill.at < ended
        if not interrupted:
            self.durations.append(ended - began)
        self.restart_gateway(kill)
        seen = [(one.id, one.name, one.arguments) for one in answer.calls]
        expect((answer.text, seen) == (builtin_text + words, calls), answer.text, seen)
        asked = self.check_model_requests(number, steps, interrupted)
        ran = len(list(self.gateway.workdir.glob(self.script.trace(number) + "*")))
        if steps == 2:
            expect(ran == 1 or (interrupted and ran == 0), "runs of the built-in call", ran)
        self.conversation.add_answer(answer)
        self.calls = answer.calls
        when = "while it ran" if interrupted else "after it"
        return f"{kill.victim} killed {when} ({kill.delay:.2f} s), {tries} tries, {asked} requests for {steps} steps"

    def restart_gateway(self, kill):
        """Restarts a killed gateway after its processes have ended by themselves."""
        if kill.victim == "gateway" and not kill.is_over:
            kill.is_over = True
            self.gateway.kill()
            self.gateway.start()
            self.conversation.connect(self.gateway.url)

    def check_model_requests(self, number, steps, interrupted):
        everything = model_requests("kills")
        requests = everything[self.requests_seen :]
        self.requests_seen = len(everything)
        allowed = steps + 1 if interrupted else steps
        expect(
            steps <= len(requests) <= allowed,
            f"{len(requests)} requests for {steps} steps",
            interrupted,
            [request[-2:] for request in requests],
        )
        builtin_text, words, calls, _ = self.script.answers[number]
        own = []
        if steps == 2:
            id = f"toolu_own{number}"
            results = [part for one in requests[-1] for part in one["parts"] if part.get("result") == id]
            expect(len(results) == 1, results)
            is_interrupted = results[0]["failed"] and results[0]["text"].startswith(INTERRUPTED)
            expect(self.script.trace(number) in results[0]["text"] or (interrupted and is_interrupted), results)
            asked = [text(builtin_text), call(id, "Bash", self.script.command(number))]
            own = [message("assistant", asked), message("user", results)]
        for request in requests:
            expect(
                request in (self.model_history, self.model_history + own),
                "a request that differs",
                difference(request, self.model_history + own),
            )
        texts = [text(words)] if words else []
        self.model_history += own + [message("assistant", texts + [call(*one) for one in calls])]
        return len(requests)


def difference(request, wanted):
    at = next((at for at, (a, b) in enumerate(zip(request, wanted)) if a != b), min(len(request), len(wanted)))
    return f"{len(request)} for {len(wanted)} messages, from message {at}: {request[at:at + 2]} for {wanted[at:at + 2]}"


def run(name, program):
    """Runs one conversation per API, KILLS kills in total. Yields (summary, error)."""
    choices = random.Random(f"{SEED} {name}")
    folder = Path(tempfile.mkdtemp(prefix="toolgate-kills-"))
    gateway = Gateway(folder, program, "kills", rules=["allow Bash(mktemp:*)"])
    try:
        for index, api in enumerate(APIS):
            requests = KILLS // len(APIS) + (index < KILLS % len(APIS))
            conversation = InterruptedConversation(gateway, api, f"{name} {api} {SEED}", requests, choices)
            for number in range(requests):
                label = f"{name}, {api}, request {number}"
                try:
                    yield f"{label}: {conversation.request(number)}", None
                except Exception as why:  # the rest of this conversation would fail too
                    yield label, f"{type(why).__name__}: {str(why)[:3000]}"
                    break
        gateway.stop()
        yield f"{name}: no process is left when the gateway stops", None
    except Exception as why:
        yield f"{name}: the end", f"{type(why).__name__}: {str(why)[:3000]}"
    finally:
        gateway.process.kill()
        gateway.process.wait()
        gateway.kill_processes()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    print(f"SEED={SEED}, {KILLS} kills for each of {', '.join(PROGRAMS)}")
    passed = failed = 0
    for name in PROGRAMS:
        for fact, why in run(name, ALL_PROGRAMS[name]):
            print(f"FAIL {fact}: {why}" if why else f"ok {fact}")
            passed, failed = passed + (why is None), failed + (why is not None)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
