/* DPDK's own tables: rte_lpm, rte_fib, rte_lpm6, rte_fib6. The forwarding loops and the contestant of the harness use them. */
#ifndef FIBULA_TABLES_H
#define FIBULA_TABLES_H

#include <stdint.h>

/* The hop of an address that no route covers. */
#define FIB_NO_HOP UINT32_MAX

enum fib_kind { FIB_KIND_NONE, FIB_KIND_LPM, FIB_KIND_FIB, FIB_KIND_LPM6, FIB_KIND_FIB6 };

struct rte_lpm;
struct rte_fib;
struct rte_lpm6;
struct rte_fib6;

struct fib_table {
    enum fib_kind kind;
    union {
        struct rte_lpm *lpm;
        struct rte_fib *fib;
        struct rte_lpm6 *lpm6;
        struct rte_fib6 *fib6;
        void *any;
    };
    /* Of rte_lpm: groups of 256 in use, and how many there are. */
    uint32_t used, groups;
    /* Of rte_fib and rte_fib6: the next hop of an address that no route covers, the largest one. */
    uint32_t none;
};

/*
 * A table of the kind that takes so many routes and as many groups of 256 as its scheme needs at most. Next hops of rte_fib and
 * rte_fib6 have `width` bytes, 1 (only rte_fib), 2 or 4; the largest one of a bit less means that there is no route. NULL: no memory.
 */
struct fib_table *fib_table_new(enum fib_kind kind, uint32_t routes, uint32_t groups, uint32_t width);
/* Adds a route: the address as it lies in a packet. Shorter prefixes come first. */
int fib_table_add(struct fib_table *table, const uint8_t *address, uint8_t len, uint32_t hop);
void fib_table_free(struct fib_table *table);

#endif
