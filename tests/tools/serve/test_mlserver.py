"""The runtime of MLServer, in a server of its own process, with clients over HTTP and gRPC.

This process does not import MLServer, whose messages have the names of tritonclient's.
"""

import http.client
import json
import subprocess
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from importlib.util import find_spec
from itertools import chain

import numpy as np
import pytest

import netloop as trt
from tests.support.networks import combine, mark
from tests.support.served import ROOT, SECONDS, serving, write_model
from tests.tools.serve.test_sequences import mixed, mixing
from tests.tools.serve.test_server import affine
from tests.tools.serve.test_streams import doubled, doubling, endless

if find_spec("mlserver") is None:
    pytest.skip("MLServer is not installed", allow_module_level=True)
HTTP = pytest.importorskip("tritonclient.http")
GRPC = pytest.importorskip("tritonclient.grpc")
PB = pytest.importorskip("tritonclient.grpc.service_pb2")
SERVICE = pytest.importorskip("tritonclient.grpc.service_pb2_grpc")
grpc = pytest.importorskip("grpc")

DATATYPES = {"int32": "INT32", "int64": "INT64", "float32": "FP32"}


def totals(factor):
    """new: total + x; y: a multiple of it."""
    network = trt.INetworkDefinition()
    total, x = (network.add_input(name, trt.int64, ()) for name in ("total", "x"))
    new = combine(network, total, x)
    return mark(network, new=new, y=combine(network, new, factor, trt.ElementWiseOperation.PROD))


def roots(network):
    x = network.add_input("x", trt.float32, (-1, 1))
    return mark(network, y=network.add_unary(x, trt.UnaryOperation.SQRT).get_output(0))


def compiled(make, *arguments):
    return trt.compile(make(trt.INetworkDefinition(), *arguments))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    states = {"states": {"s": "sn"}}
    write_model(folder, "rows", compiled(affine), sizes=[1, 4, 16])
    write_model(folder, "steps", compiled(mixing), **states, slots=1024, sizes=[1, 16, 256])
    write_model(folder, "few", compiled(mixing), **states, slots=2, idle=3, sizes=[1])
    gated = "tests.support.gated_runtime.GatedRuntime"
    write_model(folder, "gated", compiled(affine), gated, sizes=[1], queue=4, gate=str(folder / "gated"))
    write_model(folder, "scaled", compiled(affine), sizes=[1, 4])
    write_model(folder, "totals", trt.compile(totals(2)), states={"total": "new"}, sizes=[1, 4])
    write_model(folder, "roots", compiled(roots), sizes=[2])
    write_model(folder, "texts", compiled(doubling), stream=True, slots=4)
    write_model(folder, "endless", compiled(endless), stream=True, slots=1, queue=1)
    with serving(folder) as served:
        yield served


class Http:
    """A client over HTTP, as tritonclient has it; MLServer takes its tensors as JSON."""

    def __init__(self, server):
        self.client = HTTP.InferenceServerClient(server.http, connection_timeout=SECONDS, network_timeout=SECONDS)

    def infer(self, model, array, **options):
        given = HTTP.InferInput("x", list(array.shape), DATATYPES[array.dtype.name])
        given.set_data_from_numpy(array, binary_data=False)
        return self.client.infer(model, [given], **options)


class Grpc:
    """A client over gRPC, as tritonclient has it."""

    def __init__(self, server):
        self.client = GRPC.InferenceServerClient(server.grpc)

    def infer(self, model, array, **options):
        return self.client.infer(model, [self.given(array)], **options)

    def given(self, array):
        made = GRPC.InferInput("x", list(array.shape), DATATYPES[array.dtype.name])
        made.set_data_from_numpy(array)
        return made


@pytest.fixture(params=[Http, Grpc])
def client(request, server):
    made = request.param(server)
    yield made
    made.client.close()


# ---------------------------------------------------------------------------- results


def test_results_are_those_of_the_engine(client):
    x = np.arange(12, dtype=np.int32).reshape(4, 3)
    made, wanted = client.infer("rows", x, request_id="seven"), compiled(affine)(x=x)["y"]

    np.testing.assert_array_equal(made.as_numpy("y"), wanted)
    assert made.as_numpy("y").dtype == np.float32
    assert made.as_numpy("y").shape == (4, 3)


def test_many_clients_get_their_own_rows(server):
    def ask(number):
        client = (Http, Grpc)[number % 2](server)
        rows = [np.full((1 + step % 3, 3), 100 * number + step, np.int32) for step in range(10)]
        found = [client.infer("rows", row).as_numpy("y") for row in rows]
        client.client.close()
        return all(np.array_equal(made, 2 * row) for made, row in zip(found, rows, strict=True))

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(ask, range(12)))


def test_what_is_no_number_crosses_the_wire(client, server):
    """JSON has a null for it."""
    made = client.infer("roots", np.float32([[-1], [4]])).as_numpy("y").astype(np.float32)
    np.testing.assert_array_equal(made, [[np.nan], [2]])
    status, text = posted(server, "/v2/models/roots/infer", body(shape=[2, 1], datatype="FP32", data=[None, 9]))
    assert (status, json.loads(text)["outputs"][0]["data"]) == (200, [None, 3])


@pytest.mark.parametrize("key", [77, "seventy-seven"])
def test_a_sequence_has_its_state_on_the_server(client, key):
    xs = np.random.default_rng(3).integers(-1000, 1000, 5)
    made = [
        client.infer("steps", xs[i : i + 1], sequence_id=key, sequence_start=i == 0, sequence_end=i == 4)
        for i in range(5)
    ]

    assert [int(value.as_numpy("y")[0]) for value in made] == [mixed(xs[: i + 1]) for i in range(5)]


def test_a_thousand_sequences_at_once_are_not_mixed_up(server):
    count, steps = 1000, 3
    xs = np.random.default_rng(1).integers(-(2**40), 2**40, (steps, count))
    client = Grpc(server)
    found = np.zeros((steps, count), np.int64)
    for step in range(steps):
        done, errors = threading.Semaphore(0), []

        def receive(key, result, error, step=step, done=done, errors=errors):
            if error is None:
                found[step, key] = result.as_numpy("y")[0]
            else:
                errors.append(error)
            done.release()

        for key in range(count):
            client.client.async_infer(
                "steps",
                [client.given(xs[step, key : key + 1])],
                lambda result, error, key=key, receive=receive: receive(key, result, error),
                sequence_id=key + 1,
                sequence_start=step == 0,
                sequence_end=step == steps - 1,
            )
        for _ in range(count):
            assert done.acquire(timeout=SECONDS)
        assert errors == []
    client.client.close()

    np.testing.assert_array_equal(
        found, [[mixed(xs[: step + 1, key]) for key in range(count)] for step in range(steps)]
    )


# ---------------------------------------------------------------------------- overload


def test_ten_times_too_many_requests_are_refused_while_the_accepted_ones_wait(client, server):
    """A call waits for a file: one request is in it, four are in the queue, and forty find no room."""
    gate, x = server.folder / "gated", np.ones((1, 3), np.int32)
    for name in ("open", "reached"):
        (gate / name).unlink(missing_ok=True)

    def ask():
        own = type(client)(server)
        try:
            return own.infer("gated", x).as_numpy("y").tolist()
        except (HTTP.InferenceServerException, GRPC.InferenceServerException) as error:
            return error
        finally:
            own.client.close()

    with ThreadPoolExecutor(45) as pool:
        try:
            first = pool.submit(ask)
            wait_for(gate / "reached")
            waiting = {pool.submit(ask) for _ in range(44)}
            refused = set()
            while len(refused) < 40:
                done, waiting = wait(waiting, SECONDS, FIRST_COMPLETED)
                assert done, "no request was refused"
                refused |= done
            assert len(waiting) == 4
            assert not first.done()
        finally:
            (gate / "open").touch()
        accepted = [future.result(SECONDS) for future in (first, *waiting)]

    assert accepted == [[[2.0] * 3]] * 5
    for value in refused:
        error = value.result()
        assert "NL641" in str(error)
        assert error.status() in ("503", "StatusCode.UNAVAILABLE")


def wait_for(path):
    end = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.01)


# ---------------------------------------------------------------------------- clients that die

DYING = """
import sys
import numpy as np
import tritonclient.grpc as triton

client = triton.InferenceServerClient(sys.argv[1])
x = triton.InferInput("x", [1], "INT64")
x.set_data_from_numpy(np.int64([1]))
step = 0
while True:
    client.infer("few", [x], sequence_id=13, sequence_start=step == 0)
    step += 1
    if step == 3:
        print("started", flush=True)
"""


def test_a_killed_client_loses_its_slot_and_the_others_go_on(server):
    with subprocess.Popen([sys.executable, "-c", DYING, server.grpc], cwd=ROOT, stdout=subprocess.PIPE) as dying:
        client = Grpc(server)
        try:
            assert dying.stdout.readline() == b"started\n"
            client.infer("few", np.int64([5]), sequence_id=21, sequence_start=True)
            with pytest.raises(GRPC.InferenceServerException, match="all 2 slots have a sequence"):
                client.infer("few", np.int64([1]), sequence_id=34, sequence_start=True)
        finally:
            dying.kill()
    given, free, end = [5], False, time.monotonic() + SECONDS
    while not free:
        assert time.monotonic() < end
        given.append(6)
        made = client.infer("few", np.int64([6]), sequence_id=21)
        assert made.as_numpy("y")[0] == mixed(given)
        free = starts(client, 34)
    client.client.close()


def starts(client, key):
    try:
        client.infer("few", np.int64([1]), sequence_id=key, sequence_start=True)
    except GRPC.InferenceServerException as error:
        if error.status() == "StatusCode.UNAVAILABLE":
            return False
        raise
    return True


# ---------------------------------------------------------------------------- malformed requests


def body(**changes):
    given = {"name": "x", "shape": [1, 3], "datatype": "INT32", "data": [1, 2, 3], **changes}
    return json.dumps({"inputs": [given]}).encode()


MALFORMED = {
    "no JSON": b"{",
    "text": b"hello",
    "nothing": b"",
    "no inputs": b"{}",
    "inputs of another kind": b'{"inputs": 7}',
    "an empty list of inputs": b'{"inputs": []}',
    "unknown name": body(name="z"),
    "input twice": json.dumps({"inputs": json.loads(body())["inputs"] * 2}).encode(),
    "unknown datatype": body(datatype="INT33"),
    "other datatype": body(datatype="FP32"),
    "datatype of text": body(datatype="BYTES"),
    "fractions": body(data=[1.5, 2, 3]),
    "text as numbers": body(data=["1", "2", "3"]),
    "null": body(data=[None, 2, 3]),
    "number out of range": body(data=[2**40, 2, 3]),
    "too few data": body(data=[1, 2]),
    "ragged data": body(data=[[1, 2], [3]]),
    "data of another kind": body(data={"a": 1}),
    "other rank": body(shape=[3]),
    "other shape": body(shape=[3, 1]),
    "no rows": body(shape=[0, 3], data=[]),
    "negative shape": body(shape=[-1, 3]),
    "huge shape": body(shape=[2**40, 3]),
    "more than huge": body(shape=[2**62, 2**62]),
    "shape of text": body(shape=["a", 3]),
}


def posted(server, path, data, headers=()):
    connection = http.client.HTTPConnection(server.http, timeout=SECONDS)
    connection.request("POST", path, data, {"Content-Type": "application/json", **dict(headers)})
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_json_is_the_fault_of_the_client(case, server):
    status, text = posted(server, "/v2/models/rows/infer", MALFORMED[case])

    assert 400 <= status < 500, text
    assert posted(server, "/v2/models/rows/infer", body())[0] == 200


def test_binary_tensors_over_http_are_refused(server):
    """MLServer reads JSON only, so a client passes binary_data=False."""
    client = HTTP.InferenceServerClient(server.http)
    given = HTTP.InferInput("x", [1, 3], "INT32")
    given.set_data_from_numpy(np.ones((1, 3), np.int32))
    with pytest.raises(HTTP.InferenceServerException) as raised:
        client.infer("rows", [given])
    client.close()

    assert raised.value.status().startswith("4")


def message(raw=None, model="rows", **changes):
    tensor = {"name": "x", "datatype": "INT32", "shape": [1, 3], **changes}
    if raw is None:
        tensor["contents"] = PB.InferTensorContents(int_contents=[1, 2, 3])
    return PB.ModelInferRequest(
        model_name=model,
        inputs=[PB.ModelInferRequest.InferInputTensor(**tensor)],
        raw_input_contents=[] if raw is None else [raw],
    )


RAW = np.int32([1, 2, 3]).tobytes()
MALFORMED_MESSAGES = {
    "truncated raw bytes": message(RAW[:-2]),
    "too many raw bytes": message(RAW * 2),
    "raw bytes of no tensor": PB.ModelInferRequest(model_name="rows", raw_input_contents=[RAW]),
    "fewer raw bytes than tensors": PB.ModelInferRequest(
        model_name="rows", inputs=[*message(RAW).inputs] * 2, raw_input_contents=[RAW]
    ),
    "unknown name": message(RAW, name="z"),
    "unknown datatype": message(RAW, datatype="INT33"),
    "no datatype": message(datatype=""),
    "other datatype": message(RAW, datatype="FP32"),
    "other shape": message(RAW, shape=[3, 1]),
    "huge shape": message(RAW, shape=[2**40, 3]),
    "more than huge": message(RAW, shape=[2**62, 2**62]),
    "negative shape": message(RAW, shape=[-1, 3]),
    "no shape": message(RAW, shape=[]),
    "other contents": message(shape=[1, 4]),
    "no inputs": PB.ModelInferRequest(model_name="rows"),
    "no sequence": message(RAW, model="steps"),
}


@pytest.mark.parametrize("case", MALFORMED_MESSAGES)
def test_malformed_messages_are_the_fault_of_the_client(case, server):
    with grpc.insecure_channel(server.grpc) as channel:
        infer = SERVICE.GRPCInferenceServiceStub(channel).ModelInfer
        with pytest.raises(grpc.RpcError) as raised:
            infer(MALFORMED_MESSAGES[case], timeout=SECONDS)
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT, raised.value.details()
        assert infer(message(RAW), timeout=SECONDS).outputs[0].name == "y"


def test_an_unknown_model_is_not_found(client):
    with pytest.raises((HTTP.InferenceServerException, GRPC.InferenceServerException)) as raised:
        client.infer("nobody", np.ones((1, 3), np.int32))
    assert raised.value.status() in ("404", "StatusCode.NOT_FOUND")


def stepped(x, **parameters):
    given = {"name": "x", "shape": [1], "datatype": "INT64", "data": [x]}
    return json.dumps({"inputs": [given], "parameters": parameters}).encode()


@pytest.mark.parametrize("value", ["false", "true", "0", "no", "", 0, 1, 1.0, None, [], {}])
@pytest.mark.parametrize("flag", ["sequence_start", "sequence_end"])
def test_flags_of_a_request_are_true_or_false(server, flag, value):
    given = {"sequence_id": 4711, "sequence_start": True, flag: value}
    status, text = posted(server, "/v2/models/steps/infer", stepped(1, **given))

    assert status == 400, text
    assert f"{flag} must be true or false" in text


@pytest.mark.parametrize("value", [True, False, 1.5, 0, "", None, [1]])
def test_ids_of_sequences_are_numbers_or_strings(server, value):
    status, text = posted(server, "/v2/models/steps/infer", stepped(1, sequence_id=value, sequence_start=True))

    assert status == 400, text
    assert "sequence_id" in text


def test_flags_that_are_false_begin_and_end_nothing(server):
    for x, start in ((5, True), (6, False)):
        given = {"sequence_id": "flags", "sequence_start": start, "sequence_end": False}
        status, text = posted(server, "/v2/models/steps/infer", stepped(x, **given))
        assert status == 200, text
    assert json.loads(text)["outputs"][0]["data"] == [int(mixed([5, 6]))]


# ---------------------------------------------------------------------------- new weights


def test_a_model_loaded_again_answers_all_requests_with_old_or_new_weights(server):
    stop, x = threading.Event(), np.ones((1, 3), np.int32)

    def ask(kind):
        client, found = kind(server), []
        while not stop.is_set():
            found.append(float(client.infer("scaled", x).as_numpy("y")[0, 0]))
        client.client.close()
        return found

    with ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(ask, kind) for kind in (Http, Grpc) * 2]
        try:
            for factor in (3, 4, 5):
                compiled(affine, factor).save(server.folder / "scaled" / "model.plan")
                assert posted(server, "/v2/repository/models/scaled/load", b"")[0] == 200
            last = Http(server)
            assert last.infer("scaled", x).as_numpy("y")[0, 0] == 5
            last.client.close()
        finally:
            stop.set()
        found = [future.result(SECONDS) for future in clients]

    for values in found:
        # in their order: no request has older weights than the one before
        assert values == sorted(values)
        assert set(values) <= {2, 3, 4, 5}
    assert {2, 5} <= set(chain(*found))


def test_sequences_keep_their_states_when_their_model_is_loaded_again(client, server):
    trt.compile(totals(2)).save(server.folder / "totals" / "model.plan")
    assert posted(server, "/v2/repository/models/totals/load", b"")[0] == 200
    before = [client.infer("totals", np.int64([key]), sequence_id=key, sequence_start=True) for key in (1, 2)]
    trt.compile(totals(3)).save(server.folder / "totals" / "model.plan")
    assert posted(server, "/v2/repository/models/totals/load", b"")[0] == 200
    after = [client.infer("totals", np.int64([10]), sequence_id=key, sequence_end=True) for key in (1, 2)]

    assert [int(value.as_numpy("y")[0]) for value in before] == [2, 4]
    assert [int(value.as_numpy("y")[0]) for value in after] == [33, 36]


# ---------------------------------------------------------------------------- streams


def events(server, model, x):
    """The events of a stream over HTTP, as they arrive; it is left when the generator is closed."""
    given = {"inputs": [{"name": "x", "shape": [], "datatype": "INT64", "data": [x]}]}
    with closing(http.client.HTTPConnection(server.http, timeout=SECONDS)) as connection:
        connection.request("POST", f"/v2/models/{model}/generate_stream", json.dumps(given))
        with connection.getresponse() as response:
            assert response.status == 200
            assert response.headers["Content-Type"].startswith("text/event-stream")
            for line in response:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])


def values(event):
    return {value["name"]: value["data"] for value in event["outputs"]}


def test_rows_stream_over_http(server):
    *rows, final = events(server, "texts", 3)
    wanted, end = doubled(3)

    assert [values(row) for row in rows] == [{"all": [value]} for value in wanted]
    assert values(final) == {"end": [end]}
    assert final["parameters"]["triton_final_response"] is True


def test_rows_stream_over_grpc(server):
    with grpc.insecure_channel(server.grpc) as channel:
        for x in (5, 7):
            *rows, final = streamed(channel, "texts", x)
            wanted, end = doubled(x)
            assert [number(row, "all") for row in rows] == wanted
            assert number(final, "end") == end
            assert final.parameters["triton_final_response"].bool_param


def streamed(channel, model, x):
    """The responses of MLServer's stream, which are those of a call: Triton wraps them, and so does its client."""
    tensor = PB.ModelInferRequest.InferInputTensor(name="x", datatype="INT64", shape=[])
    message = PB.ModelInferRequest(model_name=model, inputs=[tensor], raw_input_contents=[np.int64(x).tobytes()])
    stream = channel.stream_stream(
        "/inference.GRPCInferenceService/ModelStreamInfer",
        request_serializer=PB.ModelInferRequest.SerializeToString,
        response_deserializer=PB.ModelInferResponse.FromString,
    )
    return stream(iter([message]), timeout=SECONDS)


def number(message, name):
    (output,) = message.outputs
    assert output.name == name
    return int(np.frombuffer(message.raw_output_contents[0], np.int64)[0])


def test_many_streams_at_once_are_not_mixed_up(server):
    def rows(x):
        *found, final = events(server, "texts", x)
        return [values(value)["all"][0] for value in found], values(final)["end"][0]

    with ThreadPoolExecutor(16) as pool:
        for x, found in zip(range(1, 33), pool.map(rows, range(1, 33)), strict=True):
            assert found == doubled(x)


def test_a_request_without_a_stream_has_all_outputs(client):
    made = client.infer("texts", np.array(3, np.int64))
    wanted, end = doubled(3)

    assert made.as_numpy("all")[: len(wanted) + 1].tolist() == [*wanted, 0]
    assert int(made.as_numpy("end")[0]) == end


def test_a_stream_whose_client_goes_frees_its_slot(server):
    """There is one slot, and the stream has a million rows."""
    first = events(server, "endless", 1)
    assert values(next(first)) == {"all": [1]}
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: next(events(server, "endless", 2)))
        assert values(next(first)) == {"all": [1]}
        assert not waiting.done()
        first.close()
        assert values(waiting.result(SECONDS)) == {"all": [2]}

    with grpc.insecure_channel(server.grpc) as channel:
        stream = streamed(channel, "endless", 3)
        assert number(next(stream), "all") == 3
        stream.cancel()
    assert values(next(events(server, "endless", 4))) == {"all": [4]}


def test_a_refused_stream_says_why(server):
    """One runs, and of three others one waits; HTTP has sent its status by then, so the last event has the error."""
    first = events(server, "endless", 1)
    next(first)
    with ThreadPoolExecutor(3) as pool:
        try:
            waiting = {pool.submit(lambda: next(events(server, "endless", 2))) for _ in range(3)}
            refused = set()
            while len(refused) < 2:
                done, waiting = wait(waiting, SECONDS, FIRST_COMPLETED)
                assert done, "no stream was refused"
                refused |= done
            with grpc.insecure_channel(server.grpc) as channel:
                with pytest.raises(grpc.RpcError) as raised:
                    next(streamed(channel, "endless", 3))
                assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
        finally:
            first.close()
        (accepted,) = waiting
        assert values(accepted.result(SECONDS)) == {"all": [2]}

    for value in refused:
        parameters = value.result()["parameters"]
        assert "NL641" in parameters["error"]
        assert parameters["status"] == 503
