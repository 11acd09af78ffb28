"""Several callers of one engine."""

import threading

import numpy as np
import pytest

import netloop as trt
from netloop.tools.cli.callers import throughput
from tests.support.networks import mark


@pytest.mark.timeout(60)
def test_call_that_fails_ends_the_measurement(network):
    x = network.add_input("x", trt.float32, (2,))
    network.add_assertion(network.add_input("ok", trt.bool, ()), "it is ok")
    engine = trt.compile(mark(network, y=network.add_identity(x).get_output(0)))
    calls = threading.Semaphore(5)

    class Failing(dict):
        """Inputs of which the first five calls succeed."""

        def __getitem__(self, name):
            if name == "ok":
                return np.bool_(calls.acquire(blocking=False))
            return super().__getitem__(name)

    with pytest.raises(trt.ExecutionError, match="it is ok"):
        throughput(engine, Failing(x=np.ones(2, np.float32), ok=None), callers=3, duration=30)
