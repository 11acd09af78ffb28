"""The service of an engine, by options such as those of the command line."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from netloop.api.batches import has_rows, without_rows
from netloop.api.engine import ICudaEngine
from netloop.api.slot_engine import SlotEngine
from netloop.api.step_states import Shapes, require_names
from netloop.model.network import INetworkDefinition
from netloop.tools.serve.sequences import Sequences
from netloop.tools.serve.served_model import AnyService
from netloop.tools.serve.server import Server
from netloop.tools.serve.streams import Streams
from netloop.values.diagnostics import Finding, NetworkError, reason
from netloop.values.types import UNKNOWN, Array


def service_of(
    engine: ICudaEngine,
    *,
    stream: bool = False,
    states: Mapping[str, str] | None = None,
    shapes: Shapes | None = None,
    sizes: Collection[int] = (1, 4, 16, 64),
    shared: Collection[str] = (),
    slots: int = 1024,
    idle: float | None = None,
    **options: Any,
) -> AnyService:
    """A service with its programs compiled: ``Streams`` or ``Sequences`` where that is asked for, else a ``Server``.

    Args:
        engine: the engine.
        stream: whether the rows of its loop are streamed.
        states: for each input that is a state, the output that is its next value.
        shapes: the shapes of inputs with open lengths, by name: those of a step, or those to compile programs for.
        sizes: the numbers of rows, or of steps, for which programs are compiled. Without them, one request at a time is
            run, and so it is for a network with inputs or outputs that have no rows, if none of them is shared.
        shared: the names of inputs that are the same for all rows.
        slots: the largest number of sequences with a state, or of requests in a loop.
        idle: the seconds after which a sequence without requests loses its state.
        options: the other options of a service: ``queue``, ``timeout``, and ``delay``, which streams have not.

    Raises:
        TypeError, ValueError: an option is not of its range.
        InputError: a shape does not fit its input.
        NetworkError: the network does not fit the options.
    """
    if stream:
        return Streams(slot_engine(engine, slots), **options)
    if states:
        sequences = Sequences(engine, states, shapes=shapes, sizes=sizes, slots=slots, idle=idle, **options)
        sequences.compile()
        return sequences
    require_names(engine, {}, shapes or {})
    is_whole = not shared and without_rows(engine.network)
    server = Server(engine, () if is_whole else sizes, shared=shared, **options)
    examples = _examples(engine.network, shapes or {}, bool(server.sizes))
    if examples is not None:
        server.compile(examples)
    return server


def slot_engine(engine: ICudaEngine, slots: int) -> SlotEngine:
    """The engine of streams.

    Raises:
        NetworkError: the network has no loop to stream, or no weights.
    """
    if engine.absent:
        what, fix = "the plan has no weights", "write the plan without EXCLUDE_WEIGHTS"
        raise NetworkError(Finding("NL621", what, "", reason("NL621"), fix))
    return SlotEngine(engine, slots=slots)


def _examples(network: INetworkDefinition, shapes: Shapes, is_in_rows: bool) -> dict[str, Array] | None:
    """Inputs to compile programs for; None if a shape is not known, or depends on the numbers."""
    deciding = network.shape_tensors()
    arrays: dict[str, Array] = {}
    for tensor in network.inputs:
        of = tensor.type
        if tensor in deciding or not of.is_tensor or of.is_string:
            return None
        shape = tuple(shapes.get(tensor.name, of.shape))
        shape = (1, *shape[1:]) if is_in_rows and has_rows(tensor) else shape
        if UNKNOWN in shape:
            return None
        arrays[tensor.name] = np.zeros(shape, of.dtype)
    return arrays
