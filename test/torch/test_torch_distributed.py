"""torch.distributed on rdna, backend greta: ranks are processes that share one lavapipe; results are NumPy's, and those of one process on the CPU."""

import functools
import time

import numpy
import pytest
from torch_ranks import Ranks

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


@pytest.fixture(scope="module")
def pool():
    ranks = Ranks()
    yield ranks
    ranks.end()


@pytest.fixture
def ranks(rdna, pool, tmp_path):
    assert rdna.distributed.Backend.default_device_backend_map["rdna"] == "greta"
    return functools.partial(pool.run, tmp_path)


#
# Collectives
#


def values(torch, rank, dtype, shape=(6, 5)):
    """Whole numbers, whose sums every type has."""
    generator = numpy.random.default_rng(rank)
    return torch.from_numpy(generator.integers(-20, 20, shape)).to(dtype)


def reduced(torch, every, op):
    """The reduced tensors, computed in f32 or wider and rounded once; integers wrap."""
    (dtype,), Op = {one.dtype for one in every}, torch.distributed.ReduceOp
    if dtype == torch.bool:
        return torch.stack(every).any(0) if op in (Op.SUM, Op.MAX) else torch.stack(every).all(0)
    wide = torch.stack(every).to(torch.float64 if dtype == torch.float64 else torch.float32 if dtype.is_floating_point else torch.int64)
    result = {Op.MAX: wide.amax, Op.MIN: wide.amin, Op.PRODUCT: wide.prod}.get(op, wide.sum)(0)
    if op == Op.AVG:
        result = result / len(every) if dtype.is_floating_point else torch.div(result.to(dtype).long(), len(every), rounding_mode="trunc")
    return result.to(dtype)


def collectives(torch, dist, rank, size):
    def check(result, expected, dtype):
        assert result.dtype == dtype
        numpy.testing.assert_array_equal(result.cpu().double(), torch.as_tensor(expected).double())

    operations = [getattr(dist.ReduceOp, name) for name in ("SUM", "MAX", "MIN", "PRODUCT", "AVG")]
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool):
        every = [values(torch, one, dtype) for one in range(size)]
        own = every[rank].to("rdna")
        for op in operations:
            if op == dist.ReduceOp.AVG and dtype == torch.bool:
                continue
            expected, result = reduced(torch, every, op), own.clone()
            dist.all_reduce(result, op)
            check(result, expected, dtype)
            part = expected.reshape(size, -1)[rank]
            result = torch.empty(30 // size, dtype=dtype, device="rdna")
            dist.reduce_scatter_tensor(result, own.flatten(), op)
            check(result, part, dtype)
            result = torch.empty_like(result)
            dist.reduce_scatter(result, list(own.flatten().chunk(size)), op)
            check(result, part, dtype)
        result = own.clone()
        dist.reduce(result, 1)
        check(result, reduced(torch, every, dist.ReduceOp.SUM) if rank == 1 else every[rank], dtype)

    # Collectives that only move elements take any type.
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.uint8, torch.float64):
        every = [values(torch, one, dtype) for one in range(size)]
        own = every[rank].to("rdna")
        result = own.clone()
        dist.broadcast(result, 1)
        check(result, every[1], dtype)
        results = [torch.empty_like(own) for _ in range(size)]
        dist.all_gather(results, own)
        check(torch.stack([one.cpu() for one in results]), torch.stack(every), dtype)
        result = torch.empty((size * 6, 5), dtype=dtype, device="rdna")
        dist.all_gather_into_tensor(result, own)
        check(result, torch.cat(every), dtype)
        results = [torch.empty_like(own) for _ in range(size)] if rank == 2 else None
        dist.gather(own, results, 2)
        if rank == 2:
            check(torch.stack([one.cpu() for one in results]), torch.stack(every), dtype)
        result = torch.empty((2, 5), dtype=dtype, device="rdna")
        dist.scatter(result, [part.contiguous() for part in own.chunk(size)] if rank == 0 else None, 0)
        check(result, every[0].chunk(size)[rank], dtype)
        result = torch.empty_like(own)
        dist.all_to_all_single(result, own)
        check(result, torch.cat([one.chunk(size)[rank] for one in every]), dtype)
        splits = [1, 2, 3]  # rows for each rank; the ranks get 3, 6 and 9
        result = torch.empty((3 * (rank + 1), 5), dtype=dtype, device="rdna")
        dist.all_to_all_single(result, own, [rank + 1] * size, splits)
        check(result, torch.cat([one.split(splits)[rank] for one in every]), dtype)
        results = [torch.empty((rank + 1, 5), dtype=dtype, device="rdna") for _ in range(size)]
        dist.all_to_all(results, list(own.split(splits)))
        check(torch.cat([one.cpu() for one in results]), torch.cat([one.split(splits)[rank] for one in every]), dtype)

    # Tensors that do not lie row by row, parts of others, and none at all.
    every = [values(torch, one, torch.float32) for one in range(size)]
    whole = every[rank].to("rdna")
    dist.all_reduce(whole[:, 1:3])
    check(whole[:, 1:3], sum(every)[:, 1:3], torch.float32)
    check(whole[:, 3:], every[rank][:, 3:], torch.float32)
    dist.broadcast(whole.t(), 0)
    check(whole[:, 3:], every[0][:, 3:], torch.float32)
    result = torch.empty((size, 5), device="rdna")
    result[rank] = rank
    dist.all_gather_into_tensor(result, result[rank])
    check(result, [[one] * 5 for one in range(size)], torch.float32)
    dist.all_reduce(torch.empty(0, device="rdna"))
    large = torch.full((3_000_001,), float(rank + 1), device="rdna")  # several steps of the host's memory
    dist.all_reduce(large)
    assert (large.cpu() == sum(range(1, size + 1))).all()

    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": one} for one in range(size)]
    group = dist.new_group([0, 2])
    if rank != 1:
        result = torch.full((3,), float(rank), device="rdna")
        dist.all_reduce(result, group=group)
        check(result, [2] * 3, torch.float32)
    dist.barrier()
    return dist.get_backend()


def test_collectives(ranks):
    assert ranks(collectives, size=3) == ["greta"] * 3


def asynchronous(torch, dist, rank, size):
    """Works, futures, coalesced calls, and messages that wait for each other."""
    other = 1 - rank
    begun = []
    for step in range(20):  # more than are under way at once, whose tensors are dropped
        tensor = torch.full((1000,), float(rank + step), device="rdna")
        begun.append((step, dist.all_reduce(tensor, async_op=True)))
        del tensor
    for step, work in reversed(begun):
        assert work.wait()
        (result,) = work.result()
        assert (result.cpu() == 2 * step + 1).all()
        assert work.is_completed() and work.is_success()

    tensor = torch.full((8,), float(rank), device="rdna")
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2).wait()
    assert doubled.tolist() == [2] * 8 and future.done()

    tensors = [torch.full((one + 1,), float(rank), device="rdna") for one in range(3)]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    assert [tensor.tolist() for tensor in tensors] == [[1.0], [1.0] * 2, [1.0] * 3]
    results = [torch.empty((2 * (one + 1),), device="rdna") for one in range(3)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for one, result in enumerate(results):
            dist.all_gather_into_tensor(result, torch.full((one + 1,), float(rank), device="rdna"))
    manager.wait()
    assert all(result.tolist() == [0.0] * (one + 1) + [1.0] * (one + 1) for one, result in enumerate(results))
    with dist._coalescing_manager():
        for one, result in enumerate(results):
            dist.reduce_scatter_tensor(result[: one + 1], torch.arange(2.0 * (one + 1)).to("rdna"))
    assert all(result[: one + 1].tolist() == [2.0 * (rank * (one + 1) + i) for i in range(one + 1)] for one, result in enumerate(results))

    if rank == 0:
        dist.send(torch.arange(5).to("rdna"), 1)
        dist.send(torch.arange(5, 8).to("rdna"), 1)
    else:
        for expected in ([0, 1, 2, 3, 4], [5, 6, 7]):
            received = torch.empty(len(expected), dtype=torch.int64, device="rdna")
            dist.recv(received, 0)
            assert received.tolist() == expected
    # 32 MB each way are more than the staging holds: neither may wait for the other's end.
    sent, received = torch.full((1 << 23,), float(rank), device="rdna"), torch.empty(1 << 23, device="rdna")
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, other), dist.P2POp(dist.irecv, received, other)]):
        work.wait()
    assert (received.cpu() == other).all()

    for op, dtype, message in ((dist.ReduceOp.BXOR, torch.int32, "bits"), (dist.ReduceOp.SUM, torch.int16, "Short"), (dist.ReduceOp.AVG, torch.bool, "averages")):
        with pytest.raises((RuntimeError, TypeError), match=message):
            dist.all_reduce(torch.ones(3, dtype=dtype, device="rdna"), op)
    with pytest.raises(RuntimeError, match="do not fit"):
        dist.all_gather_into_tensor(torch.empty(5, device="rdna"), torch.empty(2, device="rdna"))
    with pytest.raises(RuntimeError, match="on cpu|No backend|rdna"):
        dist.all_reduce(torch.ones(3))
    dist.barrier()


def test_asynchronous(ranks):
    ranks(asynchronous)


def results_of_graphs(torch, dist, rank, size):
    """A replay writes where the collective before it reads and writes, unless its tensor was moved."""
    function, kept = torch.compile(lambda x: x + 1, mode="reduce-overhead"), []
    for step in range(6):
        result = function(torch.full((1 << 16,), 10.0 * step + rank, device="rdna"))
        if rank == 1 and step > 2:
            time.sleep(0.2)  # the other's collective is under way
        kept.append((step, result, dist.all_reduce(result, async_op=True)))
    for step, result, work in kept:
        work.wait()
        assert (result.cpu() == 20 * step + 3).all(), (step, result)


def test_results_of_graphs(recording, ranks):
    ranks(results_of_graphs)


#
# Training
#


def network(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))


def batch(torch, step, rank):
    generator = torch.Generator().manual_seed(10 * step + rank)
    return torch.randn(4, 8, generator=generator), torch.randn(4, 4, generator=generator)


STEPS = 4


def train(torch, model, batches, clip=0.0):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for parts in batches:
        optimizer.zero_grad()
        loss = sum(torch.nn.functional.mse_loss(model(x), y) for x, y in parts) / len(parts)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()


def expected_parameters(torch, clip=0.0):
    """Of one process, on the CPU in f64, that has both ranks' batches."""
    model = network(torch).double()
    train(torch, model, [[tuple(t.double() for t in batch(torch, step, rank)) for rank in range(2)] for step in range(STEPS)], clip)
    return [parameter.detach().float().numpy() for parameter in model.parameters()]


def own_batches(torch, rank):
    return [[tuple(t.to("rdna") for t in batch(torch, step, rank))] for step in range(STEPS)]


def check_parameters(results, expected):
    for parameters in results:
        assert len(parameters) == len(expected)
        for result, of_cpu in zip(parameters, expected):
            numpy.testing.assert_allclose(result, of_cpu, rtol=1e-5, atol=1e-6)


def ddp(torch, dist, rank, size, hook):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    torch.manual_seed(rank)  # rank 0's parameters are everyone's
    model = network(torch).to("rdna")
    if rank:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.0005)  # several buckets
    if hook:
        model.register_comm_hook(None, getattr(default_hooks, hook))
    train(torch, model, own_batches(torch, rank))
    return [parameter.detach().cpu().numpy() for parameter in model.module.parameters()]


def test_ddp(rdna, ranks):
    check_parameters(ranks(ddp, hook=""), expected_parameters(rdna))


def test_ddp_calls_back(rdna, ranks):
    """A hook goes on with the future of an all_reduce; gradients pass in f16."""
    results, expected = ranks(ddp, hook="fp16_compress_hook"), expected_parameters(rdna)
    for result, other, of_cpu in zip(*results, expected):
        numpy.testing.assert_array_equal(result, other)
        numpy.testing.assert_allclose(result, of_cpu, atol=2e-3)


def unnamed(torch, dist, rank, size, file):
    dist.destroy_process_group()
    dist.init_process_group(init_method=f"file://{file}", rank=rank, world_size=size)
    group = dist.new_group()
    for of in (None, group):
        for device in ("cpu", "rdna"):
            tensor = torch.full((3,), float(rank + 1), device=device)
            dist.all_reduce(tensor, group=of)
            assert tensor.tolist() == [3.0] * 3
        assert {kind: dist.get_backend_config(of).find(f"{kind}:{name}") >= 0 for kind, name in (("cpu", "gloo"), ("rdna", "greta"))} == {"cpu": True, "rdna": True}
        dist.barrier(of)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]
    parameters = ddp(torch, dist, rank, size, hook="")
    sharded = fsdp(torch, dist, rank, size)
    return parameters, sharded


def test_no_backend_is_named(rdna, ranks, tmp_path):
    """Tensors on rdna have the backend greta and those of the CPU Gloo; DistributedDataParallel and FSDP2 train."""
    results = ranks(unnamed, file=tmp_path / "unnamed")
    check_parameters([one for one, _ in results], expected_parameters(rdna))
    check_parameters([one for _, one in results], expected_parameters(rdna, clip=0.5))


def fsdp(torch, dist, rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("rdna", (size,))
    model = network(torch).to("rdna")
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    assert model[0].weight.to_local().shape == (8, 8)
    train(torch, model, own_batches(torch, rank), clip=0.5)
    return [parameter.full_tensor().detach().cpu().numpy() for parameter in model.parameters()]


def test_fsdp2(rdna, ranks):
    check_parameters(ranks(fsdp), expected_parameters(rdna, clip=0.5))


def dtensor(torch, dist, rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("rdna", (size,))
    x, y = values(torch, 0, torch.float32, (8, 6)), values(torch, 1, torch.float32, (6, 4))
    a, b = distribute_tensor(x.to("rdna"), mesh, [Shard(1)]), distribute_tensor(y.to("rdna"), mesh, [Shard(0)])
    product = a @ b  # parts of sums
    numpy.testing.assert_array_equal(product.full_tensor().cpu(), x @ y)
    numpy.testing.assert_array_equal(product.redistribute(mesh, [Shard(0)]).to_local().cpu(), (x @ y).chunk(size)[rank])
    moved = a.redistribute(mesh, [Shard(0)])  # all to all
    numpy.testing.assert_array_equal(moved.to_local().cpu(), x.chunk(size)[rank])
    numpy.testing.assert_array_equal(moved.redistribute(mesh, [Replicate()]).to_local().cpu(), x)
    model = network(torch)
    inputs, _ = batch(torch, 0, 0)
    expected = model.double()(inputs.double()).float().detach()
    model = parallelize_module(model.float().to("rdna"), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    numpy.testing.assert_allclose(model(inputs.to("rdna")).detach().cpu(), expected, rtol=1e-5, atol=1e-6)


def test_dtensor(ranks):
    ranks(dtensor)


#
# Time
#


def late(torch, dist, rank, size):
    import datetime

    group = dist.new_group(timeout=datetime.timedelta(seconds=3))
    tensor = torch.ones(100, device="rdna")
    dist.all_reduce(tensor, group=group)
    if rank == 0:
        begin = time.monotonic()
        with pytest.raises(dist.DistBackendError, match="rank 1"):
            dist.all_reduce(tensor, group=group)
        assert 2 < time.monotonic() - begin < 20
    dist.barrier()


def test_a_late_rank_is_an_error(ranks):
    ranks(late)


def one_store(torch, dist, rank, size, file):
    from greta import _torch

    store = dist.FileStore(str(file), size)
    for step in range(3):
        backend = _torch.make_collectives(store, rank, size, 20.0)
        if rank == 0:
            time.sleep(0.5)  # the others look for its communicator before it has one
        tensor = torch.full((4,), float(rank + step), device="rdna")
        backend.allreduce([tensor]).wait()
        assert tensor.tolist() == [2 * step + 1] * 4
        del backend


def test_groups_one_after_another_in_one_store(ranks, tmp_path):
    ranks(one_store, file=tmp_path / "living")
