"""Collectives between two hosts, right for every type and size, and how fast, beside plain TCP in the same run.

usage: collectives_hosts.py LIB --namespaces [--csv=FILE] [--commit=HASH]
       collectives_hosts.py LIB --address=HOST:PORT --rank=R [--csv=FILE] [--commit=HASH]

--namespaces makes two networks of this machine, joined by a veth pair, with a rank in each: two processes that share processors, not two
machines. It needs root and iproute2. On two machines each starts its rank with the address of rank 0, whose next port is TCP's. TCP sends what
a collective of two ranks sends at least: `send` one way, `exchange` both ways at once, between buffers of the two processes.
"""
import argparse
import ctypes as C
import datetime
import os
import platform
import re
import select
import socket
import subprocess
import sys

from collectives import NAMES, Comm, Device, best_of, check, timed

HOST, PORT = "10.78.1.1", 29660
PIECE = 1 << 20


class Tcp:
    """A connection between the two ranks."""

    def __init__(self, host, port, rank):
        self.rank = rank
        if rank == 0:
            with socket.create_server((host, port)) as server:
                self.socket, _ = server.accept()
        else:
            while True:
                try:
                    self.socket = socket.create_connection((host, port), timeout=60)
                    break
                except ConnectionRefusedError:
                    pass
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def receive(self, memory):
        at = 0
        while at < len(memory):
            at += self.socket.recv_into(memory[at:at + PIECE])

    def meet(self):
        self.socket.sendall(b"!")
        self.receive(memoryview(bytearray(1)))

    def send(self, data, room):
        if self.rank == 0:
            self.socket.sendall(data)
        else:
            self.receive(room)

    def exchange(self, data, room):
        sent = got = 0
        while sent < len(data) or got < len(room):
            readable, writable, _ = select.select([self.socket], [self.socket] if sent < len(data) else [], [])
            if writable:
                sent += self.socket.send(data[sent:sent + PIECE], socket.MSG_DONTWAIT)
            if readable and got < len(room):
                got += self.socket.recv_into(room[got:got + PIECE], 0, socket.MSG_DONTWAIT)


def measure_tcp(tcp, sizes):
    rows = []
    for n in sizes:
        data, room = memoryview(bytearray(n)), memoryview(bytearray(n))
        for name in ("send", "exchange"):
            call = getattr(tcp, name)
            rows.append(("tcp", name, n, best_of(lambda: call(data, room), repetitions(n), tcp.meet), ""))
    return rows


def repetitions(n):
    return max(4, min(100, (1 << 26) // n))


def measure(args):
    host, port = args.address.rsplit(":", 1)
    device = Device(args.lib, "host")
    tcp = Tcp(host.strip("[]"), int(port) + 1, args.rank)
    rows = measure_tcp(tcp, args.sizes)
    comm = Comm(device, None, args.rank, 2, "host", address=args.address)
    cases, wrong = check(comm, 1_000_003)
    rows.append(("host", "check", 0, 0, "; ".join(wrong[:3]) or f"{cases} cases right"))
    most = max(args.sizes)
    source, to = device.buffer(most, False), device.buffer(most, False)
    device.call("buffer_fill", device.stream, source, C.c_size_t(0), C.c_size_t(most), C.c_uint32(0))
    for n in args.sizes:
        for name in NAMES:
            rows.append(("host", name, n, timed(comm, name, n, to, source, repetitions(n)), ""))
    comm.close()
    rows += measure_tcp(tcp, args.sizes)  # the machine may have had more or less to do before
    return rows, bool(wrong)


def report(args, rows):
    best = {}
    for way, name, n, us, note in rows:
        key = (way, name, n)
        best[key] = min(best.get(key, (us, note)), (us, note))
    rows = [(*key, us, note) for key, (us, note) in best.items()]
    for way, name, n, us, note in rows:
        print(f"{way:5} {name:15} {n:>10} bytes {us:10.1f} us {n / us / 1e3 if us else 0:8.3f} GB/s {note}", flush=True)
    if not args.csv:
        return
    with open("/proc/cpuinfo") as f:
        cpu = re.search(r"model name\s*: (.*)", f.read())
    machine = f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    new = not os.path.exists(args.csv)
    with open(args.csv, "a") as f:
        if new:
            f.write("date,commit,machine,network,way,collective,bytes,us,gb_per_s,note\n")
        for way, name, n, us, note in rows:
            rate = n / us / 1e3 if us else 0
            f.write(f'{datetime.date.today()},{args.commit},"{machine}",{args.network},{way},{name},{n},{us:.2f},{rate:.3f},"{note}"\n')


def in_namespaces(args):
    """This program, once in each of two networks of this machine."""
    names = [f"greta-bench{os.getpid()}-{n}" for n in range(2)]
    made = []

    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", names[0], "link", "add", "e0", "type", "veth", "peer", "name", "e0", "netns", names[1])
        for n, name in enumerate(names):
            ip("-n", name, "addr", "add", f"10.78.1.{n + 1}/24", "dev", "e0")
            ip("-n", name, "link", "set", "e0", "up")
        words = [sys.executable, __file__, args.lib, f"--address={HOST}:{PORT}", f"--commit={args.commit}", "--network=veth of one machine"]
        words += [f"--sizes={','.join(map(str, args.sizes))}"]
        environment = {**os.environ, "UCX_TLS": "tcp"}  # they share the memory of one machine, and hosts do not
        ranks = []
        for rank in range(2):
            csv = [f"--csv={os.path.abspath(args.csv)}"] if args.csv and rank == 0 else []
            ranks.append(subprocess.Popen(["ip", "netns", "exec", names[rank], *words, f"--rank={rank}", *csv], env=environment))
        try:
            return any([rank.wait(500) for rank in ranks])
        finally:
            for rank in ranks:
                rank.kill()
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("lib")
    p.add_argument("--namespaces", action="store_true")
    p.add_argument("--address")
    p.add_argument("--rank", type=int, choices=(0, 1))
    p.add_argument("--sizes", default="16384,1048576,67108864", help="bytes")
    p.add_argument("--csv")
    p.add_argument("--commit", default="")
    p.add_argument("--network", default="", help="what joins the hosts, for the CSV file")
    args = p.parse_args()
    args.sizes = [int(s) for s in args.sizes.split(",")]
    if args.namespaces:
        sys.exit(in_namespaces(args))
    if not args.address or args.rank is None:
        p.error("give --namespaces, or --address and --rank")
    rows, failed = measure(args)
    if args.rank == 0:
        report(args, rows)
    sys.exit(failed)


if __name__ == "__main__":
    main()
