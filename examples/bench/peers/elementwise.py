"""Peer of the benchmark `elementwise`: PyTorch, with a line protocol.

Each line of the standard input is a JSON object: the kernel, the rows and columns of the matrices, the number of launches in a graph, and
the number of replays of the graph. The answer is one line: {"us": time of a launch}, the median over the replays, or {"error": reason}.
The first line of output names the peer, or its missing dependency. Expressions of several operations are compiled by torch.compile.
"""
import json
import sys


def say(answer):
    print(json.dumps(answer), flush=True)


try:
    import torch
except ImportError as error:
    say({"missing": str(error)})
    sys.exit(0)
if not torch.cuda.is_available():
    say({"missing": "PyTorch finds no GPU"})
    sys.exit(0)


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


def time(question):
    work = kernel(question)
    launches, replays = question["launches"], question["replays"]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            work()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    events = []
    for _ in range(replays):
        events.append([torch.cuda.Event(enable_timing=True) for _ in range(2)])
        events[-1][0].record()
        graph.replay()
        events[-1][1].record()
    torch.cuda.synchronize()
    times = sorted(start.elapsed_time(end) for start, end in events)
    del graph
    torch.cuda.empty_cache()
    return times[len(times) // 2] * 1e3 / launches


say({"name": "PyTorch " + torch.__version__})
for line in sys.stdin:
    try:
        say({"us": time(json.loads(line))})
    except Exception as error:
        torch.cuda.empty_cache()
        say({"error": (str(error).strip().splitlines() or [type(error).__name__])[0]})
