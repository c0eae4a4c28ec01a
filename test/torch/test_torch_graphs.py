"""torch.compile(mode="reduce-overhead") on rdna: recorded calls give what calls give, whoever keeps results."""

import copy

import pytest

pytestmark = pytest.mark.xdist_group("torch")


@pytest.fixture
def recorded(recording, monkeypatch):
    """Counts recordings and replays."""
    import greta.torch._graphs as graphs

    rdna = recording
    counts = {"recorded": 0, "replayed": 0}
    make, replay_once = graphs.Recording.__init__, graphs.Recording.replay

    def counting_make(self, *arguments):
        counts["recorded"] += 1
        make(self, *arguments)

    def counting_replay(self, *arguments):
        counts["replayed"] += 1
        return replay_once(self, *arguments)

    monkeypatch.setattr(graphs.Recording, "__init__", counting_make)
    monkeypatch.setattr(graphs.Recording, "replay", counting_replay)
    rdna._dynamo.reset()
    yield counts
    rdna._dynamo.reset()


def models(torch, model):
    return model, copy.deepcopy(model).to("rdna")


def test_inference(rdna, recorded):
    torch = rdna
    torch.manual_seed(0)
    reference, model = models(torch, torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 3)))
    compiled = torch.compile(model, mode="reduce-overhead")
    results, expected = [], []
    with torch.no_grad():
        for _ in range(7):
            x = torch.randn(5, 8)
            results.append(compiled(x.to("rdna")))  # kept, all of them
            expected.append(reference(x))
        torch.testing.assert_close([one.cpu() for one in results], expected, rtol=1e-4, atol=1e-5)
        assert recorded == {"recorded": 1, "replayed": 6}
        # A parameter that lies elsewhere is another recording, one that is written is not.
        for change in (lambda one: one.data.mul_(2), lambda one: setattr(one, "data", one.data.clone() * 2)):
            for one in (*reference.parameters(), *model.parameters()):
                change(one)
            for _ in range(3):
                x = torch.randn(5, 8)
                torch.testing.assert_close(compiled(x.to("rdna")).cpu(), reference(x), rtol=1e-4, atol=1e-4)
        assert recorded["recorded"] == 2


def test_results_that_are_arguments(rdna, recorded):
    torch = rdna

    @torch.compile(mode="reduce-overhead")
    def function(x, y):
        return x, y.t(), x + y, y[1:]

    for seed in range(5):
        x, y = torch.full((3, 3), float(seed)).to("rdna"), torch.arange(9.0).reshape(3, 3).to("rdna") + seed
        results = function(x, y)
        for one, of in zip(results, (x, y.t(), x + y, y[1:])):
            torch.testing.assert_close(one.cpu(), of.cpu(), rtol=0, atol=0)


@pytest.mark.parametrize("steps", [1, 2], ids=["each", "two at once"])
def test_training(rdna, recorded, steps):
    """Gradients of `steps` calls together, losses kept, as one process on the CPU has them."""
    torch = rdna
    torch.manual_seed(0)
    pair = models(torch, torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)))
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.05, momentum=0.9) for one in pair]
    compiled = torch.compile(pair[1], mode="reduce-overhead")
    losses = [[], []]
    for _ in range(6):
        batches = [torch.randn(6, 8) for _ in range(steps)]
        for which, (model, optimizer) in enumerate(zip((pair[0], compiled), optimizers)):
            optimizer.zero_grad()
            outputs = [model(x.to(("cpu", "rdna")[which])) for x in batches]
            for one in outputs:
                loss = one.square().mean()
                loss.backward()
                losses[which].append(loss.detach())
            optimizer.step()
    torch.testing.assert_close([one.cpu() for one in losses[1]], losses[0], rtol=1e-4, atol=1e-5)
    for one, other in zip(*(model.parameters() for model in pair)):
        torch.testing.assert_close(other.cpu(), one, rtol=1e-4, atol=1e-5)
    assert recorded["replayed"] >= 4 and not torch.rdna.fallbacks()


def test_random_numbers(rdna, recorded):
    torch = rdna

    @torch.compile(mode="reduce-overhead")
    def function(x):
        return torch.nn.functional.dropout(x, 0.5)

    x = torch.ones(64, device="rdna")
    masks = [tuple(function(x).cpu().tolist()) for _ in range(6)]
    assert len(set(masks)) == 6 and recorded["replayed"] >= 4


def test_buffers_that_a_call_writes(rdna, recorded):
    """Batch norm's running statistics: written once a call, recorded or not."""
    torch = rdna
    torch.manual_seed(0)
    reference, model = models(torch, torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6)))
    compiled = torch.compile(model, mode="reduce-overhead")
    for _ in range(5):
        x = torch.randn(9, 4)
        torch.testing.assert_close(compiled(x.to("rdna")).cpu(), reference(x), rtol=1e-4, atol=1e-5)
    for one, other in zip(reference.buffers(), model.buffers()):
        torch.testing.assert_close(other.cpu(), one, rtol=1e-4, atol=1e-5)


def test_indices_are_checked(rdna, recorded):
    """A kernel that asserts is a part of the recording, and a wrong index is an error where the replay is waited for."""
    torch = rdna
    torch.manual_seed(0)
    reference, model = models(torch, torch.nn.Sequential(torch.nn.Embedding(10, 8), torch.nn.Linear(8, 3)))
    compiled = torch.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(4):
            x = torch.randint(10, (6,))
            torch.testing.assert_close(compiled(x.to("rdna")).cpu(), reference(x), rtol=1e-4, atol=1e-5)
        x[3] = 10
        result = compiled(x.to("rdna"))
        with pytest.raises(RuntimeError, match="device-side assert failed: index out of bounds"):
            result.cpu()
        x[3] = 9
        torch.testing.assert_close(compiled(x.to("rdna")).cpu(), reference(x), rtol=1e-4, atol=1e-5)
    assert recorded == {"recorded": 1, "replayed": 5}


def test_what_cannot_be_recorded(rdna, recorded, monkeypatch):
    """A call that the graph refuses is computed, and said once."""
    torch = rdna
    import greta.torch._graphs as graphs

    def refuse(self, *arguments):
        raise RuntimeError("no graphs today")

    monkeypatch.setattr(graphs.Recording, "__init__", refuse)
    function = torch.compile(lambda x: x * 2 + 1, mode="reduce-overhead")
    before = torch._dynamo.utils.counters["inductor"]["cudagraph_skips"]
    for seed in range(4):
        assert function(torch.full((4,), float(seed), device="rdna")).cpu().tolist() == [2 * seed + 1] * 4
    assert torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] == before + 1


def test_other_threads_while_a_call_is_recorded(rdna, recorded, monkeypatch):
    """A graph has its own call's work alone, and what another thread asks for meanwhile is done."""
    import threading

    import greta.torch._graphs as graphs

    torch = rdna
    results, make = [], graphs.Recording.__init__

    def other():
        results.append((torch.full((64,), 5, device="rdna") + 1).cpu().tolist())

    def with_another(self, model, *arguments):
        def both(given):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            return model(given)

        make(self, both, *arguments)

    monkeypatch.setattr(graphs.Recording, "__init__", with_another)
    other()  # compiled before
    function = torch.compile(lambda x: torch.sin(x) * 2, mode="reduce-overhead")
    for seed in range(4):
        x = torch.full((8,), seed / 4)
        torch.testing.assert_close(function(x.to("rdna")).cpu(), torch.sin(x) * 2, rtol=1e-5, atol=1e-5)
    assert results == [[6] * 64] * 2 and recorded == {"recorded": 1, "replayed": 3}


def test_results_that_other_libraries_have(rdna, recorded):
    """What DLPack gives away keeps its numbers when the next replay comes, and is the tensor's own memory."""
    import greta

    torch = rdna
    function = torch.compile(lambda x: x * 2 + 1, mode="reduce-overhead")

    def on_host(one):
        return (one.numpy() if isinstance(one, greta.Array) else one.cpu().numpy()).tolist()

    for take in (lambda one: greta.from_dlpack(one, device="vulkan"), torch.from_dlpack):
        for seed in range(3):
            result = function(torch.full((256,), float(seed), device="rdna"))
        taken = take(result)
        function(torch.full((256,), 77.0, device="rdna"))
        torch.rdna.synchronize()
        assert result.tolist() == [5] * 256 and on_host(taken) == [5] * 256
        result.add_(1)
        torch.rdna.synchronize()
        assert on_host(taken) == [6] * 256
    assert recorded["recorded"] == 1 and recorded["replayed"] >= 5


@pytest.mark.parametrize("then", ("kept", "dropped", "moved", "gathered"))
def test_other_streams_read_results(rdna, recorded, then):
    """A replay waits for streams that read what it writes, also where nobody has the result any more; streams that read it later wait for its copy, which they cannot know of."""
    import torch.distributed

    from greta import _torch

    torch = rdna
    group = torch.distributed
    if then == "gathered":  # by a collective, which has a stream of its own
        group.init_process_group("greta", store=group.HashStore(), rank=0, world_size=1)
    function = torch.compile(lambda x: x + 1, mode="reduce-overhead")
    stream, late, size = torch.rdna.Stream(), torch.ones(256, 256, device="rdna"), 1 << 16

    def keep_busy():
        for _ in range(5):
            late @ late

    reads = []
    for step in range(6):
        result = function(torch.full((size,), float(step), device="rdna"))
        stream.wait_stream(torch.rdna.current_stream())
        if then in ("moved", "gathered"):
            keep_busy()
            _torch.move_away(result)
        with torch.rdna.stream(stream):
            if then in ("kept", "dropped"):
                keep_busy()
            if then == "gathered":
                read = torch.empty_like(result)
                group.all_gather([read], result)
                reads.append(read * 2)
            else:
                reads.append(result * 2)
        if then == "dropped":
            del result
        function(torch.full((size,), -5.0, device="rdna"))
    torch.rdna.synchronize()
    if then == "gathered":
        group.destroy_process_group()
    for step, one in enumerate(reads):
        assert (one.cpu() == 2 * (step + 1)).all(), step
    assert recorded["replayed"] >= 10


def test_parameters_that_are_results(rdna, recorded, monkeypatch):
    """A graph's next replay hears of other graphs' replays that read its results as parameters. lavapipe has one queue, whose order the numbers would not tell from a wait."""
    import greta.torch._graphs as graphs

    torch = rdna
    heard = []

    class Lending(graphs._torch.Lending):
        def prepare_replay(self, read):
            heard.append([one.data_ptr() for one in read])
            super().prepare_replay(read)

    monkeypatch.setattr(graphs._torch, "Lending", Lending)
    make = torch.compile(lambda x: x + 1, mode="reduce-overhead")
    layer, stream = torch.nn.Module(), torch.rdna.Stream()
    layer.weight = torch.nn.Parameter(torch.zeros(64, device="rdna"), requires_grad=False)
    layer.forward = lambda x: layer.weight * x
    read, two = torch.compile(layer, mode="reduce-overhead"), torch.full((64,), 2.0, device="rdna")
    for step in range(6):
        layer.weight.data = make(torch.full((64,), float(step), device="rdna"))
        stream.wait_stream(torch.rdna.current_stream())
        with torch.rdna.stream(stream):
            result = read(two)
        if step > 1:
            assert graphs._torch.is_lent(layer.weight) and heard[-1] == [layer.weight.data_ptr()]
        make(torch.full((64,), -5.0, device="rdna"))
        torch.rdna.synchronize()
        assert (result.cpu() == 2 * (step + 1)).all(), step
    assert recorded["replayed"] >= 14


def test_deterministic_recordings(recording):
    """A graph fills new memory whose filling it can record."""
    torch = recording
    x, graph = torch.arange(4, device="rdna"), torch.accelerator.Graph()
    torch.use_deterministic_algorithms(True)
    try:
        x.to(torch.float32) + 1
        with graph:
            words, wide = torch.empty(4, device="rdna"), torch.empty(4, dtype=torch.int64, device="rdna")
            wide.copy_(x)
    finally:
        torch.use_deterministic_algorithms(False)
    graph.replay()
    assert words.isnan().all() and torch.equal(wide.cpu(), torch.arange(4))


def test_calls_from_two_streams(rdna, recorded):
    """Calls of one function in two streams give what calls give."""
    torch = rdna
    function = torch.compile(lambda x: (x + 1) * x, mode="reduce-overhead")
    streams, late, results = [torch.rdna.Stream() for _ in range(2)], torch.ones(256, 256, device="rdna"), []
    torch.rdna.synchronize()
    for step in range(8):
        with torch.rdna.stream(streams[step % 2]):
            x = torch.full((1 << 16,), float(step), device="rdna")
            if step % 2:
                for _ in range(5):
                    late @ late
            results.append(function(x))
    torch.rdna.synchronize()
    for step, one in enumerate(results):
        assert (one.cpu() == (step + 1) * step).all(), step
    assert recorded == {"recorded": 1, "replayed": 7}


def test_no_user_gets_the_stream_of_recordings(rdna, recorded, monkeypatch):
    """However many streams there are, no graph is recorded from one that others may use meanwhile."""
    import greta.torch._graphs as graphs

    torch = rdna
    made, recorded_on, make = {torch.rdna.Stream().stream_id for _ in range(40)}, [], graphs.Recording.__init__

    def noting(self, model, *arguments):
        def noted(given):
            recorded_on.append(torch.rdna.current_stream().stream_id)
            return model(given)

        make(self, noted, *arguments)

    monkeypatch.setattr(graphs.Recording, "__init__", noting)
    function = torch.compile(lambda x: torch.cos(x) - 1, mode="reduce-overhead")
    for _ in range(3):
        function(torch.ones(8, device="rdna"))
    made |= {torch.rdna.Stream().stream_id for _ in range(40)}
    assert len(made) <= 32 and len(recorded_on) == 1 and recorded_on[0] not in made


def test_two_threads_record(rdna, recorded, monkeypatch):
    """While one thread records a call, another's recording waits, and neither gives graphs up."""
    import threading
    import time

    import greta.torch._graphs as graphs

    torch = rdna
    functions = [torch.compile(lambda x: torch.sin(x) * 3, mode="reduce-overhead"), torch.compile(lambda x: torch.cos(x) * 5, mode="reduce-overhead")]
    x, make, threads, results = torch.full((16,), 0.5, device="rdna"), graphs.Recording.__init__, [], []
    for function in functions:
        function(x)  # compiled; the next call of each is recorded

    def with_another(self, model, *arguments):
        def both(given):
            if not threads:
                threads.append(threading.Thread(target=lambda: results.append(functions[1](x).tolist())))
                threads[0].start()
                time.sleep(0.5)
            return model(given)

        make(self, both, *arguments)

    monkeypatch.setattr(graphs.Recording, "__init__", with_another)
    before = torch._dynamo.utils.counters["inductor"]["cudagraph_skips"]
    first = functions[0](x).tolist()
    threads[0].join()
    assert recorded == {"recorded": 2, "replayed": 2} and torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] == before
    assert first == pytest.approx((torch.sin(x.cpu()) * 3).tolist()) and results[0] == pytest.approx((torch.cos(x.cpu()) * 5).tolist())


def test_what_carries_out_operators_is_not_compiled(rdna):
    """After a graph break Dynamo looks at all frames; those of the device's operators are none of the model's."""
    from torch._dynamo.utils import counters

    torch = rdna
    torch._dynamo.reset()
    counters.clear()
    function = torch.compile(lambda x: x[(x > 0.5).nonzero()[:, 0]].sum() + x.sum())
    for size in (5, 7):
        x = torch.linspace(0, 1, size)
        assert function(x.to("rdna")).item() == pytest.approx((x[x > 0.5].sum() + x.sum()).item())
    assert [reason for reason in counters["graph_break"] if "nonzero" not in reason] == []


ON_A_SECOND_DEVICE = """
import torch
import greta.torch

torch.rdna.forbid_fallback(True)
function = torch.compile(lambda x: x * 2 + 1, mode="reduce-overhead")
kept = []
for seed in range(5):
    for name in ("rdna:1", "rdna:0"):
        kept.append((name, seed, function(torch.full((8,), float(seed), device=name))))
for name, seed, result in kept:
    assert str(result.device) == name and result.tolist() == [2 * seed + 1] * 8, (name, seed, result)
assert torch.rdna.current_device() == 0
replays = [one.replay for one in __import__("gc").get_objects() if type(one).__name__ == "Recording"]
assert len(replays) == 2, replays
"""


def test_a_second_device(recording, alone):
    """While the first is the one in use. Both are the same lavapipe, opened twice."""
    alone(ON_A_SECOND_DEVICE, GRETA_TORCH_DEVICES="vulkan:0,vulkan:0")
