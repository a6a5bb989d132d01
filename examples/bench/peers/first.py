#!/usr/bin/env python3
"""Times the first specs of the time model's ranking on a GPU, together with the best specs of a search.

    examples/bench/peers/first.py target/release/examples/tune > tests/data/profiler/first.csv

The table has twenty specs for each space of `tune`, all timed in one run. Ten are the first of a ranking without a GPU. The limit on
the classes of specs makes the ranking the same on every machine. The other ten are the fastest of a search on the GPU, which did not
use the ranking. The column `place` holds a spec's place in the ranking.
"""

import argparse
import csv
import datetime
import json
import subprocess
import sys

# Space, size of its GEMMs, number of ranked classes.
SPACES = [("large", 4096, 300), ("small", 1024, 400)]
FIRST = 10


def tune(program, *options):
    command = [program, "--json", "--finalists", *map(str, options)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=60, help="time limit of a search in seconds")
    parser.add_argument("--seed", type=int, default=6)
    args = parser.parse_args()
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "-i", "0"],
                         stdout=subprocess.PIPE, text=True, check=True).stdout.strip().replace(", ", ", driver ")
    date = datetime.date.today()
    print(f"# {gpu}, clocks unlocked, {date}; written by examples/bench/peers/first.py with --seed {args.seed} --seconds {args.seconds}")
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["preset", "n", "classes", "seed", "place", "spec", "time_ms"])
    for preset, n, classes in SPACES:
        of = ["--preset", preset, "--size", n, "--seed", args.seed]
        ranked = tune(args.program, FIRST, *of, "--for", "h200", "--device", "simulator", "--classes", classes)
        places = {row["spec"]: row["rank"] for row in ranked}
        searched = tune(args.program, FIRST, *of, "--seconds", args.seconds)
        lines = list(places) + [row["spec"] for row in searched if row["spec"] not in places]
        spaces = [option for line in lines for option in ("--space", line)]
        timed = tune(args.program, len(lines), "--size", n, "--seed", args.seed, *spaces)
        if len(timed) != len(lines):
            raise SystemExit(f"{preset}: {len(timed)} of {len(lines)} specs were timed")
        for row in sorted(timed, key=lambda row: row["time_ms"]):
            out.writerow([preset, n, classes, args.seed, places.get(row["spec"], ""), row["spec"], f"{row['time_ms']:.6g}"])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
