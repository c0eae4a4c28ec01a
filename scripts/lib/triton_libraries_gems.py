"""Cases of flag-gems: its operators, called as they are, against torch's of the same name."""

import os

os.environ["GEMS_VENDOR"] = "nvidia"  # whose kernels are the ones in plain Triton
import flag_gems  # noqa: E402
import torch  # noqa: E402
from flag_gems import ops  # noqa: E402
from flag_gems.utils import codegen_config_utils  # noqa: E402
from torch.nn import functional as F  # noqa: E402

# Triton 3.9 has no block pointers.
for _config in codegen_config_utils.CODEGEN_COFIGS.values():
    if _config is not None:
        _config.prefer_block_pointer = False

SHAPE = (7, 33)
CASES = {}


def wide(value):
    """The type that torch computes with: f32 where a result is rounded once."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.float()
    return type(value)(wide(one) for one in value) if isinstance(value, (list, tuple)) else value


def case(name, arguments, reference=None, function=None, **keywords):
    """`arguments` of a type; `reference` is torch's function of the name unless given."""
    reference = reference or getattr(torch, name.removesuffix("_dim"))

    def run(dtype):
        given = arguments(dtype)
        expected = reference(*wide(given), **keywords)
        got = (function or getattr(ops, name))(*given, **keywords)
        if isinstance(got, torch.Tensor):
            got, expected = (got,), (expected,)
        return [(a, e if not e.is_floating_point() else e.to(a.dtype)) for a, e in zip(got, expected, strict=True)]

    CASES[name] = run


def normal(dtype, *shape):
    return torch.randn(*(shape or SHAPE)).to(dtype)


def positive(dtype, *shape):
    return (torch.rand(*(shape or SHAPE)) + 0.1).to(dtype)


# Functions element by element.
for _name in "abs absolute angle ceil cos erf exp exp2 expm1 isfinite isinf isnan isneginf logical_not nan_to_num neg relu round sgn_ sigmoid signbit silu sin square tan tanh".split():
    if hasattr(ops, _name) and (hasattr(torch, _name) or hasattr(F, _name)):
        case(_name, lambda dtype: (normal(dtype),), reference=getattr(torch, _name, None) or getattr(F, _name))
for _name in "log log10 reciprocal rsqrt sqrt".split():
    case(_name, lambda dtype: (positive(dtype),))
for _name in "acos arcsinh atan cosh special_i1 special_i0e i0 logit".split():
    case(_name, lambda dtype: ((torch.rand(*SHAPE) * 0.8 + 0.1).to(dtype),), reference=getattr(torch, _name, None) or getattr(torch.special, _name.removeprefix("special_")))
for _name in "celu elu gelu hardsigmoid log_sigmoid relu6 selu softplus softshrink glu".split():
    case(_name, lambda dtype: (normal(dtype, 7, 34),), reference={"log_sigmoid": F.logsigmoid}.get(_name) or getattr(F, _name))
for _name in "add sub mul maximum minimum fmin copysign hypot atan2 logaddexp eq ne lt le gt ge greater isclose logical_and logical_or logical_xor".split():
    case(_name, lambda dtype: (normal(dtype), normal(dtype)))
case("true_divide", lambda dtype: (normal(dtype), positive(dtype)))
case("floor_divide", lambda dtype: (normal(dtype), positive(dtype)), reference=lambda x, y: torch.floor_divide(x, y))
case("remainder", lambda dtype: (torch.randint(0, 40, SHAPE).to(dtype), torch.randint(1, 7, SHAPE).to(dtype)))
case("pow_tensor_tensor", lambda dtype: (positive(dtype), normal(dtype)), reference=torch.pow)
case("pow_tensor_scalar", lambda dtype: (positive(dtype), 3), reference=torch.pow)
case("pow_scalar", lambda dtype: (2.0, normal(dtype)), reference=torch.pow)
case("lerp_scalar", lambda dtype: (normal(dtype), normal(dtype), 0.3), reference=torch.lerp)
case("lerp_tensor", lambda dtype: (normal(dtype), normal(dtype), positive(dtype)), reference=torch.lerp)
case("addcmul", lambda dtype: (normal(dtype), normal(dtype), normal(dtype)))
case("addcdiv", lambda dtype: (normal(dtype), normal(dtype), positive(dtype)))
case("clamp", lambda dtype: (normal(dtype), -0.5, 0.5))
case("clamp_min", lambda dtype: (normal(dtype), -0.5))
case("threshold", lambda dtype: (normal(dtype), 0.2, 7.0))
case("prelu", lambda dtype: (normal(dtype), positive(dtype, 1)))
case("where_self", lambda dtype: (torch.rand(*SHAPE) > 0.5, normal(dtype), normal(dtype)), reference=torch.where)
case("masked_fill", lambda dtype: (normal(dtype), torch.rand(*SHAPE) > 0.5, 1.5))
case("dropout", lambda dtype: (positive(dtype), 0.0, True), reference=lambda x, p, train: (x, torch.ones_like(x, dtype=torch.bool)))

# Integers and bits, whatever the type.
for _name in "bitwise_and bitwise_or".split():
    case(f"{_name}_tensor", lambda dtype: (torch.randint(0, 99, SHAPE, dtype=torch.int32), torch.randint(0, 99, SHAPE, dtype=torch.int32)), reference=getattr(torch, _name))
case("bitwise_not", lambda dtype: (torch.randint(0, 99, SHAPE, dtype=torch.int32),))
case("bitwise_left_shift", lambda dtype: (torch.randint(0, 99, SHAPE, dtype=torch.int32), torch.randint(0, 5, SHAPE, dtype=torch.int32)))
case("bitwise_right_shift", lambda dtype: (torch.randint(0, 99, SHAPE, dtype=torch.int32), torch.randint(0, 5, SHAPE, dtype=torch.int32)))
case("isin", lambda dtype: (torch.randint(0, 9, SHAPE), torch.randint(0, 9, (4,))))
case("one_hot", lambda dtype: (torch.randint(0, 9, (11,)), 9), reference=F.one_hot)

# Along a dimension.
for _name in "sum mean prod max min all any count_nonzero amax argmax argmin".split():
    case(_name, lambda dtype: (positive(dtype),))
for _name in "sum mean".split():
    case(f"{_name}_dim", lambda dtype: (normal(dtype), [1]))
for _name in "max min prod".split():
    case(f"{_name}_dim", lambda dtype: (positive(dtype), 1))
case("all_dim", lambda dtype: (normal(dtype) > 0, 1))
case("any_dim", lambda dtype: (normal(dtype) > 1, 1))
case("std", lambda dtype: (normal(dtype), [1]))
case("var_mean", lambda dtype: (normal(dtype), [1]))
case("vector_norm", lambda dtype: (normal(dtype), 2, [1]), reference=torch.linalg.vector_norm)
case("softmax", lambda dtype: (normal(dtype), 1))
case("log_softmax", lambda dtype: (normal(dtype), 1))
case("cumsum", lambda dtype: (normal(dtype), 1))
case("cummax", lambda dtype: (torch.randperm(231).reshape(SHAPE).to(dtype), 1), reference=torch.cummax)
case("cummin", lambda dtype: (torch.randperm(231).reshape(SHAPE).to(dtype), 1), reference=torch.cummin)
case("sort", lambda dtype: (torch.stack([torch.randperm(32) for _ in range(4)]).to(dtype), 1))
case("topk", lambda dtype: (torch.stack([torch.randperm(32) for _ in range(4)]).to(dtype), 5))
case("layer_norm", lambda dtype: (normal(dtype), (33,), normal(dtype, 33), normal(dtype, 33)), reference=lambda *a: [one.reshape(one.shape[:1] if one.shape[-1] == 1 else one.shape) for one in torch.native_layer_norm(*a, 1e-5)])
case("rms_norm", lambda dtype: (normal(dtype), (33,), normal(dtype, 33)), reference=lambda x, s, w: F.rms_norm(x, s, w, 1e-5))
case("group_norm", lambda dtype: (normal(dtype, 2, 8, 16), normal(dtype, 8), normal(dtype, 8), 2, 8, 16, 4), reference=lambda *a: torch.native_group_norm(*a, 1e-5))
case("mse_loss", lambda dtype: (normal(dtype), normal(dtype)), reference=F.mse_loss)
case("margin_ranking_loss", lambda dtype: (normal(dtype), normal(dtype), torch.ones(SHAPE).to(dtype)), reference=F.margin_ranking_loss)
case("soft_margin_loss", lambda dtype: (normal(dtype), torch.ones(SHAPE).to(dtype)), reference=F.soft_margin_loss)

# Products.
case("mm", lambda dtype: (normal(dtype, 16, 32), normal(dtype, 32, 24)))
case("addmm", lambda dtype: (normal(dtype, 24), normal(dtype, 16, 32), normal(dtype, 32, 24)))
case("bmm", lambda dtype: (normal(dtype, 2, 16, 32), normal(dtype, 2, 32, 24)))
case("baddbmm", lambda dtype: (normal(dtype, 2, 16, 24), normal(dtype, 2, 16, 32), normal(dtype, 2, 32, 24)))
case("mv", lambda dtype: (normal(dtype, 16, 32), normal(dtype, 32)))
case("addmv", lambda dtype: (normal(dtype, 16), normal(dtype, 16, 32), normal(dtype, 32)))
case("dot", lambda dtype: (normal(dtype, 32), normal(dtype, 32)))
case("vdot", lambda dtype: (normal(dtype, 32), normal(dtype, 32)))
case("addr", lambda dtype: (normal(dtype, 5, 9), normal(dtype, 5), normal(dtype, 9)))
case("kron", lambda dtype: (normal(dtype, 3, 4), normal(dtype, 2, 5)))
case("conv1d", lambda dtype: (normal(dtype, 1, 4, 16), normal(dtype, 8, 4, 3)))
case("conv2d", lambda dtype: (normal(dtype, 1, 4, 8, 8), normal(dtype, 8, 4, 3, 3)))

# Moving and making.
case("cat", lambda dtype: ([normal(dtype, 3, 5), normal(dtype, 4, 5)], 0))
case("stack", lambda dtype: ([normal(dtype, 3, 5), normal(dtype, 3, 5)], 0))
case("hstack", lambda dtype: ([normal(dtype, 3, 5), normal(dtype, 3, 4)],))
case("vstack", lambda dtype: ([normal(dtype, 3, 5), normal(dtype, 4, 5)],))
case("flip", lambda dtype: (normal(dtype), [0, 1]))
case("roll", lambda dtype: (normal(dtype), 3, 1))
case("repeat", lambda dtype: (normal(dtype), (2, 3)), reference=lambda x, n: x.repeat(n))
case("tile", lambda dtype: (normal(dtype), (2, 3)))
case("tril", lambda dtype: (normal(dtype),))
case("triu", lambda dtype: (normal(dtype),))
case("diag", lambda dtype: (normal(dtype, 9),))
case("diag_embed", lambda dtype: (normal(dtype, 3, 5),))
case("trace", lambda dtype: (normal(dtype, 9, 9),))
case("pad", lambda dtype: (normal(dtype, 3, 5), [1, 2]), reference=F.pad)
case("pixel_unshuffle", lambda dtype: (normal(dtype, 1, 2, 4, 4), 2), reference=F.pixel_unshuffle)
case("reflection_pad1d", lambda dtype: (normal(dtype, 2, 3, 9), (2, 3)), reference=lambda x, p: F.pad(x, p, mode="reflect"))
case("replication_pad1d", lambda dtype: (normal(dtype, 2, 3, 9), (2, 3)), reference=lambda x, p: F.pad(x, p, mode="replicate"))
case("gather", lambda dtype: (normal(dtype), 1, torch.randint(0, 33, (7, 9))))
case("scatter", lambda dtype: (normal(dtype), 1, torch.stack([torch.randperm(33)[:9] for _ in range(7)]), normal(dtype, 7, 9)))
case("index_select", lambda dtype: (normal(dtype), 1, torch.randint(0, 33, (9,))))
case("index_add", lambda dtype: (normal(dtype), 1, torch.randperm(33)[:9], normal(dtype, 7, 9)))
case("masked_select", lambda dtype: (normal(dtype), torch.rand(*SHAPE) > 0.5))
case("nonzero", lambda dtype: ((torch.rand(*SHAPE) > 0.5).to(dtype),))
case("embedding", lambda dtype: (normal(dtype, 17, 8), torch.randint(0, 17, (3, 4))), reference=lambda w, i: F.embedding(i, w))
case("linspace", lambda dtype: (0.0, 1.0, 17))
case("arange", lambda dtype: (17,))
case("eye", lambda dtype: (9,))
case("full_like", lambda dtype: (normal(dtype), 2.5))
case("ones_like", lambda dtype: (normal(dtype),))
case("zeros_like", lambda dtype: (normal(dtype),))
case("avg_pool2d", lambda dtype: (normal(dtype, 1, 2, 8, 8), 2), reference=F.avg_pool2d)
case("upsample_nearest1d", lambda dtype: (normal(dtype, 1, 2, 8), [16]), reference=lambda x, size: F.interpolate(x, size, mode="nearest"))
case("upsample_nearest2d", lambda dtype: (normal(dtype, 1, 2, 4, 4), [8, 8]), reference=lambda x, size: F.interpolate(x, size, mode="nearest"))
case("scaled_dot_product_attention", lambda dtype: tuple(normal(dtype, 1, 2, 16, 32) for _ in range(3)), reference=F.scaled_dot_product_attention)
