"""Search of onnxruntime (com.microsoft): texts that a decoder continues, as a loop around its graph."""

import numpy as np

from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.onnx.importer.search.beams import BeamSearch
from netloop.formats.onnx.importer.search.decoders import Decoder, EncodedDecoder, GptDecoder
from netloop.formats.onnx.importer.search.loops import run_search
from netloop.formats.onnx.importer.search.penalties import LONGEST, Penalties
from netloop.formats.onnx.importer.search.sampling import GreedySearch, Sampling, SingleSearch
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require

DECODERS: dict[int, type[GptDecoder] | type[EncodedDecoder]] = {0: GptDecoder, 1: EncodedDecoder}
"""The kinds of models, by ``model_type``."""

MOST_BEAMS = 128
"""The most beams, which are those of onnxruntime."""


def _decoder(call: NodeCall, tokens: ITensor, mask: Maybe, beams: Length) -> Decoder:
    kind = call.attribute("model_type")
    require(kind in DECODERS, f"model_type is {kind}, and netloop supports 0, a decoder, and 1, an encoder-decoder")
    require(tokens.type.rank == 2, f"input_ids is {tokens.type}, but must have 2 axes: texts and tokens")
    return DECODERS[kind](call, tokens, mask, beams)


def _count(call: NodeCall, name: str, count: ITensor, most: int) -> Length:
    """A number from 1 up to ``most``: an int if it is known, else int64, 0-D."""
    make, numbers = call.make, call.make.ints(count)
    if numbers is not None and len(numbers) == 1:
        require(1 <= numbers[0] <= most, f"{name} is {numbers[0]}, but must be from 1 to {most}")
        return numbers[0]
    number = make.cast(make.scalar(count), np.int64)
    holds = make.logical_and(make.greater(number, 0), make.less_equal(number, most))
    make.network.add_assertion(holds, f"{name} is from 1 to {most}")
    return number


def _longest(call: NodeCall, length: ITensor) -> ITensor:
    return call.make.tensor(_count(call, "max_length", length, LONGEST))


def _numbers(call: NodeCall, beams: ITensor, returned: ITensor) -> tuple[Length, Length]:
    """The numbers of beams and of texts to return, at most as many; ints if they are known."""
    make, count = call.make, _count(call, "num_beams", beams, MOST_BEAMS)
    kept = _count(call, "num_return_sequences", returned, MOST_BEAMS)
    if isinstance(kept, int) and isinstance(count, int):
        require(kept <= count, f"num_return_sequences is {kept}, and there are {count} beams")
    else:
        enough = make.greater_equal(make.tensor(count), make.tensor(kept))
        make.network.add_assertion(enough, "num_return_sequences is at most num_beams")
    return count, kept


def _single(call: NodeCall, tokens: ITensor, mask: Maybe, search: SingleSearch, most: ITensor) -> ITensor:
    decoder = _decoder(call, tokens, mask, 1)
    return run_search(call, decoder, search, _longest(call, most))[0].tokens


@microsoft("GreedySearch")
def greedy_search(
    call: NodeCall,
    tokens: ITensor,
    most: ITensor,
    least: Maybe = None,
    repetition: Maybe = None,
    words: Maybe = None,
    first_words: Maybe = None,
    mask: Maybe = None,
) -> ITensor:
    """Texts continued by the most probable tokens."""
    penalties = Penalties(call, 1, least, repetition, words, first_words)
    return _single(call, tokens, mask, GreedySearch(call, penalties), most)


@microsoft("Sampling")
def sampling(
    call: NodeCall,
    tokens: ITensor,
    most: ITensor,
    least: Maybe = None,
    repetition: Maybe = None,
    words: Maybe = None,
    first_words: Maybe = None,
    mask: Maybe = None,
    present: Maybe = None,
    seed: Maybe = None,
) -> ITensor:
    """Texts continued by tokens drawn among the most probable ones; other numbers than onnxruntime's."""
    penalties = Penalties(call, 1, least, repetition, words, first_words, present)
    return _single(call, tokens, mask, Sampling(call, penalties, seed), most)


@microsoft("BeamSearch")
def beam_search(
    call: NodeCall,
    tokens: ITensor,
    most: ITensor,
    least: Maybe,
    beams: ITensor,
    returned: ITensor,
    length_penalty: Maybe = None,
    repetition: Maybe = None,
    words: Maybe = None,
    first_words: Maybe = None,
    mask: Maybe = None,
    start: Maybe = None,
    processor: Maybe = None,
) -> list[Maybe]:
    """The best texts that several beams find, their scores, and the scores of all tokens in all iterations."""
    make, (count, kept) = call.make, _numbers(call, beams, returned)
    require(start is None and processor is None, "decoder_input_ids and logits_processor are for Whisper only")
    decoder, prompts, longest = _decoder(call, tokens, mask, count), make.length(tokens, 0), _longest(call, most)
    iterations = make.sub(longest, make.tensor(make.length(decoder.prompts, 1)))
    penalty = make.constant(np.float32(1)) if length_penalty is None else make.scalar(length_penalty)
    penalties = Penalties(call, count, least, repetition, words, first_words)
    search = BeamSearch(
        call, count, penalties, make.cast(penalty, np.float32), make.tensor(prompts), call.wants(2), iterations
    )
    finished, scores = search.results(*run_search(call, decoder, search, longest))
    tensors = [make.slice(tensor, [0], [kept], axes=[1]) for tensor in (finished.tokens, finished.scores)]
    if scores is not None:
        scores = make.reshape(scores, [iterations, prompts, count, make.length(scores, 2)])
    return [*tensors, scores]
