// PlanB of IPv6, as `schemes/planb.rs` states it.

// How many of the eight keys of a node, which ascend, are below the key.
INLINE u32 rank(GLOBAL const u64 *node, u64 key)
{
    u32 below = node[3] < key ? 4 : 0;
    below += node[below + 1] < key ? 2 : 0;
    below += node[below] < key ? 1 : 0;
    return below + (node[below] < key ? 1 : 0);
}

#define PLANB(name, type, top)                                                                                 \
    INLINE u32 name##_code(GLOBAL const u8 *table, Head head, u128 addr)                                       \
    {                                                                                                          \
        GLOBAL const u64 *keys = PART(u64, 0);                                                                 \
        GLOBAL const u32 *bases = PART(u32, 2);                                                                \
        u32 inner = head.words[0] - 1;                                                                         \
        u32 node = 0;                                                                                          \
        for (u32 level = 0; level < inner; level++)                                                            \
            node = node * 9 + rank(keys + (u64)(bases[level] + node) * 8, HIGH(addr));                         \
        u32 interval = node * 8 + rank(keys + (u64)(bases[inner] + node) * 8, HIGH(addr));                     \
        u32 code = PART(type, 1)[interval];                                                                    \
        u32 block = top - code;                                                                                \
        if (block < head.words[1]) {                                                                           \
            /* The intervals of the low bits: the first whose last address is not below. */                    \
            GLOBAL const u32 *starts = PART(u32, 3);                                                           \
            GLOBAL const u64 *lasts = PART(u64, 4);                                                            \
            u32 first = starts[block], len = starts[block + 1] - first;                                        \
            while (len > 0) {                                                                                  \
                u32 half_len = len / 2;                                                                        \
                if (lasts[first + half_len] < LOW(addr)) {                                                     \
                    first += half_len + 1;                                                                     \
                    len -= half_len + 1;                                                                       \
                } else {                                                                                       \
                    len = half_len;                                                                            \
                }                                                                                              \
            }                                                                                                  \
            code = PART(u32, 5)[first];                                                                        \
        }                                                                                                      \
        return code;                                                                                           \
    }                                                                                                          \
    KERNEL(name, u128, name##_code)

PLANB(planb16, u16, 0xffffu)
PLANB(planb32, u32, 0xffffffffu)
