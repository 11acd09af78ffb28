"""Networks that write sequences: one request with a loop that ends when the request does."""

from typing import Any

import numpy as np

import netloop as trt
from tests.support.networks import LAST, WHILE, F, Op, combine, constant, counted, last, stacked

NONE = trt.MatrixOperation.NONE


def generator(hidden: int = 16, characters: int = 12, longest: int = 20, seed: int = 0) -> trt.INetworkDefinition:
    """text, state, score: what a recurrent network writes after the prompt, until it writes 0.

    prompt[3] int32 and most, the largest number of characters, are the inputs. ``text[longest]`` has the characters,
    ``state[1,hidden]`` is the last state, ``score`` the sum of its elements.
    """
    network, draw = trt.INetworkDefinition(), np.random.default_rng(seed)

    def weights(*shape: int) -> Any:
        return constant(network, (1.5 * draw.standard_normal(shape) / np.sqrt(shape[0])).astype(F))

    embedding, recurrent = weights(characters, hidden), weights(hidden, hidden)
    decoding = weights(hidden, characters)

    def step(character: Any, state: Any) -> Any:
        row = network.add_shuffle(network.add_gather(embedding, character, 0).get_output(0))
        row.reshape_dims = (1, hidden)
        product = network.add_matrix_multiply(state, NONE, recurrent, NONE).get_output(0)
        total = combine(network, row.get_output(0), product)
        return network.add_activation(total, trt.ActivationType.TANH).get_output(0)

    prompt = network.add_input("prompt", trt.int32, (3,))
    reading = counted(network, 3)
    reading.name = "reading"
    read = reading.add_recurrence(constant(network, np.zeros((1, hidden), F)))
    read.set_input(1, step(reading.add_iterator(prompt).get_output(0), read.get_output(0)))

    writing = counted(network, network.add_input("most", trt.int32, ()))
    writing.name = "writing"
    character = writing.add_recurrence(constant(network, 1, np.int32))
    state = writing.add_recurrence(last(reading, read.get_output(0)))
    now = character.get_output(0)
    writing.add_trip_limit(combine(network, now, 0, Op.GREATER), WHILE)
    state.set_input(1, step(now, state.get_output(0)))
    logits = network.add_matrix_multiply(state.get_input(1), NONE, decoding, NONE).get_output(0)
    best = network.add_topk(logits, trt.TopKOperation.MAX, 1, 1 << 1).get_output(1)
    scalar = network.add_shuffle(best)
    scalar.reshape_dims = ()
    character.set_input(1, scalar.get_output(0))

    text = stacked(writing, character.get_input(1), constant(network, longest, np.int32))
    final = writing.add_loop_output(state.get_output(0), LAST).get_output(0)
    score = network.add_reduce(final, trt.ReduceOperation.SUM, 0b11, False).get_output(0)
    for name, tensor in (("text", text), ("state", final), ("score", score)):
        tensor.name = name
        network.mark_output(tensor)
    return network


def prompts(count: int, characters: int = 12, most: int = 20) -> list[dict[str, Any]]:
    """Inputs of some requests of different lengths."""
    draw = np.random.default_rng(1)
    return [
        {"prompt": draw.integers(1, characters, 3).astype(np.int32), "most": np.int32(draw.integers(0, most + 1))}
        for _ in range(count)
    ]
