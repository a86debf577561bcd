/* What fibula_rte_fib.h, fibula_rte_fib6.h and fibula_rte_lpm.h have in common: a table of fibula behind functions that
 * have the arguments, results and return codes of DPDK's rte_fib, rte_fib6 and rte_lpm.
 *
 * - Each lcore has a reader of its own; threads that are no lcores share one behind a lock.
 * - A change is visible at once to the thread that made it, and to others after FIBULA_RTE_COLLECT_MS at most: changes
 *   in a row are one patch of the table. fibula_rte_flush makes them visible to all threads now.
 * - Nothing is sized: max_routes and num_tbl8 are checked and not used, and no call returns -ENOSPC.
 * - An lcore that stops looking up keeps an old table in memory until it calls fibula_rte_idle. Nothing waits for it.
 *
 * Not there: rte_fib_get_dp, rte_fib_get_rib, which give DPDK's own structures; rcu_qsbr_add, which is not needed.
 *
 * Compile with DPDK's flags (pkg-config --cflags libdpdk) and -pthread. With FIBULA_RTE_REPLACE defined, DPDK's names
 * mean these functions, so that a program changes its includes alone. */
#ifndef FIBULA_RTE_H
#define FIBULA_RTE_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_lcore.h>

#include "fibula.h"

/* Milliseconds after which a change is visible to other threads. */
#ifndef FIBULA_RTE_COLLECT_MS
#define FIBULA_RTE_COLLECT_MS 1
#endif

enum fibula_rte_kind { FIBULA_RTE_FIB, FIBULA_RTE_FIB6, FIBULA_RTE_LPM };

struct fibula_rte {
    struct fibula_rte *next;
    enum fibula_rte_kind kind;
    char name[64];
    fibula_live *live;
    uint64_t most;                         /* the largest next hop */
    fibula_reader *readers[RTE_MAX_LCORE]; /* each made by its lcore */
    fibula_reader *other;                  /* of all threads that are no lcores */
    pthread_mutex_t lock;                  /* of `other` */
    pthread_t writer;                      /* the thread that changed the table last */
    bool is_changed;                       /* since `writer` last looked up */
};

/* One list for the whole program, whichever files include this. */
__attribute__((weak)) struct fibula_rte *fibula_rte_all;
__attribute__((weak)) pthread_mutex_t fibula_rte_lock = PTHREAD_MUTEX_INITIALIZER;

static inline struct fibula_rte *fibula_rte_find(enum fibula_rte_kind kind, const char *name) {
    struct fibula_rte *found;
    pthread_mutex_lock(&fibula_rte_lock);
    for (found = fibula_rte_all; found != NULL; found = found->next)
        if (found->kind == kind && strncmp(found->name, name, sizeof found->name) == 0) break;
    pthread_mutex_unlock(&fibula_rte_lock);
    if (found == NULL) rte_errno = ENOENT;
    return found;
}

static inline void fibula_rte_free(struct fibula_rte *table) {
    struct fibula_rte **at;
    unsigned lcore;
    if (table == NULL) return;
    pthread_mutex_lock(&fibula_rte_lock);
    for (at = &fibula_rte_all; *at != NULL; at = &(*at)->next)
        if (*at == table) {
            *at = table->next;
            break;
        }
    pthread_mutex_unlock(&fibula_rte_lock);
    for (lcore = 0; lcore < RTE_MAX_LCORE; lcore++) fibula_reader_free(table->readers[lcore]);
    fibula_reader_free(table->other);
    fibula_live_free(table->live);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

/* A table; NULL and rte_errno if there is one of this name, or no memory. */
static inline struct fibula_rte *fibula_rte_new(enum fibula_rte_kind kind, const char *name, uint64_t none,
                                                uint64_t most, bool is_wide) {
    fibula_options options = FIBULA_OPTIONS;
    struct fibula_rte *table;
    if (fibula_rte_find(kind, name) != NULL) {
        rte_errno = EEXIST;
        return NULL;
    }
    options.collect_ms = FIBULA_RTE_COLLECT_MS;
    options.flags = is_wide ? FIBULA_WIDE : 0;
    options.default_value = none;
    table = (struct fibula_rte *)calloc(1, sizeof *table);
    if (table == NULL) {
        rte_errno = ENOMEM;
        return NULL;
    }
    table->kind = kind;
    table->most = most;
    strncpy(table->name, name, sizeof table->name - 1);
    pthread_mutex_init(&table->lock, NULL);
    table->live = fibula_live_with(&options);
    if (table->live != NULL) table->other = fibula_reader_new(table->live);
    if (table->other == NULL) {
        fibula_rte_free(table);
        rte_errno = ENOMEM;
        return NULL;
    }
    pthread_mutex_lock(&fibula_rte_lock);
    table->next = fibula_rte_all;
    fibula_rte_all = table;
    pthread_mutex_unlock(&fibula_rte_lock);
    rte_errno = 0;
    return table;
}

/* Makes all changes visible to all threads. 0, or -ENOMEM if no table could be made of them. */
static inline int fibula_rte_flush(struct fibula_rte *table) {
    __atomic_store_n(&table->is_changed, false, __ATOMIC_RELAXED);
    return fibula_live_flush(table->live) ? 0 : -ENOMEM;
}

/* This lcore will not look up for a while. */
static inline void fibula_rte_idle(struct fibula_rte *table) {
    unsigned lcore = rte_lcore_id();
    if (lcore < RTE_MAX_LCORE && table->readers[lcore] != NULL) fibula_reader_release(table->readers[lcore]);
}

/* The reader of this thread, which is unlocked with fibula_rte_done; it sees the thread's own changes. */
static inline fibula_reader *fibula_rte_reader(struct fibula_rte *table) {
    unsigned lcore = rte_lcore_id();
    if (__builtin_expect(__atomic_load_n(&table->is_changed, __ATOMIC_ACQUIRE), 0) &&
        pthread_equal(__atomic_load_n(&table->writer, __ATOMIC_RELAXED), pthread_self()))
        fibula_rte_flush(table);
    if (__builtin_expect(lcore < RTE_MAX_LCORE, 1)) {
        if (__builtin_expect(table->readers[lcore] == NULL, 0)) table->readers[lcore] = fibula_reader_new(table->live);
        if (table->readers[lcore] != NULL) return table->readers[lcore];
    }
    pthread_mutex_lock(&table->lock);
    return table->other;
}

static inline void fibula_rte_done(struct fibula_rte *table, fibula_reader *reader) {
    if (__builtin_expect(reader == table->other, 0)) {
        fibula_reader_release(reader); /* the thread may be gone at the next change */
        pthread_mutex_unlock(&table->lock);
    }
}

static inline void fibula_rte_changed(struct fibula_rte *table) {
    __atomic_store_n(&table->writer, pthread_self(), __ATOMIC_RELAXED);
    __atomic_store_n(&table->is_changed, true, __ATOMIC_RELEASE);
}

/* Prefixes as DPDK's functions take them: bits behind the depth are cleared. */
static inline fibula_route fibula_rte_route4(uint32_t ip, uint8_t depth, uint64_t next_hop) {
    fibula_route route = {{0}, FIBULA_IPV4, depth, next_hop};
    ip &= depth == 0 ? 0 : UINT32_MAX << (32 - depth);
    route.address[0] = (uint8_t)(ip >> 24);
    route.address[1] = (uint8_t)(ip >> 16);
    route.address[2] = (uint8_t)(ip >> 8);
    route.address[3] = (uint8_t)ip;
    return route;
}

static inline fibula_route fibula_rte_route6(const uint8_t *ip, uint8_t depth, uint64_t next_hop) {
    fibula_route route = {{0}, FIBULA_IPV6, depth, next_hop};
    unsigned whole = depth / 8;
    memcpy(route.address, ip, whole);
    if (depth % 8 != 0) route.address[whole] = (uint8_t)(ip[whole] & (0xff00 >> depth % 8));
    return route;
}

/* rte_fib_add and rte_fib6_add: a next hop that is too large is -EINVAL. */
static inline int fibula_rte_add(struct fibula_rte *table, const fibula_route *route) {
    if (route->value > table->most) return -EINVAL;
    if (!fibula_live_set(table->live, route, 1)) return -ENOMEM;
    fibula_rte_changed(table);
    return 0;
}

/* rte_fib_delete and rte_fib6_delete: `missing` if there is no such route. */
static inline int fibula_rte_delete(struct fibula_rte *table, fibula_route *route, int missing) {
    if (!fibula_live_find(table->live, route)) return missing;
    if (!fibula_live_remove(table->live, route, 1)) return -ENOMEM;
    fibula_rte_changed(table);
    return 0;
}

/* The largest next hop of an entry of 1 << size bytes, one bit of which DPDK's tables use. */
static inline uint64_t fibula_rte_most(unsigned size) { return (UINT64_C(1) << ((8u << size) - 1)) - 1; }

#endif
