"""An endpoint at ports of HTTP and gRPC, by uvicorn and grpcio, until a signal ends it."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any

from netloop.tools.serve.endpoint import Endpoint
from netloop.tools.serve.grpc_endpoint import AIO, GrpcEndpoint

UVICORN: Any = import_module("uvicorn")
Ready = Callable[[str, str], Any]

GRACE, LAST = 10, 5
"""The seconds in which the requests that are there may end by themselves, and then by an error."""
WAITING = 128
"""The most connections that the system keeps until they are accepted."""


class Listener(UVICORN.Server):
    """A server of HTTP that a signal ends, and that returns then: uvicorn's own raises the signal once more."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """A context in which Ctrl-C and SIGTERM end the server after the requests that are there."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and wait for the requests that are there."""
        end = asyncio.ensure_future(self._close())
        try:
            await super().shutdown(sockets)
        finally:
            end.cancel()

    async def _close(self) -> None:
        """Answer the requests that are still there by an error: uvicorn would end their connections without one."""
        await asyncio.sleep(GRACE)
        models = self.config.app.models.values()
        await asyncio.gather(*(asyncio.to_thread(model.service.close) for model in models))


def listener(endpoint: Endpoint) -> Listener:
    """A server of HTTP, which ends when its ``should_exit`` is true."""
    options = {"lifespan": "off", "ws": "none", "log_level": "warning", "access_log": False, "server_header": False}
    return Listener(UVICORN.Config(endpoint, timeout_graceful_shutdown=GRACE + LAST, **options))


def bound(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 is any that is free.

    Raises:
        OSError: the address is in use, or none of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    at = socket.create_server((host, port), family=family, backlog=WAITING)
    # its connections too: an answer is two packets, of which the second would wait 40 ms for the client's delayed ACK
    at.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return at


def address(host: str, port: int) -> str:
    """An address as one text."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def run(endpoint: Endpoint, host: str, port: int, grpc_port: int, ready: Ready) -> None:
    """Answer requests over HTTP and gRPC, until Ctrl-C or SIGTERM.

    Args:
        endpoint: the endpoint.
        host: the address to listen at.
        port: the port of HTTP; 0 for any that is free.
        grpc_port: the port of gRPC; 0 for any that is free.
        ready: called with the addresses of HTTP and gRPC when both are bound.

    Raises:
        OSError: a port is in use, or the address is none of this machine.
    """
    with closing(bound(host, port)) as at:
        asyncio.run(listen(listener(endpoint), endpoint, at, grpc_port, ready))


async def listen(server: Listener, endpoint: Endpoint, at: socket.socket, grpc_port: int, ready: Ready) -> None:
    """Answer requests that come to a socket of HTTP and to a port of gRPC at the same host, until the server ends."""
    host, port = at.getsockname()[:2]
    limits = {"grpc.max_receive_message_length": endpoint.max_body, "grpc.max_send_message_length": -1}
    grpc: Any = AIO.server(options=[*limits.items(), ("grpc.so_reuseport", 0)])
    grpc.add_generic_rpc_handlers((GrpcEndpoint(endpoint).handler(),))
    try:
        number = grpc.add_insecure_port(address(host, grpc_port))
    except RuntimeError as error:
        raise OSError(f"gRPC cannot listen at {address(host, grpc_port)}: is another server there?") from error
    await grpc.start()
    try:
        ready(address(host, port), address(host, number))
        await server.serve(sockets=[at])
    finally:
        await grpc.stop(GRACE)
