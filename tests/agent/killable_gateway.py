"""A gateway with one agent that a test kills and restarts."""

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from conversation import MODEL, TIMEOUT_SECONDS

TOOLGATE = os.environ["TOOLGATE"]
# The subcommand that runs the supervisor of an agent process.
SUPERVISE_COMMAND = b"keep-agent"


def expect(fact, *seen):
    if not fact:
        raise AssertionError("got " + ", ".join(repr(value) for value in seen))


class Gateway:
    """A gateway with one agent, whose model is the play `name`. It can be killed and restarted with the same store."""

    def __init__(self, folder, program, name, rules):
        self.folder = folder
        agent = folder / "home/.local/share/toolgate/agents" / name
        self.processes_folder, self.workdir = agent / "run", agent / "work"
        self.config = folder / "toolgate.toml"
        self.config.write_text(
            f"""listen = "127.0.0.1:0"
store = "sqlite:{folder}/toolgate.db"
[approvals]
rules = {json.dumps(rules)}
[agents.{name}]
command = "{program}"
tools = ["Bash"]
warm = 1
max = 3
env = {{ ANTHROPIC_BASE_URL = "{MODEL.removesuffix('/v1')}", ANTHROPIC_API_KEY = "k", ANTHROPIC_MODEL = "play/{name}" }}
[models.{name}]
agent = "{name}"
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
        """The agent's processes, their supervisors and descendants: all with a private home. With `command`, only
        those whose command line contains it."""
        home = b"HOME=" + str(self.processes_folder).encode() + b"/"
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if home in (entry / "environ").read_bytes() and command in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:  # it has ended, or is not readable
                continue
        return found

    def kill_processes(self, command=b""):
        """Kills them all, also warm ones and those that wait for their client."""
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
            expect(time.monotonic() - began < TIMEOUT_SECONDS, "a process outlives the gateway", self.processes())
            time.sleep(0.01)

    def stop(self):
        self.process.terminate()
        self.process.wait(TIMEOUT_SECONDS)
        expect(not self.processes(), "a process outlives the gateway", self.processes())
