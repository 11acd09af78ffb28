"""The error of networks that another runtime's compiler or converter refuses."""

from netloop.values.diagnostics import Finding, NetworkError, reason

MOST_TEXT = 2_000


def refused(who: str, error: Exception) -> NetworkError:
    """The error with the message of a compiler or converter; only the end of a long one is kept."""
    fix = "write it as .savedmodel or .stablehlo, which have every operation; or change the layer that it names"
    return NetworkError(Finding("NL733", f"{who} refuses it: {str(error)[-MOST_TEXT:]}", "", reason("NL733"), fix))
