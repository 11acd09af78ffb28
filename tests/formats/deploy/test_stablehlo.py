"""Networks as StableHLO."""

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler import recipe
from tests.support import networks


@pytest.mark.parametrize("name", ["both limits, WHILE first"])
def test_program_computes_what_the_network_does(name, tmp_path):
    made, inputs, outputs = networks.EXAMPLES[name]
    program = trt.stablehlo.exported(made())
    trt.stablehlo.save(program, tmp_path / "a.stablehlo", as_text=False)
    loaded = jax.export.deserialize(bytearray((tmp_path / "a.stablehlo").read_bytes()))
    with jax.enable_x64(True):
        found = loaded.call({key: np.asarray(tensor) for key, tensor in inputs.items()})

    for key, tensor in outputs.items():
        np.testing.assert_array_equal(found[key], tensor)


def test_open_lengths_need_shapes(network):
    x = network.add_input("x", trt.float32, (-1, 2))
    network.mark_output(network.add_unary(x, trt.UnaryOperation.NEG).get_output(0))

    with pytest.raises(ValueError, match=r"input 'x' is float32\[-1,2\]: give its shape"):
        trt.stablehlo.exported(network)
    assert trt.stablehlo.exported(network, {"x": (3, 2)}).in_avals[0].shape == (3, 2)


# ---------------------------------------------------------------------------- options


def doubled(network, shape=(-1, 2)):
    """y: twice x, by a weight that is called two."""
    x = network.add_input("x", trt.float32, shape)
    two = network.add_constant((1, 1), np.float32([[2]]))
    two.name = "two"
    y = network.add_elementwise(x, two.get_output(0), trt.ElementWiseOperation.PROD).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return y


def test_program_of_any_number_of_rows(network):
    doubled(network)
    program = trt.stablehlo.exported(network, batch="rows")

    for rows in (1, 5):
        x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
        np.testing.assert_array_equal(program.call({"x": x})["y"], 2 * x)


def test_inputs_without_rows_are_the_same_for_all(network):
    y = doubled(network)
    scale = network.add_input("scale", trt.float32, (1, 1))
    scaled = network.add_elementwise(y, scale, trt.ElementWiseOperation.PROD).get_output(0)
    network.unmark_output(y)
    scaled.name = "scaled"
    network.mark_output(scaled)
    program = trt.stablehlo.exported(network, batch="rows")
    x = np.float32([[1, 2], [3, 4]])

    np.testing.assert_array_equal(program.call({"x": x, "scale": np.float32([[10]])})["scaled"], 20 * x)


def test_rows_that_depend_on_each_other_are_refused(network):
    total = network.add_reduce(doubled(network), trt.ReduceOperation.SUM, 1, True).get_output(0)
    both = network.add_elementwise(network.get_input(0), total, trt.ElementWiseOperation.SUM).get_output(0)
    network.mark_output(both)

    with pytest.raises(trt.NetworkError, match=r"NL615.* change with rows that are none of theirs"):
        trt.stablehlo.exported(network, batch="rows")


@pytest.mark.parametrize(("shape", "says"), [((3, 2), "no input has rows"), ((-1, 2), "output 'total' has no rows")])
def test_batch_of_a_network_without_rows_is_refused(network, shape, says):
    total = network.add_reduce(doubled(network, shape), trt.ReduceOperation.SUM, 1, shape[0] == 3).get_output(0)
    total.name = "total"
    if shape[0] == -1:
        network.mark_output(total)
    with pytest.raises(trt.NetworkError, match=says):
        trt.stablehlo.exported(network, batch="rows")


def test_weights_may_be_given_in_the_call(network):
    doubled(network, (1, 2))
    program = trt.stablehlo.exported(network, weights_inside=False)
    _, weights = trt.to_jax(network)
    x = np.float32([[1, 2]])

    assert list(weights) == ["two"]
    np.testing.assert_array_equal(program.call(weights, {"x": x})["y"], 2 * x)
    np.testing.assert_array_equal(program.call({"two": np.float32([[5]])}, {"x": x})["y"], 5 * x)


def test_program_is_for_the_platforms_that_are_asked_for(network):
    doubled(network, (1, 2))

    assert trt.stablehlo.exported(network, platforms=["cpu", "cuda", "tpu"]).platforms == ("cpu", "cuda", "tpu")


@pytest.mark.parametrize(
    ("platforms", "passes_are_for"),
    [(None, "cpu"), (["cpu"], "cpu"), (["cuda"], "gpu"), (["cuda", "rocm"], "gpu"), (["cpu", "cuda"], "several")],
)
def test_passes_are_those_of_the_platforms(network, monkeypatch, platforms, passes_are_for):
    asked = set()
    monkeypatch.setattr(recipe, "of_platform", lambda passes, platform: asked.add(platform) or frozenset(passes))
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    doubled(network, (1, 2))
    trt.stablehlo.exported(network, platforms=platforms)

    assert asked == {passes_are_for}


# ---------------------------------------------------------------------------- text


def test_text_is_stablehlo(network, tmp_path):
    x = network.add_input("x", trt.float64, (2,))
    network.mark_output(network.add_unary(x, trt.UnaryOperation.NEG).get_output(0))
    trt.stablehlo.save(trt.stablehlo.exported(network), tmp_path / "a.mlir", as_text=True)
    text = (tmp_path / "a.mlir").read_text()

    assert "stablehlo.negate" in text
    assert "tensor<2xf64>" in text
