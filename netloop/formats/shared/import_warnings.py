"""Faults that an import forgives, because they leave a model one meaning."""

import warnings

from netloop.model.graph.call_site import call_site
from netloop.values.diagnostics import Finding, ModelWarning, Severity, listed, reason

FORGIVEN = "NL749"


class ImportWarnings:
    """The faults of a model, called ``model`` in messages, that leave it one meaning."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._names: dict[str, dict[str, None]] = {}

    def add(self, what: str, name: str) -> None:
        """Add a fault of ``name``.

        ``what`` describes the fault and how netloop reads it; ``{}`` stands for the names.
        """
        self._names.setdefault(what, {})[name] = None

    @property
    def findings(self) -> list[Finding]:
        """A warning for each kind of fault."""
        why = reason(FORGIVEN)
        return [
            Finding(FORGIVEN, what.format(listed(list(names))), self._model, why, severity=Severity.WARNING)
            for what, names in self._names.items()
        ]

    def issue(self) -> None:
        """Issue the warnings, at the line that called the importer."""
        place = call_site()
        for finding in self.findings:
            warnings.warn_explicit(ModelWarning(finding), None, place.file, place.line)
