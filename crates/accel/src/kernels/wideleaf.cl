// wideleaf, as `schemes/wideleaf.rs` states it.

typedef struct {
    u64 low, high;
    u32 word, shift;
    u32 unused[2];
} Window;

// The key of an address in a window: the first 32 of the bits that distinguish the window's addresses.
INLINE u32 window_key(GLOBAL const Window *window, u128 addr)
{
    u64 low = LOW(addr) - window->low;
    u64 borrow = LOW(addr) < window->low ? 1 : 0;
    u64 high = HIGH(addr) - window->high - borrow;
    bool before = HIGH(addr) < window->high || (HIGH(addr) == window->high && borrow);
    if (before)
        return 0;
    // Shifted up by `shift` + 16, from 16 to 127: the bits that fall out must be 0, else the address lies behind.
    u32 by = window->shift + 16, in_word = by & 63;
    u64 carry_low = low >> 1 >> (63 - in_word);
    u64 carry_high = high >> 1 >> (63 - in_word);
    u64 bits = by < 64 ? high << in_word | carry_low : low << in_word;
    u64 above = by < 64 ? carry_high : carry_low | high;
    return above == 0 ? (u32)(bits >> 32) : 0xffffffffu;
}

#define WIDELEAF(name, type, bytes_of_code, top)                                                               \
    INLINE u32 name##_code(GLOBAL const u8 *table, Head head, u128 addr)                                       \
    {                                                                                                          \
        GLOBAL const u32 *words = PART(u32, 0);                                                                \
        GLOBAL const u16 *units = PART(u16, 1);                                                                \
        GLOBAL const type *codes = PART(type, 1);                                                              \
        u32 word = words[HIGH(addr) >> 48];                                                                    \
        u32 key = (u32)(HIGH(addr) >> 16);                                                                     \
        for (;;) {                                                                                             \
            /* Three tables, then a record or a constant, without a branch: what names no table reads word 0, and a */\
            /* constant reads a record without keys behind the first unit, in which no record lies.                  */\
            for (u32 level = 0; level < 3; level++) {                                                          \
                u32 is_table = word >> 31;                                                                     \
                u32 bits = is_table ? 32 - (word >> 27) : 1;                                                   \
                u32 next = words[is_table ? (word & 0x7ffffffu) + (key >> (32 - bits)) : 0];                   \
                key = is_table ? key << bits : key;                                                            \
                word = is_table ? next : word;                                                                 \
            }                                                                                                  \
            u32 is_record = word >> 30;                                                                        \
            u32 byte = is_record ? word >> 3 & 0x7fffffcu : 32, keys = is_record ? word & 31 : 0;              \
            /* How many of at most 31 keys are below: every eighth key tells in which eight to count, so only two */\
            /* groups of reads wait for each other. The last ones may lie behind the keys, and do not count then. */\
            u32 first = byte / 2, sought = key >> 16, rank = 0;                                                \
            for (u32 last = 7; last < 31; last += 8)                                                           \
                rank += ((last < keys) & (units[first + (last < keys ? last : 0)] < sought)) ? 8 : 0;          \
            u32 eight = first + rank, left = keys - rank;                                                      \
            for (u32 i = 0; i < 8; i++)                                                                        \
                rank += ((i < left) & (units[eight + i] < sought)) ? 1 : 0;                                    \
            u32 found = codes[(byte + 2 * keys + bytes_of_code - 1) / bytes_of_code + rank];                   \
            u32 code = is_record ? found : word;                                                               \
            u32 block = top - code;                                                                            \
            if (block >= head.words[0])                                                                        \
                return code;                                                                                   \
            GLOBAL const Window *window = PART(Window, 2) + block;                                             \
            word = window->word;                                                                               \
            key = window_key(window, addr);                                                                    \
        }                                                                                                      \
    }                                                                                                          \
    KERNEL(name, u128, name##_code)

WIDELEAF(wideleaf8, u8, 1, 0xffu)
WIDELEAF(wideleaf16, u16, 2, 0xffffu)
WIDELEAF(wideleaf32, u32, 4, 0x3fffffffu)
