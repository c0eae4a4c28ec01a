"""Kernels that read weights ahead of the kernels that need them, for prefetch.py. `prefetch_kernels.py DIR TARGETS` writes their packages; needs the package greta."""

import sys

import greta
import greta.language as gl

BLOCK = 4096  # words that a program reads at a time
POLLS = 200000  # looks at a number that nobody raises, by each program


@greta.jit
def prefetch(weights, seen, first, count, BLOCK: gl.constexpr):
    """Reads `count` blocks from the block `first` on, the programs in turn. Each program writes a word, so that no compiler drops the loads."""
    bits = gl.zeros((BLOCK,), gl.int32)
    base = weights + first.to(gl.int64) * BLOCK
    for i in range(gl.program_id(0), count, gl.num_programs(0)):
        bits |= gl.load(base + i.to(gl.int64) * BLOCK + gl.arange(0, BLOCK))
    gl.store(seen + gl.program_id(0), gl.max(bits, 0))


@greta.jit
def follow(weights, seen, progress, table, parts, ahead, BLOCK: gl.constexpr, POLLS: gl.constexpr):
    """Reads a step's parts one after another, `table[2 p + 1]` blocks from the block `table[2 p]` on, each when `progress` has come to p - ahead."""
    bits = gl.zeros((BLOCK,), gl.int32)
    left = POLLS
    for p in range(0, parts):
        now = gl.atomic_add(progress, 0)
        while (now + ahead < p) & (left > 0):
            now = gl.atomic_add(progress, 0)
            left -= 1
        first = gl.load(table + 2 * p)
        count = gl.load(table + 2 * p + 1)
        for i in range(gl.program_id(0), count, gl.num_programs(0)):
            bits |= gl.load(weights + (first + i).to(gl.int64) * BLOCK + gl.arange(0, BLOCK))
    gl.store(seen + gl.program_id(0), gl.max(bits, 0))


if __name__ == "__main__":
    directory, targets = sys.argv[1], sys.argv[2].split(",")
    greta.compile(prefetch, f"*i32:16, *i32, i32, i32, {BLOCK}", targets, num_warps=4).save(f"{directory}/prefetch_part.greta")
    greta.compile(follow, f"*i32:16, *i32, *i32, *i32, i32, i32, {BLOCK}, {POLLS}", targets, num_warps=4).save(f"{directory}/prefetch_follow.greta")
