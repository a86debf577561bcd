/*
 * A contestant of the harness (bench/README.md has the protocol): DPDK's tables, looked up in bulks as their functions take them.
 * The argument is the table: lpm, lpm-x4, fib-scalar, fib-avx512, lpm6, fib6-scalar, fib6-avx512.
 */
#define _GNU_SOURCE
#include "tables.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_byteorder.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>
#include <rte_vect.h>
#include <rte_version.h>

/* Keys that are looked up before the clock starts: other contestants have used the caches meanwhile. */
#define WARM_UP (1 << 18)
/* Keys of a call, at most. */
#define BULK 1024

struct route {
    uint8_t address[16]; /* as it lies in a packet */
    uint32_t hop;
    uint8_t len;
};

static const char *form;
static int is_huge;
static struct fib_table *table;
static unsigned size; /* bytes of a key */
static void *keys;    /* IPv4: words in the order of this machine; IPv6: bytes as they lie in a packet */
static size_t count, batch;

static uint8_t *read_file(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*bytes + 64);
    if (data != NULL && fread(data, 1, *bytes, file) != *bytes) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

static void fail(const char *what, int error) {
    printf("error %s: %s\n", what, strerror(abs(error)));
}

/* Little-endian bytes of a key, the other way round. */
static void turn(uint8_t *to, const uint8_t *from) {
    for (unsigned at = 0; at < size; at++)
        to[at] = from[size - 1 - at];
}

static int by_length(const void *a, const void *b) {
    return ((const struct route *)a)->len - ((const struct route *)b)->len;
}

/*
 * Groups of 256 that the table needs, of routes in ascending order: one for each value of the bits up to a step that a longer route
 * has. rte_fib6 sets one aside for each route and step.
 */
static uint32_t groups(const struct route *routes, size_t number, int is_each) {
    uint32_t found = 0;
    for (unsigned step = 24; step < 8 * size; step += 8) {
        const struct route *last = NULL;
        for (size_t at = 0; at < number; at++) {
            if (routes[at].len <= step)
                continue;
            found += is_each || last == NULL || memcmp(last->address, routes[at].address, step / 8) != 0;
            last = &routes[at];
        }
    }
    return found;
}

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int select_form(void) {
    if (strcmp(form, "fib-scalar") == 0)
        return rte_fib_select_lookup(table->fib, RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO);
    if (strcmp(form, "fib-avx512") == 0)
        return rte_fib_select_lookup(table->fib, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512);
    if (strcmp(form, "fib6-scalar") == 0)
        return rte_fib6_select_lookup(table->fib6, RTE_FIB6_LOOKUP_TRIE_SCALAR);
    if (strcmp(form, "fib6-avx512") == 0)
        return rte_fib6_select_lookup(table->fib6, RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512);
    return 0;
}

static void load(const char *family, const char *path) {
    size = strcmp(family, "v6") == 0 ? 16 : 4;
    enum fib_kind kind = strncmp(form, "lpm6", 4) == 0  ? FIB_KIND_LPM6
                         : strncmp(form, "fib6", 4) == 0 ? FIB_KIND_FIB6
                         : strncmp(form, "lpm", 3) == 0  ? FIB_KIND_LPM
                                                         : FIB_KIND_FIB;
    size_t bytes, record = size + 8;
    uint8_t *file = read_file(path, &bytes);
    if (file == NULL || bytes % record != 0) {
        fail(path, file == NULL ? errno : EINVAL);
        return;
    }
    size_t number = bytes / record;
    struct route *routes = calloc(number + 1, sizeof *routes);
    uint32_t most = 0;
    for (size_t at = 0; at < number; at++) {
        const uint8_t *one = file + at * record;
        turn(routes[at].address, one);
        routes[at].len = one[size];
        memcpy(&routes[at].hop, one + size + 4, 4);
        most = RTE_MAX(most, routes[at].hop);
    }
    free(file);
    uint32_t limit = kind == FIB_KIND_LPM ? 1 << 24 : kind == FIB_KIND_LPM6 ? 1 << 21 : INT32_MAX;
    if (most >= limit) {
        printf("error its next hops end at %u, the table's largest is %u\n", limit - 1, most);
        return;
    }
    uint32_t sets = groups(routes, number, kind == FIB_KIND_FIB6) + 256;
    /* The narrowest next hops that hold the table's and the numbers of groups: smaller tables are faster. */
    uint32_t largest = RTE_MAX(most, sets), width = kind == FIB_KIND_FIB && largest < 127 ? 1 : largest < 32767 ? 2 : 4;
    qsort(routes, number, sizeof *routes, by_length);
    uint64_t started = now(CLOCK_MONOTONIC);
    table = fib_table_new(kind, (uint32_t)number + 16, sets, width);
    int done = table == NULL ? -rte_errno : select_form();
    for (size_t at = 0; done == 0 && at < number; at++)
        done = fib_table_add(table, routes[at].address, routes[at].len, routes[at].hop);
    uint64_t built = now(CLOCK_MONOTONIC) - started;
    free(routes);
    if (done != 0) {
        fail(form, done);
        return;
    }
    printf("ok\t%lu\t-\t", built);
    if (kind == FIB_KIND_FIB || kind == FIB_KIND_FIB6)
        printf("next hops of %u bytes, ", width);
    else if (kind == FIB_KIND_LPM)
        printf("entries written as rte_lpm_add would, which takes hours, ");
    if (size == 16)
        printf("addresses in network order before the clock starts, ");
    printf("%u groups of 256, %s\n", sets, is_huge ? "on huge pages" : "NO huge pages: none are reserved");
}

static void read_keys(const char *path, const char *threads, const char *keys_of_call) {
    size_t bytes;
    free(keys);
    keys = read_file(path, &bytes);
    batch = strtoul(keys_of_call, NULL, 10);
    if (keys == NULL || bytes < size || strcmp(threads, "1") != 0 || batch < 1 || batch > BULK) {
        printf("error %s: one thread and calls of 1 to %u keys\n", path, BULK);
        return;
    }
    count = bytes / size;
    if (size == 16)
        for (size_t at = 0; at < count; at++) {
            uint8_t key[16];
            turn(key, (uint8_t *)keys + 16 * at);
            memcpy((uint8_t *)keys + 16 * at, key, 16);
        }
    printf("ok\n");
}

/* Looks up so many keys from one on; there is room behind the hops for three more. */
static inline void look_up(size_t from, uint32_t *hops, unsigned number) {
    static uint64_t wide[BULK] __rte_aligned(64);
    const uint32_t *v4 = (const uint32_t *)keys + from;
    uint8_t(*v6)[16] = (uint8_t(*)[16])keys + from;
    switch (table->kind) {
    case FIB_KIND_LPM:
        if (form[3] == 0) {
            rte_lpm_lookup_bulk(table->lpm, v4, hops, number);
            for (unsigned at = 0; at < number; at++)
                hops[at] = hops[at] & RTE_LPM_LOOKUP_SUCCESS ? hops[at] & 0xffffff : FIB_NO_HOP;
            return;
        }
        for (unsigned at = 0; at < number; at += 4) {
            xmm_t four;
            memcpy(&four, v4 + at, sizeof four);
            rte_lpm_lookupx4(table->lpm, four, hops + at, FIB_NO_HOP);
        }
        return;
    case FIB_KIND_LPM6:
        rte_lpm6_lookup_bulk_func(table->lpm6, v6, (int32_t *)hops, number);
        return;
    case FIB_KIND_FIB:
        rte_fib_lookup_bulk(table->fib, (uint32_t *)(uintptr_t)v4, wide, (int)number);
        break;
    default:
        rte_fib6_lookup_bulk(table->fib6, v6, wide, (int)number);
        break;
    }
    for (unsigned at = 0; at < number; at++)
        hops[at] = wide[at] == table->none ? FIB_NO_HOP : (uint32_t)wide[at];
}

static uint32_t sum(size_t keys_of_run) {
    static uint32_t hops[BULK + 4] __rte_aligned(64);
    uint32_t all = 0;
    for (size_t from = 0; from < keys_of_run; from += batch) {
        unsigned number = (unsigned)RTE_MIN(batch, keys_of_run - from);
        look_up(from, hops, number);
        for (unsigned at = 0; at < number; at++)
            all += hops[at];
    }
    return all;
}

static void answer(const char *path) {
    static uint32_t hops[BULK + 4] __rte_aligned(64);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        fail(path, errno);
        return;
    }
    size_t written = 0;
    for (size_t from = 0; from < count; from += batch) {
        unsigned number = (unsigned)RTE_MIN(batch, count - from);
        look_up(from, hops, number);
        written += fwrite(hops, 4, number, file);
    }
    if (fclose(file) != 0 || written != count)
        fail(path, EIO);
    else
        printf("ok\n");
}

static void run(unsigned long rounds) {
    for (; rounds > 0; rounds--) {
        volatile uint32_t warm = sum(RTE_MIN(count, (size_t)WARM_UP));
        (void)warm;
        uint64_t wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
        uint32_t all = sum(count);
        cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
        printf("time\t%lu\t%lu\t%u\n", now(CLOCK_MONOTONIC) - wall, cpu, all);
    }
}

/* Whether enough huge pages are free for a table of a million routes. */
static int has_huge_pages(void) {
    unsigned long found = 0;
    char line[200];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "HugePages_Free: %lu", &found) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return found >= 256;
}

static int start(void) {
    char place[32] = "0@0";
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        for (int core = 0; core < CPU_SETSIZE; core++)
            if (CPU_ISSET(core, &allowed)) {
                snprintf(place, sizeof place, "0@%d", core);
                break;
            }
    is_huge = has_huge_pages();
    char *huge[] = {"lookup", "--in-memory", "--no-pci", "--no-telemetry", "--log-level=error", "--force-max-simd-bitwidth=512",
                    "--lcores", place, NULL};
    char *small[] = {"lookup", "--no-huge", "-m", "2048", "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=error",
                     "--force-max-simd-bitwidth=512", "--lcores", place, NULL};
    return is_huge ? rte_eal_init(8, huge) : rte_eal_init(11, small);
}

int main(int arguments, char **words) {
    form = arguments > 1 ? words[1] : "fib-scalar";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (start() < 0) {
        fprintf(stderr, "DPDK does not start: %s\n", rte_strerror(rte_errno));
        return 1;
    }
    printf("fibula-bench 1 %s\n", rte_version());
    static char line[8192];
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char *rest = line, *word[4] = {NULL};
        for (int at = 0; at < 4 && rest != NULL; at++)
            word[at] = strsep(&rest, "\t");
        if (strcmp(word[0], "load") == 0 && word[2] != NULL)
            load(word[1], word[2]);
        else if (strcmp(word[0], "keys") == 0 && word[3] != NULL)
            read_keys(word[1], word[2], word[3]);
        else if (strcmp(word[0], "answer") == 0 && word[1] != NULL)
            answer(word[1]);
        else if (strcmp(word[0], "run") == 0 && word[1] != NULL)
            run(strtoul(word[1], NULL, 10));
        else if (strcmp(word[0], "end") == 0)
            break;
        else
            printf("error %s: not understood\n", word[0]);
    }
    return 0;
}
