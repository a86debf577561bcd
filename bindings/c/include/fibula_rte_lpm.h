/* rte_lpm on a table of fibula: see fibula_rte.h. */
#ifndef FIBULA_RTE_LPM_H
#define FIBULA_RTE_LPM_H

#include <rte_lpm.h>

#include "fibula_rte.h"

struct fibula_rte_lpm {
    struct fibula_rte table;
};

/* A next hop has 24 bits. Values have RTE_LPM_LOOKUP_SUCCESS in them, so that lookups give what rte_lpm gives. */
#define FIBULA_RTE_LPM_MASK 0x00ffffffu

static inline struct fibula_rte_lpm *fibula_rte_lpm_create(const char *name, int socket_id,
                                                           const struct rte_lpm_config *config) {
    if (name == NULL || socket_id < -1 || config == NULL || config->max_rules == 0 ||
        config->number_tbl8s > RTE_LPM_MAX_TBL8_NUM_GROUPS) {
        rte_errno = EINVAL;
        return NULL;
    }
    return (struct fibula_rte_lpm *)fibula_rte_new(FIBULA_RTE_LPM, name, 0, UINT32_MAX - 1, false);
}

static inline struct fibula_rte_lpm *fibula_rte_lpm_find_existing(const char *name) {
    return (struct fibula_rte_lpm *)fibula_rte_find(FIBULA_RTE_LPM, name);
}

static inline void fibula_rte_lpm_free(struct fibula_rte_lpm *lpm) { fibula_rte_free((struct fibula_rte *)lpm); }

static inline int fibula_rte_lpm_add(struct fibula_rte_lpm *lpm, uint32_t ip, uint8_t depth, uint32_t next_hop) {
    fibula_route route;
    if (lpm == NULL || depth < 1 || depth > RTE_LPM_MAX_DEPTH) return -EINVAL;
    route = fibula_rte_route4(ip, depth, (next_hop & FIBULA_RTE_LPM_MASK) | RTE_LPM_LOOKUP_SUCCESS);
    return fibula_rte_add(&lpm->table, &route);
}

static inline int fibula_rte_lpm_is_rule_present(struct fibula_rte_lpm *lpm, uint32_t ip, uint8_t depth,
                                                 uint32_t *next_hop) {
    fibula_route route;
    if (lpm == NULL || next_hop == NULL || depth < 1 || depth > RTE_LPM_MAX_DEPTH) return -EINVAL;
    route = fibula_rte_route4(ip, depth, 0);
    if (!fibula_live_find(lpm->table.live, &route)) return 0;
    *next_hop = (uint32_t)route.value & FIBULA_RTE_LPM_MASK;
    return 1;
}

static inline int fibula_rte_lpm_delete(struct fibula_rte_lpm *lpm, uint32_t ip, uint8_t depth) {
    fibula_route route;
    if (lpm == NULL || depth < 1 || depth > RTE_LPM_MAX_DEPTH) return -EINVAL;
    route = fibula_rte_route4(ip, depth, 0);
    return fibula_rte_delete(&lpm->table, &route, -EINVAL);
}

static inline void fibula_rte_lpm_delete_all(struct fibula_rte_lpm *lpm) {
    fibula_route all = {{0}, FIBULA_IPV4, 0, 0}, part[4096];
    size_t count;
    do {
        count = fibula_live_walk(lpm->table.live, &all, NULL, part, 4096);
        if (count == SIZE_MAX || !fibula_live_remove(lpm->table.live, part, count)) break;
    } while (count == 4096);
    fibula_rte_changed(&lpm->table);
}

/* 1 to n addresses: the next hop with RTE_LPM_LOOKUP_SUCCESS, or 0. */
static inline int fibula_rte_lpm_lookup_bulk(struct fibula_rte_lpm *lpm, const uint32_t *ips, uint32_t *next_hops,
                                             unsigned n) {
    fibula_reader *reader;
    if (lpm == NULL || ips == NULL || next_hops == NULL) return -EINVAL;
    reader = fibula_rte_reader(&lpm->table);
    fibula_reader_lookup4(reader, ips, next_hops, n);
    fibula_rte_done(&lpm->table, reader);
    return 0;
}

static inline int fibula_rte_lpm_lookup(struct fibula_rte_lpm *lpm, uint32_t ip, uint32_t *next_hop) {
    uint32_t found = 0;
    int done = next_hop == NULL ? -EINVAL : fibula_rte_lpm_lookup_bulk(lpm, &ip, &found, 1);
    if (done != 0) return done;
    *next_hop = found & FIBULA_RTE_LPM_MASK;
    return found & RTE_LPM_LOOKUP_SUCCESS ? 0 : -ENOENT;
}

static inline void fibula_rte_lpm_lookupx4(struct fibula_rte_lpm *lpm, xmm_t ip, uint32_t hop[4], uint32_t defv) {
    uint32_t ips[4];
    int at;
    memcpy(ips, &ip, sizeof ips);
    fibula_rte_lpm_lookup_bulk(lpm, ips, hop, 4);
    for (at = 0; at < 4; at++) hop[at] = hop[at] & RTE_LPM_LOOKUP_SUCCESS ? hop[at] & FIBULA_RTE_LPM_MASK : defv;
}

#ifdef FIBULA_RTE_REPLACE
#undef rte_lpm_lookup_bulk
#define rte_lpm fibula_rte_lpm
#define rte_lpm_create fibula_rte_lpm_create
#define rte_lpm_find_existing fibula_rte_lpm_find_existing
#define rte_lpm_free fibula_rte_lpm_free
#define rte_lpm_add fibula_rte_lpm_add
#define rte_lpm_is_rule_present fibula_rte_lpm_is_rule_present
#define rte_lpm_delete fibula_rte_lpm_delete
#define rte_lpm_delete_all fibula_rte_lpm_delete_all
#define rte_lpm_lookup fibula_rte_lpm_lookup
#define rte_lpm_lookup_bulk fibula_rte_lpm_lookup_bulk
#define rte_lpm_lookupx4 fibula_rte_lpm_lookupx4
#endif

#endif
