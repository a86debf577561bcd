/*
 * Routers made of DPDK's own tables, since those of DPDK's example l3fwd have limits that are fixed when it is compiled. One is as short
 * as a loop can be: receive a burst, check headers, look all up at once, write MAC addresses, TTL and checksum, send by port. The
 * other one does step by step what the example does.
 */
#define _GNU_SOURCE
#include "rival.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_ip.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>
#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <rte_vect.h>

/* ---- packets ------------------------------------------------------------------------------ */

struct flow4 {
    uint32_t to;
    uint16_t port;
    uint16_t checksum;
};

static uint16_t write_flows(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count, uint16_t most, void *argument) {
    struct fib_traffic *traffic = argument;
    uint32_t next = traffic->next;
    (void)port, (void)queue, (void)most;
    for (uint16_t at = 0; at < count; at++) {
        uint8_t *frame = rte_pktmbuf_mtod(mbufs[at], uint8_t *);
        memcpy(frame, traffic->frame, FIB_FRAME);
        if (traffic->is_v6) {
            const struct fib_flow *flow = (const struct fib_flow *)traffic->each + next;
            memcpy(frame + 38, flow->to, 16);
            memcpy(frame + 54, &flow->port, 2);
            memcpy(frame + 60, &flow->checksum, 2);
        } else {
            const struct flow4 *flow = (const struct flow4 *)traffic->each + next;
            memcpy(frame + 30, &flow->to, 4);
            memcpy(frame + 34, &flow->port, 2);
            memcpy(frame + 24, &flow->checksum, 2);
        }
        next = next + 1 == traffic->flows ? 0 : next + 1;
    }
    traffic->next = next;
    return count;
}

int fib_traffic_attach(uint16_t port, uint16_t queue, struct fib_traffic *traffic) {
    /* A device that is closed and opened again under the same number still has its callbacks: each would write the packets anew. */
    static const struct rte_eth_rxtx_callback *all[RTE_MAX_ETHPORTS][FIB_QUEUES];
    if (port >= RTE_MAX_ETHPORTS || queue >= FIB_QUEUES)
        return -EINVAL;
    const struct rte_eth_rxtx_callback **attached = &all[port][queue];
    if (*attached != NULL && rte_eth_remove_rx_callback(port, queue, *attached) != 0)
        return -EBUSY;
    *attached = rte_eth_add_rx_callback(port, queue, write_flows, traffic);
    return *attached == NULL ? -rte_errno : 0;
}

/* ---- devices ------------------------------------------------------------------------------ */

int fib_port_by_name(const char *name) {
    uint16_t id;
    int done = rte_eth_dev_get_port_by_name(name, &id);
    return done == 0 ? id : done;
}

int fib_rival_open(const char *devargs) {
    static struct rte_mempool *mempool;
    /* The numbers of l3fwd: a cache of 256 for each thread. */
    if (mempool == NULL)
        mempool = rte_pktmbuf_pool_create("rival", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (mempool == NULL)
        return -rte_errno;
    int done = rte_dev_probe(devargs);
    if (done < 0)
        return done;
    struct rte_dev_iterator iterator;
    struct rte_eth_conf usual = {0};
    uint16_t id;
    RTE_ETH_FOREACH_MATCHING_DEV(id, devargs, &iterator) {
        rte_eth_iterator_cleanup(&iterator);
        done = rte_eth_dev_configure(id, 1, 1, &usual);
        if (done == 0)
            done = rte_eth_rx_queue_setup(id, 0, 1024, SOCKET_ID_ANY, NULL, mempool);
        if (done == 0)
            done = rte_eth_tx_queue_setup(id, 0, 1024, SOCKET_ID_ANY, NULL);
        if (done == 0)
            done = rte_eth_dev_start(id);
        return done == 0 ? id : done;
    }
    return -ENODEV;
}

static uint32_t v4(const uint8_t *address) {
    uint32_t word;
    memcpy(&word, address, 4);
    return rte_be_to_cpu_32(word);
}

/* ---- lookups of a burst ------------------------------------------------------------------- */

/* Destinations of a burst, and their hops; FIB_NO_HOP or more than FIB_NEIGHBOURS: none. */
struct lookup {
    union {
        uint32_t v4[FIB_BURST] __rte_aligned(64);
        uint8_t v6[FIB_BURST][16];
    };
    uint32_t hops[FIB_BURST] __rte_aligned(64);
    uint64_t wide[FIB_BURST] __rte_aligned(64);
};

static inline void look_up(struct fib_table *table, struct lookup *burst, uint16_t count) {
    switch (table->kind) {
    case FIB_KIND_LPM:
        /* Up to three more than there are, which nobody reads. */
        for (uint16_t at = 0; at < count; at += 4) {
            xmm_t four;
            memcpy(&four, &burst->v4[at], sizeof four);
            rte_lpm_lookupx4(table->lpm, four, &burst->hops[at], FIB_NO_HOP);
        }
        return;
    case FIB_KIND_FIB:
        rte_fib_lookup_bulk(table->fib, burst->v4, burst->wide, count);
        break;
    case FIB_KIND_LPM6:
        rte_lpm6_lookup_bulk_func(table->lpm6, burst->v6, (int32_t *)burst->hops, count);
        return;
    case FIB_KIND_FIB6:
        rte_fib6_lookup_bulk(table->fib6, burst->v6, burst->wide, count);
        break;
    default:
        break;
    }
    for (uint16_t at = 0; at < count; at++)
        burst->hops[at] = (uint32_t)burst->wide[at];
}

uint32_t fib_table_lookup(struct fib_table *table, const uint8_t *address) {
    static __thread struct lookup burst;
    memset(&burst, 0, 64);
    if (table->kind == FIB_KIND_LPM || table->kind == FIB_KIND_FIB)
        burst.v4[0] = v4(address);
    else
        memcpy(burst.v6[0], address, 16);
    look_up(table, &burst, 1);
    return burst.hops[0] < FIB_NEIGHBOURS ? burst.hops[0] : UINT32_MAX;
}

/* ---- forwarding --------------------------------------------------------------------------- */

static inline int is_v4(const struct fib_table *table) {
    return table->kind == FIB_KIND_LPM || table->kind == FIB_KIND_FIB;
}

/* Whether an IPv4 packet may be forwarded; its TTL is one less then. */
static inline int hop_v4(struct rte_ipv4_hdr *ip, uint16_t room) {
    if (unlikely(ip->version_ihl != RTE_IPV4_VHL_DEF || rte_be_to_cpu_16(ip->total_length) < sizeof *ip ||
                 rte_be_to_cpu_16(ip->total_length) > room || ip->time_to_live <= 1))
        return 0;
    ip->time_to_live--;
    /* RFC 1624: the word with the TTL is 0x100 less. */
    uint32_t sum = ip->hdr_checksum + (uint32_t)rte_cpu_to_be_16(0x0100);
    ip->hdr_checksum = (uint16_t)(sum + (sum >> 16));
    return 1;
}

static inline int hop_v6(struct rte_ipv6_hdr *ip, uint16_t room) {
    if (unlikely((rte_be_to_cpu_32(ip->vtc_flow) >> 28) != 6 || rte_be_to_cpu_16(ip->payload_len) + sizeof *ip > room ||
                 ip->hop_limits <= 1))
        return 0;
    ip->hop_limits--;
    return 1;
}

static inline uint64_t give_to(uint16_t port, struct rte_mbuf **mbufs, uint16_t count) {
    if (count == 0)
        return 0;
    uint16_t sent = rte_eth_tx_burst(port, 0, mbufs, count);
    if (unlikely(sent < count))
        rte_pktmbuf_free_bulk(mbufs + sent, count - sent);
    return count - sent;
}

static uint16_t route(struct fib_run *run, struct rte_mbuf **mbufs, uint16_t count, struct lookup *burst,
                      struct rte_mbuf *out[2][FIB_BURST], uint16_t have[2]) {
    struct fib_table *table = run->table;
    uint16_t good = 0;
    for (uint16_t at = 0; at < count; at++) {
        struct rte_mbuf *mbuf = mbufs[at];
        struct rte_ether_hdr *ether = rte_pktmbuf_mtod(mbuf, struct rte_ether_hdr *);
        uint16_t room = mbuf->data_len - sizeof *ether;
        int may;
        if (is_v4(table)) {
            struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(ether + 1);
            may = ether->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && hop_v4(ip, room);
            burst->v4[good] = rte_be_to_cpu_32(ip->dst_addr);
        } else {
            struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(ether + 1);
            may = ether->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && hop_v6(ip, room);
            memcpy(burst->v6[good], ip->dst_addr, 16);
        }
        if (likely(may))
            mbufs[good++] = mbuf;
        else
            rte_pktmbuf_free(mbuf);
    }
    look_up(table, burst, good);
    uint16_t dropped = count - good;
    for (uint16_t at = 0; at < good; at++) {
        uint32_t hop = burst->hops[at];
        if (unlikely(hop >= FIB_NEIGHBOURS)) {
            rte_pktmbuf_free(mbufs[at]);
            dropped++;
            continue;
        }
        struct rte_ether_hdr *ether = rte_pktmbuf_mtod(mbufs[at], struct rte_ether_hdr *);
        memcpy(&ether->dst_addr, run->neighbours[hop], 6);
        memcpy(&ether->src_addr, run->router, 6);
        out[hop & 1][have[hop & 1]++] = mbufs[at];
    }
    return dropped;
}

/* ---- as the example ----------------------------------------------------------------------- */

/* Its MAX_PKT_BURST and BURST_TX_DRAIN_US. */
#define EXAMPLE_BURST 32
#define EXAMPLE_DRAIN_US 100

/* What waits to be sent by a port. */
struct waiting {
    uint16_t count;
    struct rte_mbuf *mbufs[EXAMPLE_BURST];
};

struct example {
    struct fib_table *table;
    /* By neighbour: the first 12 bytes of a frame. */
    __m128i macs[FIB_NEIGHBOURS];
    struct waiting waiting[2];
    uint64_t dropped;
};

/*
 * The example asks the devices what packets are. Those that do not say so, as net_null, need --parse-ptype: a callback that reads and
 * writes each packet.
 */
static uint16_t set_types(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count, uint16_t most, void *argument) {
    (void)port, (void)queue, (void)most, (void)argument;
    for (uint16_t at = 0; at < count; at++) {
        if (at + 1 < count)
            rte_prefetch0(rte_pktmbuf_mtod(mbufs[at + 1], void *));
        uint16_t type = rte_pktmbuf_mtod(mbufs[at], struct rte_ether_hdr *)->ether_type;
        uint32_t is = RTE_PTYPE_UNKNOWN;
        if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
            is = RTE_PTYPE_L3_IPV4_EXT_UNKNOWN;
        else if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
            is = RTE_PTYPE_L3_IPV6_EXT_UNKNOWN;
        mbufs[at]->packet_type = is;
    }
    return count;
}

static inline struct rte_ipv4_hdr *ip_v4(struct rte_mbuf *mbuf) {
    return rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
}

static inline struct rte_ipv6_hdr *ip_v6(struct rte_mbuf *mbuf) {
    return rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv6_hdr *, sizeof(struct rte_ether_hdr));
}

/* A packet without a route goes back where it came from. */
static inline uint16_t lpm_one(const struct fib_table *table, struct rte_mbuf *mbuf, uint16_t from) {
    uint32_t hop;
    int found = -1;
    if (RTE_ETH_IS_IPV4_HDR(mbuf->packet_type) && table->kind == FIB_KIND_LPM)
        found = rte_lpm_lookup(table->lpm, rte_be_to_cpu_32(ip_v4(mbuf)->dst_addr), &hop);
    else if (RTE_ETH_IS_IPV6_HDR(mbuf->packet_type) && table->kind == FIB_KIND_LPM6)
        found = rte_lpm6_lookup(table->lpm6, ip_v6(mbuf)->dst_addr, &hop);
    return found == 0 ? (uint16_t)hop : from;
}

static inline void example_lpm(const struct fib_table *table, struct rte_mbuf **mbufs, uint16_t count, uint16_t from, uint16_t *hops) {
    const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    uint16_t at = 0;
    for (; at + 4 <= count; at += 4) {
        struct rte_mbuf **four = mbufs + at;
        uint32_t types = four[0]->packet_type & four[1]->packet_type & four[2]->packet_type & four[3]->packet_type;
        if (likely((types & RTE_PTYPE_L3_IPV4) != 0 && table->kind == FIB_KIND_LPM)) {
            uint32_t wide[4];
            __m128i to = _mm_set_epi32((int)ip_v4(four[3])->dst_addr, (int)ip_v4(four[2])->dst_addr, (int)ip_v4(four[1])->dst_addr,
                                       (int)ip_v4(four[0])->dst_addr);
            rte_lpm_lookupx4(table->lpm, _mm_shuffle_epi8(to, swap), wide, from);
            for (int one = 0; one < 4; one++)
                hops[at + one] = (uint16_t)wide[one];
        } else {
            for (int one = 0; one < 4; one++)
                hops[at + one] = lpm_one(table, four[one], from);
        }
    }
    for (; at < count; at++)
        hops[at] = lpm_one(table, mbufs[at], from);
}

static inline void example_fib(const struct fib_table *table, struct rte_mbuf **mbufs, uint16_t count, uint16_t from, uint16_t *hops) {
    uint32_t v4[EXAMPLE_BURST], v4_count = 0, v6_count = 0, v4_used = 0, v6_used = 0;
    uint8_t v6[EXAMPLE_BURST][16], is_v4[EXAMPLE_BURST];
    uint64_t v4_hops[EXAMPLE_BURST], v6_hops[EXAMPLE_BURST];
    for (uint16_t at = 0; at < 4 && at < count; at++)
        rte_prefetch0(rte_pktmbuf_mtod(mbufs[at], void *));
    for (uint16_t at = 0; at < count; at++) {
        if (at + 4 < count)
            rte_prefetch0(rte_pktmbuf_mtod(mbufs[at + 4], void *));
        is_v4[at] = (mbufs[at]->packet_type & RTE_PTYPE_L3_IPV4) != 0;
        if (is_v4[at])
            v4[v4_count++] = rte_be_to_cpu_32(ip_v4(mbufs[at])->dst_addr);
        else
            memcpy(v6[v6_count++], ip_v6(mbufs[at])->dst_addr, 16);
    }
    if (v4_count > 0 && table->kind == FIB_KIND_FIB)
        rte_fib_lookup_bulk(table->fib, v4, v4_hops, (int)v4_count);
    if (v6_count > 0 && table->kind == FIB_KIND_FIB6)
        rte_fib6_lookup_bulk(table->fib6, v6, v6_hops, (int)v6_count);
    for (uint16_t at = 0; at < count; at++) {
        uint64_t hop = is_v4[at] ? v4_hops[v4_used++] : v6_hops[v6_used++];
        hops[at] = hop < FIB_NEIGHBOURS ? (uint16_t)hop : from;
    }
}

/* Packets of a port in a row. Half a burst is sent at once, fewer wait until there is a burst of them, or for the time. */
static inline void example_put(struct example *run, const uint16_t ports[2], uint16_t side, struct rte_mbuf **mbufs, uint16_t count) {
    struct waiting *waiting = &run->waiting[side];
    if (count >= EXAMPLE_BURST / 2 && waiting->count == 0) {
        run->dropped += give_to(ports[side], mbufs, count);
        return;
    }
    uint16_t have = waiting->count, fit = RTE_MIN(count, (uint16_t)(EXAMPLE_BURST - have));
#pragma GCC unroll 1
    for (uint16_t at = 0; at < fit; at++)
        waiting->mbufs[have + at] = mbufs[at];
    have += fit;
    if (unlikely(have == EXAMPLE_BURST)) {
        run->dropped += give_to(ports[side], waiting->mbufs, EXAMPLE_BURST);
        have = count - fit;
#pragma GCC unroll 1
        for (uint16_t at = 0; at < have; at++)
            waiting->mbufs[at] = mbufs[fit + at];
    }
    waiting->count = have;
}

/* A burst: hops, then MAC addresses, for IPv4 also checks, TTL and checksum, then groups of packets of one port in a row. */
static inline void example_burst(struct example *run, const uint16_t ports[2], uint16_t from, struct rte_mbuf **mbufs, uint16_t count) {
    const uint16_t bad = UINT16_MAX;
    uint16_t hops[EXAMPLE_BURST], sides[EXAMPLE_BURST + 16];
    if (run->table->kind == FIB_KIND_LPM || run->table->kind == FIB_KIND_LPM6)
        example_lpm(run->table, mbufs, count, from, hops);
    else
        example_fib(run->table, mbufs, count, from, hops);
    for (uint16_t at = 0; at < count; at++) {
        __m128i *frame = rte_pktmbuf_mtod(mbufs[at], __m128i *);
        sides[at] = hops[at] & 1;
        _mm_storeu_si128(frame, _mm_blend_epi16(_mm_loadu_si128(frame), run->macs[hops[at]], 0x3f));
        if (RTE_ETH_IS_IPV4_HDR(mbufs[at]->packet_type)) {
            struct rte_ipv4_hdr *ip = ip_v4(mbufs[at]);
            ip->time_to_live--;
            ip->hdr_checksum++;
            if (unlikely((ip->version_ihl >> 4) != 4 || (ip->version_ihl & 15) < 5 ||
                         rte_be_to_cpu_16(ip->total_length) < sizeof *ip))
                sides[at] = bad;
        }
    }
    /* A bit for each packet that is the last one of its group. */
    sides[count] = bad - 1;
    uint64_t last = 0;
    for (uint16_t at = 0; at < count; at += 16) {
        __m128i a = _mm_cmpeq_epi16(_mm_loadu_si128((__m128i *)(sides + at)), _mm_loadu_si128((__m128i *)(sides + at + 1)));
        __m128i b = _mm_cmpeq_epi16(_mm_loadu_si128((__m128i *)(sides + at + 8)), _mm_loadu_si128((__m128i *)(sides + at + 9)));
        last |= (uint64_t)(0xffff & ~_mm_movemask_epi8(_mm_packs_epi16(a, b))) << at;
    }
    for (uint16_t first = 0; first < count;) {
        uint16_t end = (uint16_t)__builtin_ctzll(last) + 1;
        last &= last - 1;
        if (likely(sides[first] != bad))
            example_put(run, ports, sides[first], mbufs + first, end - first);
        else
            rte_pktmbuf_free_bulk(mbufs + first, end - first);
        first = end;
    }
}

static int forward_as_example(struct fib_run *job) {
    struct rte_mbuf *mbufs[EXAMPLE_BURST];
    struct example run = {.table = job->table};
    const struct rte_eth_rxtx_callback *types[2];
    for (int hop = 0; hop < FIB_NEIGHBOURS; hop++) {
        memcpy(&run.macs[hop], job->neighbours[hop], 6);
        memcpy((uint8_t *)&run.macs[hop] + 6, job->router, 6);
    }
    for (int side = 0; side < 2; side++) {
        types[side] = rte_eth_add_rx_callback(job->ports[side], 0, set_types, NULL);
        if (types[side] == NULL)
            return -rte_errno;
    }
    uint64_t drain = (rte_get_tsc_hz() + 999999) / 1000000 * EXAMPLE_DRAIN_US, now = rte_rdtsc(), before = now;
    while (!*job->stop) {
        if (unlikely(now - before > drain)) {
            for (int side = 0; side < 2; side++) {
                run.dropped += give_to(job->ports[side], run.waiting[side].mbufs, run.waiting[side].count);
                run.waiting[side].count = 0;
            }
            before = now;
        }
        for (uint16_t side = 0; side < 2; side++) {
            uint16_t count = rte_eth_rx_burst(job->ports[side], 0, mbufs, EXAMPLE_BURST);
            if (count > 0)
                example_burst(&run, job->ports, side, mbufs, count);
        }
        now = rte_rdtsc();
    }
    for (int side = 0; side < 2; side++) {
        rte_pktmbuf_free_bulk(run.waiting[side].mbufs, run.waiting[side].count);
        rte_eth_remove_rx_callback(job->ports[side], 0, types[side]);
    }
    job->dropped += run.dropped;
    return 0;
}

int fib_forward(struct fib_run *run) {
    struct rte_mbuf *mbufs[FIB_BURST], *out[2][FIB_BURST];
    static __thread struct lookup burst;
    /* Then it has a number, and mempools a cache for it. */
    int done = rte_thread_register();
    if (done != 0)
        return -rte_errno;
    if (run->as_example && run->table != NULL) {
        done = forward_as_example(run);
        rte_thread_unregister();
        return done;
    }
    uint16_t most = run->burst < FIB_BURST ? run->burst : FIB_BURST;
    while (!*run->stop) {
        for (int side = 0; side < 2; side++) {
            uint16_t count = rte_eth_rx_burst(run->ports[side], 0, mbufs, most);
            if (run->table == NULL) {
                for (uint16_t at = 0; at < count; at++) {
                    struct rte_ether_hdr *ether = rte_pktmbuf_mtod(mbufs[at], struct rte_ether_hdr *);
                    memcpy(&ether->dst_addr, run->neighbours[0], 6);
                    memcpy(&ether->src_addr, run->router, 6);
                }
                run->dropped += give_to(run->ports[1 - side], mbufs, count);
                continue;
            }
            uint16_t have[2] = {0, 0};
            run->dropped += route(run, mbufs, count, &burst, out, have);
            run->dropped += give_to(run->ports[0], out[0], have[0]);
            run->dropped += give_to(run->ports[1], out[1], have[1]);
        }
    }
    rte_thread_unregister();
    return 0;
}

uint64_t fib_sent(uint16_t port) {
    struct rte_eth_stats stats = {0};
    rte_eth_stats_get(port, &stats);
    return stats.opackets;
}
