// SAIL_L, as `schemes/sail_l.rs` states it.

#define SAIL_L(name, type)                                                                                     \
    INLINE u32 name##_code(GLOBAL const u8 *table, Head head, u32 addr)                                        \
    {                                                                                                          \
        u32 entry = PART(type, 0)[addr >> 16];                                                                 \
        u32 chunk = entry - head.words[0];                                                                     \
        if (chunk < head.words[1]) {                                                                           \
            entry = PART(type, 1)[(u64)chunk << 8 | (addr >> 8 & 0xff)];                                       \
            chunk = entry - head.words[2];                                                                     \
            if (chunk < head.words[3])                                                                         \
                entry = PART(type, 2)[(u64)chunk << 8 | (addr & 0xff)];                                        \
        }                                                                                                      \
        return entry;                                                                                          \
    }                                                                                                          \
    KERNEL(name, u32, name##_code)

SAIL_L(sail_l_16, u16)
SAIL_L(sail_l_32, u32)
