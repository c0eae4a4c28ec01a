"""A sample of what scripts/triton-libraries runs, and what its comparison rejects."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

import defects
from conftest import ROOT
from harness import WHOLE

torch = pytest.importorskip("torch", reason="Triton and torch are not installed; scripts/setup --triton")
pytest.importorskip("triton", reason="Triton and torch are not installed; scripts/setup --triton")

import triton_libraries  # noqa: E402

# Library: (package, cases)
SAMPLE = {
    "liger-kernel": ("liger_kernel", "rms_norm group_norm swiglu cross_entropy kl_div"),
    "flag-gems": ("flag_gems", "abs softmax sum_dim sort index_select"),
    "fla-core": ("fla", "fused_recurrent_hgrn"),
    "mamba-ssm": ("mamba_ssm", "chunk_products selective_state_update"),
    "torchao": ("torchao", "mixed_mm"),
}
DEVICES = "vulkan", "sim:gfx942", "sim:gfx1100"
# Each type of these takes lavapipe 3 to 6 s to compile: a device takes one of them, the others the rest.
SLOW = "sort", "chunk_products", "mixed_mm"


def types_of(case, device):
    words = list(triton_libraries.DTYPES)
    return words if WHOLE or case not in SLOW else [words[(DEVICES.index(device) + SLOW.index(case)) % len(words)]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """device -> {(library, case): [lines of the record]}, of all libraries that are installed, run once."""
    made = {}

    def run(device):
        if device not in made:
            record = tmp_path_factory.mktemp("libraries") / "record"
            # A process of its own: it makes torch's device `cuda` the CPU for good.
            driver = [ROOT / "scripts" / "vulkan-drivers", "lavapipe"] if device == "vulkan" else []
            there = [name for name, (package, _) in SAMPLE.items() if importlib.util.find_spec(package)]
            only = "|".join(f"{case} {word}" for name in there for case in SAMPLE[name][1].split() for word in types_of(case, device))
            command = [*driver, sys.executable, ROOT / "scripts/lib/triton_libraries.py", f"--device={device}", f"--record={record}", f"--only=^({only})$"]
            done = subprocess.run([*command, *(f"--library={name}" for name in there)], capture_output=True, text=True, timeout=900)
            lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
            made[device] = done, lines
        return made[device]

    return run


@pytest.mark.parametrize("device", [pytest.param(device, marks=pytest.mark.xdist_group(f"libraries-{device}")) for device in DEVICES])
@pytest.mark.parametrize("library", SAMPLE)
def test_sample(ran, driver_parts, library, device):
    package, cases = SAMPLE[library]
    if not importlib.util.find_spec(package):
        pytest.skip(f"{package} is not installed; scripts/setup --libraries")
    if device == "vulkan" and "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    done, lines = ran(device)
    mine = [line for line in lines if line["library"] == library]
    assert {(line["case"], line["dtype"]) for line in mine} >= {(case, dtype) for case in cases.split() for dtype in types_of(case, device)}, done.stdout + done.stderr
    assert not [line for line in mine if line["reason"]], done.stdout + done.stderr


def problem_of(dtype, right):
    """Returns the comparison's verdict on a result in place of `right`; both are NumPy's, in float64."""

    def problem(result):
        try:
            triton_libraries.compare(dtype, [(torch.from_numpy(np.asarray(result, np.float64)).to(dtype), torch.from_numpy(right))])
        except AssertionError as error:
            return str(error)
        return ""

    return problem


@pytest.mark.parametrize("size", [1e-4, 1, 1e3])
@pytest.mark.parametrize("word, dtype", triton_libraries.DTYPES.items())
def test_wrong_results_are_rejected(word, dtype, size):
    """However small results are: gradients of a mean loss are 0.01."""
    right = np.random.default_rng(1).standard_normal((8, 96)) * size
    problem = problem_of(dtype, right)
    assert not problem(right)
    narrow = {"f16": np.float16, "f32": np.float32}.get(word, defects.NARROWER[np.dtype(np.float16)])
    assert not defects.unseen(problem, right, narrow)


def test_one_result_too_few_is_an_error():
    with pytest.raises(ValueError, match="zip"):
        triton_libraries.differentiate(lambda x: x * 2, lambda x: (x * 2, x * 3), [torch.ones(4)])


def test_infinities_and_integers_are_compared():
    right = torch.tensor([1.0, torch.inf, -torch.inf, torch.nan])
    compare = triton_libraries.compare
    compare(torch.float32, [(right.clone(), right), (torch.arange(4), torch.arange(4))])
    for place in range(4):
        wrong = right.clone()
        wrong[place] = 7
        with pytest.raises(AssertionError):
            compare(torch.float32, [(wrong, right)])
    with pytest.raises(AssertionError, match="1 of 4 elements"):
        compare(torch.float32, [(torch.tensor([0, 1, 2, 4]), torch.arange(4))])
    with pytest.raises(AssertionError, match="shape"):
        compare(torch.float32, [(right[:3], right)])
