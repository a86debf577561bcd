/* DPDK's rte_fib, rte_fib6 and rte_lpm, and the functions of fibula_rte_*.h: the same calls to both give the same return
 * codes and answers. The cases are those of DPDK's own tests of these libraries (what is refused when a table is made,
 * changed and asked; nested prefixes of every depth, added and deleted), and random changes and lookups.
 *
 * What differs, and is not compared: rte_fib sizes its table, and rte_lpm gives garbage where no route is, apart from
 * the missing flag. */
#include <stdio.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_vect.h>

#include <fibula_rte_fib.h>
#include <fibula_rte_fib6.h>
#include <fibula_rte_lpm.h>

#include "check.h"

static uint64_t state = 88172645463325252u;

/* A random number below `end`. */
static uint32_t below(uint32_t end) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) * end >> 32);
}

/* ---- rte_fib */

static struct rte_fib_conf fib_conf(enum rte_fib_dir24_8_nh_sz size, uint64_t none) {
    struct rte_fib_conf conf = {.type = RTE_FIB_DIR24_8, .default_nh = none, .max_routes = 1 << 16};
    conf.dir24_8.nh_sz = size;
    conf.dir24_8.num_tbl8 = 127;
    return conf;
}

/* Both make a table of a configuration, or both refuse it for the same reason. */
static void fib_made(const char *name, struct rte_fib_conf *conf) {
    struct rte_fib *theirs;
    struct fibula_rte_fib *ours;
    int errors[2];
    rte_errno = 0;
    theirs = rte_fib_create(name, SOCKET_ID_ANY, conf);
    errors[0] = theirs == NULL ? rte_errno : 0;
    rte_errno = 0;
    ours = fibula_rte_fib_create(name, SOCKET_ID_ANY, conf);
    errors[1] = ours == NULL ? rte_errno : 0;
    CHECK(errors[0] == errors[1] && (theirs == NULL) == (ours == NULL));
    rte_fib_free(theirs);
    fibula_rte_fib_free(ours);
}

static void fib_refused(void) {
    struct rte_fib_conf good = fib_conf(RTE_FIB_DIR24_8_2B, 100), conf = good;
    struct rte_fib *theirs;
    struct fibula_rte_fib *ours;
    uint64_t hop;
    uint32_t ip = 0;
    int size;
    fib_made("good", &good);
    fib_made(NULL, &good);
    fib_made("none", NULL);
    conf.max_routes = -1;
    fib_made("routes", &conf);
    conf.max_routes = 0;
    fib_made("routes", &conf);
    conf = good;
    conf.type = RTE_FIB_DIR24_8 + 1;
    fib_made("type", &conf);
    conf.type = RTE_FIB_DUMMY;
    fib_made("dummy", &conf);
    conf = good;
    conf.dir24_8.num_tbl8 = 0;
    fib_made("groups", &conf);
    for (size = RTE_FIB_DIR24_8_1B; size <= RTE_FIB_DIR24_8_4B; size++) {
        uint64_t most = (UINT64_C(1) << ((8 << size) - 1)) - 1;
        conf = fib_conf((enum rte_fib_dir24_8_nh_sz)size, most);
        fib_made("hop", &conf);
        conf.default_nh = most + 1;
        fib_made("hop", &conf);
        if (size < RTE_FIB_DIR24_8_4B) {
            conf = fib_conf((enum rte_fib_dir24_8_nh_sz)size, 0);
            conf.dir24_8.num_tbl8 = (uint32_t)most + 1;
            fib_made("groups", &conf);
        }
    }
    conf = good;
    conf.dir24_8.nh_sz = RTE_FIB_DIR24_8_8B + 1;
    fib_made("size", &conf);

    /* Names, and arguments of the functions of a table. */
    theirs = rte_fib_create("name", SOCKET_ID_ANY, &good);
    ours = fibula_rte_fib_create("name", SOCKET_ID_ANY, &good);
    CHECK(theirs != NULL && ours != NULL);
    CHECK(rte_fib_create("name", SOCKET_ID_ANY, &good) == NULL && rte_errno == EEXIST);
    CHECK(fibula_rte_fib_create("name", SOCKET_ID_ANY, &good) == NULL && rte_errno == EEXIST);
    CHECK(rte_fib_find_existing("name") == theirs && fibula_rte_fib_find_existing("name") == ours);
    CHECK(rte_fib_find_existing("other") == NULL && rte_errno == ENOENT);
    rte_errno = 0;
    CHECK(fibula_rte_fib_find_existing("other") == NULL && rte_errno == ENOENT);
    CHECK(rte_fib_add(NULL, 0, 1, 1) == fibula_rte_fib_add(NULL, 0, 1, 1));
    CHECK(rte_fib_add(theirs, 0, 33, 1) == fibula_rte_fib_add(ours, 0, 33, 1));
    CHECK(rte_fib_add(theirs, 0, 1, 1 << 15) == fibula_rte_fib_add(ours, 0, 1, 1 << 15));
    CHECK(rte_fib_delete(NULL, 0, 1) == fibula_rte_fib_delete(NULL, 0, 1));
    CHECK(rte_fib_delete(theirs, 0, 33) == fibula_rte_fib_delete(ours, 0, 33));
    CHECK(rte_fib_delete(theirs, 0, 1) == fibula_rte_fib_delete(ours, 0, 1));
    CHECK(fibula_rte_fib_lookup_bulk(NULL, &ip, &hop, 1) == -EINVAL && fibula_rte_fib_lookup_bulk(ours, NULL, &hop, 1) == -EINVAL);
    CHECK(fibula_rte_fib_select_lookup(NULL, RTE_FIB_LOOKUP_DEFAULT) == -EINVAL); /* DPDK's crashes */
    CHECK(fibula_rte_fib_select_lookup(ours, RTE_FIB_LOOKUP_DEFAULT) == rte_fib_select_lookup(theirs, RTE_FIB_LOOKUP_DEFAULT));
    rte_fib_free(theirs);
    fibula_rte_fib_free(ours);
    rte_fib_free(NULL);
    fibula_rte_fib_free(NULL);
    CHECK(fibula_rte_fib_find_existing("name") == NULL);
}

#define PROBES 96

static void fib_same(struct rte_fib *theirs, struct fibula_rte_fib *ours, uint32_t *ips, int count) {
    uint64_t hops[2][PROBES];
    int at;
    CHECK(rte_fib_lookup_bulk(theirs, ips, hops[0], count) == 0);
    CHECK(fibula_rte_fib_lookup_bulk(ours, ips, hops[1], count) == 0);
    for (at = 0; at < count; at++) CHECK(hops[0][at] == hops[1][at]);
}

/* A prefix of every depth at one address: as they come and as they go, the first, middle and last addresses are right. */
static void fib_nested(struct rte_fib_conf conf) {
    struct rte_fib *theirs = rte_fib_create("nested", SOCKET_ID_ANY, &conf);
    struct fibula_rte_fib *ours = fibula_rte_fib_create("nested", SOCKET_ID_ANY, &conf);
    const uint32_t ip = 0x80000000u;
    uint32_t ips[PROBES];
    int depth, round, count = 0;
    CHECK(theirs != NULL && ours != NULL);
    for (depth = 1; depth <= 32; depth++) {
        ips[count++] = ip + (depth == 32 ? 0 : (1u << (32 - depth)) - 1);
        ips[count++] = ip + (depth == 1 ? 0x7fffffff : (1u << (32 - depth)));
        ips[count++] = ip - (uint32_t)depth;
    }
    for (round = 0; round < 4; round++)
        for (depth = 0; depth <= 32; depth++) {
            int at = round % 2 == 0 ? depth : 32 - depth;
            if (round < 2) CHECK(rte_fib_add(theirs, ip, (uint8_t)at, (uint64_t)at + 1) == fibula_rte_fib_add(ours, ip, (uint8_t)at, (uint64_t)at + 1));
            else CHECK(rte_fib_delete(theirs, ip, (uint8_t)at) == fibula_rte_fib_delete(ours, ip, (uint8_t)at));
            fib_same(theirs, ours, ips, count);
        }
    rte_fib_free(theirs);
    fibula_rte_fib_free(ours);
}

static void fib_random(struct rte_fib_conf conf, uint32_t hops) {
    struct rte_fib *theirs = rte_fib_create("random", SOCKET_ID_ANY, &conf);
    struct fibula_rte_fib *ours = fibula_rte_fib_create("random", SOCKET_ID_ANY, &conf);
    uint32_t ips[PROBES];
    int change, at, refused = 0, missing = 0;
    CHECK(theirs != NULL && ours != NULL);
    for (change = 0; change < 6000; change++) {
        uint32_t ip = below(4) << 30 | below(8) << 13 | below(16) << 3;
        uint8_t depth = (uint8_t)(below(8) == 0 ? below(33) : 15 + below(18));
        int codes[2];
        /* DIR24_8 of DPDK 22.11 gives a prefix that ends with the last address to all addresses, if others are there. */
        if (conf.type != RTE_FIB_DUMMY && (depth == 0 || (ip | (depth == 32 ? 0 : UINT32_MAX >> depth)) == UINT32_MAX)) continue;
        if (below(3) > 0) {
            uint64_t hop = below(40) == 0 ? hops + below(3) : below(hops);
            codes[0] = rte_fib_add(theirs, ip, depth, hop);
            codes[1] = fibula_rte_fib_add(ours, ip, depth, hop);
            refused += codes[0] == -EINVAL;
        } else {
            codes[0] = rte_fib_delete(theirs, ip, depth);
            codes[1] = fibula_rte_fib_delete(ours, ip, depth);
            missing += codes[0] == -ENOENT;
        }
        CHECK(codes[0] == codes[1]);
        if (change % 3 != 0) continue; /* several changes in a row are published together */
        for (at = 0; at < PROBES; at++) ips[at] = (below(4) << 30 | below(8) << 13 | below(16) << 3) + below(5) - 2;
        fib_same(theirs, ours, ips, PROBES);
    }
    CHECK(missing > 100 && (conf.type == RTE_FIB_DUMMY || refused > 20));
    rte_fib_free(theirs);
    fibula_rte_fib_free(ours);
}

/* ---- rte_fib6 */

static struct rte_fib6_conf fib6_conf(enum rte_fib_trie_nh_sz size, uint64_t none) {
    struct rte_fib6_conf conf = {.type = RTE_FIB6_TRIE, .default_nh = none, .max_routes = 1 << 16};
    conf.trie.nh_sz = size;
    conf.trie.num_tbl8 = 30000;
    return conf;
}

static void fib6_made(const char *name, struct rte_fib6_conf *conf) {
    struct rte_fib6 *theirs;
    struct fibula_rte_fib6 *ours;
    int errors[2];
    rte_errno = 0;
    theirs = rte_fib6_create(name, SOCKET_ID_ANY, conf);
    errors[0] = theirs == NULL ? rte_errno : 0;
    rte_errno = 0;
    ours = fibula_rte_fib6_create(name, SOCKET_ID_ANY, conf);
    errors[1] = ours == NULL ? rte_errno : 0;
    CHECK(errors[0] == errors[1] && (theirs == NULL) == (ours == NULL));
    rte_fib6_free(theirs);
    fibula_rte_fib6_free(ours);
}

static void fib6_refused(void) {
    struct rte_fib6_conf good = fib6_conf(RTE_FIB6_TRIE_2B, 100), conf = good;
    struct rte_fib6 *theirs;
    struct fibula_rte_fib6 *ours;
    uint8_t ip[16] = {0x20};
    fib6_made("good", &good);
    fib6_made(NULL, &good);
    fib6_made("none", NULL);
    conf.max_routes = -1;
    fib6_made("routes", &conf);
    conf = good;
    conf.type = RTE_FIB6_TRIE + 1;
    fib6_made("type", &conf);
    conf = good;
    conf.trie.num_tbl8 = 0;
    fib6_made("groups", &conf);
    conf.trie.num_tbl8 = 1 << 15;
    fib6_made("groups", &conf);
    conf = good;
    conf.default_nh = 1 << 15;
    fib6_made("hop", &conf);
    conf = good;
    conf.trie.nh_sz = RTE_FIB6_TRIE_8B + 1;
    fib6_made("size", &conf);
    theirs = rte_fib6_create("name", SOCKET_ID_ANY, &good);
    ours = fibula_rte_fib6_create("name", SOCKET_ID_ANY, &good);
    CHECK(theirs != NULL && ours != NULL);
    CHECK(fibula_rte_fib6_create("name", SOCKET_ID_ANY, &good) == NULL && rte_errno == EEXIST);
    CHECK(fibula_rte_fib6_find_existing("name") == ours && fibula_rte_fib6_find_existing("x") == NULL);
    CHECK(rte_fib6_add(NULL, ip, 1, 1) == fibula_rte_fib6_add(NULL, ip, 1, 1));
    CHECK(rte_fib6_add(theirs, ip, 129, 1) == fibula_rte_fib6_add(ours, ip, 129, 1));
    CHECK(rte_fib6_add(theirs, ip, 4, 1 << 15) == fibula_rte_fib6_add(ours, ip, 4, 1 << 15));
    CHECK(rte_fib6_delete(theirs, ip, 129) == fibula_rte_fib6_delete(ours, ip, 129));
    CHECK(rte_fib6_delete(theirs, ip, 4) == fibula_rte_fib6_delete(ours, ip, 4));
    rte_fib6_free(theirs);
    fibula_rte_fib6_free(ours);
    fibula_rte_fib6_free(NULL);
}

static void address6(uint8_t *ip) {
    int at;
    memset(ip, 0, 16);
    ip[0] = (uint8_t)(0x20 | below(2));
    for (at = 1; at < 16; at++) ip[at] = (uint8_t)(below(3) == 0 ? 0x80 >> below(8) : 0);
    if (below(4) == 0) memset(ip + 4, 0xff, 12);
}

static void fib6_random(void) {
    struct rte_fib6_conf conf = fib6_conf(RTE_FIB6_TRIE_4B, 77);
    struct rte_fib6 *theirs = rte_fib6_create("random", SOCKET_ID_ANY, &conf);
    struct fibula_rte_fib6 *ours = fibula_rte_fib6_create("random", SOCKET_ID_ANY, &conf);
    static uint8_t known[512][16];
    uint8_t ips[PROBES][16];
    uint64_t hops[2][PROBES];
    int change, at, full = 0;
    CHECK(theirs != NULL && ours != NULL);
    for (at = 0; at < 512; at++) address6(known[at]);
    for (change = 0; change < 4000; change++) {
        uint8_t depth = (uint8_t)(below(4) == 0 ? below(129) : 16 + below(49)), *ip = known[below(512)];
        int codes[2];
        if (below(3) > 0) {
            uint64_t hop = below(1000);
            codes[0] = rte_fib6_add(theirs, ip, depth, hop);
            if (codes[0] == -ENOSPC) { /* its groups are used up: ours are not sized */
                full++;
                continue;
            }
            codes[1] = fibula_rte_fib6_add(ours, ip, depth, hop);
        } else {
            codes[0] = rte_fib6_delete(theirs, ip, depth);
            codes[1] = fibula_rte_fib6_delete(ours, ip, depth);
        }
        CHECK(codes[0] == codes[1]);
        if (change % 3 != 0) continue;
        for (at = 0; at < PROBES; at++) {
            memcpy(ips[at], known[below(512)], 16);
            if (below(3) == 0) ips[at][below(16)] ^= (uint8_t)(1 << below(8));
        }
        CHECK(rte_fib6_lookup_bulk(theirs, ips, hops[0], PROBES) == 0);
        CHECK(fibula_rte_fib6_lookup_bulk(ours, ips, hops[1], PROBES) == 0);
        for (at = 0; at < PROBES; at++) CHECK(hops[0][at] == hops[1][at]);
    }
    CHECK(full < 1000);
    rte_fib6_free(theirs);
    fibula_rte_fib6_free(ours);
}

/* ---- rte_lpm */

static void lpm_made(const char *name, int socket, const struct rte_lpm_config *config) {
    struct rte_lpm *theirs;
    struct fibula_rte_lpm *ours;
    int errors[2];
    rte_errno = 0;
    theirs = rte_lpm_create(name, socket, config);
    errors[0] = theirs == NULL ? rte_errno : 0;
    rte_errno = 0;
    ours = fibula_rte_lpm_create(name, socket, config);
    errors[1] = ours == NULL ? rte_errno : 0;
    CHECK(errors[0] == errors[1] && (theirs == NULL) == (ours == NULL));
    rte_lpm_free(theirs);
    fibula_rte_lpm_free(ours);
}

static void lpm_random(void) {
    struct rte_lpm_config good = {.max_rules = 1 << 14, .number_tbl8s = 1 << 10}, config = good;
    struct rte_lpm *theirs;
    struct fibula_rte_lpm *ours;
    uint32_t ips[PROBES], hops[2][PROBES];
    int change, at;
    lpm_made("good", SOCKET_ID_ANY, &good);
    lpm_made(NULL, SOCKET_ID_ANY, &good);
    CHECK(fibula_rte_lpm_create("none", SOCKET_ID_ANY, NULL) == NULL && rte_errno == EINVAL); /* DPDK's crashes */
    lpm_made("socket", -2, &good);
    config.max_rules = 0;
    lpm_made("rules", SOCKET_ID_ANY, &config);
    config = good;
    config.number_tbl8s = RTE_LPM_MAX_TBL8_NUM_GROUPS + 1;
    lpm_made("groups", SOCKET_ID_ANY, &config);
    theirs = rte_lpm_create("random", SOCKET_ID_ANY, &good);
    ours = fibula_rte_lpm_create("random", SOCKET_ID_ANY, &good);
    CHECK(theirs != NULL && ours != NULL && fibula_rte_lpm_find_existing("random") == ours);
    CHECK(rte_lpm_add(NULL, 0, 1, 1) == fibula_rte_lpm_add(NULL, 0, 1, 1));
    CHECK(rte_lpm_add(theirs, 0, 0, 1) == fibula_rte_lpm_add(ours, 0, 0, 1));
    CHECK(rte_lpm_add(theirs, 0, 33, 1) == fibula_rte_lpm_add(ours, 0, 33, 1));
    CHECK(rte_lpm_delete(NULL, 0, 1) == fibula_rte_lpm_delete(NULL, 0, 1));
    CHECK(rte_lpm_delete(theirs, 0, 0) == fibula_rte_lpm_delete(ours, 0, 0));
    CHECK(rte_lpm_is_rule_present(theirs, 0, 1, NULL) == fibula_rte_lpm_is_rule_present(ours, 0, 1, NULL));
    for (change = 0; change < 6000; change++) {
        uint32_t ip = below(4) << 30 | below(8) << 13 | below(16) << 3, found[2] = {5, 5};
        uint8_t depth = (uint8_t)(1 + (below(8) == 0 ? below(32) : 15 + below(17)));
        int codes[2];
        if (below(3) > 0) {
            uint32_t hop = below(1 << 24);
            codes[0] = rte_lpm_add(theirs, ip, depth, hop);
            codes[1] = fibula_rte_lpm_add(ours, ip, depth, hop);
        } else {
            codes[0] = rte_lpm_delete(theirs, ip, depth);
            codes[1] = fibula_rte_lpm_delete(ours, ip, depth);
        }
        CHECK(codes[0] == codes[1]);
        depth = (uint8_t)(1 + below(32));
        codes[0] = rte_lpm_is_rule_present(theirs, ip, depth, &found[0]);
        codes[1] = fibula_rte_lpm_is_rule_present(ours, ip, depth, &found[1]);
        CHECK(codes[0] == codes[1] && found[0] == found[1]);
        if (change == 5000) {
            rte_lpm_delete_all(theirs);
            fibula_rte_lpm_delete_all(ours);
        }
        if (change % 3 != 0) continue;
        for (at = 0; at < PROBES; at++) ips[at] = (below(4) << 30 | below(8) << 13 | below(16) << 3) + below(5) - 2;
        CHECK(rte_lpm_lookup_bulk(theirs, ips, hops[0], PROBES) == 0);
        CHECK(fibula_rte_lpm_lookup_bulk(ours, ips, hops[1], PROBES) == 0);
        for (at = 0; at < PROBES; at++) {
            uint32_t is_found = hops[0][at] & RTE_LPM_LOOKUP_SUCCESS;
            CHECK(is_found == (hops[1][at] & RTE_LPM_LOOKUP_SUCCESS));
            CHECK(!is_found || (hops[0][at] & 0xffffff) == (hops[1][at] & 0xffffff));
            codes[0] = rte_lpm_lookup(theirs, ips[at], &found[0]);
            codes[1] = fibula_rte_lpm_lookup(ours, ips[at], &found[1]);
            CHECK(codes[0] == codes[1] && (codes[0] != 0 || found[0] == found[1]));
        }
        for (at = 0; at < PROBES; at += 4) {
            xmm_t four;
            memcpy(&four, ips + at, sizeof four);
            rte_lpm_lookupx4(theirs, four, hops[0] + at, 9);
            fibula_rte_lpm_lookupx4(ours, four, hops[1] + at, 9);
        }
        CHECK(memcmp(hops[0], hops[1], sizeof hops[0]) == 0);
    }
    rte_lpm_free(theirs);
    fibula_rte_lpm_free(ours);
}

/* A thread that is no lcore reads what another one has made visible. */
static void *no_lcore(void *argument) {
    struct fibula_rte_fib *fib = (struct fibula_rte_fib *)argument;
    uint32_t ip = 0x0a000001;
    uint64_t hop = 0;
    CHECK(rte_lcore_id() >= RTE_MAX_LCORE);
    CHECK(fibula_rte_fib_lookup_bulk(fib, &ip, &hop, 1) == 0 && hop == 3);
    return NULL;
}

/* Two threads that add in turns, of which each then looks up what it added. */
enum { TURNS = 200 };

struct turns {
    struct fibula_rte_fib *fib;
    pthread_barrier_t added;
};

static void take_turns(struct turns *turns, uint32_t ip, int is_second) {
    uint32_t turn;
    for (turn = 0; turn < TURNS; turn++) {
        uint64_t hop = 0;
        if (is_second) pthread_barrier_wait(&turns->added); /* the other has added */
        CHECK(fibula_rte_fib_add(turns->fib, ip, 32, turn) == 0);
        if (!is_second) pthread_barrier_wait(&turns->added);
        pthread_barrier_wait(&turns->added); /* both have */
        CHECK(fibula_rte_fib_lookup_bulk(turns->fib, &ip, &hop, 1) == 0 && hop == turn);
        pthread_barrier_wait(&turns->added);
    }
}

static void *second(void *argument) {
    take_turns((struct turns *)argument, 0x0b000002, 1);
    return NULL;
}

/* Several threads make a table of one name: one of them has it. */
static void *make_named(void *argument) {
    struct rte_fib_conf conf = fib_conf(RTE_FIB_DIR24_8_8B, 9);
    struct fibula_rte_fib *fib;
    pthread_barrier_wait((pthread_barrier_t *)argument);
    fib = fibula_rte_fib_create("one", SOCKET_ID_ANY, &conf);
    CHECK(fib != NULL || rte_errno == EEXIST);
    return fib;
}

static void threads(void) {
    struct rte_fib_conf conf = fib_conf(RTE_FIB_DIR24_8_8B, 9);
    struct fibula_rte_fib *fib = fibula_rte_fib_create("threads", SOCKET_ID_ANY, &conf);
    struct turns turns = {.fib = fib};
    pthread_barrier_t start;
    pthread_t thread, makers[3];
    int round, at;
    CHECK(fib != NULL && fibula_rte_fib_add(fib, 0x0a000000, 8, 3) == 0 && fibula_rte_flush(&fib->table) == 0);
    CHECK(pthread_create(&thread, NULL, no_lcore, fib) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(pthread_barrier_init(&turns.added, NULL, 2) == 0 && pthread_create(&thread, NULL, second, &turns) == 0);
    take_turns(&turns, 0x0b000001, 0);
    CHECK(pthread_join(thread, NULL) == 0 && pthread_barrier_destroy(&turns.added) == 0);
    CHECK(pthread_barrier_init(&start, NULL, 3) == 0);
    for (round = 0; round < 50; round++) {
        struct fibula_rte_fib *found = NULL;
        for (at = 0; at < 3; at++) CHECK(pthread_create(&makers[at], NULL, make_named, &start) == 0);
        for (at = 0; at < 3; at++) {
            void *made;
            CHECK(pthread_join(makers[at], &made) == 0 && (made == NULL || found == NULL));
            if (made != NULL) found = (struct fibula_rte_fib *)made;
        }
        CHECK(found != NULL && fibula_rte_fib_find_existing("one") == found);
        fibula_rte_fib_free(found);
    }
    CHECK(pthread_barrier_destroy(&start) == 0);
    fibula_rte_idle(&fib->table);
    fibula_rte_fib_free(fib);
}

int main(void) {
    char *arguments[] = {"rte", "--no-huge", "-m", "384", "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=error", "--lcores", "0", NULL};
    struct rte_fib_conf dummy = fib_conf(RTE_FIB_DIR24_8_2B, UINT64_C(1) << 40);
    dummy.type = RTE_FIB_DUMMY;
    alarm(300);
    if (rte_eal_init(10, arguments) < 0) {
        fprintf(stderr, "DPDK does not start: %s\n", rte_strerror(rte_errno));
        return 1;
    }
    fib_refused();
    fib_nested(fib_conf(RTE_FIB_DIR24_8_2B, 100));
    fib_nested(dummy);
    fib_random(fib_conf(RTE_FIB_DIR24_8_1B, 100), 128);
    fib_random(fib_conf(RTE_FIB_DIR24_8_2B, 100), 1 << 15);
    fib_random(dummy, 1 << 20);
    fib6_refused();
    fib6_random();
    lpm_random();
    threads();
    puts("done");
    return 0;
}
