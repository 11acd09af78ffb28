"""A sandboxed model in a fork of its process: the process of the model is that of the parent."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from netloop.tools.sandbox import load, process
from tests.tools.sandbox.test_process import FLOATS, READY, frame

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

ROOT = Path(__file__).parents[3]
SECONDS = 60
SCRIPT = f"""
import sys
def get():
    sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "big"))
def put(data):
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
get()
put({frame(READY)!r})
while True:
    get()
    put({frame({"values": FLOATS}, bytes(8))!r})
"""
"""Takes the place of the process of a model."""


def in_fork(act) -> None:
    """Run a function in a fork, which then ends as a script does; end it when its time is over."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        act()
        sys.exit(0)
    end = time.monotonic() + SECONDS
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            print("hangs")
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return
        time.sleep(0.01)


def call(model) -> None:
    try:
        print(sorted(model()))
    except Exception as error:
        print(type(error).__name__, str(error).partition("\n")[0])


def main() -> None:
    """The script of the test, in a process of its own: pytest's has threads of other tests."""
    process.COMMAND = [sys.executable, "-S", "-c", SCRIPT]
    for act in ("exits", "forgets", "closes", "calls", "calls while the parent does"):
        models = [load("m.plan", seconds=SECONDS)]
        model, pid = models[0], models[0].pid
        acts = {"forgets": lambda kept=models: forget(kept), "closes": model.close, "exits": lambda: None}
        if act == "calls while the parent does":
            # as a thread does whose call is in progress
            threading.Thread(target=model._process._lock.acquire, daemon=True).start()
        del model
        in_fork(acts.get(act, lambda kept=models: call(kept[0])))
        if act == "calls while the parent does":
            models[0]._process._lock.release()
        print(act, models[0].pid == pid, end=" ", flush=True)
        call(models[0])
        models[0].close()


def forget(models) -> None:
    models.clear()
    gc.collect()


def test_fork_leaves_the_model_to_its_parent():
    command = [
        sys.executable,
        "-W",
        "error::ResourceWarning",
        "-c",
        "from tests.tools.sandbox.test_forks import main; main()",
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=4 * SECONDS)
    refused = "SandboxError NL634: the process of 'm.plan' belongs to the process from which this one was forked"

    assert ran.stdout.splitlines() == [
        "exits True ['y']",
        "forgets True ['y']",
        "closes True ['y']",
        refused,
        "calls True ['y']",
        refused,
        "calls while the parent does True ['y']",
    ], ran.stderr
    assert "ResourceWarning" not in ran.stderr
