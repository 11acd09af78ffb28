"""The target ``openvino``: the importer of OpenVINO models.

An input is a document, a byte of zero, which XML does not have, and the weights. A document is changed as a list of
tags, texts and values of attributes.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import netloop as trt
from tests.fuzz import seeds
from tests.fuzz.target import Bytes, Target
from tests.support.openvino_models import ov

END = b"\0"
TOKEN = re.compile(rb'"[^"]*"|<[^">]*>?|[^<>"]+|.', re.DOTALL)
VALUES = (
    b"0", b"1", b"2", b"-1", b"3", b"7", b"9223372036854775807", b"-9223372036854775808", b"1e400", b"nan", b"", b"?",
    b"1,2", b"2,3,4", b"...", b"1..4", b"f32", b"f16", b"i32", b"i64", b"boolean", b"u8", b"i4", b"u1", b"string",
    b"true", b"false", b"opset1", b"opset8", b"opset13", b"extension", b"auto", b"numpy",
)  # fmt: skip
LARGEST = 15_000
"""The largest seed, in bytes; documents are longer than other models."""
MOST_CHANGES = 4


def run(data: bytes) -> None:
    """Load a model; what loads can be checked."""
    document, _, weights = data.partition(END)
    trt.check(trt.openvino.load(document, weights))


def inputs() -> Iterator[bytes]:
    """Networks with loops and conditionals, and models that OpenVINO writes for single operators of ONNX."""
    return (each for each in _models() if len(each) <= LARGEST)


def _models() -> Iterator[bytes]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        for network in seeds.networks():
            with suppress(trt.NetworkError):  # OpenVINO cannot express all layers
                trt.openvino.save(network, path)
                yield _joined(path)
        core = ov.Core()
        for each in seeds.node_tests():
            with suppress(RuntimeError):  # OpenVINO does not have all operators
                ov.serialize(core.read_model(each, b""), path)
                yield _joined(path)


def _joined(path: Path) -> bytes:
    document = re.sub(rb"(?s)<rt_info>.*?</rt_info>\s*|<rt_info ?/>\s*|\n\s*", b"", path.read_bytes())
    return document + END + path.with_suffix(".bin").read_bytes()


def mutate(data: bytes, chance: Random, bytes_of: Bytes) -> bytes:
    """Change the document token by token, the weights, or any bytes."""
    document, _, weights = data.partition(END)
    act = chance.randrange(10)
    if act == 0:
        return bytes_of(data)
    if act == 1:
        return document + END + bytes_of(weights)
    tokens = TOKEN.findall(document)
    for _ in range(1 + chance.randrange(MOST_CHANGES)):
        if tokens:
            _change(tokens, chance, bytes_of)
    return b"".join(tokens) + END + weights


def _change(tokens: list[bytes], chance: Random, bytes_of: Bytes) -> None:
    at = chance.randrange(len(tokens))
    token = tokens[at]
    if token.startswith(b"<") and token.endswith(b">") and chance.randrange(2):
        start, end = _element(tokens, at)
        part = tokens[start:end]
        if chance.randrange(2):
            del tokens[start:end]
        if chance.randrange(2):
            place = chance.randrange(len(tokens) + 1)
            tokens[place:place] = part
    elif token.startswith(b'"'):
        quoted = [each for each in tokens if each.startswith(b'"')]
        value = chance.choice([chance.choice(quoted), b'"%b"' % chance.choice(VALUES)])
        tokens[at] = value if chance.randrange(6) else b'"' + bytes_of(token[1:-1]) + b'"'
    elif token.startswith(b"<"):
        tokens[at] = chance.choice([each for each in tokens if each.startswith(b"<")])
    else:
        tokens[at] = chance.choice([chance.choice(tokens), chance.choice(VALUES), bytes_of(token)])


def _element(tokens: list[bytes], at: int) -> tuple[int, int]:
    """The tokens of the element that begins with a tag, as a range; only the tag where it has no end."""
    depth = 0
    for end in range(at, len(tokens)):
        # a tag with attributes is several tokens, the last of which ends it
        depth += tokens[end].startswith(b"<") and not tokens[end].startswith((b"</", b"<?"))
        depth -= tokens[end].startswith(b"</") or tokens[end].endswith(b"/>") or tokens[end] == b"/"
        if depth <= 0:
            return at, end + 1
    return at, at + 1


TOKENS = ("<layer ", "<data ", "<port ", "<dim>", "<edge ", "<body>", "<port_map>", "<back_edges>", "opset", "version=")
TARGET = Target("openvino", run, inputs, mutate, TOKENS)
