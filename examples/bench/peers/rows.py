"""Peer of the reduction benchmark `rows`: PyTorch, with a line protocol.

Each line of the standard input is a JSON object: the shape of an array, the axis (null for the whole array), the operation,
the type, the number of launches in a graph, and the number of replays of the graph. The answer is one line:
{"us": time of a launch}, the median over the replays, or {"error": reason}. The first line of output names the peer, or its missing dependency.
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


def time(question):
    work = fold(question)
    launches, replays = question["launches"], question["replays"]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    # Frees the memory cached for the stream; a graph allocates its own.
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
    middle = len(times) // 2
    median = times[middle] if len(times) % 2 else (times[middle - 1] + times[middle]) / 2
    del graph
    torch.cuda.empty_cache()
    return median * 1e3 / launches


say({"name": "PyTorch " + torch.__version__})
for line in sys.stdin:
    try:
        say({"us": time(json.loads(line))})
    except Exception as error:
        kept.clear()
        torch.cuda.empty_cache()
        say({"error": (str(error).strip().splitlines() or [type(error).__name__])[0]})
