/* rte_fib on a table of fibula: see fibula_rte.h. */
#ifndef FIBULA_RTE_FIB_H
#define FIBULA_RTE_FIB_H

#include <rte_fib.h>

#include "fibula_rte.h"

struct fibula_rte_fib {
    struct fibula_rte table;
};

static inline struct fibula_rte_fib *fibula_rte_fib_create(const char *name, int socket_id, struct rte_fib_conf *conf) {
    uint64_t most = UINT64_MAX - 1;
    (void)socket_id;
    if (name == NULL || conf == NULL || conf->max_routes <= 0 || conf->type > RTE_FIB_DIR24_8) {
        rte_errno = EINVAL;
        return NULL;
    }
    if (conf->type == RTE_FIB_DIR24_8) {
        if (conf->dir24_8.nh_sz > RTE_FIB_DIR24_8_8B) {
            rte_errno = EINVAL;
            return NULL;
        }
        most = fibula_rte_most(conf->dir24_8.nh_sz);
        if (conf->dir24_8.num_tbl8 == 0 || conf->dir24_8.num_tbl8 > most || conf->default_nh > most) {
            rte_errno = EINVAL;
            return NULL;
        }
    }
    return (struct fibula_rte_fib *)fibula_rte_new(FIBULA_RTE_FIB, name, conf->default_nh, most, true);
}

static inline struct fibula_rte_fib *fibula_rte_fib_find_existing(const char *name) {
    return (struct fibula_rte_fib *)fibula_rte_find(FIBULA_RTE_FIB, name);
}

static inline void fibula_rte_fib_free(struct fibula_rte_fib *fib) { fibula_rte_free((struct fibula_rte *)fib); }

static inline int fibula_rte_fib_add(struct fibula_rte_fib *fib, uint32_t ip, uint8_t depth, uint64_t next_hop) {
    fibula_route route;
    if (fib == NULL || depth > RTE_FIB_MAXDEPTH) return -EINVAL;
    route = fibula_rte_route4(ip, depth, next_hop);
    return fibula_rte_add(&fib->table, &route);
}

static inline int fibula_rte_fib_delete(struct fibula_rte_fib *fib, uint32_t ip, uint8_t depth) {
    fibula_route route;
    if (fib == NULL || depth > RTE_FIB_MAXDEPTH) return -EINVAL;
    route = fibula_rte_route4(ip, depth, 0);
    return fibula_rte_delete(&fib->table, &route, -ENOENT);
}

static inline int fibula_rte_fib_lookup_bulk(struct fibula_rte_fib *fib, uint32_t *ips, uint64_t *next_hops, int n) {
    fibula_reader *reader;
    if (fib == NULL || ips == NULL || next_hops == NULL || n < 0) return -EINVAL;
    reader = fibula_rte_reader(&fib->table);
    fibula_reader_wide4(reader, ips, next_hops, (size_t)n);
    fibula_rte_done(&fib->table, reader);
    return 0;
}

/* The engine and its instructions are chosen for the machine: nothing is selected. */
static inline int fibula_rte_fib_select_lookup(struct fibula_rte_fib *fib, enum rte_fib_lookup_type type) {
    return fib == NULL || type > RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512 ? -EINVAL : 0;
}

#ifdef FIBULA_RTE_REPLACE
#define rte_fib fibula_rte_fib
#define rte_fib_create fibula_rte_fib_create
#define rte_fib_find_existing fibula_rte_fib_find_existing
#define rte_fib_free fibula_rte_fib_free
#define rte_fib_add fibula_rte_fib_add
#define rte_fib_delete fibula_rte_fib_delete
#define rte_fib_lookup_bulk fibula_rte_fib_lookup_bulk
#define rte_fib_select_lookup fibula_rte_fib_select_lookup
#endif

#endif
