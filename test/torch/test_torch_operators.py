"""Operators on torch.device("rdna"): a sample of torch's own database, and what has kernels of its own."""

import importlib.machinery
import importlib.util
import json
import subprocess
import sys

import pytest
from conftest import ROOT

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


def load_script(monkeypatch, *options):
    """scripts/torch-conformance as a module, and its options."""
    loader = importlib.machinery.SourceFileLoader("torch_conformance", str(ROOT / "scripts" / "torch-conformance"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("torch_conformance", loader))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", ["torch-conformance", *options])
    return module, module.parse()


# Operators of each family, and one that has no kernel.
CASES = {
    "add/float32": "native",
    "softmax/float16": "native",
    "nn.functional.layer_norm/float32": "native",
    "cumsum/int64": "native",
    "fft.rfft/float32": "native",
    "nn.functional.dropout/float32": "native",
    "linalg.qr/float32": "fallback",
}


def test_a_sample_of_the_database(rdna, monkeypatch):
    torch = rdna
    torch.rdna.set_fallback(True)
    names = ",".join(name.split("/")[0] for name in CASES)
    script, options = load_script(monkeypatch, f"--ops={names}", "--dtypes=f32,f16,i64", "--grad")
    cases = script.Databases(options).cases
    records = {name: script.run_case(torch, f"op/{name}", cases[f"op/{name}"][1]) for name in CASES}
    assert {name: record["status"] for name, record in records.items()} == CASES, records


def test_what_is_wrong_is_found(rdna, monkeypatch):
    torch = rdna
    script, _ = load_script(monkeypatch)

    def samples():
        yield lambda device, wide=False: torch.ones(3, device=device) * (1 if device == "cpu" else 1.01)

    record = script.run_case(torch, "op/add/float32", samples)
    assert record["status"] == "wrong" and "Mismatched elements: 3 / 3" in record["reason"]


def test_tables(tmp_path):
    output = tmp_path / "cases.jsonl"
    records = [{"case": f"op/{name}/float32", "status": status, "family": "unary", "fallbacks": {}, "reason": "why"} for name, status in (("sin", "native"), ("cos", "wrong"))]
    output.write_text("".join(json.dumps(record) + "\n" for record in records))
    run = subprocess.run([sys.executable, ROOT / "scripts" / "torch-conformance", "--table", f"--output={output}"], capture_output=True, text=True)
    assert "| op: unary | 2 | 1 | 0 | 1 | 0 | 0 |" in run.stdout and "wrong: op/cos/float32: why" in run.stdout


@pytest.mark.parametrize(
    "transposed, shape, weight, options",
    (
        (False, (2, 3, 9, 8), (4, 3, 3, 3), dict(stride=2, padding=1)),
        (True, (1, 4, 9), (4, 2, 3), dict(stride=2, padding=1, output_padding=1, groups=2)),
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


@pytest.mark.parametrize("isCausal, hasBias, heads", ((True, False, 1), (False, True, 2)), ids=("causal", "bias"))
def test_attention(rdna, isCausal, hasBias, heads):
    torch = rdna
    results = []
    for device in ("cpu", "rdna"):
        torch.manual_seed(0)
        q, k, v = torch.randn(2, 2, 19, 12), torch.randn(2, heads, 21, 12), torch.randn(2, heads, 21, 12)
        bias = torch.randn(1, 1, 19, 21).to(device) if hasBias else None
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
