"""Names of inputs, weights and outputs: the paths of leaves in pytrees."""

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax

OUTPUT = "output"
"""The name of a result that is a single array."""


def argument_names(function: Callable[..., Any], count: int, names: Sequence[str] | None) -> list[str]:
    """The names of ``count`` positional arguments: ``names``, or those of the parameters.

    Raises:
        TypeError: another number of names is given.
    """
    if names is not None:
        listed: list[Any] = [names] if isinstance(names, str) else [*names]
        if len(listed) != count or not all(isinstance(value, str) for value in listed) or len({*listed}) != count:
            raise TypeError(f"names are {count} different strings, one for each argument, not {names!r}")
        return listed
    texts: list[str] = []
    for parameter in _parameters(function):
        if parameter.kind is parameter.VAR_POSITIONAL:
            texts += [f"{parameter.name}{index}" for index in range(count - len(texts))]
        elif parameter.kind is not parameter.KEYWORD_ONLY and parameter.kind is not parameter.VAR_KEYWORD:
            texts.append(parameter.name)
    return [*texts, *(f"input{index}" for index in range(len(texts), count))][:count]


def check_examples(function: Callable[..., Any], examples: Sequence[Any]) -> None:
    """Check that there is an example of each argument, and that its leaves are arrays.

    Raises:
        TypeError: there is not, or one is none.
    """
    why = "examples are arrays, numbers, jax.ShapeDtypeStruct((2, 3), 'float32'), or pytrees of these"
    try:
        inspect.signature(function).bind(*examples)
    except TypeError as error:
        raise TypeError(f"from_jax takes an example of each argument of the function: {error}; {why}") from None
    except ValueError:  # the signature of a function written in C is unknown
        pass
    for leaf in jax.tree.leaves(examples):
        if not hasattr(leaf, "shape") and not isinstance(leaf, bool | int | float | complex):
            raise TypeError(f"{leaf!r} is no example of an argument: {why}")


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # of a function written in C
        return []


def leaf_names(arguments: Sequence[str], examples: Sequence[Any]) -> list[tuple[str, str]]:
    """The argument of each leaf, and the name of the leaf: ``params``, ``params.layers.0.w``."""
    return [
        (argument, ".".join([argument, *_words(path)]))
        for argument, example in zip(arguments, examples, strict=True)
        for path, _ in jax.tree_util.tree_leaves_with_path(example)
    ]


def result_names(result: Any, taken: Sequence[str]) -> list[str]:
    """The names of the leaves of a result; those of inputs, and numbers alone, have ``output`` in front."""
    names = [".".join(_words(path)) for path, _ in jax.tree_util.tree_leaves_with_path(result)]
    named = [name if name and not name[0].isdigit() and name not in taken else _under_output(name) for name in names]
    twice = {name for name, count in Counter(named).items() if count > 1}
    return [f"{name}.{index}" if name in twice else name for index, name in enumerate(named)]


def _under_output(name: str) -> str:
    return f"{OUTPUT}.{name}" if name else OUTPUT


def _words(path: Sequence[Any]) -> list[str]:
    """The keys of a path in a pytree, each without its brackets and quotes."""
    return [jax.tree_util.keystr((part,), simple=True) for part in path]
