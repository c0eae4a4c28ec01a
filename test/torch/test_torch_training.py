"""Training on torch.device("rdna"), operator by operator and with torch.compile: the losses and parameters of the CPU."""

import copy
import re

import pytest
from conftest import ROOT
from narrow_types import in_types

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


def network(torch):
    F = torch.nn.functional

    class Block(torch.nn.Module):
        def __init__(self, width=16, heads=2):
            super().__init__()
            self.heads = heads
            self.norm, self.qkv, self.out = torch.nn.LayerNorm(width), torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.mlp = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, 32), torch.nn.GELU(), torch.nn.Linear(32, width))

        def forward(self, x):
            batch, length, width = x.shape
            q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(x)

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(20, 16), Block(), torch.nn.Linear(16, 20))


def train(torch, model, device, isCompiled):
    model = copy.deepcopy(model).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)  # Adam makes steps of gradients that are zero but for rounding
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randint(0, 20, (2, 12), generator=generator).to(device) for _ in range(2))

    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())

    step = torch.compile(loss_of) if isCompiled else loss_of
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = step(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach().cpu() for parameter in model.parameters()]


@pytest.mark.parametrize("isCompiled", (False, True), ids=("eager", "compiled"))
def test_a_transformer_block_trains(rdna, isCompiled):
    torch = rdna
    model = network(torch)
    losses, parameters = train(torch, model, "rdna", isCompiled)
    assert not torch.rdna.fallbacks()
    expected, others = train(torch, model, "cpu", False)
    assert expected[-1] < expected[0]
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(parameters, others, rtol=1e-3, atol=1e-3)


def test_compiled_convolutions_lie_as_images_do(rdna):
    """Torch's fake convolutions of rdna, by which Inductor plans memory, have channels last where the kernels do."""
    torch = rdna
    nn = torch.nn
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    x, y = torch.randn(2, 3, 8, 8), torch.tensor([1, 3])
    results = []
    for device in ("cpu", "rdna"):
        model = copy.deepcopy(net).to(device, memory_format=torch.channels_last)
        call = torch.compile(model) if device == "rdna" else model
        loss = nn.functional.cross_entropy(call(x.to(device, memory_format=torch.channels_last)), y.to(device))
        loss.backward()
        results.append((loss.item(), [one.grad.cpu() for one in model.parameters()]))
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)
    assert not torch.rdna.fallbacks()


def test_loss_curves(rdna, monkeypatch, tmp_path):
    """docs/benchmarks/torch_curve.py: nanoGPT's network on the device has the CPU's losses; curves that part are told, and so is a text that is too short."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "benchmarks"))
    import torch_curve
    from torch_models import Shape

    monkeypatch.setattr(torch_curve, "TINY_CHARACTERS", Shape(layers=1, width=16, heads=2, keys=2, inner=32, words=256))
    text, table = tmp_path / "text", tmp_path / "curve.csv"
    text.write_text("of the device and of the CPU, " * 20)

    def status_of(file):
        monkeypatch.setattr("sys.argv", ["torch_curve.py", str(file), "--devices=rdna,cpu", "--tiny", "--steps=4", f"--csv={table}"])
        return torch_curve.main()

    assert status_of(text) == 0
    header, *rows = table.read_text().splitlines()
    assert header == "date,commit,type,step,rdna,cpu,cpu reversed" and [row.split(",")[2:4] for row in rows] == [["f32", str(step)] for step in range(4)]
    assert 5 < float(rows[0].split(",")[4]) < 6  # log(256) before anything is learned
    for ours, theirs, theirs_reversed, status in ((4.9, 4.85, 4.85, 1), (4.9, 4.85, 4.84, 1), (4.9, 4.85, 4.79, 0), (4.85, 4.851, 4.852, 0)):
        monkeypatch.setattr(torch_curve, "curves", lambda *_: ([[5.0, ours], [5.0, theirs], [5.0, theirs_reversed]], {}))
        assert status_of(text) == status
    text.write_text("short")
    assert status_of(text) == 2


def test_readme_trains(rdna, capsys):
    """README's program: its last loss is far below the first."""
    program = re.search(r"```python\n(import torch, greta.torch\n.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    assert len(program.splitlines()) == 10
    rdna.manual_seed(0)
    exec(program, {})
    losses = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert len(losses) == 20 and losses[-1] < losses[0] / 4
    assert not rdna.rdna.fallbacks()


FUSED = (
    ("AdamW", dict(weight_decay=0.1)),
    ("Adam", dict(amsgrad=True, weight_decay=0.1, maximize=True)),
    ("SGD", dict(momentum=0.9, nesterov=True, weight_decay=0.1)),
    ("Adagrad", dict(lr_decay=0.1)),
)


@pytest.mark.parametrize("name, options", FUSED, ids=[name for name, _ in FUSED])
def test_fused_optimizers(rdna, name, options):
    """One kernel for a parameter; a GradScaler takes its scale away, and what is infinite makes no step."""
    torch = rdna
    results = []
    for device in ("cpu", "rdna"):
        generator = torch.Generator().manual_seed(0)
        values = [torch.randn(shape, generator=generator).to(device) for shape in ((5, 3), (3,), (3, 4))]
        parameters = [torch.nn.Parameter(one) for one in (*values[:2], values[2].t())]
        optimizer = getattr(torch.optim, name)(parameters, lr=0.1, fused=device == "rdna", **options)
        scaler = torch.amp.GradScaler(device, init_scale=4.0)
        for step in range(4):
            optimizer.zero_grad()
            loss = sum((one * one).sum() for one in parameters) * (float("inf") if step in (0, 2) else 1.0)
            scaler.scale(loss).backward()
            parameters[2].grad = parameters[2].grad.contiguous()  # and what torch makes of it, which does not lie as the parameter does
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 1.0
        results.append([one.detach().cpu() for one in parameters])
    torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)
    assert not torch.rdna.fallbacks()


def test_scales_grow_and_shrink(rdna):
    """A scale grows after two steps without an infinity, if it stays finite, and shrinks at one; each call is the CPU's."""
    torch = rdna
    for first in (4.0, 3e38):
        states = {device: [torch.full((), first, device=device), torch.zeros((), dtype=torch.int32, device=device)] for device in ("cpu", "rdna")}
        for found in (0, 0, 0, 1, 0, 0, 1, 1, 0):
            for device, (scale, good) in states.items():
                torch._amp_update_scale_(scale, good, torch.full((), float(found), device=device), 2.0, 0.5, 2)
            assert [one.item() for one in states["rdna"]] == [one.item() for one in states["cpu"]]


def test_results_that_are_numbers(rdna):
    """Attention's sizes, which it returns beside tensors, are the same where its call is launched again."""
    torch = rdna
    from greta import _torch

    _torch.forget_call_plans()
    for _ in range(3):
        q, k, v = (torch.randn(2, 3, length, 16) for length in (5, 7, 7))
        results = torch.ops.aten._scaled_dot_product_fused_attention_overrideable(*(one.to("rdna") for one in (q, k, v)))
        torch.testing.assert_close(results[0].cpu(), torch.nn.functional.scaled_dot_product_attention(q, k, v), rtol=1e-4, atol=1e-5)
        assert results[2] is None and results[4:6] == (5, 7)
    assert _torch.call_plans()["aten::_scaled_dot_product_fused_attention_overrideable"] == (1, 1)


@pytest.mark.parametrize("bad", (None, float("inf"), float("nan")))
def test_gradients_lose_their_scale(rdna, bad):
    """One infinity or NaN anywhere is marked; the gradients lie in any order, with gaps too, and what is in the gaps stays."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.float16):
        results = []
        for device in ("cpu", "rdna"):
            whole = torch.randn(3000, generator=generator.manual_seed(0)).to(dtype)
            if bad is not None:
                whole[2346] = bad
            wide = torch.randn(4, 3, 5, 5, generator=generator).to(dtype).to(device).to(memory_format=torch.channels_last)
            gaps = torch.randn(6, 8, generator=generator).to(dtype).to(device)
            grads = [whole.to(device), wide, gaps[:, ::2], torch.empty(0, dtype=dtype, device=device)]
            found = torch.zeros(1, device=device)
            torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.25, device=device))
            results.append([one.cpu() for one in (found, *grads, gaps)])
        assert results[0][0].item() == (bad is not None)
        torch.testing.assert_close(results[1], results[0], rtol=0, atol=0, equal_nan=True)
    assert not torch.rdna.fallbacks()


def test_a_step_replays_as_a_graph(recording):
    """torch.accelerator.Graph: what a replay computes is what the calls did, with what its tensors hold by then."""
    torch = recording
    torch.manual_seed(0)
    models = [torch.nn.Linear(4, 3), None]
    models[1] = copy.deepcopy(models[0]).to("rdna")
    inputs = torch.randn(6, 2, 4)
    x = inputs[0].to("rdna")
    losses = [[], []]

    def step(model, optimizer, x):
        optimizer.zero_grad(set_to_none=False)
        loss = (model(x) * 3 - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=model is models[1]) for model in models]
    losses[0] = [step(models[0], optimizers[0], one).item() for one in inputs]
    for one in inputs[:2]:
        x.copy_(one)
        losses[1].append(step(models[1], optimizers[1], x).item())
    graph = torch.accelerator.Graph()
    with graph:
        loss = step(models[1], optimizers[1], x)
    kept = torch.rdna.memory_allocated()
    for one in inputs[2:]:
        x.copy_(one)
        graph.replay()
        losses[1].append(loss.item())
        assert torch.ones(3, device="rdna").sum().item() == 3  # takes none of the graph's memory
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
    assert torch.rdna.memory_allocated() <= kept and not torch.rdna.fallbacks()
    with pytest.raises(RuntimeError, match="is recorded"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="no dump"):
        graph.debug_dump("graph")
    graph.reset()
    for call in (graph.replay, graph.capture_end):
        with pytest.raises(RuntimeError, match="not recorded|not being recorded"):
            call()
    graph.capture_begin()
    with pytest.raises(RuntimeError, match="being recorded"):
        graph.reset()
    graph.capture_end()


def test_graphs_draw_what_calls_would(recording):
    """A replay takes random numbers from where its generators are, and moves them on."""
    torch = recording
    own = torch.Generator("rdna")

    def seed():
        torch.manual_seed(5)
        own.manual_seed(1 << 40)

    def draw():
        return torch.rand(30, device="rdna"), torch.rand(3, device="rdna", generator=own), torch.rand(5, device="rdna")

    seed()
    expected = [[one.cpu() for one in draw()] for _ in range(4)]
    seed()
    graph = torch.accelerator.Graph()
    with graph:
        drawn = draw()
    for step in range(3):
        graph.replay()
        torch.testing.assert_close([one.cpu() for one in drawn], expected[step], rtol=0, atol=0)
    torch.testing.assert_close([one.cpu() for one in draw()], expected[3], rtol=0, atol=0)
    torch.rdna._set_rng_state_offset(1 << 32)  # is no other sequence's begin
    assert not torch.equal(torch.rand(30, device="rdna").cpu(), expected[0][0])
    graph.reset()


def test_graphs_record_what_is_made_once(recording):
    """Sequences, and the tables of Fourier transforms, which the first transform of a size makes."""
    torch = recording
    x = torch.zeros(2, 7, device="rdna")
    graph = torch.accelerator.Graph()
    with graph:
        sequence, between = torch.arange(0.5, 4.0, 0.5, device="rdna"), torch.linspace(0.1, 0.7, 7, device="rdna")
        transformed = torch.fft.rfft(x)
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        host = torch.randn(2, 7, generator=generator)
        x.copy_(host)
        graph.replay()
        torch.testing.assert_close(transformed.cpu(), torch.fft.rfft(host), rtol=1e-5, atol=1e-5)
    assert torch.equal(sequence.cpu(), torch.arange(0.5, 4.0, 0.5))
    torch.testing.assert_close(between.cpu(), torch.linspace(0.1, 0.7, 7))


def test_memory_of_graphs_that_another_stream_reads(recording):
    torch = recording
    from greta import _torch

    x = torch.zeros(1000, device="rdna")
    graph = torch.accelerator.Graph()
    with graph:
        one, other = x.clone(), x.clone()
    one.record_stream(torch.rdna.Stream())
    read, free = one.data_ptr(), other.data_ptr()
    del one, other
    with torch.accelerator.Graph(pool=graph.pool()):
        addresses = [x.clone().data_ptr()]
        kept = x.clone()
        addresses.append(kept.data_ptr())
    assert free in addresses and read not in addresses
    assert _torch.own_stream not in {torch.rdna.Stream().stream_id for _ in range(40)}  # numbers of graphs are made there


def test_fused_optimizers_in_f64(rdna):
    """Gradients in another order of memory, and a parameter with gaps, as they are."""
    torch = rdna
    results = []
    for device in ("cpu", "rdna"):
        generator = torch.Generator().manual_seed(0)
        first, second = (torch.randn(4, 6, dtype=torch.float64, generator=generator).to(device) for _ in range(2))
        parameters = [torch.nn.Parameter(first), torch.nn.Parameter(second[:, ::2])]
        optimizer = torch.optim.AdamW(parameters, lr=0.1, betas=(0.8, 0.99), fused=device == "rdna", weight_decay=0.1)
        for _ in range(3):
            for one in parameters:
                one.grad = torch.randn(one.shape[::-1], dtype=torch.float64, generator=generator).to(device).t()
            optimizer.step()
        results.append([first.detach().cpu(), second.cpu()])
    torch.testing.assert_close(results[1], results[0], rtol=1e-13, atol=1e-13)
    assert not torch.rdna.fallbacks()


def test_modules_keep_their_parameters(rdna):
    """model.to("rdna") moves parameters as other devices do: tied weights stay tied, and an optimizer may come before."""
    torch = rdna
    model = torch.nn.Sequential(torch.nn.Embedding(6, 4), torch.nn.Linear(4, 6, bias=False))
    model[1].weight = model[0].weight
    before = model[0].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model.to("rdna")
    assert model[0].weight is model[1].weight is before and before.device.type == "rdna"
    model(torch.arange(6, device="rdna")).sum().backward()
    old = before.detach().clone()
    optimizer.step()
    assert not torch.equal(before.cpu(), old.cpu())
    assert model.cpu()[0].weight is before and before.device.type == "cpu"


def test_statistics_of_batch_norm_on_the_cpu(rdna):
    torch = rdna
    torch.rdna.forbid_fallback(False)
    x = torch.arange(6.0).reshape(3, 2)
    mean, variance = torch.zeros(2, device="rdna"), torch.ones(2, device="rdna")
    op = torch.ops.aten.native_batch_norm.default
    cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse2)  # as where no kernel is made
    op.redispatch(cpu, x.to("rdna"), None, None, mean, variance, True, 0.5, 1e-5)
    assert torch.equal(mean.cpu(), x.mean(0) / 2)


@pytest.mark.parametrize("dtype, shape, isNear, isAffine", in_types((((6, 24, 33, 20), True, True), ((37, 200), True, True), ((3, 5, 7, 2), True, False), ((2, 2050, 1, 3), True, True), ((6, 24, 9, 20), False, True), ((5, 3, 131), False, False))))
def test_batch_norm_in_training(rdna, dtype, shape, isNear, isAffine):
    """Results, gradients and running statistics are float64's at each of three calls of a kind, of which the third repeats what was recorded; numbers far from zero keep their digits."""
    torch = rdna
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    center = 1000 if dtype == "float32" else 4
    x, dy = ((torch.randn(shape) + at).to(kind) for at in (center, 0))
    if isNear and len(shape) == 4:
        x, dy = (one.contiguous(memory_format=torch.channels_last) for one in (x, dy))
    weight, bias, mean, variance = (torch.rand(shape[1]) + 0.5 for _ in range(4))
    from greta import _torch

    def repeated():
        plans = _torch.call_plans()
        return [plans.get(name, (0, 0))[1] for name in ("aten::native_batch_norm", "aten::native_batch_norm_backward")]

    before = repeated()
    limit = dict(float32=1e-4, float16=2e-3, bfloat16=1.6e-2)[dtype]  # f32: the mean's last place is 6e-5
    for turn in range(3):
        results = []
        for convert in (lambda one: one.double(), lambda one: one.to("rdna")):
            given = [convert(one + turn).requires_grad_() for one in ([x, weight, bias] if isAffine else [x])]
            running = [convert(one).clone() for one in (mean, variance)]
            out = torch.nn.functional.batch_norm(given[0], *running, *given[1:], training=True, momentum=0.25)
            out.backward(convert(dy))
            results.append([out, *running, *(one.grad for one in given)])
        for one, other in zip(*results):
            error = (other.detach().cpu().double() - one.detach()).norm() / one.norm()
            assert error < limit, error
        assert results[1][0].stride() == x.stride()
    assert all(now > once for now, once in zip(repeated(), before))


@pytest.mark.parametrize("shape, isNear", (((3, 2, 2, 3), False), ((3, 2, 2, 3), True), ((4, 3), False)), ids=("images", "channels last", "rows"))
@pytest.mark.parametrize("training", (True, False), ids=("training", "evaluation"))
def test_gradients_of_batch_norm(rdna, shape, isNear, training):
    """First gradients backward and forward, and second ones, are differences of f64's results."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(size, dtype=torch.float64, generator=generator) for size in (shape, shape[1], shape[1]))
    x = x.contiguous(memory_format=torch.channels_last) if isNear else x
    mean, variance = (torch.rand(shape[1], dtype=torch.float64, generator=generator).to("rdna") + 0.5 for _ in range(2))

    def function(*given):
        return torch.nn.functional.batch_norm(given[0], mean.clone(), variance.clone(), *given[1:], training=training)

    for given in ((x, weight, bias), (x,)):
        given = tuple(one.to("rdna").requires_grad_() for one in given)
        assert torch.autograd.gradcheck(function, given, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(function, given)
    assert not torch.rdna.fallbacks()


def test_second_gradients_of_batch_norm(rdna):
    """Of f32, whose first gradients are kernels of ours."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(shape, generator=generator) for shape in ((4, 6, 5, 3), (6,), (6,), (4, 6, 5, 3))]
    results = []
    for convert in (lambda one: one.double(), lambda one: one.to("rdna")):
        *given, dy = (convert(one).requires_grad_() for one in values)
        out = torch.nn.functional.batch_norm(given[0], None, None, *given[1:], training=True)
        first = torch.autograd.grad(out, given, dy, create_graph=True)
        second = torch.autograd.grad(sum(one.square().sum() for one in first), (given[0], given[1], dy))
        results.append([*first, *second])
    for one, other in zip(*results):
        assert (other.detach().cpu().double() - one.detach()).norm() < 1e-5 * one.norm()
    assert not torch.rdna.fallbacks()


def test_batch_norm_module(rdna):
    """A cumulative average, whose momentum is another at each step; no running statistics; parameters of f16; a gradient in another order than x."""
    torch = rdna
    torch.manual_seed(0)
    for settings, kind in ((dict(momentum=None), torch.float32), (dict(track_running_stats=False), torch.float32), (dict(affine=False), torch.float32), (dict(), torch.float16)):
        modules = [torch.nn.BatchNorm2d(8, **settings).to(to) for to in (torch.float64, kind)]
        modules[1].to("rdna")
        for _ in range(3):
            x = (torch.randn(4, 8, 5, 6) + 2).to(kind).contiguous(memory_format=torch.channels_last)
            dy = torch.randn(4, 8, 5, 6).to(kind)
            inputs = [x.double().requires_grad_(), x.to("rdna").requires_grad_()]
            outs = [module(one) for module, one in zip(modules, inputs)]
            for out, one in zip(outs, (dy.double(), dy.to("rdna"))):
                out.backward(one)
            pairs = [tuple(outs), tuple(one.grad for one in inputs)]
            pairs += [(one.grad, other.grad) for one, other in zip(*(module.parameters() for module in modules))]
            pairs += list(zip(*(module.buffers() for module in modules)))
            for one, other in pairs:
                error = (other.detach().cpu().double() - one.detach().double()).norm() / one.detach().double().norm()
                assert error < (4e-3 if kind == torch.float16 else 1e-5), error
    modules[1].eval()
    modules[0].eval()
    assert (modules[1](inputs[1]).detach().cpu().double() - modules[0](inputs[0]).detach()).abs().max() < 2e-2
