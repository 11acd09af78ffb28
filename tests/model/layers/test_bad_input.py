"""Wrong arguments of any layer raise netloop's errors, and never one of numpy or JAX."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

import netloop as trt
from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from tests.support.method_calls import METHODS, RECEIVERS, Method, methods_of

each_method = pytest.mark.parametrize("method", METHODS, ids=str)

OF_NO_USE = [object(), b"x", {1: 2}, {1}, trt.LayerType.SLICE, int, np.array([None])]
"""What no parameter takes."""

VALUES: list[Any] = [
    *(None, "x", True, 0, -1, 99, 2**31, 2**62, -(2**63), 2**63, 10**400),
    *(0.5, float("nan"), float("inf"), np.float64(2), np.complex64(1j)),
    *([], [0.5], ["a"], [None], [0, 0], [-5, -5], [99, 99], [2**40, 2**40], [2**63], [1] * 8, [1] * 9),
    *(np.ones((2, 2)), np.ones(2, np.float16), np.ones((2, 2), np.float32).T, np.ones(2, np.complex64)),
    *(trt.Weights(trt.float16), trt.fp4, trt.int32),
]
"""What some parameters take, within limits."""

SHAPES = [(), (0,), (7,), (-1, -1), (2, 3, 4, 5, 6), (1,) * 8]

ODD_TYPES = [(trt.bool, ()), (trt.int4, (2,)), (trt.float64, (0,)), (trt.int64, (-1,)), (trt.e8m0, (1,) * 8)]

PROBLEM = re.compile(r"NL\d{3}: .+\n  at .+:\d+, I\w+ '.*'\n(  called from .+\n)?  because .+(\n  fix: .+)?", re.DOTALL)


@pytest.mark.parametrize("cls", RECEIVERS, ids=lambda cls: cls.__name__)
def test_every_method_that_adds_a_layer_is_tried(cls):
    assert set(methods_of(cls)) == {method.name for method in METHODS if method.cls is cls}


@each_method
def test_argument_of_no_use_is_a_type_error_that_names_it(method):
    for name in method.prepare()[1]:
        for value in OF_NO_USE:
            network, arguments, call = method.prepare()
            arguments[name] = value
            with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
                call(**arguments)
            assert not any(type(layer) is not trt.IConstantLayer for layer in network)


@each_method
def test_value_that_does_not_fit_is_told(method):
    for name, good in method.prepare()[1].items():
        for value in VALUES if not isinstance(good, ITensor) else VALUES[:3]:
            network, arguments, call = method.prepare()
            arguments[name] = value
            check_told(network, name, partial(call, **arguments))


@each_method
def test_attribute_that_is_set_to_what_does_not_fit_is_told(method):
    for name in layer_of(method)[1].ATTRIBUTES:
        for value in [*VALUES, *OF_NO_USE]:
            network, layer = layer_of(method)
            check_told(network, name, partial(setattr, layer, name, value))


@each_method
def test_tensor_that_does_not_fit_is_told(method):
    for name in tensors_of(method):
        for dtype, shape in misfits(method.prepare()[1][name]):
            network, arguments, call = method.prepare()
            arguments[name] = network.add_input("misfit", dtype, shape)
            check_told(network, name, partial(call, **arguments))


@each_method
def test_tensor_that_does_not_fit_is_told_when_it_is_set_later(method):
    _, layer = layer_of(method)
    for index in range(max(layer.MAX_INPUTS, layer.num_inputs)):
        for dtype, shape in ODD_TYPES:
            network, layer = layer_of(method)
            tensor = network.add_input("misfit", dtype, shape)
            check_told(network, "tensor", partial(layer.set_input, index, tensor))
        for value in (None, "x", 3, layer):
            with pytest.raises(TypeError, match=r"\btensor must be an ITensor"):
                layer.set_input(index, value)


@each_method
def test_tensor_of_another_network_is_refused(method):
    foreign = trt.INetworkDefinition().add_input("foreign", trt.float32, (2,))
    for name in tensors_of(method):
        network, arguments, call = method.prepare()
        before = len(network)
        arguments[name] = foreign
        with pytest.raises(trt.NetworkError, match="NL103: tensor 'foreign' belongs to another network"):
            call(**arguments)
        assert len(network) == before
    _, layer = layer_of(method)
    if layer.num_inputs:
        with pytest.raises(trt.NetworkError, match="NL103"):
            layer.set_input(0, foreign)


@each_method
def test_some_element_type_of_every_tensor_is_refused(method):
    if method.name in ANY_TYPE:
        return
    for name in tensors_of(method):
        good = method.prepare()[1][name]
        refused = [dtype for dtype in trt.DataType if errors(method, name, dtype, tuple(good.shape))]
        assert refused, name


ANY_TYPE = {
    "add_cast",
    "add_identity",
    "add_shape",
    "add_shuffle",
    "add_slice",
    "add_input",
    "add_recurrence",
    "add_optional",
    "add_optional_get",
    "add_optional_has",
    "add_sequence_split",
} | {
    *("add_squeeze", "add_unsqueeze", "add_padding_nd", "add_resize", "add_iterator", "add_loop_output"),
    *("add_reverse_sequence", "add_gather", "add_gather_v2", "add_one_hot", "add_dist_collective"),
}


# ---------------------------------------------------------------------------- helpers


def check_told(network: trt.INetworkDefinition, name: str, act: Callable[[], Any]) -> None:
    """What an act does wrong is an error that names ``name``, or findings in their form; or it is nothing."""
    told = ""
    try:
        act()
    except (TypeError, ValueError, AttributeError) as error:
        told = str(error)
    assert not told or re.search(rf"\b{name}\b", told), told
    for finding in trt.check(network):
        assert finding.code == "NL105" or finding.severity is not trt.Severity.ERROR or PROBLEM.fullmatch(str(finding))


def layer_of(method: Method) -> tuple[trt.INetworkDefinition, ILayer]:
    """A layer that a method added, in its network."""
    network, arguments, call = method.prepare()
    call(**arguments)
    return network, network[-1]


def tensors_of(method: Method) -> list[str]:
    """The parameters that take a tensor."""
    return [name for name, good in method.prepare()[1].items() if isinstance(good, ITensor)]


def misfits(good: ITensor) -> Iterator[tuple[trt.DataType, tuple[int, ...]]]:
    """Types near that of a tensor that fits."""
    yield from ((dtype, tuple(good.shape)) for dtype in trt.DataType)
    yield from ((good.dtype, shape) for shape in SHAPES)
    yield from ((good.dtype, (length,) * len(good.shape)) for length in (0, -1, 5))


def errors(method: Method, name: str, dtype: trt.DataType, shape: tuple[int, ...]) -> list[trt.Finding]:
    """What is wrong with a layer that reads a tensor of a type."""
    network, arguments, call = method.prepare()
    arguments[name] = network.add_input("tried", dtype, shape)
    with suppress(trt.NetworkError):
        call(**arguments)
    return [finding for finding in trt.check(network) if finding.code == "NL401"]
