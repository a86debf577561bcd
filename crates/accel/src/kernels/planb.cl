// PlanB of IPv6, as `schemes/planb.rs` states it, in two forms: a thread searches a node for its key by halves, or
// eight lanes compare the eight keys of a node at once, which is a line that they read together.

// How many of the eight keys of a node, which ascend, are below the key.
INLINE u32 rank(GLOBAL const u64 *node, u64 key)
{
    u32 below = node[3] < key ? 4 : 0;
    below += node[below + 1] < key ? 2 : 0;
    below += node[below] < key ? 1 : 0;
    return below + (node[below] < key ? 1 : 0);
}

// The interval of an address's upper half.
INLINE u32 interval(GLOBAL const u8 *table, Head head, u64 high)
{
    GLOBAL const u64 *keys = PART(u64, 0);
    GLOBAL const u32 *bases = PART(u32, 2);
    u32 inner = head.words[0] - 1;
    u32 node = 0;
    for (u32 level = 0; level < inner; level++)
        node = node * 9 + rank(keys + (u64)(bases[level] + node) * 8, high);
    return node * 8 + rank(keys + (u64)(bases[inner] + node) * 8, high);
}

// What lanes share: the upper half of each one's address, the node that it has come to, and for each lane a byte whose
// bit `i` is set if the lane's key of lane `i`'s node is below lane `i`'s address.
typedef struct {
    u64 high[LANES];
    u32 node[LANES];
    u64 below;
} Lanes;

// The same by lanes: on each level they compare the nodes of all eight addresses one after the other. These are eight
// reads that do not wait for each other, where `rank` has four that do.
INLINE u32 interval_by_lanes(GLOBAL const u8 *table, Head head, u64 high, LOCAL Lanes *lanes, u32 lane)
{
    GLOBAL const u64 *keys = PART(u64, 0) + lane;
    GLOBAL const u32 *bases = PART(u32, 2);
    u32 levels = head.words[0];
    u32 node = 0;
    lanes->high[lane] = high;
    for (u32 level = 0; level < levels; level++) {
        lanes->node[lane] = node;
        WAIT_FOR_LANES;
        u32 below = 0;
        for (u32 i = 0; i < LANES; i++)
            below |= (keys[(u64)(bases[level] + lanes->node[i]) * 8] < lanes->high[i] ? 1u : 0u) << i;
        ((LOCAL u8 *)&lanes->below)[lane] = (u8)below;
        WAIT_FOR_LANES;
        u32 rank = ONES(lanes->below >> lane & 0x0101010101010101ul);
        node = node * (level + 1 < levels ? 9 : 8) + rank;
    }
    return node;
}

#define PLANB(name, type, top)                                                                                 \
    INLINE u32 name##_of_interval(GLOBAL const u8 *table, Head head, u32 interval, u64 low)                    \
    {                                                                                                          \
        u32 code = PART(type, 1)[interval];                                                                    \
        u32 block = top - code;                                                                                \
        if (block < head.words[1]) {                                                                           \
            /* The intervals of the low bits: the first whose last address is not below. */                    \
            GLOBAL const u32 *starts = PART(u32, 3);                                                           \
            GLOBAL const u64 *lasts = PART(u64, 4);                                                            \
            u32 first = starts[block], len = starts[block + 1] - first;                                        \
            while (len > 0) {                                                                                  \
                u32 half_len = len / 2;                                                                        \
                if (lasts[first + half_len] < low) {                                                           \
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
                                                                                                               \
    INLINE u32 name##_code(GLOBAL const u8 *table, Head head, u128 addr)                                       \
    {                                                                                                          \
        return name##_of_interval(table, head, interval(table, head, HIGH(addr)), LOW(addr));                  \
    }                                                                                                          \
    KERNEL(name, u128, name##_code)                                                                            \
                                                                                                               \
    INLINE u32 name##_lanes_code(GLOBAL const u8 *table, Head head, u128 addr, LOCAL Lanes *lanes, u32 lane)   \
    {                                                                                                          \
        u32 found = interval_by_lanes(table, head, HIGH(addr), lanes, lane);                                   \
        return name##_of_interval(table, head, found, LOW(addr));                                              \
    }                                                                                                          \
    LANES_KERNEL(name##_lanes, u128, Lanes, name##_lanes_code)

PLANB(planb16, u16, 0xffffu)
PLANB(planb32, u32, 0xffffffffu)
