"""Layers, losses and initialisers of neural networks.

`Module` is the base class of layers and models, and `value_and_grad` computes gradients by a model's parameters.
"""

from ultramarine.nn import checkpoints as checkpoints
from ultramarine.nn import init as init
from ultramarine.nn import layers as layers
from ultramarine.nn import losses as losses
from ultramarine.nn import utils as utils
from ultramarine.nn.layers import *  # noqa: F403
from ultramarine.nn.layers import activations as activations
from ultramarine.nn.layers import base as base
from ultramarine.nn.layers import containers as containers
from ultramarine.nn.layers import convolution as convolution
from ultramarine.nn.layers import convolution_transpose as convolution_transpose
from ultramarine.nn.layers import distributed as distributed
from ultramarine.nn.layers import dropout as dropout
from ultramarine.nn.layers import embedding as embedding
from ultramarine.nn.layers import linear as linear
from ultramarine.nn.layers import normalization as normalization
from ultramarine.nn.layers import pooling as pooling
from ultramarine.nn.layers import positional_encoding as positional_encoding
from ultramarine.nn.layers import quantized as quantized
from ultramarine.nn.layers import recurrent as recurrent
from ultramarine.nn.layers import transformer as transformer
from ultramarine.nn.layers import upsample as upsample
from ultramarine.nn.utils import average_gradients as average_gradients
from ultramarine.nn.utils import value_and_grad as value_and_grad
