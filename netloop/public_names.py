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
from netloop.api.slot_engine import SlotEngine as SlotEngine
from netloop.api.slot_requests import RequestState as RequestState
from netloop.api.slot_requests import SlotRequest as SlotRequest
from netloop.api.stepper import Stepper as Stepper
from netloop.api.streams import IStreamReader as IStreamReader
from netloop.api.streams import IStreamReaderV2 as IStreamReaderV2
from netloop.api.streams import IStreamWriter as IStreamWriter
from netloop.api.timing_cache import ITimingCache as ITimingCache
from netloop.check import check as check
from netloop.diagnostics import ExecutionError as ExecutionError
from netloop.diagnostics import FileFormatError as FileFormatError
from netloop.diagnostics import Finding as Finding
from netloop.diagnostics import InputError as InputError
from netloop.diagnostics import ModelError as ModelError
from netloop.diagnostics import ModelWarning as ModelWarning
from netloop.diagnostics import NetloopError as NetloopError
from netloop.diagnostics import NetworkError as NetworkError
from netloop.diagnostics import Severity as _Severity
from netloop.diagnostics.explain import explain as explain
from netloop.dims import Dims as Dims
from netloop.dims import Dims2 as Dims2
from netloop.dims import Dims3 as Dims3
from netloop.dims import Dims4 as Dims4
from netloop.dims import DimsHW as DimsHW
from netloop.dims import Permutation as Permutation
from netloop.dims import Weights as Weights
from netloop.dims import volume as volume
from netloop.enums import ActivationType as ActivationType
from netloop.enums import AttentionIOForm as AttentionIOForm
from netloop.enums import AttentionNormalizationOp as AttentionNormalizationOp
from netloop.enums import BoundingBoxFormat as BoundingBoxFormat
from netloop.enums import CausalMaskKind as CausalMaskKind
from netloop.enums import CollectiveOperation as CollectiveOperation
from netloop.enums import CumulativeOperation as CumulativeOperation
from netloop.enums import DataType as DataType
from netloop.enums import ElementWiseOperation as ElementWiseOperation
from netloop.enums import FillOperation as FillOperation
from netloop.enums import GatherMode as GatherMode
from netloop.enums import InterpolationMode as InterpolationMode
from netloop.enums import KVCacheMode as KVCacheMode
from netloop.enums import LayerType as LayerType
from netloop.enums import LoopOutput as LoopOutput
from netloop.enums import MatrixOperation as MatrixOperation
from netloop.enums import MoEActType as MoEActType
from netloop.enums import NetworkDefinitionCreationFlag as NetworkDefinitionCreationFlag
from netloop.enums import PaddingMode as PaddingMode
from netloop.enums import PixelFormat as PixelFormat
from netloop.enums import PoolingType as PoolingType
from netloop.enums import ReduceOperation as ReduceOperation
from netloop.enums import ResizeCoordinateTransformation as ResizeCoordinateTransformation
from netloop.enums import ResizeRoundMode as ResizeRoundMode
from netloop.enums import ResizeSelector as ResizeSelector
from netloop.enums import SampleMode as SampleMode
from netloop.enums import ScaleMode as ScaleMode
from netloop.enums import ScatterMode as ScatterMode
from netloop.enums import StringCase as StringCase
from netloop.enums import TensorFormat as TensorFormat
from netloop.enums import TensorIOMode as TensorIOMode
from netloop.enums import TensorLocation as TensorLocation
from netloop.enums import TopKOperation as TopKOperation
from netloop.enums import TripLimit as TripLimit
from netloop.enums import UnaryOperation as UnaryOperation
from netloop.execution.sharded_engine import ShardedEngine as ShardedEngine
from netloop.execution.sharded_engine import shard as shard
from netloop.execution.to_jax import to_jax as to_jax
from netloop.from_jax.convert import from_jax as from_jax
from netloop.graph.layer import ILayer as ILayer
from netloop.graph.tensor import ITensor as ITensor
from netloop.layers.affine import IParametricReLULayer as IParametricReLULayer
from netloop.layers.affine import IScaleLayer as IScaleLayer
from netloop.layers.assertion import IAssertionLayer as IAssertionLayer
from netloop.layers.attention import IAttention as IAttention
from netloop.layers.attention import IAttentionBoundaryLayer as IAttentionBoundaryLayer
from netloop.layers.attention import IAttentionInputLayer as IAttentionInputLayer
from netloop.layers.attention import IAttentionOutputLayer as IAttentionOutputLayer
from netloop.layers.bits import IBitCastLayer as IBitCastLayer
from netloop.layers.cache import IKVCacheUpdateLayer as IKVCacheUpdateLayer
from netloop.layers.collective import IDistCollectiveLayer as IDistCollectiveLayer
from netloop.layers.conditional import IConditionLayer as IConditionLayer
from netloop.layers.conditional import IIfConditional as IIfConditional
from netloop.layers.conditional import IIfConditionalBoundaryLayer as IIfConditionalBoundaryLayer
from netloop.layers.conditional import IIfConditionalInputLayer as IIfConditionalInputLayer
from netloop.layers.conditional import IIfConditionalOutputLayer as IIfConditionalOutputLayer
from netloop.layers.convolution import IConvolutionLayer as IConvolutionLayer
from netloop.layers.convolution import IDeconvolutionLayer as IDeconvolutionLayer
from netloop.layers.detection import INMSLayer as INMSLayer
from netloop.layers.detection import INonZeroLayer as INonZeroLayer
from netloop.layers.detection import IUniqueLayer as IUniqueLayer
from netloop.layers.experts import IMoELayer as IMoELayer
from netloop.layers.fourier import IDFTLayer as IDFTLayer
from netloop.layers.gather import IGatherLayer as IGatherLayer
from netloop.layers.gather import IOneHotLayer as IOneHotLayer
from netloop.layers.gather import IScatterLayer as IScatterLayer
from netloop.layers.grid_sample import IGridSampleLayer as IGridSampleLayer
from netloop.layers.image import IImageDecoderLayer as IImageDecoderLayer
from netloop.layers.loop import IIteratorLayer as IIteratorLayer
from netloop.layers.loop import ILoop as ILoop
from netloop.layers.loop import ILoopBoundaryLayer as ILoopBoundaryLayer
from netloop.layers.loop import ILoopOutputLayer as ILoopOutputLayer
from netloop.layers.loop import IRecurrenceLayer as IRecurrenceLayer
from netloop.layers.loop import ITripLimitLayer as ITripLimitLayer
from netloop.layers.maps import IMapLayer as IMapLayer
from netloop.layers.maps import IMapLookupLayer as IMapLookupLayer
from netloop.layers.matrix import IDeterminantLayer as IDeterminantLayer
from netloop.layers.matrix import IEinsumLayer as IEinsumLayer
from netloop.layers.matrix import IMatrixMultiplyLayer as IMatrixMultiplyLayer
from netloop.layers.normalization import INormalizationLayer as INormalizationLayer
from netloop.layers.normalization import IRaggedSoftMaxLayer as IRaggedSoftMaxLayer
from netloop.layers.padding import IPaddingLayer as IPaddingLayer
from netloop.layers.padding import IReverseSequenceLayer as IReverseSequenceLayer
from netloop.layers.plugin import IPluginV3Layer as IPluginV3Layer
from netloop.layers.pointwise import IActivationLayer as IActivationLayer
from netloop.layers.pointwise import ICastLayer as ICastLayer
from netloop.layers.pointwise import IElementWiseLayer as IElementWiseLayer
from netloop.layers.pointwise import IIdentityLayer as IIdentityLayer
from netloop.layers.pointwise import ISelectLayer as ISelectLayer
from netloop.layers.pointwise import IUnaryLayer as IUnaryLayer
from netloop.layers.pooling import ILRNLayer as ILRNLayer
from netloop.layers.pooling import IPoolingIndicesLayer as IPoolingIndicesLayer
from netloop.layers.pooling import IPoolingLayer as IPoolingLayer
from netloop.layers.quantize import IDequantizeLayer as IDequantizeLayer
from netloop.layers.quantize import IDynamicQuantizeLayer as IDynamicQuantizeLayer
from netloop.layers.quantize import IQuantizeLayer as IQuantizeLayer
from netloop.layers.rearrange import IConcatenationLayer as IConcatenationLayer
from netloop.layers.rearrange import IShuffleLayer as IShuffleLayer
from netloop.layers.rearrange import ISqueezeLayer as ISqueezeLayer
from netloop.layers.rearrange import IUnsqueezeLayer as IUnsqueezeLayer
from netloop.layers.reduce import ICumulativeLayer as ICumulativeLayer
from netloop.layers.reduce import IReduceLayer as IReduceLayer
from netloop.layers.reduce import ISoftMaxLayer as ISoftMaxLayer
from netloop.layers.reduce import ITopKLayer as ITopKLayer
from netloop.layers.resample import IResizeLayer as IResizeLayer
from netloop.layers.rotary import IRotaryEmbeddingLayer as IRotaryEmbeddingLayer
from netloop.layers.sequence import IOptionalGetLayer as IOptionalGetLayer
from netloop.layers.sequence import IOptionalHasLayer as IOptionalHasLayer
from netloop.layers.sequence import IOptionalLayer as IOptionalLayer
from netloop.layers.sequence import ISequenceAtLayer as ISequenceAtLayer
from netloop.layers.sequence import ISequenceConcatenationLayer as ISequenceConcatenationLayer
from netloop.layers.sequence import ISequenceEraseLayer as ISequenceEraseLayer
from netloop.layers.sequence import ISequenceInsertLayer as ISequenceInsertLayer
from netloop.layers.sequence import ISequenceLayer as ISequenceLayer
from netloop.layers.sequence import ISequenceLengthLayer as ISequenceLengthLayer
from netloop.layers.sequence import ISequenceSplitLayer as ISequenceSplitLayer
from netloop.layers.slice import ISliceLayer as ISliceLayer
from netloop.layers.sources import IConstantLayer as IConstantLayer
from netloop.layers.sources import IFillLayer as IFillLayer
from netloop.layers.sources import IShapeLayer as IShapeLayer
from netloop.layers.strings import IStringConcatenationLayer as IStringConcatenationLayer
from netloop.layers.strings import IStringLookupLayer as IStringLookupLayer
from netloop.layers.strings import IStringMatchLayer as IStringMatchLayer
from netloop.layers.strings import IStringNgramsLayer as IStringNgramsLayer
from netloop.layers.strings import IStringNormalizationLayer as IStringNormalizationLayer
from netloop.layers.strings import IStringSplitLayer as IStringSplitLayer
from netloop.layers.strings import IStringTokenizationLayer as IStringTokenizationLayer
from netloop.network import INetworkDefinition as INetworkDefinition
from netloop.passes import PASSES as PASSES
from netloop.plugins.enums import APILanguage as APILanguage
from netloop.plugins.enums import DimensionOperation as DimensionOperation
from netloop.plugins.enums import PluginArgDataType as PluginArgDataType
from netloop.plugins.enums import PluginArgType as PluginArgType
from netloop.plugins.enums import PluginCapabilityType as PluginCapabilityType
from netloop.plugins.enums import PluginCreatorVersion as PluginCreatorVersion
from netloop.plugins.enums import PluginFieldType as PluginFieldType
from netloop.plugins.enums import QuickPluginCreationRequest as QuickPluginCreationRequest
from netloop.plugins.enums import TensorRTPhase as TensorRTPhase
from netloop.plugins.expressions import DimsExprs as DimsExprs
from netloop.plugins.expressions import IDimensionExpr as IDimensionExpr
from netloop.plugins.expressions import IExprBuilder as IExprBuilder
from netloop.plugins.fields import DynamicPluginTensorDesc as DynamicPluginTensorDesc
from netloop.plugins.fields import PluginField as PluginField
from netloop.plugins.fields import PluginFieldCollection as PluginFieldCollection
from netloop.plugins.fields import PluginFieldCollection_ as PluginFieldCollection_
from netloop.plugins.fields import PluginTensorDesc as PluginTensorDesc
from netloop.plugins.interfaces import InterfaceInfo as InterfaceInfo
from netloop.plugins.interfaces import IPluginCapability as IPluginCapability
from netloop.plugins.interfaces import IPluginCreatorInterface as IPluginCreatorInterface
from netloop.plugins.interfaces import IPluginCreatorV3One as IPluginCreatorV3One
from netloop.plugins.interfaces import IPluginResource as IPluginResource
from netloop.plugins.interfaces import IPluginResourceContext as IPluginResourceContext
from netloop.plugins.interfaces import IPluginV3 as IPluginV3
from netloop.plugins.interfaces import IPluginV3OneBuild as IPluginV3OneBuild
from netloop.plugins.interfaces import IPluginV3OneBuildV2 as IPluginV3OneBuildV2
from netloop.plugins.interfaces import IPluginV3OneCore as IPluginV3OneCore
from netloop.plugins.interfaces import IPluginV3OneRuntime as IPluginV3OneRuntime
from netloop.plugins.interfaces import IVersionedInterface as IVersionedInterface
from netloop.plugins.jax_plugin import JaxPlugin as JaxPlugin
from netloop.plugins.jax_plugin import JaxPluginCreator as JaxPluginCreator
from netloop.plugins.jax_plugin import jax_plugin as jax_plugin
from netloop.plugins.registry import IPluginRegistry as IPluginRegistry
from netloop.plugins.registry import get_plugin_registry as get_plugin_registry
from netloop.plugins.unavailable import FallbackString as FallbackString
from netloop.plugins.unavailable import IAlgorithm as IAlgorithm
from netloop.plugins.unavailable import IAlgorithmContext as IAlgorithmContext
from netloop.plugins.unavailable import IAlgorithmIOInfo as IAlgorithmIOInfo
from netloop.plugins.unavailable import IAlgorithmSelector as IAlgorithmSelector
from netloop.plugins.unavailable import IAlgorithmVariant as IAlgorithmVariant
from netloop.plugins.unavailable import IPluginCreator as IPluginCreator
from netloop.plugins.unavailable import IPluginCreatorV3Quick as IPluginCreatorV3Quick
from netloop.plugins.unavailable import IPluginV2 as IPluginV2
from netloop.plugins.unavailable import IPluginV2DynamicExt as IPluginV2DynamicExt
from netloop.plugins.unavailable import IPluginV2DynamicExtBase as IPluginV2DynamicExtBase
from netloop.plugins.unavailable import IPluginV2Ext as IPluginV2Ext
from netloop.plugins.unavailable import IPluginV2Layer as IPluginV2Layer
from netloop.plugins.unavailable import IPluginV3QuickAOTBuild as IPluginV3QuickAOTBuild
from netloop.plugins.unavailable import IPluginV3QuickBuild as IPluginV3QuickBuild
from netloop.plugins.unavailable import IPluginV3QuickCore as IPluginV3QuickCore
from netloop.plugins.unavailable import IPluginV3QuickRuntime as IPluginV3QuickRuntime
from netloop.plugins.unavailable import ISymExpr as ISymExpr
from netloop.plugins.unavailable import ISymExprs as ISymExprs
from netloop.plugins.unavailable import KernelLaunchParams as KernelLaunchParams
from netloop.reference import LazySequence as LazySequence
from netloop.reference import Trace as Trace
from netloop.reference import evaluate as evaluate
from netloop.reference import trace as trace
from netloop.report.page import report as report
from netloop.tuning.entries import TimingCacheKey as TimingCacheKey
from netloop.tuning.entries import TimingCacheValue as TimingCacheValue
from netloop.types import nptype as nptype

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
