"""Every question has exactly one outcome, however often agents, supervisors and the gateway are killed while it waits.

TOOLGATE is the gateway's program, CLAUDE_CODE_OLDER and CLAUDE_CODE_CURRENT are the agents', SCRIPTED_MODEL is the model
behind them. KILLS is the number of kills per program (100), SEED repeats the same choices.

Each request makes the model call Bash once, and every use is asked about. Two people answer at the same time, at random
moments and not always the same, and one kill comes at a random moment. The client repeats its request until it is
answered. Afterwards:

- every question that anybody has seen is resolved, once: its outcome never changes;
- of all answers to a question, at most one was accepted, and it is the outcome;
- the command ran at most once, and only if a question about it was allowed.

Prints one line per kill, and the counts of checks at the end.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from conversation import APIS, TIMEOUT_SECONDS, Conversation, script_model, turn
from killable_gateway import SUPERVISE_COMMAND, TOOLGATE, Gateway, expect

PROGRAMS = {"older": os.environ["CLAUDE_CODE_OLDER"], "current": os.environ["CLAUDE_CODE_CURRENT"]}
KILLS = int(os.environ.get("KILLS", "100"))
SEED = int(os.environ.get("SEED") or random.randrange(1 << 32))
MAX_TRIES = 8
# About as long as a request takes.
MAX_KILL_DELAY_SECONDS = 1.8
MAX_ANSWER_DELAY_SECONDS = 1.5
ANSWERS = [
    {"decision": "allow"},
    {"decision": "deny", "message": "Not now."},
    {"decision": "answer", "text": "It was done by hand."},
]


class Api:
    """The questions of a gateway, over its API."""

    def __init__(self, gateway):
        self.gateway = gateway
        link = subprocess.run(
            [TOOLGATE, "console", "--config", str(gateway.config), "--listen", gateway.url.removeprefix("http://")],
            env={"PATH": os.environ["PATH"], "HOME": str(gateway.folder / "home")},
            capture_output=True,
            text=True,
            check=True,
        )
        self.token = link.stdout.split("#token=")[1].strip()

    def send(self, path, body=None):
        """The status and the JSON of an answer; (0, None) if the gateway is dead."""
        request = urllib.request.Request(
            f"{self.gateway.url}/console/api/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.load(refusal)
        except (OSError, ValueError, urllib.error.URLError):
            return 0, None


class Person(threading.Thread):
    """Answers every question it sees, after a random time."""

    def __init__(self, api, choices):
        super().__init__(daemon=True)
        self.api, self.choices = api, choices
        self.seen, self.accepted, self.lost = set(), {}, set()
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.is_set():
            status, listed = self.api.send("approvals?state=waiting")
            for question in listed["approvals"] if status == 200 else []:
                self.seen.add(question["id"])
                time.sleep(self.choices.uniform(0, MAX_ANSWER_DELAY_SECONDS))
                answer = self.choices.choice(ANSWERS)
                status, _ = self.api.send(f"approvals/{question['id']}", answer)
                if status == 200:
                    expect(question["id"] not in self.accepted, "accepted twice", question["id"])
                    self.accepted[question["id"]] = answer["decision"]
                elif status == 0:
                    self.lost.add(question["id"])  # it may or may not have counted
                else:
                    expect(status in (404, 409, 410), "an unexpected status", status)
            time.sleep(0.02)


class Suite:
    """One gateway, two people, and a request for each kill."""

    def __init__(self, name, program):
        self.name = name
        self.choices = random.Random(f"{SEED} {name}")
        self.folder = Path(tempfile.mkdtemp(prefix="toolgate-questions-"))
        self.gateway = Gateway(self.folder, program, "questions", rules=["ask *"])
        self.api = Api(self.gateway)
        self.people = [Person(self.api, random.Random(f"{SEED} {name} {number}")) for number in range(2)]
        self.outcomes = {}
        for person in self.people:
            person.start()

    def request(self, number):
        command = {"command": f"mktemp ran-{number}-XXXXXX", "description": "d"}
        script_model("questions", [turn("", (f"own{number}", "Bash", command)), turn(f"All is done, {number}.")])
        api = list(APIS)[number % len(APIS)]
        conversation = Conversation(api, self.gateway.url, "questions", f"{self.name} {SEED}")
        conversation.add_user_text(f"{self.name}, {SEED}, request {number}")
        victim, delay = self.choices.choice(["process", "supervisor", "gateway"]), self.choices.uniform(0, MAX_KILL_DELAY_SECONDS)
        killed = threading.Event()
        timer = threading.Timer(delay, self.kill, (victim, killed))
        timer.start()
        tries, answer, failures = 0, None, []
        while answer is None:
            tries += 1
            expect(tries <= MAX_TRIES, "no answer", failures)
            try:
                answer = conversation.ask(self.choices.random() < 0.5)
            except Exception as why:
                failures.append(f"{type(why).__name__}: {str(why)[:200]}")
                expect(killed.wait(TIMEOUT_SECONDS), "a failure without a kill", why)
                conversation.connect(self.gateway.url)
        timer.join()
        killed.wait(TIMEOUT_SECONDS)
        resolved = self.check_outcomes()
        about_this = [one for one in resolved if f"ran-{number}-" in one["input"]["command"]]
        ran = len(list(self.gateway.workdir.glob(f"ran-{number}-*")))
        allowed = sum(one["resolution"].get("decision") == "allow" for one in about_this)
        expect(ran <= 1, "the command ran twice", ran)
        expect(ran <= allowed, "it ran without permission", about_this)
        return f"{victim} killed after {delay:.2f} s, {tries} tries, {len(about_this)} questions, ran {ran}"

    def kill(self, victim, killed):
        if victim == "gateway":
            self.gateway.kill()
            self.gateway.start()
        else:
            self.gateway.kill_processes(SUPERVISE_COMMAND if victim == "supervisor" else b"")
        killed.set()

    def check_outcomes(self):
        """All resolved questions, after every question of the last request has ended."""
        began = time.monotonic()
        while True:
            status, waiting = self.api.send("approvals?state=waiting")
            if status == 200 and not waiting["approvals"]:
                break
            expect(time.monotonic() - began < TIMEOUT_SECONDS, "a question never ends", waiting)
            time.sleep(0.02)
        resolved, before = [], ""
        while before is not None:
            status, page = self.api.send(f"approvals?state=decided&limit=100{before and f'&before={before}'}")
            expect(status == 200, "the list of outcomes", status, page)
            resolved += page["approvals"]
            before = page.get("next_before")
        ids = [one["id"] for one in resolved]
        expect(len(ids) == len(set(ids)), "a question is listed twice", ids)
        for one in resolved:
            before = self.outcomes.setdefault(one["id"], one["resolution"])
            expect(before == one["resolution"], "an outcome has changed", before, one["resolution"])
        for person in self.people:
            for id in person.seen:
                expect(id in self.outcomes, "a question has no outcome", id)
            for id, decision in person.accepted.items():
                expect(self.outcomes[id].get("decision") == decision, "an accepted answer is not the outcome", id)
        twice = set(self.people[0].accepted) & set(self.people[1].accepted)
        expect(not twice, "two answers were accepted", twice)
        return resolved

    def end(self):
        for person in self.people:
            person.is_over.set()
        for person in self.people:
            person.join(TIMEOUT_SECONDS)
        self.gateway.process.kill()
        self.gateway.process.wait()
        self.gateway.kill_processes()
        shutil.rmtree(self.folder, ignore_errors=True)


def run(name, program):
    suite = Suite(name, program)
    try:
        for number in range(KILLS):
            label = f"{name}, request {number}"
            try:
                yield f"{label}: {suite.request(number)}", None
            except Exception as why:
                yield label, f"{type(why).__name__}: {str(why)[:3000]}"
                return
        yield f"{name}: {len(suite.outcomes)} questions, each with one outcome", None
    finally:
        suite.end()


def main():
    print(f"SEED={SEED}, {KILLS} kills for each of {', '.join(PROGRAMS)}")
    passed = failed = 0
    for name, program in PROGRAMS.items():
        for fact, why in run(name, program):
            print(f"FAIL {fact}: {why}" if why else f"ok {fact}")
            passed, failed = passed + (why is None), failed + (why is not None)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
