"""The base class of TensorRT's enumerations."""

from collections.abc import Iterator, Mapping
from enum import Enum, EnumMeta
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from netloop.values.removed_names import removal


class TensorRTEnumType(EnumMeta):
    """The type of enumerations that list their members where one is misspelt.

    Members whose numbers are at least ``OWN`` of their enumeration, which only netloop has, are not listed: tools have
    tables with an entry for each member that TensorRT lists.
    """

    if not TYPE_CHECKING:  # a type checker would take every name for a member

        @property
        def __members__(cls) -> Mapping[str, Any]:
            listed = {name: member for name, member in cls._member_map_.items() if member.value < cls._own()}
            return MappingProxyType(listed)

        def _own(cls) -> float:
            return vars(cls).get("OWN", inf)

        def __iter__(cls) -> Iterator[Any]:
            return (member for member in super().__iter__() if member.value < cls._own())

        def __len__(cls) -> int:
            return sum(1 for _ in cls)

        def __getattr__(cls, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            if name in cls._member_map_:  # until Python 3.12, members are not attributes of the class
                return cls._member_map_[name]
            known, hint = ", ".join(cls.__members__), removal(cls.__name__, name)
            what = f"{cls.__name__} has no member {name!r}; {hint or f'it has {known}'}"
            raise AttributeError(what, name=name, obj=cls)


TensorRTEnumType.__name__ = "pybind11_type"
"""The name in the bindings, by which tools know what converts to a number."""


class TensorRTEnum(Enum, metaclass=TensorRTEnumType):
    """An enumeration as in TensorRT's bindings: a member converts to its number, but is not a number."""

    def __init_subclass__(cls) -> None:
        # the bindings' table of members with their documentation, by which tools know their enumerations
        setattr(cls, "__entries", {name: (member, None) for name, member in cls.__members__.items()})

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"
