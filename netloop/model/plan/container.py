"""The file format of plans: a zip of one exact form.

The members come in this order, stored and not compressed::

    manifest.json       {"format":"netloop plan","version":1,"netloop":"0.1.0","members":[{"name","size","sha256"},...]}
    network.json        the network
    weights/0000.npy    its arrays
    ...

The comment of the zip, and so the end of the file, is ``netloop plan, SHA-256 `` and the hash of all bytes before the
hash, as 64 hexadecimal digits. It is verified before a decoder sees the network or an array; while it is computed, the
manifest is read, and the hashes of the members in it are compared. A plan may still be malicious, and is accepted only
if it is, to the byte, the zip that would be written for its members: no other names, no compression, nothing before,
between or after them. So every zip tool sees the same members as netloop. Sizes and offsets always have 64 bits
(zip64), and dates are 1980-01-01, so that the same members give the same bytes. In every version of the format the
manifest is the first member, and the comment has this form.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import metadata
from typing import Any, NamedTuple, NoReturn

from netloop.model.plan.json_reader import JsonValue, from_json, to_json
from netloop.process.file_reading import memory_errors_as, require_memory
from netloop.values.diagnostics import FileFormatError, Finding

Part = bytes | memoryview

FORMAT = "netloop plan"
VERSION = 1
MANIFEST, NETWORK = "manifest.json", "network.json"

LARGEST_DOCUMENT = 1 << 28
"""The most bytes of the manifest and of the network; arrays are limited only by the length of the file."""

LEAST_PARALLEL = 1 << 20
"""The least length of a file, in bytes, whose hashes are computed in two threads."""

LONGEST_NAME = 64
COMMENT = b"netloop plan, SHA-256 "
DIGEST_SIZE = 64

_LOCAL = struct.Struct("<4s5H3I2H")
_LOCAL_SIZES = struct.Struct("<2H2Q")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_CENTRAL_SIZES = struct.Struct("<2H3Q")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_END = struct.Struct("<4s4H2IH")

ZIP_VERSION = 45  # the first that has zip64
UNIX = 3
PLAIN_FILE = 0o100644 << 16
STORED = 0
DATE = 1 << 5 | 1  # 1980-01-01
ELSEWHERE, ELSEWHERE_16 = 0xFFFFFFFF, 0xFFFF  # the number is in a zip64 field


class Member(NamedTuple):
    """A member of the zip: its name and contents."""

    name: str
    parts: Sequence[Part]

    @property
    def size(self) -> int:
        """The size in bytes."""
        return sum(map(len, self.parts))


class _Entry(NamedTuple):
    """The data of a member in its header and in the directory: the size in bytes, and the position of the header."""

    name: str
    size: int
    crc: int
    offset: int

    def local(self) -> bytes:
        """The header before the member."""
        name = self.name.encode("ascii")
        fields = (ZIP_VERSION, 0, STORED, 0, DATE, self.crc, ELSEWHERE, ELSEWHERE, len(name), _LOCAL_SIZES.size)
        sizes = _LOCAL_SIZES.pack(1, _LOCAL_SIZES.size - 4, self.size, self.size)
        return _LOCAL.pack(b"PK\3\4", *fields) + name + sizes

    def central(self) -> bytes:
        """The entry of the member in the directory."""
        name = self.name.encode("ascii")
        made_by = UNIX << 8 | ZIP_VERSION
        fields = (made_by, ZIP_VERSION, 0, STORED, 0, DATE, self.crc, ELSEWHERE, ELSEWHERE, len(name))
        rest = (_CENTRAL_SIZES.size, 0, 0, 0, PLAIN_FILE, ELSEWHERE)
        sizes = _CENTRAL_SIZES.pack(1, _CENTRAL_SIZES.size - 4, self.size, self.size, self.offset)
        return _CENTRAL.pack(b"PK\1\2", *fields, *rest) + name + sizes


def _directory(entries: Sequence[_Entry], offset: int) -> bytes:
    """The bytes after the last member, up to the hash at the end."""
    central = b"".join(entry.central() for entry in entries)
    count = len(entries)
    end_64 = (_END_64.size - 12, ZIP_VERSION, ZIP_VERSION, 0, 0, count, count, len(central), offset)
    end = (0, 0, ELSEWHERE_16, ELSEWHERE_16, ELSEWHERE, ELSEWHERE, len(COMMENT) + DIGEST_SIZE)
    locator = _LOCATOR.pack(b"PK\6\7", 0, offset + len(central), 1)
    return central + _END_64.pack(b"PK\6\6", *end_64) + locator + _END.pack(b"PK\5\6", *end) + COMMENT


def member_name(position: int) -> str:
    """The name of member number ``position``."""
    return (MANIFEST, NETWORK)[position] if position < 2 else f"weights/{position - 2:04}.npy"


# ---------------------------------------------------------------------------- writing


def pack(network: bytes, arrays: Sequence[Sequence[Part]]) -> list[Part]:
    """Return the file of a network and its arrays, in pieces.

    Raises:
        ValueError: the network is longer than a plan can hold.
    """
    if len(network) > LARGEST_DOCUMENT:
        size = f"the network takes {len(network)} bytes without its arrays"
        raise ValueError(f"{size}; a plan can hold {LARGEST_DOCUMENT}")
    members = [Member(member_name(number), parts) for number, parts in enumerate([[network], *arrays], 1)]
    return zipped([Member(MANIFEST, [manifest(members)]), *members])


def manifest(members: Sequence[Member]) -> bytes:
    """Return the manifest of the other members."""
    listed = [{"name": member.name, "size": member.size, "sha256": _sha256(member.parts)} for member in members]
    return to_json({"format": FORMAT, "version": VERSION, "netloop": _release(), "members": listed})


def zipped(members: Sequence[Member]) -> list[Part]:
    """Return the zip of some members, in pieces."""
    pieces: list[Part] = []
    entries: list[_Entry] = []
    offset = 0
    for member in members:
        entries.append(_Entry(member.name, member.size, _crc(member.parts), offset))
        written = [entries[-1].local(), *member.parts]
        offset += sum(map(len, written))
        pieces += written
    pieces.append(_directory(entries, offset))
    return [*pieces, _sha256(pieces).encode("ascii")]


def _sha256(parts: Sequence[Part]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _crc(parts: Sequence[Part]) -> int:
    crc = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
    return crc


@cache
def _release() -> str:
    try:
        return metadata.version("netloop")
    except metadata.PackageNotFoundError:
        return "unknown"


# ---------------------------------------------------------------------------- reading


def unpack(data: bytes) -> tuple[bytes, list[memoryview]]:
    """Verify all hashes of a file, and return the network in it and the files of its arrays.

    Raises:
        FileFormatError: the file is damaged, truncated, of a newer version, or not a plan.
    """
    if len(data) < LEAST_PARALLEL:
        _verify(data)
        return _contents(data)
    # each hash takes half a second for a gigabyte, and releases Python's lock
    with ThreadPoolExecutor(1) as thread:
        verified = thread.submit(_verify, data)
        try:
            return _contents(data)
        finally:
            verified.result()  # an error of the whole file replaces one of its parts


def _contents(data: bytes) -> tuple[bytes, list[memoryview]]:
    """Compare the members of a file with its manifest, and return the network in it and the files of its arrays."""
    reader = _ZipReader(data)
    first = next(reader, None)
    listed = _manifest(bytes(_document(first))) if first is not None else []
    members = list(reader)
    reader.expect_directory()
    _compare(listed, members)
    if not members:
        _refuse(f"the plan has no {NETWORK}", MANIFEST)
    return bytes(_document(members[0])), [member.parts[0] for member in members[1:]]  # pyright: ignore[reportReturnType]


def draw(take: Callable[[int], bytes]) -> bytes:
    """Return the bytes of a file, not verified, from a function that returns the next bytes of a given number.

    The manifest comes first and has the sizes of the rest, so that the function is never asked for a byte too many.

    Raises:
        FileFormatError: the file does not start like a plan, or does not fit into memory.
    """
    opening = take(len(_Entry(MANIFEST, 0, 0, 0).local()))
    size: int = _LOCAL_SIZES.unpack_from(opening, len(opening) - _LOCAL_SIZES.size)[2]
    if opening[:4] != b"PK\3\4" or not 0 < size <= LARGEST_DOCUMENT:
        _refuse("the file does not start like a plan")
    document = take(size)
    entries = [_Entry(MANIFEST, size, 0, 0)]
    for node in _manifest(document):
        listed = node.fields(("name", "size", "sha256"))["size"].whole(0)
        entries.append(_Entry(member_name(len(entries)), listed, 0, 0))
    length = sum(len(entry.local()) + entry.size for entry in entries) + len(_directory(entries, 0)) + DIGEST_SIZE
    with memory_errors_as(FileFormatError, MANIFEST):
        require_memory(length, "the plan")
        return opening + document + take(length - len(opening) - size)


def _verify(data: bytes) -> None:
    """Compare the hash at the end of a file with its bytes."""
    end = len(data) - DIGEST_SIZE
    if end < len(COMMENT) or data[end - len(COMMENT) : end] != COMMENT:
        why = "it is not a plan, was truncated, or something follows it"
        fix = next((fix for opening, fix in OTHERS.items() if data.startswith(opening)), PLAN_FIX)
        _refuse("the file does not end like a plan", why=why, fix=fix)
    if _sha256([memoryview(data)[:end]]).encode("ascii") != data[end:]:
        _refuse("the SHA-256 at the end of the file does not match its contents", why="the file was damaged")


class _ZipReader(Iterator[Member]):
    """Iterates over the members of a zip, from its first byte."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)[:-DIGEST_SIZE]
        self._entries: list[_Entry] = []
        self._at = 0

    def __next__(self) -> Member:
        if bytes(self._data[self._at : self._at + 4]) != b"PK\3\4":
            raise StopIteration
        name, size, start = self._sizes()
        content = self._data[start : start + size]
        entry = _Entry(name, size, zlib.crc32(content), self._at)
        if bytes(self._data[self._at : start]) != entry.local():
            self._refuse(f"the header of {name!r} is not that of a plan, or its CRC-32 is wrong")
        self._entries.append(entry)
        self._at = start + size
        return Member(name, [content])

    def _sizes(self) -> tuple[str, int, int]:
        """The name and size in the next header, and the position of the member's first byte."""
        expected = member_name(len(self._entries))
        start = self._at + _LOCAL.size + len(expected) + _LOCAL_SIZES.size
        if start > len(self._data):
            self._refuse("the zip ends in a header")
        _, _, _, method, *_, name_size, _ = _LOCAL.unpack_from(self._data, self._at)
        name = bytes(self._data[self._at + _LOCAL.size :][: min(name_size, LONGEST_NAME)])
        if name != expected.encode("ascii"):
            self._refuse(f"member {len(self._entries)} is named {name!r}, and should be {expected!r}")
        if method != STORED:
            self._refuse(f"{expected!r} is compressed", "the members of a plan are not")
        size = _LOCAL_SIZES.unpack_from(self._data, start - _LOCAL_SIZES.size)[2]
        if size > len(self._data) - start:
            self._refuse(f"{expected!r} needs {size} bytes, and {len(self._data) - start} are left")
        return expected, size, start

    def expect_directory(self) -> None:
        """Check that the rest of the file is the directory of the members."""
        if bytes(self._data[self._at :]) != _directory(self._entries, self._at):
            self._refuse("the bytes after the last member are not the directory of the members")

    def _refuse(self, what: str, why: str = "") -> NoReturn:
        _refuse(what, f"byte {self._at}", why)


def _document(member: Member) -> Part:
    (content,) = member.parts
    if len(content) > LARGEST_DOCUMENT:
        _refuse(f"{member.name} has {len(content)} bytes", member.name, f"it can have at most {LARGEST_DOCUMENT}")
    return content


def _manifest(data: bytes) -> list[JsonValue]:
    """Return the members that a manifest lists, if its version is known here."""
    document = from_json(data, MANIFEST)
    others = document.value if isinstance(document.value, dict) else ()
    about = document.fields({"format", "version", "netloop"}, others)
    if about["format"].value != FORMAT:
        about["format"].refuse(f"the format should be {FORMAT!r}")
    version, release = about["version"].whole(1), about["netloop"].text()
    if version > VERSION:
        what = f"the plan is of version {version} of the format, written by netloop {release[:LONGEST_NAME]}"
        fix = "update netloop, or write the plan with this version of netloop"
        finding = Finding("NL712", what, MANIFEST, f"this is netloop {_release()}, which reads up to {VERSION}", fix)
        raise FileFormatError(finding)
    return document.fields(("format", "version", "netloop", "members"))["members"].items()


def _compare(listed: Sequence[JsonValue], members: Sequence[Member]) -> None:
    """Check that the members of a file are those that its manifest lists."""
    if len(listed) != len(members):
        _refuse(f"the manifest lists {len(listed)} members, and there are {len(members)}", MANIFEST)
    for node, member in zip(listed, members, strict=True):
        fields = node.fields(("name", "size", "sha256"))
        has: dict[str, Any] = {"name": member.name, "size": member.size, "sha256": _sha256(member.parts)}
        for key, value in has.items():
            if fields[key].value != value:
                fields[key].refuse(f"the {key} of {member.name!r} is not the one in the manifest")


PLAN_FIX = "get the plan again, or write it with netloop.plan.save"
OTHERS = {
    b"ftrt": "build it again here: this is a plan of TensorRT, which is machine code of one version and GPU",
    b"\x08": "if this is a model of ONNX, parse it with OnnxParser(network, logger).parse(data), and build a plan",
}
"""The fixes for files that users take for plans, by the bytes with which those begin."""


def _refuse(what: str, where: str = "", why: str = "", fix: str = PLAN_FIX) -> NoReturn:
    why = why or "the file is damaged, or not a plan that netloop wrote"
    raise FileFormatError(Finding("NL711", what, where, why, fix))
