"""Elementwise work behind attention against float64, each function in one kernel: on the simulated AMD families with all their checks, on testing's lavapipe
(cooperative matrices) and on this machine's Vulkan driver.
"""

import harness
from attention_epilogues import Epilogue, SplitEpilogue
from harness import AMD_FAMILIES, CPU_DRIVERS

# Kind, type, B, Hq, Hkv, S, T, D.
CASES = [
    Epilogue("gatenarrow", "f16", 2, 2, 1, 33, 70, 64),
    Epilogue("causalgatesumtokensfirst", "f16", 2, 4, 2, 40, 70, 64),
    Epilogue("masksumnumber", "bf16", 1, 2, 1, 20, 70, 80),
    Epilogue("lengthsheadssumboth", "f16", 4, 4, 2, 20, 70, 64),
    Epilogue("causalrownarrow", "f16", 1, 2, 2, 33, 40, 128),
    Epilogue("gatesum", "f32", 1, 2, 1, 17, 64, 64),
    SplitEpilogue("causallengthsgatesumtokensfirst", "f16", 4, 4, 2, 1, 300, 64),
    SplitEpilogue("numberheadsboth", "f16", 2, 6, 2, 3, 200, 80),
]
# Cases that drivers compile quickly for a CPU.
SMALL = [
    Epilogue("causalgatesumtokensfirst", "f16", 2, 4, 2, 9, 20, 16),
    Epilogue("maskheadsnumberboth", "f16", 1, 2, 1, 9, 20, 16),
    SplitEpilogue("gaterowsum", "f16", 2, 4, 2, 2, 90, 16),
]


def chosen_for(target):
    return SMALL if target in CPU_DRIVERS else harness.share_of(CASES, target, 3)


results, test_case, test_together = harness.suite("attention_epilogues", chosen_for, (*AMD_FAMILIES, *CPU_DRIVERS), harness.one_kernel)
