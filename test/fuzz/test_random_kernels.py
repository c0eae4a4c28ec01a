"""Random Triton kernels for a moment, beside Triton's interpreter; docs/internals/fuzzing.md records long runs."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import random_kernels  # noqa: E402
import random_runs  # noqa: E402
from kernel_builder import PART, Region  # noqa: E402


def test_random_kernels_agree_with_the_interpreter():
    outcomes = list(random_kernels.run_all(seed=1, count=10, targets=("gfx942", "gfx1100"), batch=10))
    outcomes += random_kernels.run_all(seed=1, count=4, targets=("vulkan",), batch=4)
    wrong = [f"kernel {index} on {target}: {what}: {detail}" for target, index, what, detail in outcomes if what not in ("right", "refused")]
    assert not wrong, "\n".join(wrong)
    assert sum(what == "right" for _, _, what, _ in outcomes) >= 22


# Kernels of seed 1 that have a place for each defect and show it.
SHOWING = {"late counter": 16, "conditional store": 8, "in place": 33, "far rows": 5, "wide mask": 3, "double rounding": 41}


def test_defects_are_found():
    assert set(SHOWING) == set(random_kernels.PLANTS)
    with_them = {k: random_kernels.kernel(1, k, defect) for defect, k in SHOWING.items()}
    assert all(one.planted for one in with_them.values())
    assert random_kernels.showing(random_kernels.Interpreted(1), with_them) == set(SHOWING.values())


def test_every_defect_has_its_place():
    """In 1,000 kernels each kind of defect that GRETA had could be, many times over."""
    kernels = [random_kernels.kernel(1, k) for k in range(1000)]
    for defect in random_kernels.PLANTS:
        assert sum(defect in one.used for one in kernels) >= 15, defect
    assert sum(8 * len(one.arguments) + 12 > 128 for one in kernels) >= 40


def arrays():
    made = {"y": np.zeros(PART * random_kernels.PROGRAMS + 64, np.uint8), "z": np.zeros(8, np.int32), "za": np.zeros(8, np.int32)}
    made["y"][:4].view(np.float32)[:] = 1.0
    made["y"][16:20].view(np.float32)[:] = 1e-3
    made["y"][32:34].view(np.float16)[:] = np.nan
    return made


@pytest.mark.parametrize(
    "change,said",
    [
        (lambda a: a["y"][:4].view(np.float32).fill(1.0005), ""),
        (lambda a: a["y"][32:34].view(np.int16).fill(0x7E01), ""),
        (lambda a: a["y"][:4].view(np.float32).fill(1.002), "1 of 1 f32 at byte 0 of program 0"),
        (lambda a: a["y"][:4].view(np.float32).fill(np.nan), "1 of 1 f32 at byte 0 of program 0"),
        (lambda a: a["y"][32:34].fill(0), "1 of 1 f16 at byte 32 of program 0"),
        (lambda a: a["y"][PART + 40 :][:4].fill(1), "1 of 1 i32 at byte 40 of program 1"),
        (lambda a: a["y"][8:9].fill(1), "program 0 wrote where it should not"),
        (lambda a: a["y"][-1:].fill(1), "1 words that atomics change"),
        (lambda a: a["za"][3:4].fill(1), "za: 1 elements, the first of program 0 at 3"),
    ],
)
def test_a_difference_is_found(change, said):
    class One:
        regions = [Region(0, "f32", 1, 16), Region(32, "f16", 1), Region(40, "i32", 1)]

    right, got = arrays(), arrays()
    assert random_kernels.differences(One, right, got) == ""
    change(got)
    assert random_kernels.differences(One, right, got).startswith(said) and bool(said) == bool(random_kernels.differences(One, right, got))


def test_what_is_said_of_a_defect(capsys):
    assert random_runs.report_planted("in place", [(0, True, True), (1, True, False), (2, False, False)]) == 0
    assert random_runs.report_planted("clamp", [(0, True, False)]) == 1
    assert capsys.readouterr().out == "in place: 2 of 3 programs have it, 1 show it\nclamp: 1 of 1 programs have it, 0 show it\n"
