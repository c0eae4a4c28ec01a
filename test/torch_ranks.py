"""Ranks of torch.distributed for tests: comes in a function of the module that tests, which every rank calls; goes out what each returns."""

import multiprocessing
import multiprocessing.connection
import time
import traceback


def serve(connection):
    """A rank: takes bodies from the connection, one after another, and answers with what each returns, or with its traceback."""
    import torch

    import greta.torch  # noqa: F401

    torch.set_num_threads(1)
    torch.rdna.forbid_fallback(True)
    while True:
        try:
            body, rank, size, store, options = connection.recv()
        except EOFError:
            return
        try:
            torch.distributed.init_process_group("greta", init_method=f"file://{store}", rank=rank, world_size=size)
            result = body(torch, torch.distributed, rank, size, **options)
            assert not torch.rdna.fallbacks()
            torch.distributed.destroy_process_group()
            connection.send((result, None))
        except BaseException:
            connection.send((None, traceback.format_exc()))
            return


class Ranks:
    """Processes that run one test's ranks after another's: torch is imported and its operators are compiled once in each."""

    def __init__(self):
        self.context = multiprocessing.get_context("spawn")
        self.processes, self.connections = [], []

    def begin(self, folder, body, size, **options):
        while len(self.processes) < size:
            own, others = self.context.Pipe()
            process = self.context.Process(target=serve, args=(others,))
            process.start()
            others.close()
            self.processes.append(process)
            self.connections.append(own)
        for rank in range(size):
            self.connections[rank].send((body, rank, size, folder / "store", options))

    def run(self, folder, body, size=2, **options):
        """What each rank's body returns."""
        self.begin(folder, body, size, **options)
        results = {}
        until = time.monotonic() + 240
        try:
            while len(results) < size:
                ready = multiprocessing.connection.wait([self.connections[rank] for rank in range(size) if rank not in results], until - time.monotonic())
                assert ready, "the ranks do not end"
                for connection in ready:
                    try:
                        results[self.connections.index(connection)], failure = connection.recv()
                    except EOFError:
                        failure = "a rank ended"
                    assert failure is None, failure
        except BaseException:
            self.end()
            raise
        return [results[rank] for rank in range(size)]

    def end(self):
        for process in self.processes:
            process.kill()
            process.join()
        self.processes, self.connections = [], []
