"""The error of networks that another runtime's compiler or converter refuses."""

from netloop.values.diagnostics import Finding, NetworkError, reason

MOST_TEXT = 2_000


def refused(who: str, error: Exception) -> NetworkError:
    """The error for what a compiler or converter says, of which the end is kept if it is long."""
    fix = "write it as .savedmodel or .stablehlo, which have every operation; or change the layer that it names"
    return NetworkError(Finding("NL733", f"{who} refuses it: {str(error)[-MOST_TEXT:]}", "", reason("NL733"), fix))
