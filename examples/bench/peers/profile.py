#!/usr/bin/env python3
"""Tabulates the profiler's counters of each stage of the ladders.

    cargo build --release --example profile
    examples/bench/peers/profile.py target/release/examples/profile > tests/data/profiler/h200.csv

The script launches every stage once at each shape under ncu (Nsight Compute), and writes a line for each launch: stage, shape,
kernel, and the counters below. It does not lock the clocks. `--report FILE` reads an earlier report of ncu instead (--csv --page raw), with the
program's output in `--launches FILE`.
"""

import argparse
import csv
import gzip
import io
import json
import re
import subprocess
import sys

PRODUCTS = "512,500x516x508,509x517x523"
MATRICES = "1024x1024,1000x1004,1001x1003"

# Columns that count warp instructions, with the opcodes that each counts.
OPCODES = "sass__inst_executed_per_opcode"
COUNTED = {
    "ffma": ["FFMA"],
    "hmma": ["HMMA"],
    "hgmma": ["HGMMA"],
    "barriers": ["BAR"],
    "shuffles": ["SHFL"],
    "global_loads": ["LDG"],
    "global_stores": ["STG"],
    "shared_loads": ["LDS"],
    "matrix_loads": ["LDSM"],
    "shared_stores": ["STS"],
    "copies": ["LDGSTS"],
    "box_copies": ["UTMALDG"],
    "atomics": ["ATOMG", "REDG", "ATOMS"],
}

# Columns of the output, with the ncu metric of each.
METRICS = {
    "registers": "launch__registers_per_thread",
    "instructions": "smsp__inst_executed.sum",
    "thread_ffma": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_load_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_store_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
}


def number(text):
    """Parses a number as ncu prints it, with commas and followed by the instances of the metric."""
    return int(float(text.split(" ")[0].replace(",", "")))


def instances(text):
    """Returns the instances of a metric by name, parsed from `12 (FFMA: 8; LDS: 4)`."""
    inside = re.search(r"\((.*)\)", text)
    pairs = [part.rsplit(": ", 1) for part in inside[1].split("; ")] if inside else []
    return {name: int(count.replace(",", "")) for name, count in pairs}


def measured(program):
    """Runs the program. Returns its output and the report of ncu."""
    shapes = ["--device", "cuda", "--product", PRODUCTS, "--matrix", MATRICES]
    metrics = ",".join([*METRICS.values(), OPCODES])
    # The first run, without ncu, compiles the kernels.
    told = subprocess.run([program, *shapes], check=True, capture_output=True, text=True).stdout
    ncu = ["ncu", "--clock-control", "none", "--metrics", metrics, "--csv", "--page", "raw"]
    ncu += ["--print-metric-instances", "details", "--log-file", "/dev/stderr"]
    report = subprocess.run([*ncu, program, *shapes], check=True, capture_output=True, text=True).stderr
    return told, report


def rows(report):
    """Parses the rows of a report: a line of column names, a line of units, then the launches."""
    csv.field_size_limit(1 << 30)
    table = list(csv.reader(io.StringIO(report[report.index('"ID"') :])))
    return [dict(zip(table[0], row)) for row in table[2:]]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("program", nargs="?", help="binary of the example `profile`")
    options.add_argument("--report", help="report of ncu, .csv or .csv.gz")
    options.add_argument("--launches", help="output of the program `profile`")
    given = options.parse_args()
    if given.report and given.launches:
        opened = gzip.open if given.report.endswith(".gz") else open
        with opened(given.report, "rt") as file:
            report = file.read()
        with open(given.launches) as file:
            told = file.read()
    elif given.program:
        told, report = measured(given.program)
    else:
        options.error("give the program, or --report and --launches")

    launches = [json.loads(line) for line in told.splitlines()]
    found = rows(report)
    if [launch["kernel"] for launch in launches] != [row["Kernel Name"] for row in found]:
        sys.exit("the kernels in the report of ncu are not those that the program launched")
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["ladder", "stage", "shape", "kernel", *METRICS, *COUNTED])
    for launch, row in zip(launches, found):
        opcodes = instances(row[OPCODES])
        counted = [sum(opcodes.get(name, 0) for name in names) for names in COUNTED.values()]
        metrics = [number(row[name]) for name in METRICS.values()]
        which = [launch["ladder"], launch["index"], launch["shape"], launch["kernel"]]
        out.writerow([*which, *metrics, *counted])


main()
