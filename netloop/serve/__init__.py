"""Engines as services: requests of many callers run as batched calls, with limits, time-outs and metrics."""

from netloop.tools.serve import Closed as Closed
from netloop.tools.serve import Metrics as Metrics
from netloop.tools.serve import NotRun as NotRun
from netloop.tools.serve import Overloaded as Overloaded
from netloop.tools.serve import Sequences as Sequences
from netloop.tools.serve import ServeError as ServeError
from netloop.tools.serve import Server as Server
from netloop.tools.serve import Step as Step
from netloop.tools.serve import Streams as Streams
from netloop.tools.serve import TimedOut as TimedOut
from netloop.tools.serve import UnknownSequence as UnknownSequence
from netloop.tools.serve import write_repository as write_repository
