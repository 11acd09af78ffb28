"""The V2 protocol over HTTP, by an application of ASGI in this process."""

import asyncio
import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import netloop as trt
from netloop.serve import Endpoint, Sequences, Server, Streams
from netloop.tools.serve.endpoint import HEADER_LENGTH
from netloop.tools.serve.served_model import ServedModel
from tests.support.asgi import SECONDS, Client, ask, asked
from tests.support.networks import combine, mark
from tests.tools.serve.test_sequences import Gate, Time, mixed, mixing
from tests.tools.serve.test_server import affine
from tests.tools.serve.test_streams import doubled, doubling, endless, wait_for

Op = trt.ElementWiseOperation


def same(network, *names, shape=(-1, 2)):
    """An output of each type, which is an input."""
    for name in names:
        x = network.add_input(name, getattr(trt, name), shape)
        mark(network, **{f"{name}_out": network.add_identity(x).get_output(0)})
    return network


def roots(network):
    x = network.add_input("x", trt.float32, (-1,))
    return mark(network, y=network.add_unary(x, trt.UnaryOperation.SQRT).get_output(0))


def engine(make, *arguments):
    return trt.compile(make(trt.INetworkDefinition(), *arguments))


@pytest.fixture(scope="module")
def endpoint():
    models = {
        "rows": Server(engine(affine), (1, 4)),
        "steps": Sequences(engine(mixing), {"s": "sn"}, slots=4, sizes=(1,)),
        "texts": Streams(trt.SlotEngine(engine(doubling), slots=4)),
        "roots": Server(engine(roots), (4,)),
        "number": Server(engine(mixing), ()),
    }
    yield Endpoint(models, max_body=10_000)
    for service in models.values():
        service.close()


def tensor(name="x", shape=(1, 3), datatype="INT32", data=(1, 2, 3), **more):
    return {"name": name, "shape": shape, "datatype": datatype, "data": data, **more}


def of_raw_bytes():
    return {"name": "x", "shape": [1, 3], "datatype": "INT32", "parameters": {"binary_data_size": 12}}


def body(*tensors, **more):
    return json.dumps({"inputs": tensors or [tensor()], **more}).encode()


def infer(endpoint, model, data, headers=()):
    return ask(endpoint, "POST", f"/v2/models/{model}/infer", data, headers)


def outputs(answer):
    assert answer.status == 200, answer.body
    return {output["name"]: output["data"] for output in answer.json["outputs"]}


# ---------------------------------------------------------------------------- what there is


def test_metadata_of_a_server(endpoint):
    for path in ("/v2", "/v2/"):
        about = ask(endpoint, "GET", path).json
        assert (about["name"], about["version"]) == ("netloop", trt.__version__)
        assert "binary_tensor_data" in about["extensions"]


@pytest.mark.parametrize("path", ["/v2/models/rows", "/v2/models/rows/versions/1"])
def test_metadata_of_a_model_has_open_lengths_as_minus_one(endpoint, path):
    assert ask(endpoint, "GET", path).json == {
        "name": "rows",
        "versions": ["1"],
        "platform": "netloop",
        "inputs": [{"name": "x", "datatype": "INT32", "shape": [-1, 3]}],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}],
    }


def test_states_are_not_in_the_metadata(endpoint):
    about = ask(endpoint, "GET", "/v2/models/steps").json
    assert about["inputs"] == [{"name": "x", "datatype": "INT64", "shape": [1]}]
    assert about["outputs"] == [{"name": "y", "datatype": "INT64", "shape": [1]}]


def test_a_server_is_live_and_ready_until_a_service_is_closed():
    with Server(engine(affine), (1,)) as server:
        endpoint = Endpoint({"rows": server})
        paths = ["/v2/health/live", "/v2/health/ready", "/v2/models/rows/ready"]
        assert [ask(endpoint, "GET", path).status for path in paths] == [200] * 3
        assert ask(endpoint, "GET", "/v2/health/live").json == {"live": True}
    assert [ask(endpoint, "GET", path).status for path in paths] == [503] * 3
    assert infer(endpoint, "rows", body()).status == 503


def test_head_is_get_without_a_body(endpoint):
    assert ask(endpoint, "HEAD", "/v2/health/live").status == 200


def test_models_are_listed(endpoint):
    index = ask(endpoint, "POST", "/v2/repository/index", b"{}").json
    assert {"name": "steps", "version": "1", "state": "READY"} in index


def test_metrics_are_those_of_each_service(endpoint):
    for _ in range(2):
        infer(endpoint, "roots", body(tensor(shape=[1], datatype="FP32", data=[4])))
    answer = ask(endpoint, "GET", "/metrics")
    lines = answer.body.decode().splitlines()

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    completed = endpoint.models["roots"].service.metrics().completed
    assert completed >= 2
    assert f'netloop_serve_completed{{model="roots"}} {completed}' in lines
    assert "# TYPE netloop_serve_completed counter" in lines
    assert "# TYPE netloop_serve_queued gauge" in lines
    assert [line for line in lines if line.startswith('netloop_serve_p95{model="rows"}')]


# ---------------------------------------------------------------------------- results


def test_results_are_those_of_the_engine(endpoint):
    answer = infer(endpoint, "rows", body(id="seven", outputs=[{"name": "y"}]))

    assert answer.headers["content-type"] == "application/json"
    assert answer.json == {
        "model_name": "rows",
        "model_version": "1",
        "id": "seven",
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 3], "data": [2, 4, 6]}],
    }


def test_data_may_be_nested(endpoint):
    assert outputs(infer(endpoint, "rows", body(tensor(shape=[2, 3], data=[[1, 2, 3], [4, 5, 6]]))))["y"] == [
        *(2, 4, 6),
        *(8, 10, 12),
    ]


def test_a_number_is_an_array_of_one_element_or_of_no_axis(endpoint):
    for shape in ([], [1], [1, 1]):
        numbers = [tensor(name, shape, "INT64", [value]) for name, value in (("s", 2), ("x", 5))]
        answer = infer(endpoint, "number", body(*numbers))
        assert outputs(answer) == {"sn": [67], "y": [74]}
        assert answer.json["outputs"][0]["shape"] == [1]


def test_what_is_no_number_crosses_the_wire(endpoint):
    """JSON has a null for NaN, and for infinity a number that is too large for a float."""
    numbers = b'{"inputs": [{"name": "x", "shape": [4], "datatype": "FP32", "data": [-1, null, 1e999, 9]}]}'
    answer = infer(endpoint, "roots", numbers)

    assert outputs(answer)["y"] == [None, None, float("inf"), 3]
    assert b"1e999" in answer.body


def test_a_sequence_has_its_state_on_the_server(endpoint):
    xs = [3, -5, 7]
    found = [
        outputs(infer(endpoint, "steps", step(x, sequence_id="a", sequence_start=i == 0, sequence_end=i == 2)))["y"]
        for i, x in enumerate(xs)
    ]
    assert found == [[int(mixed(xs[: i + 1]))] for i in range(3)]


def step(x, **parameters):
    return body(tensor(shape=[1], datatype="INT64", data=[x]), parameters=parameters)


def test_a_model_without_rows_is_served_by_fixed_shapes():
    with Server(engine(same, "float32"), ()) as server:
        answer = infer(Endpoint({"m": server}), "m", body(tensor("float32", [1, 2], "FP32", [1.5, 2])))
        assert outputs(answer) == {"float32_out": [1.5, 2]}


# ---------------------------------------------------------------------------- raw bytes


def test_raw_bytes_in_and_out(endpoint):
    x = np.arange(6, dtype="<i4")
    about = {"name": "x", "shape": [2, 3], "datatype": "INT32", "parameters": {"binary_data_size": 24}}
    for more in (
        {"outputs": [{"name": "y", "parameters": {"binary_data": True}}]},
        {"parameters": {"binary_data_output": True}},
    ):
        head = json.dumps({"inputs": [about], **more}).encode()
        answer = infer(endpoint, "rows", head + x.tobytes(), {HEADER_LENGTH: str(len(head))})

        assert answer.headers["content-type"] == "application/octet-stream"
        length = int(answer.headers[HEADER_LENGTH])
        (output,) = json.loads(answer.body[:length])["outputs"]
        assert output == {"name": "y", "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": 24}}
        np.testing.assert_array_equal(np.frombuffer(answer.body[length:], "<f4"), 2 * x)


def test_some_outputs_are_raw_and_others_are_not(endpoint):
    numbers = [tensor(name, [1], "INT64", [2]) for name in "sx"]
    named = [{"name": "y"}, {"name": "sn", "parameters": {"binary_data": True}}]
    answer = infer(endpoint, "number", body(*numbers, outputs=named))
    length = int(answer.headers[HEADER_LENGTH])

    found = {output["name"]: output.get("data") for output in json.loads(answer.body[:length])["outputs"]}
    assert found == {"sn": None, "y": [71]}
    assert np.frombuffer(answer.body[length:], "<i8").tolist() == [64]


TYPES = {
    **{name: [0, 100] for name in ("int8", "uint8", "int32", "int64")},
    "uint64": [0, 2**64 - 1],
    **{name: [0.5, -2] for name in ("float16", "float32", "float64")},
    "bfloat16": [0.5, -2],
    "bool": [True, False],
    "string": ["", "Grüße"],
}
DTYPES = {"bfloat16": ml_dtypes.bfloat16, "bool": np.bool_}
NAMES = {"bfloat16": "BF16", "string": "BYTES", "float16": "FP16", "float32": "FP32", "float64": "FP64"}


@pytest.fixture(scope="module")
def identity():
    with Server(engine(same, *TYPES), ()) as server:
        yield Endpoint({"m": server})


def raw(name):
    if name == "string":
        texts = [text.encode() for text in TYPES[name]]
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    return np.array([TYPES[name]], DTYPES.get(name, name)).tobytes()


def test_every_type_crosses_the_wire_as_json_and_as_bytes(identity):
    named = {name: NAMES.get(name, name.upper()) for name in TYPES}
    found = outputs(
        infer(identity, "m", body(*(tensor(name, [1, 2], named[name], data) for name, data in TYPES.items())))
    )
    assert found == {f"{name}_out": data for name, data in TYPES.items()}

    parts = {name: raw(name) for name in TYPES}
    about = [
        {"name": name, "shape": [1, 2], "datatype": named[name], "parameters": {"binary_data_size": len(part)}}
        for name, part in parts.items()
    ]
    head = json.dumps({"inputs": about, "parameters": {"binary_data_output": True}}).encode()
    answer = infer(identity, "m", head + b"".join(parts.values()), {HEADER_LENGTH: str(len(head))})
    assert answer.status == 200, answer.body
    assert answer.body[int(answer.headers[HEADER_LENGTH]) :] == b"".join(parts.values())


def test_a_type_without_a_name_is_refused():
    with (
        Server(engine(same, "fp8"), ()) as server,
        pytest.raises(trt.NetworkError, match="NL673: 'fp8' is float8_e4m3fn"),
    ):
        Endpoint({"m": server})


# ---------------------------------------------------------------------------- malformed requests

MALFORMED = {
    "no JSON": b"{",
    "text": b"hello",
    "nothing": b"",
    "no Unicode": b'{"inputs": "\xff\xfe"}',
    "deep": b"[" * 5000,
    "long number": b'{"inputs": ' + b"9" * 5000 + b"}",
    "a list": b"[]",
    "no inputs": b"{}",
    "inputs of another kind": b'{"inputs": 7}',
    "an empty list of inputs": b'{"inputs": []}',
    "an input of another kind": b'{"inputs": [7]}',
    "no name": b'{"inputs": [{"shape": [1, 3], "datatype": "INT32", "data": [1, 2, 3]}]}',
    "no data": b'{"inputs": [{"name": "x", "shape": [1, 3], "datatype": "INT32"}]}',
    "no shape": b'{"inputs": [{"name": "x", "datatype": "INT32", "data": [1, 2, 3]}]}',
    "parameters of another kind": body(parameters=[1]),
    "parameters of an input": body(tensor(parameters=7)),
    "unknown name": body(tensor("z")),
    "input twice": body(tensor(), tensor()),
    "unknown datatype": body(tensor(datatype="INT33")),
    "datatype of another kind": body(tensor(datatype=["INT32"])),
    "other datatype": body(tensor(datatype="FP32")),
    "datatype of text": body(tensor(datatype="BYTES")),
    "texts": body(tensor(datatype="BYTES", data=["a", "b", "c"])),
    "fractions": body(tensor(data=[1.5, 2, 3])),
    "text as numbers": body(tensor(data=["1", "2", "3"])),
    "a flag among numbers": body(tensor(data=[True, 2, 3])),
    "null": body(tensor(data=[None, 2, 3])),
    "number out of range": body(tensor(data=[2**40, 2, 3])),
    "too few data": body(tensor(data=[1, 2])),
    "ragged data": body(tensor(data=[[1, 2], [3]])),
    "data of another kind": body(tensor(data={"a": 1})),
    "other rank": body(tensor(shape=[3])),
    "other shape": body(tensor(shape=[3, 1])),
    "no rows": body(tensor(shape=[0, 3], data=[])),
    "negative shape": body(tensor(shape=[-1, 3])),
    "huge shape": body(tensor(shape=[2**40, 3])),
    "more than huge": body(tensor(shape=[2**62, 2**62])),
    "shape of text": body(tensor(shape=["a", 3])),
    "shape of flags": body(tensor(shape=[True, 3])),
    "shape of another kind": body(tensor(shape="13")),
    "unknown output": body(outputs=[{"name": "z"}]),
    "output of another kind": body(outputs=["y"]),
    "a flag that is text": body(outputs=[{"name": "y", "parameters": {"binary_data": "false"}}]),
    "raw bytes that are not there": body(of_raw_bytes()),
    "an id that is no text": body(id=7),
    "a time limit that is text": body(parameters={"timeout": "1"}),
    "a time limit below zero": body(parameters={"timeout": -1}),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_json_is_the_fault_of_the_client(case, endpoint):
    answer = infer(endpoint, "rows", MALFORMED[case])

    assert answer.status == 400, answer.body
    assert list(answer.json) == ["error"]
    assert answer.json["error"].startswith("NL")


@pytest.mark.parametrize("data", [[None, "3"], [1.5, True], [None, "nan"], [None, {}], [2**70, False], [[1], 2]])
def test_floats_are_numbers_and_null(endpoint, data):
    answer = infer(endpoint, "roots", body(tensor(shape=[2], datatype="FP32", data=data)))
    assert (answer.status, answer.json["error"].startswith("NL670")) == (400, True)


@pytest.mark.parametrize("shape", [[0, 2**62], [2**62, 2**62, 0]])
@pytest.mark.parametrize("more", [{"data": []}, {"parameters": {"binary_data_size": 0}}])
def test_shapes_without_elements_that_are_too_long_are_refused(endpoint, shape, more):
    text = body({"name": "x", "shape": shape, "datatype": "FP32", **more})
    answer = infer(endpoint, "roots", text, {HEADER_LENGTH: str(len(text))})
    assert (answer.status, answer.json["error"].startswith("NL670")) == (400, True)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_words_that_are_no_json_are_refused(endpoint, word):
    text = body(tensor(shape=[1], datatype="FP32", data=["?"])).replace(b'"?"', word.encode())
    answer = infer(endpoint, "roots", text)
    assert (answer.status, f"{word} is no number of JSON" in answer.json["error"]) == (400, True)


HEAD = body(of_raw_bytes())


@pytest.mark.parametrize(
    ("head", "more", "length"),
    [
        (body({**tensor(), **of_raw_bytes()}), bytes(12), None),
        (HEAD, bytes(11), None),
        (HEAD, bytes(13), None),
        (HEAD, bytes(12), "-1"),
        (HEAD, bytes(12), "1e3"),
        (HEAD, bytes(12), "99999"),
        (HEAD.replace(b"12", b"8"), bytes(8), None),
        (HEAD.replace(b"12", b"-4"), bytes(12), None),
        (HEAD.replace(b"12", b"true"), bytes(12), None),
        (HEAD.replace(b"INT32", b"BYTES"), bytes(11) + b"\1", None),
        (HEAD.replace(b"INT32", b"BYTES"), b"\xff" * 12, None),
        (HEAD.replace(b"INT32", b"BYTES").replace(b"12", b"5"), b"\1\0\0\0\xff", None),
    ],
)  # fmt: skip
def test_malformed_raw_bytes_are_the_fault_of_the_client(endpoint, head, more, length):
    answer = infer(endpoint, "rows", head + more, {HEADER_LENGTH: length or str(len(head))})
    assert answer.status == 400, answer.body
    assert answer.json["error"].startswith("NL670")


KEYS = st.sampled_from(["name", "shape", "datatype", "data", "parameters", "outputs", "id", "x", "y", "timeout"])
WORDS = st.sampled_from(["x", "y", "INT32", "FP32", "BYTES", "binary_data_size", "binary_data", "\ud800"])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda values: st.lists(values, max_size=4) | st.dictionaries(KEYS | WORDS, values, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, ANY, max_size=3), st.dictionaries(KEYS, ANY, max_size=3))
def test_requests_of_any_values_have_an_answer(endpoint, of_tensor, of_request):
    for path in ("infer", "generate_stream"):
        request = body({**tensor(), **of_tensor}, **of_request)
        answer = ask(endpoint, "POST", f"/v2/models/rows/{path}", request)

        # the last one where a time limit was drawn
        assert answer.status in (200, 400, 504), answer.body
        if answer.status != 200:
            assert list(answer.json) == ["error"]


@pytest.mark.parametrize("value", ["false", "", 0, 1.0, None, [], {}])
@pytest.mark.parametrize("flag", ["sequence_start", "sequence_end"])
def test_flags_of_a_request_are_true_or_false(endpoint, flag, value):
    answer = infer(endpoint, "steps", step(1, **{"sequence_id": 4711, "sequence_start": True, flag: value}))

    assert answer.status == 400
    assert f"{flag} must be true or false" in answer.json["error"]


@pytest.mark.parametrize("value", [True, False, 1.5, 0, "", None, [1]])
def test_ids_of_sequences_are_numbers_or_strings(endpoint, value):
    answer = infer(endpoint, "steps", step(1, sequence_id=value, sequence_start=True))

    assert answer.status == 400
    assert "sequence_id" in answer.json["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v3", 404),
        ("GET", "/v2/models/nobody", 404),
        ("GET", "/v2/models/rows/versions/2", 404),
        ("POST", "/v2/models/nobody/infer", 404),
        ("POST", "/v2/models/rows/versions/2/infer", 404),
        ("POST", "/v2/models//infer", 404),
        ("POST", "/v2/repository/models/nobody/load", 404),
        ("GET", "/v2/models/rows/infer", 405),
        ("POST", "/v2", 405),
        ("DELETE", "/v2/models/rows", 405),
    ],
)
def test_what_is_not_there(endpoint, method, path, status):
    answer = ask(endpoint, method, path, body() if method == "POST" else b"")

    assert answer.status == status
    assert answer.json["error"].startswith("NL671")


def test_a_name_is_corrected(endpoint):
    assert "did you mean 'rows'?" in infer(endpoint, "row", body()).json["error"]


def test_requests_that_are_too_large_are_not_read(endpoint):
    large = body(tensor(data=[1] * 9_999))
    assert infer(endpoint, "rows", large).status == 413

    async def unsized():
        """A body whose length no header says."""
        client = Client("POST", "/v2/models/rows/infer", large, {"transfer-encoding": "chunked"})
        client.scope["headers"] = [line for line in client.scope["headers"] if line[0] != b"content-length"]
        await endpoint(client.scope, client.receive, client.send)
        return client.answer

    answer = asyncio.run(unsized())
    assert (answer.status, answer.json["error"][:5]) == (413, "NL672")
    assert answer.headers["connection"] == "close"


def test_compressed_requests_are_refused(endpoint):
    answer = infer(endpoint, "rows", body(), {"content-encoding": "gzip"})
    assert answer.status == 415
    assert "gzip" in answer.json["error"]


def test_an_error_of_netloop_itself_is_one_of_the_server(endpoint, monkeypatch, capsys):
    monkeypatch.setattr(endpoint.models["rows"], "submit", lambda request: 1 / 0)
    answer = infer(endpoint, "rows", body())

    assert (answer.status, answer.json) == (500, {"error": "the server failed: ZeroDivisionError: division by zero"})
    assert "Traceback" in capsys.readouterr().err


def test_a_failed_computation_is_an_error_of_its_own_request(endpoint):
    with Streams(trt.SlotEngine(engine(doubling), slots=1, max_trips=3)) as streams:
        short = Endpoint({"texts": streams})
        assert infer(short, "texts", number(1)).status == 400
        assert outputs(infer(short, "texts", number(500)))["end"] == [1001]


@pytest.mark.parametrize("name", ["", "a/b"])
def test_names_are_parts_of_a_path(endpoint, name):
    with pytest.raises(ValueError, match="part of a path"):
        Endpoint({name: endpoint.models["rows"].service})


def test_models_are_services():
    with pytest.raises(TypeError, match="a model must be Service"):
        Endpoint({"m": engine(affine)})


# ---------------------------------------------------------------------------- overload, and clients that go


def number(x):
    return body(tensor(shape=[], datatype="INT64", data=[x]))


INFER = "/v2/models/m/infer"
STREAM = "/v2/models/m/generate_stream"


def test_a_full_queue_is_unavailable():
    async def overload(endpoint, gate):
        first = asyncio.ensure_future(asked(endpoint, "POST", INFER, body()))
        await asyncio.to_thread(gate.reached.wait, SECONDS)
        others = [asyncio.ensure_future(asked(endpoint, "POST", INFER, body())) for _ in range(9)]
        refused = [await future for _, future in zip(range(7), asyncio.as_completed(others), strict=False)]
        assert not first.done()
        gate.open()
        return refused, [await first, *await asyncio.gather(*others)]

    with Server(engine(affine), (1,), queue=2) as server:
        refused, answers = asyncio.run(overload(Endpoint({"m": server}), Gate(server)))
    assert [answer.status for answer in refused] == [503] * 7
    assert all("NL641" in answer.json["error"] for answer in refused)
    assert sorted(answer.status for answer in answers) == [200] * 3 + [503] * 7


@pytest.mark.parametrize("limit", [{"timeout": 1_000_000}, {}])
def test_a_request_whose_time_is_over_is_not_run(limit):
    async def late(endpoint, gate, clock):
        first = asyncio.ensure_future(asked(endpoint, "POST", INFER, body()))
        await asyncio.to_thread(gate.reached.wait, SECONDS)
        second = asyncio.ensure_future(asked(endpoint, "POST", INFER, body(parameters=limit)))
        while not server.metrics().queued:
            await asyncio.sleep(0.001)
        clock.now = 2.0
        gate.open()
        return (await first).status, await second

    clock = Time()
    with Server(engine(affine), (1,), clock=clock) as server:
        first, second = asyncio.run(late(Endpoint({"m": server}), Gate(server), clock))
    assert first == 200
    assert second.status == (504 if limit else 200)


def test_a_request_whose_client_goes_is_not_run():
    async def leaves(endpoint, gate):
        first = asyncio.ensure_future(asked(endpoint, "POST", INFER, body()))
        await asyncio.to_thread(gate.reached.wait, SECONDS)
        client = Client("POST", INFER, body())
        second = asyncio.ensure_future(endpoint(client.scope, client.receive, client.send))
        while not server.metrics().queued:
            await asyncio.sleep(0.001)
        client.leave()
        await asyncio.wait_for(second, SECONDS)
        gate.open()
        return (await first).status, client.begun

    with Server(engine(affine), (1,)) as server:
        assert asyncio.run(leaves(Endpoint({"m": server}), Gate(server))) == (200, {})
        wait_for(lambda: server.metrics().cancelled == 1)
        assert server.metrics().completed == 1


def test_a_client_that_goes_within_its_request_has_no_answer(endpoint):
    async def leaves():
        client = Client("POST", "/v2/models/rows/infer", body())
        client.leave(body_sent=False)
        await asyncio.wait_for(endpoint(client.scope, client.receive, client.send), SECONDS)
        return client.begun

    assert asyncio.run(leaves()) == {}


# ---------------------------------------------------------------------------- streams


def values(event):
    return {output["name"]: output["data"] for output in event["outputs"]}


def test_rows_stream_as_events(endpoint):
    answer = ask(endpoint, "POST", "/v2/models/texts/generate_stream", number(3))
    *rows, final = answer.events
    wanted, end = doubled(3)

    assert answer.headers["content-type"] == "text/event-stream"
    assert [values(row) for row in rows] == [{"all": [value]} for value in wanted]
    assert values(final) == {"end": [end]}
    assert final["parameters"] == {"triton_final_response": True}
    # each row is a part by itself, as it is made
    assert [part[:6] for part in answer.parts if part] == [b"data: "] * (len(wanted) + 1)


def test_a_request_without_a_stream_has_all_outputs(endpoint):
    wanted, end = doubled(3)
    found = outputs(infer(endpoint, "texts", number(3)))

    assert found["all"][: len(wanted) + 1] == [*wanted, 0]
    assert found["end"] == [end]


def test_a_service_without_streams_sends_one_event(endpoint):
    (event,) = ask(endpoint, "POST", "/v2/models/rows/generate_stream", body()).events
    assert values(event) == {"y": [2, 4, 6]}


def test_many_streams_at_once_are_not_mixed_up(endpoint):
    async def together():
        path = "/v2/models/texts/generate_stream"
        return await asyncio.gather(*(asked(endpoint, "POST", path, number(x)) for x in range(1, 33)))

    for x, answer in zip(range(1, 33), asyncio.run(together()), strict=True):
        *rows, final = answer.events
        assert ([values(row)["all"][0] for row in rows], values(final)["end"][0]) == doubled(x)


def test_a_stream_that_is_refused_has_a_status_and_one_that_fails_an_event(endpoint):
    assert ask(endpoint, "POST", "/v2/models/texts/generate_stream", body()).status == 400
    with Streams(trt.SlotEngine(engine(doubling), slots=1, max_trips=3)) as streams:
        answer = ask(Endpoint({"m": streams}), "POST", STREAM, number(1))

    assert answer.status == 200
    parameters = answer.events[-1]["parameters"]
    assert parameters["error"].startswith("NL")
    assert (parameters["status"], parameters["triton_final_response"]) == (400, True)


def test_a_stream_whose_client_goes_frees_its_slot():
    """There is one slot, the stream has a million rows, and the queue has room for one request more."""

    async def leaves(endpoint):
        first, second = (Client("POST", STREAM, number(x)) for x in (1, 2))
        tasks = [asyncio.ensure_future(endpoint(client.scope, client.receive, client.send)) for client in (first,)]
        await first.parts.get()
        tasks.append(asyncio.ensure_future(endpoint(second.scope, second.receive, second.send)))
        while not streams.metrics().queued:
            await asyncio.sleep(0.001)
        refused = await asked(endpoint, "POST", STREAM, number(3))
        first.leave()
        row = await asyncio.wait_for(second.parts.get(), SECONDS)
        second.leave()
        await asyncio.wait_for(asyncio.gather(*tasks), SECONDS)
        return refused, row

    with Streams(trt.SlotEngine(engine(endless), slots=1), queue=1) as streams:
        refused, row = asyncio.run(leaves(Endpoint({"m": streams})))
        wait_for(lambda: streams.metrics().sequences == 0)
    assert (refused.status, refused.json["error"][:5]) == (503, "NL641")
    assert values(json.loads(row.removeprefix(b"data: "))) == {"all": [2]}


# ---------------------------------------------------------------------------- new weights


def test_a_model_that_is_loaded_again_keeps_its_states():
    factors = iter([2, 3])

    def totals():
        network = trt.INetworkDefinition()
        total, x = (network.add_input(name, trt.int64, ()) for name in ("total", "x"))
        new = combine(network, total, x)
        return trt.compile(mark(network, new=new, y=combine(network, new, next(factors), Op.PROD)))

    with Sequences(totals(), {"total": "new"}, sizes=(1,)) as sequences:
        endpoint = Endpoint({"m": ServedModel("m", sequences, totals)})
        before = [outputs(infer(endpoint, "m", step(key, sequence_id=key, sequence_start=True))) for key in (1, 2)]
        assert ask(endpoint, "POST", "/v2/repository/models/m/load", b"{}").json == {}
        after = [outputs(infer(endpoint, "m", step(10, sequence_id=key))) for key in (1, 2)]

    assert before == [{"y": [2]}, {"y": [4]}]
    assert after == [{"y": [33]}, {"y": [36]}]


def test_a_model_of_other_tensors_is_not_loaded():
    with Server(engine(affine), (1,)) as server:
        endpoint = Endpoint({"m": ServedModel("m", server, lambda: engine(roots)), "fixed": server})
        for name, code in (("m", "NL646"), ("fixed", "NL670")):
            answer = ask(endpoint, "POST", f"/v2/repository/models/{name}/load", b"{}")
            assert (answer.status, answer.json["error"][:5]) == (400, code)
        assert outputs(infer(endpoint, "m", body()))["y"] == [2, 4, 6]


def test_a_file_that_is_gone_leaves_the_model_as_it_is(tmp_path):
    with Server(engine(affine), (1,)) as server:
        endpoint = Endpoint({"m": ServedModel("m", server, lambda: trt.load(tmp_path / "model.plan"))})
        assert ask(endpoint, "POST", "/v2/repository/models/m/load").status == 400
        assert outputs(infer(endpoint, "m", body()))["y"] == [2, 4, 6]


# ---------------------------------------------------------------------------- servers of ASGI


def test_a_server_may_speak_of_its_life(endpoint):
    async def life():
        messages, sent = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}], []

        async def receive():
            return messages.pop(0)

        async def send(message):
            sent.append(message["type"])

        await endpoint({"type": "lifespan"}, receive, send)
        return sent

    assert asyncio.run(life()) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_other_protocols_are_refused(endpoint):
    with pytest.raises(TypeError, match="websocket"):
        asyncio.run(endpoint({"type": "websocket"}, None, None))
