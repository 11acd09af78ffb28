"""Model repositories for Triton: what is written, parsed, and run with a stand-in of its python backend."""

import importlib.util
import json
import os
import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import netloop as trt
from netloop.serve import write_repository
from netloop.tools.serve.triton_model import TritonModel
from tests.support.networks import cast, mark
from tests.tools.serve.test_sequences import asserting, mixed, mixing, recurrent, small
from tests.tools.serve.test_server import affine, limited

START, END = 1, 2


# ---------------------------------------------------------------------------- stand-ins

TOKEN = re.compile(r'\s*(?:#[^\n]*|("(?:[^"\\]|\\.)*")|([\w.-]+)|([{}\[\]:,]))', re.DOTALL)


class Text:
    """Text of protocol buffers, read token by token."""

    def __init__(self, text):
        self.tokens = [next(filter(None, value)) for value in TOKEN.findall(text) if any(value)]

    def follows(self, token):
        """Whether a token is the next one, which is then read."""
        found = self.tokens[:1] == [token]
        if found:
            self.tokens.pop(0)
        return found

    def values(self):
        """The value of a field, or those in brackets."""
        if not self.follows("["):
            return [self.value()]
        values = []
        while not self.follows("]"):
            values.append(self.value())
            self.follows(",")
        return values

    def value(self):
        if self.follows("{"):
            return self.message("}")
        token = self.tokens.pop(0)
        return json.loads(token) if re.fullmatch(r'".*"|-?\d+', token, re.DOTALL) else token

    def message(self, end):
        fields = {}
        while self.tokens[:1] not in ([end], []):
            name = self.tokens.pop(0)
            self.follows(":")
            fields.setdefault(name, []).extend(self.values())
        assert not end or self.follows(end)
        return fields


def parsed(text):
    """Text of protocol buffers as a dict, with a list of the values of each field."""
    return Text(text).message("")


class Tensor:
    def __init__(self, name, array):
        assert isinstance(array, np.ndarray)
        self.named, self.array = name, array

    def as_numpy(self):
        return self.array


class Request:
    def __init__(self, inputs, key=0, flags=0, outputs=("y",)):
        self.inputs, self.key, self.flagged, self.outputs = inputs, key, flags, outputs

    def correlation_id(self):
        return self.key

    def flags(self):
        return self.flagged

    def requested_output_names(self):
        return list(self.outputs)


def backend():
    """A stand-in of ``triton_python_backend_utils``."""
    module = ModuleType("triton_python_backend_utils")
    module.Tensor, module.TritonError = Tensor, str
    module.InferenceResponse = lambda output_tensors, error=None: SimpleNamespace(
        tensors={tensor.named: tensor.array for tensor in output_tensors}, error=error
    )
    module.get_input_tensor_by_name = lambda request, name: (
        Tensor(name, request.inputs[name]) if name in request.inputs else None
    )
    module.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, module.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = START, END
    return module


@pytest.fixture
def started(monkeypatch):
    """A function that starts the model of a folder, as the python backend does."""
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", backend())
    models = []

    def start(folder, version="1"):
        config = parsed((folder / "config.pbtxt").read_text(encoding="utf-8"))
        parameters = {
            value["key"][0]: {"string_value": value["value"][0]["string_value"][0]} for value in config["parameters"]
        }
        spec = importlib.util.spec_from_file_location("model_of_triton", folder / version / "model.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        model = module.TritonPythonModel()
        arguments = {"model_repository": str(folder), "model_version": version}
        model.initialize({"model_config": json.dumps({"parameters": parameters}), **arguments})
        models.append(model)
        return model

    yield start
    for value in models:
        value.finalize()


@pytest.mark.parametrize(
    ("visible", "number", "seen"), [("", "1", "1"), ("2,3", "1", "3"), ("GPU-5ad3, GPU-77e0", "1", "GPU-77e0")]
)
def test_instance_on_a_gpu_sees_only_that_one(monkeypatch, visible, number, seen):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(KeyError, match="model_config"):
        TritonModel().initialize({"model_instance_kind": "GPU", "model_instance_device_id": number})

    assert os.environ["CUDA_VISIBLE_DEVICES"] == seen


def texts(model, requests):
    return [value.error for value in model.execute(requests)]


def outputs(model, requests):
    responses = model.execute(requests)
    assert [response.error for response in responses if response.error] == []
    return [response.tensors["y"] for response in responses]


# ---------------------------------------------------------------------------- tests


def test_configuration_of_rows(network, tmp_path):
    folder = write_repository(trt.compile(affine(network)), tmp_path, "rows", sizes=(1, 8), delay=0.002)

    config = parsed((folder / "config.pbtxt").read_text())
    assert folder == tmp_path / "rows"
    assert (config["name"], config["backend"], config["max_batch_size"]) == (["rows"], ["python"], [8])
    assert config["input"] == [{"name": ["x"], "data_type": ["TYPE_INT32"], "dims": [3]}]
    assert config["output"] == [{"name": ["y"], "data_type": ["TYPE_FP32"], "dims": [3]}]
    assert config["dynamic_batching"] == [{"max_queue_delay_microseconds": [2000]}]
    assert "sequence_batching" not in config


@pytest.mark.parametrize("rows", [-1, 1])
def test_configuration_of_sequences(network, tmp_path, rows):
    engine = trt.compile(recurrent(network, rows))
    folder = write_repository(engine, tmp_path, states={"h": "hn"}, slots=20, idle=3)

    config = parsed((folder / "config.pbtxt").read_text())
    dims = [4] if rows == -1 else [1, 4]
    assert config["input"] == [{"name": ["x"], "data_type": ["TYPE_FP32"], "dims": dims}]
    assert config["output"] == [{"name": ["y"], "data_type": ["TYPE_FP32"], "dims": dims}]
    (batching,) = config["sequence_batching"]
    assert batching["max_sequence_idle_microseconds"] == [3_000_000]
    assert batching["oldest"] == [{"max_candidate_sequences": [20], "max_queue_delay_microseconds": [0]}]
    assert config["instance_group"] == [{"count": [1], "kind": ["KIND_CPU"]}]


def test_rows_are_answered(network, tmp_path, started):
    model = started(write_repository(trt.compile(affine(network)), tmp_path, sizes=(1, 8)))
    given = [np.full((count, 3), count, np.int32) for count in (1, 3, 2)]

    found = outputs(model, [Request({"x": array}) for array in given])

    for x, y in zip(given, found, strict=True):
        np.testing.assert_array_equal(y, 2.0 * x)


def test_numbers_are_arrays_of_one_element(network, tmp_path, started):
    folder = write_repository(trt.compile(limited(network)), tmp_path)
    model = started(folder)

    assert parsed((folder / "config.pbtxt").read_text())["input"][0]["dims"] == [1]
    (found,) = outputs(model, [Request({"x": np.int32([[5], [6]])})])
    np.testing.assert_array_equal(found, [[6], [7]])


def test_steps_of_sequences_are_answered(network, tmp_path, started):
    model = started(write_repository(trt.compile(mixing(network)), tmp_path, states={"s": "sn"}, sizes=(4,)))
    xs = np.random.default_rng(3).integers(-100, 100, (3, 7))

    for step, row in enumerate(xs):
        flags = START if step == 0 else END if step == 2 else 0
        found = outputs(model, [Request({"x": np.array([[x]])}, key, flags) for key, x in enumerate(row, 1)])
        assert [value.tolist() for value in found] == [[[mixed(xs[: step + 1, key])]] for key in range(7)]


@pytest.mark.parametrize("rows", [-1, 1])
def test_steps_have_the_shapes_of_the_configuration(network, tmp_path, started, rows):
    engine = trt.compile(recurrent(network, rows))
    model = started(write_repository(engine, tmp_path, states={"h": "hn"}, sizes=(1,)))
    x = np.float32([[0.1, 0.2, 0.3, 0.4]])

    (found,) = outputs(model, [Request({"x": x if rows == -1 else x[None]}, 1, START)])

    np.testing.assert_allclose(found, np.tanh(x if rows == -1 else x[None]) ** 2, rtol=1e-5)


def test_a_request_that_fails_has_its_own_error(network, tmp_path, started):
    model = started(write_repository(trt.compile(asserting(network)), tmp_path, states={"s": "sn"}, sizes=(4,)))
    inputs = [{"x": small(number)["x"].reshape(1, 1)} for number in (4, 20, 5)]

    found = texts(
        model, [*(Request(tensor, key, START) for key, tensor in enumerate(inputs, 1)), Request(inputs[0], 9)]
    )

    assert [bool(value) for value in found] == [False, True, False, True]
    assert "more than 10" in found[1]
    assert "NL643: there is no sequence 9" in found[3]
    assert "NL602" in texts(model, [Request({}, 1)])[0]


@pytest.mark.parametrize("sizes", [(1, 4), ()])
def test_a_model_without_rows_is_answered_one_request_at_a_time(network, tmp_path, started, sizes):
    folder = write_repository(trt.compile(mixing(network)), tmp_path, sizes=sizes)
    config = parsed((folder / "config.pbtxt").read_text())
    assert (config["max_batch_size"], config["input"][0]["dims"]) == ([0], [1])
    assert not {"dynamic_batching", "sequence_batching"} & {*config}

    found = outputs(started(folder), [Request({"s": np.int64([2]), "x": np.int64([x])}) for x in (5, 6)])
    assert [value.tolist() for value in found] == [[74], [75]]


def test_without_sizes_shapes_are_whole(network, tmp_path, started):
    folder = write_repository(trt.compile(recurrent(network, 1)), tmp_path)
    assert parsed((folder / "config.pbtxt").read_text())["input"][0]["dims"] == [1, 4]

    (response,) = started(folder).execute([Request({name: np.zeros((1, 4), np.float32) for name in "hx"})])
    assert response.error is None
    assert response.tensors["y"].shape == (1, 4)


def test_only_requested_outputs_are_in_a_response(network, tmp_path, started):
    model = started(write_repository(trt.compile(affine(network)), tmp_path, sizes=(1,)))

    (response,) = model.execute([Request({"x": np.zeros((1, 3), np.int32)}, outputs=())])
    assert response.tensors == {}


def test_names_may_have_any_characters(network, tmp_path):
    network.add_input('a "b"\\', trt.float32, (-1, 2))
    mark(network, é=network.add_identity(network.get_input(0)).get_output(0))

    config = parsed((write_repository(trt.compile(network), tmp_path) / "config.pbtxt").read_text(encoding="utf-8"))
    assert config["input"][0]["name"] == ['a "b"\\']
    assert config["output"][0]["name"] == ["é"]


def test_what_triton_cannot_serve_is_refused(network, tmp_path):
    x = network.add_input("x", trt.float32, (-1, 2))
    engine = trt.compile(mark(network, y=cast(network, x, trt.bfloat16)))

    with pytest.raises(trt.NetworkError, match="NL647: 'y' is bfloat16"):
        write_repository(engine, tmp_path)
    with pytest.raises(ValueError, match="cannot be the name of a folder"):
        write_repository(engine, tmp_path, "a/b")
    with pytest.raises(ValueError, match="batch sizes are positive integers"):
        write_repository(trt.compile(mixing(trt.INetworkDefinition())), tmp_path, states={"s": "sn"}, sizes=())
    with pytest.raises(ValueError, match="no input 'z'"):
        write_repository(trt.compile(affine(trt.INetworkDefinition())), tmp_path, shapes={"z": (1,)})
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("name", ["idle", "delay"])
@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e10, 1e308, -1])
def test_seconds_that_the_configuration_cannot_have_are_refused(network, tmp_path, name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least 0 and at most"):
        write_repository(trt.compile(affine(network)), tmp_path, **{name: value})
    assert not [*tmp_path.iterdir()]
