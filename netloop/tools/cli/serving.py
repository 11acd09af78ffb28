"""The model of ``netloop serve``, which can be loaded again from its file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import netloop as trt
from netloop.compiler.placement import default_on
from netloop.tools.cli.failures import Misuse
from netloop.tools.serve.hosting import service_of, slot_engine
from netloop.tools.serve.served_model import ServedModel


class ServedFile(ServedModel):
    """A model of a file.

    Args:
        name: its name.
        engine: returns the engine of the file as it is now.
        options: those of its service.
        device: the device that it computes on; None for JAX's default one.
    """

    def __init__(
        self, name: str, engine: Callable[[], trt.ICudaEngine], options: dict[str, Any], device: str | None
    ) -> None:
        def newest() -> Any:
            try:
                # the default device is one of a thread
                with nullcontext() if device is None else default_on(device):
                    return slot_engine(engine(), options["slots"]) if options.get("stream") else engine()
            except Misuse as error:  # there is no file
                raise FileNotFoundError(str(error)) from error

        super().__init__(name, service_of(engine(), **options), newest)
