"""The importer of jaxprs: JAX's typed programs, equation by equation, to layers."""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from netloop.formats.from_jax.call import Call
from netloop.formats.from_jax.element_types import element_type, has_parts, is_complex, tensor_shape
from netloop.formats.from_jax.facts import Facts
from netloop.formats.from_jax.implementations import implementation_of
from netloop.formats.from_jax.lengths import declared_shape
from netloop.formats.from_jax.liveness import live_equations
from netloop.formats.from_jax.places import OF_JAX, scope_name, source_location
from netloop.formats.from_jax.rule_table import BROADCASTING, COMPLEX, UNIFORM, Outputs
from netloop.formats.from_jax.rules import TABLE
from netloop.formats.shared.import_errors import FAULT
from netloop.formats.shared.own_operators import OwnOperator, outputs_of_own
from netloop.model.graph.call_site import importing
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, LayerError, ModelError, NetloopError, NetworkError, reason, require
from netloop.values.types import agree

Values = dict[Any, ITensor]
"""The tensors of variables."""


class JaxprImporter:
    """Adds jaxprs to a network.

    ``rules`` are the functions that the caller brings along for primitives, by name.

    Attributes:
        facts: what is known about the tensors of the network.
    """

    def __init__(self, network: INetworkDefinition, rules: Mapping[str, OwnOperator]) -> None:
        self.facts = Facts(network)
        self._network = network
        self._rules = rules
        self._scopes: list[str] = []
        self._place = OF_JAX
        self._names: dict[str, int] = {}

    # ------------------------------------------------------------------ jaxprs

    def inline(self, jaxpr: ClosedJaxpr | Jaxpr, operands: Sequence[ITensor]) -> list[ITensor]:
        """Add the equations of a jaxpr to the network; return its results, which may be smaller than their shapes."""
        consts = jaxpr.consts if isinstance(jaxpr, ClosedJaxpr) else ()
        inner = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
        values: Values = {}
        for variable, value in zip(inner.constvars, consts, strict=True):
            values[variable] = value if isinstance(value, ITensor) else self.facts.constant(value, variable.aval)
        values.update(zip(inner.invars, operands, strict=True))
        equations = live_equations(inner)
        atoms = [variable for equation in equations for variable in equation.invars] + inner.outvars
        reads = Counter(atom for atom in atoms if isinstance(atom, Var))
        for equation in equations:
            with self._at(equation):
                self._add(equation, values, reads)
        return [self._read(variable, values) for variable in inner.outvars]

    def _read(self, atom: Var | Literal, values: Values) -> ITensor:
        return self.facts.constant(atom.val, atom.aval) if isinstance(atom, Literal) else values[atom]

    def _add(self, equation: JaxprEqn, values: Values, reads: Counter[Any]) -> None:
        name = equation.primitive.name
        operands = [self._read(variable, values) for variable in equation.invars]
        if name in UNIFORM and operands[0].type.rank == 0 and not has_parts(equation.outvars[0].aval):
            tensors: Outputs = [operands[0]] * len(equation.outvars)
        else:
            tensors = self._outputs(equation, operands, reads)
        outputs = [tensors] if isinstance(tensors, ITensor) else [*tensors]
        assert len(outputs) == len(equation.outvars), f"{name} has {len(outputs)} results"
        for variable, tensor in zip(equation.outvars, outputs, strict=True):
            wanted = element_type(variable.aval)
            assert tensor.type.dtype == wanted, f"a result of {name} is {tensor.type}, and not {wanted}"
            values[variable] = tensor
        if outputs:
            self.facts.enter_range(equation, operands, outputs[0])

    def _outputs(self, equation: JaxprEqn, operands: list[ITensor], reads: Counter[Any]) -> Outputs:
        name = equation.primitive.name
        own = self._rules.get(name)
        atoms = (*equation.invars, *equation.outvars)
        special = COMPLEX.find(name) if any(is_complex(atom.aval) for atom in atoms) else None
        if own is not None or special is not None or name not in BROADCASTING:
            operands = [
                self.facts.whole(tensor, atom.aval) for tensor, atom in zip(operands, equation.invars, strict=True)
            ]
        if own is not None:
            return _as_wanted(outputs_of_own(own, name, self._network, operands, equation.params), equation)
        rule = special or TABLE.find(name)
        if rule is not None:
            return rule(Call(equation, self.facts, self.inline, reads), *operands)
        inner = implementation_of(equation)
        assert inner is not None, f"{name} is known"
        return self.inline(inner, operands)

    # ------------------------------------------------------------------ names and places

    @contextmanager
    def _at(self, equation: JaxprEqn) -> Generator[None]:
        """Give the layers of an equation its name and place, and its errors too."""
        scope = scope_name(str(equation.source_info.name_stack))
        self._scopes += [scope] if scope else []
        before, around = len(self._network.layers), self._place
        place = self._place = source_location(equation, around)
        try:
            with importing(place):
                yield
        except LayerError as error:
            why, fix = error.why or reason(error.code), error.fix
            what = f"{equation.primitive.name} cannot be imported: {error.what}"
            raise ModelError(Finding(error.code, what, str(place), why, fix)) from error
        except NetworkError as error:
            raise ModelError(*error.findings) from error
        except NetloopError:
            raise
        except Exception as error:
            what = f"netloop cannot import {equation.primitive.name}: {type(error).__name__}: {error}"
            fix = "report it, with the function"
            raise ModelError(Finding(FAULT, what, str(place), reason(FAULT), fix, cause=error)) from error
        else:
            self.name_layers(before, equation.primitive.name)
        finally:
            self._place = around
            if scope:
                self._scopes.pop()

    def name_layers(self, start: int, primitive: str) -> None:
        """Name the layers from number ``start`` on that have no name yet after a primitive and its scopes."""
        for layer in self._network.layers[start:]:
            if not layer.metadata:
                layer.metadata = f"[JAX Layer: {primitive}]"
                if not isinstance(layer, IConstantLayer):
                    layer.name = self._unique("/".join([*self._scopes, primitive]))

    def _unique(self, name: str) -> str:
        count = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}_{count}" if count else name


def _as_wanted(made: Sequence[ITensor | None], equation: JaxprEqn) -> list[ITensor]:
    """The results of a rule of the caller's own.

    Raises:
        LayerError: they are not those of the equation.
    """
    tensors = [tensor for tensor in made if tensor is not None]
    wanted = [
        f"{element_type(variable.aval)}[{','.join(map(str, tensor_shape(variable.aval)))}]"
        for variable in equation.outvars
    ]
    fits = len(tensors) == len(wanted) and all(map(_fits, tensors, equation.outvars))
    listed = ", ".join(str(tensor.type) for tensor in tensors) or "nothing"
    require(fits, f"the rule returned {listed}", f"the equation has the results {', '.join(wanted)}")
    return tensors


def _fits(tensor: ITensor, variable: Var) -> bool:
    aval = variable.aval
    shape = declared_shape(tensor_shape(aval))
    return tensor.type.dtype == element_type(aval) and agree(tensor.type.shape, shape)
