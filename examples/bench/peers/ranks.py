"""Peer of `scale`: PyTorch on several GPUs, one process per GPU. NCCL gathers A, then cuBLAS multiplies in f32.

    python3 examples/bench/peers/ranks.py --ranks 2 8192 16384 32768

A is distributed by rows, B and C by columns, as in `scale`. Each size is timed in three ways, in milliseconds: multiplication alone, with all of A on each rank;
gathering of A alone; both. In each round the slowest rank's time counts, and the result is the median over the rounds.
"""
import argparse
import json
import os

import torch
import torch.distributed as dist

# NVLink multicast can put the GPUs of a shared host out of service.
os.environ.setdefault("NCCL_NVLS_ENABLE", "0")


def timed(work):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    dist.barrier()
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def median(rank_times):
    """Returns the median over the rounds of the slowest rank's time."""
    slowest = torch.tensor(rank_times, device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.median().item()


def measure(n, ranks, rounds):
    own = torch.empty(n // ranks, n, device="cuda").uniform_(-1, 1)
    b = torch.empty(n, n // ranks, device="cuda").uniform_(-1, 1)
    whole = torch.empty(n, n, device="cuda").uniform_(-1, 1)
    c = torch.full((n, n // ranks), float("nan"), device="cuda")

    def gather():
        dist.all_gather_into_tensor(whole, own)

    def multiply():
        torch.matmul(whole, b, out=c)

    def both():
        gather()
        multiply()

    ways = {"alone_ms": multiply, "gather_ms": gather, "together_ms": both}
    times = {name: [] for name in ways}
    for round in range(rounds + 1):
        for name, work in ways.items():
            time = timed(work)
            if round > 0:
                times[name].append(time)
    return {name: median(all) for name, all in times.items()}


def of_rank(rank, options):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(options.port))
    torch.cuda.set_device(rank)
    torch.backends.cuda.matmul.allow_tf32 = False
    dist.init_process_group("nccl", rank=rank, world_size=options.ranks, device_id=torch.device("cuda", rank))
    for n in options.sizes:
        found = measure(n, options.ranks, options.rounds)
        if rank == 0:
            found["efficiency"] = found["alone_ms"] / found["together_ms"]
            print(json.dumps({"peer": f"PyTorch {torch.__version__}", "n": n, "ranks": options.ranks, **found}), flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="+", help="extents m = n = k; multiples of --ranks")
    parser.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--port", type=int, default=29511)
    options = parser.parse_args()
    if options.ranks < 1 or any(n % options.ranks for n in options.sizes):
        parser.error("each size must be a multiple of --ranks")
    torch.multiprocessing.spawn(of_rank, (options,), options.ranks)


if __name__ == "__main__":
    main()
