"""Options of attention beside each other, drawn (attention_matrix.py): a CDNA and an RDNA family have every option of each op; Vulkan's two share the ops."""

import harness
from attention_matrix import sample
from harness import AMD_FAMILIES, CPU_DRIVERS


def chosen_for(target):
    return sample(target) if target == "host" else harness.share_of(sample(target), target, 2)


results, test_case, test_together = harness.suite("attention_matrix", chosen_for, ("host", *AMD_FAMILIES, *CPU_DRIVERS), in_units=False)
