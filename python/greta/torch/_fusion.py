"""A pass of Inductor's for graphs with rdna: pointwise work behind a product, a convolution or attention becomes a part of that kernel.

In: the graph behind Inductor's own passes, where a layer is several nodes. Out: torch.ops.greta.product, .convolution or .fused_attention in their place, with what follows as an epilogue.

    mm(x, w) -> add(_, bias) -> mul(_, sigmoid(_)) -> mm    becomes    greta.product(x, w, [bias], "row: add %0 $0; ..") -> mm

An epilogue grows from the product on, node by node in the graph's order. A node may be its last if no other node outside reads a value before it, so no sums are stored twice.
The last one is the farthest such node whose result a product, a convolution, attention or the caller of the graph reads, because Inductor's kernel would have stored that result, too.
If there is none, Inductor's kernel stays with the work in it. A value from elsewhere is an operand if it is stored in any case, else the epilogue computes it.

Values are f32 from the sums to the result, as in Inductor's own kernels, and the sums are not rounded to the product's type in between. Attention's result is rounded to its type,
as its operator says, and may be read by others, too: then the kernel stores it beside the epilogue's. Work on it may come behind its transpose to tokens first, or be that alone.
"""

from __future__ import annotations

import functools
import heapq
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from .._compile import build_key
from . import _attention_epilogues, _convolution_packages, _eager, _epilogues
from ._device import NAME, target_of
from ._private import CustomGraphModulePass, config, statically_known_true
from ._products import NAMES

aten = torch.ops.aten
prims = torch.ops.prims
MOST_STEPS = 48
MOST_BUFFERS = 12  # of a launch, factors and results included
MOST_OPERANDS = MOST_BUFFERS - 3


class Unfit(Exception):
    """This is no part of an epilogue."""


Write = Callable[..., str]  # of an op's name and words, a word


def _scaled(op: str, write: Write, x: str, y: str, alpha: Any = 1) -> str:
    return write(op, x, y if alpha == 1 else write("mul", y, _number(alpha)))


def _power(write: Write, x: str, exponent: str) -> str:
    if float(exponent) not in (2, 3):
        raise Unfit
    square = write("mul", x, x)
    return square if float(exponent) == 2 else write("mul", square, x)


def _clamped(write: Write, x: str, least: str | None = None, most: str | None = None) -> str:
    above = x if least is None else write("max", x, least)
    return above if most is None else write("min", above, most)


def _direct(op: str) -> Callable[..., str]:
    return lambda write, *words: write(op, *words)


# Operators that fuse, of a graph behind Inductor's decompositions, as steps of an epilogue.
TAKEN: dict[Any, Callable[..., str]] = {
    **{getattr(aten, name).Tensor: _direct(name) for name in ("mul", "div")},
    **{getattr(aten, name).Tensor: functools.partial(_scaled, name) for name in ("add", "sub")},
    **{getattr(aten, name).default: _direct(name) for name in ("neg", "abs", "exp", "erf", "tanh", "sqrt", "rsqrt")},
    **{getattr(aten, name).Scalar: _direct(name) for name in _epilogues.TRUTHS},
    aten.maximum.default: _direct("max"),
    aten.minimum.default: _direct("min"),
    aten.relu.default: lambda write, x: write("max", x, "0.0"),
    aten.clamp_min.default: _direct("max"),
    aten.clamp_max.default: _direct("min"),
    aten.clamp.default: _clamped,
    aten.sigmoid.default: lambda write, x: write("quick_div", "1.0", write("add", write("quick_exp", write("neg", x)), "1.0")),
    aten.reciprocal.default: lambda write, x: write("div", "1.0", x),
    aten.pow.Tensor_Scalar: _power,
    aten.where.self: _direct("where"),
    prims.convert_element_type.default: lambda write, x, _: x,  # values are f32 throughout
}
_TRUTHS = {getattr(aten, name).Scalar for name in _epilogues.TRUTHS}
_RESHAPES = {aten.view.default, aten.reshape.default, aten._unsafe_view.default}
_OTHER_VIEWS = ("unsqueeze.default", "squeeze.dim", "squeeze.dims", "permute.default", "transpose.int", "expand.default", "slice.Tensor", "select.int", "split.Tensor", "split_with_sizes.default", "alias.default")
_VIEWS = _RESHAPES | {operator.attrgetter(name)(aten) for name in _OTHER_VIEWS} | {operator.getitem}
_SDPA = aten._scaled_dot_product_fused_attention_overrideable.default
_BEGINNINGS = (aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default, aten.convolution.default, _SDPA)
_ATTENTION = {"aten::_scaled_dot_product_fused_attention_overrideable", "aten::_scaled_dot_product_fused_attention_overrideable_backward"}


def _number(value: Any) -> str:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise Unfit
    return repr(float(value))


def _equal(shape: Any, other: Any) -> bool:
    return len(shape) == len(other) and all(statically_known_true(one == two) for one, two in zip(shape, other))


def _is_ours(node: torch.fx.Node) -> bool:
    """Whether this is a kernel of its own, not one of Inductor's."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    return node.target._schema.name in _eager.EXTERN | _ATTENTION or node.target.namespace == "greta"


def _is_stored(node: torch.fx.Node) -> bool:
    """Whether a node's result is in memory whatever is fused: others than Inductor's kernels make it or read it."""
    return node.op != "call_function" or _is_ours(node) or _leaves_kernels(node) or (node.target in _VIEWS and _is_stored(node.args[0]))


def _leaves_kernels(node: torch.fx.Node) -> bool:
    return any(user.op == "output" or _is_ours(user) or (user.target in _VIEWS and _leaves_kernels(user)) for user in node.users)


class _Region:
    """A product or a convolution with the pointwise work that follows it, as far as it is found."""

    mayKeep = False  # whether others may read the sums

    def __init__(self, node: torch.fx.Node, order: dict[torch.fx.Node, int]):
        self.order = order
        self.words: dict[torch.fx.Node, str] = {node: "%0"}  # of nodes that the epilogue computes
        self.sizes: dict[torch.fx.Node, Any] = {node: None}  # of members, the last reshape's
        self.kinds: list[str] = []
        self.operands: list[torch.fx.Node] = []
        self.steps: list[tuple[str, ...]] = []
        self.axis = -3 if node.target == aten.convolution.default else -1
        self.node = node
        self.width = node.meta["val"].shape[self.axis]
        self.best: tuple[torch.fx.Node, int, int] | None = None
        if not statically_known_true(self.width > 1):  # rows of one number would be those of any
            raise Unfit
        self.words[node] = self._begin()

    def _begin(self) -> str:
        """Adds a bias or addmm's matrix to the sums."""
        args = {argument.name: value for argument, value in zip(self.node.target._schema.arguments, self.node.args)} | self.node.kwargs
        if self.node.target == aten.convolution.default:
            self.factors = [args["input"], args["weight"]]
            return "%0" if args["bias"] is None else self._write("add", "%0", self._row(args["bias"]))
        if self.node.target in (aten.mm.default, aten.bmm.default):
            self.factors = [args["self"], args["mat2"]]
            return "%0"
        self.factors = [args[name] for name in (("mat1", "mat2") if self.node.target == aten.addmm.default else ("batch1", "batch2"))]
        alpha, beta = args.get("alpha", 1), args.get("beta", 1)
        sums = "%0" if alpha == 1 else self._write("mul", "%0", _number(alpha))
        if beta == 0:
            return sums
        added = self._word(args["self"], self.node.meta["val"].shape)
        return self._write("add", sums, added if beta == 1 else self._write("mul", added, _number(beta)))

    def _write(self, op: str, *words: str) -> str:
        if len(self.steps) >= MOST_STEPS:
            raise Unfit
        self.steps.append((op, *words))
        return f"%{len(self.steps)}"

    def _operand(self, node: torch.fx.Node, kind: str) -> str:
        value = node.meta["val"]
        if value.dtype not in NAMES or value.device.type != NAME or len(self.operands) >= MOST_OPERANDS:
            raise Unfit
        if kind == "matrix" and not self._lies_well(value):
            raise Unfit
        self.kinds.append(kind)
        self.operands.append(node)
        return f"${len(self.operands) - 1}"

    def _lies_well(self, value: torch.Tensor) -> bool:
        return value.is_contiguous(memory_format=torch.channels_last if self.axis == -3 else torch.contiguous_format)

    def _is_row(self, shape: Any) -> bool:
        expected = [1] * (len(shape) + self.axis) + [self.width] + [1] * (-self.axis - 1)
        return len(shape) >= -self.axis and _equal(shape, expected)

    def _row(self, node: Any) -> str:
        """A vector of the result's columns or channels, or a number: an operand, or computed of such."""
        if not isinstance(node, torch.fx.Node):
            return _number(node)
        if node not in self.words:
            value = node.meta.get("val")
            if not isinstance(value, torch.Tensor) or not statically_known_true(value.numel() == self.width):
                raise Unfit
            if node.target in (aten.unsqueeze.default, aten.view.default, aten.reshape.default, aten.squeeze.dim):
                self.words[node] = self._row(node.args[0])
            elif node.target in TAKEN and not _is_stored(node):
                self.words[node] = self._taken(node, self._row)
            else:
                self.words[node] = self._operand(node, "row")
        return self.words[node]

    def _word(self, node: Any, shape: Any) -> str:
        """An operand of pointwise work whose result has a shape."""
        if not isinstance(node, torch.fx.Node):
            return _number(node)
        if node in self.words:
            return self.words[node]
        if node.target == aten.full.default and node.args[0] == []:
            return _number(node.args[1])
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise Unfit
        if self._is_row(value.shape):
            return self._row(node)
        if not _equal(value.shape, shape):
            raise Unfit
        if _is_stored(node):
            self.words[node] = self._operand(node, "matrix")
        elif node.target in TAKEN:
            self.words[node] = self._taken(node, lambda one: self._word(one, shape))
        elif node.target in _RESHAPES and self._keeps_rows(node):
            self.words[node] = self._word(node.args[0], node.args[0].meta["val"].shape)
        else:
            raise Unfit
        return self.words[node]

    def _taken(self, node: torch.fx.Node, word: Callable[[Any], str]) -> str:
        """The steps of an operator of the table; `word` gives those of its arguments."""

        def check(value: torch.fx.Node, isTruth: bool) -> None:
            if value.target not in _TRUTHS if isTruth else getattr(value.meta.get("val"), "dtype", None) not in NAMES:  # sizes have no type
                raise Unfit

        if node.target not in _TRUTHS:
            check(node, False)
        for place, one in enumerate(node.args):
            if isinstance(one, torch.fx.Node):
                check(one, node.target == aten.where.self and place == 0)
        if node.target == prims.convert_element_type.default:
            return word(node.args[0])
        return TAKEN[node.target](self._write, *(None if one is None else word(one) for one in node.args), **node.kwargs)

    def _keeps_rows(self, node: torch.fx.Node) -> bool:
        """Whether a reshape leaves rows (and for batches the matrices) as they are."""
        before, after = node.args[0].meta["val"].shape, node.meta["val"].shape
        kept = self.node.meta["val"].dim() - 1
        return self.axis == -1 and min(len(before), len(after)) >= kept and _equal(before[-kept:], after[-kept:])

    def _add(self, node: torch.fx.Node) -> None:
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor):
            raise Unfit
        members = [one for one in node.all_input_nodes if one in self.sizes]
        shape = members[0].meta["val"].shape
        sizes = self.sizes[members[0]]
        if node.target in _RESHAPES and self._keeps_rows(node):
            word, sizes = self.words[members[0]], node.args[1]
        elif node.target in TAKEN and _equal(value.shape, shape) and all(_equal(one.meta["val"].shape, shape) for one in members):
            word = self._taken(node, lambda one: self._word(one, shape))
        else:
            raise Unfit
        self.words[node], self.sizes[node] = word, sizes

    def grow(self) -> None:
        queue = [(self.order[user], user) for user in self.node.users]
        heapq.heapify(queue)
        while queue:
            _, node = heapq.heappop(queue)
            if node in self.sizes:
                continue
            try:
                self._add(node)
            except Unfit:
                if self.mayKeep and all(one is self.node for one in node.all_input_nodes if one in self.sizes):
                    continue
                return
            for user in node.users:
                heapq.heappush(queue, (self.order[user], user))
            isWhole = self.words[node] == f"%{len(self.steps)}" and all(user in self.sizes or self._may_read(user, one, node) for one in self.sizes if one is not node for user in one.users)
            if isWhole and node.target not in _VIEWS and node.meta["val"].dtype in NAMES and self._ends_well(node) and _leaves_kernels(node):
                self.best = node, len(self.steps), len(self.operands)

    def _may_read(self, user: torch.fx.Node, one: torch.fx.Node, last: torch.fx.Node) -> bool:
        """Whether a node that is no member may read a member where `last` is the last one: attention's result, behind it."""
        return self.mayKeep and one is self.node and self.order[user] > self.order[last]

    def _ends_well(self, node: torch.fx.Node) -> bool:
        return self._lies_well(node.meta["val"])

    def replace(self, graph: torch.fx.Graph) -> None:
        """Puts one node in the place of the region, as far as its best end."""
        assert self.best is not None
        last, steps, operands = self.best
        epilogue = _epilogues.Epilogue(tuple(self.kinds[:operands]), (), tuple(self.steps[:steps]))

        def made(op: Any, *args: Any) -> torch.fx.Node:
            node = graph.call_function(op, args)
            with last.meta["val"].fake_mode:
                node.meta["val"] = op(*torch.fx.node.map_arg(args, lambda one: one.meta["val"]))
            self.order[node] = self.order[last]
            return node

        with graph.inserting_before(last):
            last.replace_all_uses_with(self._made(made, last, self.operands[:operands], str(epilogue)))
        for one in sorted(self.words, key=self.order.__getitem__, reverse=True):
            if one.op == "call_function" and not one.users:
                graph.erase_node(one)

    def _made(self, made: Callable[..., torch.fx.Node], last: torch.fx.Node, operands: list[torch.fx.Node], epilogue: str) -> torch.fx.Node:
        """The node that stands for the last one."""
        args: list[Any] = [*self.factors, operands, epilogue]
        op = torch.ops.greta.product.default
        if self.axis == -3:
            args += self.node.args[3:6]
            op = torch.ops.greta.convolution.default
        node = made(op, *args, last.meta["val"].dtype)
        return node if self.sizes[last] is None else made(aten.reshape.default, node, self.sizes[last])


class _AttentionRegion(_Region):
    """Attention with the pointwise work on its result. Members are in an order, tokens first or heads first, in which their elements follow each other however their dims are joined."""

    mayKeep = True

    def __init__(self, attention: torch.fx.Node, order: dict[torch.fx.Node, int]):
        given = {argument.name: value for argument, value in zip(attention.target._schema.arguments, attention.args)} | attention.kwargs
        query, value = given["query"].meta["val"], given["value"].meta["val"]
        self.attention, self.results = attention, {user.args[1]: user for user in attention.users if user.target is operator.getitem}
        isPlain = query.dim() == 4 and not given.get("dropout_p") and not given.get("return_debug_mask") and query.dtype in NAMES and query.device.type == NAME
        isKnown = all(isinstance(one, int) for one in (query.shape[1], query.shape[3], value.shape[3]))
        isTaken = isPlain and isKnown and query.shape[3] == value.shape[3] and query.shape[3] % 8 == 0
        # Gradients want the numbers 1, 6 and 7; there are none of the others.
        if not isTaken or len(self.results) != len(attention.users) or not {0} <= set(self.results) <= {0, 1, 6, 7}:
            raise Unfit
        self.given = given
        self.extents = tuple(query.shape[dim] for dim in _attention_epilogues.ORDER)  # [B, S, H, D]
        self.isByTokens = False  # the order in which operands are looked at
        self.isOfNumbers = False  # whether those are numbers for each row, of any shape
        self.numbers: set[torch.fx.Node] = set()
        super().__init__(self.results[0], order)
        self.orders = {self.results[0]: False}

    def _begin(self) -> str:
        return "%0"

    def _plain(self, byTokens: bool) -> tuple[Any, ...]:
        return self.extents if byTokens else tuple(self.extents[dim] for dim in _attention_epilogues.ORDER)

    def _keeps_rows(self, node: torch.fx.Node) -> bool:
        return True  # elements follow each other as before

    def _turns(self, node: torch.fx.Node) -> bool:
        return node.target == aten.permute.default and list(node.args[1]) == [0, 2, 1, 3]

    def _lies_well(self, value: torch.Tensor) -> bool:
        """Whether a package reads an operand where it lies."""
        if value.is_contiguous():
            return True
        shape, strides = self._plain(self.isByTokens), value.stride()
        if _equal(value.shape, (*shape[:2], shape[2] * shape[3])):
            strides = (*strides[:2], shape[3] * strides[2], strides[2])
        elif not _equal(value.shape, shape):
            return False
        if not self.isByTokens:
            strides = [strides[dim] for dim in _attention_epilogues.ORDER]
        return _attention_epilogues.lying_of(self.extents, strides, statically_known_true) is not None

    def _is_row(self, shape: Any) -> bool:
        return not self.isOfNumbers and super()._is_row(shape)

    def _row(self, node: Any) -> str:
        if not isinstance(node, torch.fx.Node):
            return super()._row(node)
        if self.orders.get(node, self.isByTokens) != self.isByTokens or node in self.numbers:
            raise Unfit
        word = super()._row(node)
        self.orders[node] = self.isByTokens
        return word

    def _operand(self, node: torch.fx.Node, kind: str) -> str:
        order = "tokens" if self.isByTokens else "heads"
        heads, depth = self.extents[2:]
        if kind == "row":
            if self.width != depth and not (self.isByTokens and self.width == heads * depth):
                raise Unfit
            word = super()._operand(node, kind)
            self.kinds[-1] = "row" if self.width == depth else "rows"
            return word
        if self.isOfNumbers and not node.meta["val"].is_contiguous():
            raise Unfit
        word = super()._operand(node, kind)
        self.kinds[-1] = f"numbers_by_{order}" if self.isOfNumbers else f"by_{order}"
        return word

    def _word(self, node: Any, shape: Any) -> str:
        if not isinstance(node, torch.fx.Node) or node in self.sizes:
            return super()._word(node, shape)
        if self.orders.get(node, self.isByTokens) != self.isByTokens:
            raise Unfit
        value = node.meta.get("val")
        if not self.isOfNumbers and isinstance(value, torch.Tensor) and _equal(shape, self._plain(self.isByTokens)) and _equal(value.shape, (*shape[:-1], 1)):
            self.isOfNumbers = True
            try:
                return self._word(node, value.shape)
            finally:
                self.isOfNumbers = False
        if node in self.words and (node in self.numbers) != self.isOfNumbers:
            raise Unfit
        if node not in self.words and isinstance(value, torch.Tensor) and _equal(value.shape, shape) and not _is_stored(node):
            if node.target == aten.clone.default:
                self.words[node] = self._word(node.args[0], shape)
            elif self._turns(node) and _equal(shape, self._plain(self.isByTokens)):
                self.isByTokens = not self.isByTokens
                try:
                    self.words[node] = self._word(node.args[0], node.args[0].meta["val"].shape)
                finally:
                    self.isByTokens = not self.isByTokens
        word = super()._word(node, shape)
        self.orders[node] = self.isByTokens
        if self.isOfNumbers:
            self.numbers.add(node)
        return word

    def _add(self, node: torch.fx.Node) -> None:
        members = [one for one in node.all_input_nodes if one in self.sizes]
        order = self.orders[members[0]]
        if any(self.orders[one] != order for one in members):
            raise Unfit
        self.isByTokens = order
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor):
            raise Unfit
        if self._turns(node) and _equal(members[0].meta["val"].shape, self._plain(order)):
            self.words[node], self.sizes[node], self.orders[node] = self.words[members[0]], None, not order
            return
        if node.target == aten.clone.default:
            self.words[node], self.sizes[node] = self.words[members[0]], self.sizes[members[0]]
        else:
            self.width = members[0].meta["val"].shape[-1]
            if node.target in TAKEN and not isinstance(self.width, int):
                raise Unfit
            super()._add(node)
        self.orders[node] = order

    def _last_order(self, node: torch.fx.Node) -> bool | None:
        """The order in which a result lies; none: in neither."""
        value, order = node.meta["val"], self.orders[node]
        if value.is_contiguous():
            return order
        return not order if _equal(value.shape, self._plain(order)) and value.permute(_attention_epilogues.ORDER).is_contiguous() else None

    def _keeps(self, last: torch.fx.Node) -> bool:
        return any(self.order[user] > self.order[last] for user in self.node.users) or len(self.results) > 1

    def _ends_well(self, node: torch.fx.Node) -> bool:
        order = self._last_order(node)
        if order is None:
            return False
        # The result of attention lies as it would without.
        own = self.node.meta["val"]
        isAlike = (own.permute(_attention_epilogues.ORDER) if order else own).is_contiguous()
        keeps = self._keeps(node)
        # Queries, keys, values, a mask; the result, the logarithms of the sums, and attention's own.
        buffers = 5 + (self.given.get("attn_bias") is not None) + keeps + len(self.operands)
        isBehind = all(self.order[user] > self.order[node] for index, one in self.results.items() if index > 0 for user in one.users)
        return isBehind and (isAlike or not keeps) and buffers <= MOST_BUFFERS

    def replace(self, graph: torch.fx.Graph) -> None:
        super().replace(graph)
        for one in [*self.attention.users, self.attention]:
            if not one.users:
                graph.erase_node(one)

    def _made(self, made: Callable[..., torch.fx.Node], last: torch.fx.Node, operands: list[torch.fx.Node], epilogue: str) -> torch.fx.Node:
        order, keeps = self._last_order(last), self._keeps(last)
        given = [self.given.get(name) for name in ("query", "key", "value", "attn_bias")]
        numbers = bool(self.given.get("is_causal")), self.given.get("scale")
        node = made(torch.ops.greta.fused_attention.default, *given, operands, epilogue, *numbers, order, last.meta["val"].dtype, keeps)
        result = made(operator.getitem, node, 0)
        if keeps:
            for index, place in ((0, 1), (1, 2), (6, 3), (7, 4)):
                if index in self.results:
                    other = made(operator.getitem, node, place)
                    for user in list(self.results[index].users):
                        if user not in self.sizes or self.order[user] > self.order[last]:
                            user.replace_input_with(self.results[index], other)
        if order != self.orders[last]:
            return made(aten.permute.default, result, list(_attention_epilogues.ORDER))
        return result if self.sizes[last] is None else made(aten.reshape.default, result, self.sizes[last])


def _may_begin(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    if node.target == _SDPA:
        return True
    if not isinstance(value, torch.Tensor) or value.device.type != NAME or value.dtype not in NAMES:
        return False
    if node.target != aten.convolution.default:
        return node.args[-1].meta["val"].dtype == value.dtype
    x, weight, _, stride, _, dilation, isTransposed, _, groups = node.args
    x, weight = x.meta["val"], weight.meta["val"]
    isPlain = not isTransposed and groups == 1 and x.dim() == 4 and len(stride) == len(dilation) == 2 and x.dtype == weight.dtype
    isKnown = all(isinstance(size, int) for size in (*x.shape, *weight.shape))
    near = all(one.is_contiguous(memory_format=torch.channels_last) for one in (x, value))
    return isPlain and isKnown and near and _convolution_packages.has_package(x.shape[1], weight.shape[0], target_of(value.device.index or 0))


class Fusion(CustomGraphModulePass):
    def __call__(self, module: torch.fx.GraphModule) -> None:
        if config.emulate_precision_casts:  # then sums are to be rounded as they are without torch.compile
            return
        graph = module.graph
        order = {node: index for index, node in enumerate(graph.nodes)}
        hasChanged = False
        for node in list(graph.nodes):
            if node.target not in _BEGINNINGS or not node.users or not _may_begin(node):
                continue
            try:
                region = (_AttentionRegion if node.target == _SDPA else _Region)(node, order)
                region.grow()
            except Unfit:
                continue
            if region.best is not None:
                region.replace(graph)
                hasChanged = True
        if hasChanged:
            module.recompile()

    def uuid(self) -> Any:
        """Inductor's key of each graph has it, so a folder that the user names for its cache may be of several versions of this package."""
        return build_key()
