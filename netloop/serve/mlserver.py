"""A runtime of MLServer, which speaks the V2 inference protocol over HTTP and gRPC.

``"implementation": "netloop.serve.mlserver.NetloopRuntime"`` in a ``model-settings.json`` serves the plan that its
``uri`` names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from importlib import import_module
from typing import Any

import numpy as np

from netloop.api.engine import load
from netloop.diagnostics import NetloopError
from netloop.serve.errors import Overloaded, ServeError, TimedOut
from netloop.serve.sequences import Sequences
from netloop.serve.server import Server
from netloop.serve.service import Outputs
from netloop.types import Array

MLSERVER: Any = import_module("mlserver")
CODECS: Any = import_module("mlserver.codecs")
ERRORS: Any = import_module("mlserver.errors")
TYPES: Any = import_module("mlserver.types")

UNAVAILABLE, TIMEOUT, BAD_REQUEST = 503, 504, 400
"""Status codes of HTTP."""


class NetloopRuntime(MLSERVER.MLModel):
    """An engine as a model of MLServer.

    ``parameters.uri`` is the file of a plan, and ``parameters.extra`` has the arguments of :class:`Sequences`, with
    ``states``, or of :class:`Server`. For sequences a request has the parameters ``sequence_id``, ``sequence_start``
    and ``sequence_end``. States are in one process: ``parallel_workers`` must be 0 or 1.
    """

    async def load(self) -> bool:
        """Load the plan.

        Raises:
            FileFormatError: the plan is damaged, or of a newer version.
            TypeError, ValueError, NetworkError: the arguments do not fit the engine.
            OSError: the plan cannot be read.
        """
        parameters = self.settings.parameters
        extra = dict(parameters.extra or {})
        engine = load(parameters.uri)
        self._service = Sequences(engine, **extra) if "states" in extra else Server(engine, **extra)
        return True

    async def unload(self) -> bool:
        """End the service."""
        # waiting for the call in progress would block the other models
        await asyncio.get_running_loop().run_in_executor(None, self._service.close)
        return True

    async def predict(self, payload: Any) -> Any:
        """Answer a request of the V2 protocol.

        Raises:
            MLServerError: with the status code 503 for a request without room, 504 for one whose time is over, and 400
                for one that does not fit or whose computation failed.
        """
        try:
            made = await asyncio.wrap_future(self._submit(payload))
        except (NetloopError, TypeError, ValueError) as error:
            raise ERRORS.MLServerError(str(error), _status(error)) from error
        outputs = [CODECS.NumpyCodec.encode_output(name, np.atleast_1d(each)) for name, each in made.items()]
        return TYPES.InferenceResponse(id=payload.id, model_name=self.name, outputs=outputs)

    def _submit(self, payload: Any) -> Future[Outputs]:
        arrays = {each.name: CODECS.NumpyCodec.decode_input(each) for each in payload.inputs}
        if isinstance(self._service, Server):
            return self._service.submit(arrays)
        named, types = payload.parameters, self._service.input_types()
        inputs = {name: _reshaped(each, types[name].shape if name in types else None) for name, each in arrays.items()}
        flags = {flag: bool(getattr(named, f"sequence_{flag}", False)) for flag in ("start", "end")}
        return self._service.submit(_key(named), inputs, **flags)


def _key(parameters: Any) -> int | str:
    key = getattr(parameters, "sequence_id", None)
    if key in (None, 0, ""):
        raise ValueError("a step of a sequence has the parameter sequence_id, a number other than 0 or a string")
    return key


def _reshaped(array: Array, shape: tuple[int, ...] | None) -> Array:
    """An array in the shape of one step, whose number the protocol has as an array of one element."""
    return array.reshape(shape) if shape is not None and array.size == np.prod(shape, dtype=np.int64) else array


def _status(error: Exception) -> int:
    statuses: Mapping[type[ServeError], int] = {Overloaded: UNAVAILABLE, TimedOut: TIMEOUT}
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), BAD_REQUEST)
