"""Pointwise work behind products and convolutions of compiled functions is part of their kernels (python/greta/torch/_fusion.py)."""

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use

LIMITS = dict(float32=1e-6, float16=1e-3, bfloat16=8e-3)  # relative errors of results


def kernels(torch, function, *arguments):
    """The function's result, and the kernels of a call that has compiled nothing, by the operator that launched each."""
    function(*arguments)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.PrivateUse1]
    with torch.profiler.profile(activities=activities) as profile:
        result = function(*arguments)
        torch.rdna.synchronize()
    rows = {row.key: row.count for row in profile.key_averages()}
    names = ("greta::fused_attention", "aten::_scaled_dot_product_fused_attention_overrideable", "greta::product", "greta::convolution", "aten::mm", "aten::addmm", "aten::bmm", "aten::convolution_overrideable")
    generated = sum(count for name, count in rows.items() if name.startswith("triton_"))
    return result, {name.partition("::")[2]: rows[name] for name in names if name in rows} | ({"generated": generated} if generated else {})


def compiled(torch, function, dynamic=False):
    torch._dynamo.reset()
    return torch.compile(function, dynamic=dynamic)


def check(torch, function, arguments, expected, dtype="float32", dynamic=False):
    """Compares a compiled function with itself in f64, and its kernels with those that are expected."""
    exact = function(*(one.double() for one in arguments))
    with torch.no_grad():
        result, ran = kernels(torch, compiled(torch, function, dynamic), *(one.to("rdna") for one in arguments))
    error = (result.cpu().double() - exact).norm() / exact.norm()
    assert error < LIMITS[dtype], error
    assert ran == expected, ran
    return result


def tensors(torch, dtype, *shapes):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(getattr(torch, dtype)) for shape in shapes]


def swiglu(F, x, gate, up, down):
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


CHAINS = {  # a function, shapes, and its kernels
    "gelu": (lambda F, x, w, b, v: F.linear(F.gelu(F.linear(x, w, b)), v), ((2, 9, 32), (48, 32), (48,), (32, 48)), dict(product=1, mm=1)),
    "tanh": (lambda F, x, w, b, v: F.linear(F.gelu(F.linear(x, w, b), approximate="tanh"), v), ((18, 32), (48, 32), (48,), (32, 48)), dict(product=1, mm=1)),
    "gate": (swiglu, ((2, 9, 32), (48, 32), (48, 32), (32, 48)), dict(product=1, mm=2)),
    "residual": (lambda F, x, w, b, r: F.linear(x, w, b) + r, ((2, 9, 32), (48, 32), (48,), (2, 9, 48)), dict(product=1)),
    "factors": (lambda F, c, a, b, s: (c.addmm(a, b, alpha=0.5, beta=2) / s.sqrt().abs().add(1)).clamp(-1, 2), ((18, 48), (18, 32), (32, 48), (48,)), dict(product=1)),
    "batch": (lambda F, a, b, r: (a.bmm(b).sigmoid() - r).view(6, 7, 48), ((2, 21, 32), (2, 32, 48), (2, 21, 48)), dict(product=1)),
    "mask of columns": (lambda F, a, b, c: (a.mm(b) + 1).where(c > 0, c), ((18, 32), (32, 48), (48,)), dict(product=1)),
    "columns": (lambda F, a, b: (a.mm(b) * 3).relu(), ((33, 32), (32, 2)), dict(product=1)),
}


@pytest.mark.parametrize("name, dtype", [(name, "float16") for name in CHAINS] + [("gelu", "float32"), ("gelu", "bfloat16")])
def test_chains(rdna, name, dtype):
    """One kernel of a product and what follows, right to one rounding; sums are not rounded before."""
    torch = rdna
    function, shapes, expected = CHAINS[name]
    arguments = tensors(torch, dtype, *shapes)
    if name == "factors":
        arguments[3] = arguments[3].abs()
    check(torch, lambda *given: function(torch.nn.functional, *given), arguments, expected, dtype)


def test_types_are_cast_in_the_kernel(rdna):
    """A result of another type than the product's, beside an operand of a third."""
    torch = rdna
    a, b, r = (one.to(kind) for one, kind in zip(tensors(torch, "float32", (18, 32), (32, 48), (18, 48)), (torch.float16, torch.float16, torch.float32)))
    assert check(torch, lambda a, b, r: a.mm(b).to(r.dtype) + r, (a, b, r), dict(product=1), "float16").dtype == torch.float32
    assert check(torch, lambda a, b, r: (a.mm(b) + r).bfloat16() if a.dtype != torch.float64 else a.mm(b) + r, (a, b, r), dict(product=1), "bfloat16").dtype == torch.bfloat16


REFUSED = {  # a function, shapes, and its kernels; each could be fused but for one thing
    "sums are read by others": (lambda a, b: (lambda y: y.relu() @ y.t())(a.mm(b)), ((18, 32), (32, 48)), dict(mm=2, generated=1)),
    "a norm reads it": (lambda a, b: (a.mm(b) + 1).softmax(-1), ((18, 32), (32, 48)), dict(mm=1, generated=1)),
    "an operand lies otherwise": (lambda a, b, r: a.mm(b).relu() + r.t(), ((18, 32), (32, 48), (48, 18)), dict(mm=1, generated=1)),
    "a column": (lambda a, b, c: a.mm(b) * c, ((18, 32), (32, 48), (18, 1)), dict(mm=1, generated=1)),
    "an operator that no epilogue has": (lambda a, b: a.mm(b).sin(), ((18, 32), (32, 48)), dict(mm=1, generated=1)),
    "an integer": (lambda a, b, r: a.mm(b) + r.int(), ((18, 32), (32, 48), (18, 48)), dict(mm=1, generated=1)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_fused(rdna, name):
    torch = rdna
    function, shapes, expected = REFUSED[name]
    check(torch, function, tensors(torch, "float32", *shapes), expected)


def test_products_of_f64_stay(rdna):
    torch = rdna
    a, b = tensors(torch, "float64", (18, 32), (32, 48))
    with torch.no_grad():
        result, ran = kernels(torch, compiled(torch, lambda a, b: a.mm(b).relu()), a.to("rdna"), b.to("rdna"))
    torch.testing.assert_close(result.cpu(), a.mm(b).relu())
    assert "product" not in ran and ran["mm"] == 1


def test_sizes_stay_dynamic(rdna):
    """One function, one package and no guard on the number of rows."""
    torch = rdna
    F = torch.nn.functional
    w, b, v = tensors(torch, "float32", (48, 32), (48,), (32, 48))
    graphs = []

    def backend(module, inputs):
        from torch._inductor.compile_fx import compile_fx

        graphs.append(module)
        return compile_fx(module, inputs)

    torch._dynamo.reset()
    function = torch.compile(lambda x, w, b, v: F.linear(F.gelu(F.linear(x, w, b)), v), dynamic=True, backend=backend)
    for sizes in ((2, 9), (3, 5), (7, 31)):
        (x,) = tensors(torch, "float32", (*sizes, 32))
        with torch.no_grad():
            result, ran = kernels(torch, function, *(one.to("rdna") for one in (x, w, b, v)))
        torch.testing.assert_close(result.cpu(), F.linear(F.gelu(F.linear(x, w, b)), v), rtol=1e-4, atol=1e-4)
        assert ran == dict(product=1, mm=1) and len(graphs) == 1


def test_sizes_are_no_operands(rdna):
    torch = rdna
    a, b = tensors(torch, "float32", (18, 32), (32, 48))
    check(torch, lambda a, b: (a.mm(b) * a.shape[0]).relu(), (a, b), dict(mm=1, generated=1), dynamic=True)


def test_training(rdna):
    """Forward fuses what backward does not need; the mask of ReLU and its product with a gradient are one kernel, too."""
    torch = rdna
    F = torch.nn.functional
    x, w, b, v = tensors(torch, "float32", (18, 32), (48, 32), (48,), (32, 48))

    def loss(x, w, b, v):
        return F.linear(F.relu(F.linear(x, w, b)), v).square().sum()

    gradients = []
    for device, function in (("cpu", loss), ("rdna", compiled(torch, loss))):
        given = [one.detach().to(device, torch.float64 if device == "cpu" else one.dtype).requires_grad_() for one in (x, w, b, v)]
        if device == "rdna":
            _, ran = kernels(torch, lambda *all: function(*all).backward(), *given)
            assert ran["product"] == 2, ran
            for one in given:
                one.grad = None
        function(*given).backward()
        gradients.append([one.grad.cpu().double() for one in given])
    for exact, one in zip(*gradients):
        assert (one - exact).norm() < 1e-6 * exact.norm()


def block(torch, groups, isShortened):
    """Two convolutions with batch norms of inference and ReLU, and a residual, as in a ResNet; where that is shortened it has a convolution and a batch norm, too."""

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convolutions = torch.nn.ModuleList(torch.nn.Conv2d(16, 16, size, padding=size // 2, bias=bias, groups=groups) for size, bias in ((3, True), (3, False), (1, False)))
            self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(16) for _ in range(3))
            for norm in self.norms:
                for one in (norm.weight, norm.bias, norm.running_mean):
                    torch.nn.init.normal_(one)
                torch.nn.init.uniform_(norm.running_var, 0.5, 2)

        def forward(self, x):
            y = self.norms[0](self.convolutions[0](x)).relu()
            return (self.norms[1](self.convolutions[1](y)) + (self.norms[2](self.convolutions[2](x)) if isShortened else x)).relu()

    torch.manual_seed(0)
    return Block().eval()


@pytest.mark.parametrize(
    "dtype, groups, isNear, isShortened, expected",
    (
        ("float32", 1, True, False, dict(convolution=2)),
        ("float16", 1, True, True, dict(convolution=2, convolution_overrideable=1)),
        ("float32", 2, True, False, dict(convolution_overrideable=2, generated=2)),
        ("float32", 1, False, False, dict(convolution_overrideable=2, generated=5)),  # of which three change layouts
    ),
    ids=("f32", "f16", "groups", "channels first"),
)
def test_convolutions(rdna, monkeypatch, dtype, groups, isNear, isShortened, expected):
    """Scale and shift of a batch norm, ReLU and the residual are in the convolution's kernel, where it is a package."""
    torch = rdna
    from greta.torch import _convolution_packages
    from torch._inductor import config

    monkeypatch.setattr(_convolution_packages, "ON_CPU_DRIVER", True)
    module = block(torch, groups, isShortened)
    x = torch.randn(2, 16, 6, 5)
    exact = module.double()(x.to(getattr(torch, dtype)).double())
    near = torch.channels_last if isNear else torch.contiguous_format
    there = module.to(getattr(torch, dtype)).to("rdna", memory_format=near)
    with torch.no_grad(), config.patch(force_disable_caches=True):  # the graphs of where no package is are others
        result, ran = kernels(torch, compiled(torch, there), x.to(getattr(torch, dtype)).to("rdna").to(memory_format=near))
    assert (result.cpu().double() - exact).norm() < 2 * LIMITS[dtype] * exact.norm()
    assert ran == expected, ran


def test_operators_of_the_pass(rdna):
    """Both operators on the CPU, on the device and where no package is; fakes say what they return."""
    torch = rdna
    ops = torch.ops.greta
    a, b, row, other = tensors(torch, "float32", (6, 8), (8, 16), (16,), (6, 16))
    x, weight, more = (one.contiguous(memory_format=torch.channels_last) for one in tensors(torch, "float32", (2, 8, 5, 4), (16, 8, 3, 3), (2, 16, 5, 4)))
    epilogue = "row matrix: add %0 $0; max %1 0.0; sub %2 $1; le %3 0.25; where %4 %3 0.5"
    product = (a, b, [row, other], epilogue, torch.float16)
    convolution = (x, weight, [row, more], epilogue, [1, 1], [1, 1], [1, 1], torch.float32)
    for op, given in ((ops.product.default, product), (ops.convolution.default, convolution)):
        there = torch.utils._pytree.tree_map_only(torch.Tensor, lambda one: one.to("rdna"), given)
        expected = op(*given)
        assert expected.max() == 0.5 > expected.min()
        torch.testing.assert_close(op(*there).cpu(), expected, rtol=1e-3, atol=1e-5)
        assert op(*there).stride() == expected.stride()
        torch.library.opcheck(op, given, test_utils=["test_schema", "test_faketensor"])
        torch.library.opcheck(op, there, test_utils=["test_faketensor"])
    assert ops.product(a[:0].to("rdna"), b.to("rdna"), [], ": max %0 0.0", torch.float32).shape == (0, 16)
