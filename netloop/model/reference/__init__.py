"""The reference: the interpreter in numpy that defines what a network means."""

from netloop.model.reference.interpreter import Interpreter as Interpreter
from netloop.model.reference.interpreter import evaluate as evaluate
from netloop.model.reference.trace import LazySequence as LazySequence
from netloop.model.reference.trace import Trace as Trace
from netloop.model.reference.trace import trace as trace
