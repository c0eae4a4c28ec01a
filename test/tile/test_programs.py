"""Block programs against float64, from their text to a device: on the simulated AMD families with all their checks, on testing's lavapipe (cooperative
matrices) under its validation layer, and on this machine's Vulkan driver.
"""

import numpy as np
import pytest

import harness
from harness import AMD_FAMILIES, CPU_DRIVERS
from programs import PROGRAMS, TEXTS, Program


# Either lavapipe compiles some programs three to ten times as long as the other does. An even number has gone behind batched-dot, which goes along for that, so that the drivers keep the others.
QUICKER = {
    **dict.fromkeys(("flash-attention", "flash-attention-backward", "powers", "long-dot", "matmul-pointers", "batched-dot", "grouped-matmul"), "vulkan:portable"),
    **dict.fromkeys(("batched-sums", "scaled-sum"), "vulkan:lavapipe"),
}


def programs_for(target):
    if target in AMD_FAMILIES:
        return harness.share_of(PROGRAMS, target, 3)
    # Drivers compile blocks of 20,000 elements for half a minute.
    programs = [p for p in PROGRAMS if p.kind != "large-blocks"]
    if target not in QUICKER.values():
        return harness.share_of(programs, target, 2)
    return harness.share_of([p for p in programs if p.kind not in QUICKER], target, 2) + [p for p in programs if QUICKER.get(p.kind) == target]


results, test_case, test_together = harness.suite("programs", programs_for, (*AMD_FAMILIES, *CPU_DRIVERS))


@pytest.fixture(scope="session")
def axpy(tmp_path_factory):
    return harness.compile_package(tmp_path_factory.mktemp("axpy"), "axpy", Program("axpy", "8x5").mlir(), "vulkan:portable")


def test_scalars_of_greta_run(tmp_path, axpy):
    inputs = ["--input=f32:-1.5", "--input=8xf32:value:2", "--input=i32:5", "--input=8xf32:value:1"]
    ran = harness.tool(harness.RUN, axpy, "--device=vulkan", *inputs, f"--output={tmp_path}/y.npy")
    assert ran.returncode == 0, ran.stderr
    assert np.load(tmp_path / "y.npy").tolist() == [-2.0] * 5 + [1.0] * 3
    shown = harness.tool(harness.RUN, axpy, "--inspect")
    assert "axpy(alpha: f32, x: d0xf32, n: i32, y: d0xf32) -> (r0: d0xf32 in place of argument 3)" in shown.stdout


@pytest.mark.parametrize(
    "place, given, says",
    [
        (2, "1xi32:value:5", "is a tensor, argument 'n' is a scalar: write --input=i32:V"),
        (1, "f32:2", "is a scalar, argument 'x' is a tensor"),
        (2, "i32:5000000000", "the value is no i32"),
        (2, "i64:5", "is i64, argument 'n' is i32"),
        (2, "i32:-1", "negative value -1 in a manifest expression"),
    ],
)
def test_wrong_scalars_of_greta_run(axpy, place, given, says):
    inputs = ["f32:-1.5", "8xf32:value:2", "i32:5", "8xf32:value:1"]
    inputs[place] = given
    ran = harness.tool(harness.RUN, axpy, "--device=vulkan", *(f"--input={i}" for i in inputs))
    assert ran.returncode == 1
    assert says in ran.stderr


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    return harness.compile_package(tmp_path_factory.mktemp("log"), "log", (TEXTS / "log.mlir").read_text(), "vulkan:portable,gfx90a,gfx1100")


# The log of a program, whatever the device: print values of f16, i32, i64 and i8.
LINES = [
    "idx () begins",
    *(f"idx ({i // 2}, {i % 2}) x = {1.5 * i:g}" for i in range(8)),
    *(f"idx () at (operand {k}) 4" for k in range(3)),
    *(f"idx ({i // 2}, {i % 2}) bits 0x{np.float16(1.5 * i).view(np.uint16):04x}" for i in range(8)),
]


@pytest.mark.parametrize("device", ["vulkan", "sim:gfx90a", "sim:gfx1100"])
def test_log(tmp_path, log, device):
    x = np.stack([np.full((4, 2), 2), 1.5 * np.arange(8).reshape(4, 2)]).astype(np.float16)
    np.save(tmp_path / "x.npy", x.reshape(8, 2))
    ran = harness.tool(harness.RUN, log, f"--device={device}", f"--input={tmp_path}/x.npy", f"--output={tmp_path}/y.npy")
    lines = ran.stdout.splitlines()
    assert [line for line in lines if line.startswith("pid (1, 0, 0)")] == ["pid (1, 0, 0) " + line for line in LINES]
    assert sum(line.startswith("pid (0, 0, 0)") for line in lines) == len(LINES)
    assert ran.returncode == 1
    assert "kernel 'log_kernel': device-side assert failed: x must be positive (log.mlir:16), pid (1, 0, 0) idx (0, 0)" in ran.stderr
    assert "more" not in ran.stderr


def test_log_that_is_full(tmp_path, log):
    """As many programs as the log has no place for, each of which asserts that there are few."""
    ran = harness.tool(harness.RUN, log, "--device=vulkan", "--input=60000x2xf16:value:1", f"--output={tmp_path}/y.npy")
    assert ran.returncode == 1 and "few programs" in ran.stderr
    assert "words of what was printed or failed are lost; the log holds 262143" in ran.stdout


def sum_of(count):
    """A program with `count` operands: 8 bytes of arguments each, 8 of the result and 4 of n."""
    pointers = ", ".join(f"%x{i}: !greta_tile.ptr<f32>" for i in range(count))
    tensors = ", ".join(f"%x{i}: tensor<?xf32> {{greta.shape = affine_map<()[n] -> (n)>}}" for i in range(count))
    values = ", ".join(f"%x{i}" for i in range(count))
    types = ", ".join(["tensor<?xf32>"] * count)
    body = "".join(
        f"""  %v{i} = greta_tile.load %x{i}[%start] strides [1] bounds [0] (%n) : !greta_tile.ptr<f32> -> tensor<64xf32>
  %s{i} = arith.addf %v{i}, {f"%s{i - 1}" if i else "%zero"} : tensor<64xf32>
"""
        for i in range(count)
    )
    return f"""greta_tile.func @sum{count}_kernel({pointers}, %y: !greta_tile.ptr<f32>, %n: i32) attributes {{waves = 1 : i32}} {{
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %c64 = arith.constant 64 : i32
  %pid = greta_tile.program_id 0
  %start = arith.muli %pid, %c64 : i32
{body}  greta_tile.store %s{count - 1}, %y[%start] strides [1] bounds [0] (%n) : tensor<64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}}
func.func @sum{count}({tensors}) -> tensor<?xf32> {{
  %0 = greta_tile.launch @sum{count}_kernel grid affine_map<()[n] -> (n ceildiv 64)> scalars affine_map<()[n] -> (n)> ({values}) shapes [affine_map<()[n] -> (n)>]
       : ({types}) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}}
"""


ARGUMENTS = {14: 124, 20: 172, 40: 332}  # operands: bytes


@pytest.fixture(scope="session")
def sums(tmp_path_factory):
    return harness.compile_package(tmp_path_factory.mktemp("sums"), "sums", "".join(map(sum_of, ARGUMENTS)), "vulkan:portable,gfx942")


@pytest.mark.parametrize("count", ARGUMENTS)
@pytest.mark.parametrize("device", ["vulkan", "testing", "sim:gfx942"])
def test_any_number_of_arguments(tmp_path, sums, driver_parts, device, count):
    """Debian 12's lavapipe has 128 bytes of push constants, testing's 256; what does not fit lies in memory, in streams and graphs."""
    if device == "testing" and "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    run = [*(harness.lavapipe_launcher() if device == "testing" else ()), harness.RUN, sums, f"--function=sum{count}"]
    run += [f"--device={device.replace('testing', 'vulkan')}", *(f"--input=1000xf32:value:{i}" for i in range(count))]
    np.save(tmp_path / "want.npy", np.full(1000, count * (count - 1) / 2, np.float32))
    for more in ([], ["--bench", "--reps=3", "--launches=100"]):
        ran = harness.tool(*run, f"--expect={tmp_path}/want.npy", "--rtol=0", "--atol=0", *more)
        assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", sorted({p.kind: p for p in PROGRAMS}))
def test_one_package_for_all_of_vulkan(tmp_path, name):
    text = tmp_path / "program.mlir"
    text.write_text(next(p for p in PROGRAMS if p.kind == name).mlir())
    made = harness.tool(harness.TRANSLATE, "--greta-to-package", "--targets=vulkan", text, "-o", tmp_path / "program.greta")
    assert made.returncode == 0, made.stderr
