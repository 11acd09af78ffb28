import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from hypothesis import assume, given

import netloop as trt
from netloop import plan
from netloop.model.graph.layer import ILayer, Operation, layer
from netloop.model.plan.layer_kinds import Numbers, kind_of, kinds
from netloop.values import diagnostics
from netloop.values.dims import DimsLike, PermutationLike
from netloop.values.string_arrays import STRING
from netloop.values.types import NUMPY_TYPES, Array, FlatArray
from tests.support import networks
from tests.support import plan_forge as forge
from tests.support.examples import same_examples
from tests.support.plugin_examples import circular_pad
from tests.support.strategies import networks as random_networks

ROOT = Path(__file__).parents[3]


def again(network: trt.INetworkDefinition) -> trt.INetworkDefinition:
    """The network after a round trip, which must give equal bytes again."""
    data = plan.dumps(network)
    loaded = plan.loads(data)
    assert plan.dumps(loaded) == data
    assert findings(loaded) == findings(network)
    return loaded


def findings(network: trt.INetworkDefinition) -> list[tuple[str, ...]]:
    """What plans keep of the findings of a network: not its own location, nor the callers of the lines of layers."""
    found = trt.check(network)
    return [
        (finding.code, finding.what, finding.why, finding.fix, finding.where * (finding.code != "NL105"))
        for finding in found
    ]


def assert_equal_layers(loaded: ILayer, original: ILayer) -> None:
    assert type(loaded) is type(original)
    assert (loaded.name, loaded.metadata, loaded.num_ranks) == (original.name, original.metadata, original.num_ranks)
    assert (loaded.index, loaded.source_location) == (original.index, original.source_location)
    for name in type(original).ATTRIBUTES:
        assert_equal_values(getattr(loaded, name), getattr(original, name))


def assert_equal_values(loaded: Any, original: Any) -> None:
    assert type(loaded) is type(original)
    if isinstance(original, np.ndarray):
        assert loaded.dtype == original.dtype
        assert loaded.tobytes() == original.tobytes()
    elif isinstance(original, trt.ILoop | trt.IIfConditional):
        assert loaded.name == original.name
    else:
        assert repr(loaded) == repr(original)


# ---------------------------------------------------------------------------- whole networks


@pytest.mark.parametrize("name", networks.EXAMPLES)
def test_loaded_network_means_the_same(name):
    make, inputs, outputs = networks.EXAMPLES[name]

    loaded = again(make())

    networks.assert_outputs(networks.run("reference", loaded, inputs), outputs)
    for got, wanted in zip(loaded, make(), strict=True):
        assert_equal_layers(got, wanted)


@pytest.mark.parametrize("name", ["running sums, reversed", "conditional in a loop", "both limits, WHILE first"])
def test_loaded_network_compiles_to_the_same(name):
    make, inputs, outputs = networks.EXAMPLES[name]

    networks.assert_outputs(networks.run("engine", again(make()), inputs), outputs)


@same_examples(8, nightly=200)
@given(random_networks())
def test_random_network_means_the_same_after_a_round_trip(grown):
    loaded = again(grown.network)
    assume(not any(finding.severity is trt.Severity.ERROR for finding in trt.check(grown.network)))
    wanted = trt.evaluate(grown.network, grown.inputs)

    networks.assert_outputs(trt.evaluate(loaded, grown.inputs), wanted)


def test_random_numbers_are_drawn_alike():
    network = trt.INetworkDefinition()
    for _ in range(2):
        fill = network.add_fill((2, 3), trt.FillOperation.RANDOM_NORMAL)
    networks.mark(network, y=fill.get_output(0))

    networks.assert_outputs(trt.evaluate(again(network), {}), trt.evaluate(network, {}))


def test_network_with_errors_keeps_them():
    network = forge.small()
    x = network.get_input(0)
    network.add_elementwise(x, network.add_constant((7, 7), np.zeros(3, np.int8)).get_output(0), networks.Op.SUM)
    network.add_loop().add_recurrence(x)
    network.add_concatenation([])

    assert len(trt.check(network)) > 3
    assert findings(again(network)) == findings(network)


def test_rewired_network_keeps_its_wires():
    network = networks.chain(3)
    last, first = network.get_layer(2), network.get_layer(0)
    last.set_input(0, network.get_input(0))
    first.set_input(0, last.get_output(0))
    slices = network.add_slice(network.get_input(0), (0,), (1,), (1,))
    slices.set_input(4, first.get_output(0))

    loaded = again(network)

    assert loaded.get_layer(0).get_input(0) is loaded.get_layer(2).get_output(0)
    assert loaded.get_layer(2).get_input(0) is loaded.get_input(0)
    assert loaded.get_layer(3).inputs == [loaded.get_input(0), None, None, None, loaded.get_layer(0).get_output(0)]


def test_layers_know_their_loops_as_before():
    network = networks.nested()

    loaded = again(network)

    for got, wanted in zip(loaded.loops, network.loops, strict=True):
        assert (got.name, got.source_location) == (wanted.name, wanted.source_location)
        assert [value.index for value in got.layers] == [value.index for value in wanted.layers]
        assert all(value.loop is got for value in got.layers)


def test_loaded_network_can_be_built_further():
    loaded = again(networks.swap())
    loop = loaded.add_loop()
    loaded.add_unary(loaded.get_input(0), trt.UnaryOperation.NEG)

    assert loop.name == "(Unnamed Loop* 1)"
    assert loaded.layers[-1].index == len(loaded.layers) - 1


def test_empty_network_is_a_plan():
    assert len(again(trt.INetworkDefinition())) == 0


# ---------------------------------------------------------------------------- what tensors and layers have


@pytest.mark.parametrize("name", ["", " ", "été 見 \U0001f600", 'a"b\\c\n\0', "(Unnamed Layer* 0) [Unary]"])
def test_names_are_kept(name):
    network = networks.nested()
    network.name = network.get_layer(0).name = network.get_layer(1).metadata = network.loops[0].name = name
    network.get_input(0).name = network.get_output(0).name = name

    loaded = again(network)

    assert (loaded.name, loaded.get_layer(0).name, loaded.get_layer(1).metadata) == (name,) * 3
    assert (loaded.loops[0].name, loaded.get_input(0).name, loaded.get_output(0).name) == (name,) * 3


def test_what_inputs_have_is_kept():
    network = trt.INetworkDefinition(None, 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    x = network.add_input("x", trt.bfloat16, (-1, 3))
    x.location, x.allowed_formats, x.broadcast_across_batch = trt.TensorLocation.HOST, 5, True
    x.set_dimension_name(1, "columns")
    x.set_dimension_name(0, "rows")
    network.mark_output(x)

    loaded = again(network).get_input(0)

    assert loaded.declared == x.declared
    assert (loaded.location, loaded.allowed_formats, loaded.broadcast_across_batch) == (
        trt.TensorLocation.HOST,
        5,
        True,
    )
    assert loaded.dimension_names == {1: "columns", 0: "rows"}
    assert loaded.is_network_output
    assert again(network).flags == network.flags


def test_places_are_kept_as_they_were_given():
    network = networks.chain(1)
    vars(network.get_layer(0))["source_location"] = diagnostics.SourceLocation("../\udcff odd <stdin>.py", 7)

    assert again(network).get_layer(0).source_location == diagnostics.SourceLocation("../\udcff odd <stdin>.py", 7)


# fmt: off
VALUES: dict[Any, list[Any]] = {
    int:             [0, -(2**63), 2**63 - 1],
    float:           [0.1, -0.0, 5e-324, 1.7976931348623157e308, float("nan"), float("inf"), -float("inf")],
    bool:            [True, False],
    Numbers:         [(), (0.1, float("inf"), -0.0)],
    str:             ["", "ij,jk->ik é"],
    DimsLike:        [(), (2, -1, 0), (2**63 - 1,) * 8],
    PermutationLike: [(), (2, 0, 1)],
    Array:           [np.zeros(0, np.float32), np.arange(6, dtype=np.int8).reshape(2, 3)],
    FlatArray:       [np.zeros(0, np.float32), np.arange(6, dtype=np.int8)],
    trt.IPluginV3:   [circular_pad(pads=((1, 2),))],
}
# fmt: on


def values_of(network: trt.INetworkDefinition, cls: type[ILayer], hint: Any) -> list[Any]:
    """Values for an attribute, by its annotation."""
    if type(None) in getattr(hint, "__args__", ()):
        return [None, *values_of(network, cls, next(arg for arg in hint.__args__ if arg is not type(None)))]
    if hint in (trt.ILoop, trt.IIfConditional):
        return [network.add_loop() if hint is trt.ILoop else network.add_if_conditional()]
    return VALUES[hint] if hint in VALUES else list(hint)


@pytest.mark.parametrize("name", kinds())
def test_every_kind_of_layer_keeps_its_attributes(name):
    cls = kinds()[name]
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    hints = get_type_hints(cls, include_extras=True)
    values = {attribute: values_of(network, cls, hints[attribute]) for attribute in cls.ATTRIBUTES}
    for turn in range(max([1, *map(len, values.values())])):
        made = network.add(cls(**{name: some[turn % len(some)] for name, some in values.items()}), [])
        made.wire([x] * cls.REQUIRED_INPUTS)

    data = plan.dumps(network)

    assert plan.dumps(plan.loads(data)) == data
    for got, wanted in zip(plan.loads(data), network, strict=True):
        assert_equal_layers(got, wanted)
        assert len(got.outputs) == len(wanted.outputs)


def test_every_public_kind_of_layer_can_be_saved():
    named = (getattr(trt, name) for name in dir(trt))
    public = {value for value in named if isinstance(value, type) and "LAYER_TYPE" in vars(value)}

    assert public <= set(kinds().values())


def test_a_kind_without_a_number_of_inputs_of_its_own_takes_those_that_it_requires():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2, 2))
    made = [
        network.add_gather(x, x, 0),
        network.add_matrix_multiply(x, trt.MatrixOperation.NONE, x, trt.MatrixOperation.NONE),
        network.add_select(x, x, x),
        network.add_einsum([x, x, x], "ij,jk,kl->il"),
        network.add_if_conditional().add_output(x, x),
    ]

    for other in made:
        kind = kind_of(type(other))
        assert kind.least_inputs <= other.num_inputs <= kind.most_inputs


# ---------------------------------------------------------------------------- weights


def with_weights(*arrays: np.ndarray) -> trt.INetworkDefinition:
    network = trt.INetworkDefinition()
    for array in arrays:
        network.mark_output(network.add_constant(array.shape, array).get_output(0))
    return network


@pytest.mark.parametrize("dtype", [numpy_type for numpy_type in NUMPY_TYPES.values() if numpy_type != STRING], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3)], ids=str)
def test_weights_are_kept_to_the_bit(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)

    loaded = again(with_weights(array)).get_layer(0).weights

    assert (loaded.dtype, loaded.shape) == (array.dtype, (array.size,))
    assert loaded.tobytes() == array.tobytes()


def test_every_bit_pattern_is_kept():
    bits = np.arange(65536, dtype=np.uint16)
    arrays = [
        bits.view(np.float16),
        bits.view(NUMPY_TYPES[trt.bfloat16]),
        bits.view(np.uint8).view(NUMPY_TYPES[trt.fp8]),
    ]

    loaded = again(with_weights(*arrays))

    assert [other.weights.tobytes() for other in loaded] == [bits.tobytes()] * 3


def test_negative_int4_is_kept():
    array = np.arange(-8, 8).astype(NUMPY_TYPES[trt.int4])

    assert again(with_weights(array)).get_layer(0).weights.astype(int).tolist() == list(range(-8, 8))


def test_equal_arrays_are_stored_once():
    array = np.ones((100, 100), np.float32)
    _, files = forge.taken_apart(plan.dumps(with_weights(array, array, array.copy())))

    assert len(files) == 1


def test_arrays_of_equal_bytes_but_other_types_or_shapes_are_told_apart():
    zeros = np.zeros(4, np.uint8)
    loaded = again(with_weights(zeros, zeros.view(np.int8), zeros.reshape(2, 2), zeros.view(NUMPY_TYPES[trt.fp8])))

    assert [str(other.get_output(0).type) for other in loaded] == [
        "uint8[4]",
        "int8[4]",
        "uint8[2,2]",
        "float8_e4m3fn[4]",
    ]


def test_loaded_weights_do_not_depend_on_the_bytes_that_were_loaded():
    data = bytearray(plan.dumps(with_weights(np.ones(4, np.float32))))
    loaded = plan.loads(memoryview(data))
    data[:] = bytes(len(data))

    assert loaded.get_layer(0).weights.tolist() == [1, 1, 1, 1]
    assert loaded.get_layer(0).weights.flags.aligned


# ---------------------------------------------------------------------------- the same bytes


def test_another_process_writes_the_same_bytes():
    script = "import hashlib; from netloop import plan; from tests.support import networks as n; "
    script += "print(hashlib.sha256(b''.join(map(plan.dumps, [n.lstm(), n.conditional_in_loop()]))).hexdigest())"
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, cwd=ROOT, capture_output=True, check=True)
    here = b"".join(map(plan.dumps, [networks.lstm(), networks.conditional_in_loop()]))

    assert ran.stdout.decode().strip() == hashlib.sha256(here).hexdigest()


def test_copy_gives_the_same_bytes():
    assert plan.dumps(forge.small().copy()) == plan.dumps(forge.small())


# ---------------------------------------------------------------------------- what no plan can hold


def unsaved(network: trt.INetworkDefinition) -> trt.Finding:
    with pytest.raises(trt.NetworkError) as caught:
        plan.dumps(network)
    (finding,) = caught.value.findings
    assert finding.code == "NL714"
    return finding


def test_layer_of_a_foreign_kind_is_refused():
    @layer(trt.LayerType.IDENTITY, "Foreign")
    class IIdentityLayer(Operation):
        """Not netloop's own."""

        infer = evaluate = lower = trt.IIdentityLayer.infer

    network = networks.chain(1)
    network.add(IIdentityLayer(), [network.get_input(0)])

    assert "is of a kind that plans do not have" in str(unsaved(network))


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**5000], ids=["high", "low", "huge"])
def test_number_beyond_64_bits_is_refused(value):
    network = trt.INetworkDefinition(flags=value)

    what = "flags of INetworkDefinition 'Unnamed Network 0' has"
    assert f"{what} {value.bit_length()} bits and a sign" in unsaved(network).what


def test_input_that_was_removed_but_is_read_is_refused():
    network = networks.chain(1)
    gone = network.add_input("gone", trt.float32, (2,))
    network.get_layer(0).set_input(0, gone)
    network.inputs.remove(gone)

    assert "tensor 'gone' is no longer in the network" in str(unsaved(network))


def test_plan_is_bytes():
    with pytest.raises(TypeError, match="a plan must be bytes, not str"):
        plan.loads("plan")


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_network_is_its_plan(protocol):
    network = networks.lstm()
    made = pickle.loads(pickle.dumps({"network": network}, protocol))["network"]

    assert type(made) is trt.INetworkDefinition
    assert plan.dumps(made) == plan.dumps(network)


def test_pickled_network_may_have_thousands_of_layers():
    assert len(pickle.loads(pickle.dumps(networks.chain(4000)))) == 4000


def test_pickled_network_that_was_changed_is_refused():
    network = networks.running_sum()
    data = pickle.dumps(network)
    with pytest.raises(trt.FileFormatError):
        pickle.loads(data.replace(b'"layers"', b'"layerz"', 1))
