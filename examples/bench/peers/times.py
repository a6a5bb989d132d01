#!/usr/bin/env python3
"""Writes the test data of the time model: measured times, and the load of each launch.

    cargo build --release --example predict
    examples/bench/peers/times.py target/release/examples/predict --ladder ladder.jsonl big.jsonl \\
        --space large:4096:large.jsonl small_sample:1024:sample.jsonl > times.csv
    examples/bench/peers/times.py target/release/examples/predict --again tests/data/profiler/times.csv \\
        --lines ladder.jsonl --space … > times.csv
    examples/bench/peers/times.py target/release/examples/predict --update tests/data/profiler/times.csv \\
        --ladder taken/ladder.jsonl > times.csv

The files are the output of `ladder --json` and `tune --json` on a GPU. From files of --lines, only the specs are read. With --again
the measured times and registers are kept, and the loads are predicted again. With --update only the measured programs get new lines.
A line of the output is a launch. The launches of one program are adjacent, and the time in each of these lines is the time of all
of them. The counts are the simulator's predictions for compiled kernels. The registers come from the machine code.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys

COUNTED = ["instructions", "fma", "mma", "mma_flops", "wgmma_flops", "shared_wavefronts", "shared_load_bytes", "lines",
           "sectors"]
WAITS = ["rounds", "ahead", "barriers", "code", "parts", "part_bytes", "tile_rows", "tile_cols", "strip_a", "strip_b", "raster",
         "once"]


def read(path):
    return [json.loads(line) for line in open(path)]


def stage(x):
    """Returns the name of a stage, and its spec as `predict` takes it."""
    return f'{x["index"]}_{x["stage"]}', ("reduce " if x["ladder"] == "reduce" else "") + x["spec"]


def compiled_registers(path):
    """Returns the registers of each stage's launches, from the profiler."""
    stages = {}
    for row in csv.DictReader(open(path)):
        launches = stages.setdefault((row["ladder"], row["stage"]), {})
        launches.setdefault(row["shape"], []).append(int(row["registers"]))
    return {name: next(iter(shapes.values())) for name, shapes in stages.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--ladder", nargs="*", default=[])
    parser.add_argument("--space", nargs="*", default=[])
    parser.add_argument("--again")
    parser.add_argument("--update")
    parser.add_argument("--lines", nargs="*", default=[])
    parser.add_argument("--device", default="NVIDIA H200, driver 580.159.04, clocks unlocked, 2026-11-24")
    args = parser.parse_args()
    wanted = []  # (set, name, line, n, time, registers of each launch)
    if args.again:
        lines = {(x["ladder"], stage(x)[0]): stage(x)[1] for path in args.lines for x in read(path)}
        with open(args.again) as pinned:
            next(pinned)
            for row in csv.DictReader(pinned):
                key = (row["set"], row["name"], int(row["n"]))
                if wanted and (wanted[-1][0], wanted[-1][1], wanted[-1][3]) == key:
                    wanted[-1][5].append(int(row["registers"]))
                    continue
                line = lines[key[:2]] if row["set"] in ("sgemm", "reduce") else row["name"]
                wanted.append((*key[:2], line, key[2], float(row["time_ms"]), [int(row["registers"])]))
    registers = compiled_registers(pathlib.Path(__file__).parents[3] / "tests/data/profiler/h200.csv")
    for path in args.ladder:
        for x in read(path):
            name, line = stage(x)
            of_stage = x.get("registers") or registers[x["ladder"], str(x["index"])]
            wanted.append((x["ladder"], name, line, x["n"], x["time_ms"], of_stage))
    for space in args.space:
        name, size, path = space.split(":", 2)
        for x in read(path):
            wanted.append((name, x["spec"], x["spec"], int(size), x["time_ms"], [x["registers"]]))
    unique = list(dict.fromkeys(f"{n} {line}" for _, _, line, n, *_ in wanted))
    text = subprocess.run([args.program], input="\n".join(unique), capture_output=True, text=True, check=True).stdout
    counted = dict(zip(unique, (json.loads(line)["launches"] for line in text.splitlines())))

    columns = ["set", "name", "n", "time_ms", "blocks", "threads", "registers", "shared_bytes", *COUNTED, *WAITS]
    lines = {}
    for group, name, line, n, time, registers in wanted:
        for nth, launch in enumerate(counted[f"{n} {line}"]):
            launch = launch | {"registers": registers[min(nth, len(registers) - 1)]}
            row = [launch[key] for key in columns[4:]]
            row = [group, name, n, f"{time:.6g}", *(f"{x:.7g}" for x in row)]
            if nth == 0:
                lines[group, name, str(n)] = []
            lines[group, name, str(n)].append(row)
    head = f"# {args.device}; written by examples/bench/peers/times.py"
    if args.update:
        with open(args.update) as pinned:
            head = next(pinned).rstrip("\n")
            kept = {}
            for row in list(csv.reader(pinned))[1:]:
                kept.setdefault(tuple(row[:3]), []).append(row)
        lines = kept | {key: rows for key, rows in lines.items() if key in kept}
    out = csv.writer(sys.stdout, lineterminator="\n")
    print(head)
    out.writerow(columns)
    for rows in lines.values():
        out.writerows(rows)


main()
