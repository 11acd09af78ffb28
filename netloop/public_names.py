"""The public names of netloop. ``netloop`` has them all; it imports this module when the first one is read."""

from netloop.api.allocators import IGpuAllocator as IGpuAllocator
from netloop.api.allocators import IGpuAsyncAllocator as IGpuAsyncAllocator
from netloop.api.allocators import IOutputAllocator as IOutputAllocator
from netloop.api.batches import Batches as Batches
from netloop.api.builder import Builder as Builder
from netloop.api.calibration import IInt8Calibrator as IInt8Calibrator
from netloop.api.calibration import IInt8EntropyCalibrator as IInt8EntropyCalibrator
from netloop.api.calibration import IInt8EntropyCalibrator2 as IInt8EntropyCalibrator2
from netloop.api.calibration import IInt8LegacyCalibrator as IInt8LegacyCalibrator
from netloop.api.calibration import IInt8MinMaxCalibrator as IInt8MinMaxCalibrator
from netloop.api.compare import Comparison as Comparison
from netloop.api.compare import Difference as Difference
from netloop.api.compare import compare as compare
from netloop.api.config import IBuilderConfig as IBuilderConfig
from netloop.api.context import IExecutionContext as IExecutionContext
from netloop.api.engine import ICudaEngine as ICudaEngine
from netloop.api.engine import compile as compile
from netloop.api.engine import load as load
from netloop.api.engine_config import IRuntimeConfig as IRuntimeConfig
from netloop.api.engine_config import ISerializationConfig as ISerializationConfig
from netloop.api.enums import AllocatorFlag as AllocatorFlag
from netloop.api.enums import BuilderFlag as BuilderFlag
from netloop.api.enums import CalibrationAlgoType as CalibrationAlgoType
from netloop.api.enums import DeviceType as DeviceType
from netloop.api.enums import DLAWorkspaceAllocationStrategy as DLAWorkspaceAllocationStrategy
from netloop.api.enums import EngineCapability as EngineCapability
from netloop.api.enums import EngineStat as EngineStat
from netloop.api.enums import ErrorCode as ErrorCode
from netloop.api.enums import ErrorCodeTRT as ErrorCodeTRT
from netloop.api.enums import ExecutionContextAllocationStrategy as ExecutionContextAllocationStrategy
from netloop.api.enums import HardwareCompatibilityLevel as HardwareCompatibilityLevel
from netloop.api.enums import LayerInformationFormat as LayerInformationFormat
from netloop.api.enums import MemoryPoolType as MemoryPoolType
from netloop.api.enums import OnnxParserFlag as OnnxParserFlag
from netloop.api.enums import PreviewFeature as PreviewFeature
from netloop.api.enums import ProfilingVerbosity as ProfilingVerbosity
from netloop.api.enums import QuantizationFlag as QuantizationFlag
from netloop.api.enums import RuntimePlatform as RuntimePlatform
from netloop.api.enums import SeekPosition as SeekPosition
from netloop.api.enums import SerializationFlag as SerializationFlag
from netloop.api.enums import TacticSource as TacticSource
from netloop.api.enums import TempfileControlFlag as TempfileControlFlag
from netloop.api.enums import TilingOptimizationLevel as TilingOptimizationLevel
from netloop.api.enums import WeightsRole as WeightsRole
from netloop.api.inspector import EngineInspector as EngineInspector
from netloop.api.logger import ILogger as ILogger
from netloop.api.logger import Logger as Logger
from netloop.api.memory import IHostMemory as IHostMemory
from netloop.api.observers import IDebugListener as IDebugListener
from netloop.api.observers import IErrorRecorder as IErrorRecorder
from netloop.api.observers import IProfiler as IProfiler
from netloop.api.observers import Profiler as Profiler
from netloop.api.profile import IOptimizationProfile as IOptimizationProfile
from netloop.api.progress import Cancelled as Cancelled
from netloop.api.progress import IProgressMonitor as IProgressMonitor
from netloop.api.refitter import Refitter as Refitter
from netloop.api.runtime import Runtime as Runtime
from netloop.api.runtime import get_builder_plugin_registry as get_builder_plugin_registry
from netloop.api.runtime import get_nv_onnx_parser_version as get_nv_onnx_parser_version
from netloop.api.runtime import init_libnvinfer_plugins as init_libnvinfer_plugins
from netloop.api.shard import shard as shard
from netloop.api.slot_engine import SlotEngine as SlotEngine
from netloop.api.slot_requests import RequestState as RequestState
from netloop.api.slot_requests import SlotRequest as SlotRequest
from netloop.api.stepper import Stepper as Stepper
from netloop.api.streams import IStreamReader as IStreamReader
from netloop.api.streams import IStreamReaderV2 as IStreamReaderV2
from netloop.api.streams import IStreamWriter as IStreamWriter
from netloop.api.timing_cache import ITimingCache as ITimingCache
from netloop.compiler.execution.sharded_engine import ShardedEngine as ShardedEngine
from netloop.compiler.execution.to_jax import to_jax as to_jax
from netloop.compiler.passes import PASSES as PASSES
from netloop.compiler.tuning.entries import TimingCacheKey as TimingCacheKey
from netloop.compiler.tuning.entries import TimingCacheValue as TimingCacheValue
from netloop.formats.from_jax.convert import from_jax as from_jax
from netloop.model.check import check as check
from netloop.model.graph.layer import ILayer as ILayer
from netloop.model.graph.tensor import ITensor as ITensor
from netloop.model.layers.affine import IParametricReLULayer as IParametricReLULayer
from netloop.model.layers.affine import IScaleLayer as IScaleLayer
from netloop.model.layers.assertion import IAssertionLayer as IAssertionLayer
from netloop.model.layers.attention import IAttention as IAttention
from netloop.model.layers.attention import IAttentionBoundaryLayer as IAttentionBoundaryLayer
from netloop.model.layers.attention import IAttentionInputLayer as IAttentionInputLayer
from netloop.model.layers.attention import IAttentionOutputLayer as IAttentionOutputLayer
from netloop.model.layers.bits import IBitCastLayer as IBitCastLayer
from netloop.model.layers.cache import IKVCacheUpdateLayer as IKVCacheUpdateLayer
from netloop.model.layers.collective import IDistCollectiveLayer as IDistCollectiveLayer
from netloop.model.layers.conditional import IConditionLayer as IConditionLayer
from netloop.model.layers.conditional import IIfConditional as IIfConditional
from netloop.model.layers.conditional import IIfConditionalBoundaryLayer as IIfConditionalBoundaryLayer
from netloop.model.layers.conditional import IIfConditionalInputLayer as IIfConditionalInputLayer
from netloop.model.layers.conditional import IIfConditionalOutputLayer as IIfConditionalOutputLayer
from netloop.model.layers.convolution import IConvolutionLayer as IConvolutionLayer
from netloop.model.layers.convolution import IDeconvolutionLayer as IDeconvolutionLayer
from netloop.model.layers.detection import INMSLayer as INMSLayer
from netloop.model.layers.detection import INonZeroLayer as INonZeroLayer
from netloop.model.layers.detection import IUniqueLayer as IUniqueLayer
from netloop.model.layers.experts import IMoELayer as IMoELayer
from netloop.model.layers.fourier import IDFTLayer as IDFTLayer
from netloop.model.layers.gather import IGatherLayer as IGatherLayer
from netloop.model.layers.gather import IOneHotLayer as IOneHotLayer
from netloop.model.layers.gather import IScatterLayer as IScatterLayer
from netloop.model.layers.grid_sample import IGridSampleLayer as IGridSampleLayer
from netloop.model.layers.image import IImageDecoderLayer as IImageDecoderLayer
from netloop.model.layers.loop import IIteratorLayer as IIteratorLayer
from netloop.model.layers.loop import ILoop as ILoop
from netloop.model.layers.loop import ILoopBoundaryLayer as ILoopBoundaryLayer
from netloop.model.layers.loop import ILoopOutputLayer as ILoopOutputLayer
from netloop.model.layers.loop import IRecurrenceLayer as IRecurrenceLayer
from netloop.model.layers.loop import ITripLimitLayer as ITripLimitLayer
from netloop.model.layers.maps import IMapLayer as IMapLayer
from netloop.model.layers.maps import IMapLookupLayer as IMapLookupLayer
from netloop.model.layers.matrix import IDeterminantLayer as IDeterminantLayer
from netloop.model.layers.matrix import IEinsumLayer as IEinsumLayer
from netloop.model.layers.matrix import IMatrixMultiplyLayer as IMatrixMultiplyLayer
from netloop.model.layers.normalization import INormalizationLayer as INormalizationLayer
from netloop.model.layers.normalization import IRaggedSoftMaxLayer as IRaggedSoftMaxLayer
from netloop.model.layers.padding import IPaddingLayer as IPaddingLayer
from netloop.model.layers.padding import IReverseSequenceLayer as IReverseSequenceLayer
from netloop.model.layers.plugin import IPluginV3Layer as IPluginV3Layer
from netloop.model.layers.pointwise import IActivationLayer as IActivationLayer
from netloop.model.layers.pointwise import ICastLayer as ICastLayer
from netloop.model.layers.pointwise import IElementWiseLayer as IElementWiseLayer
from netloop.model.layers.pointwise import IIdentityLayer as IIdentityLayer
from netloop.model.layers.pointwise import ISelectLayer as ISelectLayer
from netloop.model.layers.pointwise import IUnaryLayer as IUnaryLayer
from netloop.model.layers.pooling import ILRNLayer as ILRNLayer
from netloop.model.layers.pooling import IPoolingIndicesLayer as IPoolingIndicesLayer
from netloop.model.layers.pooling import IPoolingLayer as IPoolingLayer
from netloop.model.layers.quantize import IDequantizeLayer as IDequantizeLayer
from netloop.model.layers.quantize import IDynamicQuantizeLayer as IDynamicQuantizeLayer
from netloop.model.layers.quantize import IQuantizeLayer as IQuantizeLayer
from netloop.model.layers.rearrange import IConcatenationLayer as IConcatenationLayer
from netloop.model.layers.rearrange import IShuffleLayer as IShuffleLayer
from netloop.model.layers.rearrange import ISqueezeLayer as ISqueezeLayer
from netloop.model.layers.rearrange import IUnsqueezeLayer as IUnsqueezeLayer
from netloop.model.layers.reduce import ICumulativeLayer as ICumulativeLayer
from netloop.model.layers.reduce import IReduceLayer as IReduceLayer
from netloop.model.layers.reduce import ISoftMaxLayer as ISoftMaxLayer
from netloop.model.layers.reduce import ITopKLayer as ITopKLayer
from netloop.model.layers.resample import IResizeLayer as IResizeLayer
from netloop.model.layers.rotary import IRotaryEmbeddingLayer as IRotaryEmbeddingLayer
from netloop.model.layers.sequence import IOptionalGetLayer as IOptionalGetLayer
from netloop.model.layers.sequence import IOptionalHasLayer as IOptionalHasLayer
from netloop.model.layers.sequence import IOptionalLayer as IOptionalLayer
from netloop.model.layers.sequence import ISequenceAtLayer as ISequenceAtLayer
from netloop.model.layers.sequence import ISequenceConcatenationLayer as ISequenceConcatenationLayer
from netloop.model.layers.sequence import ISequenceEraseLayer as ISequenceEraseLayer
from netloop.model.layers.sequence import ISequenceInsertLayer as ISequenceInsertLayer
from netloop.model.layers.sequence import ISequenceLayer as ISequenceLayer
from netloop.model.layers.sequence import ISequenceLengthLayer as ISequenceLengthLayer
from netloop.model.layers.sequence import ISequenceSplitLayer as ISequenceSplitLayer
from netloop.model.layers.slice import ISliceLayer as ISliceLayer
from netloop.model.layers.sources import IConstantLayer as IConstantLayer
from netloop.model.layers.sources import IFillLayer as IFillLayer
from netloop.model.layers.sources import IShapeLayer as IShapeLayer
from netloop.model.layers.strings import IStringConcatenationLayer as IStringConcatenationLayer
from netloop.model.layers.strings import IStringLookupLayer as IStringLookupLayer
from netloop.model.layers.strings import IStringMatchLayer as IStringMatchLayer
from netloop.model.layers.strings import IStringNgramsLayer as IStringNgramsLayer
from netloop.model.layers.strings import IStringNormalizationLayer as IStringNormalizationLayer
from netloop.model.layers.strings import IStringSplitLayer as IStringSplitLayer
from netloop.model.layers.strings import IStringTokenizationLayer as IStringTokenizationLayer
from netloop.model.network import INetworkDefinition as INetworkDefinition
from netloop.model.plugins.enums import APILanguage as APILanguage
from netloop.model.plugins.enums import DimensionOperation as DimensionOperation
from netloop.model.plugins.enums import PluginArgDataType as PluginArgDataType
from netloop.model.plugins.enums import PluginArgType as PluginArgType
from netloop.model.plugins.enums import PluginCapabilityType as PluginCapabilityType
from netloop.model.plugins.enums import PluginCreatorVersion as PluginCreatorVersion
from netloop.model.plugins.enums import PluginFieldType as PluginFieldType
from netloop.model.plugins.enums import QuickPluginCreationRequest as QuickPluginCreationRequest
from netloop.model.plugins.enums import TensorRTPhase as TensorRTPhase
from netloop.model.plugins.expressions import DimsExprs as DimsExprs
from netloop.model.plugins.expressions import IDimensionExpr as IDimensionExpr
from netloop.model.plugins.expressions import IExprBuilder as IExprBuilder
from netloop.model.plugins.fields import DynamicPluginTensorDesc as DynamicPluginTensorDesc
from netloop.model.plugins.fields import PluginField as PluginField
from netloop.model.plugins.fields import PluginFieldCollection as PluginFieldCollection
from netloop.model.plugins.fields import PluginFieldCollection_ as PluginFieldCollection_
from netloop.model.plugins.fields import PluginTensorDesc as PluginTensorDesc
from netloop.model.plugins.interfaces import InterfaceInfo as InterfaceInfo
from netloop.model.plugins.interfaces import IPluginCapability as IPluginCapability
from netloop.model.plugins.interfaces import IPluginCreatorInterface as IPluginCreatorInterface
from netloop.model.plugins.interfaces import IPluginCreatorV3One as IPluginCreatorV3One
from netloop.model.plugins.interfaces import IPluginResource as IPluginResource
from netloop.model.plugins.interfaces import IPluginResourceContext as IPluginResourceContext
from netloop.model.plugins.interfaces import IPluginV3 as IPluginV3
from netloop.model.plugins.interfaces import IPluginV3OneBuild as IPluginV3OneBuild
from netloop.model.plugins.interfaces import IPluginV3OneBuildV2 as IPluginV3OneBuildV2
from netloop.model.plugins.interfaces import IPluginV3OneCore as IPluginV3OneCore
from netloop.model.plugins.interfaces import IPluginV3OneRuntime as IPluginV3OneRuntime
from netloop.model.plugins.interfaces import IVersionedInterface as IVersionedInterface
from netloop.model.plugins.jax_plugin import JaxPlugin as JaxPlugin
from netloop.model.plugins.jax_plugin import JaxPluginCreator as JaxPluginCreator
from netloop.model.plugins.jax_plugin import jax_plugin as jax_plugin
from netloop.model.plugins.registry import IPluginRegistry as IPluginRegistry
from netloop.model.plugins.registry import get_plugin_registry as get_plugin_registry
from netloop.model.plugins.unavailable import FallbackString as FallbackString
from netloop.model.plugins.unavailable import IAlgorithm as IAlgorithm
from netloop.model.plugins.unavailable import IAlgorithmContext as IAlgorithmContext
from netloop.model.plugins.unavailable import IAlgorithmIOInfo as IAlgorithmIOInfo
from netloop.model.plugins.unavailable import IAlgorithmSelector as IAlgorithmSelector
from netloop.model.plugins.unavailable import IAlgorithmVariant as IAlgorithmVariant
from netloop.model.plugins.unavailable import IPluginCreator as IPluginCreator
from netloop.model.plugins.unavailable import IPluginCreatorV3Quick as IPluginCreatorV3Quick
from netloop.model.plugins.unavailable import IPluginV2 as IPluginV2
from netloop.model.plugins.unavailable import IPluginV2DynamicExt as IPluginV2DynamicExt
from netloop.model.plugins.unavailable import IPluginV2DynamicExtBase as IPluginV2DynamicExtBase
from netloop.model.plugins.unavailable import IPluginV2Ext as IPluginV2Ext
from netloop.model.plugins.unavailable import IPluginV2Layer as IPluginV2Layer
from netloop.model.plugins.unavailable import IPluginV3QuickAOTBuild as IPluginV3QuickAOTBuild
from netloop.model.plugins.unavailable import IPluginV3QuickBuild as IPluginV3QuickBuild
from netloop.model.plugins.unavailable import IPluginV3QuickCore as IPluginV3QuickCore
from netloop.model.plugins.unavailable import IPluginV3QuickRuntime as IPluginV3QuickRuntime
from netloop.model.plugins.unavailable import ISymExpr as ISymExpr
from netloop.model.plugins.unavailable import ISymExprs as ISymExprs
from netloop.model.plugins.unavailable import KernelLaunchParams as KernelLaunchParams
from netloop.model.reference import LazySequence as LazySequence
from netloop.model.reference import Trace as Trace
from netloop.model.reference import evaluate as evaluate
from netloop.model.reference import trace as trace
from netloop.model.weights import Weights as Weights
from netloop.tools.report.page import report as report
from netloop.values.diagnostics import ExecutionError as ExecutionError
from netloop.values.diagnostics import FileFormatError as FileFormatError
from netloop.values.diagnostics import Finding as Finding
from netloop.values.diagnostics import InputError as InputError
from netloop.values.diagnostics import ModelError as ModelError
from netloop.values.diagnostics import ModelWarning as ModelWarning
from netloop.values.diagnostics import NetloopError as NetloopError
from netloop.values.diagnostics import NetworkError as NetworkError
from netloop.values.diagnostics import Severity as _Severity
from netloop.values.diagnostics.explain import explain as explain
from netloop.values.dims import Dims as Dims
from netloop.values.dims import Dims2 as Dims2
from netloop.values.dims import Dims3 as Dims3
from netloop.values.dims import Dims4 as Dims4
from netloop.values.dims import DimsHW as DimsHW
from netloop.values.dims import Permutation as Permutation
from netloop.values.dims import volume as volume
from netloop.values.enums import ActivationType as ActivationType
from netloop.values.enums import AttentionIOForm as AttentionIOForm
from netloop.values.enums import AttentionNormalizationOp as AttentionNormalizationOp
from netloop.values.enums import BoundingBoxFormat as BoundingBoxFormat
from netloop.values.enums import CausalMaskKind as CausalMaskKind
from netloop.values.enums import CollectiveOperation as CollectiveOperation
from netloop.values.enums import CumulativeOperation as CumulativeOperation
from netloop.values.enums import DataType as DataType
from netloop.values.enums import ElementWiseOperation as ElementWiseOperation
from netloop.values.enums import FillOperation as FillOperation
from netloop.values.enums import GatherMode as GatherMode
from netloop.values.enums import InterpolationMode as InterpolationMode
from netloop.values.enums import KVCacheMode as KVCacheMode
from netloop.values.enums import LayerType as LayerType
from netloop.values.enums import LoopOutput as LoopOutput
from netloop.values.enums import MatrixOperation as MatrixOperation
from netloop.values.enums import MoEActType as MoEActType
from netloop.values.enums import NetworkDefinitionCreationFlag as NetworkDefinitionCreationFlag
from netloop.values.enums import PaddingMode as PaddingMode
from netloop.values.enums import PixelFormat as PixelFormat
from netloop.values.enums import PoolingType as PoolingType
from netloop.values.enums import ReduceOperation as ReduceOperation
from netloop.values.enums import ResizeCoordinateTransformation as ResizeCoordinateTransformation
from netloop.values.enums import ResizeRoundMode as ResizeRoundMode
from netloop.values.enums import ResizeSelector as ResizeSelector
from netloop.values.enums import SampleMode as SampleMode
from netloop.values.enums import ScaleMode as ScaleMode
from netloop.values.enums import ScatterMode as ScatterMode
from netloop.values.enums import StringCase as StringCase
from netloop.values.enums import TensorFormat as TensorFormat
from netloop.values.enums import TensorIOMode as TensorIOMode
from netloop.values.enums import TensorLocation as TensorLocation
from netloop.values.enums import TopKOperation as TopKOperation
from netloop.values.enums import TripLimit as TripLimit
from netloop.values.enums import UnaryOperation as UnaryOperation
from netloop.values.types import nptype as nptype

FindingSeverity = _Severity
"""The severity of a finding; in TensorRT, ``Severity`` is that of a message, ``Logger.Severity``."""

float32 = DataType.FLOAT
float16 = DataType.HALF
bfloat16 = DataType.BF16
float64 = DataType.DOUBLE
int8 = DataType.INT8
int32 = DataType.INT32
int64 = DataType.INT64
uint8 = DataType.UINT8
bool = DataType.BOOL
fp8 = DataType.FP8
int4 = DataType.INT4
fp4 = DataType.FP4
e8m0 = DataType.E8M0
int16 = DataType.INT16
uint16 = DataType.UINT16
uint32 = DataType.UINT32
uint64 = DataType.UINT64
e5m2 = DataType.E5M2
e4m3fnuz = DataType.E4M3FNUZ
e5m2fnuz = DataType.E5M2FNUZ
int2 = DataType.INT2
uint2 = DataType.UINT2
uint4 = DataType.UINT4
string = DataType.STRING
