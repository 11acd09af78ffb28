"""MLServer in a process of its own, with models of netloop."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

from netloop.tools.cli.serve import START

ROOT = Path(__file__).parents[2]
SECONDS = 120


class Served(NamedTuple):
    """A server that runs: the addresses of its protocols, and its folder."""

    http: str
    grpc: str
    folder: Path


def write_model(folder, name, engine, implementation="netloop.serve.mlserver.NetloopRuntime", **extra):
    """Write the plan and the settings of a model into the folder of a server."""
    (folder / name).mkdir(parents=True)
    engine.save(folder / name / "model.plan")
    parameters = {"uri": "model.plan", "extra": extra}
    settings = {"name": name, "implementation": implementation, "parameters": parameters}
    (folder / name / "model-settings.json").write_text(json.dumps(settings), encoding="utf-8")


def free_ports(count):
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for other in found:
            other.bind(("localhost", 0))
        return [other.getsockname()[1] for other in found]


@contextlib.contextmanager
def serving(folder, **settings):
    """A server of the models in a folder, until the end of the context."""
    http, grpc = free_ports(2)
    # as streams need it: MLServer's metrics and compression read whole responses
    given = {"parallel_workers": 0, "http_port": http, "grpc_port": grpc, "host": "localhost"}
    given |= {"metrics_endpoint": None, "gzip_enabled": False, **settings}
    (folder / "settings.json").write_text(json.dumps(given), encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", START, "start", str(folder)],
            env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        for value in sorted(folder.glob("*/model-settings.json")):
            wait_until_ready(process, f"http://localhost:{http}/v2/models/{value.parent.name}/ready", folder / "log")
        yield Served(f"localhost:{http}", f"localhost:{grpc}", folder)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until_ready(process, url, log):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    raise AssertionError(f"the server is not ready: {log.read_text(encoding='utf-8')[-4000:]}")
