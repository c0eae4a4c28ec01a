"""Pointwise work behind attention in compiled functions is part of its kernel (python/greta/torch/_fusion.py, _attention_epilogues.py)."""

import io
import json
import zipfile

import pytest

from test_torch_fusion import check, compiled, kernels, tensors

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use

HEADS, KEY_HEADS, DEPTH = 4, 2, 16
QUERIES, KEYS, TOKENS = (2, HEADS, 9, DEPTH), (2, KEY_HEADS, 21, DEPTH), (2, 9, HEADS * DEPTH)
ONE = dict(fused_attention=1)


def attention(F, q, k, v, **options):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)


def joined(o):
    """[B, S, H D]"""
    return o.transpose(1, 2).reshape(o.shape[0], o.shape[2], -1)


def qwen(F, x, wq, wk, wv, wo):
    """Qwen3-Next's: the gate is every other half of a projection's heads."""
    split = lambda y, width: y.view(*y.shape[:2], -1, width)
    q, gate = split(F.linear(x, wq), 2 * DEPTH).chunk(2, -1)
    k, v = (split(F.linear(x, w), DEPTH).transpose(1, 2) for w in (wk, wv))
    o = attention(F, q.transpose(1, 2), k, v, is_causal=True)
    return F.linear(joined(o) * gate.reshape(*x.shape[:2], -1).sigmoid(), wo)


def slices(F, x, k, v):
    """Queries and an addend are heads of one projection."""
    y = (x @ x.mT @ x).view(*x.shape[:2], 3 * HEADS, DEPTH)
    o = attention(F, y[:, :, :HEADS].transpose(1, 2), k, v)
    return o.transpose(1, 2) + y[:, :, HEADS : 2 * HEADS]


PROJECTED = ((2, 9, 32), (2 * HEADS * DEPTH, 32), (KEY_HEADS * DEPTH, 32), (KEY_HEADS * DEPTH, 32), (32, HEADS * DEPTH))
CHAINS = {  # a function, shapes, and its kernels
    "gate": (lambda F, q, k, v, g: attention(F, q, k, v) * g.sigmoid(), (QUERIES, KEYS, KEYS, QUERIES), ONE),
    "causal, silu, masked": (lambda F, q, k, v, g, m: F.silu(attention(F, q, k, v, attn_mask=m)) - g, (QUERIES, KEYS, KEYS, QUERIES, (9, 21)), ONE),
    "residual by token": (lambda F, q, k, v, r: joined(attention(F, q, k, v)) * 0.5 + r, (QUERIES, KEYS, KEYS, TOKENS), ONE),
    "rows and numbers": (lambda F, q, k, v, w, n: attention(F, q, k, v) * w * n.sigmoid(), (QUERIES, KEYS, KEYS, (DEPTH,), (2, HEADS, 9, 1)), ONE),
    "a row of all heads": (lambda F, q, k, v, w, n: joined((attention(F, q, k, v).transpose(1, 2) + n).transpose(1, 2)) * w, (QUERIES, KEYS, KEYS, (HEADS * DEPTH,), (2, 9, HEADS, 1)), ONE),
    "both orders": (lambda F, q, k, v, g, r: joined(attention(F, q, k, v) * g) + r, (QUERIES, KEYS, KEYS, QUERIES, TOKENS), ONE),
    "an operand that is computed in the other order": (lambda F, q, k, v, g: attention(F, q, k, v).transpose(1, 2).contiguous() * g.exp().transpose(1, 2), (QUERIES, KEYS, KEYS, QUERIES), ONE),
    "a column of all elements": (lambda F, q, k, v, r: (attention(F, q, k, v).reshape(-1, 1) * r).view(QUERIES), (QUERIES, KEYS, KEYS, (2 * HEADS * 9 * DEPTH, 1)), ONE),
    "numbers as a vector": (lambda F, q, k, v, n: attention(F, q, k, v) * n.exp().view(1, 1, DEPTH, 1), ((1, 1, DEPTH, DEPTH), (1, 1, 21, DEPTH), (1, 1, 21, DEPTH), (DEPTH,)), ONE),
    "tokens first": (lambda F, q, k, v: joined(attention(F, q, k, v)), (QUERIES, KEYS, KEYS), ONE),
    "as many operands as a launch has room for": (lambda F, q, k, v, *others: sum(others, attention(F, q, k, v)), (QUERIES, KEYS, KEYS, *[QUERIES] * 7), ONE),
    "one token": (lambda F, q, k, v, g: joined(attention(F, q, k, v)) * g, ((2, HEADS, 1, DEPTH), KEYS, KEYS, (2, 1, HEADS * DEPTH)), ONE),
    "gate of a projection": (qwen, PROJECTED, ONE | dict(mm=4)),
    "heads of a projection": (slices, ((2, 9, 3 * HEADS * DEPTH), KEYS, KEYS), ONE | dict(bmm=2)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains(rdna, name):
    torch = rdna
    function, shapes, expected = CHAINS[name]
    arguments = [one / 4 if name == "heads of a projection" else one for one in tensors(torch, "float32", *shapes)]
    check(torch, lambda *given: function(torch.nn.functional, *given), arguments, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_types(rdna, dtype):
    """A cast behind attention is part of it, as autocast puts it there; an addend of f32 is read as it is."""
    torch = rdna
    *narrow, residual = tensors(torch, dtype, QUERIES, KEYS, KEYS, QUERIES)
    arguments = [*narrow, residual.float()]
    result = check(torch, lambda q, k, v, r: attention(torch.nn.functional, q, k, v).to(r.dtype) + r, arguments, ONE, dtype)
    assert result.dtype == torch.float32


REFUSED = {  # each could be fused but for one thing
    "an operator that no epilogue has": (lambda F, q, k, v: attention(F, q, k, v).sin(), (QUERIES, KEYS, KEYS)),
    "a softmax": (lambda F, q, k, v: (attention(F, q, k, v) + 1).softmax(-1), (QUERIES, KEYS, KEYS)),
    "an operand that lies otherwise": (lambda F, q, k, v, g: attention(F, q, k, v) * g.mT, (QUERIES, KEYS, KEYS, (2, HEADS, DEPTH, 9))),
    "numbers with an addend for each of D tokens": (lambda F, q, k, v, n, w: attention(F, q, k, v) * (n + w).view(2, HEADS, DEPTH, 1), ((2, HEADS, DEPTH, DEPTH), KEYS, KEYS, (2, HEADS, DEPTH), (DEPTH,))),
    "more operands than a launch has room for": (lambda F, q, k, v, m, *others: sum(others, attention(F, q, k, v, attn_mask=m)), (QUERIES, KEYS, KEYS, (9, 21), *[QUERIES] * 7)),
    "a row that is numbers, too": (lambda F, q, k, v, w: attention(F, q, k, v) * w.exp() + w.exp().view(1, 1, DEPTH, 1), ((1, 1, DEPTH, DEPTH), (1, 1, 21, DEPTH), (1, 1, 21, DEPTH), (DEPTH,))),
    "a row by tokens and by heads": (
        lambda F, q, k, v, w: (joined(attention(F, q, k, v)) * w.exp()).view(2, 9, HEADS, DEPTH).transpose(1, 2).reshape(2, 9, -1) * w,
        (QUERIES, KEYS, KEYS, (HEADS * DEPTH,)),
    ),
    "numbers of columns and tokens": (lambda F, q, k, v, g: attention(F, q, k, v) * g, (QUERIES, KEYS, KEYS, (9, DEPTH))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_fused(rdna, name):
    torch = rdna
    function, shapes = REFUSED[name]
    expected = dict(_scaled_dot_product_fused_attention_overrideable=1, generated=1)
    check(torch, lambda *given: function(torch.nn.functional, *given), tensors(torch, "float32", *shapes), expected)


def test_the_result_is_read_by_others(rdna):
    """The kernel stores attention's result beside that of the work; who reads it before the work ends keeps them apart."""
    torch = rdna
    F = torch.nn.functional

    def both(q, k, v, g):
        o = attention(F, q, k, v)
        return o * g, o

    def between(q, k, v, g):
        o = attention(F, q, k, v)
        return o * (o @ g.mT @ g)

    arguments = tensors(torch, "float32", QUERIES, KEYS, KEYS, QUERIES)
    with torch.no_grad():
        results, ran = kernels(torch, compiled(torch, both), *(one.to("rdna") for one in arguments))
    for result, exact in zip(results, both(*(one.double() for one in arguments))):
        torch.testing.assert_close(result.cpu().double(), exact, rtol=1e-5, atol=1e-5)
    assert ran == ONE, ran
    check(torch, between, arguments, dict(_scaled_dot_product_fused_attention_overrideable=1, product=1, bmm=1))


@pytest.mark.parametrize("isByToken", [False, True])
def test_training(rdna, isByToken):
    """Attention's result and its logarithms of sums are stored for the gradients."""
    torch = rdna
    F = torch.nn.functional
    given = tensors(torch, "float32", QUERIES, KEYS, KEYS, TOKENS if isByToken else QUERIES, (TOKENS if isByToken else QUERIES)[-1:] * 2)

    def loss(q, k, v, g, w):
        if isByToken:
            q = q.transpose(1, 2).contiguous().transpose(1, 2)
        o = attention(F, q, k, v, is_causal=True)
        return (((joined(o) if isByToken else o) * g.sigmoid()) @ w).square().sum()

    gradients = []
    for device, dtype, function in (("cpu", torch.float64, loss), ("rdna", torch.float32, compiled(torch, loss))):
        leaves = [one.to(device, dtype, copy=True).requires_grad_() for one in given]
        _, ran = kernels(torch, lambda *all: function(*all).backward(), *leaves) if device == "rdna" else (function(*leaves).backward(), None)
        gradients.append([one.grad.cpu().double() / (2 if device == "rdna" else 1) for one in leaves])
    for exact, own in zip(*gradients):
        torch.testing.assert_close(own, exact, rtol=1e-4, atol=1e-4)
    assert ran["fused_attention"] == 1 and "_scaled_dot_product_fused_attention_overrideable" not in ran, ran


def test_sizes_stay_dynamic(rdna):
    """One graph for any batch and any numbers of tokens, which attention guards none of, and one package."""
    torch = rdna
    F = torch.nn.functional
    graphs = []

    def backend(module, inputs):
        from torch._inductor.compile_fx import compile_fx

        graphs.append(module)
        return compile_fx(module, inputs)

    def function(q, k, v, r):
        q, k, v = (one.view(*one.shape[:2], heads, DEPTH).transpose(1, 2) for one, heads in ((q, HEADS), (k, KEY_HEADS), (v, KEY_HEADS)))
        return joined(attention(F, q, k, v, is_causal=True)) * 2 + r

    torch._dynamo.reset()
    made = torch.compile(function, dynamic=True, backend=backend)
    for batch, s, t in ((2, 9, 21), (3, 5, 7), (4, 33, 20)):  # of the last, more rows than keys, no package has
        arguments = tensors(torch, "float32", *((batch, rows, heads * DEPTH) for rows, heads in ((s, HEADS), (t, KEY_HEADS), (t, KEY_HEADS), (s, HEADS))))
        with torch.no_grad():
            result, ran = kernels(torch, made, *(one.to("rdna") for one in arguments))
        torch.testing.assert_close(result.cpu(), function(*arguments), rtol=1e-4, atol=1e-4)
        assert ran["fused_attention"] == 1 and len(graphs) == 1


def test_how_operands_lie():
    """By tokens or by heads, as parts of the columns or of the heads of something wider; dims of one element lie anywhere."""
    torch = pytest.importorskip("torch")
    import greta.torch  # noqa: F401
    from greta.torch._attention_epilogues import Lying, _memory, lying_of

    def lying(x):
        return lying_of(x.shape, x.stride())

    tokens, heads = torch.empty(2, 9, 6, 32), torch.empty(2, 6, 9, 32)
    assert lying(tokens) == Lying(True, 6, 32) and lying(heads.transpose(1, 2)) == Lying(False, 6, 32)
    assert lying(tokens[..., 8:24]) == Lying(True, 6, 32) and lying(tokens[:, :, 1:3]) == Lying(True, 6, 32)
    assert lying(heads[:, 2:4].transpose(1, 2)) == Lying(False, 6, 32)
    assert lying(tokens[:, ::2]) is None and lying(tokens[..., ::2]) is None and lying(tokens[:, :, ::4]) is None and lying(tokens.expand(2, 9, 6, 32)[:1].expand(2, 9, 6, 32)) is None
    for part, memory, lies in ((tokens[..., 16:], tokens, Lying(True, 6, 32, 0, 16)), (tokens[:, :, 3:5], tokens, Lying(True, 6, 32, 3)), (heads[:, 2:4].transpose(1, 2), heads, Lying(False, 6, 32, 2))):
        taken, found = _memory(part)
        assert found == lies and taken.data_ptr() == memory.data_ptr() and taken.shape == memory.shape
    assert _memory(tokens[..., 8:24])[1] == Lying(True, 6, 16)  # begins where no chunk does: a copy
    assert lying(torch.empty(1, 1, 6, 32)) == Lying(True, 6, 32) and lying(torch.empty(3, 1, 1, 64)[..., :32]) == Lying(True, 1, 64)


def test_operator_of_the_pass(rdna):
    """On the CPU, on the device and where no package is: operands of each kind, a mask, keys of two heads each; fakes say what it returns."""
    torch = rdna
    op = torch.ops.greta.fused_attention.default
    q, k, v = tensors(torch, "float32", QUERIES, KEYS, KEYS)
    shapes = [(2, 9, HEADS, 3 * DEPTH), QUERIES, (2, 9, HEADS), (2, HEADS, 9), (HEADS * DEPTH,), (DEPTH,), ()]
    whole, *others = tensors(torch, "float32", *shapes)
    epilogue = "by_tokens by_heads numbers_by_tokens numbers_by_heads rows row scalar: " + "; ".join(f"{'add' if n % 2 else 'mul'} %{n} ${n}" for n in range(7))
    mask = tensors(torch, "float32", (1, 1, 9, 21))[0]
    for byTokens, keeps, keyRows in ((True, True, 21), (False, False, 21), (True, True, 5)):  # of five keys no package has causal rows
        isCausal = keyRows == 5
        given = (q, k[:, :, :keyRows], v[:, :, :keyRows], None if isCausal else mask, [whole[..., DEPTH : 2 * DEPTH], *others], epilogue, isCausal, None, byTokens, torch.float32, keeps)
        # A part of a wider tensor is one there, too.
        there = torch.utils._pytree.tree_map_only(torch.Tensor, lambda one: one.to("rdna"), given)
        there[4][0] = whole.to("rdna")[..., DEPTH : 2 * DEPTH]
        expected, results = op(*given), op(*there)
        assert len(expected) == len(results) == (5 if keeps else 1)
        for result, exact in list(zip(results, expected))[:3]:
            torch.testing.assert_close(result.cpu(), exact, rtol=1e-4, atol=1e-5)
            assert result.stride() == exact.stride()
        torch.library.opcheck(op, there, test_utils=["test_faketensor"])
    assert op(q[:0].to("rdna"), k[:0].to("rdna"), v[:0].to("rdna"), None, [], ": neg %0", False, None, True, torch.float32, False)[0].shape == (0, 9, HEADS, DEPTH)


def test_packages_are_one_kernel():
    """A result by tokens is stored so, with as many operands behind as the pass takes; gradients have one kernel for queries and one for keys."""
    pytest.importorskip("torch")
    import greta.torch  # noqa: F401
    from greta._compile import compile_source
    from greta.torch._attention_epilogues import Behind, Lying
    from greta.torch._attention_packages import Recipe
    from greta.torch._epilogues import Epilogue

    def count(byTokens, mask=None, operands=None, keepsResult=False):
        behind = None
        if operands is not None:
            steps = tuple(("add", f"%{number}", f"${number}") for number in range(operands))
            behind = Behind(Epilogue(("matrix",) * operands, ("f32",) * operands, steps), (Lying(True, HEADS, 2 * DEPTH, 0, DEPTH),) * operands, "f32", keepsResult)
        recipe = Recipe("f16", HEADS, KEY_HEADS, DEPTH, False, 0.25, mask, byTokens, len(byTokens) > 4, behind)
        with zipfile.ZipFile(io.BytesIO(compile_source(recipe.text(), "vulkan:portable"))) as archive:
            (function,) = json.loads(archive.read("manifest.json"))["functions"]
        return len({kernel["entry"] for variant in function["variants"] if variant["target"] != "host" for kernel in variant["kernels"]})

    for byTokens in ((True,) * 4, (False, False, False, True), (True, True, True, False)):
        assert count(byTokens) == count(byTokens, None, 7) == count(byTokens, (True, True, False, "f32"), 5, True) == 1
    assert count((True,) * 8) == count((False,) * 8) == 2
