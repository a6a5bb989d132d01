// Peer of the reduction ladder: CUB's DeviceReduce on random data, one line per length.
// nvcc -O3 -arch=native cub_reduce.cu -o cub_reduce && ./cub_reduce 20 24 28
#include <cub/device/device_reduce.cuh>
#include "cub.cuh"

int main(int argc, char** argv)
{
    for (int arg = 1; arg < argc; ++arg) {
        const size_t n = (size_t)1 << std::atoi(argv[arg]);
        float *in, *out, ms;
        CHECK(cudaMalloc(&in, n * sizeof(float)));
        CHECK(cudaMalloc(&out, sizeof(float)));
        fill<<<1024, 256>>>(in, n);
        auto sum = [&](void* scratch, size_t& bytes) {
            return cub::DeviceReduce::Sum(scratch, bytes, in, out, n);
        };
        if (median(sum, &ms)) return 1;
        std::printf("CUB n=2^%s %.4f ms %.1f GB/s\n", argv[arg], ms, n * sizeof(float) / ms / 1e6);
        CHECK(cudaFree(in));
        CHECK(cudaFree(out));
    }
    return 0;
}
