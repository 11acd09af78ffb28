"""The graphs of a search: their inputs and outputs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import onnx

from netloop.formats.onnx.importer.call import NodeCall, Subgraph
from netloop.formats.onnx.importer.search.texts import Texts, repeated
from netloop.formats.onnx.tensors import element_type
from netloop.model.formulas import FormulaBuilder, Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import quoted, require
from netloop.values.enums import CumulativeOperation

Memory = Sequence[ITensor]
"""The state that a decoder carries from one token to the next."""

WORDS, PLACES, MASK, PAST = "input_ids", "position_ids", "attention_mask", 3
"""The first inputs of the graph of a decoder like GPT-2, and the number of the first past state."""


class Decoder(ABC):
    """The scores of the tokens that may follow some texts, and the memory of these.

    Attributes:
        prompts: the texts before the search, int32 [texts, length].
    """

    prompts: ITensor

    def __init__(self, call: NodeCall, beams: Length) -> None:
        self._call = call
        self._make = call.make
        self._beams = beams

    @abstractmethod
    def start(self) -> tuple[ITensor, Memory]:
        """The scores after the prompts, and their memory."""

    @abstractmethod
    def step(self, texts: Texts, tokens: ITensor, rows: ITensor | None, memory: Memory) -> tuple[ITensor, Memory]:
        """The scores after texts that end with ``tokens``; each continues the text of a row of ``memory``."""

    def _scores(self, logits: ITensor) -> ITensor:
        """The scores after the last token; float32 [texts, tokens]."""
        make, count = self._make, self._call.attribute("vocab_size")
        require(logits.type.rank == 3, f"the logits of the decoder are {logits.type}, but must have 3 axes")
        last = make.sub(make.tensor(make.length(logits, 1)), 1)
        scores = make.cast(make.gather(logits, last, 1), np.float32)
        require(
            scores.type.shape[1] > 0 or count > 0, f"the decoder does not declare its number of tokens: {logits.type}"
        )
        return make.slice(scores, [0], [count], axes=[1]) if 0 < count < scores.type.shape[1] else scores


class GptDecoder(Decoder):
    """A decoder like GPT-2: its graph reads tokens, their positions, a mask and the past, and returns the present.

    Its memory has the next positions, the mask, and the past keys and values of each layer.
    """

    def __init__(self, call: NodeCall, tokens: ITensor, mask: ITensor | None, beams: Length) -> None:
        super().__init__(call, beams)
        make = call.make
        is_word = make.logical_not(make.equal(tokens, call.attribute("pad_token_id")))
        self.prompts, self._is_word = (
            repeated(make, tensor, beams) for tensor in (tokens, make.cast(is_word, np.int32))
        )
        self._prompt_mask = self._is_word if mask is None else repeated(make, mask, beams)
        self._graph = call.subgraph("decoder")
        inputs, outputs = (len(container) for container in (self._graph.proto.input, self._graph.proto.output))
        what = f"the graph of the decoder has {inputs} inputs and {outputs} outputs, but must have 2 inputs more"
        require(inputs == outputs + 2 and outputs > 1, what, "netloop does not share buffers of past and present")

    def start(self) -> tuple[ITensor, Memory]:
        make, is_word = self._make, self._is_word
        has_own = self._call.attribute("init_decoder") is not None
        graph = self._call.subgraph("init_decoder") if has_own else self._graph
        # padding has the position 0, whatever the mask says
        places = make.mul(make.cumulative(CumulativeOperation.SUM, is_word, 1, exclusive=True), is_word)
        past = [_empty(make, info, 1, make.length(self.prompts, 0)) for info in self._graph.proto.input[PAST:]]
        logits, *present = graph(self.prompts, places, self._prompt_mask, *past)
        return self._scores(logits), [make.sum(is_word, [1], keep=True), self._prompt_mask, *present]

    def step(self, texts: Texts, tokens: ITensor, rows: ITensor | None, memory: Memory) -> tuple[ITensor, Memory]:
        make = self._make
        places, mask, *past = memory
        words = make.expand_dims(tokens, [1])
        mask = make.concat([mask, make.full(make.shape(words), 1, np.int32)], 1)
        past = past if rows is None else [make.gather(tensor, rows, 1) for tensor in past]
        logits, *present = self._graph(words, places, mask, *past)
        return self._scores(logits), [make.add(places, 1), mask, *present]


class EncodedDecoder(Decoder):
    """A decoder like T5's: its graph reads tokens, the mask and the keys and values of an encoder, and the past.

    The graph of the encoder returns the keys and values; an older form also decodes the first token. The memory has the
    past keys and values of each layer.
    """

    def __init__(self, call: NodeCall, tokens: ITensor, mask: ITensor | None, beams: Length) -> None:
        super().__init__(call, beams)
        make, start = call.make, call.attribute("decoder_start_token_id")
        require(start >= 0, "decoder_start_token_id is missing, with which the texts of an encoder-decoder start")
        begin = make.full([make.length(tokens, 0), 1], start, np.int32)
        mask = self._mask(tokens) if mask is None else mask
        require(call.attribute("encoder") is not None, "the graph of the encoder is missing")
        encoder, self._graph = call.subgraph("encoder"), call.subgraph("decoder")
        self._decodes_first = len(encoder.proto.input) == 3
        tensors = [tokens, mask, begin] if self._decodes_first else [tokens, mask]
        encoded = [repeated(make, tensor, beams) for tensor in encoder(*tensors)]
        self.prompts, self._encoder_mask = (repeated(make, tensor, beams) for tensor in (begin, mask))
        self._share(encoder, encoded)

    def _share(self, encoder: Subgraph, encoded: Sequence[ITensor]) -> None:
        """Name the outputs of the encoder: logits, hidden states, keys and values of the text and of the prompt."""
        names = [info.name for info in self._graph.proto.input]
        reads_states = len(names) > 2 and names[2] == "encoder_hidden_states"
        self._states = len(self._graph.proto.output) - 1
        first = 2 if self._decodes_first else 0
        own = self._states if self._decodes_first else 0
        fits = len(encoded) == first + own + self._states and len(names) == 2 + reads_states + 2 * self._states
        what = f"the encoder returns {len(encoded)} values, and the decoder {self._states + 1} for {len(names)} inputs"
        require(fits and (self._decodes_first or not reads_states), what, "these are not those of an encoder-decoder")
        self._logits = encoded[0] if self._decodes_first else None
        self._own = encoded[first : first + own]
        self._fixed = [self._encoder_mask, *([encoded[1]] if reads_states else [])]
        self._keys = encoded[first + own :]
        self._past = self._graph.proto.input[2 + reads_states : 2 + reads_states + self._states]
        dims = self._graph.proto.input[0].type.tensor_type.shape.dim
        self._reads_last = len(dims) == 2 and dims[1].dim_value == 1

    def _mask(self, tokens: ITensor) -> ITensor:
        """The mask without padding on the left: elsewhere the token of padding may be another one."""
        make = self._make
        is_word = make.logical_not(make.equal(tokens, self._call.attribute("pad_token_id")))
        tensor = make.cumulative(CumulativeOperation.SUM, make.cast(is_word, np.int32), 1)
        return make.cast(make.greater(tensor, 0), np.int32)

    def start(self) -> tuple[ITensor, Memory]:
        if self._logits is not None:
            return self._scores(self._logits), self._own
        texts = self._make.length(self.prompts, 0)
        return self._decoded(self.prompts, [_empty(self._make, info, 0, texts) for info in self._past])

    def step(self, texts: Texts, tokens: ITensor, rows: ITensor | None, memory: Memory) -> tuple[ITensor, Memory]:
        make = self._make
        past = memory if rows is None else [make.gather(tensor, rows) for tensor in memory]
        whole = make.expand_dims(tokens, [1])
        return self._decoded(whole if self._reads_last else make.take_first(texts.tokens, texts.length, 1), past)

    def _decoded(self, words: ITensor, past: Sequence[ITensor]) -> tuple[ITensor, Memory]:
        logits, *present = self._graph(words, *self._fixed, *past, *self._keys)
        return self._scores(logits), present


def _empty(make: FormulaBuilder, declared: onnx.ValueInfoProto, axis: int, texts: Length) -> ITensor:
    """The past state of texts without tokens; the graph declares its other lengths."""
    tensor = declared.type.tensor_type
    dims = [dimension.dim_value for dimension in tensor.shape.dim]
    rank = axis + 4
    open_axes = (axis, axis + 2)
    fits = len(dims) == rank and all(length > 0 or number in open_axes for number, length in enumerate(dims))
    what = f"the decoder declares the input {quoted(declared.name)} as {dims}"
    require(fits, what, f"a past state has {rank} axes, of which the numbers of heads and of their elements are given")
    shape = [texts if number == axis else 0 if number == axis + 2 else length for number, length in enumerate(dims)]
    return make.full(shape, 0, element_type(tensor.elem_type))
