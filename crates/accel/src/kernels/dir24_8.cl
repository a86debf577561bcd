// DIR-24-8, as `schemes/dir24_8.rs` states it.

#define DIR24_8(name, type, chunk)                                                                             \
    INLINE u32 name##_code(GLOBAL const u8 *table, Head head, u32 addr)                                        \
    {                                                                                                          \
        u32 entry = PART(type, 0)[addr >> 8];                                                                  \
        if (entry & chunk)                                                                                     \
            entry = PART(type, 1)[(u64)(entry & (chunk - 1)) << 8 | (addr & 0xff)];                            \
        return entry;                                                                                          \
    }                                                                                                          \
    KERNEL(name, u32, name##_code)

DIR24_8(dir24_8_16, u16, 0x8000u)
DIR24_8(dir24_8_32, u32, 0x80000000u)
