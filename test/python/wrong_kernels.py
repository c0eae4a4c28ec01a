"""Kernels with a mistake each, in the line that ends in its name, and kernels that look like some of them and are right.

`GRETA_CHECK=1 python wrong_kernels.py sim:gfx942` launches them all and prints what each launch said, as JSON (test_check.py).
"""

import json
import sys

import numpy as np
import torch

import greta
import greta.language as tl


@greta.jit
def copy(x_ptr, y_ptr, reads, writes, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < reads)  # read
    tl.store(y_ptr + i, x, mask=i < writes)  # write


@greta.jit
def copy_less(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i <= n)  # unused
    tl.store(y_ptr + i, x, mask=i < n)


@greta.jit
def copy_element(x_ptr, y_ptr, i):
    x = tl.load(x_ptr + i)  # element
    tl.store(y_ptr, x)


@greta.jit
def load_block(p, BLOCK: tl.constexpr):
    return tl.load(p + tl.arange(0, BLOCK))  # helper


@greta.jit
def copy_by_helper(x_ptr, y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, BLOCK), load_block(x_ptr, BLOCK))


@greta.jit
def product(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + i[:, None] * K + (k + i)[None, :])
        b = tl.load(b_ptr + (k + i)[:, None] * BLOCK + i[None, :])  # loop
        total = tl.dot(a, b, total)
    tl.store(c_ptr + i[:, None] * BLOCK + i[None, :], total)


@greta.jit
def product_of_bytes(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BLOCK)
    total = tl.zeros((M, N), tl.int32)
    for first in range(0, K, BLOCK):
        a = tl.load(a_ptr + m * K + (first + k)[None, :])  # several instructions, as are those of the next line
        b = tl.load(b_ptr + (first + k)[:, None] * N + n)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m * N + n, total)


@greta.jit
def write_id(y_ptr):
    tl.store(y_ptr, tl.program_id(0))  # two_writers


@greta.jit
def write_overlapping(y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, i * 0 + tl.program_id(0) + 1)  # overlap


@greta.jit
def read_of_next(y_ptr):
    tl.store(y_ptr + tl.program_id(0), 1)  # neighbour
    tl.store(y_ptr + 64 + tl.program_id(0), tl.load(y_ptr + tl.program_id(0) + 1))


@greta.jit
def increase(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # unwritten
    tl.store(y_ptr + i, x + 1)  # stored


@greta.jit
def scatter(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    to = tl.load(x_ptr + i)
    tl.store(y_ptr + to, i)  # address


@greta.jit
def decide(x_ptr, y_ptr):
    if tl.load(x_ptr) > 0:  # branch
        tl.store(y_ptr, 1)


@greta.jit
def select(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.where(tl.load(x_ptr + i) > 0, 1, 2))  # selected


@greta.jit
def mask_out(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, i, mask=tl.load(x_ptr + i) > 0)  # mask


@greta.jit
def copy_positive(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # all of it was allocated, n elements were written
    tl.store(y_ptr + i, tl.where(x > 0, x, 0), mask=i < n)


@greta.jit
def write_same(y_ptr):
    tl.store(y_ptr, 7)


@greta.jit
def count(y_ptr, BLOCK: tl.constexpr):
    tl.atomic_add(y_ptr + tl.arange(0, BLOCK) % 3, 1)


@greta.jit
def add_under_lock(lock_ptr, y_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(y_ptr, tl.load(y_ptr) + tl.program_id(0))
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@greta.jit
def scan(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.cumsum(tl.load(x_ptr + i), 0))


def ones(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype)


def partly_written(n, written):
    array = greta.empty((n,), "f32")
    array[:written].write(np.ones(written, np.float32).view(np.uint8))
    return array


def cases():
    half = torch.float16
    pool, device_pool = torch.zeros(200), greta.zeros((200,), "f32")
    new = lambda n, dtype="f32": greta.empty((n,), dtype)
    integers = lambda n: torch.zeros(n, dtype=torch.int32)
    # Mistakes.
    yield "read", lambda: copy[(2,)](ones(100), ones(100), 101, 100, BLOCK=64)
    yield "write", lambda: copy[(2,)](ones(100), ones(100), 100, 101, BLOCK=64)
    yield "unused read", lambda: copy_less[(2,)](ones(100), ones(100), 100, BLOCK=64)
    yield "read of halves", lambda: copy[(2,)](ones(99, dtype=half), ones(99, dtype=half), 100, 99, BLOCK=64)
    yield "read of NumPy", lambda: copy[(2,)](np.ones(100, np.float32), np.ones(100, np.float32), 101, 100, BLOCK=64)
    yield "read of a pool", lambda: copy[(2,)](pool[:100], pool[100:], 101, 100, BLOCK=64)
    yield "write to a pool", lambda: copy[(2,)](pool[100:], pool[:100], 100, 101, BLOCK=64)
    yield "read of a view", lambda: copy[(2,)](device_pool[:100], device_pool[100:], 101, 100, BLOCK=64)
    yield "write to an array", lambda: copy[(2,)](greta.asarray(np.ones(100, np.float32)), new(100), 100, 101, BLOCK=64)
    yield "element", lambda: copy_element[(1,)](ones(10), ones(1), 10)
    yield "element before", lambda: copy_element[(1,)](ones(10), ones(1), -1)
    yield "element far away", lambda: copy_element[(1,)](ones(10), ones(1), 10_000_000)
    yield "helper", lambda: copy_by_helper[(1,)](ones(1000), ones(1024), BLOCK=1024)
    yield "loop", lambda: product[(1,)](ones(32, 64, dtype=half), ones(64 * 32 - 1, dtype=half), ones(32, 32), 64, BLOCK=32)
    yield "two_writers", lambda: write_id[(2,)](integers(1))
    yield "overlap", lambda: write_overlapping[(3,)](integers(64), BLOCK=16)
    yield "overlap of bytes", lambda: write_overlapping[(3,)](torch.zeros(64, dtype=torch.int8), BLOCK=16)
    yield "neighbour", lambda: read_of_next[(4,)](integers(128))
    yield "stored", lambda: increase[(1,)](new(64), new(64), BLOCK=64)
    yield "address", lambda: scatter[(1,)](new(64, "i32"), new(64, "i32"), BLOCK=64)
    yield "branch", lambda: decide[(1,)](new(1), new(1))
    yield "selected", lambda: select[(1,)](new(64), new(64), BLOCK=64)
    yield "mask", lambda: mask_out[(1,)](new(64), new(64), BLOCK=64)
    # None.
    yield "right copy", lambda: copy[(2,)](ones(100), ones(100), 100, 100, BLOCK=64)
    yield "right pool", lambda: copy[(2,)](pool[:100], pool[100:], 100, 100, BLOCK=64)
    yield "right strides", lambda: copy[(1,)](torch.zeros(4, 32)[:, :16], ones(112), 112, 112, BLOCK=128)
    yield "right product", lambda: product[(1,)](ones(32, 64, dtype=half), ones(64, 32, dtype=half), ones(32, 32), 64, BLOCK=32)
    yield "right product of bytes", lambda: product_of_bytes[(1,)](ones(64, 64, dtype=torch.int8), ones(64, 128, dtype=torch.int8), integers(64 * 128), 64, M=64, N=128, BLOCK=32, num_warps=2)
    size = 16384 if sys.argv[1] == "sim:gfx90a" else 1024  # the only one that spills through buffers
    yield "right scan", lambda: scan[(2,)](ones(2 * size), ones(2 * size), BLOCK=size, num_warps=1)
    yield "right overlap", lambda: write_same[(8,)](integers(1))
    yield "right count", lambda: count[(8,)](integers(3), BLOCK=64)
    yield "right lock", lambda: add_under_lock[(8,)](integers(1), integers(1))
    yield "right mask", lambda: copy_positive[(1,)](partly_written(64, 50), new(64), 50, BLOCK=64)


if __name__ == "__main__":
    greta.set_device(sys.argv[1])
    said = {}
    for name, launch in cases():
        try:
            launch()
            said[name] = ""
        except greta.Error as error:
            said[name] = str(error)
    print(json.dumps(said))
