"""What a network means: lazy sequences, in numpy."""

from netloop.reference.interpreter import Interpreter as Interpreter
from netloop.reference.interpreter import evaluate as evaluate
