"""torch.ops.greta: each operator beside the CPU's in float64, its registrations, and models that were swapped to them."""

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


def attended(torch, q, k_cache, v_cache, table, lengths):
    """torch's attention of each sequence, whose keys are taken from their pages one by one."""
    results = []
    for one, pages, length in zip(q, table.tolist(), lengths.tolist()):
        keys, values = (torch.stack([cache[pages[j // cache.shape[1]], j % cache.shape[1]] for j in range(length)], 1) for cache in (k_cache, v_cache))
        isSeen = torch.arange(length) <= torch.arange(q.shape[2])[:, None] + length - q.shape[2]
        results.append(torch.nn.functional.scaled_dot_product_attention(one, keys, values, attn_mask=isSeen, enable_gqa=True))
    return torch.stack(results)


def cases(torch):
    """By operator: arguments in float64, and what torch's own functions make of them, None where the operator is torch's."""
    F = torch.nn.functional
    generator = torch.Generator().manual_seed(0)

    def random(*shape):
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    x, weight, bias = random(2, 3, 20), random(20), random(20)
    q, k, v, angles = random(2, 2, 19, 12), random(2, 1, 21, 12), random(2, 1, 21, 12), random(1, 19, 12)
    codes, scales = torch.randint(0, 256, (6, 16), dtype=torch.uint8, generator=generator), random(6, 4)
    values = torch.stack((codes & 15, codes >> 4), -1).view(6, 4, 8).double() - 8
    ends = torch.tensor([2, 2, 6])
    rows, weights = random(7, 6), random(3, 5, 6)
    one_group = torch.cat([rows[:2] @ weights[0].t(), rows[2:6] @ weights[2].t(), torch.zeros(1, 5, dtype=torch.float64)])
    rows_of_pages, (k_pages, v_pages) = random(2, 4, 2, 16), random(2, 5, 4, 2, 16)
    pages, lengths = torch.tensor([[3, 0, 1 << 30], [1, 4, 2]], dtype=torch.int32), torch.tensor([6, 9], dtype=torch.int32)
    rotated = torch.cat((-q[..., 6:], q[..., :6]), -1)
    return {
        "rms_norm": ((x, weight, 1e-5), F.rms_norm(x, (20,), weight, 1e-5)),
        "layer_norm": ((x, weight, bias, 1e-5), F.layer_norm(x, (20,), weight, bias, 1e-5)),
        "rope": ((q, angles.cos(), angles.sin()), q * angles.cos() + rotated * angles.sin()),
        "swiglu": ((x, x.flip(0)), F.silu(x) * x.flip(0)),
        "attention": ((q, k, v, True), F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)),
        "paged_attention": ((rows_of_pages, k_pages, v_pages, pages, lengths), attended(torch, rows_of_pages, k_pages, v_pages, pages, lengths)),
        "dequantize_q4": ((codes, scales), (values * scales[:, :, None]).view(6, 32)),
        "linear_q4": ((random(3, 32), codes, scales), None),
        "grouped_linear": ((rows, weights, ends), one_group),
    }


NAMES = ("rms_norm", "layer_norm", "rope", "swiglu", "attention", "paged_attention", "dequantize_q4", "linear_q4", "grouped_linear")
DIFFERENTIABLE = {"rms_norm": (0, 1), "layer_norm": (0, 1, 2), "rope": (0,), "swiglu": (0, 1), "attention": (0, 1, 2), "linear_q4": (0,), "grouped_linear": (0, 1)}


def call(torch, name, arguments, to=lambda one: one):
    """The result and the gradients of an operator whose arguments are moved."""
    moved = [to(one) if isinstance(one, torch.Tensor) else one for one in arguments]
    for place in DIFFERENTIABLE.get(name, ()):
        moved[place] = moved[place].detach().requires_grad_()
    out = getattr(torch.ops.greta, name)(*moved)
    if name in DIFFERENTIABLE:
        out.backward(torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view(out.shape).to(out.device, out.dtype))
    return [out, *(moved[place].grad for place in DIFFERENTIABLE.get(name, ()))]


@pytest.mark.parametrize("name", NAMES)
def test_operators(rdna, name):
    torch = rdna
    arguments, expected = cases(torch)[name]
    results = call(torch, name, arguments)
    if expected is not None:
        torch.testing.assert_close(results[0].detach(), expected)
    there = call(torch, name, arguments, lambda one: one.to("rdna", torch.float32 if one.is_floating_point() else one.dtype))
    assert all(one.device.type == "rdna" for one in there) and not torch.rdna.fallbacks()
    for one, other in zip(there, results, strict=True):
        torch.testing.assert_close(one.cpu().double(), other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_registrations(rdna, name):
    """opcheck: schema, fakes, gradients, and the same under AOTAutograd with sizes that are not known. gradcheck: the gradients are those."""
    torch = rdna
    arguments = list(cases(torch)[name][0])
    for place in DIFFERENTIABLE.get(name, ()):
        arguments[place] = arguments[place].requires_grad_()
    op = getattr(torch.ops.greta, name)
    torch.library.opcheck(op.default, tuple(arguments))
    if name in DIFFERENTIABLE and name not in ("rope", "attention"):  # one is linear, the other torch's
        assert torch.autograd.gradcheck(op, tuple(arguments))


@pytest.mark.parametrize("name", NAMES)
def test_registrations_on_the_device(rdna, name):
    """Fakes say what the device returns. One operator has the slower checks, too: those compare by torch's operators, which Inductor compiles, two to seven seconds for each.
    That of gradients' registrations refuses devices that torch does not know."""
    torch = rdna
    checks = ["test_faketensor"] + ["test_schema", "test_aot_dispatch_dynamic"] * (name == "swiglu")
    moved = [one.to("rdna", torch.float32 if one.is_floating_point() else one.dtype) if isinstance(one, torch.Tensor) else one for one in cases(torch)[name][0]]
    for place in DIFFERENTIABLE.get(name, ()):
        moved[place].requires_grad_()
    torch.library.opcheck(getattr(torch.ops.greta, name).default, tuple(moved), test_utils=checks)


def test_narrow_types_round_once(rdna):
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(8, 40, generator=generator).half(), torch.randn(40, generator=generator).half()
    expected = torch.ops.greta.rms_norm(x.double(), weight.double(), 1e-6)
    for one in (x, x.to("rdna")):
        out = torch.ops.greta.rms_norm(one, weight.to(one.device), 1e-6)
        assert out.dtype == torch.float16 and (out.cpu().double() - expected).abs().le(expected.abs() * 2**-11 * 1.001 + 2**-25).all()


def test_cache_update(rdna):
    torch = rdna
    new = torch.arange(2 * 2 * 3 * 4.0).view(2, 2, 3, 4)
    positions = torch.tensor([3, 0, 5])  # the last is none
    caches = [torch.zeros(2, 2, 5, 4, device=device) for device in ("cpu", "rdna")]
    for cache in caches:
        torch.ops.greta.cache_update(cache, new.to(cache.device), positions.to(cache.device))
    assert torch.equal(caches[0][:, :, [3, 0]], new[:, :, :2]) and torch.equal(caches[1].cpu(), caches[0])
    torch.library.opcheck(torch.ops.greta.cache_update.default, (caches[0], new, positions))


def test_arguments_that_do_not_fit(rdna):
    torch = rdna
    ops, x = torch.ops.greta, torch.zeros(3, 8, device="rdna")
    codes = torch.zeros(2, 4, dtype=torch.uint8, device="rdna")
    with pytest.raises(RuntimeError, match="are no linear layer"):
        ops.linear_q4(x, codes, torch.ones(2, 3, device="rdna"))
    with pytest.raises(RuntimeError, match="are no grouped linear layer"):
        ops.grouped_linear(x, torch.zeros(2, 4, 7, device="rdna"), torch.tensor([1, 3]).to("rdna"))
    cache = torch.zeros(3, 4, 2, 16, device="rdna")
    with pytest.raises(RuntimeError, match="do not fit: they are"):
        ops.paged_attention(torch.zeros(1, 3, 1, 16, device="rdna"), cache, cache, torch.zeros(1, 2, dtype=torch.int32, device="rdna"), torch.tensor([4]).to("rdna"))
    with pytest.raises(RuntimeError, match="are not of 1 sequences"):
        ops.paged_attention(torch.zeros(1, 4, 1, 16, device="rdna"), cache, cache, torch.zeros(1, 2, dtype=torch.int32, device="rdna"), torch.tensor([4, 4]).to("rdna"))
    with pytest.raises(RuntimeError, match="do not fit a cache"):
        ops.cache_update(torch.zeros(1, 2, 5, 4, device="rdna"), torch.zeros(1, 2, 3, 4, device="rdna"), torch.tensor([1]).to("rdna"))


def test_a_compiled_graph_takes_norms_apart(rdna):
    """Under torch.compile norms and their neighbours are one kernel, and no call of the operator is left."""
    torch = rdna
    from torch._inductor.utils import run_and_get_code

    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(4, 20, generator=generator), torch.randn(20, generator=generator)

    def function(x, weight):
        return torch.ops.greta.rms_norm(x * 2, weight, 1e-5) + 1

    out, code = run_and_get_code(torch.compile(function), x.to("rdna"), weight.to("rdna"))
    torch.testing.assert_close(out.cpu(), function(x, weight), rtol=1e-4, atol=1e-5)
    assert "ops.greta.rms_norm" not in code[0] and "triton_" in code[0]


def test_models_are_swapped(rdna):
    """A Llama of transformers says what was swapped, computes the same, and can be copied; norms that are not the same stay."""
    torch = rdna
    import copy

    import greta.torch
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.models.gemma.modeling_gemma import GemmaRMSNorm

    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=40, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    model = LlamaForCausalLM(config).double()
    model.set_attn_implementation("eager")
    tokens = torch.arange(10)[None] * 3
    expected = model(tokens, labels=tokens)
    assert greta.torch.optimize(model) == {"attention": 2, "rope": 2, "swiglu": 2, "rms_norm": 5}
    calls = []
    with torch.autograd.profiler.profile() as profile:
        found = copy.deepcopy(model)(tokens, labels=tokens)
    calls = {row.key: row.count for row in profile.key_averages()}
    assert (calls["greta::rms_norm"], calls["greta::swiglu"], calls["greta::rope"], calls["aten::scaled_dot_product_attention"]) == (5, 2, 4, 2)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-5, atol=1e-5)
    found.loss.backward()
    assert greta.torch.optimize(torch.nn.Sequential(GemmaRMSNorm(8), torch.nn.LayerNorm(8))) == {}
    assert greta.torch.optimize(torch.nn.RMSNorm(8, eps=1e-5)) == {"rms_norm": 1}
