/* DPDK's own tables: made, filled, freed. */
#include "tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>
#include <rte_memory.h>

struct fib_table *fib_table_new(enum fib_kind kind, uint32_t routes, uint32_t groups, uint32_t width) {
    struct fib_table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return NULL;
    table->kind = kind;
    table->groups = groups;
    table->none = UINT32_MAX >> (32 - 8 * width + 1);
    if (kind == FIB_KIND_LPM) {
        struct rte_lpm_config config = {.max_rules = routes, .number_tbl8s = groups};
        table->lpm = rte_lpm_create("rival_lpm", SOCKET_ID_ANY, &config);
    } else if (kind == FIB_KIND_FIB) {
        struct rte_fib_conf config = {.type = RTE_FIB_DIR24_8, .default_nh = table->none, .max_routes = (int)routes};
        config.dir24_8.nh_sz = width == 1 ? RTE_FIB_DIR24_8_1B : width == 2 ? RTE_FIB_DIR24_8_2B : RTE_FIB_DIR24_8_4B;
        config.dir24_8.num_tbl8 = groups;
        table->fib = rte_fib_create("rival_fib", SOCKET_ID_ANY, &config);
        if (table->fib != NULL)
            rte_fib_select_lookup(table->fib, RTE_FIB_LOOKUP_DEFAULT);
    } else if (kind == FIB_KIND_LPM6) {
        struct rte_lpm6_config config = {.max_rules = routes, .number_tbl8s = groups};
        table->lpm6 = rte_lpm6_create("rival_lpm6", SOCKET_ID_ANY, &config);
    } else if (kind == FIB_KIND_FIB6) {
        struct rte_fib6_conf config = {.type = RTE_FIB6_TRIE, .default_nh = table->none, .max_routes = (int)routes};
        config.trie.nh_sz = width == 2 ? RTE_FIB6_TRIE_2B : RTE_FIB6_TRIE_4B;
        config.trie.num_tbl8 = groups;
        table->fib6 = rte_fib6_create("rival_fib6", SOCKET_ID_ANY, &config);
        if (table->fib6 != NULL)
            rte_fib6_select_lookup(table->fib6, RTE_FIB6_LOOKUP_DEFAULT);
    }
    if (table->any == NULL) {
        free(table);
        return NULL;
    }
    return table;
}

static uint32_t v4(const uint8_t *address) {
    uint32_t word;
    memcpy(&word, address, 4);
    return rte_be_to_cpu_32(word);
}

/*
 * rte_lpm_add looks through all rules of a length for each one: hours for 900,000 routes. So the entries that lookups read are
 * written as it writes them, shorter prefixes before longer ones.
 */
static int lpm_add(struct fib_table *table, uint32_t address, uint8_t len, uint32_t hop) {
    struct rte_lpm *lpm = table->lpm;
    struct rte_lpm_tbl_entry entry = {.next_hop = hop, .valid = 1, .valid_group = 0, .depth = len};
    uint32_t first = address >> 8;
    if (len <= 24) {
        uint32_t count = 1u << (24 - len);
        for (uint32_t at = first; at < first + count; at++) {
            if (lpm->tbl24[at].valid_group)
                return -EINVAL;
            lpm->tbl24[at] = entry;
        }
        return 0;
    }
    struct rte_lpm_tbl_entry *up = &lpm->tbl24[first];
    if (!up->valid_group) {
        if (table->used == table->groups)
            return -ENOSPC;
        uint32_t group = table->used++;
        /* What the shorter prefix says holds for all of it, if there is one. */
        struct rte_lpm_tbl_entry before = *up;
        for (uint32_t at = 0; at < 256; at++) {
            lpm->tbl8[group * 256 + at] = before;
            lpm->tbl8[group * 256 + at].valid_group = 1;
        }
        *up = (struct rte_lpm_tbl_entry){.next_hop = group, .valid = 1, .valid_group = 1};
    }
    struct rte_lpm_tbl_entry *group = &lpm->tbl8[up->next_hop * 256];
    entry.valid_group = 1;
    for (uint32_t at = address & 255; at < (address & 255) + (1u << (32 - len)); at++)
        group[at] = entry;
    return 0;
}

int fib_table_add(struct fib_table *table, const uint8_t *address, uint8_t len, uint32_t hop) {
    uint8_t v6[16];
    switch (table->kind) {
    case FIB_KIND_LPM:
        return lpm_add(table, v4(address), len, hop);
    case FIB_KIND_FIB:
        return rte_fib_add(table->fib, v4(address), len, hop);
    case FIB_KIND_LPM6:
        memcpy(v6, address, 16);
        return rte_lpm6_add(table->lpm6, v6, len, hop);
    case FIB_KIND_FIB6:
        memcpy(v6, address, 16);
        return rte_fib6_add(table->fib6, v6, len, hop);
    default:
        return -EINVAL;
    }
}

void fib_table_free(struct fib_table *table) {
    switch (table->kind) {
    case FIB_KIND_LPM: rte_lpm_free(table->lpm); break;
    case FIB_KIND_FIB: rte_fib_free(table->fib); break;
    case FIB_KIND_LPM6: rte_lpm6_free(table->lpm6); break;
    case FIB_KIND_FIB6: rte_fib6_free(table->fib6); break;
    default: break;
    }
    free(table);
}
