/* The hash of a flow, by which equal-cost paths share packets: as src/forward/hash.rs has it, for the same answers. */
#ifndef FIBULA_FLOW_H
#define FIBULA_FLOW_H

#include "kernel.h"

enum { TCP = 6, UDP = 17, DCCP = 33, ICMPV6 = 58, SCTP = 132, UDP_LITE = 136 };

INLINE int has_ports(u8 protocol)
{
    return protocol == TCP || protocol == UDP || protocol == DCCP || protocol == SCTP || protocol == UDP_LITE;
}

INLINE u64 mix(u64 word)
{
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

INLINE u64 end_v4(u64 seed, u32 address, u16 port)
{
    return mix(seed ^ ((u64)address << 16 | port));
}

INLINE u64 end_v6(u64 seed, u64 high, u64 low, u16 port)
{
    return mix(mix(seed ^ high) ^ low ^ (u64)port << 48);
}

INLINE u32 flow(u64 ends, u8 protocol)
{
    return mix(ends + protocol) >> 32;
}

#endif
