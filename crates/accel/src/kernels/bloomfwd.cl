// Bloomfwd, as `schemes/bloomfwd.rs` states it.

#define GOLDEN 0x9e3779b9u
#define MURMUR_SEEDED 0
#define MURMUR 1
#define KNUTH 2

typedef struct {
    u32 len, bits, hashes, first_word, first_bucket, buckets, unused[2];
} Level;

INLINE u32 rotated(u32 x, u32 by)
{
    u64 both = (u64)x << by;
    return (u32)both | (u32)(both >> 32);
}

INLINE u32 fmix32(u32 x)
{
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

INLINE u64 fmix64(u64 x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdul;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ul;
    return x ^ x >> 33;
}

INLINE u32 h2(u32 x)
{
    x = (x ^ x >> 16) * 0x045d9f3bu;
    x = (x ^ x >> 16) * 0x045d9f3bu;
    return x ^ x >> 16;
}

INLINE u32 murmur_block(u32 hash, u32 block)
{
    hash ^= rotated(block * 0xcc9e2d51u, 15) * 0x1b873593u;
    return rotated(hash, 13) * 5 + 0xe6546b64u;
}

// The hash number `index` of a key.
INLINE u32 hash_u32(u32 function, u32 key, u32 index)
{
    if (function == MURMUR_SEEDED)
        return fmix32(murmur_block(index * GOLDEN, key) ^ 4);
    u32 first = function == MURMUR ? fmix32(key) : function == KNUTH ? key * 0x9e3779b1u : h2(key);
    return first + index * (rotated(first, 16) | 1);
}

INLINE u32 hash_u64(u32 function, u64 key, u32 index)
{
    u32 low = (u32)key, high = (u32)(key >> 32);
    if (function == MURMUR_SEEDED)
        return fmix32(murmur_block(murmur_block(index * GOLDEN, low), high) ^ 8);
    if (function == MURMUR || function == KNUTH) {
        u64 hash = function == MURMUR ? fmix64(key) : key * 0x9e3779b97f4a7c15ul;
        return (u32)(hash >> 32) + index * ((u32)hash | 1);
    }
    u32 first = h2(h2(high) ^ low);
    return first + index * (rotated(first, 16) | 1);
}

// Where a hash points, below `len`.
INLINE u32 position(u32 hash, u32 len)
{
    return (u32)((u64)hash * len >> 32);
}

// Whether the filter of a level lets the key pass.
#define PASSES(hashed)                                                                                         \
    INLINE bool passes_##hashed(GLOBAL const u64 *filters, GLOBAL const Level *level, u32 function, hashed key) \
    {                                                                                                          \
        for (u32 index = 0; index < level->hashes; index++) {                                                  \
            u32 at = position(hash_##hashed(function, key, index), level->bits);                               \
            if (!(filters[level->first_word + at / 64] >> (at & 63) & 1))                                      \
                return false;                                                                                  \
        }                                                                                                      \
        return true;                                                                                           \
    }

PASSES(u32)
PASSES(u64)

// The keys as filters and hashes take them, and whether two are the same.
#define HASHED_u32(key) (key)
#define HASHED_u64(key) (key)
#define HASHED_u128(key) (HIGH(key) * 0x9e3779b97f4a7c15ul ^ LOW(key))
#define SAME_u32(a, b) ((a) == (b))
#define SAME_u64(a, b) ((a) == (b))
#define SAME_u128(a, b) (HIGH(a) == HIGH(b) && LOW(a) == LOW(b))

// The code of a key at a level; 0 if it is not there. A bucket of 64 bytes has keys, then their codes, then the mark,
// with all bits set if the search goes on in the next bucket.
#define FIND(name, key_type, hashed, type, slots, on)                                                          \
    INLINE u32 name(GLOBAL const u8 *table, Head head, GLOBAL const Level *level, key_type key)                \
    {                                                                                                          \
        hashed hash = HASHED_##key_type(key);                                                                  \
        if (!passes_##hashed(PART(u64, 2), level, head.words[3], hash))                                        \
            return 0;                                                                                          \
        u32 at = position(hash_##hashed(head.words[4], hash, 0), level->buckets);                              \
        for (u32 round = 0; round < level->buckets; round++) {                                                 \
            GLOBAL const u8 *line = PART(u8, 3) + (u64)(level->first_bucket + at) * 64;                        \
            GLOBAL const key_type *keys = (GLOBAL const key_type *)line;                                       \
            /* The first slot with the key, found without a branch. */                                         \
            u32 slot = slots;                                                                                  \
            for (u32 i = slots; i-- > 0;)                                                                      \
                slot = SAME_##key_type(keys[i], key) ? i : slot;                                               \
            u32 code = ((GLOBAL const type *)(line + slots * sizeof(key_type)))[slot];                         \
            if (code != on)                                                                                    \
                return code;                                                                                   \
            at = at + 1 == level->buckets ? 0 : at + 1;                                                        \
        }                                                                                                      \
        return 0;                                                                                              \
    }

FIND(find_u32_16, u32, u32, u16, 10, 0xffffu)
FIND(find_u32_32, u32, u32, u32, 7, 0xffffffffu)
FIND(find_u64_16, u64, u64, u16, 6, 0xffffu)
FIND(find_u64_32, u64, u64, u32, 5, 0xffffffffu)
FIND(find_u128_16, u128, u64, u16, 3, 0xffffu)
FIND(find_u128_32, u128, u64, u32, 3, 0xffffffffu)

#define BLOOMFWD4(name, type, find)                                                                            \
    INLINE u32 name##_code(GLOBAL const u8 *table, Head head, u32 addr)                                        \
    {                                                                                                          \
        GLOBAL const Level *levels = PART(Level, 0);                                                           \
        for (u32 i = 0; i < head.words[1]; i++) {                                                              \
            u32 code = find(table, head, levels + i, addr & 0xffffffffu << (32 - levels[i].len));              \
            if (code != 0)                                                                                     \
                return code;                                                                                   \
        }                                                                                                      \
        return PART(type, 1)[(u64)addr >> (32 - head.words[0])];                                               \
    }                                                                                                          \
    KERNEL(name, u32, name##_code)

BLOOMFWD4(bloomfwd4_16, u16, find_u32_16)
BLOOMFWD4(bloomfwd4_32, u32, find_u32_32)

#define BLOOMFWD6(name, type, find, find_long)                                                                 \
    INLINE u32 name##_code(GLOBAL const u8 *table, Head head, u128 addr)                                       \
    {                                                                                                          \
        GLOBAL const Level *levels = PART(Level, 0);                                                           \
        u32 count = head.words[1], long_levels = head.words[2];                                                \
        GLOBAL const Level *gate = levels + count + long_levels;                                               \
        if (long_levels > 0 && passes_u64(PART(u64, 2), gate, head.words[3], HIGH(addr))) {                    \
            for (u32 i = count; i < count + long_levels; i++) {                                                \
                u128 key = addr;                                                                               \
                LOW(key) &= ~(u64)0 << (128 - levels[i].len);                                                  \
                u32 code = find_long(table, head, levels + i, key);                                            \
                if (code != 0)                                                                                 \
                    return code;                                                                               \
            }                                                                                                  \
        }                                                                                                      \
        for (u32 i = 0; i < count; i++) {                                                                      \
            u32 code = find(table, head, levels + i, HIGH(addr) & ~(u64)0 << (64 - levels[i].len));            \
            if (code != 0)                                                                                     \
                return code;                                                                                   \
        }                                                                                                      \
        return PART(type, 1)[HIGH(addr) >> 32 >> (32 - head.words[0])];                                        \
    }                                                                                                          \
    KERNEL(name, u128, name##_code)

BLOOMFWD6(bloomfwd6_16, u16, find_u64_16, find_u128_16)
BLOOMFWD6(bloomfwd6_32, u32, find_u64_32, find_u128_32)
