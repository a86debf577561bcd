/* What fibula_rte_fib.h, fibula_rte_fib6.h and fibula_rte_lpm.h have in common: a table of fibula behind functions that
 * have the arguments, results and return codes of DPDK's rte_fib, rte_fib6 and rte_lpm.
 *
 * - Each lcore has a reader of its own; threads that are no lcores share one behind a lock.
 * - A change is visible at once to the thread that made it, and to others after about FIBULA_RTE_COLLECT_MS, or three
 *   times as long as the last publication took if that is more: changes in a row are one patch of the table.
 *   fibula_rte_flush makes them visible to all threads now.
 * - A program that frees what next hops refer to, after its routes are gone, calls fibula_rte_flush before
 *   rte_rcu_qsbr_synchronize: until a change is visible, each lookup still gives the next hop before.
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

/* Milliseconds for which a change waits for others, before other threads see it. */
#ifndef FIBULA_RTE_COLLECT_MS
#define FIBULA_RTE_COLLECT_MS 1
#endif

enum fibula_rte_kind { FIBULA_RTE_FIB, FIBULA_RTE_FIB6, FIBULA_RTE_LPM };

/* What an lcore alone writes, apart from that of the next one in memory. */
struct fibula_rte_lcore {
    fibula_reader *reader; /* made by its first lookup */
    uint64_t change;       /* the last change that the lcore made, if it has not looked up since; or 0 */
    char apart[48];
};

struct fibula_rte {
    struct fibula_rte_lcore lcores[RTE_MAX_LCORE];
    struct fibula_rte *next;
    enum fibula_rte_kind kind;
    char name[64];
    fibula_live *live;
    uint64_t most;                 /* the largest next hop */
    struct fibula_rte_lcore other; /* of all threads that are no lcores */
    pthread_mutex_t lock;          /* of `other` */
};

/* One list for the whole program, whichever files include this. */
__attribute__((weak)) struct fibula_rte *fibula_rte_all;
__attribute__((weak)) pthread_mutex_t fibula_rte_lock = PTHREAD_MUTEX_INITIALIZER;

/* The table of a name; the list is locked. */
static inline struct fibula_rte *fibula_rte_named(enum fibula_rte_kind kind, const char *name) {
    struct fibula_rte *found;
    for (found = fibula_rte_all; found != NULL; found = found->next)
        if (found->kind == kind && strncmp(found->name, name, sizeof found->name) == 0) break;
    return found;
}

static inline struct fibula_rte *fibula_rte_find(enum fibula_rte_kind kind, const char *name) {
    struct fibula_rte *found;
    pthread_mutex_lock(&fibula_rte_lock);
    found = fibula_rte_named(kind, name);
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
    for (lcore = 0; lcore < RTE_MAX_LCORE; lcore++) fibula_reader_free(table->lcores[lcore].reader);
    fibula_reader_free(table->other.reader);
    fibula_live_free(table->live);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

/* A table; NULL and rte_errno if there is one of this name, or no memory. */
static inline struct fibula_rte *fibula_rte_new(enum fibula_rte_kind kind, const char *name, uint64_t none,
                                                uint64_t most, bool is_wide) {
    fibula_options options = FIBULA_OPTIONS;
    struct fibula_rte *table, *found;
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
    if (table->live != NULL) table->other.reader = fibula_reader_new(table->live);
    if (table->other.reader == NULL) {
        fibula_rte_free(table);
        rte_errno = ENOMEM;
        return NULL;
    }
    pthread_mutex_lock(&fibula_rte_lock);
    found = fibula_rte_named(kind, name); /* another thread may have been faster */
    if (found == NULL) {
        table->next = fibula_rte_all;
        fibula_rte_all = table;
    }
    pthread_mutex_unlock(&fibula_rte_lock);
    if (found != NULL) {
        fibula_rte_free(table);
        rte_errno = EEXIST;
        return NULL;
    }
    rte_errno = 0;
    return table;
}

/* Makes all changes visible to all threads. 0, or -ENOMEM if no table could be made of them. */
static inline int fibula_rte_flush(struct fibula_rte *table) {
    return fibula_live_flush(table->live) ? 0 : -ENOMEM;
}

/* This lcore will not look up for a while. */
static inline void fibula_rte_idle(struct fibula_rte *table) {
    unsigned lcore = rte_lcore_id();
    fibula_reader *reader = lcore < RTE_MAX_LCORE ? table->lcores[lcore].reader : NULL;
    if (reader != NULL) fibula_reader_release(reader);
}

/* Makes the last change of a thread visible, unless it is. */
static inline void fibula_rte_own(struct fibula_rte *table, struct fibula_rte_lcore *of) {
    if (fibula_live_visible(table->live) < of->change) fibula_rte_flush(table);
    of->change = 0;
}

/* The reader of this thread, which is unlocked with fibula_rte_done; it sees the thread's own changes. */
static inline fibula_reader *fibula_rte_reader(struct fibula_rte *table) {
    unsigned lcore = rte_lcore_id();
    if (__builtin_expect(lcore < RTE_MAX_LCORE, 1)) {
        struct fibula_rte_lcore *of = &table->lcores[lcore];
        if (__builtin_expect(of->change != 0, 0)) fibula_rte_own(table, of);
        if (__builtin_expect(of->reader == NULL, 0)) of->reader = fibula_reader_new(table->live);
        if (of->reader != NULL) return of->reader;
    }
    pthread_mutex_lock(&table->lock);
    if (table->other.change != 0) fibula_rte_own(table, &table->other);
    return table->other.reader;
}

static inline void fibula_rte_done(struct fibula_rte *table, fibula_reader *reader) {
    if (__builtin_expect(reader == table->other.reader, 0)) {
        fibula_reader_release(reader); /* the thread may be gone at the next change */
        pthread_mutex_unlock(&table->lock);
    }
}

/* Notes a change of this thread, for its next lookup. */
static inline void fibula_rte_changed(struct fibula_rte *table) {
    unsigned lcore = rte_lcore_id();
    uint64_t change = fibula_live_changes(table->live); /* its own one, or a later one of another thread */
    if (lcore < RTE_MAX_LCORE) {
        table->lcores[lcore].change = change;
        return;
    }
    pthread_mutex_lock(&table->lock);
    table->other.change = change;
    pthread_mutex_unlock(&table->lock);
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
