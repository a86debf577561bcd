/* The fast path of an XDP port: plain packets are forwarded in the kernel, all others go on as without it.
 *
 *   frame -> plain? -> group of the destination -> way out, ready? -> new MAC addresses, TTL -> the port's interface
 *              | no                                    | no
 *              +---------------------------------------+-> slow(): the XDP socket of the queue, or the kernel
 *
 * A packet is plain by the rules of src/forward/fast.rs, without a VLAN tag. What is not, or has no way out that is ready, is
 * passed on unchanged and counted. So whatever is answered, fragmented, or waits is the business of the router in user space.
 */
#include "flow.h"
#include "tables.h"

/* Why a packet is passed on: the order is that of `Why` in src/port/xdp/counts.rs. */
enum why { FRAME, HEADER, OWN, NO_TABLE, NO_ROUTE, NO_EXIT, TOO_BIG, NEIGHBOUR, FLOW, CHECKSUM, WHYS };

/* What a port's program knows beforehand. */
struct config {
    u64 seed;          /* of the flows' hash */
    u32 mac_first;     /* four bytes of the port's MAC address, */
    u32 mac_last;      /* and two */
    u32 port;          /* the router's number of the port */
    u32 ports;         /* how many there are */
    u32 is_partial;    /* whether senders leave checksums to the device */
    u32 padding;
};

const volatile struct config config = {};

struct sent {
    u64 packets_v4, bytes_v4, packets_v6, bytes_v6;
};

/* By the ports that packets came in and leave by. */
SECTION("maps") struct map sent = { PERCPU_ARRAY, 4, sizeof(struct sent), 0, 0 };
/* By the port that they came in by, and why. */
SECTION("maps") struct map passed = { PERCPU_ARRAY, 4, 8, 0, 0 };
/* Interfaces, by the router's number of the port. */
SECTION("maps") struct map ports = { DEVMAP, 4, 4, 0, 0 };
/* Sockets, by queue. */
SECTION("maps") struct map sockets = { XSKMAP, 4, 4, 0, 0 };
/* The machine's own addresses. */
SECTION("maps") struct map local4 = { HASH, 4, 4, 0, 0 };
SECTION("maps") struct map local6 = { HASH, 16, 4, 0, 0 };

/* What a way out does with packets. */
enum kind { PASSED_ON, READY, SHARED, ON_LINK };

struct exit {
    u32 macs[3];
    u16 kind;
    u16 port;
    u32 limit;   /* READY: the longest IP packet */
    u32 at;      /* SHARED: where its shares begin, */
    u32 count;   /* and how many there are */
    u32 padding;
};

struct neighbour {
    u64 high, low; /* the address; IPv4 in the lower half of `low` */
    u32 port;      /* the port's number and, of IPv6, 0x10000; beyond it nobody is here */
    u32 exit;
    u64 padding;
};

enum { PROBES = 4 };

/* What is known of a plain packet. */
struct plain {
    u8 is_v6;
    u8 protocol;
    u16 len;                              /* of the IP packet */
    u16 from_port, to_port;
    u64 from_high, from_low, to_high, to_low; /* of IPv4, the lower halves */
};

#define ETHERNET 14

/* Few others share a bit with an address of the machine: the hash table is asked for these alone. */
INLINE int may_be_own(u64 folded)
{
    u64 hash = folded * 0x9e3779b97f4a7c15;
    return shared.own[hash >> 58] >> (hash >> 52 & 63) & 1;
}

INLINE int is_own_v4(u32 address, u32 as_it_stands)
{
    return may_be_own(address) && map_lookup(&local4, &as_it_stands);
}

INLINE int is_own_v6(u64 high, u64 low, const u32 *as_it_stands)
{
    if (!may_be_own((high << 29 | high >> 35) ^ low))
        return 0;
    u32 address[4];
#pragma unroll
    for (u32 word = 0; word < 4; word++)
        address[word] = as_it_stands[word];
    return map_lookup(&local6, address) != 0;
}

/* Neither 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16 nor 224.0.0.0/3. */
INLINE int forwards_v4(u32 address)
{
    return (address >> 24) - 1 < 223 && address >> 24 != 127 && address >> 16 != 0xa9fe;
}

/* Neither ::, ::1, ::ffff:0:0/96, fe80::/10 nor ff00::/8. */
INLINE int forwards_v6(u64 high, u64 low)
{
    return high >> 61 == 1 || !((high == 0 && (low <= 1 || low >> 32 == 0xffff)) || high >> 54 == 0x3fa || high >> 56 == 0xff);
}

INLINE u32 fold(u64 sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

/* Whether a checksum field has the sum of the pseudo header: a sender's kernel left it to a device. Words are as they stand
 * in the packet; a sum in one's complement arithmetic is the same in both byte orders, but for its own. */
INLINE int is_left_out(u64 addresses, u16 len, u8 protocol, u16 field)
{
    return field && field == fold(addresses + swap16(len) + swap16(protocol));
}

/* Reads ports, and the checksum behind them if senders may have left it out, of what begins at `at` and is `len` bytes
 * long. Returns whether the checksum was left out. */
INLINE int transport(struct plain *plain, u8 *at, u8 *end, u16 len, u64 addresses)
{
    if (!has_ports(plain->protocol) || len < 4 || at + 4 > end)
        return 0;
    plain->from_port = swap16(*(u16 *)at);
    plain->to_port = swap16(*(u16 *)(at + 2));
    if (!config.is_partial)
        return 0;
    if (plain->protocol == TCP)
        return len >= 18 && at + 18 <= end && is_left_out(addresses, len, TCP, *(u16 *)(at + 16));
    if (plain->protocol == UDP)
        return len >= 8 && at + 8 <= end && is_left_out(addresses, len, UDP, *(u16 *)(at + 6));
    return 0;
}

/* Reads an IPv4 packet. Returns why it is not plain; WHYS if it is. */
INLINE u32 read_v4(struct plain *plain, u8 *ip, u8 *end)
{
    if (ip + 20 > end)
        return HEADER;
    u32 *words = (u32 *)ip;
    u32 from = swap32(words[3]), to = swap32(words[4]);
    u16 len = swap16(*(u16 *)(ip + 2));
    u64 sum = (u64)words[0] + words[1] + words[2] + words[3] + words[4];
    if (ip[0] != 0x45 || ip[8] < 2 || len < 20 || len > end - ip || fold(sum) != 0xffff)
        return HEADER;
    if (!forwards_v4(from) || !forwards_v4(to) || is_own_v4(from, words[3]))
        return HEADER;
    if (is_own_v4(to, words[4]))
        return OWN;
    plain->is_v6 = 0;
    plain->protocol = ip[9];
    plain->len = len;
    plain->from_low = from;
    plain->to_low = to;
    plain->from_port = plain->to_port = 0;
    /* Fragments have no ports, and a kernel completes checksums before it fragments. */
    if (swap16(*(u16 *)(ip + 6)) & 0x3fff)
        return WHYS;
    return transport(plain, ip + 20, end, len - 20, (u64)words[3] + words[4]) ? CHECKSUM : WHYS;
}

INLINE u32 read_v6(struct plain *plain, u8 *ip, u8 *end)
{
    if (ip + 40 > end)
        return HEADER;
    u32 len = swap16(*(u16 *)(ip + 4)) + 40;
    /* A packet beyond 65,535 bytes, as a hop-by-hop header, is slow. */
    if (ip[0] >> 4 != 6 || ip[6] == 0 || ip[7] < 2 || len > end - ip || len > 0xffff)
        return HEADER;
    u64 *words = (u64 *)(ip + 8);
    u64 from_high = swap64(words[0]), from_low = swap64(words[1]);
    u64 to_high = swap64(words[2]), to_low = swap64(words[3]);
    if (!forwards_v6(from_high, from_low) || !forwards_v6(to_high, to_low))
        return HEADER;
    if (is_own_v6(to_high, to_low, (u32 *)(ip + 24)))
        return OWN;
    plain->is_v6 = 1;
    plain->protocol = ip[6];
    plain->len = len;
    plain->from_high = from_high;
    plain->from_low = from_low;
    plain->to_high = to_high;
    plain->to_low = to_low;
    plain->from_port = plain->to_port = 0;
    u32 *halves = (u32 *)(ip + 8);
    u64 addresses = (u64)halves[0] + halves[1] + halves[2] + halves[3] + halves[4] + halves[5] + halves[6] + halves[7];
    if (transport(plain, ip + 40, end, len - 40, addresses))
        return CHECKSUM;
    /* Behind an extension header may be one that was left out. */
    return config.is_partial && !has_ports(ip[6]) && ip[6] != ICMPV6 ? CHECKSUM : WHYS;
}

INLINE struct exit *exit_of(void *arena, u32 line, u32 number)
{
    u8 *here = line_of(arena, line + (number >> 1));
    if (!here)
        return 0;
    KEEP(here);
    return (struct exit *)(here + (number & 1) * 32);
}

/* The hash that chooses among equal-cost paths. False if user space has to compute it. */
INLINE int hash(const struct plain *plain, u32 *found)
{
    u64 seed = config.seed;
    u64 ends;
    if (plain->is_v6) {
        /* Other headers may be extensions, behind which ports follow. */
        if (!has_ports(plain->protocol) && (plain->protocol != ICMPV6 || plain->len < 48))
            return 0;
        ends = end_v6(seed, plain->from_high, plain->from_low, plain->from_port) +
               end_v6(seed, plain->to_high, plain->to_low, plain->to_port);
    } else {
        ends = end_v4(seed, plain->from_low, plain->from_port) + end_v4(seed, plain->to_low, plain->to_port);
    }
    *found = flow(ends, plain->protocol);
    return 1;
}

/* The way out to the destination itself, which is on the link of a port. */
INLINE struct exit *neighbour(void *arena, const volatile struct layout *layout, const struct plain *plain, u16 port)
{
    u64 high = plain->is_v6 ? plain->to_high : 0, low = plain->to_low;
    u32 wanted = plain->is_v6 ? port | 0x10000 : port;
    u32 bucket = mix(mix(high ^ config.seed) ^ low ^ (u64)wanted << 40);
#pragma unroll
    for (u32 probe = 0; probe < PROBES; probe++) {
        u8 *here = line_of(arena, layout->egress.neighbours + (bucket + probe & layout->egress.neighbour_mask));
        if (!here)
            return 0;
        struct neighbour *both = (struct neighbour *)here;
        if (both[0].low == low && both[0].high == high && both[0].port == wanted)
            return exit_of(arena, layout->egress.exits, both[0].exit);
        if (both[1].low == low && both[1].high == high && both[1].port == wanted)
            return exit_of(arena, layout->egress.exits, both[1].exit);
    }
    return 0;
}

/* The way out of a packet, if there is one that is ready; else why not. */
INLINE u32 way_out(u64 state, const struct plain *plain, u32 group, struct exit **found)
{
    const volatile struct layout *layout;
    void *arena = current(state, 2, &layout);
    if (!arena)
        return NO_TABLE;
    if (group >= layout->egress.way_count)
        return NO_EXIT;
    struct exit *exit = exit_of(arena, layout->egress.ways, group);
    if (!exit)
        return NO_EXIT;
    if (exit->kind == SHARED) {
        u32 value;
        if (!hash(plain, &value))
            return FLOW;
        u32 share = (u64)value * exit->count >> 32;
        u32 number = word32(arena, layout->egress.shares, exit->at + share, NONE);
        exit = exit_of(arena, layout->egress.exits, number);
        if (!exit)
            return NO_EXIT;
    }
    if (exit->kind == ON_LINK) {
        exit = neighbour(arena, layout, plain, exit->port);
        if (!exit)
            return NEIGHBOUR;
    }
    if (exit->kind != READY)
        return NO_EXIT;
    if (plain->len > exit->limit)
        return TOO_BIG;
    *found = exit;
    return WHYS;
}

/* Rewrites the packet, whose header was checked, and sends it. Returns what becomes of it. */
INLINE int leave(struct xdp_md *context, const struct plain *plain, const struct exit *exit)
{
    u64 frame_len = context->data_end - context->data;
    /* What stands behind the packet is cut off. */
    if (frame_len > ETHERNET + (u64)plain->len) {
        if (adjust_tail(context, ETHERNET + (int)plain->len - (int)frame_len))
            return XDP_DROP;
    }
    u8 *data = (u8 *)(u64)context->data, *end = (u8 *)(u64)context->data_end;
    if (data + ETHERNET + 20 > end)
        return XDP_DROP;
    u32 *macs = (u32 *)data;
    macs[0] = exit->macs[0];
    macs[1] = exit->macs[1];
    macs[2] = exit->macs[2];
    u8 *ip = data + ETHERNET;
    if (plain->is_v6) {
        ip[7]--;
    } else {
        /* Equation 3 of RFC 1624. The word with the TTL as its lower half becomes less by one: ~m + m' = 0xfffe. */
        u16 *checksum = (u16 *)(ip + 10);
        u32 changed = (u16)~*checksum + 0xfffe;
        *checksum = ~(changed + (changed >> 16));
        ip[8]--;
    }
    u32 port = exit->port, pair = config.port * config.ports + port;
    struct sent *counted = map_lookup(&sent, &pair);
    if (counted && plain->is_v6) {
        counted->packets_v6++;
        counted->bytes_v6 += frame_len;
    } else if (counted) {
        counted->packets_v4++;
        counted->bytes_v4 += frame_len;
    }
    return redirect_map(&ports, port, XDP_DROP);
}

/* Forwards a packet if it is plain. Returns what becomes of it, or, below zero, why it is passed on. */
INLINE int fast(struct xdp_md *context)
{
    u8 *data = (u8 *)(u64)context->data, *end = (u8 *)(u64)context->data_end;
    if (data + ETHERNET > end)
        return -1 - FRAME;
    if (*(u32 *)data != config.mac_first || *(u16 *)(data + 4) != config.mac_last)
        return -1 - FRAME;
    /* A sender's address that is a group's. */
    if (data[6] & 1)
        return -1 - FRAME;
    /* Read once: what it says belongs together, and what it names is not written before this packet is done. */
    u64 state = *(volatile u64 *)&shared.state;
    struct plain plain;
    u16 ether_type = *(u16 *)(data + 12);
    u32 why, group;
    if (ether_type == swap16(0x0800)) {
        why = read_v4(&plain, data + ETHERNET, end);
        if (why != WHYS)
            return -1 - (int)why;
        if (!(state & 15))
            return -1 - NO_TABLE;
        group = group_v4(state, plain.to_low);
    } else if (ether_type == swap16(0x86dd)) {
        why = read_v6(&plain, data + ETHERNET, end);
        if (why != WHYS)
            return -1 - (int)why;
        if (!(state >> 8 & 15))
            return -1 - NO_TABLE;
        /* So that the verifier does not follow a lookup for each protocol (`find_v6`). */
        u32 zero = *(volatile u32 *)&shared.zero;
        plain.protocol ^= zero;
        plain.from_port ^= zero;
        plain.to_port ^= zero;
        group = group_v6(state, plain.to_high, plain.to_low);
    } else {
        return -1 - FRAME;
    }
    if (group == NONE)
        return -1 - NO_ROUTE;
    struct exit *exit = 0;
    why = way_out(state, &plain, group, &exit);
    if (why != WHYS || !exit)
        return -1 - (int)why;
    return leave(context, &plain, exit);
}

/* What becomes of other packets: as the program of an AF_XDP port does (src/port/afxdp/program.rs). */
INLINE int slow(struct xdp_md *context)
{
    u8 *data = (u8 *)(u64)context->data, *end = (u8 *)(u64)context->data_end;
    if (data + ETHERNET + 20 > end)
        return XDP_PASS;
    if (*(u32 *)data != config.mac_first || *(u16 *)(data + 4) != config.mac_last)
        return XDP_PASS;
    u16 ether_type = *(u16 *)(data + 12);
    u8 *ip = data + ETHERNET;
    if (ether_type == swap16(0x8100) || ether_type == swap16(0x88a8)) {
        ether_type = *(u16 *)(data + 16);
        ip = data + ETHERNET + 4;
    }
    if (ether_type == swap16(0x0800)) {
        if (ip + 20 > end)
            return XDP_PASS;
        u32 address = *(u32 *)(ip + 16);
        if (map_lookup(&local4, &address))
            return XDP_PASS;
    } else if (ether_type == swap16(0x86dd)) {
        if (ip + 40 > end)
            return XDP_PASS;
        /* fe80::/10 is the link's own, ff00::/8 multicast. */
        if (ip[24] == 0xff || (ip[24] == 0xfe && (ip[25] & 0xc0) == 0x80))
            return XDP_PASS;
        u32 address[4];
#pragma unroll
        for (u32 word = 0; word < 4; word++)
            address[word] = *(u32 *)(ip + 24 + 4 * word);
        if (map_lookup(&local6, address))
            return XDP_PASS;
    } else {
        return XDP_PASS;
    }
    return redirect_map(&sockets, context->rx_queue_index, XDP_PASS);
}

SECTION("xdp") int forward(struct xdp_md *context)
{
    int done = fast(context);
    if (done >= 0)
        return done;
    u32 at = config.port * WHYS + (u32)(-1 - done);
    u64 *count = map_lookup(&passed, &at);
    if (count)
        ++*count;
    return slow(context);
}

/* For tests: the group of the address that a frame begins with, of four or sixteen bytes. */
SECTION("xdp") int look_up(struct xdp_md *context)
{
    u8 *data = (u8 *)(u64)context->data, *end = (u8 *)(u64)context->data_end;
    u64 state = *(volatile u64 *)&shared.state;
    if (data + 20 > end)
        return NONE;
    if (data[0] == 4)
        return group_v4(state, swap32(*(u32 *)(data + 4)));
    return group_v6(state, swap64(*(u64 *)(data + 4)), swap64(*(u64 *)(data + 12)));
}
