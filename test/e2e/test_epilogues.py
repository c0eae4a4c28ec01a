"""What GEMMs take into their kernels behind them against float64, each function in one kernel: on the simulated AMD chips with all their
checks, on testing's lavapipe (cooperative matrices), and on this machine's Vulkan driver (SIMT FMAs where it is lavapipe).
"""

import harness
from epilogues import Epilogue
from harness import AMD_CHIPS, CPU_DRIVERS

CASES = [
    Epilogue("pair", "nt", "d", 129, 33, 129, "f16", "f16"),
    Epilogue("pair", "nn", "s", 33, 72, 1000, "bf16", "bf16"),
    Epilogue("pair", "nt", "s", 1, 1000, 1000, "f16", "f16"),
    Epilogue("pair", "tt", "d", 17, 17, 17, "f32", "f32"),
    Epilogue("w4128", "nt", "s", 3, 17, 1152, "f16", "f16"),
    Epilogue("pair", "nn", "s", 3, 33, 129, "bf16", "bf16"),
    Epilogue("pair", "nt", "s", 16, 17, 1, "f32", "f32"),
    Epilogue("w4128", "nt", "s", 1, 33, 1152, "f16", "f16"),
    Epilogue("ropeneox64", "nt", "d", 129, 192, 129, "f16", "f16"),
    Epilogue("biasneox32", "tn", "d", 17, 96, 1000, "bf16", "bf16"),
    Epilogue("biasgptj80", "nt", "s", 17, 240, 17, "f16", "f16"),
    Epilogue("ropegptj64", "tt", "s", 33, 64, 33, "f32", "f32"),
    Epilogue("ropeneox96", "nn", "s", 17, 96, 17, "f32", "f32"),
    Epilogue("ropeneox128", "nt", "d", 1, 384, 64, "f16", "f16"),
    Epilogue("ropeneox80", "nt", "d", 129, 240, 129, "f16", "f16"),
    Epilogue("ropegptj40", "nn", "s", 33, 120, 40, "bf16", "bf16"),
    Epilogue("biasneox10", "nt", "s", 17, 50, 17, "f32", "f32"),
    Epilogue("quant", "nt", "d", 129, 33, 129, "i8", "i32"),
    Epilogue("quantone", "nn", "s", 17, 129, 17, "f16", "f32"),
    Epilogue("quantone", "nt", "s", 1, 129, 1000, "f16", "f16"),
    Epilogue("quant", "tn", "d", 33, 72, 33, "bf16", "f32"),
]
# A schedule that is asked for: two stages, whole blocks, several waves; heads, and parts of them, of what never was in shared memory; one stage and layouts that are unknown.
EVEN = [Epilogue("pair", "nt", "s", 100, 72, 449, "f16", "f16", "whole"), Epilogue("biasgptj32", "tt", "d", 33, 96, 65, "bf16", "bf16", "halves")]
HEADS = [Epilogue("ropeneox64", "nt", "s", 7, 192, 512, "f16", "f16", "registersheads")]
# Parts of heads: 8 columns of each half, and 16 pairs of neighbours.
PARTS = [[Epilogue("ropeneox128", "nt", "s", 7, 256, 512, "f16", "f16", "registersparts")], [Epilogue("biasgptj64", "nt", "s", 21, 192, 256, "f16", "f16", "registerspairs")]]
ODD = [Epilogue("pair", "nt", "s", 100, 72, 449, "f16", "f16", "halves"), Epilogue("ropeneox64", "nn", "s", 49, 192, 130, "f16", "f16", "whole")]
FORCED = {chip: HEADS + PARTS[i % 2] + (ODD if i % 2 else EVEN) for i, chip in enumerate(AMD_CHIPS) if chip != "gfx1030"}
FORCED["vulkan:lavapipe"] = [Epilogue(kind, "nt", "s", 49, n, 129, "f16", "f16", "opaque") for kind, n in (("pair", 33), ("ropegptj16", 32))]


def chosen_for(target):
    """A CDNA and an RDNA family take each case, and Vulkan's two share half of them, which a CPU computes element by element. GRETA_TEST_WHOLE=1: each takes all."""
    cases = CASES if target in ("vulkan:rdna3", "vulkan:rdna4") else harness.share_of(CASES, target, 4 if target in harness.CPU_DRIVERS else 3)
    return cases + FORCED.get(target, [])


def one_kernel(package):
    for function in harness.manifest(package)["functions"]:
        assert all(len(v["kernels"]) == 1 for v in function["variants"]), f"{function['name']} has several kernels"


results, test_case, test_together = harness.suite("epilogues", chosen_for, (*AMD_CHIPS, *CPU_DRIVERS), one_kernel)
