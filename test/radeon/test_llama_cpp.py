"""llama.cpp's Vulkan kernels (ggml, as Debian testing distributes it) on Mesa's RADV over the virtual Radeon: ggml's own tests compare them with its CPU back end, with all of the
simulator's checks on; and one operator by itself, as docs/benchmarks/radeon_peers.py runs it.
"""

import json
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import DRIVERS, ROOT
from harness import WHOLE
from radeon import fresh, launcher

CHIPS = ("phoenix", "navi31", "gfx1201")  # GRETA_TEST_WHOLE=1: both of RDNA 3
# ggml's operators, and which of its cases: GEMMs with cooperative matrices and GEMVs of packed weights, attention with heads of 128, rows.
OPERATORS = {
    "MUL_MAT": r"type_a=(f16|q4_0|q4_K|q6_K),type_b=f32,m=16,n=(1|9|16),k=256,bs=\[(1,1|3,2)\],nr=\[(1,1|2,1)\],per=\[0,1",
    "FLASH_ATTN_EXT": r"hsk=128,hsv=128,nh=4,nr23=\[(1|4),1\],kv=(113|512),nb=(1|3|75),mask=1,sinks=0,max_bias=0.0+,logit_softcap=0.0+,prec=f32,type_K=f16,type_V=f16,permute=\[0,1",
    "RMS_NORM": r"ne=\[(64|1025),5,4,3\],v=.,eps=0.000001",
    "SOFT_MAX": r"ne=\[(16|1023),(2|16),.*mask=(0|1),sinks=0,m_prec=f16,.*max_bias=0.0",
}


@pytest.fixture(scope="module")
def ggml(driver_parts):
    """The folder of ggml's back ends, which looks for them where it is started."""
    if "ggml" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no ggml here")
    return pathlib.Path(subprocess.run([DRIVERS, "ggml"], capture_output=True, text=True, check=True).stdout.strip())


def run(words, folder, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=folder, timeout=600, **options)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("chip", CHIPS if WHOLE else CHIPS[1:])
def test_ggmls_own_tests_pass(driver_parts, ggml, chip, operator):
    program = ggml.parents[3] / "libexec" / ggml.parents[1].name / "ggml" / "test-backend-ops"
    ran = run((*launcher(driver_parts, chip, "testing"), program, "test", "-b", "Vulkan0", "-o", operator, "-p", OPERATORS[operator]), ggml)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "matrix cores: KHR_coopmat" in ran.stderr
    passed, cases = map(int, re.search(r"(\d+)/(\d+) tests passed", ran.stdout).groups())
    assert passed == cases >= 4, ran.stdout


def test_an_operators_dispatches_are_recorded(tmp_path, driver_parts, ggml):
    """A GEMM of packed weights is several kernels: one may pack the activations, one adds parts of a sum."""
    record, operator = tmp_path / "record", dict(op="matmul", type="q4_0", m=64, n=64, k=256)
    words = (*launcher(driver_parts, "gfx1201", "testing"), sys.executable, ROOT / "docs" / "benchmarks" / "ggml_operator.py", json.dumps(operator))
    ran = run(words, ggml, env=fresh(tmp_path, GRETA_VIRTUAL_RADEON_RECORD=str(record)))
    assert ran.returncode == 0, ran.stderr
    version, before = ran.stdout.split()
    dispatches = record.read_text().splitlines()[int(before) :]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version) and 1 <= len(dispatches) <= 3
    assert all(json.loads(line)["microseconds"] > 0 for line in dispatches)
