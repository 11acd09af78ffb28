"""The exporter of conditionals."""

from netloop.formats.onnx_graph.graph import OnnxGraph, Value
from netloop.formats.onnx_graph.step_exporter import StepExporter
from netloop.formats.onnx_graph.value_scope import ValueScope
from netloop.model.nest import IfStep


def export_conditional(exporter: StepExporter, step: IfStep, scope: ValueScope) -> None:
    """Add an If, or only the branch taken if the condition is a compile-time constant."""
    value = exporter.types[step.condition].value
    if value is None:
        return _export_if(exporter, step, scope)
    taken = 0 if value else 1
    exporter.export_steps(step.branches[taken].steps, scope)
    for output, result in zip(step.writes, step.results(taken), strict=True):
        scope.values[output] = exporter.read(result, scope)
    return None


def _export_if(exporter: StepExporter, step: IfStep, scope: ValueScope) -> None:
    if not step.outputs:
        return
    branches = [_branch(exporter, step, scope, branch) for branch in (0, 1)]
    values = [Value(exporter.types[tensor].dtype, tensor.name) for tensor in step.writes]
    condition = exporter.read(step.condition, scope)
    make = exporter.builder(scope, name=step.conditional.name)
    make.node("If", [condition], values, then_branch=branches[0], else_branch=branches[1])
    scope.values.update(zip(step.writes, values, strict=True))


def _branch(exporter: StepExporter, step: IfStep, scope: ValueScope, branch: int) -> OnnxGraph:
    graph = OnnxGraph(f"{step.conditional.name} {('then', 'else')[branch]}")
    inside = scope.inside(graph)
    exporter.export_steps(step.branches[branch].steps, inside)
    make = exporter.builder(inside, name=step.conditional.name)
    for output, result in zip(step.writes, step.results(branch), strict=True):
        type, wanted = exporter.types[result], exporter.types[output]
        value = make.fitted(exporter.read(result, inside), type, wanted)
        graph.add_output(value, type if wanted.is_tensor else wanted, result.name)
    return graph
