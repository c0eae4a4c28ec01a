"""Kernels with tails, sound and changed at random, beside a model of their lanes: greta-tile-check-tails lets none pass that computes something else in an order
that the model tries, and refuses none of those that were not changed. In the model a store is seen by others when a fence releases it, or the kernel ends, or by
chance; a lane sees what memory held when the kernel began until it acquires.
"""

import copy
import random
import re
import subprocess

from conftest import BUILD

LANES, PART = 2, 6  # lanes of a workgroup that the model has; numbers that the workgroups of one store write


class Op:
    """An op of the kernel; those of its branch are `inside`."""

    def __init__(self, kind, inside=(), **fields):
        self.kind, self.inside = kind, list(inside)
        vars(self).update(fields)

    def text(self, n, kernel):
        first = {"first": "%first", "all": "%always"}
        body = "".join(op.text(f"{n}_{i}", kernel) for i, op in enumerate(self.inside))
        if self.kind == "store":
            return (
                f"  %v{n} = greta_tile.ptr_load %x[%at] align 4 : !greta_tile.ptr<i32> -> i32\n  %to{n} = arith.addi %at, %c{PART * self.number} : i32\n"
                f"  greta_tile.ptr_store %v{n}, %a[%to{n}] align 4 : i32 -> !greta_tile.ptr<i32>\n"
            )
        if self.kind == "fence":
            return f"  greta_tile.fence {self.order} {self.scope}\n"
        if self.kind == "barrier":
            return f"  greta_tile.barrier{' global' if self.isGlobal else ''}\n"
        if self.kind == "count":
            return f"  scf.if {first[self.who]} {{\n{body}  }}\n"
        if self.kind == "add":
            return f"  %before = greta_tile.ptr_atomic_rmw add {self.scope} %met[%c0], %c{self.by} : !greta_tile.ptr<i32> -> i32\n"
        if self.kind == "tell":
            return f"  greta_tile.shared_store {self.what}, %who[%c0] : !greta_tile.shared<1 x i32>\n"
        if self.kind == "look":
            return "  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>\n"
        if self.kind == "tail":
            return f"  %is{n} = arith.cmpi eq, %mine, %c{self.expected} : i32\n  scf.if %is{n} {{\n{body}  }}\n"
        if self.kind == "reset":
            return f"  scf.if {first[self.who]} {{\n    %old{n} = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c{self.to} : !greta_tile.ptr<i32> -> i32\n  }}\n"
        assert self.kind == "work"
        lines, total = [], {"nothing": "%lane", "id": "%id", "early": "%early"}[self.takes]
        for i in range(PART * kernel.stores):
            lines.append(f"  %r{n}_{i} = greta_tile.ptr_load %a[%c{i}] align 4 : !greta_tile.ptr<i32> -> i32\n  %s{n}_{i} = arith.addi {total}, %r{n}_{i} : i32\n")
            total = f"%s{n}_{i}"
        return "".join(lines) + f"  greta_tile.ptr_store {total}, %b[%lane] align 4 : i32 -> !greta_tile.ptr<i32>\n"

    def run(self, lane, machine):
        if self.kind == "store":
            at = machine.at(lane)
            machine.store(lane, ("a", at + PART * self.number), machine.load(lane, ("x", at)))
        elif self.kind == "fence":
            if self.scope == "device":
                if self.order != "acquire":
                    machine.release(lane)
                if self.order != "release":
                    machine.acquire(lane)
        elif self.kind == "barrier":
            yield "global" if self.isGlobal else "local"
        elif self.kind == "count":
            if self.who == "all" or lane % LANES == 0:
                for op in self.inside:
                    yield from op.run(lane, machine)
        elif self.kind == "add":
            machine.before[lane] = machine.device["met"]
            machine.device["met"] += self.by
        elif self.kind == "tell":
            machine.told[lane // LANES] = machine.before.get(lane) if self.what == "%before" else int(self.what[2:])
        elif self.kind == "look":
            machine.mine[lane] = machine.told.get(lane // LANES)
        elif self.kind == "tail":
            if machine.mine[lane] == self.expected:
                for op in self.inside:
                    yield from op.run(lane, machine)
        elif self.kind == "reset":
            if self.who == "all" or lane % LANES == 0:
                machine.device["met"] = self.to
        else:
            total = {"nothing": lane % LANES, "id": lane // LANES, "early": machine.early.get(lane)}[self.takes]
            machine.store(lane, ("b", lane % LANES), total + sum(machine.load(lane, ("a", i)) for i in range(PART * machine.kernel.stores)))
        yield None


class Kernel:
    def __init__(self, rng):
        self.workgroups, self.stores, self.isZeroed = 3, rng.randint(1, 2), True
        self.ops = [
            *(Op("store", number=i) for i in range(self.stores)),
            Op("fence", order="release", scope="device"),
            Op("barrier", isGlobal=True),
            Op(
                "count",
                [Op("fence", order="release", scope="device"), Op("add", by=1, scope="device"), Op("tell", what="%before"), Op("fence", order="acquire", scope="device")],
                who="first",
            ),
            Op("barrier", isGlobal=True),
            Op("look"),
            Op("tail", [Op("fence", order="acquire", scope="device"), Op("reset", who="first", to=0), Op("work", takes="nothing")], expected=2),
        ]

    def find(self, kind):
        return next((op for op in self.ops if op.kind == kind), None)

    def isWritten(self):
        """Whether each value is there where it is used, and the tail's work is not that of the first kernel."""
        kinds, count = [op.kind for op in self.ops], self.find("count")
        inside = [op.kind for op in count.inside] if count else []
        tells = [op for op in count.inside if op.kind == "tell" and op.what == "%before"] if count else []
        isOwn = "work" not in kinds[: kinds.index("tail")]
        return isOwn and kinds.index("look") < kinds.index("tail") and (not tells or "add" in inside and inside.index("add") < inside.index("tell"))

    def text(self):
        numbers = "".join(f"  %c{i} = arith.constant {i} : i32\n" for i in range(PART * 2 + 1))
        return (
            "greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %a: !greta_tile.ptr<i32>, %b: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {\n"
            + numbers
            + "  %always = arith.constant true\n  %id = greta_tile.program_id 0\n  %lane = greta_tile.lane_id\n  %wave = greta_tile.wave_id\n"
            + "  %or = arith.ori %lane, %wave : i32\n  %first = arith.cmpi eq, %or, %c0 : i32\n  %from = arith.muli %id, %c2 : i32\n  %at = arith.addi %from, %lane : i32\n"
            + "  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>\n  %early = greta_tile.ptr_load %a[%c0] align 4 : !greta_tile.ptr<i32> -> i32\n"
            + "".join(op.text(str(i), self) for i, op in enumerate(self.ops))
            + "  greta_tile.return\n}\nfunc.func @f(%x: tensor<8xi32>) -> tensor<2xi32> {\n"
            + f"  %0:3 = greta_tile.launch @k grid affine_map<() -> ({self.workgroups})> scalars affine_map<() -> ()> (%x){' zeroed [2]' if self.isZeroed else ''}"
            + " shapes [affine_map<() -> (12)>, affine_map<() -> (2)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}"
            + " : (tensor<8xi32>) -> (tensor<12xi32>, tensor<2xi32>, tensor<1xi32>)\n  return %0#1 : tensor<2xi32>\n}\n"
        )


class Machine:
    def __init__(self, kernel, rng, isEager):
        self.kernel, self.rng, self.isEager = kernel, rng, isEager
        self.lanes = range(kernel.workgroups * LANES)
        self.device = {**{("x", i): 100 + i for i in range(8)}, **{("a", i): 7 for i in range(12)}, **{("b", i): 5 for i in range(2)}, "met": 0 if kernel.isZeroed else rng.randint(1, 2)}
        self.seen = {lane: dict(self.device) for lane in self.lanes}  # what it sees until it acquires
        self.own = {lane: {} for lane in self.lanes}  # stores that nobody else sees yet
        self.met = {w: {} for w in range(kernel.workgroups)}  # stores that the workgroup sees, behind a barrier
        self.told, self.mine, self.before = {}, {}, {}
        self.early = {lane: self.device["a", 0] for lane in self.lanes}

    def at(self, lane):
        return (lane // LANES * LANES + lane % LANES) % 8

    def load(self, lane, key):
        for part in (self.own[lane], self.met[lane // LANES], self.seen[lane]):
            if key in part:
                return part[key]
        return self.device[key]

    def store(self, lane, key, value):
        self.own[lane][key] = value

    def release(self, lane):
        for part in (self.met[lane // LANES], self.own[lane]):
            self.device.update(part)
        self.seen[lane].update(self.own[lane])
        self.own[lane] = {}

    def acquire(self, lane):
        self.seen[lane] = {}

    def run(self):
        """Whether all lanes came to their ends."""
        running = {lane: self.program(lane) for lane in self.lanes}
        waiting = {}
        order = self.rng.sample(list(self.lanes), len(self.lanes))
        while running:
            ready = [lane for lane in order if lane in running and lane not in waiting]
            if not ready:
                return False
            lane = ready[0] if self.isEager else self.rng.choice(ready)
            try:
                waits = next(running[lane])
            except StopIteration:
                del running[lane]
                continue
            if not self.isEager and self.rng.random() < 0.1:
                self.release(self.rng.choice(self.lanes))
            if not waits:
                continue
            waiting[lane] = waits
            group = [one for one in self.lanes if one // LANES == lane // LANES]
            if all(one in waiting for one in group):
                for one in group:
                    if waiting.pop(one) == "global":
                        self.met[one // LANES].update(self.own[one])
                        self.own[one] = {}
        for lane in self.lanes:
            self.release(lane)
        return True

    def program(self, lane):
        for op in self.kernel.ops:
            yield from op.run(lane, self)


def sequential(kernel):
    """The memory behind the first kernel, and then the second one, whose workgroup is 0."""
    machine = Machine(kernel, random.Random(0), True)
    for lane in machine.lanes:
        for number in range(kernel.stores):
            machine.device["a", machine.at(lane) + PART * number] = machine.device["x", machine.at(lane)]
    for lane in range(LANES):
        takes = next((op.takes for op in kernel.find("tail").inside if op.kind == "work"), "nothing")
        own = {"nothing": lane, "id": 0, "early": machine.device["a", 0]}[takes]
        machine.device["b", lane] = own + sum(machine.device["a", i] for i in range(PART * kernel.stores))
    machine.device["met"] = 0
    return machine.device


def change(kernel, rng):
    """Makes one change; the kernel may be sound behind it all the same."""
    count, tail = kernel.find("count"), kernel.find("tail")
    lists = [kernel.ops, *(op.inside for op in (count, tail) if op)]
    ops = rng.choice(lists)
    kind = rng.randrange(6)
    if kind == 0:
        gone = [op for op in ops if op.kind not in ("look", "tail", "store", "work")]
        if gone:
            ops.remove(rng.choice(gone))
    elif kind == 1 and len(ops) > 1:
        i, j = rng.sample(range(len(ops)), 2)
        ops[i], ops[j] = ops[j], ops[i]
    elif kind == 2:
        # Somewhere else, or twice.
        moved = rng.choice([op for op in ops if op.kind in ("fence", "barrier", "store", "reset", "work")] or [None])
        if moved and (moved.kind != "work" or rng.random() < 0.5):
            if rng.random() < 0.7:
                ops.remove(moved)
            to = rng.choice(lists)
            to.insert(rng.randint(0, len(to)), copy.deepcopy(moved))
    elif kind == 3:
        kernel.workgroups, kernel.isZeroed = rng.choice(((2, True), (4, True), (3, False)))
    else:
        op = rng.choice(ops)
        choices = {
            "fence": {"order": ("release", "acquire", "acq_rel"), "scope": ("workgroup", "device")},
            "barrier": {"isGlobal": (False,)},
            "count": {"who": ("all",)},
            "add": {"by": (2,), "scope": ("workgroup",)},
            "tell": {"what": ("%c0", "%c2")},
            "tail": {"expected": (1, 3)},
            "reset": {"who": ("all",), "to": (1,)},
            "work": {"takes": ("id", "early")},
        }.get(op.kind)
        if choices:
            name = rng.choice(list(choices))
            setattr(op, name, rng.choice(choices[name]))


def made(rng):
    """A kernel as greta-tile-tail makes them, and whether it was changed."""
    kernel = Kernel(rng)
    if rng.random() < 0.2:
        return kernel, False
    while True:
        changed = copy.deepcopy(kernel)
        for _ in range(rng.randint(1, 2)):
            change(changed, rng)
        if changed.isWritten() and changed.text() != kernel.text():
            return changed, True


def fails(kernel, rng):
    """Whether an order of the lanes does not end, or leaves something else in memory."""
    right = sequential(kernel)
    for turn in range(30):
        machine = Machine(kernel, rng, isEager=turn % 2 == 0)
        if not machine.run() or machine.device != right:
            return True
    return False


def refused(kernels):
    """The numbers of the kernels that the compiler refuses."""
    text, ends = "", []
    for kernel in kernels:
        text += kernel.text() + "// -----\n"
        ends.append(text.count("\n"))
    ran = subprocess.run([BUILD / "bin" / "greta-opt", "--split-input-file", "--greta-tile-check-tails", "-"], input=text, capture_output=True, text=True, timeout=300)
    found = set()
    for offset, line, says in re.findall(r"<stdin>:(?:(\d+) offset :)?(\d+):\d+: error: (.*)", ran.stderr):
        assert "' op " in says, says  # it was read
        at = int(offset or 0) + int(line)
        found.add(next(i for i, end in enumerate(ends) if at <= end))
    return found


def test_unsafe_tails_are_refused():
    rng = random.Random(7)
    cases = [made(rng) for _ in range(600)]
    bad = refused([kernel for kernel, _ in cases])
    unsafe = {i for i, (kernel, _) in enumerate(cases) if fails(kernel, rng)}
    assert not unsafe - bad, "unsafe, and let pass:\n" + cases[min(unsafe - bad)][0].text()
    assert not {i for i, (_, changed) in enumerate(cases) if not changed} & (bad | unsafe)
    # Changes make enough of both.
    assert len(unsafe) > 250 and len(cases) - len(bad) > 100, (len(unsafe), len(cases) - len(bad))
