"""The file that a plan is: a zip of one exact form.

The members come in this order, stored and not compressed::

    manifest.json       {"format":"netloop plan","version":1,"netloop":"0.1.0","members":[{"name","size","sha256"},...]}
    network.json        the network
    weights/0000.npy    its arrays
    ...

The comment of the zip, and so the end of the file, is ``netloop plan, SHA-256 `` and the hash of all bytes before the
hash, as 64 hexadecimal digits. It is verified first, so that no damage, wherever it is, reaches a decoder. After that a
plan can still be made by somebody who means ill, and is taken only if it is, to the byte, the zip that would be written
for its members: no other names, no compression, nothing before, between or behind. So every zip tool sees the same
members as netloop. Sizes and offsets have always 64 bits (zip64), and dates are 1980-01-01, so that the same members
give the same bytes. In every version of the format the manifest is the first member, and the comment has this form.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any, NamedTuple, NoReturn

from netloop.diagnostics import FileFormatError, Finding
from netloop.plan.document import Node, from_json, to_json

Part = bytes | memoryview

FORMAT = "netloop plan"
VERSION = 1
MANIFEST, NETWORK = "manifest.json", "network.json"

LARGEST_DOCUMENT = 1 << 28
"""No manifest and no network is longer, in bytes; arrays have no limit but the length of the file."""

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
    """A member as it is written: its name, and what it holds."""

    name: str
    parts: Sequence[Part]

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return sum(map(len, self.parts))


@dataclass(frozen=True)
class _Entry:
    """What the zip tells of a member.

    Attributes:
        name: its name.
        size: the number of its bytes.
        crc: their CRC-32.
        offset: where its header is.
    """

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
        """The entry in the directory."""
        name = self.name.encode("ascii")
        made_by = UNIX << 8 | ZIP_VERSION
        fields = (made_by, ZIP_VERSION, 0, STORED, 0, DATE, self.crc, ELSEWHERE, ELSEWHERE, len(name))
        rest = (_CENTRAL_SIZES.size, 0, 0, 0, PLAIN_FILE, ELSEWHERE)
        sizes = _CENTRAL_SIZES.pack(1, _CENTRAL_SIZES.size - 4, self.size, self.size, self.offset)
        return _CENTRAL.pack(b"PK\1\2", *fields, *rest) + name + sizes


def _directory(entries: Sequence[_Entry], offset: int) -> bytes:
    """What follows the last member, up to the hash at the end."""
    central = b"".join(each.central() for each in entries)
    count = len(entries)
    end_64 = (_END_64.size - 12, ZIP_VERSION, ZIP_VERSION, 0, 0, count, count, len(central), offset)
    end = (0, 0, ELSEWHERE_16, ELSEWHERE_16, ELSEWHERE, ELSEWHERE, len(COMMENT) + DIGEST_SIZE)
    locator = _LOCATOR.pack(b"PK\6\7", 0, offset + len(central), 1)
    return central + _END_64.pack(b"PK\6\6", *end_64) + locator + _END.pack(b"PK\5\6", *end) + COMMENT


def member_name(position: int) -> str:
    """What member number ``position`` is called."""
    return (MANIFEST, NETWORK)[position] if position < 2 else f"weights/{position - 2:04}.npy"


# ---------------------------------------------------------------------------- writing


def pack(network: bytes, arrays: Sequence[Sequence[Part]]) -> list[Part]:
    """The file of a network and its arrays, in pieces.

    Raises:
        ValueError: the network is longer than a plan can hold.
    """
    if len(network) > LARGEST_DOCUMENT:
        raise ValueError(f"the network takes {len(network)} bytes without its arrays; a plan has {LARGEST_DOCUMENT}")
    members = [Member(member_name(number), parts) for number, parts in enumerate([[network], *arrays], 1)]
    return zipped([Member(MANIFEST, [manifest(members)]), *members])


def manifest(members: Sequence[Member]) -> bytes:
    """The manifest of the other members."""
    listed = [{"name": each.name, "size": each.size, "sha256": _sha256(each.parts)} for each in members]
    return to_json({"format": FORMAT, "version": VERSION, "netloop": _release(), "members": listed})


def zipped(members: Sequence[Member]) -> list[Part]:
    """The zip of some members, in pieces."""
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
    for each in parts:
        digest.update(each)
    return digest.hexdigest()


def _crc(parts: Sequence[Part]) -> int:
    crc = 0
    for each in parts:
        crc = zlib.crc32(each, crc)
    return crc


@cache
def _release() -> str:
    try:
        return metadata.version("netloop")
    except metadata.PackageNotFoundError:
        return "unknown"


# ---------------------------------------------------------------------------- reading


def unpack(data: bytes) -> tuple[bytes, list[memoryview]]:
    """The network in a file, and the files of its arrays, all hashes verified.

    Raises:
        FileFormatError: the file is damaged, cut short, of a newer version, or no plan.
    """
    _verify(data)
    walk = _Walk(data)
    first = next(walk, None)
    listed = _manifest(bytes(_document(first))) if first is not None else []
    members = list(walk)
    walk.expect_directory()
    _compare(listed, members)
    if not members:
        _refuse(f"the plan has no {NETWORK}", MANIFEST)
    return bytes(_document(members[0])), [member.parts[0] for member in members[1:]]  # pyright: ignore[reportReturnType]


def draw(take: Callable[[int], bytes]) -> bytes:
    """The bytes of a file, not verified, from a function that gives the next so many of them.

    The manifest comes first and tells the sizes of the rest, so that not a byte too many is asked for.

    Raises:
        FileFormatError: it does not begin as plans do.
    """
    opening = take(len(_Entry(MANIFEST, 0, 0, 0).local()))
    size: int = _LOCAL_SIZES.unpack_from(opening, len(opening) - _LOCAL_SIZES.size)[2]
    if opening[:4] != b"PK\3\4" or not 0 < size <= LARGEST_DOCUMENT:
        _refuse("the file does not begin as plans do")
    document = take(size)
    entries = [_Entry(MANIFEST, size, 0, 0)]
    for node in _manifest(document):
        told = node.fields(("name", "size", "sha256"))["size"].whole(0)
        entries.append(_Entry(member_name(len(entries)), told, 0, 0))
    length = sum(len(each.local()) + each.size for each in entries) + len(_directory(entries, 0)) + DIGEST_SIZE
    return opening + document + take(length - len(opening) - size)


def _verify(data: bytes) -> None:
    """Compare the hash at the end of a file with its bytes."""
    end = len(data) - DIGEST_SIZE
    if end < len(COMMENT) or data[end - len(COMMENT) : end] != COMMENT:
        _refuse("the file does not end as plans do", why="it is no plan, was cut short, or something follows it")
    if _sha256([memoryview(data)[:end]]).encode("ascii") != data[end:]:
        _refuse("the file does not have the SHA-256 that it ends with", why="it was damaged")


class _Walk(Iterator[Member]):
    """The members of a zip, one after the other from its first byte."""

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
            self._refuse(f"the header of {name!r} is not as plans have it, or its CRC-32 is false")
        self._entries.append(entry)
        self._at = start + size
        return Member(name, [content])

    def _sizes(self) -> tuple[str, int, int]:
        """The name and size that the next header tells, and where the member begins."""
        expected = member_name(len(self._entries))
        start = self._at + _LOCAL.size + len(expected) + _LOCAL_SIZES.size
        if start > len(self._data):
            self._refuse("the zip ends in a header")
        _, _, _, method, *_, name_size, _ = _LOCAL.unpack_from(self._data, self._at)
        name = bytes(self._data[self._at + _LOCAL.size :][: min(name_size, LONGEST_NAME)])
        if name != expected.encode("ascii"):
            self._refuse(f"member {len(self._entries)} is called {name!r}, and should be {expected!r}")
        if method != STORED:
            self._refuse(f"{expected!r} is compressed", "nothing in a plan is")
        size = _LOCAL_SIZES.unpack_from(self._data, start - _LOCAL_SIZES.size)[2]
        if size > len(self._data) - start:
            self._refuse(f"{expected!r} should have {size} bytes, and {len(self._data) - start} are left")
        return expected, size, start

    def expect_directory(self) -> None:
        """Complain unless the directory of the members comes next, and nothing else."""
        if bytes(self._data[self._at :]) != _directory(self._entries, self._at):
            self._refuse("after the last member should be the directory of the members, and nothing else")

    def _refuse(self, what: str, why: str = "") -> NoReturn:
        _refuse(what, f"byte {self._at}", why)


def _document(member: Member) -> Part:
    (content,) = member.parts
    if len(content) > LARGEST_DOCUMENT:
        _refuse(f"{member.name} has {len(content)} bytes", member.name, f"it has {LARGEST_DOCUMENT} at most")
    return content


def _manifest(data: bytes) -> list[Node]:
    """The members that a manifest lists, if its version is known here."""
    document = from_json(data, MANIFEST)
    about = document.fields(
        {"format", "version", "netloop"}, document.value if isinstance(document.value, dict) else ()
    )
    if about["format"].value != FORMAT:
        about["format"].refuse(f"the format should be {FORMAT!r}")
    version, release = about["version"].whole(1), about["netloop"].text()
    if version > VERSION:
        what = f"the plan is of version {version} of the format, written by netloop {release[:LONGEST_NAME]}"
        fix = "update netloop, or write the plan with this netloop"
        finding = Finding("NL712", what, MANIFEST, f"this is netloop {_release()}, which reads up to {VERSION}", fix)
        raise FileFormatError(finding)
    return document.fields(("format", "version", "netloop", "members"))["members"].items()


def _compare(listed: Sequence[Node], members: Sequence[Member]) -> None:
    """Compare the members of a file with those that its manifest lists."""
    if len(listed) != len(members):
        _refuse(f"the manifest lists {len(listed)} members, and there are {len(members)}", MANIFEST)
    for node, member in zip(listed, members, strict=True):
        told = node.fields(("name", "size", "sha256"))
        has: dict[str, Any] = {"name": member.name, "size": member.size, "sha256": _sha256(member.parts)}
        for key, value in has.items():
            if told[key].value != value:
                told[key].refuse(f"the {key} of {member.name!r} is not what the manifest tells")


def _refuse(what: str, where: str = "", why: str = "") -> NoReturn:
    why = why or "the file is damaged, or no plan that netloop wrote"
    raise FileFormatError(Finding("NL711", what, where, why, "get or write the plan anew, as netloop.plan.save does"))
