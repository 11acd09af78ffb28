"""Services, and the objects like them, in a fork of their process: a call is an error, and never waits for a thread."""

import os
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import netloop as trt
from netloop.serve import Sequences, Server, Step, Streams
from tests.process.test_forked import in_fork
from tests.tools.serve.test_sequences import SECONDS, Gate, mixing
from tests.tools.serve.test_server import affine, rows
from tests.tools.serve.test_streams import endless, number

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

ROOT = Path(__file__).parents[3]
REFUSED = "ExecutionError: NL612: this process was forked from one that had used JAX, so JAX does not work in it"


class Parent:
    """Objects with requests that are done, that run and that wait."""

    def __init__(self):
        empty = trt.INetworkDefinition
        self.engine, self.steps = trt.compile(affine(empty())), trt.compile(mixing(empty()))
        self.server, self.batches = Server(self.engine, (1,)), trt.Batches(self.engine, (1, 4))
        self.sequences, self.stepper = (
            Sequences(self.steps, {"s": "sn"}, sizes=(1,)),
            trt.Stepper(self.steps, {"s": "sn"}),
        )
        self.streams, self.slots = (
            f(trt.SlotEngine(endless(empty()), slots=1)) for f in (Streams, lambda value: value)
        )
        self.done = self.server.submit(rows(1))
        self.done.result(SECONDS)
        self.gate = Gate(self.server)
        self.running = self.server.submit(rows(2))
        assert self.gate.reached.wait(SECONDS)
        self.waiting = self.server.submit(rows(3))
        self.stream = self.streams.rows(number(5))
        next(self.stream)
        self.request = self.slots.submit(number(1))
        self.slots.step()

    def acts(self):
        server, sequences, streams, slots = self.server, self.sequences, self.streams, self.slots
        return {
            "engine": lambda: self.engine(rows(1)),
            "batches": lambda: self.batches(rows(1, 2)),
            "batches, compile": lambda: self.batches.compile(rows(1)),
            "server": lambda: server(rows(1)),
            "server, submit": lambda: server.submit(rows(1), timeout=1),
            "server, call_all": lambda: server.call_all([rows(1)]),
            "server, metrics": server.metrics,
            "server, compile": lambda: server.compile(rows(1)),
            "server, reload": lambda: server.reload(self.engine),
            "server, new": lambda: Server(self.engine),
            "future that runs": lambda: self.running.result(),
            "future that waits": lambda: self.waiting.exception(),
            "sequences": lambda: sequences.step(1, number(1), start=True),
            "sequences, step_all": lambda: sequences.step_all([Step(1, number(1), True)]),
            "sequences, compile": sequences.compile,
            "sequences, reload": sequences.reload,
            "streams": lambda: streams(number(1)),
            "streams, rows": lambda: [*streams.rows(number(1))],
            "streams, rows that run": lambda: [*self.stream],
            "streams, reload": lambda: streams.reload(slots),
            "slots": lambda: slots.submit(number(1)),
            "slots, step": slots.step,
            "slots, run": lambda: [*slots.run([number(1)])],
            "slots, result": self.request.result,
            "slots, rows": lambda: [*self.request.rows()],
            "stepper": lambda: self.stepper(number(1)),
            "stepper, reset": self.stepper.reset,
        }

    def harmless(self):
        return {
            "server": self.server.close,
            "sequences": self.sequences.close,
            "streams": lambda: self.streams.__exit__(),
            "stream": self.stream.close,
            "future": self.waiting.cancel,
            "request": self.request.cancel,
            "result": lambda: self.done.result(),
        }

    def locks(self):
        services = [server._changed for server in (self.server, self.sequences, self.streams)]
        programs = [engine.executable._programs._programs._lock for engine in (self.engine, self.steps)]
        return [*services, *programs, self.slots._lock, self.stepper._lock, self.sequences._program._lock]


def main() -> None:
    """The script of the test, in a process of its own: pytest's has threads of other tests."""
    parent, held, free = Parent(), threading.Event(), threading.Event()

    def hold():
        # as a thread of the parent does at any time
        with ExitStack() as stack:
            for lock in parent.locks():
                stack.enter_context(lock)
            held.set()
            free.wait(4 * SECONDS)

    holding = threading.Thread(target=hold, daemon=True)
    holding.start()
    assert held.wait(SECONDS)
    for name, act in {**parent.acts(), **{f"{name}, harmless": act for name, act in parent.harmless().items()}}.items():
        print(f"{name}: {in_fork(act)}", flush=True)
    free.set()
    holding.join(SECONDS)
    parent.gate.open()
    print("parent:", *(int(future.result(SECONDS)["y"][0, 0]) for future in (parent.running, parent.waiting)))
    print("parent:", int(next(parent.stream)["all"]), len(parent.slots.step()), parent.request.state)
    print("parent:", parent.sequences.step(1, number(1), start=True)["y"], np.asarray(parent.stepper(number(1))["y"]))
    for server in (parent.server, parent.sequences, parent.streams):
        server.close()


def test_fork_refuses_calls_of_services_and_closes_them_without_harm():
    command = [sys.executable, "-W", "ignore", "-c", "from tests.tools.serve.test_forks import main; main()"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=4 * SECONDS)
    *lines, first, second, third = ran.stdout.splitlines() or [ran.stderr] * 3
    said = dict(line.split(": ", 1) for line in lines)

    harmless = {name: word for name, word in said.items() if name.endswith(", harmless")}
    assert {name: word for name, word in said.items() if word != REFUSED} == harmless, ran.stderr
    assert len(said) - len(harmless) == 27, ran.stderr
    assert [*harmless.values()] == ["returns NoneType"] * 4 + ["returns bool", "returns NoneType", "returns dict"]
    assert [first, second, third] == ["parent: 4 6", "parent: 5 0 running", "parent: 8 8"]
