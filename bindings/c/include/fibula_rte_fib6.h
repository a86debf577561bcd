/* rte_fib6 on a table of fibula: see fibula_rte.h. */
#ifndef FIBULA_RTE_FIB6_H
#define FIBULA_RTE_FIB6_H

#include <rte_fib6.h>

#include "fibula_rte.h"

struct fibula_rte_fib6 {
    struct fibula_rte table;
};

static inline struct fibula_rte_fib6 *fibula_rte_fib6_create(const char *name, int socket_id,
                                                             struct rte_fib6_conf *conf) {
    uint64_t most = UINT64_MAX - 1;
    (void)socket_id;
    if (name == NULL || conf == NULL || conf->max_routes <= 0 || conf->type > RTE_FIB6_TRIE) {
        rte_errno = EINVAL;
        return NULL;
    }
    if (conf->type == RTE_FIB6_TRIE) {
        if (conf->trie.nh_sz < RTE_FIB6_TRIE_2B || conf->trie.nh_sz > RTE_FIB6_TRIE_8B) {
            rte_errno = EINVAL;
            return NULL;
        }
        most = fibula_rte_most(conf->trie.nh_sz);
        if (conf->trie.num_tbl8 == 0 || conf->trie.num_tbl8 > most || conf->default_nh > most) {
            rte_errno = EINVAL;
            return NULL;
        }
    }
    return (struct fibula_rte_fib6 *)fibula_rte_new(FIBULA_RTE_FIB6, name, conf->default_nh, most, true);
}

static inline struct fibula_rte_fib6 *fibula_rte_fib6_find_existing(const char *name) {
    return (struct fibula_rte_fib6 *)fibula_rte_find(FIBULA_RTE_FIB6, name);
}

static inline void fibula_rte_fib6_free(struct fibula_rte_fib6 *fib) { fibula_rte_free((struct fibula_rte *)fib); }

static inline int fibula_rte_fib6_add(struct fibula_rte_fib6 *fib, const uint8_t ip[RTE_FIB6_IPV6_ADDR_SIZE],
                                      uint8_t depth, uint64_t next_hop) {
    fibula_route route;
    if (fib == NULL || ip == NULL || depth > RTE_FIB6_MAXDEPTH) return -EINVAL;
    route = fibula_rte_route6(ip, depth, next_hop);
    return fibula_rte_add(&fib->table, &route);
}

static inline int fibula_rte_fib6_delete(struct fibula_rte_fib6 *fib, const uint8_t ip[RTE_FIB6_IPV6_ADDR_SIZE],
                                         uint8_t depth) {
    fibula_route route;
    if (fib == NULL || ip == NULL || depth > RTE_FIB6_MAXDEPTH) return -EINVAL;
    route = fibula_rte_route6(ip, depth, 0);
    return fibula_rte_delete(&fib->table, &route, -ENOENT);
}

static inline int fibula_rte_fib6_lookup_bulk(struct fibula_rte_fib6 *fib, uint8_t ips[][RTE_FIB6_IPV6_ADDR_SIZE],
                                              uint64_t *next_hops, int n) {
    fibula_reader *reader;
    if (fib == NULL || ips == NULL || next_hops == NULL || n < 0) return -EINVAL;
    reader = fibula_rte_reader(&fib->table);
    fibula_reader_wide6(reader, ips, next_hops, (size_t)n);
    fibula_rte_done(&fib->table, reader);
    return 0;
}

/* The engine and its instructions are chosen for the machine: nothing is selected. */
static inline int fibula_rte_fib6_select_lookup(struct fibula_rte_fib6 *fib, enum rte_fib6_lookup_type type) {
    return fib == NULL || type > RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512 ? -EINVAL : 0;
}

#ifdef FIBULA_RTE_REPLACE
#define rte_fib6 fibula_rte_fib6
#define rte_fib6_create fibula_rte_fib6_create
#define rte_fib6_find_existing fibula_rte_fib6_find_existing
#define rte_fib6_free fibula_rte_fib6_free
#define rte_fib6_add fibula_rte_fib6_add
#define rte_fib6_delete fibula_rte_fib6_delete
#define rte_fib6_lookup_bulk fibula_rte_fib6_lookup_bulk
#define rte_fib6_select_lookup fibula_rte_fib6_select_lookup
#endif

#endif
