"""Runs a command for scripts/test and ends it when it stops making progress.

    watched.py --silent=SECONDS --log=FILE [--quiet] COMMAND...

In: a command that prints something whenever it is a step further (a test's name, a compiled file).
Out: its output in FILE and on stdout; with --quiet on stdout only where the command fails, and then FILE's last lines. The exit status is the
command's; 124 when it printed nothing for SECONDS and was ended with everything it started. There is no limit for the whole: a machine that other
work shares takes longer, and that is no fault.
"""

import argparse
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import time

LAST_LINES = 60
GRACE = 10  # seconds between SIGTERM and SIGKILL


def end(process):
    """Ends the process and its children, which share its session."""
    for kill in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kill)
            process.wait(GRACE)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def run(command, silent, log, quiet):
    hangup = [] if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [signal.SIGHUP]  # behind nohup
    kinds, early = (signal.SIGTERM, signal.SIGINT, *hangup), []
    for kind in kinds:
        signal.signal(kind, lambda number, _: early.append(number))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    for kind in kinds:
        signal.signal(kind, lambda number, _: (end(process), sys.exit(128 + number)))
    if early:  # while the command began
        end(process)
        return 128 + early[0]
    # A child that outlives the command keeps the pipe open: the command's end counts, not the pipe's.
    with selectors.DefaultSelector() as ready, log.open("wb", buffering=0) as file:
        ready.register(process.stdout, selectors.EVENT_READ)
        heard = time.monotonic()
        while True:
            if ready.select(timeout=1):
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    return process.wait()
                heard = time.monotonic()
                file.write(data)
                if not quiet:
                    sys.stdout.buffer.write(data)
                    sys.stdout.buffer.flush()
            elif process.poll() is not None:
                return process.returncode
            elif time.monotonic() - heard > silent:
                end(process)
                file.write(f"\nended: no output for {silent} seconds\n".encode())
                return 124


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--silent", type=int, required=True)
    parser.add_argument("--log", type=pathlib.Path, required=True)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    status = run(given.command, given.silent, given.log, given.quiet)
    if status and given.quiet or status == 124:
        print("\n".join(given.log.read_text(errors="replace").splitlines()[-LAST_LINES:]))
        print(f"the whole output: {given.log}", flush=True)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
