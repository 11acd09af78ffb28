"""Servers at a port, with clients over HTTP."""

import doctest
import http.client
import json
import shlex
import shutil
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest

import netloop as trt
from netloop.serve import Endpoint, Sequences, Server, Streams
from netloop.tools.cli import parser_for, serve
from netloop.tools.serve.served_model import ServedModel
from tests.project.pages import FENCE, ROOT, examples
from tests.support.served import SECONDS, listening, serving
from tests.tools.serve.test_endpoint import body, engine, number, same, tensor
from tests.tools.serve.test_sequences import mixed, mixing
from tests.tools.serve.test_server import affine
from tests.tools.serve.test_streams import doubling, endless, wait_for

pytest.importorskip("uvicorn")
pytest.importorskip("grpc")

DATATYPES = {"int32": "INT32", "int64": "INT64", "float32": "FP32"}


@pytest.fixture(scope="module")
def services():
    return {
        "rows": Server(engine(affine), (1, 4, 16)),
        "steps": Sequences(engine(mixing), {"s": "sn"}, sizes=(1, 16)),
        "texts": Streams(trt.SlotEngine(engine(doubling), slots=4)),
        "endless": Streams(trt.SlotEngine(engine(endless), slots=1)),
        "words": Server(engine(same, "string", "float16"), ()),
    }


@pytest.fixture(scope="module")
def addresses(services):
    with listening(Endpoint(services)) as addresses:
        yield addresses


@pytest.fixture(scope="module")
def address(addresses):
    return addresses.http


def posted(address, path, data, headers=()):
    with closing(http.client.HTTPConnection(address, timeout=SECONDS)) as connection:
        connection.request("POST", path, data, dict(headers))
        with connection.getresponse() as response:
            return response.status, json.loads(response.read())


# ---------------------------------------------------------------------------- tritonclient


@pytest.fixture
def client(address):
    triton = pytest.importorskip("tritonclient.http")
    with closing(triton.InferenceServerClient(address, connection_timeout=SECONDS, network_timeout=SECONDS)) as client:
        yield Client(triton, client)


class Client:
    """A client of tritonclient, which sends raw bytes unless it is told otherwise."""

    def __init__(self, triton, client):
        self.triton, self.client = triton, client

    def infer(self, model, array, binary=True, **options):
        given = self.triton.InferInput("x", list(array.shape), DATATYPES[array.dtype.name])
        given.set_data_from_numpy(array, binary_data=binary)
        return self.client.infer(model, [given], **options)


@pytest.mark.parametrize("binary", [True, False])
def test_tritonclient_gets_results(client, binary):
    x = np.arange(12, dtype=np.int32).reshape(4, 3)
    named = [client.triton.InferRequestedOutput("y", binary_data=binary)]
    for outputs in (None, named):
        result = client.infer("rows", x, binary, request_id="seven", outputs=outputs)

        np.testing.assert_array_equal(result.as_numpy("y"), 2 * x)
        assert result.as_numpy("y").dtype == np.float32
        assert result.get_response()["id"] == "seven"


def test_tritonclient_gets_metadata(client):
    assert client.client.is_server_live()
    assert client.client.is_server_ready()
    assert client.client.is_model_ready("rows", "1")
    assert client.client.get_server_metadata()["name"] == "netloop"
    about = client.client.get_model_metadata("rows")
    assert about["inputs"] == [{"name": "x", "datatype": "INT32", "shape": [-1, 3]}]
    assert {"name": "rows", "version": "1", "state": "READY"} in client.client.get_model_repository_index()


@pytest.mark.parametrize("key", [77, "seventy-seven"])
def test_tritonclient_keeps_a_sequence(client, key):
    xs = np.random.default_rng(3).integers(-1000, 1000, 5)
    found = [
        client.infer("steps", xs[i : i + 1], sequence_id=key, sequence_start=i == 0, sequence_end=i == 4)
        for i in range(5)
    ]
    assert [int(result.as_numpy("y")[0]) for result in found] == [mixed(xs[: i + 1]) for i in range(5)]


def test_tritonclient_sends_texts_and_halves(client):
    texts, halves = np.array([["", "Grüße"]], object), np.float16([[0.5, -2]])
    inputs = [client.triton.InferInput(*about) for about in (("string", [1, 2], "BYTES"), ("float16", [1, 2], "FP16"))]
    for tensor_, array in zip(inputs, (texts, halves), strict=True):
        tensor_.set_data_from_numpy(array)
    result = client.client.infer("words", inputs)

    assert [text.decode() for text in result.as_numpy("string_out")[0]] == ["", "Grüße"]
    np.testing.assert_array_equal(result.as_numpy("float16_out"), halves)


def test_tritonclient_reads_errors(client):
    with pytest.raises(client.triton.InferenceServerException, match="there is no model 'nobody'") as raised:
        client.infer("nobody", np.ones((1, 3), np.int32))
    assert raised.value.status() == "404"
    with pytest.raises(client.triton.InferenceServerException, match="NL603") as raised:
        client.infer("rows", np.ones((3, 1), np.int32))
    assert raised.value.status() == "400"


# ---------------------------------------------------------------------------- connections


def test_many_clients_get_their_own_rows(address):
    def ask(client):
        found = []
        with closing(http.client.HTTPConnection(address, timeout=SECONDS)) as connection:
            for value in range(100 * client, 100 * client + 10):
                connection.request("POST", "/v2/models/rows/infer", body(tensor(data=[value] * 3)))
                found.append(json.loads(connection.getresponse().read())["outputs"][0]["data"])
        return found == [[2 * value] * 3 for value in range(100 * client, 100 * client + 10)]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))


def test_a_stream_whose_client_goes_frees_its_slot(address, services):
    for _ in range(2):
        with closing(http.client.HTTPConnection(address, timeout=SECONDS)) as connection:
            connection.request("POST", "/v2/models/endless/generate_stream", number(1))
            response = connection.getresponse()
            assert response.status == 200
            assert response.headers["Content-Type"] == "text/event-stream"
            assert response.readline().startswith(b"data: ")
            response.close()
        wait_for(lambda: services["endless"].metrics().sequences == 0)


def test_connections_do_not_wait_to_fill_their_packets():
    bound = import_module("netloop.tools.serve.listening").bound
    with bound("127.0.0.1", 0) as at, socket.create_connection(at.getsockname(), SECONDS), at.accept()[0] as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_server_that_ends_answers_the_requests_that_are_there(monkeypatch):
    monkeypatch.setattr("netloop.tools.serve.listening.GRACE", 0.01)
    endpoint = Endpoint({"endless": Streams(trt.SlotEngine(engine(endless), slots=1))})
    with ThreadPoolExecutor(1) as pool:
        with listening(endpoint) as (address, _):
            connection = http.client.HTTPConnection(address, timeout=SECONDS)
            connection.request("POST", "/v2/models/endless/generate_stream", number(1))
            response = connection.getresponse()
            assert response.readline().startswith(b"data: ")
            rest = pool.submit(response.read)
        final = json.loads(rest.result(SECONDS).split(b"data: ")[-1])
        connection.close()

    assert final["parameters"]["status"] == 503
    assert "NL644" in final["parameters"]["error"]


@pytest.mark.parametrize("text", [b"hello\r\n\r\n", b"POST /v2 HTTP/1.1\r\nContent-Length: x\r\n\r\n"])
def test_what_is_not_http_is_refused(address, text):
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), SECONDS) as connection:
        connection.sendall(text)
        assert b" 400 " in connection.recv(1000).partition(b"\r\n")[0]


def test_a_client_that_goes_within_its_request_harms_nobody(address):
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), SECONDS) as connection:
        connection.sendall(b"POST /v2/models/rows/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
    assert posted(address, "/v2/models/rows/infer", body())[0] == 200


def test_a_request_that_is_too_large_is_answered_before_it_is_sent(address):
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), SECONDS) as connection:
        connection.sendall(b"POST /v2/models/rows/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n")
        answer = connection.makefile("rb").read()
    assert b" 413 " in answer.partition(b"\r\n")[0]
    assert b'"error"' in answer


# ---------------------------------------------------------------------------- the process


def test_a_model_is_served_until_a_signal_ends_it(tmp_path):
    path = tmp_path / "rows.plan"
    engine(affine).save(path)
    with serving(path, "--sizes", "1") as ((address, _), process):
        host, _, _ = address.partition(":")
        assert host == "127.0.0.1"
        assert posted(address, "/v2/models/rows/infer", body())[1]["outputs"][0]["data"] == [2, 4, 6]
        engine(affine, 3).save(path)
        assert posted(address, "/v2/repository/models/rows/load", b"{}") == (200, {})
        assert posted(address, "/v2/models/rows/infer", body())[1]["outputs"][0]["data"] == [3, 6, 9]
        path.unlink()
        assert posted(address, "/v2/repository/models/rows/load", b"{}")[0] == 400
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0


# ---------------------------------------------------------------------------- the page

PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
BLOCKS = [(block[1], block[2]) for block in FENCE.finditer(PAGE)]


def test_curl_gets_what_the_page_says():
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    names = {}
    for example in examples(PAGE):
        exec(example.source, names)
    models = names["endpoint"].models
    # as the model of a file
    models["totals"] = ServedModel("totals", models["totals"].service, lambda: trt.compile(names["network"]))
    with listening(names["endpoint"]) as (address, _):
        for (kind, command), (next_kind, output) in pairwise(BLOCKS):
            if kind == "sh" and command.startswith("curl ") and next_kind == "text":
                words = shlex.split(command.replace("localhost:8080", address))
                printed = subprocess.run([*words, "-s"], capture_output=True, text=True, check=True).stdout
                same = doctest.OutputChecker().check_output(output.strip(), printed.strip(), doctest.ELLIPSIS)
                assert same, f"{command}prints\n{printed}\nand the page says\n{output}"


def test_commands_of_the_page_are_commands():
    commands = [shlex.split(text) for kind, text in BLOCKS if kind == "sh" and text.startswith("netloop serve ")]

    assert commands
    for words in commands:
        assert parser_for("serve").parse_args(words[1:]).run is serve.run
