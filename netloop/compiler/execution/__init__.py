"""The execution core below TensorRT's classes: compiled programs, their cache and their weights."""

from netloop.compiler.execution.gradient import gradient_plugin as gradient_plugin
