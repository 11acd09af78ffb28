"""Plans that netloop would not write, with every hash right."""

import hashlib
import json
import random
from typing import Any

import numpy as np
import pytest

import netloop as trt
from netloop import plan
from netloop.model.plan import container
from netloop.model.plan.json_reader import to_json
from tests.support import networks


def small() -> trt.INetworkDefinition:
    """y: x[3] scaled n times; nearly every kind of entry of a document occurs."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1,))
    x.set_dimension_name(0, "rows")
    loop = networks.counted(network, 3)
    state = loop.add_recurrence(x)
    scale = networks.constant(network, np.array([0.5], np.float32))
    state.set_input(1, networks.combine(network, state.get_output(0), scale, trt.ElementWiseOperation.PROD))
    state.metadata = "carried"
    choice = network.add_if_conditional()
    choice.set_condition(networks.constant(network, True, np.bool_))
    made = choice.add_output(networks.last(loop, state.get_output(0)), choice.add_input(x).get_output(0)).get_output(0)
    clip = network.add_activation(made, trt.ActivationType.CLIP)
    clip.alpha, clip.beta = -float("inf"), 64
    shuffle = network.add_shuffle(clip.get_output(0))
    shuffle.reshape_dims = (1, -1)
    return networks.mark(network, y=shuffle.get_output(0))


def taken_apart(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The document of a plan, and the files of its arrays."""
    document, files = container.unpack(data)
    return json.loads(document), list(map(bytes, files))


def put_together(document: Any, files: list[bytes], **manifest: Any) -> bytes:
    """The plan of a document, JSON or what is to be JSON, with fields of the manifest changed."""
    network = document if isinstance(document, bytes) else to_json(document)
    contents = [network, *files]
    members = [container.Member(container.member_name(number), [content]) for number, content in enumerate(contents, 1)]
    told = {**json.loads(container.manifest(members)), **manifest}
    return zipped([container.Member("manifest.json", [to_json(told)]), *members])


def zipped(members: list[container.Member]) -> bytes:
    return b"".join(container.zipped(members))


def sealed(data: bytes | bytearray) -> bytes:
    """A file with the hash at its end made right."""
    body = bytes(data)[: -container.DIGEST_SIZE]
    return body + hashlib.sha256(body).hexdigest().encode()


def refused(data: Any) -> trt.Finding:
    with pytest.raises(trt.FileFormatError) as caught:
        plan.loads(data)
    (finding,) = caught.value.findings
    return finding


def is_refused(data: bytes) -> bool:
    try:
        plan.loads(data)
    except trt.FileFormatError:
        return True
    return False


# ---------------------------------------------------------------------------- random changes

LEAVES = [
    None, True, False, 0, 1, -1, 2, 8, 63, 2**31, 2**63 - 1, -(2**63), 2**64, 10**18, 0.0, -0.5, 1e300, "nan", "inf",
    "", "x", "FLOAT", "FP4", "INT4", "COUNT", "WHILE", "LAST_VALUE", "IConstantLayer", "ILayer", "__class__", "\x00",
    "é", [], {}, [0], [0, 0], [-1, 0], [-1, 9], [99, 0], [[0, 0], [0, 0]], {"x": 1}, [1] * 9, [10**12], [-1, -1],
]  # fmt: skip


def changed(document: Any, chance: random.Random) -> Any:
    """A copy of a document with one value replaced, removed, doubled or moved."""
    copy = json.loads(json.dumps(document))
    places = list(_places(copy))
    holder, key = chance.choice(places)
    act = chance.randrange(8)
    if act == 0 and isinstance(holder, list):
        holder.pop(key)
    elif act == 1 and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif act == 2 and isinstance(holder, dict):
        holder.pop(key)
    elif act < 7:
        alike = [other[at] for other, at in places if type(other[at]) is type(holder[key])]
        alike += [flag for flag in LEAVES if type(flag) is type(holder[key])]
        holder[key] = json.loads(json.dumps(chance.choice(alike)))
    else:
        holder[key] = chance.choice(LEAVES)
    return copy


def _places(value: Any) -> Any:
    stack = [value]
    while stack:
        holder = stack.pop()
        keys = range(len(holder)) if isinstance(holder, list) else holder
        for key in keys:
            yield holder, key
            if isinstance(holder[key], list | dict):
                stack.append(holder[key])
