// The words of all kernels. A kernel looks up key `i` in thread `i`; neighbouring threads read neighbouring keys and
// write neighbouring hops. Threads are started in groups of at most GROUP, a multiple of LANES; those behind the batch
// write nothing. The text is OpenCL C 1.2 without extensions; behind `cuda.h` it is CUDA, too.

typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef ulong2 u128;

#define GLOBAL __global
#define LOCAL __local
#ifndef INLINE
#define INLINE static inline
#endif
#define ONES(bits) ((u32)popcount(bits))
#define HIGH(addr) ((addr).y)
#define LOW(addr) ((addr).x)

// As `image.rs` has it: where each part begins, in lines of 64 bytes, and numbers of the scheme.
typedef struct {
    u32 at[8];
    u32 words[8];
} Head;

// Part number `part` of the table as an array.
#define PART(type, part) ((GLOBAL const type *)(table + (u64)head.at[part] * 64))

// Keys with their bytes in the order of the network, as numbers.
INLINE u32 swapped_u32(u32 key)
{
    return key >> 24 | (key >> 8 & 0xff00u) | (key << 8 & 0xff0000u) | key << 24;
}

INLINE u64 swapped_u64(u64 key)
{
    return (u64)swapped_u32((u32)key) << 32 | swapped_u32((u32)(key >> 32));
}

INLINE u128 swapped_u128(u128 key)
{
    u128 swapped;
    HIGH(swapped) = swapped_u64(LOW(key));
    LOW(swapped) = swapped_u64(HIGH(key));
    return swapped;
}

// The kernel `name`, which writes the hops of `lookup`'s codes: code 0 is no route, code h + 1 is hop h. With
// `is_network` the bytes of keys are in the order of the network.
#define KERNEL(name, key, lookup)                                                                              \
    __kernel void name(GLOBAL const key *restrict keys, GLOBAL u32 *restrict hops, u32 count, u32 is_network,  \
                       GLOBAL const u8 *restrict table, Head head)                                             \
    {                                                                                                          \
        u32 i = (u32)get_global_id(0);                                                                         \
        if (i < count)                                                                                         \
            hops[i] = lookup(table, head, is_network ? swapped_##key(keys[i]) : keys[i]) - 1;                  \
    }

// Neighbouring threads that look their keys up together, and the most threads of a group.
#define LANES 8
#define GROUP 256
// A variable that a group's threads share, at the start of a kernel.
#ifndef SHARED
#define SHARED __local
#endif
// Lanes wait for each other here, and then see what the others have written. All threads of a group come to it.
#define WAIT_FOR_LANES barrier(CLK_LOCAL_MEM_FENCE)

// As `KERNEL`, of lookups that lanes do together: each has a `shared` with the others, and its number among them. All
// threads of a group enter `lookup`, those behind the batch with its last key.
#define LANES_KERNEL(name, key, shared, lookup)                                                                \
    __kernel void name(GLOBAL const key *restrict keys, GLOBAL u32 *restrict hops, u32 count, u32 is_network,  \
                       GLOBAL const u8 *restrict table, Head head)                                             \
    {                                                                                                          \
        SHARED shared groups[GROUP / LANES];                                                                   \
        u32 thread = (u32)get_local_id(0);                                                                     \
        u32 i = (u32)get_global_id(0);                                                                         \
        key addr = keys[i < count ? i : count - 1];                                                            \
        addr = is_network ? swapped_##key(addr) : addr;                                                        \
        u32 code = lookup(table, head, addr, &groups[thread / LANES], thread % LANES);                         \
        if (i < count)                                                                                         \
            hops[i] = code - 1;                                                                                \
    }
