"""Peer of the benchmark `elementwise`: PyTorch.

`torch_peer.py` describes the line protocol. A question also has the kernel, and the rows and columns of the matrices. Expressions of
several operations are compiled by torch.compile.
"""
import torch_peer
from torch_peer import torch


def norm(x, mean, rstd, gamma):
    return ((x - mean) * rstd * gamma).to(x.dtype)


def swish_backward(x, dy):
    s = torch.sigmoid(x)
    return x * s, dy * (s + x * s * (1 - s))


def rms_norm(x, residual, gamma):
    h = x + residual
    return torch.nn.functional.rms_norm(h, h.shape[-1:], gamma, 1e-6), h


compiled = {}


def fused(function):
    if function not in compiled:
        compiled[function] = torch.compile(function)
    return compiled[function]


def kernel(question):
    name, is_half = question["kernel"], question["kernel"].endswith("_bf16")
    name = name.removesuffix("_bf16")
    dtype = torch.bfloat16 if is_half else torch.float32
    m, n = question["m"], question["n"]
    new = lambda *shape, dtype=dtype: torch.empty(shape, dtype=dtype, device="cuda").uniform_(-4, 4)
    x, y, out = new(m, n), new(m, n), new(m, n)
    if name == "add":
        return lambda: torch.add(x, y, out=out)
    if name == "add_in_place":
        return lambda: x.add_(y)
    if name == "gelu":
        return lambda: torch.nn.functional.gelu(x)
    if name == "norm":
        mean, rstd, gamma = new(m, 1, dtype=torch.float32), new(m, 1, dtype=torch.float32), new(n)
        return lambda: fused(norm)(x, mean, rstd, gamma)
    if name == "swish_backward":
        return lambda: fused(swish_backward)(x, y)
    if name == "softmax":
        return lambda: torch.softmax(x, -1)
    if name == "log_softmax":
        return lambda: torch.log_softmax(x, -1)
    if name == "layer_norm":
        gamma, beta = new(n), new(n)
        return lambda: torch.nn.functional.layer_norm(x, (n,), gamma, beta)
    if name == "rms_norm":
        gamma = new(n)
        return lambda: fused(rms_norm)(x, y, gamma)
    if name == "cross_entropy":
        target = torch.ones(m, dtype=torch.int64, device="cuda")
        return lambda: torch.nn.functional.cross_entropy(x, target, reduction="none")
    raise ValueError("no kernel `%s`" % name)


torch_peer.serve(kernel)
