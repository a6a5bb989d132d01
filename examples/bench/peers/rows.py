"""Peer of the reduction benchmark `rows`: PyTorch.

`torch_peer.py` describes the line protocol. A question also has the shape of an array, the axis (null for the whole array), the operation
and the type.
"""
import torch_peer
from torch_peer import torch

TYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i8": torch.int8,
    "i32": torch.int32,
}
# Types of the accumulators, the same as in our kernels.
SUMMED_IN = {"f16": torch.float32, "bf16": torch.float32, "i8": torch.int32, "i32": torch.int32}


def random(shape, name):
    dtype = TYPES[name]
    if dtype.is_floating_point:
        return torch.empty(shape, dtype=dtype, device="cuda").uniform_(-1, 1)
    ends = torch.iinfo(dtype)
    return torch.empty(shape, dtype=dtype, device="cuda").random_(ends.min, ends.max)


# Arrays of the previous request. Consecutive requests usually use the same arrays.
kept = {}


def arrays(shape, name, count):
    key = (tuple(shape), name)
    if kept.get("key") != key:
        kept.clear()
        torch.cuda.empty_cache()
        kept["key"], kept["all"] = key, []
    while len(kept["all"]) < count:
        kept["all"].append(random(shape, name))
    return kept["all"]


def fold(question):
    op, axis, name = question["op"], question["axis"], question["type"]
    dim = () if axis is None else (axis,)
    count = 2 if op == "dot" else 1
    x, *rest = arrays(question["shape"], name, count)
    if op in ("sum", "compensated"):
        if axis is None:
            return lambda: x.sum(dtype=SUMMED_IN.get(name))
        return lambda: x.sum(axis, dtype=SUMMED_IN.get(name))
    if op == "max":
        return lambda: x.amax(dim)
    if op == "argmax":
        return lambda: x.argmax(axis)
    if op == "topk":
        return lambda: x.topk(64, 0 if axis is None else axis)
    if op == "norm":
        return lambda: torch.linalg.vector_norm(x, dim=axis)
    if op == "dot":
        y = rest[0]
        if axis is None:
            return lambda: torch.dot(x, y)
        return lambda: torch.linalg.vecdot(x, y, dim=axis)
    if op == "mean_var":
        return lambda: torch.var_mean(x, dim=axis, correction=0)
    if op == "logsumexp":
        return lambda: torch.logsumexp(x, dim=0 if axis is None else axis)
    raise ValueError("no operation `%s`" % op)


torch_peer.serve(fold, kept.clear)
