//! Epilogues of GEMMs. Each fault is reported at its token inside the closure.

use gemm_runtime::{SgemmKernel, sgemm_kernel};

const _: SgemmKernel = sgemm_kernel!(epilogue);
const _: SgemmKernel = sgemm_kernel!(epilogue: max(acc, 0.0));
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc, bias[k]| acc + bias, block: 8x8);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc acc);
const _: SgemmKernel = sgemm_kernel!(epilogue: |row| row);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| 1.0, block: 8x8);
const _: SgemmKernel = sgemm_kernel!(block: 8x8, epilogue: |acc| rleu(acc) + ac);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| max(acc, 0) * 2);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| if acc { acc } else { 1 });
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| acc > 0.0);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| clamp(acc, 1.0), block: 8x8);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| acc.exp());
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| acc as f64);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| { let t = acc; });
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| { let t = acc * 2.0 t });
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| acc / f32(row / col));
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| acc block: 8x8);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| acc * 2.0f32);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| (acc + 1.0) * (acc + x));
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc: f32| acc);
const _: SgemmKernel = sgemm_kernel!(epilogue: |mut acc| acc);
const _: SgemmKernel = sgemm_kernel!(epilogue: |(acc)| acc, block: 8x8);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| f32::max(acc, 0.0));
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| if col > row { -inf } else { acc });
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| max(acc, -1e999));
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| acc + c);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| acc / sum(acc), block: 8x8);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| (acc, sum(acc) * f32(row)));
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| sum(acc * acc), block: 8x8);
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| (acc, sum(acc - max(acc))));
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| (acc, if k > 0 { sum(acc) } else { 0.0 }));
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| (acc, sum(row)));
const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| (acc, sum(acc, acc)));

fn main() {}
