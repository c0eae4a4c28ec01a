"""docs/benchmarks/calibration on a checkout of its own: one small int8 GEMM that lies as AMD's kernels do, and a wrong twin."""

import csv
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT

CALIBRATION = ROOT / "docs" / "benchmarks" / "calibration"
# Each argument takes 16 bytes; B lies in tiles of 16 rows and 32 elements of K.
SOURCE = """
#define P(type, name) global type *name, long name##_pad
#define U(name) uint name, uint name##_1, uint name##_2, uint name##_3
__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void NAME(P(ushort, d), P(const char, a), P(const char, b), P(const float, sa), P(const float, sb), P(const float, bias), U(m), U(n), U(k), U(lda), U(ldb), U(ldd),
                 U(split)) {
  uint t = __builtin_amdgcn_workitem_id_x();
  uint row = __builtin_amdgcn_workgroup_id_y() * 16 + t / 16, column = __builtin_amdgcn_workgroup_id_x() * 16 + t % 16;
  if (row >= m) return;
  int sum = 0;
  for (uint i = 0; i < k; ++i)
    sum += a[row * lda + i] * b[column / 16 * 16 * k + i / 32 * 512 + i % 32 / 16 * 256 + column % 16 * 16 + i % 16];
  uint bits = as_uint(sum * sa[row] * sb[column] + WITH * bias[column]);
  d[row * ldd / 2 + column] = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aiter")
    kernels = folder / "hsa" / "gfx942" / "i8gemm"
    kernels.mkdir(parents=True)
    (folder / "k.cl").write_text(SOURCE)
    clang = shutil.which("clang-22") or shutil.which("clang", path="/usr/lib/llvm-22/bin")
    listing = ["knl_name,co_name,tile_m,tile_n,splitK,bpreshuffle"]
    for kind, bias in (("right", 1), ("wrong", 0)):
        name = f"_ZN5aiter12I8gemm_{kind}E"
        subprocess.run([clang, "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", "-x", "cl", "-cl-std=CL2.0", "-O2", "-nogpulib", f"-DNAME={name}", f"-DWITH={bias}",
                        folder / "k.cl", "-o", kernels / f"{kind}.co"], check=True, capture_output=True)  # fmt: skip
        listing.append(f"{name},{kind}.co,16,16,0,1")
    (kernels / "i8gemm_bf16_perTokenI8.csv").write_text("\n".join(listing) + "\n")
    configs = folder / "aiter" / "configs"
    configs.mkdir(parents=True)
    rows = ["gfx,cu_num,M,N,K,splitK,us,kernelName"]
    rows += [f"gfx942,80,{m},{n},{k},0,{us},_ZN5aiter12I8gemm_rightE" for m, n, k, us in ((16, 32, 64, 5), (48, 32, 128, 9), (160, 1600, 64, 40), (160, 1600, 192, 100))]
    rows.append("gfx942,80,64,64,64,0,7,another_compilers_kernel")
    (configs / "a8w8_tuned_gemm.csv").write_text("\n".join(rows) + "\n")
    return folder


def calibrate(checkout, folder, *options):
    return subprocess.run([sys.executable, CALIBRATION / "calibrate.py", checkout, f"--tables={folder}", f"--work={folder}/work", "--threads=1", *options],
                          capture_output=True, text=True)  # fmt: skip


def table(path):
    return list(csv.DictReader(open(path)))


def test_tables(checkout, tmp_path):
    run = calibrate(checkout, tmp_path, "--steps=times,winners,numerics", "--shapes=2")
    assert run.returncode == 0, run.stderr
    everything, family = table(tmp_path / "calibration.csv")
    assert everything["rows"] == "4" and float(everything["spearman"]) == 1
    assert (family["chip"], family["compute_units"], family["family"]) == ("gfx942", "80", "i8")
    # Both kernels are the same but for the bias: the winner shares the first place.
    assert [(row["memory_latency"], row["shapes"], row["candidates"]) for row in table(tmp_path / "calibration_winners.csv")] == [("table", "2", "2"), ("700", "2", "2")]
    (numerics,) = table(tmp_path / "calibration_numerics.csv")
    assert numerics.pop("date") and numerics.pop("commit")
    assert numerics == dict(chip="gfx942", family="i8", kernels="2", right="1", race="0", wrong="1", refused="0", hazard="0")
    # Four rows of 80 compute units are too few for the fit of absolute times.
    assert not (tmp_path / "calibration_fit.csv").exists()
    (kept,) = (tmp_path / "work").glob("estimates-*.jsonl")
    before = kept.read_text()
    # A run that was cut in the middle of a line goes on.
    kept.write_text(before[:-20])
    assert calibrate(checkout, tmp_path, "--steps=times,winners", "--shapes=2").returncode == 0
    assert kept.read_text() == before


def test_greta_beside_amd(checkout, tmp_path):
    run = calibrate(checkout, tmp_path, "--steps=greta", "--gemms=64x64x64")
    assert run.returncode == 0, run.stderr
    rows = table(tmp_path / "calibration_greta.csv")
    assert [row["chip"] for row in rows] == ["gfx942", "gfx950"] and all(float(row["greta_us"]) > 0 and not row["amd_us"] for row in rows)


def test_not_a_checkout(tmp_path):
    run = calibrate(tmp_path, tmp_path / "out")
    assert run.returncode == 1 and "holds no measured GEMM" in run.stderr


def test_rank_correlation(monkeypatch):
    monkeypatch.syspath_prepend(CALIBRATION)
    import calibrate

    assert calibrate.spearman([1, 2, 3, 4], [10, 20, 30, 99]) == 1
    assert calibrate.spearman([1, 2, 3], [3, 2, 1]) == -1
    # Equals share their places: 1.5, 1.5, 3, 4 against 1, 2, 3, 4.
    assert abs(calibrate.spearman([5, 5, 6, 7], [1, 2, 3, 4]) - 0.9487) < 1e-4
