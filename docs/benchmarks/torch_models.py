"""Networks that docs/benchmarks/torch_gpu.py and torch_curve.py train: encoders of BERT's shape, decoders of Llama's and GPT's, in torch's own words, so that nothing else need be there."""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    keys: int  # heads of keys and values
    inner: int
    words: int


BERT_BASE = Shape(layers=12, width=768, heads=12, keys=12, inner=3072, words=30522)
LLAMA_1B = Shape(layers=16, width=2048, heads=32, keys=8, inner=8192, words=128256)
TINY_BERT = Shape(layers=1, width=64, heads=4, keys=4, inner=128, words=100)
TINY_LLAMA = Shape(layers=1, width=64, heads=4, keys=2, inner=128, words=100)
CHARACTERS = Shape(layers=6, width=384, heads=6, keys=6, inner=1536, words=256)
TINY_CHARACTERS = Shape(layers=2, width=64, heads=4, keys=4, inner=128, words=256)


class EncoderLayer(nn.Module):
    """Attention and two layers with GELU, each added to its input and normalised behind, as in BERT."""

    def __init__(self, of: Shape):
        super().__init__()
        self.heads = of.heads
        self.query, self.key, self.value, self.output = (nn.Linear(of.width, of.width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(of.width, of.inner), nn.Linear(of.inner, of.width)
        self.norms = nn.ModuleList(nn.LayerNorm(of.width, eps=1e-12) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value))
        attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = self.norms[0](x + self.output(attended))
        return self.norms[1](x + self.narrow(functional.gelu(self.wide(x))))


class Encoder(nn.Module):
    def __init__(self, of: Shape, most: int = 512):
        super().__init__()
        self.words, self.places = nn.Embedding(of.words, of.width), nn.Embedding(most, of.width)
        self.norm = nn.LayerNorm(of.width, eps=1e-12)
        self.layers = nn.ModuleList(EncoderLayer(of) for _ in range(of.layers))
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.words(ids) + self.places.weight[: ids.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return x


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class DecoderLayer(nn.Module):
    """Causal attention with rotary positions and SwiGLU, each behind RMSNorm and added to its input, as in Llama."""

    def __init__(self, of: Shape):
        super().__init__()
        head = of.width // of.heads
        self.heads, self.keys = of.heads, of.keys
        self.query, self.key, self.value, self.output = (
            nn.Linear(of.width, n, bias=False) for n in (of.heads * head, of.keys * head, of.keys * head, of.width)
        )
        self.gate, self.up, self.down = nn.Linear(of.width, of.inner, bias=False), nn.Linear(of.width, of.inner, bias=False), nn.Linear(of.inner, of.width, bias=False)
        self.norms = nn.ModuleList(nn.RMSNorm(of.width, eps=1e-5) for _ in range(2))

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        normed = self.norms[0](x)
        q, k, v = (
            layer(normed).unflatten(-1, (heads, -1)).transpose(1, 2) for layer, heads in ((self.query, self.heads), (self.key, self.keys), (self.value, self.keys))
        )
        q, k = rotated(q, cos, sin).to(v.dtype), rotated(k, cos, sin).to(v.dtype)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.keys)
        x = x + self.output(attended.transpose(1, 2).flatten(2))
        normed = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Decoder(nn.Module):
    """The loss of the next words; the table of words is the last layer's weight as well."""

    def __init__(self, of: Shape):
        super().__init__()
        self.head = of.width // of.heads
        self.words = nn.Embedding(of.words, of.width)
        self.layers = nn.ModuleList(DecoderLayer(of) for _ in range(of.layers))
        self.norm = nn.RMSNorm(of.width, eps=1e-5)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        rates = torch.exp(torch.arange(0, self.head, 2, device=ids.device) * (-math.log(500000.0) / self.head))
        angles = torch.arange(ids.shape[1], device=ids.device)[:, None] * torch.cat((rates, rates))
        cos, sin = angles.cos(), angles.sin()
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        logits = functional.linear(self.norm(x), self.words.weight)
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


class GptLayer(nn.Module):
    """Causal attention and two layers with GELU, each behind LayerNorm and added to its input, without biases, as in nanoGPT."""

    def __init__(self, of: Shape):
        super().__init__()
        self.heads = of.heads
        self.norms = nn.ModuleList(nn.LayerNorm(of.width, bias=False) for _ in range(2))
        self.inputs, self.output = nn.Linear(of.width, 3 * of.width, bias=False), nn.Linear(of.width, of.width, bias=False)
        self.wide, self.narrow = nn.Linear(of.width, of.inner, bias=False), nn.Linear(of.inner, of.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.inputs(self.norms[0](x)).chunk(3, -1))
        x = x + self.output(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x))))


class Gpt(nn.Module):
    """The loss of the next words of sequences of at most `most` + 1; the table of words is the last layer's weight as well."""

    def __init__(self, of: Shape, most: int):
        super().__init__()
        self.words, self.places = nn.Embedding(of.words, of.width), nn.Embedding(most, of.width)
        self.layers = nn.ModuleList(GptLayer(of) for _ in range(of.layers))
        self.norm = nn.LayerNorm(of.width, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * of.layers) if "output" in name or "narrow" in name else 0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        given, expected = ids[:, :-1], ids[:, 1:]
        x = self.words(given) + self.places.weight[: given.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return functional.cross_entropy(functional.linear(self.norm(x), self.words.weight).flatten(0, 1), expected.flatten())
