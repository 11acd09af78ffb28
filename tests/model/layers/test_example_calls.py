"""The example call of every method that adds a layer: its layer obeys the laws on random inputs."""

from contextlib import suppress
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.model.graph.layer import ILayer
from netloop.model.layers.conditional import IIfConditionalBoundaryLayer
from netloop.model.layers.loop import ILoopBoundaryLayer
from netloop.model.plan.layer_kinds import kinds
from netloop.values.diagnostics import LayerError
from netloop.values.map_types import MapType
from netloop.values.string_arrays import STRING
from netloop.values.types import UNKNOWN, OptionalType, SequenceType, TensorType
from tests.support.laws import Case, assert_close, check_laws
from tests.support.layer_specs import CALLS, Tensors

WEIGHTS = [np.full(shape, 0.5, np.float32) for shape in [(2, 3, 4), (2, 3, 4), (2, 4, 3)]]


def added(method: str, network: trt.INetworkDefinition | None = None) -> tuple[trt.INetworkDefinition, ILayer]:
    """A network with the layer of an example call, and with what that needs beyond the arguments of its method."""
    network = trt.INetworkDefinition() if network is None else network
    tensors = Tensors(network)
    layer = getattr(network, method)(**CALLS[method](tensors))
    if isinstance(layer, trt.IMoELayer):
        layer.set_gated_weights(*(tensors.constant(weight, np.float32) for weight in WEIGHTS), trt.MoEActType.SILU)
    if isinstance(layer, trt.IResizeLayer):
        layer.shape = (4, 3)
    return network, layer if isinstance(layer, ILayer) else network[-1]


def array(type: TensorType) -> np.ndarray:
    """Random numbers: 0 and 1 for integers, which every call takes as index or length."""
    chance = np.random.default_rng(0)
    drawn = chance.integers(0, 2, type.shape) if type.dtype.kind in "biu" else chance.normal(size=type.shape)
    return np.asarray(drawn).astype(type.dtype)


def value(type: TensorType) -> Any:
    """The value of a tensor where the network gives it, else a random one; of sequences, two tensors."""
    if isinstance(type, MapType):
        return {1: 0.5, 3: 2.0}
    if isinstance(type, SequenceType | OptionalType):
        element = type.element if isinstance(type.element, TensorType) else TensorType(type.dtype, type.element)
        return [array(element)] * 2 if isinstance(type, SequenceType) else array(element)
    return array(type) if type.value is None else type.value


def is_plain(layer: ILayer) -> bool:
    """Whether a layer maps arrays to arrays whose shapes are known without running it."""
    types = [tensor.type for tensor in (*layer.inputs, *layer.outputs) if tensor is not None]
    return all(type_.is_tensor and not type_.is_string and UNKNOWN not in type_.shape for type_ in types)


LAYERS = {method: added(method)[1] for method in CALLS}
PLAIN = [method for method, layer in LAYERS.items() if layer.outputs and is_plain(layer)]
OTHERS = [method for method, layer in LAYERS.items() if layer.outputs and not is_plain(layer)]


def example(method: str) -> Case:
    """The layer of a method, and random numbers for its inputs."""
    _, layer = added(method)
    return Case(method, layer, tuple(None if tensor is None else value(tensor.type) for tensor in layer.inputs))


@pytest.mark.parametrize("case", [example(method) for method in PLAIN], ids=str)
def test_layer_obeys_the_laws(case):
    check_laws(case)


EXTREME = [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-40, 0.0]


def extreme(of: np.ndarray, start: int) -> np.ndarray:
    """The extreme floating-point numbers in turn, in the shape of an array; integers stay as they are."""
    if of.dtype.kind in "biu" or of.dtype == STRING or of.dtype.itemsize < 2:
        return of
    with np.errstate(all="ignore"):
        return np.resize(np.roll(np.float64(EXTREME), start), of.shape).astype(of.dtype)


@pytest.mark.parametrize("method", PLAIN)
def test_reference_computes_extreme_numbers_without_warnings(method):
    """A warning of numpy fails a test; in a script that makes errors of warnings, it would end the evaluation."""
    _, layer = added(method)
    inputs = [None if tensor is None else value(tensor.type) for tensor in layer.inputs]
    for start in range(len(EXTREME)):
        given = [None if tensor is None else extreme(tensor, start) for tensor in inputs]
        for compute in (layer.evaluate, layer.host_value):
            with suppress(LayerError):
                compute(*given, **({"trips": (0,)} if layer.draws else {}))


@pytest.mark.parametrize("method", OTHERS)
def test_engine_gives_what_the_reference_means(method):
    network, layer = added(method)
    for tensor in layer.outputs:
        network.mark_output(tensor)
    inputs = {tensor.name: value(tensor.type) for tensor in network.inputs}

    got, wanted = (jax.tree.leaves(run(inputs)) for run in (trt.compile(network), partial(trt.evaluate, network)))
    assert got
    for one, other in zip(got, wanted, strict=True):
        assert_close(np.asarray(one), np.asarray(other), 1e-6)


def test_every_kind_of_layer_has_an_example_call_or_is_of_a_boundary():
    boundary = {kind for kind in kinds().values() if issubclass(kind, ILoopBoundaryLayer | IIfConditionalBoundaryLayer)}

    assert {type(layer) for method in CALLS for layer in added(method)[0].layers} == set(kinds().values()) - boundary
