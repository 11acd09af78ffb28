"""Engines as services: requests of many callers run as batched calls, with limits, time-outs and metrics."""

from netloop.serve.errors import Closed as Closed
from netloop.serve.errors import NotRun as NotRun
from netloop.serve.errors import Overloaded as Overloaded
from netloop.serve.errors import ServeError as ServeError
from netloop.serve.errors import TimedOut as TimedOut
from netloop.serve.errors import UnknownSequence as UnknownSequence
from netloop.serve.metrics import Metrics as Metrics
from netloop.serve.sequences import Sequences as Sequences
from netloop.serve.sequences import Step as Step
from netloop.serve.server import Server as Server
from netloop.serve.streams import Streams as Streams
from netloop.serve.triton import write_repository as write_repository
