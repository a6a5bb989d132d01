//! Faults of scans.

use gemm_runtime::{Scan, scan_kernel};

const _: Scan = scan_kernel!(op: argmax);
const _: Scan = scan_kernel!(block: 96);
const _: Scan = scan_kernel!(block: 256, items: 9);
const _: Scan = scan_kernel!(over: rows, group: 64);
const _: Scan = scan_kernel!(group: 8);
const _: Scan = scan_kernel!(acc: i32);
const _: Scan<i32> = scan_kernel!(type: i32, result: f32);
const _: Scan = scan_kernel!(type: f64);
const _: Scan = scan_kernel!(float4);

fn main() {}
