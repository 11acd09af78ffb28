"""Refitting an engine with the initializers of an ONNX model."""

import numpy as np
import onnx
import pytest

import netloop as trt
from tests.support.log import Log
from tests.support.onnx_models import model

PLAIN = "g (float[2] x) => (float[2] y) { scaled = Mul (x, a) y = Add (scaled, b) }"
LOOPED = """
g (float[2] x) => (float[2] y) {
    n = Constant <value = int64 {3}> ()
    y = Loop (n, , x) <body = body (int64 i, bool c, float[2] before) => (bool d, float[2] after) {
        d = Identity (c)
        after = Add (before, a)
    }>
}
"""
X = np.float32([1, 2])


def onnx_model(text=PLAIN, **arrays):
    made = model(text)
    made.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    return made


def engine_of(made):
    network = trt.INetworkDefinition()
    parser = trt.OnnxParser(network, Log())
    assert parser.parse(made.SerializeToString())
    return trt.compile(network)


def y(engine):
    return np.asarray(engine({"x": X})["y"]).tolist()


OLD = {"a": np.float32([2, 2]), "b": np.float32([0, 1])}
NEW = {"a": np.float32([3, 4]), "b": np.float32([5, 6])}


@pytest.fixture
def engine():
    return engine_of(onnx_model(**OLD))


@pytest.fixture
def refitter(engine):
    return trt.Refitter(engine, Log())


@pytest.fixture
def parser(refitter):
    return trt.OnnxParserRefitter(refitter, Log())


def test_engine_takes_the_initializers_of_a_model_in_bytes(engine, refitter, parser):
    assert parser.refit_from_bytes(onnx_model(**NEW).SerializeToString())
    assert y(engine) == [2, 5]
    assert refitter.refit_cuda_engine()
    assert y(engine) == [8, 14]


def test_engine_takes_the_initializers_of_a_file(engine, refitter, parser, tmp_path):
    onnx.save(onnx_model(**NEW), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)

    assert parser.refit_from_file(str(tmp_path / "m.onnx"))
    assert refitter.refit_cuda_engine()
    assert y(engine) == [8, 14]


def test_numbers_of_an_initializer_may_come_from_memory(engine, refitter, parser):
    assert parser.load_model_proto(onnx_model(**OLD).SerializeToString())
    assert parser.load_initializer("b", NEW["b"].ctypes.data, NEW["b"].nbytes)
    assert parser.refit_model_proto()
    assert refitter.refit_cuda_engine()
    assert y(engine) == [7, 10]


def test_engine_of_a_plan_without_weights_takes_those_of_its_model():
    many = {"a": np.full(300, 2, np.float32), "b": np.full(300, 3, np.float32)}
    made = onnx_model(PLAIN.replace("float[2]", "float[300]"), **many)
    config = (engine := engine_of(made)).create_serialization_config()
    config.set_flag(trt.SerializationFlag.EXCLUDE_WEIGHTS)
    stripped = trt.Runtime(Log()).deserialize_cuda_engine(engine.serialize_with_config(config))
    refitter = trt.Refitter(stripped, Log())

    assert trt.OnnxParserRefitter(refitter, Log()).refit_from_bytes(made.SerializeToString())
    assert refitter.get_missing_weights() == []
    assert refitter.refit_cuda_engine()
    assert np.asarray(stripped({"x": np.ones(300, np.float32)})["y"]).tolist() == [5] * 300


def test_weights_inside_of_a_loop_are_taken():
    engine = engine_of(onnx_model(LOOPED, a=OLD["a"]))
    refitter = trt.Refitter(engine, Log())

    assert trt.OnnxParserRefitter(refitter, Log()).refit_from_bytes(onnx_model(LOOPED, a=NEW["a"]).SerializeToString())
    assert refitter.refit_cuda_engine()
    assert y(engine) == [1 + 3 * 3, 2 + 3 * 4]


GATHERED = "g (float[2] x) => (float[2] y) { y = Gather (x, at) }"


@pytest.mark.parametrize("at", [[1, 0], [0, 0]])
def test_initializer_that_is_part_of_the_program_stays_as_it_was(at):
    refitter = trt.Refitter(engine_of(onnx_model(GATHERED, at=np.array([1, 0]))), Log())
    parser = trt.OnnxParserRefitter(refitter, Log())

    assert parser.refit_from_bytes(onnx_model(GATHERED, at=np.array(at)).SerializeToString()) is (at == [1, 0])
    assert parser.num_errors == (at != [1, 0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (onnx_model(PLAIN.replace("b)", "c)"), a=NEW["a"], c=NEW["b"]), "the engine has no weights 'c'"),
        (onnx_model(a=NEW["a"], b=np.float32([1])), "the initializer 'b' has 1 elements of float32"),
    ],
)
def test_model_that_the_engine_was_not_made_of_is_refused(refitter, parser, given, message):
    assert not parser.refit_from_bytes(given.SerializeToString())
    assert parser.num_errors == 1
    assert message in parser.get_error(0).desc()
    assert "NL748" in parser.get_error(0).desc()
    assert refitter.get_named_weights("a").size == 0


@pytest.mark.parametrize("data", [b"", b"no model", onnx_model(**NEW).SerializeToString()[:40]])
def test_other_bytes_than_models_are_refused(parser, data):
    assert not parser.refit_from_bytes(data)
    assert not parser.refit_model_proto()
    assert parser.num_errors > 0
    parser.clear_errors()
    assert parser.num_errors == 0


@pytest.mark.parametrize("arguments", [(None, Log()), (Log(), Log())])
def test_refitter_is_needed(arguments):
    with pytest.raises(TypeError, match="refitter must be Refitter"):
        trt.OnnxParserRefitter(*arguments)
