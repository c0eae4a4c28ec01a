"""A function's launches joined into one against the same launch by launch, to the bit: on simulated AMD chips with all checks, races between workgroups among
them, and on this machine's Vulkan driver. Launch by launch the last workgroup of a product does the norm behind it.
"""

import json
import os
import time

import numpy as np
import pytest

import harness

WIDTH, HIDDEN = 256, 512

# The MLP of a decoder for one token, and behind it a second norm, which waits for all of it.
CHAIN = f"""func.func @chain(%x: tensor<1x{WIDTH}xf32>, %norm: tensor<{WIDTH}xf32>, %gate: tensor<{HIDDEN}x{WIDTH}xf16>, %up: tensor<{HIDDEN}x{WIDTH}xf16>,
    %down: tensor<{WIDTH}x{HIDDEN}xf16>) -> (tensor<1x{WIDTH}xf32>, tensor<1x{WIDTH}xf32>) {{
  %0 = greta.rms_norm %x, %norm {{eps = 1.0e-05 : f32}} : tensor<1x{WIDTH}xf32>, tensor<{WIDTH}xf32> -> tensor<1x{WIDTH}xf32>
  %1 = arith.truncf %0 : tensor<1x{WIDTH}xf32> to tensor<1x{WIDTH}xf16>
  %2 = greta.matmul %1, %gate {{transpose_b}} : tensor<1x{WIDTH}xf16>, tensor<{HIDDEN}x{WIDTH}xf16> -> tensor<1x{HIDDEN}xf16>
  %3 = greta.matmul %1, %up {{transpose_b}} : tensor<1x{WIDTH}xf16>, tensor<{HIDDEN}x{WIDTH}xf16> -> tensor<1x{HIDDEN}xf16>
  %4 = greta.swiglu %2, %3 : tensor<1x{HIDDEN}xf16>, tensor<1x{HIDDEN}xf16> -> tensor<1x{HIDDEN}xf16>
  %5 = greta.matmul %4, %down {{transpose_b}} : tensor<1x{HIDDEN}xf16>, tensor<{WIDTH}x{HIDDEN}xf16> -> tensor<1x{WIDTH}xf16>
  %6 = arith.extf %5 : tensor<1x{WIDTH}xf16> to tensor<1x{WIDTH}xf32>
  %7 = arith.addf %x, %6 : tensor<1x{WIDTH}xf32>
  %8 = greta.rms_norm %7, %norm {{eps = 1.0e-05 : f32}} : tensor<1x{WIDTH}xf32>, tensor<{WIDTH}xf32> -> tensor<1x{WIDTH}xf32>
  return %7, %8 : tensor<1x{WIDTH}xf32>, tensor<1x{WIDTH}xf32>
}}
"""


def inputs_of(directory):
    rng = np.random.default_rng(7)
    made = [
        rng.standard_normal((1, WIDTH)).astype(np.float32),
        rng.uniform(0.5, 1.5, WIDTH).astype(np.float32),
        *(rng.standard_normal((HIDDEN, WIDTH)).astype(np.float16) / 16 for _ in range(2)),
        rng.standard_normal((WIDTH, HIDDEN)).astype(np.float16) / 16,
    ]
    for i, array in enumerate(made):
        np.save(directory / f"in{i}.npy", array)
    return made


def norm(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight


def expected(inputs):
    x, weight, gate, up, down = (array.astype(np.float64) for array in inputs)
    y = norm(x, weight)
    g = y @ gate.T
    x = x + (g / (1 + np.exp(-g)) * (y @ up.T)) @ down.T
    return x, norm(x, weight)


def package(directory, target, joined=1):
    source, made = directory / "chain.mlir", directory / "chain.greta"
    source.write_text(CHAIN)
    compiled = harness.tool(harness.TRANSLATE, "--greta-to-package", f"--targets={target}", f"--join={joined}", source, "-o", made)
    assert compiled.returncode == 0, compiled.stderr
    return made


def run(directory, made, device, variant=None, **environment):
    outputs = [directory / f"out{i}.npy" for i in range(2)]
    words = [f"--device={device}", *(f"--input={directory}/in{i}.npy" for i in range(5)), *(f"--output={o}" for o in outputs)]
    ran = harness.tool(harness.RUN, made, *words, "--json", *([f"--variant={variant}"] if variant else []), env={**os.environ, **environment})
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["variant"], [np.load(o) for o in outputs]


def check(directory, made, device, plain, joined, **environment):
    inputs = inputs_of(directory)
    taken, together = run(directory, made, device, **environment)
    assert taken == joined
    _, apart = run(directory, made, device, plain, **environment)
    for one, other, right in zip(together, apart, expected(inputs)):
        assert np.array_equal(one, other)
        np.testing.assert_allclose(one, right, rtol=0, atol=2e-2)


def phases(made, variant):
    """How many launches each kernel of a variant has taken in."""
    (found,) = [v for v in harness.function_of(made, "chain")["variants"] if v["id"] == variant]
    return [kernel["config"].get("joined", 1 + kernel["config"].get("tail", 0)) for kernel in found["kernels"]], found["requires"]


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "gfx1201"])
def test_simulated(tmp_path, chip):
    made = package(tmp_path, chip)
    variants = [v["id"] for v in harness.function_of(made, "chain")["variants"]]
    assert len(variants) == 2 and variants[0] == f"{variants[1]}-joined"
    joined, requires = phases(made, variants[0])
    plain, nothing = phases(made, variants[1])
    assert sum(joined) == sum(plain) == 4 and max(joined) > 1
    assert plain == [1, 1, 2]
    assert requires["resident"] >= 32 and "resident" not in nothing
    assert not any("trial" in kernel for variant in harness.function_of(made, "chain")["variants"] for kernel in variant["kernels"])
    check(tmp_path, made, f"sim:{chip}", variants[1], variants[0])


@pytest.mark.parametrize("chip", ["gfx942", "gfx1201"])
def test_simulated_with_programs_checked(tmp_path, chip):
    """Whatever a phase reads of another an atomic orders, and memory is written before it is read."""
    made = package(tmp_path, chip)
    inputs_of(tmp_path)
    joined, plain = [v["id"] for v in harness.function_of(made, "chain")["variants"]]
    for variant in (joined, plain):
        run(tmp_path, made, f"sim:{chip}", variant, GRETA_CHECK="1")


def test_on_this_driver(tmp_path):
    """llvmpipe ends loops after 65535 turns, so that its row has one workgroup, which waits for itself."""
    made = package(tmp_path, "vulkan:lavapipe")
    variants = [v["id"] for v in harness.function_of(made, "chain")["variants"] if "resident" in v["requires"]]
    assert variants and max(phases(made, variants[-1])[0]) > 1
    # The second time its outcome is in the cache.
    for _ in range(2):
        check(tmp_path, made, "vulkan", variants[-1].removesuffix("-joined"), variants[-1], XDG_CACHE_HOME=str(tmp_path))
    assert len(list(tmp_path.glob("greta/resident-*"))) == 1
    inputs_of(tmp_path)
    for environment, says in [({"GRETA_HEALTH": "resident"}, "and GRETA_HEALTH names it"), ({"GRETA_PROFILE": "fast"}, "and nobody promises or tries")]:
        taken, _ = run(tmp_path, made, "vulkan", **environment)
        assert not taken.endswith("-joined")
        ran = harness.tool(harness.RUN, made, "--device=vulkan", "--inspect", env={**os.environ, **environment})
        assert f"1 workgroups wait for each other, {says}" in ran.stdout


def test_more_than_run_at_a_time(tmp_path):
    """Two threads of llvmpipe run two workgroups at a time. Whatever waits for 16 would wait for ever: a trial ends by itself, and the plain variant is taken."""
    made = package(tmp_path, "vulkan:portable")
    joined, plain = [v["id"] for v in harness.function_of(made, "chain")["variants"]]
    assert phases(made, joined)[1]["resident"] == 16
    environment = {"XDG_CACHE_HOME": str(tmp_path), "LP_NUM_THREADS": "2"}
    inputs = inputs_of(tmp_path)
    run(tmp_path, made, "vulkan", plain, **environment)  # checks the device, which a busy machine takes a minute for
    began = time.monotonic()
    taken, results = run(tmp_path, made, "vulkan", **environment)
    assert taken == plain and time.monotonic() - began < 60
    for one, right in zip(results, expected(inputs)):
        np.testing.assert_allclose(one, right, rtol=0, atol=2e-2)
    ran = harness.tool(harness.RUN, made, "--device=vulkan", f"--variant={joined}", *(f"--input={tmp_path}/in{i}.npy" for i in range(5)), env={**os.environ, **environment})
    assert ran.returncode == 1
    assert "not all of the 16 workgroups of kernel 'chain_joined0', which wait for each other, ran at a time in a trial" in ran.stderr


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "vulkan:nvidia"])
def test_more_than_fit(tmp_path, target):
    (tmp_path / "chain.mlir").write_text(CHAIN)
    compiled = harness.tool(harness.TRANSLATE, "--greta-to-package", f"--targets={target}", "--join=32", tmp_path / "chain.mlir", "-o", tmp_path / "chain.greta")
    assert compiled.returncode == 1
    assert "workgroups that wait for each other; its" in compiled.stderr and "join for fewer workgroups on a compute unit" in compiled.stderr
