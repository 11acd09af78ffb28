"""Objects whose attributes are known: each is checked when it is set, and there are no others."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from netloop.diagnostics import did_you_mean
from netloop.removed_names import unknown

Check = Callable[[str, Any], None]
"""Complains about a value that the attribute of a name cannot have."""


class Settings:
    """An object with the attributes that its class knows, and no others.

    What the class annotates and gives a default can be set, to what ``CHECKS`` lets pass, or else to what has the type
    of the default; where that is None, to anything. What it annotates without a default is fixed.
    """

    CHECKS: ClassVar[dict[str, Check]] = {}
    """The checks of attributes of which the type says too little."""
    defaults: ClassVar[dict[str, Any]] = {}
    _checks: ClassVar[dict[str, Callable[[Any], None]]] = {}

    def __init_subclass__(cls) -> None:
        settable = (name for name in inspect.get_annotations(cls) if name in vars(cls) and not name.isupper())
        own = {name: vars(cls)[name] for name in settable}
        cls.defaults = {**cls.defaults, **own}
        cls._checks = {**cls._checks, **{name: cls._check_of(name, default) for name, default in own.items()}}

    @classmethod
    def _check_of(cls, name: str, default: Any) -> Callable[[Any], None]:
        label, check = f"{cls.__name__}.{name}", cls.CHECKS.get(name) or of_type(default)
        return lambda value: check(label, value)

    def changed(self) -> dict[str, Any]:
        """The attributes that are not at their defaults."""
        return {name: value for name, default in self.defaults.items() if (value := getattr(self, name)) != default}

    if not TYPE_CHECKING:  # or every name would be an attribute

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(unknown(type(self).__name__, name), name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        check = self._checks.get(name)
        if check is not None:
            check(value)
            self.__dict__[name] = value
        elif name.startswith("_") or getattr(getattr(type(self), name, None), "fset", None):
            object.__setattr__(self, name, value)
        elif name in self.__dict__ or hasattr(type(self), name):
            raise AttributeError(f"{name!r} of {type(self).__name__} cannot be set")
        else:
            raise AttributeError(unknown(type(self).__name__, name, " to set", did_you_mean(name, self.defaults)))


def of_type(default: Any) -> Check:
    """Takes what has the type of a default; anything if that is None."""
    if isinstance(default, str):
        return text
    wanted = (int, float) if isinstance(default, float) else type(default)

    def check(name: str, value: Any) -> None:
        if not isinstance(value, wanted):
            raise TypeError(f"{name} is {type(default).__name__}, not {value!r}")

    return _anything if default is None else check


def text(name: str, value: Any) -> None:
    """Takes strings that can be written to a file."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {value!r}")
    if not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value):
        raise ValueError(f"{name} {value!r} has half a character in it")


def _anything(name: str, value: Any) -> None:
    pass


def none_or(cls: type) -> Check:
    """Takes None, and what is a ``cls``."""

    def check(name: str, value: Any) -> None:
        if value is not None and not isinstance(value, cls):
            raise TypeError(f"{name} is None or {cls.__name__}, not {value!r}")

    return check


def whole(least: int, most: int | None = None) -> Check:
    """Takes whole numbers from ``least`` to ``most``."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} is int, not {value!r}")
        if value < least or (most is not None and value > most):
            wanted = f"at least {least}" if most is None else f"{least} to {most}"
            raise ValueError(f"{name} is {wanted}, not {value}")

    return check
