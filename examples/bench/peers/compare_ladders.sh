#!/usr/bin/env bash
# Compares the stages of two builds of the program `ladder`, such as before and after a change, on
# one GPU. The two builds run in turns, several times, on the same operands.
#
#   compare_ladders.sh OLD NEW [--rounds 5] [--sizes 512,1024,2048,4096,8192]
#                      [--lengths 2^20,2^28] [--device cuda] [--least 0.99] [--raw FILE]
#
# OLD and NEW are the binaries. A row is a stage at a size. It has the speed of both builds, in GFLOP/s
# for a GEMM and GB/s for a reduction, as medians over the rounds. It also has the median, minimum and
# maximum of new over old, and the median computed from the ratios to cuBLAS, which clock drift does
# not affect. On the simulator, which has no times, a row compares the counters.
#
# --sizes "" or --lengths "" leaves a ladder out. --raw writes all JSON lines to FILE, each after its
# round and side (old, new). The exit code is 1 if a stage is slower than --least, has other counters,
# is wrong, or is missing in NEW. It is 2 if a ladder could not run.
set -euo pipefail

usage() { sed -n 's/^# \{0,1\}//; 2,/^set/p' "$0" | sed '/^set/d' >&2; exit 2; }

rounds=5 sizes=512,1024,2048,4096,8192 lengths=2^20,2^28 device=cuda least=0.99 raw=
binaries=()
while [ $# -gt 0 ]; do
    case $1 in
        --rounds | --sizes | --lengths | --device | --least | --raw)
            [ $# -gt 1 ] || usage
            printf -v "${1#--}" %s "$2"
            shift 2 ;;
        -*) usage ;;
        *) binaries+=("$1"); shift ;;
    esac
done
[ ${#binaries[@]} -eq 2 ] || usage
old=${binaries[0]} new=${binaries[1]}
for binary in "$old" "$new"; do
    [ -x "$binary" ] || { echo "error: $binary is not a program" >&2; exit 2; }
done

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT

# Appends the JSON lines of one ladder, each after its round and side. A wrong result does not fail
# the run; its row reports it.
ladder() { # round side binary arguments...
    local round=$1 side=$2 binary=$3 code=0
    shift 3
    "$binary" "$@" --json --device "$device" --seed 7 2> "$lines.err" > "$lines.out" || code=$?
    if [ "$code" -gt 1 ]; then
        echo "error: $binary $*: exit code $code" >&2
        cat "$lines.err" >&2
        rm -f "$lines.err" "$lines.out"
        exit 2
    fi
    sed "s/^/$round $side /" "$lines.out" >> "$lines"
    rm -f "$lines.err" "$lines.out"
}

both() { # round arguments...
    local round=$1
    shift
    # The order alternates from round to round.
    if [ $((round % 2)) -eq 1 ]; then
        ladder "$round" old "$old" "$@"
        ladder "$round" new "$new" "$@"
    else
        ladder "$round" new "$new" "$@"
        ladder "$round" old "$old" "$@"
    fi
}

for ((round = 1; round <= rounds; ++round)); do
    for n in ${lengths//,/ }; do
        echo "round $round of $rounds: reduce $n" >&2
        both "$round" reduce --n "$n"
    done
    for n in ${sizes//,/ }; do
        echo "round $round of $rounds: sgemm $n" >&2
        both "$round" sgemm --size "$n"
    done
done
[ -z "$raw" ] || cp "$lines" "$raw"

awk -v least="$least" '
# Returns the value of a key, without quotes; empty for null and for a missing key.
function field(name,    at, text) {
    at = index($0, "\"" name "\":")
    if (!at) return ""
    text = substr($0, at + length(name) + 3)
    sub(/^"/, "", text)
    sub(/[",}].*/, "", text)
    return text == "null" ? "" : text
}
function counters(    at, text) {
    at = index($0, "\"counters\":{")
    if (!at) return ""
    text = substr($0, at)
    return substr(text, 1, index(text, "}"))
}
# Returns the median of values separated by spaces; sets `lowest` and `highest`.
function median(text,    n, i, j, held, v) {
    n = split(text, v, " ")
    for (i = 2; i <= n; ++i) {
        held = v[i] + 0
        for (j = i - 1; j >= 1 && v[j] + 0 > held; --j) v[j + 1] = v[j]
        v[j + 1] = held
    }
    lowest = v[1]; highest = v[n]
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
function fixed(x, digits) { return x == "" ? "-" : sprintf("%." digits "f", x) }
{
    ladder = field("ladder")
    size = field("n")
    if (ladder == "sgemm" && (field("m") != size || field("k") != size))
        size = field("m") "x" size "x" field("k")
    row = ladder " " field("index") " " field("stage") " " size
    if (!(row in known)) { known[row] = 1; rows[++count] = row }
    at = row SUBSEP $2
    seen[at] = 1
    if (field("ok") == "false") wrong[at] = 1
    counted[at] = counters()
    time = field("time_ms")
    if (time != "") {
        times[at, $1] = time
        blas[at, $1] = field("vs_cublas")
        speeds[at] = speeds[at] " " (field("gflops") != "" ? field("gflops") : field("gb_s"))
        if ($1 > last) last = $1
    }
}
END {
    printf "%-7s %2s %-22s %12s %10s %10s %8s %17s %10s\n",
        "ladder", "#", "stage", "size", "old", "new", "new/old", "least … most", "by cuBLAS"
    for (i = 1; i <= count; ++i) {
        row = rows[i]
        old = row SUBSEP "old"; new = row SUBSEP "new"
        split(row, part, " ")
        note = ""; ratios = ""; beside = ""
        for (round = 1; round <= last; ++round) {
            if (times[old, round] == "" || times[new, round] == "") continue
            ratios = ratios " " times[old, round] / times[new, round]
            if (blas[old, round] > 0 && blas[new, round] > 0)
                beside = beside " " blas[new, round] / blas[old, round]
        }
        ratio = range = by = ""
        if (ratios != "") {
            ratio = median(ratios)
            range = sprintf("%.3f … %.3f", lowest, highest)
            if (beside != "") by = median(beside)
            ++timed
            # Prefer the ratio of the ratios to cuBLAS, because cuBLAS runs at the same clocks.
            if ((by != "" ? by : ratio) < least) note = note " slower"
        } else if (counted[old] != "" && counted[new] != "") {
            ratio = counted[old] == counted[new] ? "same" : "other"
            ++simulated
            if (ratio == "other") note = note " other counters"
        }
        if (!(new in seen)) note = note " missing in new"
        if (!(old in seen)) range = "only in new"
        if (new in wrong) note = note " wrong"
        if (note != "") ++bad
        printf "%-7s %2s %-22s %12s %10s %10s %8s %17s %10s%s\n", part[1], part[2], part[3], part[4],
            speeds[old] == "" ? "-" : fixed(median(speeds[old]), 1),
            speeds[new] == "" ? "-" : fixed(median(speeds[new]), 1),
            ratio ~ /^[0-9]/ ? fixed(ratio, 3) : (ratio == "" ? "-" : ratio),
            range, fixed(by, 3), note == "" ? "" : "  <--" note
    }
    printf "\n%d stages timed, %d compared by their counters, %d to look at\n",
        timed + 0, simulated + 0, bad + 0
    exit bad > 0
}' "$lines"
