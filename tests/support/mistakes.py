"""Mistakes of beginners, each as a function: it raises an error, or returns a network that has findings.

What netloop says about each is in ``tests/data/messages.txt``, which ``python -m tests.support.mistakes`` writes anew.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from linecache import getline
from pathlib import Path
from types import ModuleType
from typing import Any

import netloop as trt
from tests.support import mistakes_in_calls, mistakes_in_loops, mistakes_in_networks, mistakes_in_python

MODULES = (mistakes_in_loops, mistakes_in_networks, mistakes_in_calls, mistakes_in_python)
MESSAGES = Path(__file__).parents[1] / "data" / "messages.txt"


def mistakes() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The names of the mistakes and their functions, in the order of the files."""
    for module in MODULES:
        yield from ((name, attribute) for name, attribute in vars(module).items() if is_mistake(module, attribute))


def is_mistake(module: ModuleType, found: Any) -> bool:
    """Whether a value of a module is one of its mistakes."""
    return inspect.isfunction(found) and found.__module__ == module.__name__ and found.__doc__ is not None


def message_of(mistake: Callable[[], Any]) -> str:
    """What netloop says about a mistake, with the code of a line instead of its number."""
    try:
        # on a stack of its own, which has no caller of this function
        with ThreadPoolExecutor(1) as thread:
            made = thread.submit(mistake).result()
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    else:
        assert isinstance(made, trt.INetworkDefinition), f"{mistake.__name__} is not noticed"
        said = "\n".join(map(str, trt.check(made)))
    for module in MODULES:
        file = re.escape(str(module.__file__))
        said = re.sub(f"{file}:([0-9]+)", partial(code_of_line, str(module.__file__)), said)
    return said


def code_of_line(file: str, line: re.Match[str]) -> str:
    """The code at a location, in guillemets."""
    return f"«{getline(file, int(line[1])).strip()}»"


def messages() -> str:
    """All mistakes with their messages."""
    parts = [f"== {inspect.getdoc(other)}\n\n{message_of(other)}\n" for _, other in mistakes()]
    return "\n".join(parts)


if __name__ == "__main__":
    MESSAGES.write_text(messages(), encoding="utf-8")
