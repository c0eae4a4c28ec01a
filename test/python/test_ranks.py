"""Functions that sum over ranks, against float64: ranks that are processes on one kind of device, and threads with a device each."""

import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import greta
from greta import ops
from ranks import ranks

TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
UNITS = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
DEPTH, WIDTH = 96, 64
# Fewer than a part has, an uneven last one, and more parts than there may be.
ROWS_OF_PARTS = (1, 11, 37, 300)
# The second half of a layer: the product's epilogue, the sum, and two readers of it, one of which is summed again.
SOURCE = """
func.func @layer_{0}(%a: tensor<?x96x{0}>, %w: tensor<64x96x{0}>, %x: tensor<?x64x{0}>, %n: tensor<64x{0}>) -> (tensor<?x64x{0}>, tensor<?x64x{0}>, tensor<?x64x{0}>) {{
  %0 = greta.matmul %a, %w {{transpose_b}} : tensor<?x96x{0}>, tensor<64x96x{0}> -> tensor<?x64x{0}>
  %1 = arith.addf %0, %x : tensor<?x64x{0}>
  %2 = greta.all_reduce %1 : tensor<?x64x{0}> -> tensor<?x64x{0}>
  %3 = greta.rms_norm %2, %n {{eps = 1.0e-5 : f32}} : tensor<?x64x{0}>, tensor<64x{0}> -> tensor<?x64x{0}>
  %4 = greta.softmax %2 : tensor<?x64x{0}> -> tensor<?x64x{0}>
  %5 = greta.all_reduce %4 : tensor<?x64x{0}> -> tensor<?x64x{0}>
  return %2, %3, %5 : tensor<?x64x{0}>, tensor<?x64x{0}>, tensor<?x64x{0}>
}}
"""
RANK = """
import sys, numpy as np, greta
sys.path.insert(0, sys.argv[1])
import test_ranks
path, device, rank, size, run = sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6]
greta.set_device(device)
with greta.Communicator(rank, size, path=path + "/ranks", device=device, timeout=300) as c:
    getattr(test_ranks, run)(greta.load(path + "/k.greta"), c, path)
"""


def inputs(rank, type_, rows):
    rng = np.random.default_rng([rank, rows])
    # The ranks' weights and activations are parts of one product; x and the norm's weights are the same on all.
    all_ = np.random.default_rng(rows)
    draw = lambda generator, *shape: generator.standard_normal(shape).astype(TYPES[type_])
    return draw(rng, rows, DEPTH), draw(rng, WIDTH, DEPTH), draw(all_, rows, WIDTH), draw(all_, WIDTH)


def run_rank(package, c, path):
    for type_ in TYPES:
        for rows in (1, 37, 130):
            results = getattr(package, f"layer_{type_}")(*inputs(c.rank, type_, rows), comm=c)
            for i, result in enumerate(results):
                np.save(f"{path}/{type_}-{rows}-{i}-{c.rank}.npy", result.numpy().astype(np.float32))


def run_parts(package, c, path):
    """In parts and whole: the same bits."""
    whole = greta.load(path + "/whole.greta")
    for type_ in TYPES:
        for rows in ROWS_OF_PARTS:
            given = inputs(c.rank, type_, rows)
            wanted = getattr(whole, f"layer_{type_}")(*given, comm=c)
            for i, result in enumerate(getattr(package, f"layer_{type_}")(*given, comm=c)):
                assert np.array_equal(result.numpy(), wanted[i].numpy()), (type_, rows, i)
                np.save(f"{path}/{type_}-{rows}-{i}-{c.rank}.npy", result.numpy().astype(np.float32))


def run_processes(tmp_path, device, size, run):
    folder = __file__.rpartition("/")[0]
    words = [sys.executable, "-c", RANK, folder, tmp_path, device]
    ranks = [subprocess.Popen([*words, str(rank), str(size), run], stderr=subprocess.PIPE, text=True) for rank in range(size)]
    failures = [rank.communicate()[1] for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks), failures


def compiled(source):
    from greta import _compiler

    succeeded, data, messages = _compiler.compile([(source, "")], "gfx942,gfx1100,vulkan")
    assert succeeded and not messages
    return greta.Package(data)


@pytest.fixture(scope="module")
def package():
    return compiled("".join(SOURCE.format(type_) for type_ in TYPES))


@pytest.fixture(scope="module")
def package_in_parts():
    source = "".join(SOURCE.format(type_) for type_ in TYPES)
    return compiled(re.sub(r"all_reduce (%\d)", r"all_reduce \1 {part_rows = 8}", source))


def exceeds(got, size, type_, rows):
    """How many times its bound the error of the sum is: the roundings of each rank's addend, of its parts, and of the sum."""
    u, exact, bound = UNITS[type_], 0, 0
    for rank in range(size):
        a, w, x, _ = (np.asarray(one, float) for one in inputs(rank, type_, rows))
        product = a @ w.T
        exact = exact + product + x
        bound = bound + u * (np.abs(product) + np.abs(product + x)) + UNITS["f32"] * DEPTH * (np.abs(a) @ np.abs(w).T)
    # Each addition in f32, and one rounding.
    bound = bound + u * np.abs(exact) + size * UNITS["f32"] * bound / u
    return (np.abs(got - exact) / bound).max()


def norm(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def check(read, size, type_, rows):
    u = UNITS[type_]
    sums = [read(0, rank) for rank in range(size)]
    assert all((one == sums[0]).all() for one in sums), "ranks differ"
    assert exceeds(sums[0], size, type_, rows) < 1
    if size > 1:  # what a rank that is left out, or is there twice, would give
        a, w, x, _ = (np.asarray(one, float) for one in inputs(1, type_, rows))
        assert exceeds(sums[0] - (a @ w.T + x), size, type_, rows) > 1 < exceeds(sums[0] + (a @ w.T + x), size, type_, rows)
    normed = norm(sums[0], np.asarray(inputs(0, type_, rows)[3], float))
    assert np.abs(read(1, 0) - normed).max() <= 4 * u * np.abs(normed).max()
    want = size * softmax(sums[0])
    assert np.abs(read(2, 0) - want).max() <= 4 * u * max(want.max(), 1)


@pytest.mark.parametrize("size", (1, 2, 4))
@pytest.mark.parametrize("device", ("vulkan", "sim:gfx942", "sim:gfx1100"))
def test_processes(package, tmp_path, device, size):
    package.save(tmp_path / "k.greta")
    run_processes(tmp_path, device, size, "run_rank")
    for type_ in TYPES:
        for rows in (1, 37, 130):
            check(lambda i, rank: np.load(tmp_path / f"{type_}-{rows}-{i}-{rank}.npy").astype(float), size, type_, rows)


@pytest.mark.parametrize("size", (2, 3))
@pytest.mark.parametrize("device", ("vulkan", "sim:gfx942", "sim:gfx1100"))
def test_parts(package, package_in_parts, tmp_path, device, size):
    """As right as a whole sum, and with the same bits."""
    package.save(tmp_path / "whole.greta")
    package_in_parts.save(tmp_path / "k.greta")
    run_processes(tmp_path, device, size, "run_parts")
    for type_ in TYPES:
        for rows in ROWS_OF_PARTS:
            check(lambda i, rank: np.load(tmp_path / f"{type_}-{rows}-{i}-{rank}.npy").astype(float), size, type_, rows)


def test_kernels_of_parts(package_in_parts):
    """The product goes along with the first sum, and the kernel of norm and softmax with the second one, which it makes."""
    for function in package_in_parts.manifest["functions"]:
        for variant in function["variants"]:
            first, second = (sum_["parts"] for sum_ in variant["sums"])
            assert first["before"] and second["before"] and not first["behind"] and not second["behind"], variant["id"]


@greta.function
def half_layer(a, w, x, n, comm):
    total = ops.all_reduce(ops.matmul(a, w, transpose_b=True) + x, comm, part_rows=8)
    return total, ops.rms_norm(total, n)


def test_one_rank_in_a_function(monkeypatch, tmp_path):
    """As an operator in a traced function, with the communicator as a constant."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    greta.set_device("vulkan")
    a, w, x, n = inputs(0, "f32", 37)
    with greta.Communicator(0, 1, id=greta.unique_id(), device="vulkan") as c:
        total, normed = half_layer(a, w, x, n, comm=c)
        assert exceeds(total.numpy(), 1, "f32", 37) < 1
        assert np.abs(normed.numpy() - norm(total.numpy().astype(float), n)).max() < 1e-5
        # An array is summed by the communicator itself.
        assert (ops.all_reduce(x, c).numpy() == x).all()
        with greta.Communicator(0, 1, id=greta.unique_id(), device="vulkan") as other:
            both = greta.function(lambda x: ops.all_reduce(ops.all_reduce(x, c), other))
            with pytest.raises(greta.Error, match="the ranks of one communicator"):
                both(x)


def test_devices_of_two_kinds(package):
    """Each rank runs the variant of its communicator's device, whichever is in use."""
    greta.set_device("sim:gfx942")
    sums = {}

    def body(c):
        results = package.layer_f32(*inputs(c.rank, "f32", 37), comm=c)
        assert results[0].lies_on(c.device)
        sums[c.rank] = [one.numpy().astype(float) for one in results]

    ranks(body, ("vulkan", "sim:gfx942"))
    check(lambda i, rank: sums[rank][i], 2, "f32", 37)


def test_it_is_refused_without_a_communicator(package):
    greta.set_device("vulkan")
    given = inputs(0, "f32", 5)
    with pytest.raises(greta.Error, match="'layer_f32' sums over ranks; give it a communicator"):
        package.layer_f32(*given)
    with greta.Communicator(0, 1, id=greta.unique_id(), device="host") as c:
        with pytest.raises(greta.Error, match="no variant of 'layer_f32' runs on host"):
            package.layer_f32(*given, comm=c)
