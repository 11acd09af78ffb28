"""Pauses of Python's garbage collector."""

import gc

import numpy as np
import pytest

import netloop as trt
from netloop.process.garbage_collection import collection_paused
from tests.support.networks import chain


@pytest.fixture
def enabled():
    before = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if before else gc.disable)()


def test_collector_is_on_again_after_the_outermost_pause(enabled):
    with collection_paused:
        with collection_paused:
            assert not gc.isenabled()
        assert not gc.isenabled()

    assert gc.isenabled()


def test_collector_is_on_again_after_an_error(enabled):
    with pytest.raises(ZeroDivisionError), collection_paused:
        _ = 1 / 0

    assert gc.isenabled()


def test_collector_that_is_off_stays_off(enabled):
    gc.disable()
    with collection_paused:
        pass

    assert not gc.isenabled()


def test_compilation_pauses_the_collector_and_lets_it_run_afterwards(enabled, monkeypatch):
    seen = []
    infer = trt.IUnaryLayer.infer
    monkeypatch.setattr(trt.IUnaryLayer, "infer", lambda self, x: seen.append(gc.isenabled()) or infer(self, x))
    engine = trt.compile(chain(3))

    assert seen == [False] * 3
    assert gc.isenabled()
    assert engine({"x": np.ones(2, np.float32)})["y"].tolist() == [-1, -1]
