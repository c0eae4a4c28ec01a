"""Products in tiles against float64: element types, transposes, odd shapes, what is fused behind them, and every schedule that the compiler
knows, on the simulated AMD chips with all their checks, on testing's lavapipe (cooperative matrices) under its validation layer, and on
this machine's Vulkan driver (SIMT FMAs where it is lavapipe). test_numerics.py and test_skinny.py have more shapes of what is chosen
without `greta.config`.
"""

import harness
from harness import AMD_CHIPS, CPU_DRIVERS
from tiled import SCHEDULES, Product

CDNA = AMD_CHIPS[:3]
WITHOUT_UNIT = ("gfx1030", "vulkan:portable")
LAYOUTS = ("nn", "nt", "tn", "tt")
# Together all pairs of type, layout and edge: an extent below, at and above a tile's, in M, N and K.
SHAPES = [
    Product("plain", "nn", "d", 1, 17, 129, "f16", "f16"),
    Product("plain", "nt", "d", 17, 129, 1, "f16", "f32"),
    Product("bias", "tn", "s", 129, 1, 17, "f16", "f16"),
    Product("layer", "tt", "s", 129, 17, 1000, "f16", "f16"),
    Product("swiglu", "nt", "d", 129, 130, 129, "f16", "f16"),
    Product("cast", "nn", "s", 17, 1000, 17, "f16", "f16"),
    Product("plain", "nt", "s", 1000, 17, 64, "f16", "f16"),
    Product("plain", "tt", "d", 17, 129, 129, "bf16", "bf16"),
    Product("bias", "nt", "d", 1, 1000, 1000, "bf16", "bf16"),
    Product("swiglu", "nn", "s", 129, 17, 1, "bf16", "bf16"),
    Product("plain", "tn", "d", 17, 1, 1000, "bf16", "f32"),
    Product("plain", "nn", "s", 64, 64, 128, "bf16", "f32"),
    Product("plain", "nn", "d", 129, 129, 17, "f32", "f32"),
    Product("bias", "nt", "s", 17, 17, 129, "f32", "f32"),
    Product("layer", "tn", "s", 17, 129, 1, "f32", "f32"),
    Product("swiglu", "tt", "d", 1, 17, 1000, "f32", "f32"),
    Product("plain", "nt", "d", 17, 33, 1000, "i8", "i32"),
    Product("plain", "tn", "s", 129, 17, 129, "i8", "i32"),
]


def scheduled(names, dtypes, first):
    """Each schedule once; the types, layouts and sizes rotate, from another one on every target: depths of an even and an odd number of
    blocks, of one block and of a part of one; aligned rows and rows that nothing aligns."""
    out = {"f16": "f16", "bf16": "f32", "f32": "f32", "i8": "i32"}
    sizes = [(100, 72, 129), (49, 104, 512), (70, 65, 448), (33, 100, 24)]
    for i, name in enumerate(names):
        dtype = dtypes[(first + i) % len(dtypes)]
        m, n, k = sizes[(first + i // 2) % 4]
        kind = "plain" if dtype == "i8" else ("bias", "plain", "swiglu")[(first + i) % 3]
        yield Product(kind, LAYOUTS[(first + i + i // 4) % 4], "ds"[i % 2], m, n, k, dtype, out[dtype], name)


def split_for(target):
    """In parts along K: with matrices read ahead and just in time, by SIMT FMAs, in a skinny GEMM; K within a part, at its end, beyond it; few and many parts."""
    small = target == "vulkan:lavapipe"
    products = [
        Product("swiglu", "nt", "d", 17 if small else 70, 65, 1000, "f16", "f16", "splitsingle" if small else "splithalves"),
        Product("bias", "nt", "s", 60, 40, 520, "f16", "f16", "splitslices"),
        Product("plain", "nn", "d", 100, 17, 129, "f16", "f16", "splitsingle"),
        Product("bias", "nt", "s", 3, 65, 4096, "f16", "f16", "split"),
        Product("plain", "nn", "s", 1, 17, 1000, "f16", "f32", "split"),
        Product("layer", "tt", "s", 17, 33, 129, "f32", "f32", "split"),
        Product("plain", "tn", "d", 17, 33, 1000, "i8", "i32", "splitmany"),
    ]
    return products[3:] if target in WITHOUT_UNIT else products


# K contiguous and aligned in both operands, as direct loads want it: to 16 bytes or, the last, to 4; odd numbers of blocks, none, and a part of one.
DIRECT = [
    Product("bias", "nt", "d", 129, 130, 1000, "f16", "f16", "directthree"),
    Product("plain", "nt", "s", 70, 65, 448, "bf16", "f32", "direct"),
    Product("plain", "nt", "d", 17, 129, 512, "i8", "i32", "directwhole"),
    Product("plain", "nt", "s", 100, 17, 36, "f32", "f32", "directthree"),
    Product("plain", "nt", "d", 1, 72, 24, "f16", "f32", "direct"),
    Product("swiglu", "nt", "s", 129, 17, 1000, "f16", "f16", "directsplit"),
    Product("plain", "nt", "d", 65, 100, 1002, "f16", "f16", "directwhole"),
]


# Operands that lie across K, as gfx950's transposed loads read them: straight to shared memory and through registers, by 8 and by 16 bytes.
TRANSPOSED = [
    Product("bias", "nn", "d", 129, 136, 1000, "f16", "f16", "directthree"),
    Product("plain", "tn", "s", 64, 72, 448, "bf16", "f32", "direct"),
    Product("plain", "tt", "s", 128, 65, 512, "i8", "i32", "directwhole"),
    Product("plain", "nn", "d", 17, 144, 500, "i8", "i32", "three"),
    Product("swiglu", "tn", "s", 40, 72, 129, "f16", "f16", "wide"),
]


# Operands in registers: K contiguous and made of blocks; rows of B that nothing aligns, by elements.
IN_REGISTERS = [
    Product("bias", "nt", "s", 3, 130, 1024, "f16", "f16", "registersslices"),
    Product("swiglu", "nt", "d", 17, 65, 512, "f16", "f16", "registers"),
    Product("plain", "nt", "s", 33, 100, 768, "i8", "i32", "registersodd"),
]


def chosen_for(target):
    """A CDNA and an RDNA family take each shape; two that follow each other take all schedules, parts along K and operands in registers.
    GRETA_TEST_WHOLE=1: every family takes all."""
    forced = [s for s in SCHEDULES if not SCHEDULES[s].opaque and not SCHEDULES[s].direct and SCHEDULES[s].split == 1 and SCHEDULES[s].stages]
    if target == "gfx1030":
        return harness.share_of(SHAPES, target, 3) + split_for(target)
    if target in AMD_CHIPS:
        i = AMD_CHIPS.index(target)
        names = forced if target in CDNA else [s for s in forced if SCHEDULES[s].instruction == "narrow"]
        dtypes = ("f16", "bf16", "f32", "i8") if target in CDNA else ("f16", "bf16", "i8")
        direct = DIRECT if target in ("gfx942", "gfx950") else []
        direct = direct + TRANSPOSED if target == "gfx950" else direct
        mine = list(scheduled(names, dtypes, i)), split_for(target), IN_REGISTERS
        return harness.share_of(SHAPES, target, 3) + [product for products in mine for product in harness.share_of(products, target, 2)] + direct
    if target == "vulkan:portable":
        return SHAPES[1::2] + split_for(target)
    names = ("singlewhole", "whole", "halves", "opaque", "opaquewaves")
    if target == "vulkan:lavapipe" and not harness.WHOLE:  # which compiles them for a CPU: each schedule has one type
        return SHAPES[::4] + list(scheduled(names, ("f16", "i8"), 0)) + split_for(target) + IN_REGISTERS
    return SHAPES[::2] + [p for name in names for p in scheduled([name, name], ("f16", "i8"), 0)] + split_for(target) + IN_REGISTERS


results, test_case, test_together = harness.suite("matmul", chosen_for, (*AMD_CHIPS, *CPU_DRIVERS))
