"""Operators on torch.device("rdna") that have kernels of their own."""

import itertools

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


@pytest.mark.parametrize(
    "transposed, shape, weight, options",
    (
        (False, (2, 3, 9, 8), (4, 3, 3, 3), dict(stride=2, padding=1)),
        (True, (1, 4, 9), (4, 2, 3), dict(stride=2, padding=1, output_padding=1, groups=2)),
        (False, (1, 3, 4, 5, 6), (4, 3, 2, 3, 2), dict(stride=(1, 2, 1), padding=(0, 1, 1))),
        (False, (3, 4, 33, 35), (6, 4, 1, 3), {}),  # the weight's gradient is a sum of parts
        (False, (2, 64, 9, 8), (32, 32, 3, 3), dict(groups=2, padding=2, dilation=2)),  # whole blocks of channels, more than one
        (True, (2, 32, 5, 6), (32, 32, 3, 2), dict(stride=2)),
        (False, (2, 24, 5, 6), (32, 24, 1, 1), {}),
        (True, (2, 24, 5, 6), (24, 32, 1, 1), {}),
        (True, (2, 24, 5, 6), (24, 32, 1, 1), dict(dilation=2, output_padding=1)),  # more positions than x has
    ),
)
def test_convolutions(rdna, transposed, shape, weight, options):
    """Kernels of 1 x 1 have tensors whose channels lie next to each other, and are products."""
    torch = rdna
    from greta.torch import _products

    isNear, steps = weight[2:] == (1, 1), 3  # the second is recorded, the third launches what it did
    function = getattr(torch.nn.functional, f"conv{'_transpose' if transposed else ''}{len(shape) - 2}d")
    results, counts = [], []
    for device, step in itertools.product(("cpu", "rdna"), range(steps)):
        counts.append(sum(_products._compiled.cache_info()[:2]))
        torch.manual_seed(step)
        x, w, b = (torch.randn(size) for size in (shape, weight, (weight[1] * options.get("groups", 1) if transposed else weight[0],)))
        x = x.contiguous(memory_format=torch.channels_last) if isNear else x
        arguments = [(one.double() if device == "cpu" else one.to(device)).requires_grad_() for one in (x, w, b)]
        out = function(*arguments, **options)
        out.square().sum().backward()
        results.append([out, *(one.grad for one in arguments)])
    counts.append(sum(_products._compiled.cache_info()[:2]))
    for step in range(steps):
        for one, other in zip(results[step], results[steps + step]):
            # Sums of hundreds of terms may cancel: relative to the largest one.
            torch.testing.assert_close(other.cpu().double(), one, rtol=1e-4, atol=1e-6 * one.abs().max().item())
    # With options the weight's gradient is a product of patches.
    made = isNear * (1 if options else 3)
    assert [after - before for before, after in itertools.pairwise(counts[steps:])] == [made, made, 0]


LAYOUTS = {
    "rows": lambda x: x.clone(),
    "columns": lambda x: x.t().contiguous().t(),
    "every other column": lambda x: x.repeat_interleave(2, 1)[:, ::2],
    "behind others": lambda x: x.new_empty(x.numel() + 1)[1:].view(x.shape).copy_(x),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("m, n, k", ((32, 48, 64), (144, 40, 33)), ids=("whole", "rests"))
def test_products(rdna, m, n, k, layout):
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float16, torch.bfloat16):
        a, b = (torch.randn(shape, generator=generator).to(dtype) for shape in ((m, k), (k, n)))
        there = [LAYOUTS[layout](one.to("rdna")) for one in (a, b)]
        unit = torch.finfo(dtype).eps
        torch.testing.assert_close((there[0] @ there[1]).cpu().double(), a.double() @ b.double(), rtol=unit, atol=unit)
    row = torch.randn(1, k, generator=generator)
    torch.testing.assert_close((row.to("rdna").expand(m, k) @ b.float().to("rdna")).cpu(), row.expand(m, k) @ b.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape, alpha, beta", (((3, 20, 40), 1, 1), ((20, 40), 0.5, 3)), ids=("batch", "factors"))
def test_what_is_added_to_a_product(rdna, shape, alpha, beta):
    """A row, a column and a matrix are added in f32 and rounded with the sums once, also where the result lies column by column."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    (m, n), batch = shape[-2:], shape[:-2]
    a, b, added = (torch.randn(size, generator=generator).half() for size in ((*batch, m, 24), (*batch, 24, n), shape))
    function = torch.baddbmm if batch else torch.addmm
    there = [one.to("rdna") for one in (a, b)]
    for one in (added[(0,) * (len(shape) - 1)], added[..., :1], added):
        exact = function(one.double(), a.double(), b.double(), alpha=alpha, beta=beta)
        out = torch.empty((*batch, n, m), dtype=a.dtype, device="rdna").mT
        for result in (function(one.to("rdna"), *there, alpha=alpha, beta=beta), function(one.to("rdna"), *there, alpha=alpha, beta=beta, out=out)):
            # Half a unit of the result, and what f32 sums lose.
            torch.testing.assert_close(result.cpu().double(), exact, rtol=2**-11, atol=1e-5)
        assert not out.is_contiguous()


def test_packages_of_products(rdna, monkeypatch):
    """The extents of a weight are in a package's types, rows are not; the rows that a weight's gradient sums are, twice."""
    torch = rdna
    from greta import _torch
    from greta.torch import _products

    _torch.forget_call_plans()
    monkeypatch.setattr(_products, "LEAST_FIXED", 0)
    monkeypatch.setattr(_products, "_fixed", {})
    compiled, compile_one = [], _products._compiled
    monkeypatch.setattr(_products, "_compiled", lambda recipe, target: compiled.append(recipe[-3:]) or compile_one(recipe, "vulkan:lavapipe"))
    monkeypatch.setattr(_products, "target_of", lambda index: "a GPU")
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(24, 16, generator=generator)
    for rows in (5, 9):
        x = torch.randn(rows, 16, generator=generator)
        torch.testing.assert_close((x.to("rdna") @ weight.to("rdna").t()).cpu(), x @ weight.t(), rtol=1e-4, atol=1e-4)
    for rows in (5, 9, 6, 5, 5):
        x, grad = (torch.randn(rows, size, generator=generator) for size in (16, 24))
        torch.testing.assert_close((grad.to("rdna").t() @ x.to("rdna")).cpu(), grad.t() @ x, rtol=1e-4, atol=1e-4)
    x[:, :15].to("rdna") @ weight[:, :15].to("rdna").t()  # 60 bytes
    gradients = [(24, 16, 5), (24, 16, 9), (24, 16, None), (24, 16, 5)]  # the fourth call is recorded, the fifth is its launches
    assert compiled == [(None, 24, 16)] * 2 + gradients + [(None, None, None)]


def test_calls_are_found_again(rdna):
    """The third call of a kind is launched from C++, with tensors of its own; other strides, numbers and shared memory are other kinds."""
    torch = rdna
    from greta import _torch

    _torch.forget_call_plans()
    generator, known = torch.Generator().manual_seed(0), []
    for _ in range(3):  # the first compiles, the second is recorded
        a, b, c, d = (torch.randn(shape, generator=generator) for shape in ((20, 12), (12, 16), (16,), (20, 12)))
        x, y, z, v = (one.to("rdna") for one in (a, b, c, d))
        pairs = [(x @ y, a @ b), (y.t() @ x.t(), (a @ b).t()), (x @ x.t(), a @ a.t()), (torch.addmm(z, x, y), torch.addmm(c, a, b))]
        pairs += [(torch.addmm(z, x, y, alpha=0.5), torch.addmm(c, a, b, alpha=0.5)), (x[1:] @ y, a[1:] @ b), (x[0] + x[1], a[0] + a[1]), (x[0] + x[0], 2 * a[0])]
        # A row's bias is a matrix of another rank; `out` becomes larger; the memory is the same in another storage.
        pairs += [(torch.addmm(z, x[:1], y), torch.addmm(c, a[:1], b)), (torch.mm(x, y, out=torch.zeros(2, 2, device="rdna")), a @ b)]
        same = torch.from_dlpack(x)
        pairs += [(x + same, 2 * a), (x + v, a + d), (x @ same.t(), a @ a.t()), (x @ v.t(), a @ d.t())]
        row = a[0] + a[1]
        torch.add(x[0], x[1], out=x[0])
        for result, expected in [*pairs, (x, torch.cat([row[None], a[1:]]))]:
            torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-4)
        known.append(_torch.call_plans())
    kinds = [{name: kinds for name, (kinds, _) in one.items()} for one in known]
    assert kinds[1] == kinds[2], known
    for name in ("aten::mm.out", "aten::addmm.out", "aten::add.out"):
        assert known[2][name][1] - known[1][name][1] >= kinds[1][name] > 1, known


def test_settings_of_torch_are_heard(rdna):
    """Calls that were recorded under other settings are not repeated: gradients, inference, autocast, default types, determinism, modes."""
    torch = rdna
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **kwargs or {})

    class More(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **kwargs or {})
            return result + 100 if function is torch.sigmoid else result

    class Sub(torch.Tensor):
        pass

    host, index = torch.linspace(-2, 2, 12).reshape(3, 4), torch.tensor([0, 2, 2])
    x, where = host.to("rdna"), index.to("rdna")
    expected = torch.sigmoid(host)
    for _ in range(4):
        for wanted in (True, False):
            assert torch.sigmoid(x.detach().requires_grad_(wanted)).requires_grad == wanted
            with torch.inference_mode(wanted):
                assert torch.sigmoid(x).is_inference() == wanted
            with torch.autocast("rdna", dtype=torch.float16, enabled=wanted):
                assert (x @ x.t()).dtype == (torch.float16 if wanted else torch.float32)
            torch.set_default_dtype(torch.float64 if wanted else torch.float32)
            try:
                assert torch.sigmoid(where).dtype == (torch.float64 if wanted else torch.float32)
            finally:
                torch.set_default_dtype(torch.float32)
            torch.use_deterministic_algorithms(wanted)
            try:
                assert torch.empty(3, device="rdna").isnan().all().item() or not wanted
                torch.rdna.forbid_fallback(not wanted)  # torch's deterministic sum is the CPU's
                summed = torch.zeros(3, 4, device="rdna").index_put_((where,), x, accumulate=True)
                assert bool(torch.rdna.fallbacks(True)) == wanted
            finally:
                torch.use_deterministic_algorithms(False)
                torch.rdna.forbid_fallback(True)
            torch.testing.assert_close(summed.cpu(), torch.zeros(3, 4).index_put_((index,), host, accumulate=True))
        with Log():
            torch.testing.assert_close(torch.sigmoid(x).cpu(), expected)
        assert torch.ops.aten.sigmoid.default in seen
        seen.clear()
        with More():
            torch.testing.assert_close(torch.sigmoid(x).cpu(), expected + 100)
        assert type(torch.sigmoid(x.as_subclass(Sub))) is Sub and type(torch.sigmoid(x)) is torch.Tensor
        torch.testing.assert_close(torch.func.vmap(torch.sigmoid)(x).cpu(), expected)
        derivative = torch.func.vmap(torch.func.grad(lambda row: torch.sigmoid(row).sum()))(x)
        torch.testing.assert_close(derivative.cpu(), expected * (1 - expected))


def test_more_kinds_than_are_kept(rdna, monkeypatch):
    """An operator that met more kinds of arguments than are kept compiles on; what is not kept any more is compiled again."""
    torch = rdna
    from greta.torch import _eager

    monkeypatch.setattr(_eager, "_MOST_KINDS", 2)
    x = torch.arange(4.0)
    for base in (1.5, 2.5, 3.5, 1.5):
        torch.testing.assert_close(torch.pow(base, x.to("rdna")).cpu(), torch.pow(base, x))
    assert len(_eager._operators[torch.ops.aten.pow.Scalar_out].exact) <= 2
    assert not torch.rdna.fallbacks()


def test_zeros_without_memory(rdna):
    """Forward gradients of what does not depend on an input."""
    torch = rdna
    zeros = torch._efficientzerotensor((2, 3), device="rdna")
    assert zeros._is_zerotensor() and zeros.device.type == "rdna"
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal((zeros + x.to("rdna")).cpu(), x) and torch.equal(zeros.cpu(), torch.zeros(2, 3))
    assert not torch.rdna.fallbacks()


def test_threads_call_one_operator(rdna):
    """While calls of its kind are compiled, recorded and repeated, in streams of their own and in one."""
    import threading

    torch = rdna
    from greta import _torch

    _torch.forget_call_plans()
    wrong = []

    def work(number, stream):
        try:
            with torch.rdna.stream(stream):
                for step in range(20):
                    host = torch.full((5, 7), float(number)) + step
                    x = host.to("rdna")
                    result = torch.softmax(x * 0.1, -1) + x.square()
                    x.add_(step).mul_(2)
                    torch.testing.assert_close(result.cpu(), torch.softmax(host * 0.1, -1) + host.square())
                    torch.testing.assert_close(x.cpu(), (host + step) * 2)
        except Exception as error:
            wrong.append(error)

    for make in (torch.rdna.current_stream, torch.rdna.Stream):
        threads = [threading.Thread(target=work, args=(number, make())) for number in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert not wrong, wrong


def test_calls_that_do_more_than_launch(rdna):
    """Resizing, writing from the host, drawing numbers and memory of nobody's are not repeated by launches; numbers, parts and one result twice are."""
    torch = rdna
    from greta import _torch

    constant = torch.arange(6.0, device="rdna")
    calls = {
        "a launch": (lambda x, y, out, short: torch.add(x, y, out=out), True),
        "memory that is made": (lambda x, y, out, short: (x + y) * x, True),
        "a number": (lambda x, y, out, short: (x + 0.75) * 3, True),
        "memory that is free again": (lambda x, y, out, short: ((((x + y) * x + y) * y + x) * x, None)[0], True),
        "a part": (lambda x, y, out, short: (x + y)[1:], True),
        "one result twice": (lambda x, y, out, short: (lambda one: [one, one.view(2, 3)])(x + y), True),
        "nothing": (lambda x, y, out, short: None, False),
        "resizing": (lambda x, y, out, short: torch.mm(x[None], y[:, None], out=short), False),
        "a copy from the host": (lambda x, y, out, short: out.copy_(torch.ones(6)), False),
        "a copy to the host": (lambda x, y, out, short: torch.full((), x.sum().item(), device=x.device), False),
        "a fill": (lambda x, y, out, short: out.fill_(1), False),
        "random numbers": (lambda x, y, out, short: torch.rand(6, device=x.device), False),
        "memory of nobody's": (lambda x, y, out, short: x + constant.to(x.device), False),
    }
    library, inPython = torch.library.Library("greta_test", "DEF"), torch.library.Library("greta_test", "IMPL")
    for index, (name, (call, isWhole)) in enumerate(calls.items()):
        returns = {"one result twice": "Tensor[]", "nothing": "()"}.get(name, "Tensor")
        library.define(f"call{index}(Tensor x, Tensor y, Tensor(a!) out, Tensor(b!) short) -> {returns}")
        inPython.impl(f"call{index}", call, "PrivateUse3")
        operator = getattr(torch.ops.greta_test, f"call{index}")
        for _ in range(4):  # the third and the fourth are repeated
            values = [torch.randn(6) for _ in range(3)]
            tensors = [one.to("rdna") for one in values]
            results = operator(*tensors, torch.empty(3, device="rdna").resize_(3))
            if isWhole:
                expected = call(*values, None)
                for one, other in zip(*((one if isinstance(one, list) else [one]) for one in (results, expected))):
                    torch.testing.assert_close(one.cpu(), other)
            if name == "a launch":
                assert results is tensors[2]
        assert _torch.call_plans().get(f"greta_test::call{index}") == ((1, 2) if isWhole else None), name


def test_operators_compute_in_their_types_below_autocast(rdna):
    """What an operator is made of is not cast: its third call is repeated by launches, which know of no autocast."""
    torch = rdna
    library, inPython = torch.library.Library("greta_test_types", "DEF"), torch.library.Library("greta_test_types", "IMPL")
    library.define("square(Tensor x) -> Tensor")
    inPython.impl("square", lambda x: x @ x, "PrivateUse3")
    x = torch.randn(8, 8)
    for is_on in (False, False, False, True, True):
        with torch.autocast("rdna", dtype=torch.float16, enabled=is_on):
            result = torch.ops.greta_test_types.square(x.to("rdna"))
        assert result.dtype == torch.float32
        torch.testing.assert_close(result.cpu(), x @ x, rtol=1e-5, atol=1e-5)
    y = torch.randn(12, 12)  # its first call is under autocast
    for is_on in (True, True, True, False):
        with torch.autocast("rdna", dtype=torch.float16, enabled=is_on):
            result = torch.ops.greta_test_types.square(y.to("rdna"))
        torch.testing.assert_close(result.cpu(), y @ y, rtol=1e-5, atol=1e-5)


def test_sums_of_more_rows_than_a_dim_has_programs(rdna):
    """Inductor tries a block of one row as well, of which lavapipe allows 65,535."""
    x = rdna.arange(66000 * 16, device="rdna").view(66000, 16) % 7
    assert rdna.equal(x.sum(1).cpu(), x.cpu().sum(1))


def test_more_programs_than_a_dim_has(rdna, monkeypatch):
    """Tiles of products and convolutions, and patches of images, pass into a second dim, whose last programs have none."""
    torch = rdna
    from greta.torch import _convolution, _products

    for module in (_products, _convolution):
        monkeypatch.setattr(module, "MOST_PROGRAMS", 4)
    generator = torch.Generator().manual_seed(0)
    a, b, added = (torch.randn(shape, dtype=torch.float64, generator=generator) for shape in ((48, 32), (32, 32), (48, 32)))
    there = added.to("rdna")
    there.addmm_(a.to("rdna"), b.to("rdna"))
    torch.testing.assert_close(there.cpu(), torch.addmm(added, a, b), rtol=1e-4, atol=1e-4)
    x, w = (torch.randn(shape, generator=generator) for shape in ((1, 16, 9, 9), (16, 16, 3, 3)))
    torch.testing.assert_close(torch.conv2d(x.to("rdna"), w.to("rdna")).cpu(), torch.conv2d(x, w), rtol=1e-4, atol=1e-4)
    for channels in (3, 8):
        x, w = (torch.randn(shape, generator=generator).contiguous(memory_format=torch.channels_last) for shape in ((1, channels, 41, 41), (8, channels, 3, 3)))
        results = []
        for device in ("cpu", "rdna"):
            given, weight = x.to(device), w.detach().to(device).requires_grad_()
            out = torch.conv2d(given, weight)
            out.square().mean().backward()
            results.append((out.detach().cpu(), weight.grad.cpu()))
        torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "isCausal, biased, heads, queries, keys, depth, byTokens",
    ((True, 0, 1, 19, 21, 12, False), (True, 0, 1, 33, 48, 16, True), (False, 33, 2, 33, 48, 16, False), (False, 1, 2, 33, 48, 16, True)),
    ids=("kernel", "tokens", "bias", "bias for all queries"),
)
def test_attention(rdna, isCausal, biased, heads, queries, keys, depth, byTokens):
    """By a package, by one whose operands and results lie by tokens, and by a kernel of Triton's, which takes any depth."""
    torch = rdna
    from greta.torch import _attention_packages

    before = _attention_packages._compiled.cache_info().hits + _attention_packages._compiled.cache_info().misses
    results = []
    for device in ("cpu", "rdna"):
        torch.manual_seed(0)
        q, k, v = torch.randn(2, 2, queries, depth), torch.randn(2, heads, keys, depth), torch.randn(2, heads, keys, depth)
        bias = torch.randn(2, 1, biased, keys) if biased else None
        if biased:
            bias[..., -5:] = -float("inf")
        if biased > 1:
            bias[..., 3, :] = -float("inf")  # a row that sees nothing
        arguments = [(one.transpose(1, 2).contiguous().to(device).transpose(1, 2) if byTokens else one.to(device)).requires_grad_() for one in (q, k, v)]
        out = torch.nn.functional.scaled_dot_product_attention(*arguments, attn_mask=bias if bias is None else bias.to(device), is_causal=isCausal, enable_gqa=heads != 2)
        out.square().sum().backward()
        results.append([out, *(one.grad for one in arguments)])
    for one, other in zip(*results):
        torch.testing.assert_close(other.cpu(), one, rtol=1e-4, atol=1e-4)
    used = _attention_packages._compiled.cache_info().hits + _attention_packages._compiled.cache_info().misses - before
    assert used == (0 if depth == 12 else 2) and results[1][0].transpose(1, 2).is_contiguous() == byTokens


def test_causal_attention_of_more_queries_than_keys(rdna):
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(1, 2, 21, 16, generator=generator), torch.randn(1, 2, 19, 16, generator=generator)
    attention = torch.nn.functional.scaled_dot_product_attention
    there = attention(q.to("rdna"), k.to("rdna"), k.to("rdna"), is_causal=True)
    torch.testing.assert_close(there.cpu(), attention(q, k, k, is_causal=True), rtol=1e-4, atol=1e-4)


def test_few_scales_of_attention_have_packages(rdna, monkeypatch):
    torch = rdna
    from greta.torch import _attention_packages

    monkeypatch.setattr(_attention_packages, "MOST_SCALES", 1)
    monkeypatch.setattr(_attention_packages, "_scales", set())
    q = torch.randn(1, 2, 19, 16, generator=torch.Generator().manual_seed(0))
    attention = torch.nn.functional.scaled_dot_product_attention
    for scale, calls in ((0.5, 1), (0.75, 0)):
        before = sum(_attention_packages._compiled.cache_info()[:2])
        torch.testing.assert_close(attention(*[q.to("rdna")] * 3, scale=scale).cpu(), attention(q, q, q, scale=scale), rtol=1e-4, atol=1e-4)
        assert sum(_attention_packages._compiled.cache_info()[:2]) - before == calls


def test_attention_is_never_quadratic_unasked(rdna):
    """Not even where other operators may run on the CPU."""
    torch = rdna
    torch.rdna.forbid_fallback(False)
    attention = torch.nn.functional.scaled_dot_product_attention
    generator = torch.Generator().manual_seed(0)
    q, wide, mask = (torch.randn(shape, generator=generator) for shape in ((1, 1, 8, 16), (1, 1, 8, 257), (8, 8)))
    exact = attention(q.double(), q.double(), q.double())
    q, wide, mask = q.to("rdna"), wide.to("rdna"), mask.to("rdna").requires_grad_()
    for x, options in (q.double(), {}), (q, {"dropout_p": 0.5}), (wide, {}), (q, {"attn_mask": mask}):
        with pytest.raises(NotImplementedError, match="allow_quadratic_attention"):
            attention(x, x, x, **options)
    assert not torch.rdna.fallbacks()
    assert torch.rdna.allow_quadratic_attention(True) is False
    torch.testing.assert_close(attention(q.double(), q.double(), q.double()).cpu(), exact)
    assert torch.rdna.fallbacks()["aten::_scaled_dot_product_attention_math"] == 1


def test_views_are_written(rdna):
    """In place, with `out` and by the CPU: the elements of the view and no others."""
    torch = rdna
    torch.rdna.forbid_fallback(False)
    results = []
    for device in ("cpu", "rdna"):
        x = torch.arange(12.0).reshape(3, 4).to(device)
        x[:, 0].add_(x[:, 1])
        torch.special.ndtri(torch.full((3,), 0.25, device=device), out=x[:, 2])  # has no kernel
        torch.eye(2, device=device, out=x.t()[::3, :2])
        results.append(x.cpu())
    assert torch.equal(results[1], results[0])
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.arange(3).to("rdna").add_(torch.ones(3, device="rdna"))


def test_tensors_on_two_devices(rdna):
    torch = rdna
    there, host = torch.ones(3, 3, device="rdna"), torch.ones(3, 3)
    for call in (lambda: there @ host, lambda: torch.add(there, there, out=host)):
        with pytest.raises(RuntimeError, match="tensors on two devices, .*cpu"):
            call()
    with pytest.raises(RuntimeError, match="tensors on two devices, .*cpu"):
        torch.mul(there[0, 0], there[0, 0], out=host[0, 0])
    assert torch.equal(there[torch.tensor([0, 2])].cpu(), host[:2])  # indices may be the CPU's


def test_matrices_that_do_not_fit(rdna):
    torch = rdna
    a, b = torch.ones(2, 3, device="rdna"), torch.ones(4, 2, device="rdna")
    batches = a.expand(2, 2, 3), a.t()[None]
    for call in (
        lambda: torch.mm(a, b, out=torch.empty(2, 2, device="rdna")),
        lambda: torch.bmm(*batches, out=torch.empty(2, 2, 2, device="rdna")),
        lambda: torch.addmv(a[:, 0], a, b[:, 0]),
    ):
        with pytest.raises(RuntimeError, match="cannot be multiplied|Expected size|size mismatch"):
            call()


def test_gemm_in_its_arguments_place(rdna):
    torch = rdna
    host = torch.randn(20, 20, generator=torch.Generator().manual_seed(0))
    there = host.to("rdna")
    torch.mm(there, there.t(), out=there)
    torch.testing.assert_close(there.cpu(), host @ host.t(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batch, heads, keys", ((1, 2, 9), (2, 1, 9), (2, 2, 7)), ids=("batch", "heads", "keys"))
def test_attention_of_other_shapes(rdna, batch, heads, keys):
    """torch repeats a batch of one and a head of one; the rest is an error, and nothing is read outside the tensors."""
    torch = rdna
    torch.rdna.forbid_fallback(False)
    torch.rdna.allow_quadratic_attention(True)
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(shape, generator=generator) for shape in ((2, 2, 5, 16), (batch, heads, keys, 16), (batch, heads, 9, 16)))
    attention = torch.nn.functional.scaled_dot_product_attention
    if keys == 9:
        torch.testing.assert_close(attention(q.to("rdna"), k.to("rdna"), v.to("rdna")).cpu(), attention(q, k, v), rtol=1e-4, atol=1e-4)
    else:
        with pytest.raises(RuntimeError, match="Expected size"):
            attention(q.to("rdna"), k.to("rdna"), v.to("rdna"))


def test_places_of_64_bits(rdna, monkeypatch):
    """The kernels for tensors that 32 bits do not reach, on small ones; lavapipe has no room for large ones."""
    torch = rdna
    from greta.torch import _operators

    monkeypatch.setattr(_operators, "MOST_NEAR", 0)
    x = torch.randn(17, 19, generator=torch.Generator().manual_seed(0))
    there = x.to("rdna")
    wide = x.double().to("rdna")
    torch.testing.assert_close((wide @ wide.t()).cpu(), x.double() @ x.double().t())
    assert torch.equal(torch.arange(100, device="rdna").cpu(), torch.arange(100))
    assert torch.equal(there.nonzero().cpu(), x.nonzero())
    assert 0 <= torch.rand(1000, device="rdna").min() < 0.1
    q = x.reshape(1, 1, 17, 19)
    attention = torch.nn.functional.scaled_dot_product_attention
    torch.testing.assert_close(attention(q.to("rdna"), q.to("rdna"), q.to("rdna")).cpu(), attention(q, q, q), rtol=1e-4, atol=1e-4)
    w = torch.ones(2, 1, 3, 3)
    torch.testing.assert_close(torch.nn.functional.conv2d(q.to("rdna"), w.to("rdna")).cpu(), torch.nn.functional.conv2d(q, w), rtol=1e-4, atol=1e-4)


def test_numbers_in_f64(rdna):
    torch = rdna
    x = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    there = x.to("rdna")
    torch.testing.assert_close(torch.addmm(there, there, there, beta=0.1, alpha=1 / 3).cpu(), torch.addmm(x, x, x, beta=0.1, alpha=1 / 3), rtol=1e-14, atol=1e-14)
    drawn = torch.empty(100, dtype=torch.float64, device="rdna").uniform_(0.1, 0.1 + 1e-12).cpu()
    assert drawn.min() >= 0.1 and drawn.max() <= 0.1 + 1e-12
    torch.set_default_dtype(torch.float64)
    try:
        assert (torch.arange(3, device="rdna") / 3).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert (torch.arange(3, device="rdna") / 3).dtype == torch.float32


def test_numbers_beside_narrow_types(rdna):
    """They are not rounded to the tensor's type, in which 1e5 is infinite and 1e-6 has few bits; the result is, once."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    functions = {"multiply": lambda x: x * 1e-6, "divide": lambda x: x / 1e5, "in place": lambda x: x.clone().mul_(1 / 9), "one of both": lambda x: torch.where(x > 3e4, 1e-3, x), "no dims": lambda x: x[0] * 0.1}
    for dtype in (torch.float16, torch.bfloat16):
        x = (torch.rand(100, generator=generator) * 5e4 + 6e3).to(dtype)
        for name, function in functions.items():
            found, expected = function(x.to("rdna")).cpu(), function(x)
            assert found.dtype == dtype, name
            torch.testing.assert_close(found, expected, rtol=0.01 if name == "no dims" else 0, atol=0, msg=lambda text: f"{name} in {dtype}: {text}")
