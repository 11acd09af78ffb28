"""The target ``plan``: the reader of plans.

A plan is sealed by hashes, so that a changed byte is found before anything is decoded. An input is taken apart, its
document or one of its arrays is changed, and it is sealed again.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import netloop as trt
from netloop import plan
from tests.fuzz import seeds
from tests.fuzz.target import Bytes, Target
from tests.support.plan_forge import changed, put_together, sealed, taken_apart


def run(data: bytes) -> None:
    """Load a plan; what loads can be checked, copied and saved again."""
    read = plan.read(data)
    trt.check(read.network)
    with suppress(trt.NetworkError):  # a plugin that was made from a plan may not be able to say its fields
        plan.loads(plan.dumps(read.network.copy(), read.build.value if read.build else None))


def inputs() -> Iterator[bytes]:
    """Plans of networks."""
    for network in seeds.networks():
        with suppress(trt.NetworkError):  # plugins without a name
            if len(data := plan.dumps(network)) <= seeds.LARGEST:
                yield data


def mutate(data: bytes, chance: Random, bytes_of: Bytes) -> bytes:
    """Change the document as JSON or as text, an array, or any byte; all hashes are right but in the last case."""
    act = chance.randrange(10)
    try:
        document, files = taken_apart(data)
    except (trt.FileFormatError, ValueError):
        return bytes_of(data)
    if act < 7:
        for _ in range(1 + chance.randrange(3)):
            with suppress(IndexError):  # the document has become empty
                document = changed(document, chance)
        return put_together(document, files)
    if act == 7:
        return put_together(bytes_of(json.dumps(document).encode()), files)
    if act == 8 and files:
        number = chance.randrange(len(files))
        return put_together(document, [*files[:number], bytes_of(files[number]), *files[number + 1 :]])
    return sealed(bytes_of(data))


TARGET = Target("plan", run, inputs, mutate)
