// Peer of scans: CUB's DeviceScan on random data, one line per length and per kind.
// nvcc -O3 -arch=native cub_scan.cu -o cub_scan && ./cub_scan 20 24 28
#include <cub/device/device_scan.cuh>
#include "cub.cuh"

static void print(const char* kind, const char* exponent, size_t n, float ms)
{
    std::printf("CUB %s n=2^%s %.4f ms %.1f GB/s\n", kind, exponent, ms, 2 * n * sizeof(float) / ms / 1e6);
}

int main(int argc, char** argv)
{
    for (int arg = 1; arg < argc; ++arg) {
        const size_t n = (size_t)1 << std::atoi(argv[arg]);
        float *in, *out, ms;
        CHECK(cudaMalloc(&in, n * sizeof(float)));
        CHECK(cudaMalloc(&out, n * sizeof(float)));
        fill<<<1024, 256>>>(in, n);
        auto inclusive = [&](void* scratch, size_t& bytes) {
            return cub::DeviceScan::InclusiveSum(scratch, bytes, in, out, n);
        };
        auto exclusive = [&](void* scratch, size_t& bytes) {
            return cub::DeviceScan::ExclusiveSum(scratch, bytes, in, out, n);
        };
        if (median(inclusive, &ms)) return 1;
        print("inclusive", argv[arg], n, ms);
        if (median(exclusive, &ms)) return 1;
        print("exclusive", argv[arg], n, ms);
        CHECK(cudaFree(in));
        CHECK(cudaFree(out));
    }
    return 0;
}
