// Measures the shared-memory wavefronts of one access by one warp. Each pattern of addresses is one
// launch of `probe4` or `probe16`, whose wavefronts the profiler counts.
// gemm-dsl/sim/src/tests/wavefronts.txt holds the counts of an H200, and a test compares the
// simulator with them.
//
//   nvcc -O2 -arch=native -o shared_wavefronts shared_wavefronts.cu && ./shared_wavefronts
//   ncu --clock-control none -k regex:probe --csv --metrics l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum,\
//   l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum,l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum ./shared_wavefronts
//
// A line of output is one launch: load or store, the bytes per lane, and the address of each lane in
// units of these bytes; `-` is an inactive lane.

#include <cstdio>
#include <cuda_runtime.h>

template <bool STORES>
__global__ void probe4(const int* unit, float* sink)
{
    extern __shared__ __align__(16) float memory[];
    const int at = unit[threadIdx.x];
    const unsigned place = (unsigned)__cvta_generic_to_shared(memory + at);
    float x = 0.0f;
    if (at >= 0) {
        if (STORES) {
            asm volatile("st.shared.f32 [%0], %1;" :: "r"(place), "f"(x) : "memory");
        } else {
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(place) : "memory");
        }
    }
    sink[threadIdx.x] = x;
}

template <bool STORES>
__global__ void probe16(const int* unit, float* sink)
{
    extern __shared__ __align__(16) float memory[];
    const int at = unit[threadIdx.x];
    const unsigned place = (unsigned)__cvta_generic_to_shared(memory + 4 * at);
    float x = 0.0f, y = 0.0f, z = 0.0f, w = 0.0f;
    if (at >= 0) {
        if (STORES) {
            asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" :: "r"(place), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
        } else {
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "r"(place) : "memory");
        }
    }
    sink[threadIdx.x] = x + y + z + w;
}

static unsigned state = 1;
static unsigned draw(unsigned below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
}

static int* device_units;
static float* device_sink;

static void measure(const char* kind, const int* unit)
{
    std::printf("%s", kind);
    for (int lane = 0; lane < 32; ++lane) {
        if (unit[lane] < 0) std::printf(" -"); else std::printf(" %d", unit[lane]);
    }
    std::printf("\n");
    cudaMemcpy(device_units, unit, 32 * sizeof(int), cudaMemcpyHostToDevice);
    const int bytes = 48 << 10;
    const bool stores = kind[0] == 's', wide = kind[1] == '1';
    if (wide && stores) probe16<true><<<1, 32, bytes>>>(device_units, device_sink);
    if (wide && !stores) probe16<false><<<1, 32, bytes>>>(device_units, device_sink);
    if (!wide && stores) probe4<true><<<1, 32, bytes>>>(device_units, device_sink);
    if (!wide && !stores) probe4<false><<<1, 32, bytes>>>(device_units, device_sink);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) std::printf("error: %s\n", cudaGetErrorString(error));
}

template <typename F>
static void pattern(const char* kind, F address)
{
    int unit[32];
    for (int lane = 0; lane < 32; ++lane) unit[lane] = address(lane);
    measure(kind, unit);
}

int main()
{
    cudaMalloc(&device_units, 32 * sizeof(int));
    cudaMalloc(&device_sink, 32 * sizeof(float));
    for (const char* kind : {"l16", "s16", "l4", "s4"}) {
        const bool stores = kind[0] == 's';
        pattern(kind, [](int lane) { return lane; });
        for (int by : {2, 4, 8, 16, 32}) {
            pattern(kind, [=](int lane) { return lane / by; });
            pattern(kind, [=](int lane) { return lane % by; });
        }
        for (int by : {2, 4, 8, 16}) {
            pattern(kind, [=](int lane) { return lane * by; });
            pattern(kind, [=](int lane) { return lane / 2 * by; });
            pattern(kind, [=](int lane) { return lane % 16 * by; });
            pattern(kind, [=](int lane) { return lane / by + lane % by * 9; });
        }
        pattern(kind, [](int lane) { return lane ^ 1; });
        pattern(kind, [](int lane) { return lane ^ 9; });
        pattern(kind, [](int lane) { return 31 - lane; });
        for (int lanes : {1, 7, 9, 17, 24}) {
            pattern(kind, [=](int lane) { return lane < lanes ? lane / 2 : -1; });
        }
        pattern(kind, [=](int lane) { return lane % 3 != 0 ? lane / 4 : -1; });
        pattern(kind, [=](int lane) { return lane % 5 != 0 ? lane % 2 : -1; });
        // Active lanes whose neighbour in the pair is inactive.
        pattern(kind, [=](int lane) { return lane % 2 == 0 ? lane : -1; });
        pattern(kind, [=](int lane) { return lane % 2 == 0 ? lane / 2 : -1; });
        pattern(kind, [=](int lane) { return lane % 4 == 0 ? lane / 4 : -1; });
        pattern(kind, [=](int lane) { return lane % 4 < 2 ? lane / 4 * 2 + lane % 2 : -1; });
        pattern(kind, [=](int lane) { return lane % 4 == 0 || lane % 4 == 3 ? lane / 2 : -1; });
        // Only one half of the warp reads in pairs, or the two halves form different pairs.
        pattern(kind, [=](int lane) { return lane < 16 ? lane / 2 : lane; });
        pattern(kind, [=](int lane) { return lane < 16 ? lane : lane / 2; });
        pattern(kind, [=](int lane) { return lane < 16 ? lane / 2 : lane % 2; });
        pattern(kind, [=](int lane) { return lane < 16 ? lane / 4 * 2 + lane % 2 : 9 * lane / 2; });
        pattern(kind, [=](int lane) { return lane % 16 < 8 ? lane / 2 : lane; });
        pattern(kind, [=](int lane) { return lane % 16 < 8 ? lane / 2 : lane % 2; });
        for (int values : {2, 3, 4, 6, 8, 12, 16, 24, 32, 64}) {
            for (int again = 0; again < (stores ? 2 : 4); ++again) {
                pattern(kind, [=](int) { return (int)draw(values); });
            }
        }
    }
    return 0;
}
