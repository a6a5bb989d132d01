// Compares the tensor-core pipeline with cuBLAS in bf16, in the same run. The kernels are those that
// `ladder --source` prints for the stages `persistent` and `cluster_multicast`. They run on matrices
// of bf16, without the launch that splits the operands.
//
//     cargo run --release --example ladder -- sgemm --source persistent > persistent.cuh
//     cargo run --release --example ladder -- sgemm --source cluster_multicast > cluster.cuh
//     nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a -I. -o bf16 examples/bench/peers/bf16.cu -lcublas -lcuda
//     ./bf16 8192
//
// It prints the median of 25 interleaved launches, and the largest difference from cuBLAS with
// results in f32.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <functional>
#include <string>
#include <vector>

#define CHECK(call)                                                             \
    do {                                                                        \
        auto status = (call);                                                   \
        if (status != 0) {                                                      \
            std::printf("%s: %d\n", #call, (int)status);                        \
            std::exit(1);                                                       \
        }                                                                       \
    } while (0)

namespace persistent {
#include "persistent.cuh"
}
namespace cluster {
#include "cluster.cuh"
}

constexpr int BM = 128, BN = 256, BK = 64, THREADS = 384;
// Four pipeline stages of both operands, and their barriers.
constexpr int SHARED = 4 * (BM + BN) * BK * 2 + 64;

// Returns the tensor map of a row-major bf16 matrix that is copied in boxes of `rows` rows and BK
// columns.
CUtensorMap boxes(void* matrix, int n, int rows)
{
    CUtensorMap map;
    cuuint64_t extents[2] = {(cuuint64_t)n, (cuuint64_t)n}, stride[1] = {(cuuint64_t)n * 2};
    cuuint32_t box[2] = {BK, (cuuint32_t)rows}, steps[2] = {1, 1};
    CHECK(cuTensorMapEncodeTiled(
        &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix, extents, stride, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}

// Fills an array with numbers between -1 and 1, as bf16.
__global__ void fill(__nv_bfloat16* out, size_t count, unsigned long long seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        unsigned long long bits = (i + seed * 0x9E3779B97F4A7C15ull) * 0xBF58476D1CE4E5B9ull;
        bits = (bits ^ bits >> 31) * 0x94D049BB133111EBull;
        out[i] = __float2bfloat16((float)(int)(bits >> 40) / 8388608.0f - 1.0f);
    }
}

__global__ void difference(const float* a, const float* b, size_t count, int* most)
{
    float own = 0.0f;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        const float off = fabsf(a[i] - b[i]);
        own = fmaxf(own, off <= 1e30f ? off : 1e30f);
    }
    atomicMax(most, __float_as_int(own));
}

template <class Map, class Kernel>
void launch(Kernel kernel, CUtensorMap a, CUtensorMap b, float* c, int n, int blocks_of_cluster, int sms)
{
    Map map_a, map_b;
    std::memcpy(&map_a, &a, sizeof(a));
    std::memcpy(&map_b, &b, sizeof(b));
    const int rows = BM * blocks_of_cluster;
    const int tiles = (n + rows - 1) / rows * ((n + BN - 1) / BN);
    const int clusters = std::min(sms / blocks_of_cluster, tiles);
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    kernel<<<clusters * blocks_of_cluster, THREADS, SHARED>>>(map_a, map_b, c, n, n, n, tiles, clusters);
    CHECK(cudaGetLastError());
}

struct Peer {
    std::string name;
    std::function<void()> run;
    std::vector<float> times;
};

int main(int argc, char** argv)
{
    const int n = argc > 1 ? std::atoi(argv[1]) : 8192;
    const size_t count = (size_t)n * n;
    __nv_bfloat16 *a, *b, *narrow;
    float *c, *expected;
    int* most;
    CHECK(cudaMalloc(&a, count * 2));
    CHECK(cudaMalloc(&b, count * 2));
    CHECK(cudaMalloc(&narrow, count * 2));
    CHECK(cudaMalloc(&c, count * 4));
    CHECK(cudaMalloc(&expected, count * 4));
    CHECK(cudaMalloc(&most, 4));
    fill<<<1024, 256>>>(a, count, 1);
    fill<<<1024, 256>>>(b, count, 2);
    cublasHandle_t blas;
    CHECK(cublasCreate(&blas));
    int sms;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    // B is column-major, like a split operand.
    auto product = [&](void* out, cudaDataType type) {
        const float one = 1.0f, zero = 0.0f;
        CHECK(cublasGemmEx(
            blas, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, b, CUDA_R_16BF, n, a, CUDA_R_16BF, n, &zero,
            out, type, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    };
    const CUtensorMap of_a = boxes(a, n, BM), of_b = boxes(b, n, BN), part_of_b = boxes(b, n, BN / 2);
    std::vector<Peer> peers = {
        {"cuBLAS, bf16 out", [&] { product(narrow, CUDA_R_16BF); }, {}},
        {"cuBLAS, f32 out", [&] { product(c, CUDA_R_32F); }, {}},
        {"persistent",
         [&] {
             auto kernel =
                 persistent::sgemm_128x256x64_float4_stages4_raster16_bf16_wgmma_tma_producer_persistent;
             launch<persistent::TensorMap>(kernel, of_a, of_b, c, n, 1, sms);
         },
         {}},
        {"cluster_multicast",
         [&] {
             auto kernel =
                 cluster::sgemm_128x256x64_float4_stages4_raster16_bf16_wgmma_tma_producer_persistent_cluster2;
             launch<cluster::TensorMap>(kernel, of_a, part_of_b, c, n, 2, sms);
         },
         {}},
    };
    product(expected, CUDA_R_32F);
    std::vector<float> off(peers.size());
    for (size_t i = 1; i < peers.size(); ++i) {
        CHECK(cudaMemset(c, 0xff, count * 4));
        CHECK(cudaMemset(most, 0, 4));
        peers[i].run();
        difference<<<1024, 256>>>(c, expected, count, most);
        CHECK(cudaMemcpy(&off[i], most, 4, cudaMemcpyDeviceToHost));
    }
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (int turn = 0; turn < 25; ++turn) {
        for (Peer& peer : peers) {
            CHECK(cudaEventRecord(begin));
            peer.run();
            CHECK(cudaEventRecord(end));
            CHECK(cudaEventSynchronize(end));
            float time;
            CHECK(cudaEventElapsedTime(&time, begin, end));
            peer.times.push_back(time);
        }
    }
    float first = 0.0f;
    for (size_t i = 0; i < peers.size(); ++i) {
        std::sort(peers[i].times.begin(), peers[i].times.end());
        const float median = peers[i].times[peers[i].times.size() / 2];
        first = i == 0 ? median : first;
        std::printf(
            "%-20s %9.1f us %7.1f TFLOP/s  %.3f of the first, off by %g\n", peers[i].name.c_str(), median * 1e3,
            2.0 * n * n * n / median / 1e9, first / median, off[i]);
    }
}
