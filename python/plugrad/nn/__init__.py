"""Modules, functions of tensors with parameters, and losses.

A class of your own derives from Module, stores tensors and modules as attributes, and defines forward.
"""

from .._plugrad import Layer, MLP, Neuron, cross_entropy, log_softmax, mse_loss
from . import functional as functional, init as init, parallel as parallel, utils as utils
from .activations import (CELU, ELU, GELU, GLU, SELU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, LogSigmoid,
                          LogSoftmax, Mish, PReLU, ReLU, ReLU6, RReLU, SiLU, Sigmoid, Softmax, Softmin, Softplus, Softshrink,
                          Softsign, Tanh, Tanhshrink, Threshold, softmax)
from .attention import (MultiheadAttention, Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
                        TransformerEncoderLayer)
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .convolutions import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .layers import (AlphaDropout, Bilinear, ChannelShuffle, CosineSimilarity, Dropout, Dropout1d, Dropout2d, Dropout3d,
                     Embedding, EmbeddingBag, FeatureAlphaDropout, Flatten, Fold, Identity, Linear, PairwiseDistance,
                     PixelShuffle, PixelUnshuffle, Unflatten, Unfold, Upsample)
from .lazy import (LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d, LazyConv1d, LazyConv2d, LazyConv3d,
                   LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d, LazyInstanceNorm1d, LazyInstanceNorm2d,
                   LazyInstanceNorm3d, LazyLinear)
from .losses import (BCELoss, BCEWithLogitsLoss, CTCLoss, CosineEmbeddingLoss, CrossEntropyLoss, GaussianNLLLoss,
                     HingeEmbeddingLoss, HuberLoss, KLDivLoss, L1Loss, MarginRankingLoss, MaxMarginLoss, MSELoss,
                     MultiLabelMarginLoss, MultiLabelSoftMarginLoss, MultiMarginLoss, NLLLoss, PoissonNLLLoss, SmoothL1Loss,
                     SoftMarginLoss, TripletMarginLoss, max_margin_loss)
from .module import LoadResult, Module, Parameter
from .normalizations import (BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, InstanceNorm1d, InstanceNorm2d,
                             InstanceNorm3d, LayerNorm, LocalResponseNorm, RMSNorm, SyncBatchNorm)
from .poolings import (AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
                       AdaptiveMaxPool3d, AvgPool1d, AvgPool2d, AvgPool3d, LPPool1d, LPPool2d, LPPool3d, MaxPool1d,
                       MaxPool2d, MaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d)
from .parallel import DataParallel
from .quantized import QuantizedEmbedding, QuantizedLinear
from .recurrent import GRU, GRUCell, LSTM, LSTMCell, RNN, RNNCell

__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
           "AdaptiveMaxPool3d", "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BCELoss", "BCEWithLogitsLoss",
           "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear", "CELU", "CTCLoss", "ChannelShuffle", "Conv1d", "Conv2d",
           "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss", "CosineSimilarity",
           "CrossEntropyLoss", "DataParallel", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "ELU", "Embedding",
           "EmbeddingBag", "FeatureAlphaDropout", "Flatten", "Fold", "GELU", "GLU", "GRU", "GRUCell", "GaussianNLLLoss",
           "GroupNorm", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "HuberLoss", "Identity",
           "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "KLDivLoss", "L1Loss", "LPPool1d", "LPPool2d", "LPPool3d",
           "LSTM", "LSTMCell", "Layer", "LayerNorm", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d",
           "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
           "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear", "LeakyReLU", "Linear",
           "LoadResult", "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "MLP", "MSELoss", "MarginRankingLoss",
           "MaxMarginLoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "Mish",
           "Module", "ModuleDict", "ModuleList", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
           "MultiheadAttention", "NLLLoss", "Neuron", "PReLU", "PairwiseDistance", "Parameter", "ParameterDict",
           "ParameterList", "PixelShuffle", "PixelUnshuffle", "PoissonNLLLoss", "QuantizedEmbedding", "QuantizedLinear",
           "RMSNorm", "RNN", "RNNCell", "RReLU", "ReLU", "ReLU6", "SELU", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss",
           "SoftMarginLoss", "Softmax", "Softmin", "Softplus", "Softshrink", "Softsign", "SyncBatchNorm", "Tanh",
           "Tanhshrink", "Threshold", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer", "TripletMarginLoss", "Unflatten", "Unfold", "Upsample", "cross_entropy", "functional",
           "init", "log_softmax", "max_margin_loss", "mse_loss", "parallel", "softmax", "utils"]
