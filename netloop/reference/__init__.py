"""The reference: the interpreter in numpy that defines what a network means."""

from netloop.reference.interpreter import Interpreter as Interpreter
from netloop.reference.interpreter import evaluate as evaluate
from netloop.reference.trace import LazySequence as LazySequence
from netloop.reference.trace import Trace as Trace
from netloop.reference.trace import trace as trace
