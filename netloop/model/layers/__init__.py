"""The meaning of every layer kind: one file per family, one class per kind.

A class holds all of a kind: its attributes, its type rule (``infer``), its reference in numpy (``evaluate``) and its
lowering to JAX (``lower``). The class ``...Methods`` at the end of a file has the methods that add its layers to a
network; a new one is listed below. Helpers, which have no methods of their own: ``attention_formula`` (the computation
of attention), ``cache`` and ``rotary`` (kinds added by methods in ``attention``), ``control_flow`` (the base of
``loop`` and ``conditional``), ``element_conversion`` (the arithmetic of casts), ``low_bit`` (rounding),
``packed_sequences`` (ragged batches), ``regular_expressions`` and its parser, ``string_conversion`` (casts) and
``windows`` (the base of ``convolution`` and ``pooling``).

Source: https://docs.nvidia.com/deeplearning/tensorrt/operators/ has a page for each of TensorRT's kinds.
"""

from netloop.model.layers.affine import AffineMethods
from netloop.model.layers.assertion import AssertionMethods
from netloop.model.layers.attention import AttentionMethods
from netloop.model.layers.bits import BitMethods
from netloop.model.layers.collective import CollectiveMethods
from netloop.model.layers.convolution import ConvolutionMethods
from netloop.model.layers.detection import DetectionMethods
from netloop.model.layers.experts import ExpertMethods
from netloop.model.layers.fourier import FourierMethods
from netloop.model.layers.gather import IndexMethods
from netloop.model.layers.grid_sample import GridSampleMethods
from netloop.model.layers.image import ImageMethods
from netloop.model.layers.maps import MapMethods
from netloop.model.layers.matrix import ProductMethods
from netloop.model.layers.normalization import NormalizationMethods
from netloop.model.layers.padding import PaddingMethods
from netloop.model.layers.plugin import PluginMethods
from netloop.model.layers.pointwise import PointwiseMethods
from netloop.model.layers.pooling import PoolingMethods
from netloop.model.layers.quantize import QuantizationMethods
from netloop.model.layers.rearrange import RearrangingMethods
from netloop.model.layers.reduce import ReductionMethods
from netloop.model.layers.resample import ResizingMethods
from netloop.model.layers.sequence import SequenceMethods
from netloop.model.layers.slice import SliceMethods
from netloop.model.layers.sources import SourceMethods
from netloop.model.layers.strings import StringMethods
from netloop.model.layers.topk import TopKMethods


class LayerMethods(
    SourceMethods,
    PointwiseMethods,
    BitMethods,
    ProductMethods,
    FourierMethods,
    ReductionMethods,
    TopKMethods,
    IndexMethods,
    SliceMethods,
    DetectionMethods,
    RearrangingMethods,
    PaddingMethods,
    ConvolutionMethods,
    PoolingMethods,
    ResizingMethods,
    GridSampleMethods,
    ImageMethods,
    NormalizationMethods,
    AffineMethods,
    AttentionMethods,
    ExpertMethods,
    QuantizationMethods,
    SequenceMethods,
    StringMethods,
    MapMethods,
    CollectiveMethods,
    AssertionMethods,
    PluginMethods,
):
    """The methods that add layers to a network: the rows of the table in docs/layers.md, each named by ``FAMILY``."""
