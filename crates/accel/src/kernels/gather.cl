// Reads at random places, as `schemes/gather.rs` states them.

INLINE u32 gather_sum(GLOBAL const u8 *table, Head head, u32 key)
{
    GLOBAL const u32 *words = PART(u32, 0);
    u32 sum = 0;
    for (u32 read = 0; read < 16; read++)
        sum += words[((key ^ key >> 15) + read * 0x85ebca6bu) * 0x9e3779b1u >> head.words[0]];
    return sum;
}

KERNEL(gather, u32, gather_sum)
