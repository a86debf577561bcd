/* Tables of fibula in a program with DPDK: two lcores look up in bursts while the main one changes routes; and both
 * tables, DPDK's and ours, in one process: answers, rates, loads, changes.
 *
 *     cc -O3 $(pkg-config --cflags libdpdk fibula) dpdk.c -o dpdk $(pkg-config --libs libdpdk fibula) -pthread
 *     ./dpdk [ROUTES [SECONDS [OPTION OF EAL...]]]        (without options: --no-huge -m 2048 --lcores (0-2)@(all cores))
 *
 * The functions are those of fibula_rte_fib.h and fibula_rte_fib6.h: a program with rte_fib needs other includes alone.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_memory.h>
#include <rte_version.h>

#include <fibula_rte_fib.h>
#include <fibula_rte_fib6.h>

#define BURST 64
#define KEYS (1 << 18)
#define HOPS 250
#define NONE 30000
#define CHANGES 20000

struct prefix {
    uint8_t address[16]; /* network byte order */
    uint8_t depth;
    uint8_t hop;
};

static void fail(const char *what) {
    fprintf(stderr, "%s: DPDK: %s; fibula: %s\n", what, rte_strerror(rte_errno), fibula_error());
    exit(1);
}

static uint64_t state = 88172645463325252u;

static uint32_t below(uint32_t end) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) * end >> 32);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint32_t ipv4(const uint8_t *address) {
    return (uint32_t)address[0] << 24 | (uint32_t)address[1] << 16 | (uint32_t)address[2] << 8 | address[3];
}

/* Prefixes as long as those of the Internet: of IPv4 mostly /24, of IPv6 mostly /48 and /32. */
static struct prefix random_prefix(bool is_v6) {
    static const uint8_t of4[8] = {24, 24, 24, 24, 24, 22, 20, 16}, of6[8] = {48, 48, 48, 48, 32, 32, 40, 44};
    struct prefix made = {{0}, 0, (uint8_t)below(HOPS)};
    int at;
    made.depth = is_v6 ? of6[below(8)] : of4[below(8)];
    made.address[0] = (uint8_t)(is_v6 ? 0x20 | below(16) : 1 + below(223));
    for (at = 1; at < made.depth / 8; at++) made.address[at] = (uint8_t)below(256);
    if (made.depth % 8 != 0) made.address[at] = (uint8_t)(below(256) & (0xff00 >> made.depth % 8));
    return made;
}

/* ---- the tables */

struct rival {
    const char *name;
    bool is_v6;
    void *(*make)(uint32_t routes);
    int (*add)(void *table, const struct prefix *prefix);
    int (*delete)(void *table, const struct prefix *prefix);
    int (*lookup)(void *table, const void *addresses, uint64_t *hops, int count);
    int (*flush)(void *table);
    void (*free)(void *table);
};

static struct rte_fib_conf conf4(uint32_t routes) {
    struct rte_fib_conf conf = {.type = RTE_FIB_DIR24_8, .default_nh = NONE, .max_routes = (int)routes + 2 * CHANGES};
    conf.dir24_8.nh_sz = RTE_FIB_DIR24_8_2B;
    conf.dir24_8.num_tbl8 = 256;
    return conf;
}

static struct rte_fib6_conf conf6(uint32_t routes) {
    struct rte_fib6_conf conf = {.type = RTE_FIB6_TRIE, .default_nh = NONE, .max_routes = (int)routes + 2 * CHANGES};
    conf.trie.nh_sz = RTE_FIB6_TRIE_4B;
    conf.trie.num_tbl8 = 3 * routes + 6 * CHANGES; /* rte_fib6 sets a group aside for each route and step */
    return conf;
}

static void *rte4_make(uint32_t routes) {
    struct rte_fib_conf conf = conf4(routes);
    struct rte_fib *made = rte_fib_create("rte", SOCKET_ID_ANY, &conf);
    if (made != NULL) rte_fib_select_lookup(made, RTE_FIB_LOOKUP_DEFAULT);
    return made;
}
static int rte4_add(void *table, const struct prefix *of) { return rte_fib_add(table, ipv4(of->address), of->depth, of->hop); }
static int rte4_delete(void *table, const struct prefix *of) { return rte_fib_delete(table, ipv4(of->address), of->depth); }
static int rte4_lookup(void *table, const void *ips, uint64_t *hops, int count) {
    return rte_fib_lookup_bulk(table, (uint32_t *)(uintptr_t)ips, hops, count);
}
static void rte4_free(void *table) { rte_fib_free(table); }

static void *our4_make(uint32_t routes) {
    struct rte_fib_conf conf = conf4(routes);
    return fibula_rte_fib_create("ours", SOCKET_ID_ANY, &conf);
}
static int our4_add(void *table, const struct prefix *of) {
    return fibula_rte_fib_add(table, ipv4(of->address), of->depth, of->hop);
}
static int our4_delete(void *table, const struct prefix *of) {
    return fibula_rte_fib_delete(table, ipv4(of->address), of->depth);
}
static int our4_lookup(void *table, const void *ips, uint64_t *hops, int count) {
    return fibula_rte_fib_lookup_bulk(table, (uint32_t *)(uintptr_t)ips, hops, count);
}
static void our4_free(void *table) { fibula_rte_fib_free(table); }

static void *rte6_make(uint32_t routes) {
    struct rte_fib6_conf conf = conf6(routes);
    struct rte_fib6 *made = rte_fib6_create("rte", SOCKET_ID_ANY, &conf);
    if (made != NULL) rte_fib6_select_lookup(made, RTE_FIB6_LOOKUP_DEFAULT);
    return made;
}
static int rte6_add(void *table, const struct prefix *of) { return rte_fib6_add(table, of->address, of->depth, of->hop); }
static int rte6_delete(void *table, const struct prefix *of) { return rte_fib6_delete(table, of->address, of->depth); }
static int rte6_lookup(void *table, const void *ips, uint64_t *hops, int count) {
    return rte_fib6_lookup_bulk(table, (uint8_t(*)[16])(uintptr_t)ips, hops, count);
}
static void rte6_free(void *table) { rte_fib6_free(table); }

static void *our6_make(uint32_t routes) {
    struct rte_fib6_conf conf = conf6(routes);
    return fibula_rte_fib6_create("ours", SOCKET_ID_ANY, &conf);
}
static int our6_add(void *table, const struct prefix *of) {
    return fibula_rte_fib6_add(table, of->address, of->depth, of->hop);
}
static int our6_delete(void *table, const struct prefix *of) {
    return fibula_rte_fib6_delete(table, of->address, of->depth);
}
static int our6_lookup(void *table, const void *ips, uint64_t *hops, int count) {
    return fibula_rte_fib6_lookup_bulk(table, (uint8_t(*)[16])(uintptr_t)ips, hops, count);
}
static void our6_free(void *table) { fibula_rte_fib6_free(table); }

static int at_once(void *table) { return table == NULL; }
static int our_flush(void *table) { return fibula_rte_flush(table); }

static const struct rival RIVALS[4] = {
    {"rte_fib", false, rte4_make, rte4_add, rte4_delete, rte4_lookup, at_once, rte4_free},
    {"fibula", false, our4_make, our4_add, our4_delete, our4_lookup, our_flush, our4_free},
    {"rte_fib6", true, rte6_make, rte6_add, rte6_delete, rte6_lookup, at_once, rte6_free},
    {"fibula", true, our6_make, our6_add, our6_delete, our6_lookup, our_flush, our6_free},
};

/* ---- readers and a writer */

struct shared {
    const struct rival *rival;
    void *table;
    const uint8_t *keys;
    bool is_over;
    uint64_t looked_up[RTE_MAX_LCORE];
};

/* A reading lcore: each answer is a next hop of some route, or that of no route. */
static int reading(void *argument) {
    struct shared *shared = argument;
    uint64_t hops[BURST], count = 0;
    size_t size = shared->rival->is_v6 ? 16 : 4, from = 0;
    while (!__atomic_load_n(&shared->is_over, __ATOMIC_RELAXED)) {
        if (shared->rival->lookup(shared->table, shared->keys + from * size, hops, BURST) != 0) return -1;
        for (int at = 0; at < BURST; at++)
            if (hops[at] >= HOPS && hops[at] != NONE) return -1;
        from = (from + BURST) % KEYS;
        count += BURST;
    }
    shared->looked_up[rte_lcore_id()] = count;
    return 0;
}

static void readers(const struct rival *rival, void *table, const uint8_t *keys, double seconds) {
    static struct shared shared;
    double start, took;
    uint64_t changes = 0, looked_up = 0;
    unsigned lcore, lcores = 0;
    memset(&shared, 0, sizeof shared);
    shared.rival = rival;
    shared.table = table;
    shared.keys = keys;
    RTE_LCORE_FOREACH_WORKER(lcore) {
        if (rte_eal_remote_launch(reading, &shared, lcore) != 0) fail("lcore");
        lcores++;
    }
    start = now();
    while ((took = now() - start) < seconds) {
        struct prefix prefix = random_prefix(rival->is_v6);
        int done = rival->add(table, &prefix);
        if (done == 0) done = rival->delete(table, &prefix);
        if (done != 0) {
            printf("  changes end: %s\n", strerror(-done));
            break;
        }
        changes += 2;
    }
    __atomic_store_n(&shared.is_over, true, __ATOMIC_RELAXED);
    RTE_LCORE_FOREACH_WORKER(lcore) {
        if (rte_eal_wait_lcore(lcore) != 0) fail("a reader had a wrong answer");
        looked_up += shared.looked_up[lcore];
    }
    printf("  %u lcores look up %.1f M addresses a second in all, while one makes %.0f k changes a second\n", lcores,
           1e-6 * (double)looked_up / took, 1e-3 * (double)changes / took);
}

/* ---- one after the other, in one process */

static void rate(const struct rival *rival, void *table, const uint8_t *keys, int burst) {
    static uint64_t hops[1024];
    size_t size = rival->is_v6 ? 16 : 4;
    double best = 0;
    for (int round = 0; round < 5; round++) {
        double start = now();
        for (size_t from = 0; from + (size_t)burst <= KEYS; from += (size_t)burst)
            rival->lookup(table, keys + from * size, hops, burst);
        double found = KEYS / (now() - start);
        best = found > best ? found : best;
    }
    printf("  bursts of %4d: %6.1f M addresses a second (best of 5)\n", burst, 1e-6 * best);
}

/* Loads, asks and changes a table; returns its answers. */
static uint64_t *measure(const struct rival *rival, const struct prefix *routes, uint32_t count,
                         const struct prefix *changed, const uint8_t *keys, double seconds) {
    uint64_t *answers = malloc(KEYS * sizeof *answers);
    size_t size = rival->is_v6 ? 16 : 4;
    double start = now();
    void *table = rival->make(count);
    if (table == NULL || answers == NULL) fail(rival->name);
    printf("%s, %s\n", rival->name, rival->is_v6 ? "IPv6" : "IPv4");
    for (uint32_t at = 0; at < count; at++)
        if (rival->add(table, &routes[at]) != 0) fail("add");
    if (rival->flush(table) != 0) fail("flush");
    printf("  %u routes, one call each, until all are visible: %.3f s\n", count, now() - start);
    for (size_t from = 0; from < KEYS; from += BURST)
        if (rival->lookup(table, keys + from * size, answers + from, BURST) != 0) fail("lookup");
    rate(rival, table, keys, 32);
    rate(rival, table, keys, 256);
    rate(rival, table, keys, 1024);
    start = now();
    for (int at = 0; at < CHANGES; at++)
        if (rival->add(table, &changed[at]) != 0) fail("add");
    if (rival->flush(table) != 0) fail("flush");
    printf("  %d further routes, one call each, until all are visible: %.4f s\n", CHANGES, now() - start);
    start = now();
    for (int at = 0; at < 100; at++) {
        if (rival->add(table, &changed[at]) != 0 || rival->flush(table) != 0) fail("add");
    }
    printf("  a call until its change is visible to all: %.1f us\n", 1e6 * (now() - start) / 100);
    if (seconds > 0) readers(rival, table, keys, seconds);
    rival->free(table);
    return answers;
}

/* Our table without DPDK's names: all routes in one call, and changes that are visible when their calls return. */
static void at_return(bool is_v6, const struct prefix *routes, uint32_t count, const struct prefix *changed) {
    fibula_route *all = calloc(count, sizeof *all), one = {{0}, 0, 0, 0};
    fibula_live *live = fibula_live_new(0);
    fibula_memory memory;
    double start;
    if (all == NULL || live == NULL) fail("fibula");
    for (uint32_t at = 0; at < count; at++) {
        memcpy(all[at].address, routes[at].address, 16);
        all[at].family = is_v6 ? FIBULA_IPV6 : FIBULA_IPV4;
        all[at].length = routes[at].depth;
        all[at].value = routes[at].hop;
    }
    start = now();
    if (!fibula_live_set(live, all, count)) fail("set");
    printf("fibula, %s, each call visible when it returns\n", is_v6 ? "IPv6" : "IPv4");
    printf("  %u routes in one call: %.3f s\n", count, now() - start);
    start = now();
    for (int at = 0; at < 1000; at++) {
        one = all[at];
        one.value = 255;
        if (!fibula_live_set(live, &one, 1)) fail("set");
    }
    printf("  a call with another value of a route: %.1f us\n", 1e6 * (now() - start) / 1000);
    start = now();
    for (int at = 0; at < 1000; at++) {
        memcpy(one.address, changed[at].address, 16);
        one.length = changed[at].depth;
        if (!fibula_live_set(live, &one, 1)) fail("set");
    }
    printf("  a call with a new route: %.1f us\n", 1e6 * (now() - start) / 1000);
    if (!fibula_live_memory(live, one.family, &memory)) fail("memory");
    printf("  MiB: routes %.1f, engine %.1f, replaced engines %.1f, values %.1f\n", (double)memory.routes / (1 << 20),
           (double)memory.engine / (1 << 20), (double)memory.old / (1 << 20), (double)memory.values / (1 << 20));
    fibula_live_free(live);
    free(all);
}

static void family(bool is_v6, uint32_t count, double seconds) {
    struct prefix *routes = malloc(count * sizeof *routes), *changed = malloc(CHANGES * sizeof *changed);
    size_t size = is_v6 ? 16 : 4;
    uint8_t *keys = calloc(KEYS, size);
    uint64_t *answers[2];
    if (routes == NULL || changed == NULL || keys == NULL) fail("memory");
    for (uint32_t at = 0; at < count; at++) routes[at] = random_prefix(is_v6);
    for (int at = 0; at < CHANGES; at++) changed[at] = random_prefix(is_v6);
    for (int at = 0; at < KEYS; at++) {
        uint8_t key[16];
        memcpy(key, routes[below(count)].address, 16);
        key[is_v6 ? 15 : 3] = (uint8_t)below(256);
        if (is_v6) memcpy(keys + (size_t)at * 16, key, 16);
        else memcpy(keys + (size_t)at * 4, &(uint32_t){ipv4(key)}, 4);
    }
    for (int which = 0; which < 2; which++)
        answers[which] = measure(&RIVALS[2 * is_v6 + which], routes, count, changed, keys, seconds);
    for (int at = 0; at < KEYS; at++)
        if (answers[0][at] != answers[1][at]) fail("the two tables answer differently");
    printf("the answers of %d addresses are equal\n", KEYS);
    at_return(is_v6, routes, count, changed);
    for (int which = 0; which < 2; which++) free(answers[which]);
    free(routes);
    free(changed);
    free(keys);
}

int main(int count, char **arguments) {
    uint32_t routes = count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : 900000;
    double seconds = count > 2 ? atof(arguments[2]) : 2;
    char lcores[64];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    char *own[] = {arguments[0], "--no-huge", "-m", "2048", "--no-pci", "--no-telemetry", "--no-shconf",
                   "--log-level=error", "--force-max-simd-bitwidth=512", "--lcores", lcores, NULL};
    snprintf(lcores, sizeof lcores, "(0-2)@(0-%ld)", cores - 1);
    if (routes < 4000) fail("ROUTES is not a number from 4000 on");
    if (count > 3) {
        arguments[2] = arguments[0];
        if (rte_eal_init(count - 2, arguments + 2) < 0) fail("DPDK does not start");
    } else if (rte_eal_init(11, own) < 0) {
        fail("DPDK does not start");
    }
    printf("%s, fibula %s\n", rte_version(), fibula_version());
    family(false, routes, seconds);
    family(true, routes / 4 + 1, seconds);
    return 0;
}
