"""The common part of the importers and exporters of all model formats."""

from netloop.formats.shared.import_errors import ImportErrors as ImportErrors
from netloop.formats.shared.import_errors import InputNotImported as InputNotImported
from netloop.formats.shared.import_errors import Unimported as Unimported
from netloop.formats.shared.import_errors import read_model_file as read_model_file
from netloop.formats.shared.loops import CarriedValues as CarriedValues
from netloop.formats.shared.loops import IterationResult as IterationResult
from netloop.formats.shared.loops import LoopLimits as LoopLimits
from netloop.formats.shared.loops import LoopNames as LoopNames
from netloop.formats.shared.loops import StackedOutput as StackedOutput
from netloop.formats.shared.loops import build_loop as build_loop
from netloop.formats.shared.loops import name_layer as name_layer
