"""Operators on torch.device("rdna"): a sample of torch's own database, and what has kernels of its own."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


def test_a_sample_of_the_database(tmp_path):
    pytest.importorskip("torch")
    output = tmp_path / "cases.jsonl"
    command = [sys.executable, ROOT / "scripts" / "torch-conformance", "--sample=10", "--seed=5", "--dtypes=f32,i64", f"--output={output}"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    records = [json.loads(line) for line in output.read_text().splitlines()]
    assert len(records) == 10 and "| all | 10 |" in run.stdout
    assert not [record for record in records if record["status"] in ("wrong", "error")]
    assert sum(record["status"] == "native" for record in records) >= 5


@pytest.mark.parametrize(
    "transposed, shape, weight, options",
    (
        (False, (2, 3, 9, 8), (4, 3, 3, 3), dict(stride=2, padding=1)),
        (False, (2, 4, 20), (6, 2, 3), dict(groups=2, dilation=2)),
        (True, (1, 4, 5, 5), (4, 2, 3, 3), dict(stride=2, padding=1, output_padding=1, groups=2)),
        (False, (1, 2, 4, 5, 6), (3, 2, 2, 3, 1), dict(padding=1)),
    ),
)
def test_convolutions(rdna, transposed, shape, weight, options):
    torch = rdna
    function = getattr(torch.nn.functional, f"conv{'_transpose' if transposed else ''}{len(shape) - 2}d")
    results = []
    for device in ("cpu", "rdna"):
        torch.manual_seed(0)
        x, w, b = (torch.randn(size) for size in (shape, weight, (weight[1] * options.get("groups", 1) if transposed else weight[0],)))
        arguments = [one.to(device).requires_grad_() for one in (x, w, b)]
        out = function(*arguments, **options)
        out.square().sum().backward()
        results.append([out, *(one.grad for one in arguments)])
    for one, other in zip(*results):
        torch.testing.assert_close(other.cpu(), one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("isCausal, hasBias, heads", ((True, False, 2), (False, True, 1)))
def test_attention(rdna, isCausal, hasBias, heads):
    torch = rdna
    results = []
    for device in ("cpu", "rdna"):
        torch.manual_seed(0)
        q, k, v = torch.randn(2, 2, 37, 24), torch.randn(2, heads, 41, 24), torch.randn(2, heads, 41, 24)
        bias = torch.randn(1, 1, 37, 41).to(device) if hasBias else None
        arguments = [one.to(device).requires_grad_() for one in (q, k, v)]
        out = torch.nn.functional.scaled_dot_product_attention(*arguments, attn_mask=bias, is_causal=isCausal, enable_gqa=heads != 2)
        out.square().sum().backward()
        results.append([out, *(one.grad for one in arguments)])
    for one, other in zip(*results):
        torch.testing.assert_close(other.cpu(), one, rtol=1e-4, atol=1e-4)


def test_attention_is_never_quadratic_unasked(rdna):
    torch = rdna
    q = torch.randn(1, 1, 8, 16, dtype=torch.float64).to("rdna")
    with pytest.raises(NotImplementedError, match="attention_math"):
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
