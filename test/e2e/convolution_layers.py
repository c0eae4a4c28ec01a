"""The distinct convolutions of torchvision's ResNet-50, MobileNet-v3 (large and small) and of Stable Diffusion 1.5's UNet, as cases of convolution.py: one image
of 224 x 224, or latents of 64 x 64, in f16 with a bias in f32 (a batch norm is folded into weight and bias).

Maps are halved until a layer has at most MOST products, as a simulator would take minutes; channels, taps, strides and groups are the model's.
"""

import collections
import dataclasses

from convolution import Convolution

MOST = 500_000_000  # multiply-adds


@dataclasses.dataclass(frozen=True)
class Layer:
    """`extent` x `extent` positions of `channels` channels, to `outputs` channels by `taps` x `taps` taps around each `stride`-th position."""

    extent: int
    channels: int
    outputs: int
    taps: int = 1
    stride: int = 1
    groups: int = 1

    def result(self):
        """Rows, and columns, of the result."""
        return (self.extent - 1) // self.stride + 1

    def products(self):
        return self.result() ** 2 * self.taps**2 * self.channels // self.groups * self.outputs

    def cut(self):
        layer = self
        while layer.products() > MOST:
            layer = dataclasses.replace(layer, extent=layer.extent // 2)
        return layer

    def case(self):
        padding = self.taps // 2
        window = [self.stride] * 2 + [padding] * 4 + [1, 1, self.groups]
        image, taps = (1, self.extent, self.extent, self.channels), (self.outputs, self.taps, self.taps, self.channels // self.groups)
        return Convolution("bias", "s", *("x".join(map(str, numbers)) for numbers in (image, taps, window)), "f16", "f16")


def resnet50():
    yield Layer(224, 3, 64, taps=7, stride=2)
    extent, channels = 56, 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        yield Layer(extent, channels, 4 * width, stride=stride)
        for _ in range(blocks):
            yield Layer(extent, channels, width)
            yield Layer(extent, width, width, taps=3, stride=stride)
            extent, channels, stride = extent // stride, 4 * width, 1
            yield Layer(extent, width, channels)


# A row is a block: taps, channels within, outputs, whether it squeezes, stride.
LARGE = [
    *((3, 16, 16, False, 1), (3, 64, 24, False, 2), (3, 72, 24, False, 1), (5, 72, 40, True, 2), (5, 120, 40, True, 1), (5, 120, 40, True, 1)),
    *((3, 240, 80, False, 2), (3, 200, 80, False, 1), (3, 184, 80, False, 1), (3, 184, 80, False, 1), (3, 480, 112, True, 1), (3, 672, 112, True, 1)),
    *((5, 672, 160, True, 2), (5, 960, 160, True, 1), (5, 960, 160, True, 1)),
]
SMALL = [
    *((3, 16, 16, True, 2), (3, 72, 24, False, 2), (3, 88, 24, False, 1), (5, 96, 40, True, 2), (5, 240, 40, True, 1), (5, 240, 40, True, 1)),
    *((5, 120, 48, True, 1), (5, 144, 48, True, 1), (5, 288, 96, True, 2), (5, 576, 96, True, 1), (5, 576, 96, True, 1)),
]


def in_eights(number):
    """The next multiple of 8, the lower one if it is at most a tenth less."""
    lower = max(8, int(number + 4) // 8 * 8)
    return lower if lower >= 0.9 * number else lower + 8


def mobilenet_v3(blocks):
    yield Layer(224, 3, 16, taps=3, stride=2)
    extent, channels = 112, 16
    for taps, within, outputs, squeezes, stride in blocks:
        if within != channels:
            yield Layer(extent, channels, within)
        yield Layer(extent, within, within, taps, stride, groups=within)
        extent //= stride
        if squeezes:
            squeezed = in_eights(within // 4)
            yield from (Layer(1, within, squeezed), Layer(1, squeezed, within))
        yield Layer(extent, within, outputs)
        channels = outputs
    yield Layer(extent, channels, 6 * channels)


def stable_diffusion():
    def residual(channels, outputs):
        yield from (Layer(extent, channels, outputs, taps=3), Layer(extent, outputs, outputs, taps=3))
        if channels != outputs:
            yield Layer(extent, channels, outputs)

    def attention():
        """The layers before and behind it."""
        yield from [Layer(extent, channels, channels)] * 2

    extent, channels = 64, 320
    yield Layer(extent, 4, channels, taps=3)
    skipped = [channels]
    for outputs in (320, 640, 1280, 1280):
        for _ in range(2):
            yield from residual(channels, outputs)
            channels = outputs
            skipped.append(channels)
            if extent > 8:
                yield from attention()
        if extent > 8:
            yield Layer(extent, channels, channels, taps=3, stride=2)
            extent //= 2
            skipped.append(channels)
    yield from residual(channels, channels)
    yield from attention()
    yield from residual(channels, channels)
    for outputs in (1280, 1280, 640, 320):
        for _ in range(3):
            yield from residual(channels + skipped.pop(), outputs)
            channels = outputs
            if extent > 8:
                yield from attention()
        if skipped:
            extent *= 2
            yield Layer(extent, channels, channels, taps=3)
    yield Layer(extent, channels, 4, taps=3)


def layers():
    """{layer as it is computed: the models' names}, each layer once."""
    models = {"ResNet-50": resnet50(), "MobileNet-v3 large": mobilenet_v3(LARGE), "MobileNet-v3 small": mobilenet_v3(SMALL), "Stable Diffusion": stable_diffusion()}
    found = collections.defaultdict(list)
    for model, every in models.items():
        for layer in dict.fromkeys(one.cut() for one in every):
            found[layer].append(model)
    return dict(found)
