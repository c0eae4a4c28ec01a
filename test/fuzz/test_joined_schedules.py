"""Kernels of resident launches with random schedules, safe and not, beside a model of their workgroups: greta-tile-check-joined lets none pass that waits for
ever or computes something else in an order that the model tries, and refuses none of those that were made with all their barriers.
"""

import random
import re
import subprocess

from conftest import BUILD

WORKGROUPS, TILES, TENSORS = 3, 7, 4
HEAD = """greta_tile.func @k(%t0: !greta_tile.ptr<i32>, %t1: !greta_tile.ptr<i32>, %t2: !greta_tile.ptr<i32>, %t3: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %first = greta_tile.program_id 0
  %other = arith.constant 1 : i32
  %end = arith.constant 7 : i32
"""
TAIL = """  greta_tile.return
}
func.func @f(%x: tensor<7xi32>) -> tensor<7xi32> {
  %0:4 = greta_tile.launch @k grid affine_map<() -> (3)> scalars affine_map<() -> (0)> (%x) zeroed [3]
    shapes [affine_map<() -> (7)>, affine_map<() -> (7)>, affine_map<() -> (7)>, affine_map<() -> (1)>] resident : (tensor<7xi32>) -> (tensor<7xi32>, tensor<7xi32>, tensor<7xi32>, tensor<1xi32>)
  return %0#0 : tensor<7xi32>
}
"""


class Phase:
    """Tile i of a tensor from its neighbour in another. It may be loaded ahead: the first at the kernel's beginning, each other in the tile before it."""

    def __init__(self, rng):
        self.source, self.target = rng.sample(range(TENSORS), 2)
        self.step, self.own, self.ahead = WORKGROUPS, True, False

    def load(self, number):
        """The text of the load at the kernel's beginning."""
        first = "%first" if self.own else "%other"
        return f"""  %next{number} = arith.addi {first}, %other : i32
  %at{number} = arith.remui %next{number}, %end : i32
  %held{number} = greta_tile.ptr_load %t{self.source}[%at{number}] align 4 : !greta_tile.ptr<i32> -> i32
"""

    def text(self, number):
        first = "%first" if self.own else "%other"
        if self.ahead:
            return f"""  %step{number} = arith.constant {self.step} : i32
  %over{number} = scf.for %i = {first} to %end step %step{number} iter_args(%held = %held{number}) -> i32 : i32 {{
    %tile = arith.addi %i, %step{number} : i32
    %next = arith.addi %tile, %other : i32
    %at = arith.remui %next, %end : i32
    %loaded = greta_tile.ptr_load %t{self.source}[%at] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %held, %t{self.target}[%i] align 4 : i32 -> !greta_tile.ptr<i32>
    scf.yield %loaded : i32
  }}
"""
        return f"""  %step{number} = arith.constant {self.step} : i32
  scf.for %i = {first} to %end step %step{number} : i32 {{
    %next = arith.addi %i, %other : i32
    %at = arith.remui %next, %end : i32
    %v = greta_tile.ptr_load %t{self.source}[%at] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %v, %t{self.target}[%i] align 4 : i32 -> !greta_tile.ptr<i32>
  }}
"""

    def run(self, memory, held, workgroup, number):
        for i in range(workgroup if self.own else 1, TILES, self.step):
            value = held.get(number, memory[self.source][(i + 1) % TILES])
            if self.ahead:
                held[number] = memory[self.source][(i + self.step + 1) % TILES]
            memory[self.target][i] = (31 * value + number + i) % 1000003
            yield True


class Barrier:
    def __init__(self, until, last):
        self.until, self.last = until, last

    def text(self, number):
        return f"  greta_tile.grid_barrier %met until {self.until}{' last' if self.last else ''} : !greta_tile.ptr<i32>\n"

    def run(self, memory, held, workgroup, number):
        memory["met"] += 1
        if self.last:
            if memory["met"] == self.until:
                memory["met"] = 0
            yield True
            return
        yield True
        while memory["met"] < self.until:
            yield False


def made(rng):
    """A schedule as greta-tile-join makes them, and whether it was changed."""
    items, arrived, read, written = [], 0, set(), set()
    for _ in range(rng.randint(2, 5)):
        phase = Phase(rng)
        if phase.source in written or phase.target in read | written or rng.random() < 0.2:
            arrived += WORKGROUPS
            items.append(Barrier(arrived, False))
            read, written = set(), set()
        read.add(phase.source)
        written.add(phase.target)
        items.append(phase)
    items.append(Barrier(arrived + WORKGROUPS, True))
    phases = [item for item in items if isinstance(item, Phase)]
    targets = {phase.target for phase in phases}
    for phase in phases:
        phase.ahead = phase.source not in targets
    if rng.random() < 0.25:
        return items, False
    for _ in range(rng.randint(1, 2)):
        index = rng.randrange(len(items))
        item = items[index]
        change = rng.randrange(4)
        if change == 0 and len(items) > 1:
            del items[index]
        elif change == 1:
            other = rng.randrange(len(items))
            items[index], items[other] = items[other], items[index]
        elif isinstance(item, Barrier):
            if change == 2:
                item.until = max(1, item.until + rng.choice((-WORKGROUPS, -1, 1, WORKGROUPS)))
            else:
                item.last = not item.last
        elif rng.random() < 0.4:
            item.ahead = True
        elif change == 2:
            item.step = rng.choice((1, 2, WORKGROUPS, 4))
        else:
            item.own = rng.random() < 0.5
    return items, True


def start():
    return {**{t: [100 * t + i for i in range(TILES)] for t in range(TENSORS)}, "met": 0}


def sequential(items):
    """The memory behind the phases, which run one after another, all tiles of each."""
    memory = start()
    for number, item in enumerate(items):
        if isinstance(item, Phase):
            before = [list(memory[t]) for t in range(TENSORS)]
            for i in range(TILES):
                memory[item.target][i] = (31 * before[item.source][(i + 1) % TILES] + number + i) % 1000003
    return memory


def ahead(items):
    return [(number, item) for number, item in enumerate(items) if isinstance(item, Phase) and item.ahead]


def workgroup(items, memory, w):
    held = {}
    for number, item in ahead(items):
        held[number] = memory[item.source][((w if item.own else 1) + 1) % TILES]
        yield True
    for number, item in enumerate(items):
        yield from item.run(memory, held, w, number)


def fails(items, rng):
    """Whether an order of the workgroups waits for ever, leaves the counter behind, or computes something else."""
    right = sequential(items)
    for turn in range(24):
        memory = start()
        left = {w: workgroup(items, memory, w) for w in range(WORKGROUPS)}
        order, waiting = rng.sample(range(WORKGROUPS), WORKGROUPS), set()
        while left and waiting != set(left):
            # The first that can goes as far as it can, or whoever comes.
            ready = [w for w in order if w in left and w not in waiting]
            w = ready[0] if turn % 2 else rng.choice(ready)
            progress = next(left[w], None)
            if progress is None:
                del left[w]
            if progress is False:
                waiting.add(w)
            else:
                waiting.clear()
        if left or memory != right:
            return True
    return False


def refused(cases):
    """The numbers of the cases that the compiler refuses."""
    text, lines, ends = "", 0, []
    for items in cases:
        loads = [item.load(number) for number, item in ahead(items)]
        text += HEAD + "".join(loads + [item.text(number) for number, item in enumerate(items)]) + TAIL + "// -----\n"
        ends.append(text.count("\n"))
    ran = subprocess.run([BUILD / "bin" / "greta-opt", "--split-input-file", "--greta-tile-check-joined", "-"], input=text, capture_output=True, text=True, timeout=300)
    found = set()
    for line in re.findall(r"<stdin>:(\d+):\d+: error|within split at <stdin>:(\d+) offset :(\d+):\d+: error", ran.stderr):
        at = int(line[0]) if line[0] else int(line[1]) + int(line[2])
        found.add(next(i for i, end in enumerate(ends) if at <= end))
    return found


def test_unsafe_schedules_are_refused():
    rng = random.Random(5)
    cases = [made(rng) for _ in range(600)]
    bad = refused([items for items, _ in cases])
    unsafe = {i for i, (items, _) in enumerate(cases) if fails(items, rng)}
    assert not unsafe - bad, "unsafe, and let pass:\n" + "".join(item.text(n) for n, item in enumerate(cases[min(unsafe - bad)][0]))
    assert not {i for i, (_, changed) in enumerate(cases) if not changed} & (bad | unsafe)
    # Changes make enough of both.
    assert len(unsafe) > 200 and len(cases) - len(bad) > 150
