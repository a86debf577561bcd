/* A program as it is written for DPDK, whose tables are ours by their includes. */
#include <stdio.h>

#define FIBULA_RTE_REPLACE
#include <fibula_rte_fib.h>
#include <fibula_rte_fib6.h>
#include <fibula_rte_lpm.h>

#include "check.h"

int main(void) {
    struct rte_fib_conf conf = {.type = RTE_FIB_DIR24_8, .default_nh = 9, .max_routes = 16};
    struct rte_fib6_conf conf6 = {.type = RTE_FIB6_TRIE, .default_nh = 9, .max_routes = 16};
    struct rte_lpm_config config = {.max_rules = 16, .number_tbl8s = 16};
    struct rte_fib *fib;
    struct rte_fib6 *fib6;
    struct rte_lpm *lpm;
    uint32_t ips[2] = {0x0a000001, 0x0b000001}, hops[2];
    uint8_t ips6[2][16] = {{0x20, 1}, {0x20, 2}};
    uint64_t wide[2];
    conf.dir24_8.nh_sz = RTE_FIB_DIR24_8_2B;
    conf.dir24_8.num_tbl8 = 16;
    conf6.trie.nh_sz = RTE_FIB6_TRIE_2B;
    conf6.trie.num_tbl8 = 16;
    fib = rte_fib_create("fib", SOCKET_ID_ANY, &conf);
    fib6 = rte_fib6_create("fib", SOCKET_ID_ANY, &conf6);
    lpm = rte_lpm_create("fib", SOCKET_ID_ANY, &config);
    CHECK(fib != NULL && fib6 != NULL && lpm != NULL && (void *)fib != (void *)lpm);
    CHECK(rte_fib_find_existing("fib") == fib && rte_fib6_find_existing("fib") == fib6);
    CHECK(rte_lpm_find_existing("fib") == lpm && rte_fib_select_lookup(fib, RTE_FIB_LOOKUP_DEFAULT) == 0);
    CHECK(rte_fib_add(fib, ips[0], 8, 7) == 0 && rte_fib_lookup_bulk(fib, ips, wide, 2) == 0);
    CHECK(wide[0] == 7 && wide[1] == 9 && rte_fib_delete(fib, ips[0], 8) == 0);
    CHECK(rte_fib6_add(fib6, ips6[0], 16, 7) == 0 && rte_fib6_lookup_bulk(fib6, ips6, wide, 2) == 0);
    CHECK(wide[0] == 7 && wide[1] == 9 && rte_fib6_delete(fib6, ips6[0], 16) == 0);
    CHECK(rte_fib6_select_lookup(fib6, RTE_FIB6_LOOKUP_DEFAULT) == 0);
    CHECK(rte_lpm_add(lpm, ips[0], 8, 7) == 0 && rte_lpm_lookup_bulk(lpm, ips, hops, 2) == 0);
    CHECK(hops[0] == (7 | RTE_LPM_LOOKUP_SUCCESS) && hops[1] == 0);
    CHECK(rte_lpm_is_rule_present(lpm, ips[0], 8, hops) == 1 && hops[0] == 7);
    CHECK(rte_lpm_lookup(lpm, ips[0], hops) == 0 && hops[0] == 7 && rte_lpm_lookup(lpm, ips[1], hops) == -ENOENT);
    rte_lpm_delete_all(lpm);
    CHECK(rte_lpm_delete(lpm, ips[0], 8) == -EINVAL && rte_lpm_lookup(lpm, ips[0], hops) == -ENOENT);
    rte_fib_free(fib);
    rte_fib6_free(fib6);
    rte_lpm_free(lpm);
    puts("done");
    return 0;
}
