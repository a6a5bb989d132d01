// Peer of the reduction benchmark: CUB, with the line protocol of rows.py. It reduces whole arrays
// (sum, max, argmax) and segments (sum), whose offsets are a file of 32-bit numbers.
// nvcc -O3 -arch=native cub_rows.cu -o cub_rows
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/version.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// GPU memory, freed in the destructor.
struct Memory {
    void *at = nullptr;
    explicit Memory(size_t bytes) { check(cudaMalloc(&at, std::max<size_t>(bytes, 1)), "cudaMalloc"); }
    ~Memory() { cudaFree(at); }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    template <class T> T *as() const { return static_cast<T *>(at); }
};

// Hash of the index.
__device__ unsigned hash(size_t i)
{
    unsigned h = (unsigned)i * 2654435761u ^ (unsigned)(i >> 32);
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    return h;
}

// Floats are between -1 and 1, integers have any bits.
template <class T> struct Random {
    static __device__ T of(unsigned h) { return T((int)h * (1.0f / 2147483648.0f)); }
};
template <> struct Random<int> {
    static __device__ int of(unsigned h) { return (int)h; }
};
template <> struct Random<signed char> {
    static __device__ signed char of(unsigned h) { return (signed char)(h >> 8); }
};

template <class T> __global__ void fill(T *x, size_t n)
{
    const size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride) x[i] = Random<T>::of(hash(i));
}

// Returns the value of a key in a JSON object on one line, as the benchmark writes it.
static std::string value(const std::string &line, const char *key)
{
    const std::string quoted = std::string("\"") + key + "\":";
    size_t at = line.find(quoted);
    if (at == std::string::npos) throw std::runtime_error(std::string("no ") + key);
    at += quoted.size();
    if (line[at] == '"') return line.substr(at + 1, line.find('"', at + 1) - at - 1);
    if (line[at] == '[') ++at;
    return line.substr(at, line.find_first_of(",]}", at) - at);
}

static size_t number(const std::string &line, const char *key) { return std::strtoull(value(line, key).c_str(), nullptr, 10); }

static std::string escaped(const std::string &text)
{
    std::string out;
    for (char c : text) out += c == '"' || c == '\\' || (unsigned char)c < ' ' ? '\'' : c;
    return out;
}

// Returns the time of a launch in microseconds. `work` is called without memory first, to learn the
// size of the memory that it needs.
template <class Work> double timed(size_t launches, size_t replays, Work work)
{
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    size_t bytes = 0;
    check(work(nullptr, bytes, stream), "CUB");
    Memory scratch(bytes);
    for (int n = 0; n < 3; ++n) check(work(scratch.at, bytes, stream), "CUB");
    check(cudaStreamSynchronize(stream), "CUB");

    cudaGraph_t graph;
    cudaGraphExec_t replay;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaError_t failed = cudaSuccess;
    for (size_t n = 0; n < launches && failed == cudaSuccess; ++n) failed = work(scratch.at, bytes, stream);
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    check(failed, "CUB in a capture");
    check(ended, "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&replay, graph, 0), "cudaGraphInstantiate");
    for (int n = 0; n < 3; ++n) check(cudaGraphLaunch(replay, stream), "cudaGraphLaunch");
    check(cudaStreamSynchronize(stream), "the graph");

    std::vector<cudaEvent_t> events(2 * replays);
    for (cudaEvent_t &event : events) check(cudaEventCreate(&event), "cudaEventCreate");
    for (size_t n = 0; n < replays; ++n) {
        check(cudaEventRecord(events[2 * n], stream), "cudaEventRecord");
        check(cudaGraphLaunch(replay, stream), "cudaGraphLaunch");
        check(cudaEventRecord(events[2 * n + 1], stream), "cudaEventRecord");
    }
    check(cudaStreamSynchronize(stream), "the graph");
    std::vector<float> times(replays);
    for (size_t n = 0; n < replays; ++n) check(cudaEventElapsedTime(&times[n], events[2 * n], events[2 * n + 1]), "cudaEventElapsedTime");
    std::sort(times.begin(), times.end());
    const size_t middle = replays / 2;
    const double median = replays % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2.0;

    for (cudaEvent_t event : events) cudaEventDestroy(event);
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return median * 1e3 / launches;
}

struct Plus {
    template <class T> __host__ __device__ T operator()(T a, T b) const { return a + b; }
};

struct ToFloat {
    template <class T> __host__ __device__ float operator()(T x) const { return (float)x; }
};

template <class T, class Sum> double whole(const std::string &line, size_t launches, size_t replays)
{
    const size_t n = number(line, "shape");
    const std::string op = value(line, "op");
    const Memory in(n * sizeof(T)), out(64), index(64);
    fill<<<1024, 256>>>(in.as<T>(), n);
    check(cudaDeviceSynchronize(), "filling");
    if (op == "max") {
        return timed(launches, replays, [&](void *scratch, size_t &bytes, cudaStream_t stream) {
            return cub::DeviceReduce::Max(scratch, bytes, in.as<T>(), out.as<T>(), n, stream);
        });
    }
    if (op == "argmax") {
        return timed(launches, replays, [&](void *scratch, size_t &bytes, cudaStream_t stream) {
#if CUB_VERSION >= 300000
            return cub::DeviceReduce::ArgMax(scratch, bytes, in.as<T>(), out.as<T>(), index.as<long long>(), (long long)n, stream);
#else
            return cub::DeviceReduce::ArgMax(scratch, bytes, in.as<T>(), out.as<cub::KeyValuePair<int, T>>(), (int)n, stream);
#endif
        });
    }
    if (op != "sum") throw std::runtime_error("CUB has no " + op);
    return timed(launches, replays, [&](void *scratch, size_t &bytes, cudaStream_t stream) {
        return cub::DeviceReduce::Sum(scratch, bytes, in.as<T>(), out.as<Sum>(), n, stream);
    });
}

// Sums 16-bit or other elements in f32.
template <class T> double halves(const std::string &line, size_t launches, size_t replays)
{
    const size_t n = number(line, "shape");
    if (value(line, "op") != "sum") throw std::runtime_error("only sums");
    const Memory in(n * sizeof(T)), out(64);
    fill<<<1024, 256>>>(in.as<T>(), n);
    check(cudaDeviceSynchronize(), "filling");
    return timed(launches, replays, [&](void *scratch, size_t &bytes, cudaStream_t stream) {
        return cub::DeviceReduce::TransformReduce(scratch, bytes, in.as<T>(), out.as<float>(), n, Plus(), ToFloat(), 0.0f, stream);
    });
}

static double segments(const std::string &line, size_t launches, size_t replays)
{
    const size_t n = number(line, "shape"), count = number(line, "segments");
    const std::string path = value(line, "offsets");
    std::vector<unsigned> offsets(count + 1);
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char *>(offsets.data()), offsets.size() * sizeof(unsigned));
    if (!file) throw std::runtime_error("cannot read the offsets");
    const Memory in(n * sizeof(float)), out(count * sizeof(float)), ends(offsets.size() * sizeof(unsigned));
    fill<<<1024, 256>>>(in.as<float>(), n);
    check(cudaMemcpy(ends.at, offsets.data(), offsets.size() * sizeof(unsigned), cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaDeviceSynchronize(), "filling");
    const unsigned *begin = ends.as<unsigned>();
    return timed(launches, replays, [&](void *scratch, size_t &bytes, cudaStream_t stream) {
        return cub::DeviceSegmentedReduce::Sum(scratch, bytes, in.as<float>(), out.as<float>(), (int)count, begin, begin + 1, stream);
    });
}

static double answer(const std::string &line)
{
    const size_t launches = number(line, "launches"), replays = number(line, "replays");
    if (line.find("\"offsets\":\"") != std::string::npos) return segments(line, launches, replays);
    const std::string type = value(line, "type");
    if (type == "f32") return whole<float, float>(line, launches, replays);
    if (type == "f64") return whole<double, double>(line, launches, replays);
    if (type == "i32") return whole<int, int>(line, launches, replays);
    if (type == "i8") return whole<signed char, int>(line, launches, replays);
    if (type == "f16") return halves<__half>(line, launches, replays);
    if (type == "bf16") return halves<__nv_bfloat16>(line, launches, replays);
    throw std::runtime_error("no type " + type);
}

int main()
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::puts("{\"missing\": \"CUB finds no GPU\"}");
        return 0;
    }
    std::printf("{\"name\": \"CUB %d.%d.%d\"}\n", CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
    std::fflush(stdout);
    std::string line;
    while (std::getline(std::cin, line)) {
        try {
            std::printf("{\"us\": %.6f}\n", answer(line));
        } catch (const std::exception &error) {
            std::printf("{\"error\": \"%s\"}\n", escaped(error.what()).c_str());
        }
        std::fflush(stdout);
    }
    return 0;
}
