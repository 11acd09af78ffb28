"""Engines as services: requests of many callers run as batched calls, with limits, time-outs and metrics."""

from netloop.tools.serve.endpoint import Endpoint as Endpoint
from netloop.tools.serve.errors import Closed as Closed
from netloop.tools.serve.errors import NotRun as NotRun
from netloop.tools.serve.errors import Overloaded as Overloaded
from netloop.tools.serve.errors import RequestError as RequestError
from netloop.tools.serve.errors import ServeError as ServeError
from netloop.tools.serve.errors import TimedOut as TimedOut
from netloop.tools.serve.errors import UnknownSequence as UnknownSequence
from netloop.tools.serve.metrics import Metrics as Metrics
from netloop.tools.serve.sequences import Sequences as Sequences
from netloop.tools.serve.sequences import Step as Step
from netloop.tools.serve.server import Server as Server
from netloop.tools.serve.streams import Streams as Streams
from netloop.tools.serve.triton import write_repository as write_repository
