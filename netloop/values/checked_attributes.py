"""Base classes of objects with TensorRT's interface: checked attributes, and support for ``with``."""

import inspect
import math
import operator
import re
from collections.abc import Callable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from netloop.values.diagnostics import did_you_mean, quoted
from netloop.values.removed_names import unknown

T = TypeVar("T")

Check = Callable[[str, Any], Any]
"""Returns what to keep of a value for the attribute of a name; raises an error if the value is invalid."""

LONGEST = 1 << 22
"""The most seconds to wait, 48 days: threads on Windows count milliseconds in 32 bits."""


INNER_NAME = re.compile(r"_[^_]|[A-Z_]+$")
"""The names of this class and others that say how objects work, and which ``dir`` leaves out."""


class CheckedAttributes:
    """An object with checked attributes.

    An attribute that the class annotates and gives a default can be set: to a value that its check in ``CHECKS``
    accepts, or without one to a value of the type of the default, or to anything where the default is None. An
    attribute that is annotated without a default is fixed.
    """

    CHECKS: ClassVar[dict[str, Check]] = {}
    """The checks of attributes for which the type of the default is not enough."""
    UNLISTED: ClassVar[frozenset[str]] = frozenset({"changed", "defaults"})
    """The other names that ``dir`` leaves out: tools for TensorRT call each method that it lists."""
    defaults: ClassVar[dict[str, Any]] = {}
    _checks: ClassVar[dict[str, Check]] = {}

    def __init_subclass__(cls) -> None:
        settable = (name for name in inspect.get_annotations(cls) if name in vars(cls) and not name.isupper())
        own = {name: vars(cls)[name] for name in settable}
        cls.defaults = {**cls.defaults, **own}
        checks = {name: cls.CHECKS.get(name) or of_type(default) for name, default in own.items()}
        cls._checks = {**cls._checks, **checks}

    def changed(self) -> dict[str, Any]:
        """Return the attributes that are not at their defaults."""
        return {name: value for name, default in self.defaults.items() if (value := getattr(self, name)) != default}

    def _set(self, name: str, value: Any) -> None:
        check = self._checks.get(name)
        if check is not None:
            self.__dict__[name] = check(f"{type(self).__name__}.{name}", value)
        elif name.startswith("_") or getattr(getattr(type(self), name, None), "fset", None):
            object.__setattr__(self, name, value)
        elif name in self.__dict__ or hasattr(type(self), name):
            raise AttributeError(f"{name!r} of {type(self).__name__} cannot be set")
        else:
            raise AttributeError(unknown(type(self).__name__, name, " to set", did_you_mean(name, self.defaults)))

    def __dir__(self) -> list[str]:
        """The names that TensorRT's objects have, for completion and for tools that list them."""
        unlisted = frozenset().union(*(getattr(cls, "UNLISTED", ()) for cls in type(self).__mro__))
        return sorted(name for name in object.__dir__(self) if name not in unlisted and not INNER_NAME.match(name))

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute
        __setattr__ = _set

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(unknown(type(self).__name__, name), name=name, obj=self)


class WithStatement:
    """An object that a ``with`` statement returns, as in scripts for TensorRT 10; its end needs no cleanup.

    Some scripts call ``__del__`` themselves, which TensorRT's objects of these classes have.
    """

    def __del__(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def of_type(default: Any) -> Check:
    """Return a check for values of the type of a default; for any value if that is None."""
    if default is None:
        return lambda name, value: value
    if isinstance(default, str):
        return text
    if type(default) is int:
        return integer
    wanted = Real if isinstance(default, float) else type(default)

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, wanted):
            raise TypeError(f"{name} must be {type(default).__name__}, not {value!r}")
        return float(value) if wanted is Real else value

    return check


def integer(name: str, value: Any) -> int:
    """Return ``value`` as an int: a number, or a member of an enumeration, as TensorRT's bindings take both.

    Raises:
        TypeError: it is neither.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {value!r}") from None


def item(items: Sequence[T], index: int, kind: str, owner: str) -> T:
    """An item of a sequence, such as the profiles of an engine.

    Raises:
        IndexError: there is none of this index.
    """
    try:
        return items[index]
    except IndexError:
        raise IndexError(f"there is no {kind} {index}: {owner} has {len(items)}, counted from 0") from None


def text(name: str, value: Any) -> str:
    """Return ``value``, which must be a string that can be written to a file.

    Raises:
        TypeError: it is not a string.
        ValueError: it has a lone surrogate.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {quoted(value)}")
    if not is_encodable(value):
        raise ValueError(f"{name} {quoted(value)} has half of a surrogate pair in it")
    return value


def is_encodable(value: str) -> bool:
    """Whether UTF-8 can encode a string: it has no half of a surrogate pair."""
    return value.isascii() or not any("\ud800" <= element <= "\udfff" for element in value)


def none_or(cls: type) -> Check:
    """Return a check for None and instances of ``cls``."""

    def check(name: str, value: Any) -> Any:
        if value is not None and not isinstance(value, cls):
            raise TypeError(f"{name} must be None or {cls.__name__}, not {value!r}")
        return value

    return check


def whole(least: int, most: int | None = None, *, clips: bool = False) -> Check:
    """Return a check for ints from ``least`` to ``most``, and members of enumerations with these numbers.

    With ``clips``, a larger number means ``most``.
    """

    def check(name: str, value: Any) -> int:
        if isinstance(value, bool):
            raise TypeError(f"{name} must be an int, not {value!r}")
        number = integer(name, value)
        if clips and most is not None:
            number = min(number, most)
        if number < least or (most is not None and number > most):
            wanted = f"at least {least}" if most is None else f"{least} to {most}"
            raise ValueError(f"{name} must be {wanted}, not {number}")
        return number

    return check


def seconds(*, positive: bool = False, endless: bool = False) -> Check:
    """Return a check for numbers of seconds that a thread can wait, up to ``LONGEST``.

    Args:
        positive: whether 0 is refused.
        endless: whether infinity is accepted, for no limit.
    """

    def check(name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{name} must be a number, not {type(value).__name__}")
        in_range = 0 < value <= LONGEST if positive else 0 <= value <= LONGEST
        if not (in_range or (endless and value == math.inf)):
            least, none = "positive" if positive else "at least 0", ", or inf for no limit" * endless
            raise ValueError(
                f"{name} must be {least} and at most {LONGEST} seconds (48 days){none}, not {quoted(value)}"
            )
        return float(value)

    return check
