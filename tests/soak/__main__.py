"""The soak: ``python -m tests.soak 60`` runs it for a minute, and prints the memory of the process over time.

Threads share engines, and call, refit, serialize and compile at the same time, with errors in between; processes of
their own are interrupted, and run out of memory. Each result is compared with the reference. It fails if a result
differs, an error is not the reference's, or the process grows.
"""

import sys
import threading
import time
from random import Random

import netloop as trt
from tests.soak.children import interrupt_calls, press_memory
from tests.soak.health import Sample, sample, violations
from tests.soak.subjects import long_subject, subjects
from tests.soak.workers import (
    Worker,
    call,
    call_refitted,
    compile_networks,
    of_a_convolution,
    of_constants,
    refit,
    reload,
    reshape,
    run_contexts,
)

SAMPLES = 60
"""The number of measurements of a soak."""
MOST_GROWTH = 1.0
"""The growth of the memory in MiB a minute, after the warm-up, that is taken for noise of the allocator."""
PATIENCE = 120
"""The seconds within which each thread must have ended after it was stopped."""


def workers(stop: threading.Event) -> list[Worker]:
    """The threads, not yet started."""
    shared = [(subject, trt.compile(subject.network)) for subject in subjects()]
    long = long_subject()
    chunked = (long, trt.compile(long.network, interruptible=True))
    refitted = [of_constants(), of_a_convolution()]
    work = {
        "call": call([*shared, chunked], Random(1)),
        "call too": call(shared, Random(2)),
        "run contexts": run_contexts(shared, Random(3)),
        "run contexts too": run_contexts([*shared, chunked], Random(4)),
        "reshape": reshape(Random(5)),
        "reload": reload(shared, Random(6)),
        "compile": compile_networks(Random(7)),
        "call what is refitted": call_refitted(refitted, Random(8)),
        "call what is refitted too": call_refitted(refitted, Random(9)),
        "refit": refit(refitted, Random(10)),
    }
    return [Worker(name, other, stop) for name, other in work.items()]


def soak(seconds: float) -> list[Sample]:
    """Run everything for some seconds, and return the measurements.

    Raises:
        AssertionError: a result is wrong, a thread does not end, or the process grows.
    """
    stop, chance, samples = threading.Event(), Random(0), list[Sample]()
    threads, children = workers(stop), [interrupt_calls, press_memory]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    try:
        while time.monotonic() < began + seconds and not stop.is_set():
            samples.append(sample(began))
            print(f"{samples[-1].seconds:6.0f} s {samples[-1].rss:8.1f} MiB, {samples[-1][2:]}", flush=True)
            if len(samples) % 10 == 5:
                children[len(samples) // 10 % 2](chance)
            stop.wait(seconds / SAMPLES)
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
    print(", ".join(f"{thread.name}: {thread.done}" for thread in threads))
    for thread in threads:
        if thread.error is not None:
            raise AssertionError(f"the thread {thread.name!r} failed after {thread.done} rounds") from thread.error
        assert not thread.is_alive(), f"the thread {thread.name!r} hangs"
        assert thread.done, f"the thread {thread.name!r} did nothing"
    found = violations(samples, MOST_GROWTH)
    assert not found, "; ".join(found)
    return samples


if __name__ == "__main__":
    soak(float(sys.argv[1]))
