#!/usr/bin/env python3
"""What the model of time is held against: measured times, and what each launch asks for.

    cargo build --release --example predict
    examples/peers/times.py target/release/examples/predict --ladder ladder.jsonl big.jsonl \\
        --space large:4096:large.jsonl small:1024:small.jsonl > tests/profiler/times.csv

The files are what `ladder --json` and `tune --json` have written. A line is a launch: launches of one program follow one another
and have one time, that of all of them. Counts are those of the simulator. Of the stages, instructions and wavefronts of shared
memory are scaled by what the profiler counts at 512 (tests/profiler/h200.csv) over what the simulator does: machine code merges
loads and drops instructions. Registers are those of the machine code.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys

COUNTED = ["instructions", "fma", "mma", "mma_flops", "wgmma_flops", "shared_wavefronts", "shared_load_bytes", "lines",
           "sectors"]
WAITS = ["rounds", "ahead", "barriers", "tile_rows", "tile_cols", "strip_a", "strip_b", "raster", "once"]


def read(path):
    return [json.loads(line) for line in open(path)]


def profiled(path):
    """The launches of each stage, at the shape that was profiled first."""
    shapes = {"sgemm": "512x512x512", "reduce": "1024x1024"}
    stages = {}
    for row in csv.DictReader(open(path)):
        if row["shape"] == shapes[row["ladder"]]:
            stages.setdefault((row["ladder"], int(row["stage"])), []).append(row)
    return stages


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--ladder", nargs="*", default=[])
    parser.add_argument("--space", nargs="*", default=[])
    parser.add_argument("--device", default="NVIDIA H200, driver 580.159.04, clocks unlocked, 2026-11-23")
    args = parser.parse_args()
    wanted = []  # (set, name, line, n, time, stage, registers)
    for path in args.ladder:
        for x in read(path):
            line = ("reduce " if x["ladder"] == "reduce" else "") + x["spec"]
            stage = (x["ladder"], x["index"])
            wanted.append((x["ladder"], f'{x["index"]}_{x["stage"]}', line, x["n"], x["time_ms"], stage, None))
    for space in args.space:
        name, size, path = space.split(":", 2)
        for x in read(path):
            wanted.append((name, x["spec"], x["spec"], int(size), x["time_ms"], None, x["registers"]))
    profile = profiled(pathlib.Path(__file__).parents[2] / "tests/profiler/h200.csv")
    asked = [f"{n} {line}" for _, _, line, n, *_ in wanted]
    asked += [f"512 {line}" for ladder, _, line, _, _, stage, _ in wanted if stage and ladder == "sgemm"]
    unique = list(dict.fromkeys(asked))
    text = subprocess.run([args.program], input="\n".join(unique), capture_output=True, text=True, check=True).stdout
    counted = dict(zip(unique, (json.loads(line)["launches"] for line in text.splitlines())))

    out = csv.writer(sys.stdout, lineterminator="\n")
    print(f"# {args.device}; written by examples/peers/times.py")
    out.writerow(["set", "name", "n", "time_ms", "blocks", "threads", "registers", "shared_bytes", *COUNTED, *WAITS])
    for ladder, name, line, n, time, stage, registers in wanted:
        for nth, launch in enumerate(counted[f"{n} {line}"]):
            launch = dict(launch)
            found = profile.get(stage, [])
            found = found[min(nth, len(found) - 1)] if found else None
            if found and ladder == "sgemm":
                base = counted[f"512 {line}"][nth]
                counts = {"instructions": int(found["instructions"])}
                # What asynchronous copies write is in neither column; the loads of such kernels are 16 bytes wide as they are.
                if found["copies"] == "0":
                    wavefronts = int(found["shared_load_wavefronts"]) + int(found["shared_store_wavefronts"])
                    counts["shared_wavefronts"] = wavefronts
                for key, count in counts.items():
                    launch[key] *= count / base[key] if base[key] else 1
            launch["registers"] = registers or int(found["registers"])
            row = [launch[key] for key in ["blocks", "threads", "registers", "shared_bytes", *COUNTED, *WAITS]]
            out.writerow([ladder, name, n, f"{time:.6g}", *(f"{x:.7g}" for x in row)])


main()
