"""Model files, their contents, and networks that the exporter refuses."""

import os
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import netloop as trt
from netloop.openvino import load, save, to_model
from tests.support.networks import (
    CONCATENATE,
    EXAMPLES,
    Op,
    assert_outputs,
    asserted,
    combine,
    constant,
    counted,
    counter,
    last,
    mark,
    running_sum,
    stacked,
)
from tests.support.openvino_runtime import CORE, EXACT, export, run

X = np.arange(15, dtype=np.float32).reshape(5, 3)


def weighted(size=600):
    """y: x[size] and two large constants that are equal."""
    network = trt.INetworkDefinition()
    y = network.add_input("x", trt.float32, (size,))
    for _ in range(2):
        y = combine(network, y, constant(network, np.full(size, 2, np.float32)))
    return mark(network, y=y)


def layers(network, type=None, **options):
    """The layers of a network's model, including those of bodies."""
    found = ElementTree.fromstring(to_model(network, **options)[0]).iter("layer")
    return [element for element in found if type in (None, element.get("type"))]


def test_files_are_the_model_and_its_weights(tmp_path):
    save(weighted(), tmp_path / "model.xml")

    assert sorted(os.listdir(tmp_path)) == ["model.bin", "model.xml"]
    assert ((tmp_path / "model.xml").read_bytes(), (tmp_path / "model.bin").read_bytes()) == to_model(weighted())


def test_openvino_reads_the_files(tmp_path):
    save(weighted(), str(tmp_path / "model.xml"))
    model = CORE.compile_model(tmp_path / "model.xml", "CPU", EXACT)

    np.testing.assert_array_equal(model({"x": np.zeros(600, np.float32)})["y"], np.full(600, 4, np.float32))


def test_equal_networks_give_equal_bytes():
    assert to_model(EXAMPLES["nested"].make()) == to_model(EXAMPLES["nested"].make())


def test_equal_constants_are_stored_once():
    assert len(to_model(weighted())[1]) < 2 * 600 * 4


def test_path_ends_in_xml(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.xml"):
        save(weighted(), tmp_path / "model.bin")


@pytest.mark.parametrize("wrong", [None, 3, "network"])
def test_wrong_python_type_is_a_type_error(tmp_path, wrong):
    with pytest.raises(TypeError, match="network"):
        save(wrong, tmp_path / "model.xml")


@pytest.mark.parametrize("name", ["a,b", "a\\", "<&\"'>", "ü \n\t", " "])
def test_inputs_and_outputs_keep_their_names(name):
    network = trt.INetworkDefinition()
    x = network.add_input(f"x{name}", trt.float32, (2,))
    model = to_model(mark(network, **{f"y{name}": combine(network, x, x)}))
    loaded, read = load(*model), CORE.read_model(*model)

    assert [loaded.get_input(0).name, loaded.get_output(0).name] == [f"x{name}", f"y{name}"]
    assert [read.input(0).any_name, read.output(0).any_name] == [f"x{name}", f"y{name}"]


def test_one_tensor_by_two_names():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    y = combine(network, x, x)
    model = to_model(
        mark(network, y=y, z=network.add_identity(y).get_output(0), x2=network.add_identity(x).get_output(0))
    )

    got = run(model, {"x": np.ones(2, np.float32)})

    assert {name: list(array) for name, array in got.items()} == {"y": [2, 2], "z": [2, 2], "x2": [1, 1]}


def test_ports_have_shapes():
    (product,) = layers(combined(), "Multiply")

    assert [[int(dim.text) for dim in port.iter("dim")] for port in product.iter("port")] == [[-1, 3], [1, 3], [-1, 3]]


def combined():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 3))
    row = network.add_constant((1, 3), np.ones((1, 3), np.float32)).get_output(0)
    return mark(network, y=combine(network, x, row, Op.PROD))


# ---------------------------------------------------------------------------- loops


def test_loop_of_known_length_is_one_layer():
    assert [element.get("type") for element in layers(running_sum())].count("Loop") == 1
    assert not layers(running_sum(), "If")


def test_body_reads_the_outer_net_through_its_parameters():
    (loop,) = layers(running_sum(), "Loop")
    wires = [
        (element.get("external_port_id"), element.get("purpose")) for element in loop.find("port_map").iter("input")
    ]

    assert wires == [("2", None), ("3", None), ("-1", "current_iteration")]


@pytest.mark.parametrize("trips", [-1, 0])
def test_loop_without_iterations_is_no_layer(trips):
    network = running_sum(trips, CONCATENATE, length=5)

    assert not layers(network, "Loop")
    np.testing.assert_array_equal(run(to_model(network), {"x": X})["y"], np.zeros((5, 3)))


def test_call_without_iterations_has_no_rows_of_the_call_before():
    network = EXAMPLES["count is an input"].make()
    compiled = CORE.compile_model(CORE.read_model(*to_model(network)), "CPU", EXACT)
    request = compiled.create_infer_request()
    for n in (3, 0, -2, 2):
        inputs = EXAMPLES["count is an input"].inputs | {"n": np.int32(n)}
        request.start_async({tensor.any_name: inputs[tensor.any_name] for tensor in compiled.inputs})
        request.wait()
        for name, meant in trt.evaluate(network, inputs).items():
            np.testing.assert_array_equal(request.get_tensor(name).data, meant)


def test_condition_that_is_false_at_once_runs_no_iteration():
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    below = combine(network, constant(network, 5, np.int32), 3, Op.LESS)
    loop.add_trip_limit(network.add_identity(below).get_output(0), trt.TripLimit.WHILE)
    mark(network, y=last(loop, counter(network, loop)))

    assert run(export(network), {})["y"] == 0


def test_loop_of_only_constants_runs():
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    now = counter(network, loop)
    loop.add_trip_limit(combine(network, now, 3, Op.LESS), trt.TripLimit.WHILE)
    mark(network, y=stacked(loop, now, constant(network, 4, np.int32)))

    np.testing.assert_array_equal(run(export(network), {})["y"], [0, 1, 2, 0])


@pytest.mark.parametrize("trips", [2, 3])
def test_swap_is_a_swap(trips):
    network = trt.INetworkDefinition()
    loop = counted(network, trips)
    a, b = (loop.add_recurrence(network.add_input(name, trt.float32, (2,))) for name in "ab")
    a.set_input(1, b.get_output(0))
    b.set_input(1, a.get_output(0))
    mark(network, y=last(loop, a.get_output(0)), z=last(loop, b.get_output(0)))
    got = run(export(network), {"a": X[0, :2], "b": X[1, :2]})

    np.testing.assert_array_equal([got["y"], got["z"]], X[[trips % 2, 1 - trips % 2], :2])


def test_operand_that_is_given_to_a_body_is_not_overwritten():
    example = EXAMPLES["table"]

    assert_outputs(run(export(example.make()), example.inputs), example.outputs)


# ---------------------------------------------------------------------------- refusals


def test_everything_that_cannot_be_written_is_reported_at_once():
    network = trt.INetworkDefinition()
    x = network.add_input("x\x00", trt.float32, (2, 2))
    determinant = network.add_unary(x, trt.UnaryOperation.EXP)
    parts = [network.add_cast(x, trt.e5m2fnuz), network.add_cast(x, trt.e4m3fnuz)]
    for part in parts:
        network.mark_output(part.get_output(0))
    network.mark_output(determinant.get_output(0))

    with pytest.raises(trt.NetworkError) as caught:
        to_model(network)
    assert [(finding.code, finding.what) for finding in caught.value.findings] == [
        ("NL732", "the name 'x\\x00' cannot be written as XML"),
        ("NL732", "OpenVINO has no tensors of float8_e5m2fnuz"),
        ("NL732", "OpenVINO has no tensors of float8_e4m3fnuz"),
    ]
    assert all("test_saving.py" in finding.where for finding in caught.value.findings[1:])


@pytest.mark.parametrize("character", ["\0", "\x01", "\ufffe"])
def test_name_of_a_network_that_xml_cannot_hold_is_refused(tmp_path, character):
    network = trt.INetworkDefinition()
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (2,))).get_output(0))
    network.name = f"net{character}"

    with pytest.raises(trt.NetworkError, match=r"NL732: the name 'net.*' cannot be written as XML"):
        trt.openvino.save(network, tmp_path / "net.xml")


def test_input_of_a_type_that_openvino_lacks_is_refused():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.e5m2fnuz, (2,))
    network.mark_output(network.add_cast(x, trt.float32).get_output(0))

    with pytest.raises(trt.NetworkError, match="'x': OpenVINO has no tensors of float8_e5m2fnuz"):
        to_model(network)


def symmetric(shape, **options):
    """y: x resized by 2 in its last two axes, with HALF_PIXEL_SYMMETRIC."""
    network = trt.INetworkDefinition()
    layer = network.add_resize(network.add_input("x", trt.float32, shape))
    layer.resize_mode = trt.InterpolationMode.LINEAR
    layer.coordinate_transformation = trt.ResizeCoordinateTransformation.HALF_PIXEL_SYMMETRIC
    layer.scales = (1, 1, 2, 2)
    return mark(network, y=layer.get_output(0))


def test_coordinate_transformation_that_openvino_lacks_is_refused():
    with pytest.raises(trt.NetworkError, match="coordinate transformation half_pixel_symmetric"):
        to_model(symmetric((1, 1, -1, -1)))


def test_coordinate_transformation_that_openvino_lacks_is_computed_for_known_shapes():
    network, x = symmetric((1, 1, 3, 4)), np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)

    assert_outputs(run(export(network), {"x": x}), trt.evaluate(network, {"x": x}))


def test_assertion_is_refused_unless_it_is_left_out():
    with pytest.raises(trt.NetworkError, match="cannot be written as OpenVINO"):
        to_model(asserted())

    assert run(to_model(asserted(), drop_assertions=True), {"n": np.int32(2)})["y"] == 2


def test_refused_network_leaves_the_old_file(tmp_path):
    save(weighted(), tmp_path / "model.xml")
    before = (tmp_path / "model.xml").read_bytes()
    with pytest.raises(trt.NetworkError):
        save(asserted(), tmp_path / "model.xml")

    assert (tmp_path / "model.xml").read_bytes() == before
