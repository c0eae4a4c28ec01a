"""The cells of LSTM and GRU, which torch's devices have as operators of their own, of operators that are compiled."""

from __future__ import annotations

from typing import Any

import torch

from ._operators import implements

aten = torch.ops.aten


def _with_bias(gates: torch.Tensor, bias: Any) -> torch.Tensor:
    return gates if bias is None else gates + bias


@implements(aten._thnn_fused_lstm_cell.default)
def _lstm(inputs: torch.Tensor, hidden: torch.Tensor, cx: torch.Tensor, inputBias: Any = None, hiddenBias: Any = None) -> Any:
    i, f, g, o = (_with_bias(inputs, inputBias) + _with_bias(hidden, hiddenBias)).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat((i, f, g, o), 1)


@implements(aten._thnn_fused_lstm_cell_backward_impl.default)
def _lstm_backward(gradHy: Any, gradCy: Any, cx: torch.Tensor, cy: torch.Tensor, workspace: torch.Tensor, hasBias: bool) -> Any:
    i, f, g, o = workspace.chunk(4, 1)
    bent = cy.tanh()
    gradHy = torch.zeros_like(cx) if gradHy is None else gradHy
    grad = gradHy * o * (1 - bent * bent)
    if gradCy is not None:
        grad = grad + gradCy
    gates = torch.cat((grad * g * i * (1 - i), grad * cx * f * (1 - f), grad * i * (1 - g * g), gradHy * bent * o * (1 - o)), 1)
    return gates, grad * f, gates.sum(0) if hasBias else None


@implements(aten._thnn_fused_gru_cell.default)
def _gru(inputs: torch.Tensor, hidden: torch.Tensor, hx: torch.Tensor, inputBias: Any = None, hiddenBias: Any = None) -> Any:
    ir, iz, new = _with_bias(inputs, inputBias).chunk(3, 1)
    hr, hz, hn = _with_bias(hidden, hiddenBias).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (new + r * hn).tanh()
    return n + z * (hx - n), torch.cat((r, z, n, hx, hn), 1)


@implements(aten._thnn_fused_gru_cell_backward.default)
def _gru_backward(grad: torch.Tensor, workspace: torch.Tensor, hasBias: bool) -> Any:
    r, z, n, hx, hn = workspace.chunk(5, 1)
    gradN = grad * (1 - z) * (1 - n * n)
    gradZ = grad * (hx - n) * z * (1 - z)
    gradR = gradN * hn * r * (1 - r)
    inputs, hidden = torch.cat((gradR, gradZ, gradN), 1), torch.cat((gradR, gradZ, gradN * r), 1)
    return inputs, hidden, grad * z, inputs.sum(0) if hasBias else None, hidden.sum(0) if hasBias else None
