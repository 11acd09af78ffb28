"""The services behind the models of a server, which outlive a model that is loaded again."""

import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netloop.api.engine import ICudaEngine, load
from netloop.api.slot_engine import SlotEngine
from netloop.tools.serve.sequences import Sequences
from netloop.tools.serve.server import Server
from netloop.tools.serve.streams import Streams
from netloop.values.diagnostics import Finding, NetworkError, quoted, reason
from netloop.values.types import UNKNOWN

Service = Server | Sequences | Streams
Options = dict[str, Any]
OF_SLOTS = "slots", "trips", "loop", "max_trips"
"""The options of a slot engine; the others are those of its service."""
OF_HOSTING = "stream", "device"
"""The options that choose the kind of service, and the device of its engine."""


@dataclass(eq=False)
class Hosted:
    """A service that models use.

    Attributes:
        service: the service.
        options: the options it was made with.
        users: the number of models that use it.
        changing: held while it gets another engine.
    """

    service: Service
    options: Options
    users: int = 1
    changing: threading.Lock = field(default_factory=threading.Lock)


class Hosting:
    """The services of a process, each by the name of its model."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[Hashable, Hosted] = {}

    def take(self, key: Hashable, path: str, options: Options) -> Service:
        """The service of a plan: the one there, which gets the new engine, if its options are the same; or a new one.

        Each call needs one of ``leave``. Errors are those of the engine and of the service.
        """
        require_boolean("stream", options.get("stream", False))
        engine = load(path, device=options.get("device"))
        with self._lock:
            hosted = self._found.get(key)
            if hosted is not None and hosted.options == options and not hosted.service.is_closed:
                hosted.users += 1
            else:
                hosted = None
        if hosted is not None:
            try:
                with hosted.changing:
                    reload(hosted.service, engine, options)
                return hosted.service
            except NetworkError:  # another network: its requests and states are of other types
                self.leave(hosted.service)
        service = made_service(engine, options)
        with self._lock:
            self._found[key] = Hosted(service, options)
        return service

    def leave(self, service: Service) -> bool:
        """Give a service back; whether no other model uses it, so that it has to be closed."""
        with self._lock:
            named = [(key, hosted) for key, hosted in self._found.items() if hosted.service is service]
            for key, hosted in named:
                hosted.users -= 1
                if hosted.users:
                    return False
                del self._found[key]
        return True


def require_boolean(name: str, value: Any) -> bool:
    """Return a flag of a request or of settings, which must be JSON's true or false: Python takes "false" for true.

    Raises:
        TypeError: it is neither.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false, not {quoted(value)}")
    return value


HOSTED = Hosting()
"""The services of the models of this process."""


def made_service(engine: ICudaEngine, options: Options) -> Service:
    """A service with its programs compiled."""
    if options.get("stream"):
        others = {name: option for name, option in options.items() if name not in (*OF_SLOTS, *OF_HOSTING)}
        return Streams(_slot_engine(engine, options), **others)
    options = {name: option for name, option in options.items() if name not in OF_HOSTING}
    if "states" in options:
        sequences = Sequences(engine, **options)
        sequences.compile()
        return sequences
    server = Server(engine, **options)
    types = {tensor.name: tensor.type for tensor in engine.network.inputs}
    if all(UNKNOWN not in of.shape[1:] and not of.is_string for of in types.values()):
        server.compile({name: np.zeros((1, *of.shape[1:]), of.dtype) for name, of in types.items()})
    return server


def reload(service: Service, engine: ICudaEngine, options: Options) -> None:
    """Give a service another engine.

    Raises:
        NetworkError: an input, state or output is of another name or type.
    """
    if isinstance(service, Streams):
        service.reload(_slot_engine(engine, options))
    else:
        service.reload(engine)


def _slot_engine(engine: ICudaEngine, options: Options) -> SlotEngine:
    if engine.absent:
        what, fix = "the plan has no weights", "write the plan without EXCLUDE_WEIGHTS"
        raise NetworkError(Finding("NL621", what, "", reason("NL621"), fix))
    return SlotEngine(engine, **{name: options[name] for name in OF_SLOTS if name in options})
