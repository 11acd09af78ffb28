"""Load on a server: netloop's own, and MLServer with a runtime of onnxruntime, with the same models and clients.

    python -m benchmarks.serving

It needs the extra ``clients``, and ``pip install mlserver`` for the other server, which is left out without it. Clients
of gRPC, in a process of their own, each send a request when they have the answer to the one before. Both servers run at
the same time, and their rounds alternate. Then a server of calls of 50 ms gets ten times the requests that it can
answer; and callers in one process share the calls of an engine, in comparison with a loop of one caller.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from onnx import save

import netloop as trt
from benchmarks.building import RELU, SUM, Script, onnx_model
from benchmarks.workload import normal
from benchmarks.workloads.char_rnn import Steps
from netloop.tools.serve.sequences import Step

STATES = {name: f"{name}n" for name in ("h0", "c0", "h1", "c1")}
WIDTHS = 64, 256, 256, 10
CLIENTS = 1, 8, 32
SIZES = 1, 4, 16, 32
ONNXRUNTIME = "benchmarks.serving_runtime.OnnxRuntime"
MLSERVER = "from mlserver.cli import main; main()"
TOKEN = np.array([7], np.int32)
ROW = np.ones((1, WIDTHS[0]), np.float32)
Numbers = list[float]


def layers() -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The number, the weights and the bias of each layer of the MLP."""
    for i, (inside, outside) in enumerate(pairwise(WIDTHS)):
        yield i, normal(2 * i, inside, outside, scale=inside**-0.5), normal(2 * i + 1, outside)


def mlp() -> trt.INetworkDefinition:
    """Three layers; y[rows, 10] from x[rows, 64]."""
    script = Script()
    x = script.network.add_input("x", trt.float32, (-1, WIDTHS[0]))
    for i, weights, bias in layers():
        x = script.combine(script.matmul(x, script.constant(weights)), script.constant(bias[None]), SUM)
        x = script.activate(x, RELU) if i < len(WIDTHS) - 2 else x
    return script.mark(y=x)


def mlp_model() -> Any:
    """The same in ONNX."""
    last = len(WIDTHS) - 2
    text = "".join(
        f"p{i} = MatMul ({'x' if i == 0 else f'r{i - 1}'}, W{i})\n{'y' if i == last else f'a{i}'} = Add (p{i}, b{i})\n"
        + (f"r{i} = Relu (a{i})\n" if i < last else "")
        for i, _, _ in layers()
    )
    weights = {name: array for i, w, b in layers() for name, array in ((f"W{i}", w), (f"b{i}", b))}
    return onnx_model(f"mlp (float[N,{WIDTHS[0]}] x) => (float[N,{WIDTHS[-1]}] y) {{{text}}}", weights)


def slow(milliseconds: float) -> trt.INetworkDefinition:
    """y[rows, 64] from x[rows, 64], by as many products as take some milliseconds here."""

    def network(trips: int) -> trt.INetworkDefinition:
        script = Script()
        state = (loop := script.counted(trips)).add_recurrence(script.network.add_input("x", trt.float32, (-1, 64)))
        weights = script.constant(normal(1, 64, 64, scale=0.125))
        state.set_input(1, script.matmul(state.outputs[0], weights))
        last = loop.add_loop_output(state.outputs[0], trt.LoopOutput.LAST_VALUE)
        return script.mark(y=last.outputs[0])

    engine = trt.compile(network(1000))
    times = Numbers()
    for _ in range(20):
        began = time.perf_counter()
        np.asarray(engine(x=ROW)["y"])
        times.append(time.perf_counter() - began)
    return network(max(1, round(milliseconds / float(np.median(times)))))


def serve() -> None:
    """Serve the models by netloop; the first line that is printed is the address of gRPC."""
    models: dict[str, Any] = {
        "step": trt.serve.Sequences(trt.compile(Steps(hidden=128).network()), STATES, sizes=SIZES),
        "mlp": trt.serve.Server(trt.compile(mlp()), SIZES),
        "slow": trt.serve.Server(trt.compile(slow(50)), (1,), queue=8),
    }
    models["step"].compile()
    models["mlp"].compile({"x": ROW})
    listening: Any = import_module("netloop.tools.serve.listening")
    listening.run(trt.serve.Endpoint(models), "127.0.0.1", 0, 0, lambda _, grpc: print(grpc, flush=True))


@contextmanager
def netloop_server() -> Generator[str]:
    """A process of netloop; its address of gRPC."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.serving", "--serve"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def write_models(folder: Path) -> None:
    """Write the folder of MLServer."""
    for name, model, extra in (("step", Steps(hidden=128).step_model(), {"states": STATES}), ("mlp", mlp_model(), {})):
        (folder / name).mkdir()
        save(model, folder / name / "model.onnx")
        parameters = {"uri": "model.onnx", "extra": extra}
        settings = {"name": name, "implementation": ONNXRUNTIME, "parameters": parameters}
        (folder / name / "model-settings.json").write_text(json.dumps(settings), encoding="utf-8")


@contextmanager
def mlserver(folder: Path) -> Generator[str]:
    """A process of MLServer, with the models of a folder; its address of gRPC."""
    with socket.socket() as one, socket.socket() as two:
        for other in (one, two):
            other.bind(("localhost", 0))
        http, grpc = one.getsockname()[1], two.getsockname()[1]
    settings = {"parallel_workers": 0, "http_port": http, "grpc_port": grpc, "metrics_endpoint": None}
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    with (folder / "log").open("w") as log:
        command = [sys.executable, "-c", MLSERVER, "start", str(folder)]
        path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stdout=log, stderr=log)
    try:
        for other in folder.glob("*/model-settings.json"):
            url = f"http://localhost:{http}/v2/models/{other.parent.name}/ready"
            while process.poll() is None:
                with suppress(OSError), urllib.request.urlopen(url, timeout=5):
                    break
                time.sleep(0.1)
        yield f"localhost:{grpc}"
    finally:
        process.terminate()
        process.wait()


# ---------------------------------------------------------------------------- clients


async def ask(address: str, model: str, clients: int, seconds: float) -> Numbers:
    """The seconds that each request took, of clients that ask one after the other; the first second does not count."""
    triton: Any = import_module("tritonclient.grpc.aio")
    name, array = ("token", TOKEN) if model == "step" else ("x", ROW)
    given = triton.InferInput(name, list(array.shape), "INT32" if model == "step" else "FP32")
    given.set_data_from_numpy(array)
    client, found, began = triton.InferenceServerClient(address), Numbers(), time.perf_counter()

    async def one(number: int) -> None:
        first = True
        while (now := time.perf_counter()) < began + 1 + seconds:
            of_sequence = {"sequence_id": number + 1, "sequence_start": first} if model == "step" else {}
            await client.infer(model, [given], **of_sequence)
            if now > began + 1:
                found.append(time.perf_counter() - now)
            first = False

    await asyncio.gather(*map(one, range(clients)))
    await client.close()
    return found


async def overload(address: str, rate: float, seconds: float) -> tuple[Numbers, Numbers]:
    """The seconds of answered and of refused requests, of which a number comes each second, whatever the answers."""
    triton: Any = import_module("tritonclient.grpc.aio")
    given = triton.InferInput("x", list(ROW.shape), "FP32")
    given.set_data_from_numpy(ROW)
    client, answered, refused = triton.InferenceServerClient(address), Numbers(), Numbers()

    async def one() -> None:
        began = time.perf_counter()
        try:
            await client.infer("slow", [given])
            answered.append(time.perf_counter() - began)
        except triton.InferenceServerException:
            refused.append(time.perf_counter() - began)

    began, tasks = time.perf_counter(), list[Any]()
    while (now := time.perf_counter()) < began + seconds:
        tasks += [asyncio.create_task(one()) for _ in range(int((now - began) * rate) - len(tasks))]
        await asyncio.sleep(1 / rate)
    await asyncio.gather(*tasks)
    await client.close()
    return answered, refused


def in_client(*arguments: Any) -> Any:
    """What the process of the clients prints."""
    command = [sys.executable, "-m", "benchmarks.serving", "--client", *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def client(words: list[str]) -> Any:
    """The part of a client process."""
    kind, address, *rest = words
    if kind == "overload":
        return asyncio.run(overload(address, float(rest[0]), float(rest[1])))
    return asyncio.run(ask(address, kind, int(rest[0]), float(rest[1])))


# ---------------------------------------------------------------------------- one process


def steps_a_second(clients: int, seconds: float) -> tuple[float, float, float]:
    """The steps in a second of a loop of an engine, of callers that share calls, and of one that sends many at once."""
    engine = trt.compile(Steps(hidden=128).network())
    state = np.zeros((1, 128), np.float32)
    states: Mapping[str, Any] = dict.fromkeys(STATES, state)

    def alone() -> None:
        nonlocal states
        made = engine({"token": TOKEN, **states})
        np.asarray(made["next"])
        states = {name: made[new] for name, new in STATES.items()}

    with trt.serve.Sequences(engine, STATES, sizes=[1, 4, 16, 32]) as sequences:
        sequences.compile()

        def together(key: int) -> Callable[[], Any]:
            sequences.step(key, {"token": TOKEN}, start=True)
            return lambda: sequences.step(key, {"token": TOKEN})

        callers = [together(index) for index in range(clients)]
        steps = [Step(index, {"token": TOKEN}) for index in range(clients)]

        def at_once() -> None:
            sequences.step_all(steps)

        # in turns, as other processes slow all of them
        kinds = ([alone], 1), (callers, 1), ([at_once], clients)
        rounds = [[_rate(functions, seconds) * steps_of_one for functions, steps_of_one in kinds] for _ in range(5)]
    one, many, whole = np.median(rounds, axis=0).tolist()
    return one, many, whole


def _rate(callers: list[Callable[[], Any]], seconds: float) -> float:
    counts, end = [0] * len(callers), time.perf_counter() + seconds

    def run(number: int) -> None:
        while time.perf_counter() < end:
            callers[number]()
            counts[number] += 1

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(callers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


# ---------------------------------------------------------------------------- the tables


def quantiles(seconds: Numbers) -> str:
    """Median, 95 % and 99 % in milliseconds."""
    if not seconds:
        return "-"
    return " | ".join(f"{1000 * value:.1f}" for value in np.quantile(seconds, (0.5, 0.95, 0.99)))


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each round (3)")
    parser.add_argument("--rounds", type=int, default=3, help="of each number of clients (3)")
    parser.add_argument("--client", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    if given.client:
        print(json.dumps(client(given.client)))
        return
    one, many, whole = steps_a_second(32, given.seconds)
    print(f"one process: {one:.0f} steps/s alone, {many:.0f} of 32 callers, {whole:.0f} sent together\n", flush=True)
    with ExitStack() as stack:
        servers = {"netloop": stack.enter_context(netloop_server())}
        if find_spec("mlserver") is not None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            write_models(folder)
            servers["MLServer, onnxruntime"] = stack.enter_context(mlserver(folder))
        print("| model | clients | server | requests/s | median ms | 95 % | 99 % |\n|---|---|---|---|---|---|---|")
        for model in ("step", "mlp"):
            for clients in CLIENTS:
                compare(model, clients, servers, given.seconds, given.rounds)
        answered, refused = in_client("overload", servers["netloop"], 200, 2 * given.seconds)
    print(f"\n200 requests/s of 50 ms each, 8 wait at most: {len(answered)} answered in {quantiles(answered)} ms")
    print(f"{len(refused)} refused in {quantiles(refused)} ms")


def compare(model: str, clients: int, servers: Mapping[str, str], seconds: float, rounds: int) -> None:
    """Print a row for each server."""
    found: dict[str, Numbers] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, address in servers.items():
            found[name] += in_client(model, address, clients, seconds)
    for name, times in found.items():
        rate = len(times) / seconds / rounds
        print(f"| {model} | {clients} | {name} | {rate:.0f} | {quantiles(times)} |", flush=True)


if __name__ == "__main__":
    main()
