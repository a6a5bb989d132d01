"""Peer of the benchmark `typed`: PyTorch's products of batches and of groups.

`torch_peer.py` describes the line protocol. A question also has the extents m, n and k, the layout, the type, and either the number of
matrices of a batch, or the rows of each group. Elements are small integers, as in the benchmark.
"""
import torch_peer
from torch_peer import torch

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def matrices(count, rows, cols, by_column, dtype):
    shape = (cols, rows) if by_column else (rows, cols)
    all = torch.empty((count, *shape), dtype=dtype, device="cuda").random_(-127, 128)
    return all.transpose(-2, -1) if by_column else all


def product(question):
    m, n, k = (question[extent] for extent in "mnk")
    by_column_a, by_column_b = (letter == "t" for letter in question["layout"])
    dtype, rows = TYPES[question["type"]], question["rows"]
    count = len(rows) if rows else question["batch"]
    b = matrices(count, k, n, by_column_b, dtype)
    if not rows:
        a = matrices(count, m, k, by_column_a, dtype)
        return lambda: torch.bmm(a, b)
    a = matrices(1, m, k, by_column_a, dtype)[0]
    ends = torch.tensor(rows, device="cuda").cumsum(0).to(torch.int32)
    return lambda: torch._grouped_mm(a, b, offs=ends)


torch_peer.serve(product)
