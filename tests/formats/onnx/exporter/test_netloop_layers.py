"""netloop's own layers in onnxruntime."""

import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.bits import IBitCastLayer
from netloop.model.layers.detection import IUniqueLayer
from netloop.values.types import NUMPY_TYPES
from tests.model.layers.test_bits import BITS
from tests.model.layers.test_detection import UNIQUE_BY_ONNX
from tests.model.layers.test_pooling import INDICES_BY_PYTORCH
from tests.support.laws import Case
from tests.support.layer_cases import network_of
from tests.support.networks import combine, constant, mark, scatter_with_reduction
from tests.support.onnx_runtime import export, run, run_by_reference
from tests.support.plugin_examples import backwards

BY_BITS = {trt.fp8, trt.e5m2, trt.fp4}
"""The types that only the onnx package's own runtime bit-casts."""


@pytest.mark.parametrize(("from_type", "to_type", "given", "expected"), BITS)
def test_bits_are_read_as_another_type(from_type, to_type, given, expected):
    x, wanted = np.array(given).astype(NUMPY_TYPES[from_type]), np.array(expected).astype(NUMPY_TYPES[to_type])
    network, arrays = network_of(Case("bits", IBitCastLayer(to_type=to_type), (x,), wanted, 0))
    by = run_by_reference if BY_BITS & {from_type, to_type} else run

    np.testing.assert_array_equal(by(export(network), arrays)["y0"], wanted, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, jnp.bfloat16, np.int64, np.uint8, np.uint32])
@pytest.mark.parametrize(("layer", "x", "values", "first", "like", "counts"), UNIQUE_BY_ONNX)
def test_unique_finds_what_onnx_finds(layer, x, values, first, like, counts, dtype):
    got = run(*exported(layer, np.array(x, dtype)))

    assert [got[f"y{position}"].tolist() for position in range(4)] == [values, first, like, counts]
    assert [got[f"y{position}"].dtype for position in range(4)] == [dtype, np.int32, np.int32, np.int32]


def test_unique_of_bool():
    assert run(*exported(IUniqueLayer(sorted=False), np.array([True, False, True])))["y0"].tolist() == [True, False]


def exported(layer, *arrays):
    network, inputs = network_of(Case("", layer, arrays, None), dynamic=True)
    return export(network), inputs


@pytest.mark.parametrize(("layer", "x", "wanted"), INDICES_BY_PYTORCH)
def test_indices_are_those_of_pytorch(layer, x, wanted):
    network, inputs = network_of(Case("", layer, (np.concatenate([x, x]),), None))
    got = run(export(network), inputs)["y0"]

    assert got.dtype == np.int32
    assert got.ravel().tolist() == [*np.ravel(wanted), *np.ravel(wanted)]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint16, np.int32, np.uint32])
def test_maximum_of_integers(dtype):
    network = trt.INetworkDefinition()
    x = np.array([[[7, 3, 100, 0, np.iinfo(dtype).max - 1]]], dtype)
    tensor = network.add_input("x", trt.DataType(NUMPY[np.dtype(dtype)]), (1, 1, -1))
    mark(
        network,
        y=network.add_pooling_nd(tensor, trt.PoolingType.MAX, (2,)).get_output(0),
        at=network.add_pooling_indices(tensor, (2,)).get_output(0),
    )
    got = run(export(network), {"x": x})

    np.testing.assert_array_equal(got["y"], np.maximum(x[..., :-1], x[..., 1:]), strict=True)
    assert got["at"].tolist() == [[[0, 2, 2, 4]]]


NUMPY = {dtype: name for name, dtype in NUMPY_TYPES.items()}


@pytest.mark.parametrize(("a", "b"), [(5.5, 2.0), (-5.5, 2.0), (5.5, -2.0), (-4.0, 2.0), (1.0, np.inf)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_remainders_of_float_divisions(a, b, dtype):
    network = trt.INetworkDefinition()
    x = network.add_input("x", NUMPY[np.dtype(dtype)], ())
    divisor = constant(network, b, dtype)
    mod, fmod = trt.ElementWiseOperation.MOD, trt.ElementWiseOperation.FMOD
    mark(network, mod=combine(network, x, divisor, mod), fmod=combine(network, x, divisor, fmod))
    got = run(export(network), {"x": dtype(a)})

    assert got == {"mod": a % b, "fmod": np.fmod(a, b)}


def refused(network, wanted):
    with pytest.raises(trt.NetworkError, match="NL731") as caught:
        export(network)
    assert wanted in str(caught.value)


def test_plugin_is_refused():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    mark(network, y=network.add_plugin_v3([x], [], backwards()).get_output(0))

    refused(network, "is a plugin, and cannot be written as ONNX")


def test_maximum_of_long_integers_is_refused():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.int64, (1, 1, 4))
    mark(network, y=network.add_pooling_nd(x, trt.PoolingType.MAX, (2,)).get_output(0))

    refused(network, "pools int64")


def test_index_in_a_window_of_padding_is_refused():
    network = trt.INetworkDefinition()
    layer = network.add_pooling_indices(network.add_input("x", trt.float32, (1, 1, 4)), (1,))
    layer.padding_nd = (1,)
    mark(network, y=layer.get_output(0))

    refused(network, "may have windows that contain only padding")


def test_older_opset_without_an_operator_is_refused():
    network = trt.INetworkDefinition()
    mark(network, y=network.add_bit_cast(network.add_input("x", trt.float32, (2,)), trt.int32).get_output(0))

    assert export(network).opset_import[0].version == 26
    with pytest.raises(trt.NetworkError, match="needs ONNX's BitCast"):
        export(network, opset=25)


@pytest.mark.parametrize("reduction", ["SUM", "PROD", "MAX", "MIN"])
@pytest.mark.parametrize("mode", [trt.ScatterMode.ND, trt.ScatterMode.ELEMENT])
def test_scatter_keeps_its_reduction(mode, reduction):
    network = scatter_with_reduction(mode, trt.ReduceOperation.__members__[reduction])
    x = np.arange(1, 7, dtype=np.float32).reshape(3, 2)

    np.testing.assert_array_equal(run(export(network), {"x": x})["y"], trt.evaluate(network, {"x": x})["y"])
