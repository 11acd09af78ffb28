import hashlib
import io
import json
import random
import zipfile
import zlib

import numpy as np
import pytest

import netloop as trt
from netloop import plan
from netloop.model.plan import container
from netloop.model.plan.container import Member
from tests.support import plan_forge as forge
from tests.support.plan_forge import refused, sealed, zipped

PLAN = plan.dumps(forge.small())
SIZE = len(PLAN)
DOCUMENT, FILES = forge.taken_apart(PLAN)
NAMES = ["manifest.json", "network.json", *(f"weights/{number:04}.npy" for number in range(len(FILES)))]


def members() -> list[Member]:
    with zipfile.ZipFile(io.BytesIO(PLAN)) as archive:
        return [Member(name, [archive.read(name)]) for name in archive.namelist()]


# ---------------------------------------------------------------------------- what other tools see


def test_zip_tools_open_a_plan():
    with zipfile.ZipFile(io.BytesIO(PLAN)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == NAMES
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert np.load(archive.open("weights/0000.npy"), allow_pickle=False).dtype == np.int32


def test_manifest_tells_sizes_and_hashes():
    with zipfile.ZipFile(io.BytesIO(PLAN)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        contents = [archive.read(name) for name in NAMES[1:]]

    assert (manifest["format"], manifest["version"], manifest["netloop"]) == ("netloop plan", 1, trt.__version__)
    assert [value["name"] for value in manifest["members"]] == NAMES[1:]
    assert [value["size"] for value in manifest["members"]] == list(map(len, contents))
    assert [value["sha256"] for value in manifest["members"]] == [
        hashlib.sha256(content).hexdigest() for content in contents
    ]


def test_comment_is_the_hash_of_all_before_it():
    with zipfile.ZipFile(io.BytesIO(PLAN)) as archive:
        assert archive.comment == b"netloop plan, SHA-256 " + hashlib.sha256(PLAN[:-64]).hexdigest().encode()


def test_members_of_many_digits_are_numbered_on():
    assert container.member_name(12345) == "weights/12343.npy"


# ---------------------------------------------------------------------------- damage


def test_every_flipped_bit_is_found():
    data = bytearray(PLAN)
    found = 0
    for place in range(SIZE):
        for bit in range(8):
            data[place] ^= 1 << bit
            found += forge.is_refused(bytes(data))
            data[place] ^= 1 << bit

    assert found == 8 * SIZE


def test_every_truncation_is_found():
    assert all(forge.is_refused(PLAN[:length]) for length in range(SIZE))
    assert all(forge.is_refused(PLAN[start:]) for start in range(1, SIZE))


def test_every_lost_doubled_or_zeroed_stretch_is_found():
    chance = random.Random(0)
    for _ in range(2000):
        start, length = chance.randrange(SIZE), chance.randrange(1, 200)
        lost = PLAN[:start] + PLAN[start + length :]
        doubled = PLAN[: start + length] + PLAN[start:]
        assert forge.is_refused(lost)
        assert forge.is_refused(doubled)


@pytest.mark.parametrize("data", [b"", b"PK\5\6" + bytes(18), bytes(1000), b"\xff" * 86, b"netloop plan, SHA-256 " * 9])
def test_what_is_no_plan_is_refused(data):
    assert refused(data).code == "NL711"


# ---------------------------------------------------------------------------- malice: the hash at the end is right


def test_every_flipped_bit_is_found_by_the_other_hashes_too():
    data = bytearray(PLAN)
    for place in range(SIZE - container.DIGEST_SIZE):
        bit = 1 << place % 8
        data[place] ^= bit
        assert forge.is_refused(sealed(data)), place
        data[place] ^= bit


@pytest.mark.parametrize("place", [40, SIZE // 2, SIZE - 200])
def test_damage_is_told_as_that_of_the_file_while_two_threads_hash_it(monkeypatch, place):
    """The manifest is damaged too at the first place, and its decoder runs meanwhile."""
    data = bytearray(PLAN)
    data[place] ^= 1
    monkeypatch.setattr(container, "LEAST_PARALLEL", 0)

    assert "SHA-256 at the end of the file" in refused(bytes(data)).what
    assert json.loads(container.unpack(PLAN)[0]) == DOCUMENT


def test_false_hash_of_a_member_is_found_by_two_threads(monkeypatch):
    monkeypatch.setattr(container, "LEAST_PARALLEL", 0)
    with zipfile.ZipFile(io.BytesIO(PLAN)) as archive:
        digest = json.loads(archive.read("manifest.json"))["members"][0]["sha256"].encode()
    false = PLAN.replace(digest, digest[::-1], 1)

    assert refused(sealed(false)).code == "NL711"


def test_bytes_of_a_plan_are_not_copied():
    large = np.arange(1 << 12, dtype=np.float32)
    network = trt.INetworkDefinition()
    network.mark_output(network.add_constant(large.shape, large).get_output(0))
    data = plan.dumps(network)
    (layer,) = plan.loads(data).layers

    assert np.shares_memory(layer.weights, np.frombuffer(data, np.uint8))
    assert not layer.weights.flags.writeable


def test_a_plan_has_one_form():
    """A zip with the right members that another tool wrote is refused."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for member in members():
            archive.writestr(member.name, member.parts[0])
        archive.comment = PLAN[-86:]

    assert refused(sealed(made.getvalue())).code == "NL711"


def compressed() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", bytes(1 << 20))
        archive.comment = PLAN[-86:]
    return made.getvalue()


def with_names(*names: str) -> bytes:
    return zipped([Member(name, member.parts) for name, member in zip(names, members(), strict=False)])


def patched(place: int, value: int, size: int) -> bytes:
    """The plan with a number changed in its first header."""
    return sealed(PLAN[:place] + value.to_bytes(size, "little") + PLAN[place + size :])


def appended() -> bytes:
    """A plan with bytes after its last member, to which all offsets are moved."""
    entries, offset = [], 0
    for member in members():
        content = member.parts[0]
        entries.append(container._Entry(member.name, len(content), zlib.crc32(content), offset))
        offset += len(entries[-1].local()) + len(content)
    return sealed(PLAN[:offset] + b"hidden" + container._directory(entries, offset + 6) + bytes(64))


END = SIZE - 86 - 22
FIRST_SIZE = 30 + len("manifest.json") + 4
# fmt: off
HOSTILE = {
    "bytes before":         (lambda: sealed(b"#!/bin/sh\n" + PLAN),                         "after the last member"),
    "bytes between":        (appended,                                                      "after the last member"),
    "bytes behind":         (lambda: PLAN + b"\n",                                          "does not end like a plan"),
    "bytes behind, sealed": (lambda: sealed(PLAN + b"\n"),                                  "does not end like a plan"),
    "a zip behind":         (lambda: PLAN + PLAN,                                           "SHA-256"),
    "a zip behind, sealed": (lambda: sealed(PLAN + PLAN),                                   "after the last member"),
    "compressed":           (lambda: sealed(compressed()),                                  "is compressed"),
    "encrypted":            (lambda: patched(6, 1, 2),                                      "header"),
    "with a descriptor":    (lambda: patched(6, 8, 2),                                      "header"),
    "other CRC-32":         (lambda: patched(14, 0, 4),                                     "CRC-32"),
    "size in short form":   (lambda: patched(18, 5, 4),                                     "header"),
    "claims 2 GB":          (lambda: patched(FIRST_SIZE, 2 << 30, 8),                       "needs 2147483648"),
    "claims 2^64 - 1":      (lambda: patched(FIRST_SIZE, 2**64 - 1, 8),                     "are left"),
    "claims a byte less":   (lambda: patched(FIRST_SIZE, len(members()[0].parts[0]) - 1, 8), "header"),
    "long name":            (lambda: patched(26, 65535, 2),                                 "is named"),
    "no name":              (lambda: patched(26, 0, 2),                                     "is named b''"),
    "cut in a header":      (lambda: sealed(PLAN[:40] + PLAN[-86:]),                        "ends in a header"),
    "no member":            (lambda: zipped([]),                                            "no network.json"),
    "manifest alone":       (lambda: with_names(*NAMES[:1]),                                "lists"),
    "a member less":        (lambda: zipped(members()[:-1]),                                "lists"),
    "a member more":        (lambda: zipped([*members(), Member(container.member_name(len(NAMES)), [b""])]), "lists"),
    "a member twice":       (lambda: zipped([*members(), members()[-1]]),                   "is named"),
    "manifest twice":       (lambda: zipped([*members()[:1], *members()]),                  "is named b'man"),
    "network first":        (lambda: zipped(members()[1:]),                                 "is named b'net"),
    "other order":          (lambda: zipped([*members()[:2], *members()[:1:-1]]),           "is named"),
    "unknown member":       (lambda: zipped([*members(), Member("extra.bin", [b"x"])]),     "is named b'extra.bin'"),
    "climbing path":        (lambda: with_names(*NAMES[:2], "../../etc/passwd"),            "is named"),
    "absolute path":        (lambda: with_names(*NAMES[:2], "/weights/0000.npy"),           "is named"),
    "backslash":            (lambda: with_names(*NAMES[:2], "weights\\0000.npy"),           "is named"),
    "zero byte in a name":  (lambda: with_names("manifest.json\0"),                         "is named"),
    "other case":           (lambda: with_names("MANIFEST.JSON"),                           "is named"),
}
# fmt: on


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_is_refused(name):
    make, what = HOSTILE[name]

    finding = refused(make())

    assert what in finding.what
    assert finding.code == "NL711"


@pytest.mark.parametrize(
    ("opening", "fix"),
    [(b"ftrt", "a plan of TensorRT"), (b"\x08\x0a", "parse it with OnnxParser"), (b"", "get the plan")],
)
def test_file_of_another_format_has_its_own_fix(opening, fix):
    assert fix in refused(opening + bytes(1000)).fix


@pytest.mark.parametrize("place", [END, END + 8, END + 16, END - 20 + 8, END - 76 + 4, END - 76 + 48], ids=str)
def test_directory_that_tells_something_else_is_refused(place):
    data = PLAN[:place] + b"\x07" + PLAN[place + 1 :]

    assert "after the last member" in refused(sealed(data)).what


def test_document_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(container, "LARGEST_DOCUMENT", 400)

    assert "has" in refused(PLAN).what


def test_network_beyond_the_limit_is_not_saved(monkeypatch):
    monkeypatch.setattr(container, "LARGEST_DOCUMENT", 400)
    with pytest.raises(trt.NetworkError, match="NL714: the network cannot be saved: the network takes"):
        plan.dumps(forge.small())


# ---------------------------------------------------------------------------- the manifest


def test_newer_version_is_refused_with_the_versions():
    finding = refused(forge.put_together(DOCUMENT, FILES, version=2, netloop="9.9", more={"things": 1}))

    assert finding.code == "NL712"
    assert finding.what == "the plan is of version 2 of the format, written by netloop 9.9"
    assert finding.why == f"this is netloop {trt.__version__}, which reads up to 1"
    assert finding.fix == "update netloop, or write the plan with this version of netloop"


def test_newer_version_may_have_other_members():
    first = Member("manifest.json", [b'{"format":"netloop plan","version":7,"netloop":"9"}'])

    assert refused(zipped([first, Member("else.bin", [b"x"])])).code == "NL712"


LISTED = json.loads(members()[0].parts[0])["members"]
# fmt: off
MANIFESTS = {
    "other format":     ({"format": "zip"},                                  "the format should be 'netloop plan'"),
    "version 0":        ({"version": 0},                                     "a number from 1"),
    "version 1.0":      ({"version": 1.0},                                   "a whole number, found 1.0"),
    "version true":     ({"version": True},                                  "a whole number, found true"),
    "no release":       ({"netloop": None},                                  "a string, found null"),
    "unknown key":      ({"signature": "x"},                                 "has unknown keys 'signature'"),
    "members no list":  ({"members": {}},                                    "a list, found an object"),
    "none listed":      ({"members": []},                                    "lists 0 members"),
    "listed twice":     ({"members": [*LISTED, LISTED[-1]]},                 f"lists {len(LISTED) + 1} members"),
    "other hash":       ({"members": [*LISTED[:-1], {**LISTED[-1], "sha256": "0" * 64}]}, "the sha256 of"),
    "capital hash":     ({"members": [{**m, "sha256": m["sha256"].upper()} for m in LISTED]}, "the sha256 of"),
    "other size":       ({"members": [{**LISTED[0], "size": 10**12}, *LISTED[1:]]},       "the size of"),
    "other name":       ({"members": [{**LISTED[0], "name": "../network.json"}, *LISTED[1:]]}, "the name of"),
    "entry with more":  ({"members": [{**LISTED[0], "mode": 7}, *LISTED[1:]]},            "has unknown keys 'mode'"),
}
# fmt: on


@pytest.mark.parametrize("name", MANIFESTS)
def test_false_manifest_is_refused(name):
    changes, what = MANIFESTS[name]

    finding = refused(forge.put_together(DOCUMENT, FILES, **changes))

    assert what in finding.what


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"\xff", b"{}", b"[" * 100_000, b'{"version":2}'], ids=len)
def test_manifest_that_is_no_manifest_is_refused(content):
    refused(zipped([Member("manifest.json", [content]), *members()[1:]]))
