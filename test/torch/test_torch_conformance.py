"""scripts/torch-conformance: a sample of torch's own database on torch.device("rdna"), and what the script says of wrong results."""

import collections
import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import time
import types
import unittest

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
    torch.rdna.forbid_fallback(False)
    names = ",".join(name.split("/")[0] for name in CASES)
    script, options = load_script(monkeypatch, f"--ops={names}", "--dtypes=f32,f16,i64", "--grad")
    cases = script.Databases(options).cases
    records = {name: script.run_case(torch, f"op/{name}", cases[f"op/{name}"][1]) for name in CASES}
    assert {name: record["status"] for name, record in records.items()} == CASES, records
    # With the CPU forbidden what needs it is an error, and what is native stays so.
    torch.rdna.forbid_fallback(True)
    forbidden = {name: script.run_case(torch, f"op/{name}", cases[f"op/{name}"][1])["status"] for name in ("add/float32", "linalg.qr/float32")}
    assert forbidden == {"add/float32": "native", "linalg.qr/float32": "error"}


def test_torchs_own_test_classes(rdna, monkeypatch):
    """A class of torch's for tests of any device runs on rdna, with what torch lets a device name: operators that it takes, cases to leave out, and what is to be expected of an operator."""
    torch = rdna
    script, _ = load_script(monkeypatch)
    script.import_databases()
    from torch.testing._internal import common_device_type as devices
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_utils import TestCase
    from torch.testing._internal.opinfo.core import DecorateInfo

    if not hasattr(devices.PrivateUse1TestBase, "set_test_configs"):
        pytest.skip("a device of torch 2.11 says nothing to these classes")

    class Operators(TestCase):
        @devices.ops(op_db, allowed_dtypes=(torch.float32, torch.int64))
        def test_like_the_cpu(self, device, dtype, op):
            for sample in list(op.sample_inputs(device, dtype))[:2]:
                there = sample.transform(lambda one: one.cpu() if isinstance(one, torch.Tensor) else one)
                self.assertEqual(op(sample.input, *sample.args, **sample.kwargs).cpu(), op(there.input, *there.args, **there.kwargs))

        @devices.dtypes(torch.float16)
        @devices.onlyAccelerator
        def test_sums(self, device, dtype):
            self.assertEqual(torch.ones(3, device=device, dtype=dtype).sum().item(), 3)

        def test_left_out(self, device):
            raise AssertionError

    base, scope = devices.PrivateUse1TestBase, {"Operators": Operators, "__name__": __name__}
    refused = DecorateInfo(unittest.expectedFailure, "Operators", "test_like_the_cpu")
    base.set_test_configs(op_allowlist={"mul", "nn.functional.gelu", "linalg.qr"}, op_overrides={"linalg.qr": [refused]}, test_exclusions={"Operators": ["test_left_out"]})
    try:
        devices.instantiate_device_type_tests(Operators, scope, only_for="rdna")
        (made,) = (one for name, one in scope.items() if name.startswith("Operators"))
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(made).run(result)
    finally:
        base.set_test_configs()
    assert result.wasSuccessful(), result.failures + result.errors
    assert (result.testsRun, [str(case).split()[0] for case, _ in result.expectedFailures]) == (5, ["test_like_the_cpu_linalg_qr_rdna_float32"])


def test_what_is_wrong_is_found(rdna, monkeypatch):
    torch = rdna
    script, _ = load_script(monkeypatch)

    def samples():
        yield lambda device, wide=False: torch.ones(3, device=device) * (1 if device == "cpu" else 1.01)

    record = script.run_case(torch, "op/add/float32", samples)
    assert record["status"] == "wrong" and "Mismatched elements: 3 / 3" in record["reason"]

    def samples_of_one_device():
        yield lambda device, wide=False: torch.ones(3)

    record = script.run_case(torch, "op/add/float32", samples_of_one_device)
    assert record["status"] == "wrong" and record["reason"] == "results are on cpu"


def test_a_sample_that_the_cpu_refuses_is_counted(rdna, monkeypatch):
    torch = rdna
    script, _ = load_script(monkeypatch)

    def refused(device, wide=False):
        raise RuntimeError("no such sample")

    def samples():
        yield refused
        yield lambda device, wide=False: torch.ones(3, device=device)

    record = script.run_case(torch, "op/ones/float32", samples)
    assert (record["status"], record["samples"], record["refused"]) == ("native", 1, 1)


def test_arguments_lie_as_they_did(rdna, monkeypatch):
    torch = rdna
    script, _ = load_script(monkeypatch)
    x = torch.arange(24.0).reshape(4, 6).t()[1:4, ::2]
    there = script.moved(torch, [x], "rdna")[0]
    assert (there.stride(), there.storage_offset()) == (x.stride(), x.storage_offset()) and torch.equal(there.cpu(), x)


def test_tables(tmp_path):
    output = tmp_path / "cases.jsonl"
    cases = (("sin/float32", "native"), ("sin/float16", "fallback"), ("exp/float32", "native"), ("cos/float32", "wrong"))
    records = [{"case": f"op/{name}", "status": status, "family": "unary", "fallbacks": {}, "reason": "why"} for name, status in cases]
    output.write_text("".join(json.dumps(record) + "\n" for record in records))
    script = [sys.executable, ROOT / "scripts" / "torch-conformance", f"--output={output}"]
    run = subprocess.run([*script, "--table"], capture_output=True, text=True)
    assert "| op: unary | 4 | 2 | 1 | 1 | 0 | 0 |" in run.stdout and "of 3 operators right in all types: 66.7%; without the CPU: 33.3%" in run.stdout
    assert "wrong: op/cos/float32: why" in run.stdout
    assert run.returncode == 1


def test_a_run_goes_on_with_the_same_options_only(rdna, tmp_path, monkeypatch):
    output = tmp_path / "cases.jsonl"
    output.write_text('{"made with": {"grad": true}}\n{"case": "op/sin/float32", "status": "native"}\n')
    script, options = load_script(monkeypatch, "--ops=sin", f"--output={output}")
    with pytest.raises(SystemExit, match="was made with .*'grad': True"):
        script.run_all(options)


def test_samples_are_adapted(monkeypatch):
    torch = pytest.importorskip("torch")
    script, _ = load_script(monkeypatch)

    def sample(input, *args, **kwargs):
        return types.SimpleNamespace(input=input, args=args, kwargs=kwargs)

    ones = torch.ones(6)
    assert script.adapted(torch, "sort", sample(ones, 0, descending=True)).kwargs == {"dim": 0, "descending": True, "stable": True}
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64):
        found = script.adapted(torch, "msort", sample(torch.ones(8000, dtype=dtype))).input
        assert found.dtype == dtype and found.unique().numel() == 8000 and found.isfinite().all()
    assert script.adapted(torch, "topk", sample(ones, 2)).input.unique().numel() == 6
    assert script.adapted(torch, "tensor_split", sample(ones, torch.tensor([1, 2]))).args == ([1, 2],)
    assert torch.equal(script.adapted(torch, "add", sample(ones, 2)).input, ones)


def test_narrow_types_are_compared_with_wider_ones(monkeypatch):
    torch = pytest.importorskip("torch")
    script, _ = load_script(monkeypatch)
    narrow, wide = [torch.tensor([1.0]).half(), torch.tensor([2.0]).half()], [torch.tensor([1.5]), torch.tensor([2.5])]
    # Each tensor may be as either of the two, or as near to the wider one as the other is, and must be one of these.
    assert not script.difference(torch, "add", [narrow[0], wide[1].half()], narrow, True, wide=wide)
    assert not script.difference(torch, "add", [narrow[0], torch.tensor([2.9]).half()], narrow, True, wide=wide)
    for wrong in (1.9, 3.1, float("inf"), float("nan")):
        assert "Mismatched" in script.difference(torch, "add", [narrow[0], torch.tensor([wrong]).half()], narrow, True, wide=wide)
    # Gradients begin with the same numbers in every type.
    found = []
    for kind in (torch.bfloat16, torch.float16, torch.float32):
        x = torch.ones(50, dtype=kind, requires_grad=True)
        found.append(script.gradients(torch, x * 1, [x])[0].float())
    assert torch.equal(found[0], found[2]) and torch.equal(found[1], found[2]) and found[0].unique().numel() > 10


# A process that runs cases: it answers all but `crash`, at which it ends itself, and `hang`.
WORKER = """
import sys, time
for line in sys.stdin:
    if line.strip() == "crash": sys.exit(3)
    if line.strip() == "hang": time.sleep(100)
    print('{"case": "good"}', flush=True)
"""


def test_processes_that_end_or_hang(monkeypatch):
    script, options = load_script(monkeypatch)
    popen = subprocess.Popen
    monkeypatch.setattr(script.subprocess, "Popen", lambda command, **options: popen([sys.executable, "-c", WORKER], **options))

    def run(names, seconds):
        lines, left = [], collections.deque(names)
        options.end = time.monotonic() + seconds
        script.run_cases(options, left, dict.fromkeys(names, "unary"), None, lines.append)
        return [json.loads(line) for line in lines], list(left)

    records, left = run(["good", "crash", "good"], float("inf"))
    assert [record["case"] for record in records] == ["good", "crash", "good"] and not left
    assert records[1]["status"] == "error" and records[1]["reason"] == "the process ended with 3"
    # The case that still ran when the time was over has no record, and none is begun after it: a later run takes both.
    assert run(["hang", "good"], 1) == ([], ["good"])
