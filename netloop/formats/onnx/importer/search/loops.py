"""The loop of a search: decode, select, extend the texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from netloop.formats.onnx.importer.call import NodeCall
from netloop.formats.onnx.importer.search.decoders import Decoder
from netloop.formats.onnx.importer.search.texts import Texts
from netloop.formats.shared import IterationResult, LoopLimits, LoopNames, build_loop
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop


@dataclass(frozen=True)
class Selection:
    """The tokens that a search selects.

    Attributes:
        tokens: the next token of each text.
        rows: the text that each continues; None if each continues its own.
        state: the state of the search.
        goes_on: whether a text is not finished; bool, 0-D.
    """

    tokens: ITensor
    rows: ITensor | None
    state: Sequence[ITensor]
    goes_on: ITensor


class DecodingStrategy(Protocol):
    """How a search selects tokens."""

    def select(self, scores: ITensor, texts: Texts, state: Sequence[ITensor] | None) -> Selection:
        """Select the next tokens by the scores of the decoder; the state is None for the first ones."""
        ...


def run_search(
    call: NodeCall, decoder: Decoder, search: DecodingStrategy, most: ITensor
) -> tuple[Texts, Sequence[ITensor]]:
    """Add the loop of a search for texts of ``most`` tokens; return the texts and the state of the search.

    The first token is selected before the loop, as it follows a whole prompt.
    """
    make, pad = call.make, call.attribute("pad_token_id")
    texts = Texts.starting_with(make, decoder.prompts, most, pad)
    fits = make.greater(most, texts.length)
    make.network.add_assertion(fits, "max_length is greater than the length of the prompts")
    scores, memory = decoder.start()
    first = search.select(scores, texts, None)
    has_rows, count = first.rows is not None, len(first.state)

    def packed(texts: Texts, selection: Selection, memory: Sequence[ITensor]) -> list[ITensor]:
        rows = [] if selection.rows is None else [selection.rows]
        texts = texts.extended(selection.tokens, selection.rows)
        return [texts.tokens, texts.length, *selection.state, selection.tokens, *rows, *memory]

    def body(loop: ILoop, iteration: ITensor, values: Sequence[ITensor]) -> IterationResult:
        texts, state, rest = Texts(make, values[0], values[1]), values[2 : 2 + count], values[2 + count :]
        rows = rest[1] if has_rows else None
        scores, memory = decoder.step(texts, rest[0], rows, rest[1 + has_rows :])
        selection = search.select(scores, texts, state)
        return IterationResult(selection.goes_on, packed(texts, selection, memory))

    left = make.maximum(make.sub(make.sub(most, texts.length), 1), 0)
    limits = LoopLimits(left, first.goes_on, left)
    tokens, length, *rest = build_loop(make, LoopNames(call.node.name), packed(texts, first, memory), limits, body).last
    return Texts(make, tokens, length), rest[:count]
