#!/usr/bin/env bash
# Measures the cost of a macro's kernel for the crate that contains it: bytes of the binary, time of
# a debug build, and time until the first launch is done. For each CHECKOUT of the repository it
# creates crates that depend on the checkout's gemm-runtime as a user's crate would:
#
#   macro_cost.sh CHECKOUT... [--kernels 100] [--repeats 5] [--dir DIR]
#
# hundred   a library of N different kernels (--kernels); the library `one` has a single kernel. Two values
#           are measured for each: the time of `cargo check` in the dev profile after a change, which
#           compiles only the crate itself and runs a debug build of the macro; and the bytes of a
#           stripped release binary that keeps all kernels.
# first     a program that launches a reduction and a GEMM twice each and prints microseconds. The first
#           launch compiles the kernel or reads it from the disk cache; the second does neither. The
#           program runs twice: cold with an empty cache directory, then warm with a filled one.
#           Without a GPU both runs are on the simulator, which caches nothing.
#
# A figure is the median of the repeats. With --dir the crates and binaries stay in DIR/1, DIR/2, …;
# the binary `first` runs without its crate. A checkout needs its Cargo.lock; only the packages named there
# are downloaded.
set -euo pipefail

usage() { sed -n 's/^# \{0,1\}//; 2,/^set/p' "$0" | sed '/^set/d' >&2; exit 2; }

kernels=100 repeats=5 dir=
checkouts=()
while [ $# -gt 0 ]; do
    case $1 in
        --kernels | --repeats | --dir)
            [ $# -gt 1 ] || usage
            printf -v "${1#--}" %s "$2"
            shift 2 ;;
        -*) usage ;;
        *) checkouts+=("$(cd "$1" && pwd)") || usage; shift ;;
    esac
done
[ ${#checkouts[@]} -gt 0 ] || usage
if [ -z "$dir" ]; then
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir"

# Writes the n-th kernel: families, shapes and names vary, so that all kernels differ.
kernel() {
    local n=$1 pad=$((4 * ($1 / 4 % 8)))
    case $((n % 4)) in
        0) echo "ReduceKernel = reduce_kernel!(name: reduce_k$n, items: $((1 + n / 4)), shuffle)" ;;
        1) echo "SgemmKernel = sgemm_kernel!(name: sgemm_k$n, tile: 128x128x8, thread: 8x8, double_buffer, float4, transpose, pad_b: $pad)" ;;
        2) echo "SgemmKernel = sgemm_kernel!(name: sgemm_k$n, tile: 64x64x16, thread: 4x4, pad_b: $pad)" ;;
        3) echo "SgemmKernel = sgemm_kernel!(name: sgemm_k$n, tile: 128x128x16, thread: 8x8, warp: 64x32, float4, transpose, stages: 3, pad_b: $pad)" ;;
    esac
}

manifest() { # name, more
    cat <<TOML
[package]
name = "$1"
version = "0.0.0"
edition = "2024"
publish = false

[dependencies]
gemm-runtime = { path = "$checkout/runtime" }
TOML
}

library() { # name, number of kernels
    mkdir -p "$1/src/bin"
    manifest "$1" > "$1/Cargo.toml"
    {
        echo "#![allow(dead_code, unused_imports)]"
        echo "use gemm_runtime::{ReduceKernel, SgemmKernel, reduce_kernel, sgemm_kernel};"
        for ((n = 0; n < $2; ++n)); do
            echo "pub const K$n: $(kernel "$n");"
        done
        echo "/// Keeps every kernel, as a program that launches it would."
        echo "pub fn keep() {"
        for ((n = 0; n < $2; ++n)); do
            echo "    std::hint::black_box(&K$n);"
        done
        echo "}"
    } > "$1/src/lib.rs"
    # A launch links the launching code in, so that its size does not depend on the number of kernels.
    cat > "$1/src/bin/$1.rs" <<RUST
use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
const SUM: ReduceKernel = reduce_kernel!(block: 64);
fn main() {
    $1::keep();
    println!("{:?}", Device::auto().and_then(|device| SUM.run(&device, &[1.0; 10])));
}
RUST
}

program() {
    mkdir -p first/src
    manifest first > first/Cargo.toml
    cat > first/src/main.rs <<'RUST'
use gemm_runtime::{Device, ReduceKernel, SgemmKernel, reduce_kernel, sgemm_kernel};
use std::time::Instant;

const SUM: ReduceKernel = reduce_kernel!(items: 4, shuffle, float4);
const GEMM: SgemmKernel =
    sgemm_kernel!(tile: 128x128x8, thread: 8x8, double_buffer, float4, transpose);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::auto()?;
    let (a, b) = (vec![1.0; 64], vec![2.0; 64]);
    let mut times = Vec::new();
    let mut time = |launch: &mut dyn FnMut() -> Result<(), gemm_runtime::Error>| {
        let start = Instant::now();
        launch()?;
        times.push(start.elapsed().as_micros().to_string());
        Ok::<_, gemm_runtime::Error>(())
    };
    for _ in 0..2 {
        time(&mut || SUM.run(&device, &a).map(drop))?;
        time(&mut || GEMM.run(&device, &a, &b, (8, 8, 8)).map(drop))?;
    }
    println!("{} {}", times.join(" "), device.name());
    Ok(())
}
RUST
}

now() { date +%s%N; }
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# Prints the milliseconds of `cargo check` after a change of the library.
check_time() {
    local i start
    cargo check --quiet -p "$1" --lib
    for ((i = 0; i < repeats; ++i)); do
        echo "// change $i" >> "$1/src/lib.rs"
        start=$(now)
        cargo check --quiet -p "$1" --lib
        echo $((($(now) - start) / 1000000))
    done | median
}

# Runs the program with a cache directory for compiled kernels.
first_times() { # cache
    GEMM_CACHE_DIR=$1 target/release/first
}

printf '%-34s' what
number=0
declare -a names=(
    "check of $kernels kernels, debug, ms" "check of 1 kernel, debug, ms" "a kernel's share, ms"
    "binary of $kernels kernels, bytes" "binary of 1 kernel, bytes" "a kernel's share, bytes"
    "first launch, cold, reduction, µs" "first launch, cold, product, µs"
    "first launch, warm, reduction, µs" "first launch, warm, product, µs"
    "second launch, reduction, µs" "second launch, product, µs" "on"
)
declare -a table=()
for checkout in "${checkouts[@]}"; do
    number=$((number + 1))
    printf '%16s' "$number"
    mkdir -p "$dir/$number"
    pushd "$dir/$number" > /dev/null
    cat > Cargo.toml <<'TOML'
[workspace]
resolver = "3"
members = ["first", "hundred", "one"]

[profile.release]
strip = true
TOML
    cp "$checkout/Cargo.lock" .
    library hundred "$kernels"
    library one 1
    program
    export CARGO_TARGET_DIR=$PWD/target
    cargo build --quiet --release --bins >&2
    many=$(check_time hundred) single=$(check_time one)
    large=$(stat -c %s target/release/hundred) small=$(stat -c %s target/release/one)
    cold='' warm=''
    for ((i = 0; i < repeats; ++i)); do
        cache=$(mktemp -d)
        cold+="$(first_times "$cache")"$'\n'
        warm+="$(first_times "$cache")"$'\n'
        rm -rf "$cache"
    done
    column() { awk -v n="$1" 'NF { print $n }' <<< "$2" | median; }
    share() { awk -v a="$1" -v b="$2" -v n="$kernels" 'BEGIN { printf "%.1f", (a - b) / (n > 1 ? n - 1 : 1) }'; }
    values=(
        "$many" "$single" "$(share "$many" "$single")" "$large" "$small" "$(share "$large" "$small")"
        "$(column 1 "$cold")" "$(column 2 "$cold")" "$(column 1 "$warm")" "$(column 2 "$warm")"
        "$(column 3 "$warm")" "$(column 4 "$warm")"
        "$(awk 'NF { $1 = $2 = $3 = $4 = ""; sub(/^ +/, ""); print; exit }' <<< "$warm")"
    )
    for i in "${!names[@]}"; do
        table[i]="${table[i]:-}$(printf '%16s' "${values[i]}")"
    done
    popd > /dev/null
done
echo
for i in "${!names[@]}"; do
    # printf counts bytes, and a µ has two of them.
    pad=$((34 - ${#names[i]}))
    printf '%s%*s%s\n' "${names[i]}" "$pad" '' "${table[i]}"
done
for i in "${!checkouts[@]}"; do
    echo "$((i + 1)): ${checkouts[i]}"
done
