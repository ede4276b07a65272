"""Serves a small real model with llama.cpp, on a free port, until stdin is closed.

The argument is the path of the weights. Prints the server's address when it is ready.
"""

import sys
from pathlib import Path

import xllamacpp

# Each kind of prompt in the suite keeps a slot, so that it is evaluated once.
SLOTS = 4
CONTEXT_TOKENS = SLOTS * 2048


def main():
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = SLOTS
    params.use_jinja = True
    params.chat_template = (Path(__file__).parent / "template.jinja").read_text()
    # Several threads wait for each other at every step, which is slow on a busy machine.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    # The most probable token each time, so that runs are alike.
    params.sampling.temp = 0
    server = xllamacpp.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    sys.stdin.read()


main()
