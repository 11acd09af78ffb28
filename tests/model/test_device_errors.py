"""A lack of memory is an error with a code, on every path."""

import os

import numpy as np
import pytest

import netloop as trt
from netloop.model.device_errors import completed, device_finding, require_memory
from netloop.model.layers.detection import INonZeroLayer


def filled(network: trt.INetworkDefinition, length: int | None) -> trt.INetworkDefinition:
    """A network that fills a vector of a length, or of the input ``n``."""
    layer = network.add_fill((length or 0,), trt.FillOperation.LINSPACE)
    layer.name = "culprit"
    if length is None:
        layer.set_input(0, network.add_input("n", trt.int64, (1,)))
    network.mark_output(layer.get_output(0))
    return network


@pytest.mark.parametrize("run", [lambda network: trt.compile(network)({}), lambda network: trt.evaluate(network, {})])
def test_output_without_memory_is_an_execution_error(network, run):
    with pytest.raises(trt.ExecutionError, match=r"NL608: the device gave up: .*(memory|allocate)") as caught:
        run(filled(network, 2**38))
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    "run", [lambda network: trt.compile(network), lambda network: lambda x: trt.evaluate(network, x)]
)
def test_length_of_a_call_without_memory_is_an_execution_error(network, run):
    with pytest.raises(trt.ExecutionError, match="NL608"):
        run(filled(network, None))({"n": np.array([2**37])})


def test_outputs_beyond_all_memory_are_refused_before_xla_compiles_them(network, monkeypatch):
    """A release of XLA ends the process where it compiles them."""
    monkeypatch.setattr("netloop.compiler.xla_compilation.compile_lowered", lambda *_: pytest.fail("it compiles"))

    with pytest.raises(trt.ExecutionError, match=r"NL608: .*outputs of 1,099,511,627,776 bytes cannot be allocated"):
        trt.compile(filled(network, 2**38))({})


@pytest.mark.parametrize("shape", [(2**31 - 1, 0), (2, 2**30, 0, 3)])
def test_empty_rows_for_which_xla_would_need_minutes_are_refused(network, monkeypatch, shape):
    monkeypatch.setattr("netloop.compiler.xla_compilation.compile_lowered", lambda *_: pytest.fail("it compiles"))
    x = network.add_input("x", trt.float32, shape)
    network.mark_output(network.add_unary(x, trt.UnaryOperation.NEG).get_output(0))

    with pytest.raises(trt.ExecutionError, match=r"NL608: .*cannot write the 2,147,483,64. empty rows"):
        trt.compile(network)({"x": np.zeros(shape, np.float32)})


def test_axis_behind_one_without_elements_may_have_any_length(network):
    x = network.add_input("x", trt.float32, (2, 0, 2**31 - 1))
    y = network.add_unary(x, trt.UnaryOperation.NEG).get_output(0)
    network.mark_output(y)

    outputs = trt.compile(network)({"x": np.zeros(x.shape, np.float32)})

    assert outputs[y.name].shape == (2, 0, 2**31 - 1)


def test_outputs_that_are_swapped_out_have_room():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    require_memory([np.broadcast_to(np.int8(0), memory), np.broadcast_to(np.int8(0), memory)])
    with pytest.raises(MemoryError):
        require_memory([np.broadcast_to(np.int16(0), memory), np.int8(0)])


def test_system_that_does_not_say_how_much_memory_it_has_refuses_no_outputs(monkeypatch):
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": -1}.get)

    require_memory([np.int8(0)])


def test_layer_on_the_host_without_memory_is_named(network, monkeypatch):
    def host_value(layer: INonZeroLayer, x: np.ndarray) -> np.ndarray:
        raise MemoryError

    monkeypatch.setattr(INonZeroLayer, "value_in_run", host_value)
    layer = network.add_non_zero(network.add_input("x", trt.bool, (3,)))
    layer.name = "culprit"
    network.mark_output(layer.get_output(0))

    with pytest.raises(trt.ExecutionError, match=r"NL608: (?s:.*)INonZeroLayer 'culprit'"):
        trt.compile(network)({"x": np.ones(3, bool)})


def test_finding_of_an_error_without_words_has_some():
    assert "there is no memory left" in device_finding(MemoryError()).what


def test_completed_results_are_the_results():
    results = {"a": [np.ones(2)], "b": None}

    assert completed(results) is results
