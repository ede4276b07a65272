"""Whatever dies, the conversation goes on: `kill -9` of the agent's processes, of those between them and the gateway
(their keepers) and of the gateway, at random moments.

TOOLGATE is the gateway's program, CLAUDE_CODE_OLDER and CLAUDE_CODE_CURRENT the agents', SCRIPTED_MODEL the model behind
them. KILLS is how many kills each program gets (50), SEED makes the same choices again, PROGRAMS narrows the run, MOMENT=between kills only between two requests. A
conversation has rounds of three requests: a text and a call; results, then three parallel calls; results, then a
built-in call and a text. Each request is hit once, after a time drawn from as long as requests take: while it runs, or
between it and the next one, when the client holds calls whose results nobody has yet. The client then does what clients
do: it sends the same request again until it is answered. After each request:

- the answer is whole, and is what the model said;
- the model was asked once for each of its steps, and at most once more for a kill that hit this request while it ran:
  the step that was cut short. A request that was not hit while it ran gets not one question more;
- every question held exactly what the client had said until then, message by message, with the agent's own steps where
  they belong. A built-in call that was cut off has the notice of that for a result, and nothing else may differ;
- no built-in call ran twice, and one that was not hit ran once;
- after a kill of the gateway, all of its processes end by themselves.

One line a kill, and a last line with the counts of checks.
"""

import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from conversation import APIS, MODEL, PATIENCE_SECONDS, Conversation, call, heard, message, play, result, text, turn

TOOLGATE = os.environ["TOOLGATE"]
ALL_PROGRAMS = {"older": os.environ["CLAUDE_CODE_OLDER"], "current": os.environ["CLAUDE_CODE_CURRENT"]}
PROGRAMS = os.environ.get("PROGRAMS", "older,current").split(",")
KILLS = int(os.environ.get("KILLS", "50"))
MOMENT = os.environ.get("MOMENT", "any")  # or "between": only while no request runs
SEED = int(os.environ.get("SEED") or random.randrange(1 << 32))
# What the gateway puts for the result of a built-in call that was cut off.
CUT_OFF = "The connection was lost while this tool was running."
# The word by which the gateway's own program is started between it and an agent.
KEEPER = b"keep-agent"
# What the model says before it makes a built-in call.
OWN_WORDS = "I make a file. "
# How much longer than a usual request one waits at most before the kill.
BEYOND = 1.3
FIRST_GUESS_SECONDS = 4.0
MOST_TRIES = 4


def expect(fact, *seen):
    if not fact:
        raise AssertionError("got " + ", ".join(repr(value) for value in seen))


class Gateway:
    """A gateway with one agent, which can be killed and started again over the same store."""

    def __init__(self, folder, program):
        self.folder = folder
        self.agent_home = folder / "home/.local/share/toolgate/agents/kills"
        self.config = folder / "toolgate.toml"
        self.config.write_text(
            f"""listen = "127.0.0.1:0"
store = "sqlite:{folder}/toolgate.db"
[approvals]
rules = ["allow Bash(mktemp:*)"]
[agents.kills]
command = "{program}"
tools = ["Bash"]
warm = 1
max = 3
env = {{ ANTHROPIC_BASE_URL = "{MODEL.removesuffix('/v1')}", ANTHROPIC_API_KEY = "k", ANTHROPIC_MODEL = "play/kills" }}
[models.kills]
agent = "kills"
"""
        )
        self.start()

    def start(self):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder / "home")}
        with open(self.folder / "toolgate.log", "ab") as log:
            self.process = subprocess.Popen(
                [TOOLGATE, "--config", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
            )
        for line in self.process.stdout:
            if "http://127.0.0.1:" in line:
                self.url = "http://127.0.0.1:" + line.split("http://127.0.0.1:")[1].split("/")[0].split()[0]
                break
        else:
            raise AssertionError(f"the gateway did not start; see {self.folder}/toolgate.log")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def processes(self, command=b""):
        """The agent's processes, their keepers and what they started: all that have its private home. Only those that
        were started with this word, if one is given."""
        home = b"HOME=" + str(self.agent_home).encode() + b"\0"
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if home in (entry / "environ").read_bytes() and command in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:  # it has ended since, or is not ours to see
                continue
        return found

    def kill_processes(self, command=b""):
        """Also those that are warm or wait for their client."""
        for process in self.processes(command):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def kill(self):
        self.process.kill()
        self.process.wait()
        began = time.monotonic()
        while self.processes():
            expect(time.monotonic() - began < PATIENCE_SECONDS, "a process outlives the gateway", self.processes())
            time.sleep(0.01)

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)
        expect(not self.processes(), "a process outlives the gateway", self.processes())


class Script:
    """What the model says in a conversation of so many requests, and what its client is to see of it."""

    def __init__(self, api, requests):
        self.api = api
        self.turns = []
        self.answers = []  # for each request: the texts, the calls, and how many steps the model takes
        for number in range(requests):
            weather = lambda id: (f"{id}{number}", "get_weather", {"city": f"city {number}"})
            time_call = (f"t{number}", "get_time", {"city": f"city {number}"})
            match number % 3:
                case 0:
                    self.add(f"Let me look, {number}.", [weather("a")])
                case 1:
                    self.add("", [weather("a"), weather("b"), time_call])
                case _:
                    self.turns.append(turn(OWN_WORDS, (f"own{number}", "Bash", self.command(number))))
                    self.add(f"All is done, {number}.", [], own_words=OWN_WORDS)

    def trace(self, number):
        """How the names of the files begin that a built-in call makes, one each time it runs."""
        return f"ran-{self.api}-{number}-"

    def command(self, number):
        return {"command": f"mktemp {self.trace(number)}XXXXXX", "description": "d"}

    def add(self, words, calls, own_words=""):
        self.turns.append(turn(words, *calls))
        steps = 2 if own_words else 1
        self.answers.append((own_words, words, [(f"toolu_{id}", name, input) for id, name, input in calls], steps))


class Hit:
    """A kill that waits for its moment in a thread of its own."""

    def __init__(self, choices, usual):
        self.victim = choices.choice(["process", "keeper", "gateway"])
        self.delay = choices.uniform(0, BEYOND * usual)
        self.done = threading.Event()
        self.is_over = False

    def start(self, gateway):
        self.gateway = gateway
        if MOMENT == "any":
            self.timer = threading.Timer(self.delay, self.strike)
            self.timer.start()

    def strike(self):
        if self.victim == "process":
            self.gateway.kill_processes()
        elif self.victim == "keeper":
            self.gateway.kill_processes(KEEPER)
        else:
            self.gateway.process.kill()
        self.at = time.monotonic()
        self.done.set()

    def finish(self):
        """Returns when the blow has fallen."""
        if MOMENT == "any":
            self.timer.join()
        else:
            self.strike()


class Talk:
    """One conversation, hit at each of its requests."""

    def __init__(self, gateway, api, name, requests, choices):
        self.gateway, self.choices = gateway, choices
        self.script = Script(api, requests)
        play("kills", self.script.turns)
        self.talk = Conversation(api, gateway.url, "kills", name)
        self.asked = 0
        self.model_history = []  # what the model should have been told, own steps included
        self.durations = [FIRST_GUESS_SECONDS]
        self.calls = []

    def request(self, number):
        """Sends one request until it is answered, kills once, and checks everything. Says what happened."""
        own_words, words, calls, steps = self.script.answers[number]
        before = len(self.talk.said)
        if self.calls:
            self.talk.give([(one, f"result of {one.id}") for one in reversed(self.calls)])
        else:
            self.talk.say(f"{self.talk.name}, request {number}")
        self.model_history += self.talk.said[before:]
        hit = Hit(self.choices, statistics.median(self.durations))
        streamed = self.choices.random() < 0.5
        answer, tries, failures, ended = None, 0, [], None
        hit.start(self.gateway)
        while answer is None:
            tries += 1
            expect(tries <= MOST_TRIES, "no answer", failures)
            began = time.monotonic()
            try:
                answer = self.talk.ask(streamed)
                ended = time.monotonic()
            except Exception as why:  # what the kill made of the request: the client tries again
                expect(hit.done.wait(0.5), "a failure before any kill", why)
                failures.append(f"{type(why).__name__}: {str(why)[:120]}")
                self.revive(hit)
        hit.finish()
        # A request that ended before the kill was not touched by it.
        interrupted = hit.at < ended
        if not interrupted:
            self.durations.append(ended - began)
        self.revive(hit)
        seen = [(one.id, one.name, one.arguments) for one in answer.calls]
        expect((answer.text, seen) == (own_words + words, calls), answer.text, seen)
        asked = self.check_questions(number, steps, interrupted)
        ran = len(list((self.gateway.agent_home / "work").glob(self.script.trace(number) + "*")))
        if steps == 2:
            expect(ran == 1 or (interrupted and ran == 0), "runs of the built-in call", ran)
        self.talk.keep(answer)
        self.calls = answer.calls
        when = "while it ran" if interrupted else "after it"
        return f"{hit.victim} killed {when} ({hit.delay:.2f} s), {tries} tries, {asked} questions for {steps} steps"

    def revive(self, hit):
        """Starts a gateway after the one that was killed, once its processes have ended by themselves."""
        if hit.victim == "gateway" and not hit.is_over:
            hit.is_over = True
            self.gateway.kill()
            self.gateway.start()
            self.talk.connect(self.gateway.url)

    def check_questions(self, number, steps, interrupted):
        everything = heard("kills")
        questions = everything[self.asked :]
        self.asked = len(everything)
        allowed = steps + 1 if interrupted else steps
        expect(
            steps <= len(questions) <= allowed,
            f"{len(questions)} questions for {steps} steps",
            interrupted,
            [question[-2:] for question in questions],
        )
        own_words, words, calls, _ = self.script.answers[number]
        own = []
        if steps == 2:
            id = f"toolu_own{number}"
            results = [part for one in questions[-1] for part in one["parts"] if part.get("result") == id]
            expect(len(results) == 1, results)
            is_cut_off = results[0]["failed"] and results[0]["text"].startswith(CUT_OFF)
            expect(self.script.trace(number) in results[0]["text"] or (interrupted and is_cut_off), results)
            asked = [text(own_words), call(id, "Bash", self.script.command(number))]
            own = [message("assistant", asked), message("user", results)]
        for question in questions:
            expect(
                question in (self.model_history, self.model_history + own),
                "a question that differs",
                difference(question, self.model_history + own),
            )
        spoken = [text(words)] if words else []
        self.model_history += own + [message("assistant", spoken + [call(*one) for one in calls])]
        return len(questions)


def difference(question, wanted):
    at = next((at for at, (a, b) in enumerate(zip(question, wanted)) if a != b), min(len(question), len(wanted)))
    return f"{len(question)} for {len(wanted)} messages, from message {at}: {question[at:at + 2]} for {wanted[at:at + 2]}"


def run(name, program):
    """One conversation for each API, so many kills in all. Yields (what happened, why it failed)."""
    choices = random.Random(f"{SEED} {name}")
    folder = Path(tempfile.mkdtemp(prefix="toolgate-kills-"))
    gateway = Gateway(folder, program)
    try:
        for index, api in enumerate(APIS):
            requests = KILLS // len(APIS) + (index < KILLS % len(APIS))
            talk = Talk(gateway, api, f"{name} {api} {SEED}", requests, choices)
            for number in range(requests):
                label = f"{name}, {api}, request {number}"
                try:
                    yield f"{label}: {talk.request(number)}", None
                except Exception as why:  # the rest of this conversation would fail for the same reason
                    yield label, f"{type(why).__name__}: {str(why)[:3000]}"
                    break
        gateway.stop()
        yield f"{name}: nothing is left when the gateway stops", None
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
