"""The importer of jaxprs: JAX's typed programs, equation by equation, to layers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from netloop.formats.from_jax.call import EquationCall
from netloop.formats.from_jax.element_types import element_type, has_parts, is_complex, tensor_shape
from netloop.formats.from_jax.facts import Facts
from netloop.formats.from_jax.implementations import implementation_of
from netloop.formats.from_jax.lengths import declared_shape
from netloop.formats.from_jax.liveness import live_equations
from netloop.formats.from_jax.node import EquationNode
from netloop.formats.from_jax.rule_table import BROADCASTING, COMPLEX, UNIFORM, Outputs
from netloop.formats.from_jax.rules import TABLE
from netloop.formats.shared.import_errors import FAULT, Unimported
from netloop.formats.shared.importer import ModelImporter, all_imported
from netloop.formats.shared.own_operators import OwnOperator, outputs_of_own
from netloop.model.formulas import as_dtype
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import quoted, require
from netloop.values.types import agree

Value = ITensor | Unimported
Values = dict[Any, Value]
"""The values of variables."""


class JaxprImporter(ModelImporter):
    """Adds a traced function to a network.

    ``arguments`` has the name of each argument, and its array if that becomes a constant, else None; ``results`` has
    the names of the results; ``rules`` are the functions that the caller brings along for primitives, by name.
    """

    FORMAT, NODE, INVALID_MODEL, INVALID_GRAPH = "JAX", "equation", FAULT, FAULT
    ADVICE: ClassVar = {FAULT: "report it, with the function"}

    def __init__(
        self,
        network: INetworkDefinition,
        traced: ClosedJaxpr,
        arguments: Sequence[tuple[str, Any]],
        results: Sequence[str],
        rules: Mapping[str, OwnOperator],
    ) -> None:
        super().__init__(network.name, network)
        self._traced = traced
        self._arguments = arguments
        self._results = results
        self._rules = rules
        self._facts = Facts(self._make)
        self._around: EquationNode | None = None
        self._counts = {name: 0 for name, value in arguments if value is not None}

    def _add_model(self) -> None:
        jaxpr = self._traced.jaxpr
        operands = [
            self._add_input(name, variable.aval) if value is None else self._facts.weight(name, value, variable.aval)
            for (name, value), variable in zip(self._arguments, jaxpr.invars, strict=True)
        ]
        values = self._add_jaxpr(self._traced, operands)
        for name, value, atom in zip(self._results, values, jaxpr.outvars, strict=True):
            if isinstance(value, ITensor):
                with self._errors.collect(f"output {quoted(name)}"):
                    self._mark(name, value, atom.aval)

    def _add_input(self, name: str, aval: Any) -> ITensor:
        shape = tensor_shape(aval)
        tensor = self._make.network.add_input(name, as_dtype(element_type(aval)), declared_shape(shape))
        self._facts.lengths.declare(tensor, shape)
        return tensor

    def _mark(self, name: str, value: ITensor, aval: Any) -> None:
        before = len(self._make.network.layers)
        tensor = self._facts.whole(value, aval)
        tensor = self._make.identity(tensor) if self._facts.is_weight(tensor) else tensor
        self._name_layers(before, name, name)
        self._mark_output(tensor, name, name)

    def _layer_name(self, layer: ILayer, name: str) -> str:
        """The name of an equation or output, with a number from its second layer on; constants keep their own."""
        if isinstance(layer, IConstantLayer):
            return layer.name
        count = self._counts[name] = self._counts.get(name, -1) + 1
        return f"{name}_{count}" if count else name

    # ------------------------------------------------------------------ jaxprs

    def _inline(self, jaxpr: ClosedJaxpr | Jaxpr, operands: Sequence[ITensor]) -> list[ITensor]:
        """Add the equations of a jaxpr inside an equation to the network; return its results.

        Raises:
            InputNotImported: one of the results cannot be imported.
        """
        return all_imported(self._add_jaxpr(jaxpr, operands))

    def _add_jaxpr(self, jaxpr: ClosedJaxpr | Jaxpr, operands: Sequence[ITensor]) -> list[Value]:
        """Add the equations of a jaxpr to the network; return its results, which may be smaller than their shapes."""
        consts = jaxpr.consts if isinstance(jaxpr, ClosedJaxpr) else ()
        inner = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
        values: Values = {}
        for variable, value in zip(inner.constvars, consts, strict=True):
            values[variable] = value if isinstance(value, ITensor) else self._facts.constant(value, variable.aval)
        values.update(zip(inner.invars, operands, strict=True))
        equations = live_equations(inner)
        atoms = [variable for equation in equations for variable in equation.invars] + inner.outvars
        reads = Counter(atom for atom in atoms if isinstance(atom, Var))
        around = self._around
        for equation in equations:
            node = self._around = EquationNode.inside(around, equation)
            translate = partial(self._outputs_of, equation, values, reads)
            outputs = self._import_node(node, len(equation.outvars), translate)
            values.update(zip(equation.outvars, outputs, strict=True))
        self._around = around
        return [self._read(atom, values) for atom in inner.outvars]

    def _read(self, atom: Var | Literal, values: Values) -> Value:
        return self._facts.constant(atom.val, atom.aval) if isinstance(atom, Literal) else values[atom]

    # ------------------------------------------------------------------ equations

    def _outputs_of(self, equation: JaxprEqn, values: Values, reads: Counter[Any]) -> Sequence[ITensor]:
        name = equation.primitive.name
        if name not in self._rules and _has_no_elements(equation):
            return [self._make.constant(zeros) for zeros in map(_zeros, equation.outvars)]
        operands = all_imported([self._read(atom, values) for atom in equation.invars])
        if name in UNIFORM and operands[0].type.rank == 0 and not has_parts(equation.outvars[0].aval):
            tensors: Outputs = [operands[0]] * len(equation.outvars)
        else:
            tensors = self._results_of(equation, operands, reads)
        outputs = [tensors] if isinstance(tensors, ITensor) else [*tensors]
        assert len(outputs) == len(equation.outvars), f"{name} has {len(outputs)} results"
        for variable, tensor in zip(equation.outvars, outputs, strict=True):
            wanted = element_type(variable.aval)
            assert tensor.type.dtype == wanted, f"a result of {name} is {tensor.type}, and not {wanted}"
        if outputs:
            self._facts.enter_range(equation, operands, outputs[0])
        return outputs

    def _results_of(self, equation: JaxprEqn, operands: list[ITensor], reads: Counter[Any]) -> Outputs:
        name = equation.primitive.name
        own = self._rules.get(name)
        atoms = (*equation.invars, *equation.outvars)
        special = COMPLEX.find(name) if any(is_complex(atom.aval) for atom in atoms) else None
        if own is not None or special is not None or name not in BROADCASTING:
            operands = [
                self._facts.whole(tensor, atom.aval) for tensor, atom in zip(operands, equation.invars, strict=True)
            ]
        if own is not None:
            return _as_wanted(outputs_of_own(own, name, self._make.network, operands, equation.params), equation)
        rule = special or TABLE.find(name)
        if rule is not None:
            return rule(EquationCall(equation, self._facts, self._inline, reads), *operands)
        inner = implementation_of(equation)
        assert inner is not None, f"{name} is known"
        return self._inline(inner, operands)


def _has_no_elements(equation: JaxprEqn) -> bool:
    """Whether nothing is to be computed: rules, and layers, would read elements that are not there."""
    shapes = [getattr(variable.aval, "shape", ()) for variable in equation.outvars]
    are_empty = [all(isinstance(length, int) for length in shape) and 0 in shape for shape in shapes]
    return bool(shapes) and all(are_empty) and not equation.effects


def _zeros(variable: Var) -> np.ndarray[Any, Any]:
    return np.zeros(tensor_shape(variable.aval), element_type(variable.aval))


def _as_wanted(outputs: Sequence[ITensor | None], equation: JaxprEqn) -> list[ITensor]:
    """The results of a rule of the caller's own.

    Raises:
        LayerError: they are not those of the equation.
    """
    tensors = [tensor for tensor in outputs if tensor is not None]
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
