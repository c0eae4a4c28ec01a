"""Collectives of libgreta_runtime.so: right for every type and size, and how fast, beside torch's NCCL in the same run.

usage: collectives.py LIB [--devices=vulkan:0,vulkan:1] [--ways=nccl,kernel,host] [--check] [--random=N] [--csv=FILE] [--commit=HASH]

Each rank is a process with one of the devices; without --check it measures, too. Needs NumPy; with torch and two of NVIDIA's GPUs it runs torch's
NCCL on buffers of the same sizes. NCCL is found where torch has it, or by the loader. --random: so many random collectives, all ranks the same, of up to
32768 elements, one of 400 of up to 64 MB.
"""
import argparse
import ctypes as C
import datetime
import json
import multiprocessing as mp
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

WAYS = {"nccl": 1, "host": 2, "kernel": 7}  # the kernel of small sums is beside one of the others
OPAQUE = 1  # GRETA_FD_OPAQUE
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i32": np.int32}
NAMES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "exchange")


class CommOptions(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("id", C.c_void_p), ("path", C.c_char_p), ("rank", C.c_uint32), ("size", C.c_uint32),
                ("timeout", C.c_uint64), ("staging", C.c_uint64), ("ways", C.c_uint32), ("address", C.c_char_p)]


class Transfer(C.Structure):
    _fields_ = [("buffer", C.c_void_p), ("offset", C.c_size_t), ("bytes", C.c_size_t), ("peer", C.c_uint32), ("receives", C.c_uint32)]


class Device:
    """A device with a stream."""

    def __init__(self, library, spec):
        self.lib = C.CDLL(library)
        self.lib.greta_last_error.restype = C.c_char_p
        self.device, self.stream = C.c_void_p(), C.c_void_p()
        self.call("device_open", spec.encode(), C.byref(self.device))
        self.call("stream_create", self.device, C.byref(self.stream))

    def call(self, name, *args):
        if status := getattr(self.lib, "greta_" + name)(*args):
            raise RuntimeError(f"{name}: {status}: {self.lib.greta_last_error().decode()}")

    def buffer(self, size, shared=True):
        made = C.c_void_p()
        if shared:
            try:
                self.call("buffer_create_shared", self.device, C.c_uint32(OPAQUE), C.c_size_t(size), C.byref(made))
                return made
            except RuntimeError:  # no device of NCCL's
                pass
        self.call("buffer_create", self.device, C.c_size_t(size), C.byref(made))
        return made

    def free(self, *buffers):
        for b in buffers:
            self.lib.greta_buffer_destroy(b)

    def write(self, buffer, array):
        data = np.ascontiguousarray(array)
        self.call("buffer_write", self.stream, buffer, C.c_size_t(0), C.c_void_p(data.ctypes.data), C.c_size_t(data.nbytes))

    def read(self, buffer, count, dtype):
        out = np.empty(count, dtype)
        self.call("buffer_read", self.stream, buffer, C.c_size_t(0), C.c_void_p(out.ctypes.data), C.c_size_t(out.nbytes))
        return out

    def sync(self):
        self.call("stream_synchronize", self.stream)


class Comm:
    def __init__(self, device, path, rank, size, way, timeout=60000, address=None):
        self.d, self.rank, self.size, self.comm = device, rank, size, C.c_void_p()
        at = address.encode() if address else None
        options = CommOptions(C.sizeof(CommOptions), None, None if at else path.encode(), rank, size, timeout, 0, WAYS[way], at)
        device.call("comm_create", device.device, C.byref(options), C.byref(self.comm))

    def run(self, name, to, source, count, dtype="f32", op=0, root=0, to_at=0, from_at=0):
        """count: elements of a reduction, else bytes."""
        z, args = C.c_size_t, (self.comm, self.d.stream, to, C.c_size_t(to_at), source, C.c_size_t(from_at))
        if name in ("all_reduce", "reduce_scatter"):
            return self.d.call("comm_" + name, *args, z(count), dtype.encode(), C.c_uint32(op))
        if name == "exchange":  # to the next, from the last
            after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
            both = (Transfer * 2)(Transfer(source.value, from_at, count, after, 0), Transfer(to.value, to_at, count, before, 1))
            return self.d.call("comm_exchange", self.comm, self.d.stream, both, z(2))
        extra = (C.c_uint32(root),) if name == "broadcast" else ()
        return self.d.call("comm_" + name, *args, z(count), *extra)

    def close(self):
        self.d.lib.greta_comm_destroy(self.comm)


def bf16_to_f32(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def values(rank, count, dtype, seed):
    """Small integers: every order of sums is exact in f32, f16 and bf16."""
    x = np.random.default_rng(seed * 64 + rank).integers(-8, 9, count)
    if dtype == "bf16":
        return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return x.astype(DTYPES[dtype])


def wanted(name, rank, size, count, dtype, op, root, seed):
    """The content of the rank's `to`; count as Comm.run has it, of elements of dtype."""
    if name in ("all_reduce", "reduce_scatter"):
        whole = count * (size if name == "reduce_scatter" else 1)
        all_ranks = [values(r, whole, dtype, seed) for r in range(size)]
        numbers = np.stack([bf16_to_f32(v) if dtype == "bf16" else v.astype(np.float32 if dtype != "i32" else np.int64) for v in all_ranks])
        total = numbers.max(0) if op else numbers.sum(0)
        out = (total.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) if dtype == "bf16" else total.astype(DTYPES[dtype])
        return out[rank * count:(rank + 1) * count] if name == "reduce_scatter" else out
    if name == "all_gather":
        return np.concatenate([values(r, count, dtype, seed) for r in range(size)])
    if name == "all_to_all":
        return np.concatenate([values(r, count * size, dtype, seed)[rank * count:(rank + 1) * count] for r in range(size)])
    return values(root if name == "broadcast" else (rank - 1) % size, count, dtype, seed)


def once(comm, name, count, dtype, op, root, seed, shared):
    """Runs one collective and compares; returns what is wrong."""
    d, item = comm.d, np.dtype(DTYPES[dtype]).itemsize
    gives = count * (comm.size if name in ("reduce_scatter", "all_to_all") else 1)
    gets = count * (comm.size if name in ("all_gather", "all_to_all") else 1)
    source, to = d.buffer(max(gives, 1) * item, shared), d.buffer(max(gets, 1) * item, shared)
    if gives:
        d.write(source, values(comm.rank, gives, dtype, seed))
    comm.run(name, to, source, count if name in ("all_reduce", "reduce_scatter") else count * item, dtype, op, root)
    got = d.read(to, gets, DTYPES[dtype]) if gets else np.empty(0, DTYPES[dtype])
    d.free(source, to)
    want = wanted(name, comm.rank, comm.size, count, dtype, op, root, seed)
    bad = np.flatnonzero(got != want)
    return f"{name} {count} {dtype} op {op} root {root}: element {bad[0]} is {got[bad[0]]}, not {want[bad[0]]} ({bad.size} wrong)" if bad.size else ""


def check(comm, large):
    wrong, cases = [], 0
    for name in NAMES:
        for dtype in DTYPES:
            for count in (0, 1, 1001, large):
                for op in (0, 1) if name in ("all_reduce", "reduce_scatter") else (0,):
                    cases += 1
                    wrong += filter(None, [once(comm, name, count, dtype, op, cases % comm.size, cases, cases % 3 != 0)])
    return cases, wrong


def random_sequence(comm, n):
    """All ranks draw the same."""
    rng, wrong = np.random.default_rng(7), []
    for i in range(n):
        name, dtype = NAMES[rng.integers(len(NAMES))], list(DTYPES)[rng.integers(4)]
        most = 1 << int(rng.integers(1, 16))
        if rng.integers(400) == 0:  # of the larger one of the buffers
            most = (64 << 20) // np.dtype(DTYPES[dtype]).itemsize // (comm.size if name in ("reduce_scatter", "all_gather", "all_to_all") else 1)
        count = int(rng.integers(most + 1))
        wrong += filter(None, [once(comm, name, count, dtype, int(rng.integers(2)), int(rng.integers(comm.size)), i, bool(rng.integers(2)))])
    return wrong


def best_of(call, reps, synchronize):
    """Microseconds of each of `reps` calls that follow each other, the best of six rounds."""
    best = float("inf")
    for _ in range(6):
        synchronize()
        begin = time.perf_counter()
        for _ in range(reps):
            call()
        synchronize()
        best = min(best, (time.perf_counter() - begin) / reps * 1e6)
    return best


def timed(comm, name, size, to, source, reps):
    """best_of for a collective of `size` bytes."""
    count = size // 4 if name in ("all_reduce", "reduce_scatter") else size
    if name in ("reduce_scatter", "all_gather", "all_to_all"):
        count //= comm.size
    call = lambda: comm.run(name, to, source, count)  # noqa: E731
    if name == "all_reduce":  # Python's own time counts, too
        z, function = C.c_size_t, comm.d.lib.greta_comm_all_reduce
        args = (comm.comm, comm.d.stream, to, z(0), source, z(0), z(count), b"f32", C.c_uint32(0))
        call = lambda: function(*args) and comm.d.call("comm_all_reduce", *args)  # noqa: E731
    return best_of(call, reps, comm.d.sync)


def graph_of(comm, to, source, size):
    """Microseconds of one of 100 in a graph, replayed ten times."""
    d, graph, best = comm.d, C.c_void_p(), float("inf")
    d.call("graph_begin", d.stream)
    for _ in range(100):
        comm.run("all_reduce", to, source, size // 4)
    d.call("graph_end", d.stream, C.byref(graph))
    for _ in range(6):
        d.sync()
        begin = time.perf_counter()
        for _ in range(10):
            d.call("graph_launch", graph, d.stream)
        d.sync()
        best = min(best, (time.perf_counter() - begin) / 1000 * 1e6)
    d.lib.greta_graph_destroy(graph)
    return best


def bus(args, spec):
    """Gigabytes a second between the device and memory of the host, as the host staged way sees it: each direction, then both at once."""
    d, n, each = Device(args.lib, spec), 1 << 28, 1 << 22
    out, inwards = C.c_void_p(), C.c_void_p()
    for s in (out, inwards):
        d.call("stream_create", d.device, C.byref(s))
    import mmap
    memory = mmap.mmap(-1, n)
    address, host, a, b = C.addressof(C.c_char.from_buffer(memory)), C.c_void_p(), d.buffer(n, False), d.buffer(n, False)
    d.call("buffer_import_pointer", d.device, C.c_void_p(address), C.c_size_t(n), C.byref(host))
    rows, z = [], C.c_size_t

    def copies(*directions):
        best = float("inf")
        for _ in range(4):
            begin = time.perf_counter()
            for i in range(0, n // 2, each):
                for s, is_out in directions:
                    to, source = (host, a) if is_out else (b, host)
                    at = i if is_out else n // 2 + i
                    d.call("buffer_copy", s, to, z(at), source, z(at), z(each))
                    d.call("stream_flush", s)
            for s, _ in directions:
                d.call("stream_synchronize", s)
            best = min(best, time.perf_counter() - begin)
        return best * 1e6
    rows.append(("bus", "device to host", n // 2, copies((out, True)), ""))
    rows.append(("bus", "host to device", n // 2, copies((inwards, False)), ""))
    rows.append(("bus", "both directions at once", n, copies((out, True), (inwards, False)), ""))
    return rows


def rank_main(rank, args, path, results):
    devices = args.devices.split(",")
    rows, size = [], len(devices)
    torch = None
    if not args.check:
        try:
            import torch
            import torch.distributed as dist
            if torch.cuda.device_count() < size:
                torch = None
        except ImportError:
            pass
    d = Device(args.lib, devices[rank])
    for way in args.ways.split(","):
        try:
            comm = Comm(d, path + way, rank, size, way)
        except RuntimeError as e:
            rows.append((way, "create", 0, 0, str(e)))
            continue
        text = C.c_char_p()
        d.call("comm_info", comm.comm, C.byref(text))
        info = json.loads(text.value)
        if rank == 0:
            print(way, info, flush=True)
        if not (info["kernel_bytes"] if way == "kernel" else info["way"] == way):
            rows.append((way, "create", 0, 0, "left out: " + info["left_out"].get(way, "")))
            comm.close()
            continue
        begin = time.perf_counter()
        cases, wrong = check(comm, 1_000_003 if args.check else 4_000_037)
        rows.append((way, "check", 0, 0, f"{cases} cases right in {time.perf_counter() - begin:.1f} s" if not wrong else "; ".join(wrong[:3])))
        if args.random:
            begin = time.perf_counter()
            wrong = random_sequence(comm, args.random)
            rows.append((way, "random", 0, 0, f"{args.random} right in {time.perf_counter() - begin:.1f} s" if not wrong else "; ".join(wrong[:3])))
        if not args.check:
            most = max(args.sizes)
            source, to = d.buffer(most), d.buffer(most)
            d.call("buffer_fill", d.stream, source, C.c_size_t(0), C.c_size_t(most), C.c_uint32(0))
            for name in NAMES:
                for n in args.sizes if name == "all_reduce" else [most]:
                    us = timed(comm, name, n, to, source, max(10, min(200, (1 << 28) // n)))
                    rows.append((way, name, n, us, ""))
            for n in args.sizes:  # as models have it, and torch below
                rows.append((way, "all_reduce in place", n, timed(comm, "all_reduce", n, to, to, max(10, min(200, (1 << 28) // n))), ""))
            if way == "nccl":  # memory that is copied first
                a, b = d.buffer(most, False), d.buffer(most, False)
                rows.append((way, "all_reduce of memory that is not shared", most, timed(comm, "all_reduce", most, b, a, 2), ""))
                d.free(a, b)
            if way in ("kernel", "nccl"):  # nccl cuts the graph at each
                for n in [n for n in args.sizes if n <= 65536]:
                    rows.append((way, "all_reduce in a graph of 100", n, graph_of(comm, to, source, n), ""))
            # With work between: a fill before each.
            for n in args.sizes:
                begin, reps = None, max(10, min(100, (1 << 28) // n))
                for i in range(reps + 5):
                    if i == 5:
                        d.sync()
                        begin = time.perf_counter()
                    d.call("buffer_fill", d.stream, source, C.c_size_t(0), C.c_size_t(64), C.c_uint32(0))
                    comm.run("all_reduce", to, source, n // 4)
                d.sync()
                rows.append((way, "all_reduce behind a fill", n, (time.perf_counter() - begin) / reps * 1e6, ""))
            d.free(source, to)
        comm.close()
    if torch:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533")
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", rank=rank, world_size=size, device_id=torch.device("cuda", rank))
        for n in args.sizes:
            x = torch.zeros(n // 4, device="cuda")
            reps = max(5, min(200, (1 << 28) // n))
            rows.append(("torch", "all_reduce", n, best_of(lambda: dist.all_reduce(x), reps, torch.cuda.synchronize), ""))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(20):
                    dist.all_reduce(x)
            rows.append(("torch", "all_reduce in a graph of 20", n, best_of(graph.replay, max(2, reps // 20), torch.cuda.synchronize) / 20, ""))
            del graph
        dist.destroy_process_group()
    results.put((rank, rows))


def copies(args):
    """greta_buffer_copy_peer between the first two devices."""
    specs, rows = args.devices.split(","), []
    a, b = Device(args.lib, specs[0]), Device(args.lib, specs[1])
    for n in args.sizes:
        x, y = a.buffer(n, False), b.buffer(n, False)
        data = np.random.default_rng(1).integers(0, 1 << 31, n // 4).astype(np.int32)
        a.write(x, data)
        best = float("inf")
        for _ in range(5):
            begin = time.perf_counter()
            a.call("buffer_copy_peer", b.stream, y, C.c_size_t(0), a.stream, x, C.c_size_t(0), C.c_size_t(n))
            b.sync()
            a.sync()
            best = min(best, (time.perf_counter() - begin) * 1e6)
        right = bool((b.read(y, n // 4, np.int32) == data).all())
        rows.append(("copy", "copy_peer", n, best, "" if right else "wrong"))
        a.free(x, y)
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("lib")
    p.add_argument("--devices", default="vulkan:0,vulkan:1")
    p.add_argument("--ways", default="nccl,kernel,host")
    p.add_argument("--check", action="store_true", help="measure nothing")
    p.add_argument("--random", type=int, default=0)
    p.add_argument("--sizes", default="16384,4194304,268435456", help="bytes")
    p.add_argument("--csv")
    p.add_argument("--commit", default="")
    args = p.parse_args()
    args.sizes = [int(s) for s in args.sizes.split(",")]
    if "nccl" in args.ways and not os.environ.get("GRETA_NCCL_LIBRARY"):
        try:
            import nvidia.nccl
            os.environ["GRETA_NCCL_LIBRARY"] = os.path.join(list(nvidia.nccl.__path__)[0], "lib", "libnccl.so.2")
        except ImportError:
            pass
    context, size = mp.get_context("spawn"), len(args.devices.split(","))
    results, rows, failed = context.Queue(), [], False
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=rank_main, args=(r, args, os.path.join(folder, "comm"), results)) for r in range(size)]
        for r in ranks:
            r.start()
        got = {}
        while len(got) < size:
            try:
                rank, its = results.get(timeout=5)
                got[rank] = its
            except Exception:
                if any(r.exitcode for r in ranks):
                    sys.exit("a rank has failed")
        for r in ranks:
            r.join()
    for rank in sorted(got):
        for way, name, n, us, note in got[rank]:
            if rank == 0 or (note and name != "create"):
                print(f"rank {rank} {way:6} {name:40} {n:>10} bytes {us:10.1f} us {n / us / 1e3 if us else 0:8.2f} GB/s {note}", flush=True)
            failed |= name in ("check", "random") and "right" not in note
    rows = got[0]
    if not args.check:
        for row in copies(args) + bus(args, args.devices.split(",")[0]):
            rows.append(row)
            print(*row[:3], f"{row[3]:.1f} us {row[2] / row[3] / 1e3:.2f} GB/s", row[4], flush=True)
            failed |= row[4] == "wrong"
    if args.csv:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        gpu = subprocess.run(query, capture_output=True, text=True).stdout.splitlines()[0].replace(", ", ",") if shutil.which("nvidia-smi") else ","
        new = not os.path.exists(args.csv)
        with open(args.csv, "a") as f:
            if new:
                f.write("date,commit,gpu,driver,devices,way,collective,bytes,us,gb_per_s,note\n")
            for way, name, n, us, note in rows:
                f.write(f'{datetime.date.today()},{args.commit},{gpu},"{args.devices}",{way},{name},{n},{us:.2f},{n / us / 1e3 if us else 0:.2f},"{note}"\n')
    sys.exit(failed)


if __name__ == "__main__":
    main()
