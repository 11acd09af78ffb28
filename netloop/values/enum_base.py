"""The base class of TensorRT's enumerations."""

from enum import Enum, EnumMeta
from typing import TYPE_CHECKING, Any

from netloop.values.removed_names import removal


class TensorRTEnumType(EnumMeta):
    """The type of enumerations that list their members where one is misspelt."""

    if not TYPE_CHECKING:  # a type checker would take every name for a member

        def __getattr__(cls, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            if name in cls.__members__:  # until Python 3.12, members are not attributes of the class
                return cls.__members__[name]
            known, hint = ", ".join(cls.__members__), removal(cls.__name__, name)
            what = f"{cls.__name__} has no member {name!r}; {hint or f'it has {known}'}"
            raise AttributeError(what, name=name, obj=cls)


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
