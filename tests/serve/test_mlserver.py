"""A runtime of MLServer, called with requests of the V2 protocol."""

import asyncio
import contextlib

import numpy as np
import pytest

import netloop as trt
from tests.serve.test_sequences import SECONDS, Gate, mixed, mixing
from tests.serve.test_server import affine

mlserver = pytest.importorskip("mlserver")
runtime = pytest.importorskip("netloop.serve.mlserver")


@contextlib.contextmanager
def loaded(engine, path, **extra):
    """The runtime of an engine, loaded, and a function that answers a request."""
    engine.save(path / "model.plan")
    parameters = mlserver.settings.ModelParameters(uri=str(path / "model.plan"), extra=extra)
    settings = mlserver.ModelSettings(name="model", implementation=runtime.NetloopRuntime, parameters=parameters)
    with asyncio.Runner() as runner:
        model = runtime.NetloopRuntime(settings)
        assert runner.run(model.load())
        yield model, lambda payload: runner.run(model.predict(payload))
        assert runner.run(model.unload())


def request(array, **parameters):
    array = np.asarray(array)
    types = {"int32": "INT32", "int64": "INT64", "float32": "FP32"}
    given = {"name": "x", "shape": list(array.shape), "datatype": types[array.dtype.name]}
    inputs = [mlserver.types.RequestInput(**given, data=array.ravel().tolist())]
    return mlserver.types.InferenceRequest(id="7", inputs=inputs, parameters=mlserver.types.Parameters(**parameters))


def decoded(response):
    (output,) = response.outputs
    return mlserver.codecs.NumpyCodec.decode_output(output)


def test_rows_are_answered(network, tmp_path):
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    with loaded(trt.compile(affine(network)), tmp_path, sizes=[1, 4]) as (_, answer):
        response = answer(request(x))

    assert (response.id, response.model_name, response.outputs[0].name) == ("7", "model", "y")
    np.testing.assert_array_equal(decoded(response), 2.0 * x)


def test_steps_of_sequences_are_answered(network, tmp_path):
    xs = [[3, 5, 7], [-1, 0, 2]]
    with loaded(trt.compile(mixing(network)), tmp_path, states={"s": "sn"}, slots=8) as (_, answer):
        for step in range(3):
            flags = {"sequence_start": step == 0, "sequence_end": step == 2}
            for key, of in zip((1, "b"), xs, strict=True):
                made = decoded(answer(request(np.int64([of[step]]), sequence_id=key, **flags)))
                assert made.ravel().tolist() == [mixed(of[: step + 1])]


def test_errors_have_status_codes(network, tmp_path):
    with loaded(trt.compile(mixing(network)), tmp_path, states={"s": "sn"}, queue=1) as (model, answer):
        x = np.int64([1])
        for given, text in (
            (request(x, sequence_id=1), "NL643"),
            (request(x), "sequence_id"),
            (request(np.int32([1]), sequence_id=1, sequence_start=True), "NL603"),
        ):
            with pytest.raises(mlserver.errors.MLServerError, match=text) as raised:
                answer(given)
            assert raised.value.status_code == 400

        gate = Gate(model._service)
        running = model._service.submit(1, {"x": np.array(1)}, start=True)
        assert gate.reached.wait(SECONDS)
        model._service.submit(1, {"x": np.array(1)})
        with pytest.raises(mlserver.errors.MLServerError, match="NL641") as raised:
            answer(request(x, sequence_id=1))
        gate.open()
        running.result(SECONDS)
        assert raised.value.status_code == 503
