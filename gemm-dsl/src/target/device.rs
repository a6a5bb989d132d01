//! Published figures of GPUs, in the only table that the time model, kernel tables and multi-GPU
//! plans use.

/// Vendor figures of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    /// Name in lower case, as command-line options spell it.
    pub name: &'static str,
    /// Architecture: 90 for `sm_90`.
    pub arch: u32,
    pub sms: u32,
    /// SM clock under load, in MHz.
    pub clock_mhz: f64,
    /// Number of FP32 multiply-adds per SM and cycle.
    pub fma: f64,
    /// Number of dense 16-bit multiplications and additions per cycle on an SM's tensor cores, with
    /// 32-bit accumulators.
    pub mma_flops: f64,
    /// L2 cache size, in bytes.
    pub l2_capacity: f64,
    /// Memory bandwidth, in bytes per second.
    pub memory: f64,
    /// Documents from which the figures are taken.
    pub source: &'static str,
}

pub const H200: Device = Device {
    name: "h200",
    arch: 90,
    sms: 132,
    clock_mhz: 1980.0,
    fma: 128.0,
    mma_flops: 4096.0,
    l2_capacity: 50e6,
    memory: 4.8e12,
    source: "NVIDIA H200 datasheet, and NVIDIA H100 Tensor Core GPU Architecture, 2022",
};

/// NVIDIA A100 80GB SXM.
pub const A100: Device = Device {
    name: "a100",
    arch: 80,
    sms: 108,
    clock_mhz: 1410.0,
    fma: 64.0,
    mma_flops: 2048.0,
    l2_capacity: 40e6,
    memory: 2.039e12,
    source: "NVIDIA A100 Tensor Core GPU Architecture, 2020, and the datasheet of the A100 80GB \
        SXM",
};

pub const L40S: Device = Device {
    name: "l40s",
    arch: 89,
    sms: 142,
    clock_mhz: 2520.0,
    fma: 128.0,
    mma_flops: 1024.0,
    l2_capacity: 96e6,
    memory: 864e9,
    source: "NVIDIA L40S datasheet, and NVIDIA Ada GPU Architecture, 2022",
};

pub const RTX_4090: Device = Device {
    name: "rtx4090",
    arch: 89,
    sms: 128,
    clock_mhz: 2520.0,
    fma: 128.0,
    mma_flops: 512.0,
    l2_capacity: 72e6,
    memory: 1.008e12,
    source: "NVIDIA Ada GPU Architecture, 2022, appendix A",
};

pub const RTX_5090: Device = Device {
    name: "rtx5090",
    arch: 120,
    sms: 170,
    clock_mhz: 2407.0,
    fma: 128.0,
    mma_flops: 512.0,
    l2_capacity: 96e6,
    memory: 1.792e12,
    source: "NVIDIA RTX Blackwell GPU Architecture, 2025, appendix A",
};

pub const B200: Device = Device {
    name: "b200",
    arch: 100,
    sms: 148,
    clock_mhz: 1965.0,
    fma: 128.0,
    mma_flops: 8192.0,
    l2_capacity: 126e6,
    memory: 8e12,
    source: "NVIDIA DGX B200 datasheet, 2024",
};
