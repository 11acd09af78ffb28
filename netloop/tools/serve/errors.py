"""Errors of requests that were not computed, or whose results nobody waits for any longer."""

from typing import ClassVar

from netloop.values.diagnostics import Finding, NetloopError, reason


class ServeError(NetloopError):
    """A request that a service did not answer; the classes below say why.

    Attributes:
        status: the status of HTTP with which an endpoint says it.
    """

    status: ClassVar[int] = 400


class Overloaded(ServeError):
    """A request that was refused at once, because the queue is full or every slot has a sequence."""

    status = 503


class TimedOut(ServeError):
    """A request whose time is over."""

    status = 504


class UnknownSequence(ServeError):
    """A step of a sequence that was not started, has ended, or was idle for too long."""


class NotRun(ServeError):
    """A step that was not run, because an earlier step of its sequence failed."""


class Closed(ServeError):
    """A request to a service that is closed, or whose thread has ended."""

    status = 503


class RequestError(ServeError):
    """A request to an endpoint that is none of the V2 protocol."""


class NoSuchModel(RequestError):
    """A request for a model, or a path, that an endpoint has not."""

    status = 404


class WrongMethod(RequestError):
    """A request with a method of HTTP that its path has not."""

    status = 405


class TooLarge(RequestError):
    """A request of more bytes than an endpoint reads."""

    status = 413


class UnknownEncoding(RequestError):
    """A request whose body is compressed."""

    status = 415


def overloaded(what: str, fix: str) -> Overloaded:
    """The error for a request that finds no room."""
    return Overloaded(Finding("NL641", what, "", reason("NL641"), fix))


def timed_out(what: str) -> TimedOut:
    """The error for a request whose time is over."""
    fix = "give requests more time, larger batches to the service, or fewer requests to it"
    return TimedOut(Finding("NL642", what, "", reason("NL642"), fix))


def unknown_sequence(key: object) -> UnknownSequence:
    """The error for a step of a sequence that has no state."""
    fix = "begin the sequence with start=True, and give idle more seconds if its steps are far apart"
    return UnknownSequence(Finding("NL643", f"there is no sequence {key!r}", "", reason("NL643"), fix))


def closed() -> Closed:
    """The error for a request to a service that is closed."""
    fix = "send requests inside the with statement, or before close()"
    return Closed(Finding("NL644", "the service is closed", "", reason("NL644"), fix))


def ended(by: str) -> Closed:
    """The error for a request to a service whose thread was ended, by an exception in words."""
    fix = "mend what ended it, and make a new service"
    return Closed(Finding("NL648", f"the thread of the service was ended by {by}", "", reason("NL648"), fix))


def not_run(key: object) -> NotRun:
    """The error for a step after one that failed."""
    what = f"an earlier step of sequence {key!r} failed, and this one was not run"
    fix = "send the step that failed again and then this one, or begin anew with start=True"
    return NotRun(Finding("NL645", what, "", reason("NL645"), fix))


def invalid(what: str, fix: str = "") -> RequestError:
    """The error for a request that is none of the V2 protocol."""
    return RequestError(Finding("NL670", what, "", reason("NL670"), fix))


def no_such(what: str, fix: str = "") -> NoSuchModel:
    """The error for a request for something that an endpoint has not."""
    return NoSuchModel(Finding("NL671", what, "", reason("NL671"), fix))


def too_large(length: int | None, largest: int) -> TooLarge:
    """The error for a request of more bytes than are read, of a length that may be unknown."""
    what = f"the request has {'more bytes' if length is None else f'{length} bytes'}, and at most {largest} are read"
    fix = "send fewer rows in a request, or start the server with a larger --max-body"
    return TooLarge(Finding("NL672", what, "", reason("NL672"), fix))
