/* What the router is measured beside: a forwarding loop over DPDK's own tables, and packets to forward. */
#ifndef FIBULA_RIVAL_H
#define FIBULA_RIVAL_H

#include "shim.h"
#include "tables.h"

/* Bytes of a generated frame. */
#define FIB_FRAME 64
/* Next hops of a table. */
#define FIB_NEIGHBOURS 16

/* What differs from flow to flow of a family. */
struct fib_flow {
    uint8_t to[16]; /* the destination; of IPv4 the first 4 bytes */
    uint16_t port;  /* and the checksum: as they lie in a frame */
    uint16_t checksum;
};

/* Frames of a family: where in a frame the fields lie. */
struct fib_traffic {
    uint8_t frame[FIB_FRAME];
    uint32_t is_v6;
    uint32_t flows;
    /* So many of `fib_flow`, or of their last 8 bytes of which the first 4 are the destination. */
    const void *each;
    uint32_t next;
};

/* The number of a device by its name, or a negative errno. */
int fib_port_by_name(const char *name);

/* Opens a device with a mempool of DPDK's own, and gives its number. */
int fib_rival_open(const char *devargs);

/* Queues of a device that can have flows. */
#define FIB_QUEUES 16

/* Has the packets of a device's queue be the flows, in a circle; they must live until it is closed. */
int fib_traffic_attach(uint16_t port, uint16_t queue, struct fib_traffic *traffic);

/* The hop of an address, or UINT32_MAX. */
uint32_t fib_table_lookup(struct fib_table *table, const uint8_t *address);

struct fib_run {
    uint16_t ports[2];
    uint16_t burst;
    /* NULL: packets leave by the other port, with new MAC addresses. */
    struct fib_table *table;
    /* Not 0: all that the main loop of DPDK's example l3fwd does, in its bursts of 32. */
    uint32_t as_example;
    /* Hop h leads to neighbour h, who is on port h % 2. */
    uint8_t neighbours[FIB_NEIGHBOURS][6];
    uint8_t router[6];
    /* Ends the run when it is no longer 0. */
    const volatile uint8_t *stop;
    uint64_t dropped;
};

/* Forwards on the calling thread; an error if DPDK has no place for it. */
int fib_forward(struct fib_run *run);

/* Packets that a device has sent. */
uint64_t fib_sent(uint16_t port);

#endif
