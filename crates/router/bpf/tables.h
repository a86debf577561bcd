/* The tables of the router, as user space writes them (src/port/xdp), and how addresses are looked up in them.
 *
 * A table is an array of cache lines, an arena. There are six: two for each family and two of ways out. In each pair one is
 * current and the other one is written; `state` says which, in one word, which a packet reads once.
 */
#ifndef FIBULA_TABLES_H
#define FIBULA_TABLES_H

#include "kernel.h"

#define LINE 64
#define NONE 0xffffffffu

/* Where the parts of an arena begin, in lines, and what is to be known of them. */
struct layout {
    union {
        struct {            /* IPv4, runmap: the records, root included, begin at line 0 */
            u32 code_shift; /* log2 of the bytes of a code */
            u32 code_mask;  /* all bits of a code, which is the escape, too */
            u32 groups, group_count;
        } v4;
        struct {            /* IPv6, wideleaf: the words begin at line 0 */
            u32 code_shift;
            u32 code_mask;
            u32 top;        /* the largest code: that of deep block 0 */
            u32 records;
            u32 windows, deep_blocks;
            u32 groups, group_count;
        } v6;
        struct {            /* ways out */
            u32 ways, way_count;
            u32 exits, shares;
            u32 neighbours, neighbour_mask; /* of buckets, a line each */
        } egress;
        u32 words[16];
    };
};

enum { ARENAS = 6 };

struct shared {
    /* The arenas that are current, one more than their numbers: IPv4 in byte 0, IPv6 in byte 1, ways out in byte 2. 0: none. */
    u64 state;
    /* A bit for each address of the machine; other addresses may share it. */
    u64 own[64];
    struct layout layouts[8];
    u32 zero; /* The verifier does not know that it is 0. */
};

struct shared shared;

SECTION("maps") struct map arenas = { ARRAY_OF_MAPS, 4, 4, ARENAS, 0 };

/* A line of an arena; 0 if there is none. */
INLINE u8 *line_of(void *arena, u32 line)
{
    return map_lookup(arena, &line);
}

/* The word of 32 bits of that number, counted from a line on. */
INLINE u32 word32(void *arena, u32 line, u32 number, u32 missing)
{
    u8 *here = line_of(arena, line + (number >> 4));
    if (!here)
        return missing;
    KEEP(here);
    return *(u32 *)(here + (number & 15) * 4);
}

/* The eight bytes at a byte of an arena, which may lie in two lines. There is a spare line at its end. 0 if it is not there. */
INLINE int bytes_at(void *arena, u32 at, u64 *found)
{
    u32 off = at & (LINE - 1);
    u8 *here = line_of(arena, at >> 6);
    KEEP(off);
    if (!here)
        return 0;
    KEEP(here);
    if (off <= LINE - 8) {
        *found = *(u64 *)(here + off);
        return 1;
    }
    u64 low = *(u64 *)(here + LINE - 8);
    here = line_of(arena, (at >> 6) + 1);
    if (!here)
        return 0;
    u32 bits = (off & 7) * 8;
    *found = low >> bits | *(u64 *)here << (64 - bits);
    return 1;
}

INLINE u32 ones(u64 word)
{
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return word * 0x0101010101010101 >> 56;
}


/* The hop of an address in a /24 that longer routes divide. The record of its /18 is at `at`; the places of the records of such
 * networks are in front of it, that of escape 0 nearest. */
INLINE u32 find_long(void *arena, u32 at, u32 escape, u32 address)
{
    u64 word, behind;
    if (!bytes_at(arena, at - 4 * (escape + 1), &word))
        return NONE;
    /* A bitmap of 256 bits, for each word of it the number of bits behind it, and codes of 32 bits. */
    u32 record = word, part = address >> 6 & 3;
    if (!bytes_at(arena, record + 8 * part, &word) || !bytes_at(arena, record + 32 + part, &behind))
        return NONE;
    u32 count = ones(word >> (address & 63)) + (behind & 255);
    if (!bytes_at(arena, record + 36 + 4 * (count - 1), &word))
        return NONE;
    return (u32)word - 1;
}

/* The hop of an address, NONE if there is no route. crates/engines/src/runmap has the scheme. */
INLINE u32 find_v4(void *arena, const volatile struct layout *layout, u32 address)
{
    u32 at = word32(arena, 0, address >> 14, 0);
    u32 shift = layout->v4.code_shift & 3, mask = layout->v4.code_mask;
    u64 map, word;
    if (!at || !bytes_at(arena, at, &map))
        return NONE;
    u32 run = ones(map >> (address >> 8 & 63)) - 1;
    if (!bytes_at(arena, at + 8 + (run << shift), &word))
        return NONE;
    /* The 64 largest codes are escapes. */
    u32 code = word & mask, escapes = mask - 63;
    if (code >= escapes)
        return find_long(arena, at, code - escapes, address);
    return code - 1;
}

/* A bit at the top of each 16-bit lane in which the key is below the other one. */
INLINE u64 below(u64 keys, u64 than)
{
    const u64 top = 0x8000800080008000;
    u64 less = (keys | top) - (than & ~top);
    return ((~keys & than) | (~(keys ^ than) & ~less)) & top;
}

/* How many of so many keys of a line, from `first` on, are below the key. */
INLINE u32 rank16(const u64 *line, u32 first, u32 keys, u32 key)
{
    u64 than = key * 0x0001000100010001ull;
    u32 lanes = ((1u << keys) - 1) << first;
    u64 sum = 0;
#pragma unroll
    for (u32 word = 0; word < 8; word++) {
        /* Bit i of four is put to bit 16 i + 15. */
        u64 wanted = (u64)(lanes >> 4 * word & 15) * 0x1000200040008000ull & 0x8000800080008000ull;
        sum += (below(line[word], than) & wanted) >> 15;
    }
    return sum * 0x0001000100010001ull >> 48;
}

/* 1 if it is, without a branch: the verifier follows each side of one, and a search has many in a row. */
INLINE u64 is_less(u64 one, u64 other)
{
    return ((~one & other) | (~(one ^ other) & (one - other))) >> 63;
}

/* The window of a deep block, two in a line. */
struct window {
    u64 low, high; /* the first address */
    u32 word;
    u32 shift;
    u32 unused[2];
};

/* The word of a deep block, and the key of an address in its window. 0 if there is no such block. */
INLINE int enter(void *arena, const volatile struct layout *layout, u32 block, u64 high, u64 low, u32 *word, u32 *key)
{
    u8 *here = line_of(arena, layout->v6.windows + (block >> 1));
    if (!here)
        return 0;
    KEEP(here);
    struct window *window = (struct window *)(here + (block & 1) * sizeof *window);
    u64 is_before = is_less(high, window->high), differs = high ^ window->high;
    is_before |= ~(differs | -differs) >> 63 & is_less(low, window->low);
    high -= window->high + is_less(low, window->low);
    low -= window->low;
    /* Both halves shifted up by less than 64, and what goes out of them; from 64 on the low half becomes the high one. */
    u32 by = window->shift + 16, up = by & 63;
    u64 far = -(u64)(by >> 6 & 1);
    u64 out_low = low >> 1 >> (63 - up), out_high = high >> 1 >> (63 - up);
    u64 bits = (far & low << up) | (~far & (high << up | out_low));
    u64 above = (far & (out_low | high)) | (~far & out_high);
    u64 outside = (above | -above) >> 63;
    KEEP(outside);
    *key = ((u32)(bits >> 32) & ((u32)outside - 1)) | -(u32)(outside & ~is_before);
    *word = window->word;
    return 1;
}

/* The code of a key in the record that a word names, NONE if there is no such record. */
INLINE u32 find_code(void *arena, const volatile struct layout *layout, u32 word, u32 key)
{
    if (word >> 31)
        return NONE;
    u32 at = word >> 3 & 0x7fffffc, keys = word & 31;
    u8 *here = line_of(arena, layout->v6.records + (at >> 6));
    if (!here)
        return NONE;
    KEEP(here);
    u32 rank = rank16((u64 *)here, at >> 1 & 31, keys & 31, key >> 16);
    u32 shift = layout->v6.code_shift & 3;
    u32 size = 1u << shift;
    u32 codes = (at + 2 * keys + size - 1) & ~(size - 1);
    at = codes + (rank << shift);
    /* It does not cross eight bytes. */
    here = line_of(arena, layout->v6.records + (at >> 6));
    if (!here)
        return NONE;
    KEEP(here);
    return *(u64 *)(here + (at & 56)) >> (at & 7) * 8 & layout->v6.code_mask;
}

/* One more than the deep blocks within each other in which an address may be. What needs more is passed on to the router's threads, as if
 * it had no route. The verifier does not follow many more. */
#define STAGES 8

/* The hop of an address, NONE if there is no route. crates/engines/src/wideleaf has the scheme.
 *
 * The verifier follows each way through a program until it meets another one that knows as much of each number. If it knew that `zero`
 * is 0, ways would differ, and it would follow too many of them. */
INLINE u32 find_v6(void *arena, const volatile struct layout *layout, u64 high, u64 low)
{
    u32 key = high >> 16;
    u32 word = word32(arena, 0, high >> 48, 0);
    for (u32 stage = 0; stage < STAGES; stage++) {
        u32 zero = *(volatile u32 *)&shared.zero;
        for (u32 level = 0; level < 3; level++) {
            if (word >> 31) {
                u32 shift = word >> 27;
                word = word32(arena, 0, (word & 0x7ffffff) + (key >> shift), 0);
                key <<= 32 - shift;
            }
            word ^= zero;
            key ^= zero;
            KEEP(word);
            KEEP(key);
        }
        u32 code = word;
        if (word >> 30)
            code = find_code(arena, layout, word, key);
        code ^= zero;
        KEEP(code);
        u32 block = layout->v6.top - code;
        if (block >= layout->v6.deep_blocks)
            return code - 1;
        if (!enter(arena, layout, block, high, low, &word, &key))
            return NONE;
        word ^= zero;
        key ^= zero;
        KEEP(word);
        KEEP(key);
    }
    return NONE;
}

/* The arena that is current in that place of the state, and its layout. */
INLINE void *current(u64 state, u32 place, const volatile struct layout **layout)
{
    u32 number = (state >> 8 * place & 15) - 1;
    if (number >= ARENAS)
        return 0;
    KEEP(number);
    *layout = &shared.layouts[number & 7];
    return map_lookup(&arenas, &number);
}

/* What packets to the address do: the number of their group, NONE if there is no route. */
INLINE u32 group_v4(u64 state, u32 address)
{
    const volatile struct layout *layout;
    void *arena = current(state, 0, &layout);
    if (!arena)
        return NONE;
    u32 hop = find_v4(arena, layout, address);
    return hop < layout->v4.group_count ? word32(arena, layout->v4.groups, hop, NONE) : NONE;
}

INLINE u32 group_v6(u64 state, u64 high, u64 low)
{
    const volatile struct layout *layout;
    void *arena = current(state, 1, &layout);
    if (!arena)
        return NONE;
    u32 hop = find_v6(arena, layout, high, low);
    return hop < layout->v6.group_count ? word32(arena, layout->v6.groups, hop, NONE) : NONE;
}

#endif
