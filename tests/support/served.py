"""Servers at a free port of this machine: of an endpoint, in a thread, and ``netloop serve``, as a process."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SECONDS = 60


class Addresses(NamedTuple):
    """The addresses of a server."""

    http: str
    grpc: str


@contextlib.contextmanager
def listening(endpoint):
    """The addresses of a server of an endpoint, until the end of the context, which closes its services."""
    # here, because it needs uvicorn and grpcio
    from netloop.tools.serve.listening import bound, listen, listener

    at, addresses = bound("127.0.0.1", 0), Future()
    server = listener(endpoint)
    answer = listen(server, endpoint, at, 0, lambda *of: addresses.set_result(Addresses(*of)))
    thread = threading.Thread(target=asyncio.run, args=(answer,))
    thread.start()
    try:
        yield addresses.result(SECONDS)
    finally:
        server.should_exit = True
        thread.join()
        at.close()
        for model in endpoint.models.values():
            model.service.close()


@contextlib.contextmanager
def serving(*words):
    """The addresses and the process of ``netloop serve``, until the end of the context."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "netloop", "serve", *map(str, words), "--port", "0", "--grpc-port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            found = re.match(r"http://(.*?)/.* is ready, and over gRPC at (.*?),", line)
            assert found, f"the server ended with {process.wait(SECONDS)}"
            yield Addresses(*found.groups()), process
        finally:
            process.kill()
