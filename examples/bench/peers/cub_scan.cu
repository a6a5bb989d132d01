// Peer of scans: CUB's DeviceScan on random data, one line per length and per kind.
// nvcc -O3 -arch=native cub_scan.cu -o cub_scan && ./cub_scan 20 24 28
#include <cub/device/device_scan.cuh>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                          \
    do {                                                                     \
        cudaError_t error = (call);                                          \
        if (error != cudaSuccess) {                                          \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            return 1;                                                        \
        }                                                                    \
    } while (0)

// Hash of the index: values between -1 and 1, never all zero.
__global__ void fill(float* x, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x) {
        unsigned h = (unsigned)i * 2654435761u ^ (unsigned)(i >> 32);
        h ^= h >> 15;
        h *= 2246822519u;
        h ^= h >> 13;
        x[i] = (int)h * (1.0f / 2147483648.0f);
    }
}

template <typename Scan>
int time(const char* kind, const char* exponent, size_t n, Scan scan)
{
    size_t bytes = 0;
    void* scratch = nullptr;
    CHECK(scan(scratch, bytes));
    CHECK(cudaMalloc(&scratch, bytes));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    std::vector<float> times;
    for (int round = -5; round < 41; ++round) {
        CHECK(cudaEventRecord(start));
        CHECK(scan(scratch, bytes));
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (round >= 0) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    const float ms = times[times.size() / 2];
    std::printf("CUB %s n=2^%s %.4f ms %.1f GB/s\n", kind, exponent, ms, 2 * n * sizeof(float) / ms / 1e6);
    CHECK(cudaFree(scratch));
    return 0;
}

int main(int argc, char** argv)
{
    for (int arg = 1; arg < argc; ++arg) {
        const size_t n = (size_t)1 << std::atoi(argv[arg]);
        float *in, *out;
        CHECK(cudaMalloc(&in, n * sizeof(float)));
        CHECK(cudaMalloc(&out, n * sizeof(float)));
        fill<<<1024, 256>>>(in, n);
        auto inclusive = [&](void* scratch, size_t& bytes) {
            return cub::DeviceScan::InclusiveSum(scratch, bytes, in, out, n);
        };
        auto exclusive = [&](void* scratch, size_t& bytes) {
            return cub::DeviceScan::ExclusiveSum(scratch, bytes, in, out, n);
        };
        if (time("inclusive", argv[arg], n, inclusive)) return 1;
        if (time("exclusive", argv[arg], n, exclusive)) return 1;
        CHECK(cudaFree(in));
        CHECK(cudaFree(out));
    }
    return 0;
}
