// runmap, as `schemes/runmap.rs` states it. Records begin at any byte, which GPUs cannot read directly: words are
// composed of the aligned ones around them. The image is padded, so these are there.

INLINE u32 read32(GLOBAL const u8 *bytes, u32 at)
{
    GLOBAL const u32 *words = (GLOBAL const u32 *)bytes + (at >> 2);
    return (u32)((words[0] | (u64)words[1] << 32) >> (at & 3) * 8);
}

INLINE u64 read64(GLOBAL const u8 *bytes, u32 at)
{
    GLOBAL const u32 *words = (GLOBAL const u32 *)bytes + (at >> 2);
    u32 by = (at & 3) * 8;
    // The upper word in two steps, because a shift by 64 is undefined.
    return (words[0] | (u64)words[1] << 32) >> by | (u64)words[2] << 1 << (63 - by);
}

#define RUNMAP(name, bytes_of_code, mask, escape)                                                              \
    INLINE u32 name##_code(GLOBAL const u8 *table, Head head, u32 addr)                                        \
    {                                                                                                          \
        GLOBAL const u8 *bytes = PART(u8, 0);                                                                  \
        u32 at = PART(u32, 0)[addr >> 14];                                                                     \
        u32 count = ONES(read64(bytes, at) >> (addr >> 8 & 63));                                               \
        u32 code = read32(bytes, at + 8 + (count - 1) * bytes_of_code) & mask;                                 \
        if (code >= escape) {                                                                                  \
            u32 place = read32(bytes, at - 4 * (code - escape + 1));                                           \
            u32 word = addr >> 6 & 3;                                                                          \
            u32 behind = bytes[place + 32 + word];                                                             \
            count = ONES(read64(bytes, place + 8 * word) >> (addr & 63)) + behind;                             \
            code = read32(bytes, place + 32 + 4 * count);                                                      \
        }                                                                                                      \
        return code;                                                                                           \
    }                                                                                                          \
    KERNEL(name, u32, name##_code)

RUNMAP(runmap8, 1, 0xffu, 0xc0u)
RUNMAP(runmap16, 2, 0xffffu, 0xffc0u)
RUNMAP(runmap32, 4, 0xffffffffu, 0xffffffc0u)
