"""The debug tensors of an execution context: which of them are enabled, and how a listener receives them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from netloop.api.observers import IDebugListener
from netloop.api.transfers import HostTransfers
from netloop.model.graph import ITensor, check_instance
from netloop.values.diagnostics import ExecutionError, Finding, reason
from netloop.values.dims import Dims
from netloop.values.types import data_type


class DebugTensors:
    """The state of an engine's debug tensors, and their listener.

    Attributes:
        listener: receives the values of enabled tensors; None for the compiled program at full speed.
    """

    def __init__(self, tensors: Iterable[ITensor]) -> None:
        self.listener: IDebugListener | None = None
        self._states = dict.fromkeys(tensors, False)

    def set(self, name: str, state: bool) -> bool:
        """Enable or disable the debug tensors of a name; whether there are any."""
        check_instance("name", name, str)
        named = [state for state in self._states if state.name == name]
        self._states.update(dict.fromkeys(named, bool(state)))
        return bool(named)

    def set_all(self, state: bool) -> None:
        """Enable or disable all debug tensors."""
        self._states = dict.fromkeys(self._states, bool(state))

    def get(self, name: str) -> bool:
        """Whether a debug tensor of a name is enabled."""
        check_instance("name", name, str)
        return any(state for key, state in self._states.items() if key.name == name)

    @property
    def enabled(self) -> list[ITensor]:
        """The debug tensors that are enabled."""
        return [key for key, state in self._states.items() if state]

    def report(self, tensor: ITensor, value: Any, stream: int, run: HostTransfers) -> None:
        """Pass a value to the listener, at an address that is valid until the listener returns.

        The address is in memory of the GPU if the value is there, and work of the stream may read it.

        Sequences of tensors, absent values and strings have no address and are not reported.

        Raises:
            ExecutionError: the listener raises or returns False.
        """
        assert self.listener is not None
        if value is None or isinstance(value, list) or value.dtype == object:
            return
        array = run.computed({tensor.name: value})[tensor.name]
        kind, shape, (address, location) = data_type(array.dtype), Dims(np.shape(value)), run.place(array)
        try:
            goes_on = self.listener.process_debug_tensor(address, location, kind, shape, tensor.name, stream)
        except Exception as error:
            raise _ended(tensor, f"raised {error!r} at") from error
        if goes_on is False:
            raise _ended(tensor, "ended the run at")


def _ended(tensor: ITensor, what: str) -> ExecutionError:
    producer = tensor.producer
    what = f"the debug listener {what} {tensor.name!r}"
    return ExecutionError(
        producer.finding("NL622", what, reason("NL622"))
        if producer is not None
        else Finding("NL622", what, why=reason("NL622"), at=tensor)
    )
