"""Objects whose attributes are recorded: each of a type, and no others."""

from __future__ import annotations

from typing import Any, ClassVar

from netloop.diagnostics import did_you_mean


class Settings:
    """An object with the attributes that its class annotates and gives defaults, and no others.

    Setting one checks that the value has the type of the default; where that is None, any will do.
    """

    defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        cls.defaults = {name: vars(cls)[name] for name in cls.__annotations__ if not name.isupper()}

    def changed(self) -> dict[str, Any]:
        """The attributes that are not at their defaults."""
        return {name: value for name, default in self.defaults.items() if (value := getattr(self, name)) != default}

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        if name not in self.defaults:
            hint = did_you_mean(name, self.defaults)
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r} to set{hint and f'; {hint}'}")
        default = self.defaults[name]
        wanted = (int, float) if isinstance(default, float) else type(default)
        if default is not None and not isinstance(value, wanted):
            raise TypeError(f"{type(self).__name__}.{name} is {type(default).__name__}, not {value!r}")
        vars(self)[name] = value
