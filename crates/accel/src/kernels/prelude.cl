// The words of all kernels. A kernel looks up key `i` in thread `i`; neighbouring threads read neighbouring keys and
// write neighbouring hops. The text is OpenCL C 1.2 without extensions; behind `cuda.h` it is CUDA, too.

typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef ulong2 u128;

#define GLOBAL __global
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

// The kernel `name`, which writes the hops of `lookup`'s codes: code 0 is no route, code h + 1 is hop h.
#define KERNEL(name, key, lookup)                                                                              \
    __kernel void name(GLOBAL const key *restrict keys, GLOBAL u32 *restrict hops, u32 count,                  \
                       GLOBAL const u8 *restrict table, Head head)                                             \
    {                                                                                                          \
        u32 i = (u32)get_global_id(0);                                                                         \
        if (i < count)                                                                                         \
            hops[i] = lookup(table, head, keys[i]) - 1;                                                        \
    }
