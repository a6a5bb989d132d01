// Computes tiles of C of 64x8 with the matrix instructions of sm_90a: one block per tile, one word
// per element. FORMAT is the format of the operands, TERMS the extent of K, PER_WORD the number of
// operand elements in a register.

__device__ unsigned pair(const unsigned *line, int k) {
    return PER_WORD == 2 ? line[k] | line[k + 1] << 16 : line[k];
}

extern "C" __global__ void multiply(
    const unsigned *a, const unsigned *b, const unsigned *c, unsigned *by_mma, unsigned *by_wgmma
) {
    __shared__ __align__(128) unsigned columns[64];

    const int lane = threadIdx.x % 32;
    const int group = lane / 4, member = lane % 4;    // named as in PTX
    const int row = threadIdx.x / 32 * 16 + group;
    a += blockIdx.x * 64 * TERMS;
    b += blockIdx.x * 8 * TERMS;
    const int tile = blockIdx.x * 64 * 8;

    // Fragments of a lane. The two halves of K are TERMS / 2 apart.
    const int k = member * PER_WORD;
    const unsigned a0 = pair(a + row * TERMS, k);
    const unsigned a1 = pair(a + (row + 8) * TERMS, k);
    const unsigned a2 = pair(a + row * TERMS, k + TERMS / 2);
    const unsigned a3 = pair(a + (row + 8) * TERMS, k + TERMS / 2);
    const unsigned b0 = pair(b + group * TERMS, k);
    const unsigned b1 = pair(b + group * TERMS, k + TERMS / 2);
    int at[4];
    float d[4], e[4];
    for (int i = 0; i < 4; i += 1) {
        at[i] = tile + (row + i / 2 * 8) * 8 + member * 2 + i % 2;
        d[i] = e[i] = __uint_as_float(c[at[i]]);
    }

    asm volatile(
        "mma.sync.aligned.m16n8kTERMS.row.col.f32.FORMAT.FORMAT.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1)
    );

    // B as two core matrices, consecutive along K, each with 8 columns of 16 bytes.
    if (threadIdx.x < 64) {
        const int half = threadIdx.x / 32, column = threadIdx.x / 4 % 8;
        columns[threadIdx.x] = pair(b + column * TERMS, half * TERMS / 2 + k);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned start = (unsigned)__cvta_generic_to_shared(columns);
    const unsigned long long descriptor =
        (unsigned long long)(start >> 4) | 128ull / 16 << 16 | 256ull / 16 << 32;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "{ .reg .pred add; setp.ne.b32 add, %9, 0; wgmma.mma_async.sync.aligned.m64n8kTERMS.f32.FORMAT.FORMAT {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, add, 1, 1TRANSPOSE; }"
        : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(descriptor), "r"(1)
    );
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");

    for (int i = 0; i < 4; i += 1) {
        by_mma[at[i]] = __float_as_uint(d[i]);
        by_wgmma[at[i]] = __float_as_uint(e[i]);
    }
}
