"""The V2 protocol over gRPC, with tritonclient and with bytes that are written by hand."""

import queue
from contextlib import closing

import numpy as np
import pytest

import netloop as trt
from netloop.serve import Endpoint, Sequences, Server, Streams
from netloop.tools.serve.served_model import ServedModel
from tests.support.served import SECONDS, listening
from tests.tools.serve.test_endpoint import engine, same
from tests.tools.serve.test_sequences import Gate, mixed, mixing
from tests.tools.serve.test_server import affine
from tests.tools.serve.test_streams import doubled, doubling, endless, wait_for

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn")

METHOD = "/inference.GRPCInferenceService/"


@pytest.fixture(scope="module")
def services():
    return {
        "rows": Server(engine(affine), (1, 4, 16)),
        "steps": Sequences(engine(mixing), {"s": "sn"}, sizes=(1, 256)),
        "texts": Streams(trt.SlotEngine(engine(doubling), slots=4)),
        "endless": Streams(trt.SlotEngine(engine(endless), slots=1), queue=1),
        "words": Server(engine(same, "string", "float16"), ()),
        "full": Server(engine(affine), (1,), queue=1),
    }


@pytest.fixture(scope="module")
def address(services):
    again = ServedModel("rows", services["rows"], lambda: engine(affine))
    with listening(Endpoint({**services, "rows": again})) as addresses:
        yield addresses.grpc


@pytest.fixture(scope="module")
def triton():
    return pytest.importorskip("tritonclient.grpc")


@pytest.fixture(scope="module")
def client(address, triton):
    with closing(triton.InferenceServerClient(address)) as client:
        yield client


def given(triton, array, name="x", datatype=None):
    datatypes = {"int32": "INT32", "int64": "INT64", "float16": "FP16"}
    tensor = triton.InferInput(name, list(array.shape), datatype or datatypes[array.dtype.name])
    tensor.set_data_from_numpy(array)
    return tensor


def test_bytes_of_the_protocol_get_those_of_a_response(address):
    """Fields 1, 3, 5 and 7 of a request are the model, the id, the inputs and raw bytes; of a response 6 has these."""
    tensor = b"\n\1x\x12\5INT32\x1a\2\1\3"
    message = b"\n\4rows\x1a\3abc" + b"*" + bytes([len(tensor)]) + tensor + b":\x0c" + np.int32([1, 2, 3]).tobytes()
    with grpc.insecure_channel(address) as channel:
        answer = channel.unary_unary(f"{METHOD}ModelInfer")(message, timeout=SECONDS)
        live = channel.unary_unary(f"{METHOD}ServerLive")(b"", timeout=SECONDS)

    output = b"\n\1y\x12\4FP32\x1a\2\1\3"
    assert answer == (
        b"\n\4rows\x12\0011\x1a\3abc*" + bytes([len(output)]) + output + b"2\x0c" + np.float32([2, 4, 6]).tobytes()
    )
    assert live == b"\x08\1"


def test_bytes_that_are_no_message_are_the_fault_of_the_client(address):
    with grpc.insecure_channel(address) as channel:
        for method in ("ModelInfer", "ModelMetadata", "RepositoryModelLoad"):
            with pytest.raises(grpc.RpcError) as raised:
                channel.unary_unary(f"{METHOD}{method}")(b"\xff\xff\xff", timeout=SECONDS)
            assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary(f"{METHOD}Unknown")(b"", timeout=SECONDS)
        assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_results_are_those_of_the_engine(client, triton):
    x = np.arange(12, dtype=np.int32).reshape(4, 3)
    result = client.infer("rows", [given(triton, x)], request_id="seven", outputs=[triton.InferRequestedOutput("y")])

    np.testing.assert_array_equal(result.as_numpy("y"), 2 * x)
    assert result.get_response().id == "seven"


def test_texts_and_halves_cross_the_wire(client, triton):
    texts, halves = np.array([["", "Grüße"]], object), np.float16([[0.5, -2]])
    result = client.infer("words", [given(triton, texts, "string", "BYTES"), given(triton, halves, "float16")])

    assert [text.decode() for text in result.as_numpy("string_out")[0]] == ["", "Grüße"]
    np.testing.assert_array_equal(result.as_numpy("float16_out"), halves)


def test_metadata(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("rows", "1")
    assert client.get_server_metadata(as_json=True)["name"] == "netloop"
    about = client.get_model_metadata("rows", as_json=True)
    assert about["inputs"] == [{"name": "x", "datatype": "INT32", "shape": ["-1", "3"]}]
    assert about["outputs"] == [{"name": "y", "datatype": "FP32", "shape": ["-1", "3"]}]
    assert {"name": "rows", "version": "1", "state": "READY"} in client.get_model_repository_index(as_json=True)[
        "models"
    ]


@pytest.mark.parametrize("key", [77, "seventy-seven"])
def test_a_sequence_has_its_state_on_the_server(client, triton, key):
    xs = np.random.default_rng(3).integers(-1000, 1000, 5)
    found = [
        client.infer(
            "steps", [given(triton, xs[i : i + 1])], sequence_id=key, sequence_start=i == 0, sequence_end=i == 4
        )
        for i in range(5)
    ]
    assert [int(result.as_numpy("y")[0]) for result in found] == [mixed(xs[: i + 1]) for i in range(5)]


def test_many_sequences_at_once_are_not_mixed_up(client, triton):
    count, steps = 200, 3
    xs = np.random.default_rng(1).integers(-(2**40), 2**40, (steps, count))
    answers = queue.SimpleQueue()
    found = np.zeros((steps, count), np.int64)
    for step in range(steps):
        for key in range(count):
            client.async_infer(
                "steps",
                [given(triton, xs[step, key : key + 1])],
                lambda result, error, key=key: answers.put((key, result, error)),
                sequence_id=key + 1,
                sequence_start=step == 0,
                sequence_end=step == steps - 1,
            )
        for _ in range(count):
            key, result, error = answers.get(timeout=SECONDS)
            assert error is None
            found[step, key] = result.as_numpy("y")[0]

    wanted = [[mixed(xs[: step + 1, key]) for key in range(count)] for step in range(steps)]
    np.testing.assert_array_equal(found, wanted)


def test_a_model_is_loaded_again(client, triton):
    client.load_model("rows")
    with pytest.raises(triton.InferenceServerException, match="not from a file"):
        client.load_model("steps")


# ---------------------------------------------------------------------------- errors


def test_an_unknown_model_is_not_found(client, triton):
    with pytest.raises(triton.InferenceServerException, match="NL671") as raised:
        client.infer("nobody", [given(triton, np.ones((1, 3), np.int32))])
    assert raised.value.status() == "StatusCode.NOT_FOUND"


def test_a_full_queue_is_unavailable(client, triton, services):
    gate, x, answers = Gate(services["full"]), np.ones((1, 3), np.int32), queue.SimpleQueue()

    def ask():
        client.async_infer("full", [given(triton, x)], lambda result, error: answers.put((result, error)))

    ask()
    assert gate.reached.wait(SECONDS)
    ask()
    wait_for(lambda: services["full"].metrics().queued == 1)
    ask()
    _, error = answers.get(timeout=SECONDS)
    assert error.status() == "StatusCode.UNAVAILABLE"
    assert "NL641" in error.message()
    gate.open()
    assert [answers.get(timeout=SECONDS)[1] for _ in range(2)] == [None, None]


def test_a_client_that_goes_takes_its_request_from_the_queue(triton, address, services):
    gate, x = Gate(services["full"]), np.ones((1, 3), np.int32)
    with closing(triton.InferenceServerClient(address)) as own:
        running = own.async_infer("full", [given(triton, x)], lambda result, error: None)
        assert gate.reached.wait(SECONDS)
        waiting = own.async_infer("full", [given(triton, x)], lambda result, error: None)
        wait_for(lambda: services["full"].metrics().queued == 1)
        waiting.cancel()
        wait_for(lambda: services["full"]._queue[0].future.cancelled())
        gate.open()
        assert running is not None
    wait_for(lambda: services["full"].metrics().cancelled == 1)


RAW = np.int32([1, 2, 3]).tobytes()
MALFORMED = {
    "truncated raw bytes": {"raw": [RAW[:-2]]},
    "too many raw bytes": {"raw": [RAW * 2]},
    "raw bytes of two tensors": {"raw": [RAW, RAW]},
    "unknown name": {"name": "z"},
    "unknown datatype": {"datatype": "INT33"},
    "no datatype": {"datatype": ""},
    "other datatype": {"datatype": "FP32"},
    "other shape": {"shape": [3, 1]},
    "huge shape": {"shape": [2**40, 3]},
    "more than huge": {"shape": [2**62, 2**62]},
    "negative shape": {"shape": [-1, 3]},
    "no shape": {"shape": []},
    "other contents": {"shape": [1, 4], "raw": []},
    "contents of another type": {"datatype": "FP32", "raw": []},
    "contents of halves": {"datatype": "FP16", "raw": []},
    "contents and raw bytes": {"has_contents": True},
    "no sequence": {"model": "steps"},
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_messages_are_the_fault_of_the_client(address, triton, case):
    def message(raw=(RAW,), model="rows", has_contents=False, **changes):
        tensor = {"name": "x", "datatype": "INT32", "shape": [1, 3], **changes}
        if not raw or has_contents:
            tensor["contents"] = triton.service_pb2.InferTensorContents(int_contents=[1, 2, 3])
        inputs = [triton.service_pb2.ModelInferRequest.InferInputTensor(**tensor)]
        return triton.service_pb2.ModelInferRequest(model_name=model, inputs=inputs, raw_input_contents=raw)

    with grpc.insecure_channel(address) as channel:
        infer = triton.service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer
        with pytest.raises(grpc.RpcError) as raised:
            infer(message(**MALFORMED[case]), timeout=SECONDS)
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT, raised.value.details()
        for raw in ([RAW], []):
            assert infer(message(raw), timeout=SECONDS).outputs[0].name == "y"


# ---------------------------------------------------------------------------- streams


@pytest.fixture
def stream(address, triton):
    """A function that sends requests by one stream, and a queue of what comes back."""
    answers = queue.SimpleQueue()
    with closing(triton.InferenceServerClient(address)) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))

        def send(model, x):
            client.async_stream_infer(model, [given(triton, np.array(x, np.int64))])

        yield send, lambda: answers.get(timeout=SECONDS)
        client.stop_stream(cancel_requests=True)


def test_rows_stream_to_tritonclient(stream):
    send, answer = stream
    for x in (300, 7):
        send("texts", x)
    for x in (300, 7):
        wanted, end = doubled(x)
        assert [int(answer()[0].as_numpy("all")[0]) for _ in wanted] == wanted
        final = answer()[0]
        assert int(final.as_numpy("end")[0]) == end
        assert final.get_response().parameters["triton_final_response"].bool_param


def test_an_error_is_one_of_its_own_request(stream):
    send, answer = stream
    send("nobody", 1)
    send("rows", 1)
    send("texts", 900)
    assert "NL671" in str(answer()[1])
    assert "NL603" in str(answer()[1])
    assert int(answer()[0].as_numpy("all")[0]) == 900


def test_a_stream_whose_client_goes_frees_its_slot(address, triton, services):
    answers = queue.SimpleQueue()
    with closing(triton.InferenceServerClient(address)) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer("endless", [given(triton, np.array(1, np.int64))])
        assert int(answers.get(timeout=SECONDS)[0].as_numpy("all")[0]) == 1
        client.stop_stream(cancel_requests=True)
    wait_for(lambda: services["endless"].metrics().sequences == 0)
