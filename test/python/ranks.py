"""Ranks of one process for the tests of communicators: a thread with a device each."""

import threading

import greta


def ranks(body, devices, **options):
    """Calls body(communicator) in a thread for each device, and raises what the first one to fail raised."""
    name, failures = greta.unique_id(), []

    def run(rank):
        try:
            with greta.Communicator(rank, len(devices), id=name, device=devices[rank], timeout=60, **options) as c:
                body(c)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(devices))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
