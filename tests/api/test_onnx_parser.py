"""TensorRT's ONNX parser."""

import numpy as np
import onnx
import pytest

import netloop as trt
from tests.support.onnx_models import model

ADD = "g (float[2] x) => (float[2] y) { twice = Add (x, x) y = Add (twice, w) }"
WRONG = "g (float[2] x) => (float[2] y) { a = Neg (x) b = Missing (a) c = Strange (x) y = Neg (a) }"


class Silent(trt.ILogger):
    def __init__(self):
        super().__init__()
        self.messages = []

    def log(self, severity, msg):
        self.messages.append((severity, msg))


@pytest.fixture
def parser(network):
    return trt.OnnxParser(network, Silent())


def whole():
    made = model(ADD)
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([5, 6]), "w"))
    made.graph.node[0].name = "first"
    return made


def run(network):
    return trt.compile(network)({"x": np.float32([1, 2])})["y"].tolist()


def test_bytes_become_layers_inputs_and_outputs_of_the_network(network, parser):
    assert parser.parse(whole().SerializeToString())
    assert parser.num_errors == 0
    assert run(network) == [7, 10]


def test_file_finds_its_tensors_in_its_folder(network, parser, tmp_path):
    onnx.save(whole(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)

    assert parser.parse_from_file(str(tmp_path / "m.onnx"))
    assert run(network) == [7, 10]


def test_bytes_with_the_path_of_their_file_find_tensors_too(network, parser, tmp_path):
    onnx.save(whole(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)

    assert parser.parse((tmp_path / "m.onnx").read_bytes(), str(tmp_path / "m.onnx"))
    assert run(network) == [7, 10]


def test_initializer_is_taken_from_memory(network, parser):
    numbers = np.float32([10, 20])

    assert parser.load_model_proto(whole().SerializeToString())
    assert parser.load_initializer("w", numbers.ctypes.data, numbers.nbytes)
    assert not parser.load_initializer("unknown", numbers.ctypes.data, numbers.nbytes)
    assert parser.parse_model_proto()
    assert run(network) == [12, 24]


def test_node_is_asked_for_its_outputs_by_name(network, parser):
    parser.parse(whole().SerializeToString())

    assert parser.get_layer_output_tensor("first", 0) is network[1].get_output(0)
    assert parser.get_layer_output_tensor("first", 1) is None
    assert parser.get_layer_output_tensor("unknown", 0) is None


def test_errors_name_the_node(parser):
    assert not parser.parse(model(WRONG).SerializeToString())

    errors = [parser.get_error(index) for index in range(parser.num_errors)]
    assert [error.code() for error in errors] == [trt.ErrorCode.UNSUPPORTED_NODE] * 2
    assert [(error.node(), error.node_name(), error.node_operator()) for error in errors] == [
        (1, "Missing_1", "Missing"),
        (2, "Strange_2", "Strange"),
    ]
    assert "netloop has no operator Missing-21" in errors[0].desc()
    parser.clear_errors()
    assert parser.num_errors == 0


def test_errors_are_logged(network):
    logger = Silent()

    assert not trt.OnnxParser(network, logger).parse(b"nonsense")
    ((severity, message),) = logger.messages
    assert severity is trt.ILogger.ERROR
    assert message.startswith("NL741")


def test_identities_are_layers_so_that_all_names_are_found(network, parser):
    text = "g (float[2] x) => (float[2] y) { a = Identity (x) b = Identity (a) y = Neg (b) }"
    assert parser.parse(model(text).SerializeToString())

    assert [layer.get_output(0).name for layer in network] == ["a", "b", "y"]
    assert [layer.type.name for layer in network] == ["IDENTITY", "IDENTITY", "UNARY"]
    network.mark_output(network[0].get_output(0))
    assert {name: array.tolist() for name, array in trt.compile(network)({"x": np.float32([1, 2])}).items()} == {
        "y": [-1, -2],
        "a": [1, 2],
    }


def test_model_of_tensorrt_10_is_split_in_one_call(parser):
    fits, parts = parser.supports_model(model(WRONG).SerializeToString())

    assert (fits, parts) == (False, [([0], True), ([1, 2], False), ([3], True)])
    assert isinstance(parts, trt.SubGraphCollection)
    assert isinstance(parts[0][0], trt.NodeIndices)


def test_model_is_split_into_what_can_be_parsed_and_what_not(network, parser):
    assert not parser.supports_model_v2(model(WRONG).SerializeToString())

    parts = range(parser.num_subgraphs)
    assert [(parser.get_subgraph_nodes(part), parser.is_subgraph_supported(part)) for part in parts] == [
        ([0], True),
        ([1, 2], False),
        ([3], True),
    ]
    assert network.num_layers == network.num_inputs == 0


def test_part_and_error_that_there_are_not_say_how_many_there_are(parser):
    assert not parser.supports_model_v2(model(WRONG).SerializeToString())

    for ask in (parser.is_subgraph_supported, parser.get_subgraph_nodes):
        with pytest.raises(IndexError, match="there is no subgraph 3: the parser has 3, counted from 0"):
            ask(3)
    with pytest.raises(IndexError, match="there is no error 9: the parser has 2, counted from 0"):
        parser.get_error(9)


def test_error_in_a_function_names_the_enclosing_functions(parser):
    made = model("g (float[2] x) => (float[2] y) { y = my.outer (x) }")
    made.opset_import.add(domain="my", version=1)
    for name, inner in (("outer", "my.inner"), ("inner", "Missing")):
        text = f'<domain: "my", opset_import: ["" : 21, "my" : 1]> {name} (a) => (b) {{ b = {inner} (a) }}'
        made.functions.append(onnx.parser.parse_function(text))

    assert not parser.parse(made.SerializeToString())
    assert parser.get_error(0).local_function_stack() == ["outer", "inner"]
    assert parser.get_error(0).node() == 0


def test_flags_are_kept(parser):
    parser.set_flag(trt.OnnxParserFlag.ADJUST_FOR_DLA)
    parser.clear_flag(trt.OnnxParserFlag.NATIVE_INSTANCENORM)

    assert parser.get_flag(trt.OnnxParserFlag.ADJUST_FOR_DLA)
    assert parser.flags == 1 << int(trt.OnnxParserFlag.ADJUST_FOR_DLA)


def test_operators_can_be_asked_for(parser):
    assert parser.supports_operator("Loop")
    assert not parser.supports_operator("Missing")
