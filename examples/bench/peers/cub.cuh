// What the peers from CUB share: errors, random data, and the time of a call.
#pragma once
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

// Median time of a call of CUB in milliseconds, with the scratch memory that the call asks for.
template <typename Call>
int median(Call call, float* ms)
{
    size_t bytes = 0;
    void* scratch = nullptr;
    CHECK(call(scratch, bytes));
    CHECK(cudaMalloc(&scratch, bytes));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    std::vector<float> times;
    for (int round = -5; round < 41; ++round) {
        CHECK(cudaEventRecord(start));
        CHECK(call(scratch, bytes));
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop));
        float time;
        CHECK(cudaEventElapsedTime(&time, start, stop));
        if (round >= 0) times.push_back(time);
    }
    std::sort(times.begin(), times.end());
    *ms = times[times.size() / 2];
    CHECK(cudaFree(scratch));
    return 0;
}
