"""PyTorch as the peer of a benchmark: line protocol, and times of CUDA graphs.

Each line of the standard input is a JSON object, a question: what the peer shall compute, the number of launches in a graph, and the number
of replays of the graph. The answer is one line: {"us": time of a launch}, the median over the replays, or {"error": reason}.
The first line of output names the peer, or its missing dependency.
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


def time(work, launches, replays):
    """Returns the time of a call of `work` in microseconds."""
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


def serve(work_of, forget=lambda: None):
    """Answers questions. `work_of` returns the function to time. After an error, `forget` drops the arrays that are kept."""
    say({"name": "PyTorch " + torch.__version__})
    for line in sys.stdin:
        try:
            question = json.loads(line)
            say({"us": time(work_of(question), question["launches"], question["replays"])})
        except Exception as error:
            forget()
            torch.cuda.empty_cache()
            say({"error": (str(error).strip().splitlines() or [type(error).__name__])[0]})
