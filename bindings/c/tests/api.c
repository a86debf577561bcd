/* A program that uses all of fibula.h: `file PATH ADDRESS...`, `live`, `load`, `script MS`, `more FOLDER`, or
 * `wrong FOLDER`. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <fibula.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* A prefix such as 10.0.0.0/8 with a value. */
static fibula_route route(const char *prefix, uint64_t value) {
    char text[64];
    fibula_route made;
    char *slash;
    memset(&made, 0xee, sizeof made); /* what is not used may be anything */
    snprintf(text, sizeof text, "%s", prefix);
    slash = strchr(text, '/');
    CHECK(slash != NULL);
    *slash = 0;
    made.length = (uint8_t)atoi(slash + 1);
    made.family = strchr(text, ':') != NULL ? FIBULA_IPV6 : FIBULA_IPV4;
    made.value = value;
    CHECK(inet_pton(made.family == FIBULA_IPV6 ? AF_INET6 : AF_INET, text, made.address) == 1);
    return made;
}

static void print_match(const fibula_table *table, const char *address) {
    uint8_t bytes[16];
    uint8_t family = strchr(address, ':') != NULL ? FIBULA_IPV6 : FIBULA_IPV4;
    char text[64], name[16];
    uint32_t row = 7;
    fibula_route found;
    size_t column;
    CHECK(inet_pton(family == FIBULA_IPV6 ? AF_INET6 : AF_INET, address, bytes) == 1);
    if (family == FIBULA_IPV6) {
        fibula_lookup6(table, bytes, &row, 1);
    } else {
        uint32_t number = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
        fibula_lookup4(table, &number, &row, 1);
    }
    if (!fibula_match(table, family, bytes, &found)) {
        CHECK(row == FIBULA_NONE);
        printf("%s -\n", address);
        return;
    }
    CHECK(row == found.value && family == found.family);
    CHECK(inet_ntop(family == FIBULA_IPV6 ? AF_INET6 : AF_INET, found.address, text, sizeof text) != NULL);
    printf("%s %s/%d", address, text, found.length);
    for (column = 0; column < fibula_columns(table); column++) {
        size_t size = fibula_text(table, column, row, text, sizeof text);
        CHECK(size == strlen(text));
        CHECK(fibula_column_name(table, column, name, sizeof name) < sizeof name);
        CHECK(fibula_column(table, name) == column);
        if (size > 0) printf(" %s=%s", name, text);
    }
    printf("\n");
}

static void file(const char *path, char **addresses) {
    fibula_table *table = fibula_open(path);
    char text[512];
    uint64_t number = 0;
    uint32_t row, address = 0x08080808;
    CHECK(table != NULL);
    CHECK(fibula_engine(table, FIBULA_IPV4, text, sizeof text) < sizeof text);
    printf("%zu routes, %zu columns, %s\n", fibula_routes(table), fibula_columns(table), text);
    while (*addresses != NULL) print_match(table, *addresses++);

    /* Cut texts, at a character. */
    fibula_lookup4(table, &address, &row, 1);
    CHECK(fibula_text(table, 1, row, text, 3) == 7 && strcmp(text, "Z") == 0);
    CHECK(fibula_text(table, 1, row, NULL, 0) == 7);
    CHECK(fibula_number(table, 0, row, &number) && number == 15169);
    CHECK(!fibula_number(table, 1, row, &number) && strstr(fibula_error(), "not a number") != NULL);
    CHECK(fibula_text(table, 2, row, text, 3) == SIZE_MAX && strcmp(fibula_error(), "there is no column 2: the table has 2") == 0);
    CHECK(fibula_text(table, 0, FIBULA_NONE, text, 3) == SIZE_MAX && strstr(fibula_error(), "there is no row 4294967295") != NULL);
    CHECK(fibula_column(table, "as") == SIZE_MAX && strcmp(fibula_error(), "there is no column \"as\"; there are: asn, country") == 0);
    CHECK(fibula_engine(table, 5, text, sizeof text) == SIZE_MAX && strstr(fibula_error(), "family is 5") != NULL);
    CHECK(fibula_column_name(table, 2, text, sizeof text) == SIZE_MAX);
    fibula_lookup4(table, NULL, NULL, 0);
    fibula_lookup6(table, NULL, NULL, 0);
    {
        fibula_memory memory;
        CHECK(fibula_table_memory(table, FIBULA_IPV6, &memory) && memory.routes > 0 && memory.engine > 0 && memory.held == 0);
        CHECK(!fibula_table_memory(table, 5, &memory) && strstr(fibula_error(), "family is 5") != NULL);
    }
    fibula_close(table);
}

/* Reads while the table changes: an address must have a value that some version of the table gave it, and never an older one than before. */
enum { ROUNDS = 200, READERS = 2, BATCH = 300 };

static pthread_barrier_t half; /* all meet there, so that each reader sees two versions at least */

struct work {
    fibula_reader *reader;
    unsigned versions;
};

static void *read_on(void *argument) {
    struct work *work = (struct work *)argument;
    uint32_t v4[BATCH], values[BATCH], last4 = 0, last6 = 0;
    uint8_t v6[BATCH][16];
    int i;
    for (i = 0; i < BATCH; i++) {
        v4[i] = 0x0a000000u + (uint32_t)i;
        memset(v6[i], 0, 16);
        v6[i][0] = 0x20;
        v6[i][15] = (uint8_t)i;
    }
    while (last4 < ROUNDS || last6 < ROUNDS) {
        fibula_reader_lookup4(work->reader, v4, values, BATCH);
        for (i = 1; i < BATCH; i++) CHECK(values[i] == values[0]); /* one table for the whole batch */
        CHECK(values[0] != FIBULA_NONE && values[0] >= last4);
        work->versions += values[0] != last4;
        if (last4 < ROUNDS / 2 && values[0] >= ROUNDS / 2) {
            fibula_reader_release(work->reader); /* it pauses, and would keep an old table in memory */
            pthread_barrier_wait(&half);
        }
        last4 = values[0];
        fibula_reader_lookup6(work->reader, v6, values, BATCH);
        for (i = 1; i < BATCH; i++) CHECK(values[i] == values[0]);
        CHECK(values[0] != FIBULA_NONE && values[0] >= last6);
        last6 = values[0];
    }
    fibula_reader_release(work->reader);
    return NULL;
}

/* So many routes that a wrong one can be far behind the first. */
#define MANY 2000
static fibula_route many[MANY];

static void live(void) {
    fibula_live *table = fibula_live_new(0);
    fibula_reader *reader;
    fibula_route routes[4];
    pthread_t threads[READERS];
    struct work works[READERS];
    uint32_t addresses[3] = {0x0a010203, 0x0a020304, 0x0b000000}, values[3], value;
    uint8_t v6[16] = {0x20, 0x01};
    int i;
    CHECK(table != NULL);
    reader = fibula_reader_new(table);
    CHECK(reader != NULL);
    fibula_reader_lookup4(reader, addresses, values, 3);
    CHECK(values[0] == FIBULA_NONE && values[1] == FIBULA_NONE && values[2] == FIBULA_NONE);

    routes[0] = route("10.0.0.0/8", 7);
    routes[1] = route("10.1.0.0/16", 4294967294u);
    routes[2] = route("2001::/16", 0);
    CHECK(fibula_live_set(table, routes, 3) && fibula_live_flush(table));
    fibula_reader_lookup4(reader, addresses, values, 3);
    CHECK(values[0] == 4294967294u && values[1] == 7 && values[2] == FIBULA_NONE);
    fibula_reader_lookup6(reader, v6, &value, 1);
    CHECK(value == 0);

    /* One wrong route: none is taken. */
    routes[0] = route("10.0.0.0/8", 8);
    routes[1] = route("10.0.0.1/16", 9);
    CHECK(!fibula_live_set(table, routes, 2) && strstr(fibula_error(), "route 1 (counted from 0)") != NULL);
    routes[1] = route("11.0.0.0/8", FIBULA_NONE);
    CHECK(!fibula_live_set(table, routes, 2) && strstr(fibula_error(), "FIBULA_NONE") != NULL);
    routes[1] = route("10.0.0.0/33", 9);
    CHECK(!fibula_live_set(table, routes, 2) && !fibula_live_remove(table, routes, 2));
    routes[1] = route("11.0.0.0/8", 9);
    routes[1].family = 0;
    CHECK(!fibula_live_set(table, routes, 2) && strstr(fibula_error(), "family is 0") != NULL);
    CHECK(fibula_live_flush(table));
    fibula_reader_lookup4(reader, addresses, values, 3);
    CHECK(values[1] == 7 && values[2] == FIBULA_NONE);

    /* Many routes, of which one far behind the first is wrong: none is taken or removed. */
    for (i = 0; i < MANY; i++) {
        many[i] = route("11.0.0.0/32", (uint32_t)i);
        many[i].address[2] = (uint8_t)(i >> 8);
        many[i].address[3] = (uint8_t)i;
    }
    many[MANY - 10].value = FIBULA_NONE;
    CHECK(!fibula_live_set(table, many, MANY) && strstr(fibula_error(), "route 1990 (counted from 0)") != NULL);
    CHECK(fibula_live_flush(table));
    fibula_reader_lookup4(reader, addresses, values, 3);
    CHECK(values[2] == FIBULA_NONE);
    many[MANY - 10].value = 1990;
    CHECK(fibula_live_set(table, many, MANY) && fibula_live_flush(table));
    fibula_reader_lookup4(reader, &addresses[2], &value, 1);
    CHECK(value == 0);
    many[MANY - 10].length = 33;
    CHECK(!fibula_live_remove(table, many, MANY) && fibula_live_flush(table));
    for (i = 0; i < MANY; i++) {
        uint32_t address = 0x0b000000u + (uint32_t)i;
        fibula_reader_lookup4(reader, &address, &value, 1);
        CHECK(value == (uint32_t)i);
    }
    many[MANY - 10].length = 32;
    CHECK(fibula_live_remove(table, many, MANY) && fibula_live_flush(table));
    fibula_reader_lookup4(reader, addresses, values, 3);
    CHECK(values[2] == FIBULA_NONE);

    /* Removal, of what is not there, too. */
    routes[0] = route("10.1.0.0/16", FIBULA_NONE);
    routes[1] = route("12.0.0.0/8", 0);
    CHECK(fibula_live_remove(table, routes, 2) && fibula_live_set(table, NULL, 0) && fibula_live_flush(table));
    fibula_reader_lookup4(reader, addresses, values, 3);
    CHECK(values[0] == 7 && values[1] == 7);

    /* Many values, so that the numbers that stand for them are used again for others: from 4,096 values on. */
    for (i = 0; i < 10000; i++) {
        routes[0] = route("10.0.0.0/8", 100000u + (uint32_t)i);
        CHECK(fibula_live_set(table, routes, 1));
        if (i % 100 == 99) {
            fibula_reader_lookup4(reader, addresses, values, 3);
            CHECK(values[0] == 100000u + (uint32_t)i);
        }
    }

    /* A load is one change. It is in no order, and of two routes of a prefix the last one is used. */
    {
        enum { LOAD = 70001 };
        static fibula_route load[LOAD];
        fibula_live *loaded = fibula_live_new(60000);
        fibula_reader *of = fibula_reader_new(loaded);
        uint32_t v4[3], found[3];
        CHECK(loaded != NULL && of != NULL);
        for (i = 0; i < LOAD - 1; i++) {
            uint32_t n = (uint32_t)i * 48271u % 70000u;
            memset(&load[i], i & 255, sizeof load[i]); /* of IPv4 the other bytes are ignored */
            load[i].address[0] = (uint8_t)(20 + (n >> 16));
            load[i].address[1] = (uint8_t)(n >> 8);
            load[i].address[2] = (uint8_t)n;
            load[i].address[3] = 0;
            load[i].family = FIBULA_IPV4;
            load[i].length = 24;
            load[i].value = n;
        }
        load[LOAD - 1] = load[7];
        load[LOAD - 1].value = 99999;
        memset(load[LOAD - 1].address + 4, 0, 12);
        CHECK(fibula_live_set(loaded, load, LOAD) && fibula_live_flush(loaded));
        for (i = 0; i < LOAD; i += 3) {
            v4[i % 3] = (uint32_t)load[i].address[0] << 24 | (uint32_t)load[i].address[1] << 16 | (uint32_t)load[i].address[2] << 8 | 1u;
            fibula_reader_lookup4(of, &v4[i % 3], &found[i % 3], 1);
            CHECK(found[i % 3] == load[i].value);
        }
        v4[0] = (uint32_t)load[7].address[0] << 24 | (uint32_t)load[7].address[1] << 16 | (uint32_t)load[7].address[2] << 8;
        fibula_reader_lookup4(of, v4, found, 1);
        CHECK(found[0] == 99999);
        CHECK(fibula_live_remove(loaded, load, LOAD) && fibula_live_flush(loaded));
        fibula_reader_lookup4(of, v4, found, 1);
        CHECK(found[0] == FIBULA_NONE);
        fibula_reader_free(of);
        fibula_live_free(loaded);
    }

    /* Threads that read meanwhile. */
    routes[0] = route("10.0.0.0/8", 0);
    routes[1] = route("2000::/8", 0);
    routes[2] = route("2001::/16", 0);
    CHECK(fibula_live_remove(table, &routes[2], 1) && fibula_live_set(table, routes, 2) && fibula_live_flush(table));
    fibula_reader_release(reader);
    CHECK(pthread_barrier_init(&half, NULL, READERS + 1) == 0);
    for (i = 0; i < READERS; i++) {
        works[i].reader = fibula_reader_new(table);
        works[i].versions = 0;
        CHECK(works[i].reader != NULL && pthread_create(&threads[i], NULL, read_on, &works[i]) == 0);
    }
    for (i = 1; i <= ROUNDS; i++) {
        routes[0].value = routes[1].value = (uint32_t)i;
        CHECK(fibula_live_set(table, routes, 2) && fibula_live_flush(table));
        if (i == ROUNDS / 2) pthread_barrier_wait(&half);
    }
    for (i = 0; i < READERS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(works[i].versions > 1);
        fibula_reader_free(works[i].reader);
    }

    /* Readers that pause keep their tables, and nothing waits for them. */
    {
        fibula_reader *idle[4];
        fibula_memory memory;
        for (i = 0; i < 4; i++) {
            idle[i] = fibula_reader_new(table);
            CHECK(idle[i] != NULL);
            fibula_reader_keep(idle[i], true);
            fibula_reader_lookup4(idle[i], addresses, values, 3);
            routes[0].value = 6000u - 3 + (uint32_t)i;
            CHECK(fibula_live_set(table, routes, 1) && fibula_live_flush(table));
        }
        CHECK(fibula_live_memory(table, FIBULA_IPV4, &memory) && memory.held == 4 && memory.old > memory.engine);
        for (i = 1; i < 4; i++) {
            fibula_reader_lookup4(idle[i], addresses, values, 3);
            CHECK(values[0] == 6000u - 4 + (uint32_t)i);
        }
        fibula_reader_release(idle[1]); /* a quiescent state: now it takes the newest table */
        fibula_reader_lookup4(idle[1], addresses, values, 3);
        CHECK(values[0] == 6000);
        fibula_reader_keep(idle[2], false);
        fibula_reader_lookup4(idle[2], addresses, values, 3);
        CHECK(values[0] == 6000);
        for (i = 0; i < 4; i++) fibula_reader_free(idle[i]);
        CHECK(fibula_live_memory(table, FIBULA_IPV4, &memory) && memory.held == 0);
    }

    /* A child of fork() reads what its readers see, and nothing waits for threads that it does not have. */
    {
        int status;
        pid_t child;
        fibula_live *collecting = fibula_live_new(1000), *vrf = fibula_live_vrf(collecting, 7);
        CHECK(collecting != NULL && vrf != NULL);
        fflush(NULL);
        child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            const char *text = fibula_error();
            fibula_reader *own = fibula_reader_new(table);
            alarm(60);
            fibula_reader_lookup4(reader, addresses, values, 3);
            CHECK(values[0] == 6000);
            CHECK(own != NULL);
            fibula_reader_lookup4(own, addresses, values, 3);
            CHECK(values[0] == 6000);
            CHECK(!fibula_live_set(table, routes, 1) && strstr(fibula_error(), "child") != NULL && fibula_error() == text);
            CHECK(!fibula_live_remove(table, routes, 1) && !fibula_live_flush(table) && !fibula_live_wait(vrf, 1, 60000));
            CHECK(!fibula_live_find(table, routes) && fibula_live_count(table, FIBULA_IPV4) == SIZE_MAX);
            CHECK(fibula_live_vrf(collecting, 8) == NULL && !fibula_live_set(collecting, routes, 1));
            fibula_reader_free(own);
            fibula_reader_free(reader);
            fibula_live_free(table);
            fibula_live_free(vrf);
            fibula_live_free(collecting);
            table = fibula_live_new(1);
            CHECK(table != NULL && fibula_live_set(table, routes, 1) && fibula_live_wait(table, fibula_live_changes(table), 30000));
            fibula_live_free(table);
            exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        fibula_live_free(collecting);
    }

    /* A reader outlives its table. */
    fibula_live_free(table);
    fibula_reader_lookup4(reader, addresses, values, 3);
    CHECK(values[0] != FIBULA_NONE);
    fibula_reader_free(reader);
    fibula_reader_free(NULL);
    fibula_live_free(NULL);
    fibula_close(NULL);
    puts("done");
}

/* Lines of standard input: `+ PREFIX VALUE`, `- PREFIX`, and `? ADDRESS`, whose value is printed. */
static void script(uint32_t collect_ms) {
    fibula_live *table = fibula_live_new(collect_ms);
    fibula_reader *reader;
    char line[128], what[64];
    bool changed = false;
    CHECK(table != NULL);
    reader = fibula_reader_new(table);
    CHECK(reader != NULL);
    while (fgets(line, sizeof line, stdin) != NULL) {
        unsigned long value = 0;
        CHECK(sscanf(line + 2, "%63s %lu", what, &value) >= 1);
        if (line[0] == '?') {
            uint8_t bytes[16];
            uint32_t number, found;
            if (changed && collect_ms > 0) CHECK(fibula_live_flush(table));
            CHECK(fibula_live_visible(table) == fibula_live_changes(table));
            changed = false;
            if (inet_pton(AF_INET, what, bytes) == 1) {
                number = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
                fibula_reader_lookup4(reader, &number, &found, 1);
            } else {
                CHECK(inet_pton(AF_INET6, what, bytes) == 1);
                fibula_reader_lookup6(reader, bytes, &found, 1);
            }
            printf("%s %lu\n", what, (unsigned long)found);
        } else {
            fibula_route changing = route(what, (uint32_t)value);
            CHECK(line[0] == '+' ? fibula_live_set(table, &changing, 1) : fibula_live_remove(table, &changing, 1));
            changed = true;
        }
    }
    fibula_reader_free(reader);
    fibula_live_free(table);
}

/* Wide values, a default value, an engine by name, VRFs, reading the routes, files, batches anywhere in memory, waiting. */
static void more(const char *folder) {
    fibula_options options = FIBULA_OPTIONS;
    fibula_live *table, *vrfs[200], *collecting;
    fibula_reader *reader, *of_vrf;
    fibula_route routes[8], found;
    fibula_counters counters;
    fibula_memory memory;
    fibula_table *file;
    char path[512], text[64];
    uint32_t addresses[2] = {0x0a010203, 0x0b000000}, low[2], row;
    uint64_t wide[2], change, number;
    const uint64_t object = UINT64_C(0x7f00deadbeef0040);
    uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8};
    size_t i;

    /* Options. */
    options.flags = 6;
    CHECK(fibula_live_with(&options) == NULL && strstr(fibula_error(), "FIBULA_WIDE") != NULL);
    options.flags = FIBULA_WIDE;
    options.size--;
    CHECK(fibula_live_with(&options) == NULL && strstr(fibula_error(), "FIBULA_OPTIONS") != NULL);
    options.size++;
    options.engine = "fastest";
    CHECK(fibula_live_with(&options) == NULL && strstr(fibula_error(), "no engine \"fastest\"; there are: ") != NULL);
    options.engine = "dxr18"; /* of IPv4 only: the other family has one that suits it */
    options.default_value = 99;
    table = fibula_live_with(&options);
    CHECK(table != NULL);
    reader = fibula_reader_new(table);
    CHECK(fibula_live_engine(table, FIBULA_IPV4, text, sizeof text) == 4 && strcmp(text, "none") == 0);
    fibula_reader_wide4(reader, addresses, wide, 2);
    CHECK(wide[0] == 99 && wide[1] == 99);

    /* Values of 64 bits, visible when the call returns. */
    routes[0] = route("10.0.0.0/8", object);
    routes[1] = route("10.1.0.0/16", FIBULA_NONE64 - 1);
    routes[2] = route("10.1.2.0/24", FIBULA_NONE);
    routes[3] = route("2001:db8::/32", 5);
    routes[4] = route("0.0.0.0/0", 1);
    CHECK(fibula_live_set(table, routes, 4));
    fibula_reader_wide4(reader, addresses, wide, 2);
    CHECK(wide[0] == FIBULA_NONE && wide[1] == 99);
    fibula_reader_lookup4(reader, addresses, low, 2);
    CHECK(low[0] == FIBULA_NONE && low[1] == 99);
    fibula_reader_wide6(reader, v6, wide, 1);
    CHECK(wide[0] == 5);
    CHECK(fibula_live_engine(table, FIBULA_IPV4, text, sizeof text) == 5 && strcmp(text, "dxr18") == 0);
    CHECK(fibula_live_engine(table, FIBULA_IPV6, text, sizeof text) > 0 && strcmp(text, "dxr18") != 0);
    routes[5] = route("10.1.0.0/16", FIBULA_NONE64);
    CHECK(!fibula_live_set(table, &routes[5], 1) && strstr(fibula_error(), "FIBULA_NONE64") != NULL);

    /* The routes: exact, longest, covering, in order. */
    found = route("10.1.0.0/16", 0);
    CHECK(fibula_live_find(table, &found) && found.value == FIBULA_NONE64 - 1);
    found = route("10.2.0.0/16", 0);
    CHECK(!fibula_live_find(table, &found));
    found.length = 33;
    CHECK(!fibula_live_find(table, &found) && fibula_live_covering(table, &found, routes, 0) == SIZE_MAX);
    CHECK(fibula_live_match(table, FIBULA_IPV4, "\x0a\x01\x03\x01", &found) && found.length == 16);
    CHECK(!fibula_live_match(table, FIBULA_IPV4, "\x0b\x01\x03\x01", &found));
    CHECK(!fibula_live_match(table, 5, v6, &found) && strstr(fibula_error(), "family is 5") != NULL);
    CHECK(fibula_live_match(table, FIBULA_IPV6, v6, &found) && found.value == 5 && found.family == FIBULA_IPV6);
    CHECK(fibula_live_count(table, FIBULA_IPV4) == 3 && fibula_live_count(table, FIBULA_IPV6) == 1);
    CHECK(fibula_live_count(table, 5) == SIZE_MAX);
    found = route("10.1.2.0/25", 0);
    CHECK(fibula_live_covering(table, &found, routes, 2) == 3);
    CHECK(routes[0].length == 24 && routes[1].length == 16 && routes[1].value == FIBULA_NONE64 - 1);
    found = route("10.0.0.0/7", 0);
    CHECK(fibula_live_walk(table, &found, NULL, routes, 2) == 2 && routes[0].length == 8 && routes[0].value == object);
    CHECK(fibula_live_walk(table, &found, &routes[1], routes, 2) == 1 && routes[0].length == 24);
    CHECK(fibula_live_walk(table, &found, &routes[0], routes, 2) == 0);
    routes[0] = route("::/0", 0);
    CHECK(fibula_live_walk(table, &found, &routes[0], routes, 2) == SIZE_MAX && strstr(fibula_error(), "one family") != NULL);

    /* Addresses and values in records of the caller. */
    {
        struct packet {
            uint8_t before[3], to[4], between[6];
            uint32_t value;
            uint64_t wide;
        } packets[600];
        fibula_batch batch;
        memset(packets, 0, sizeof packets);
        for (i = 0; i < 600; i++) {
            packets[i].to[0] = (uint8_t)(10 + i % 2);
            packets[i].to[1] = (uint8_t)(i % 3);
        }
        batch.addresses = packets[0].to;
        batch.address_stride = batch.value_stride = sizeof packets[0];
        batch.values = &packets[0].wide;
        batch.count = 600;
        batch.family = FIBULA_IPV4;
        batch.value_size = 8;
        CHECK(fibula_reader_lookup(reader, &batch));
        batch.values = &packets[0].value;
        batch.value_size = 4;
        CHECK(fibula_reader_lookup(reader, &batch));
        for (i = 0; i < 600; i++) {
            uint64_t expected = i % 2 == 1 ? 99 : i % 3 == 1 ? FIBULA_NONE64 - 1 : object;
            CHECK(packets[i].wide == expected && packets[i].value == (uint32_t)expected);
            CHECK(packets[i].before[2] == 0 && packets[i].between[0] == 0 && packets[i].between[5] == 0);
        }
        batch.value_size = 2;
        CHECK(!fibula_reader_lookup(reader, &batch) && strstr(fibula_error(), "value_size") != NULL);
        batch.value_size = 8;
        batch.value_stride = 7;
        CHECK(!fibula_reader_lookup(reader, &batch) && strstr(fibula_error(), "value_stride") != NULL);
        batch.value_stride = SIZE_MAX / 2;
        CHECK(!fibula_reader_lookup(reader, &batch) && strstr(fibula_error(), "beyond all memory") != NULL);
        batch.value_stride = 8;
        batch.family = 7;
        CHECK(!fibula_reader_lookup(reader, &batch) && strstr(fibula_error(), "family is 7") != NULL);
        batch.family = FIBULA_IPV6;
        batch.addresses = v6;
        batch.count = 1;
        batch.values = wide;
        CHECK(fibula_reader_lookup(reader, &batch) && wide[0] == 5);
    }

    /* To a file and from it, and from the bytes of a file. */
    snprintf(path, sizeof path, "%s/live.fib", folder);
    CHECK(fibula_live_save(table, path));
    file = fibula_open(path);
    CHECK(file != NULL && fibula_routes(file) == 4);
    fibula_lookup4(file, addresses, &row, 1);
    CHECK(fibula_number(file, fibula_column(file, "value"), row, &number) && number == FIBULA_NONE);
    CHECK(fibula_engine(file, FIBULA_IPV4, text, sizeof text) > 5 && strncmp(text, "dxr18", 5) == 0);
    {
        static uint8_t bytes[1 << 23];
        fibula_table *copy;
        fibula_batch batch = {v6, 16, wide, 8, 1, FIBULA_IPV6, 8};
        FILE *stream = fopen(path, "rb");
        size_t size = fread(bytes, 1, sizeof bytes, stream);
        CHECK(size > 0 && size < sizeof bytes && fclose(stream) == 0);
        copy = fibula_open_memory(bytes, size);
        CHECK(copy != NULL && fibula_routes(copy) == 4);
        memset(bytes, 0, size);
        CHECK(fibula_lookup(copy, &batch) && wide[0] != FIBULA_NONE64);
        CHECK(fibula_number(copy, 0, (uint32_t)wide[0], &number) && number == 5);
        v6[0] = 0x21;
        CHECK(fibula_lookup(copy, &batch) && wide[0] == FIBULA_NONE64);
        v6[0] = 0x20;
        batch.family = 0;
        CHECK(!fibula_lookup(copy, &batch));
        fibula_close(copy);
        CHECK(fibula_open_memory(bytes, size) == NULL && fibula_open_memory(NULL, 0) == NULL);
    }
    fibula_close(file);
    {
        fibula_live *loaded = fibula_live_new(0), *narrow;
        CHECK(!fibula_live_load(loaded, path, NULL) && strstr(fibula_error(), "FIBULA_WIDE") != NULL);
        CHECK(fibula_live_count(loaded, FIBULA_IPV4) == 0);
        fibula_live_free(loaded);
        options.engine = NULL;
        loaded = fibula_live_with(&options);
        CHECK(fibula_live_load(loaded, path, NULL) && fibula_live_count(loaded, FIBULA_IPV4) == 3);
        found = route("10.0.0.0/8", 0);
        CHECK(fibula_live_find(loaded, &found) && found.value == object);
        CHECK(!fibula_live_load(loaded, path, "asn") && strstr(fibula_error(), "there are: value") != NULL);
        CHECK(!fibula_live_load(loaded, folder, NULL) && !fibula_live_save(loaded, "/no/such/folder/t.fib"));
        narrow = fibula_live_vrf(loaded, 1);
        CHECK(fibula_live_vrf(narrow, 2) == NULL && strstr(fibula_error(), "first table") != NULL);
        fibula_live_free(loaded);
    }

    /* Counters and memory. */
    CHECK(fibula_live_counters(table, FIBULA_IPV4, &counters) && !fibula_live_counters(table, 0, &counters));
    CHECK(counters.changes == 3 && counters.generations == 1 && counters.builds == 1 && counters.oldest_us == 0);
    CHECK(fibula_live_memory(table, FIBULA_IPV4, &memory) && memory.engine > 0 && memory.routes >= 36);
    CHECK(!fibula_live_memory(table, 0, &memory));

    /* Many VRFs, of which each has a route of its own, in one process without threads. */
    for (i = 0; i < 200; i++) {
        vrfs[i] = fibula_live_vrf(table, (uint32_t)i);
        CHECK(vrfs[i] != NULL && vrfs[i] == fibula_live_vrf(table, (uint32_t)i));
        if (i == 0) continue;
        routes[0] = route("11.0.0.0/8", i);
        CHECK(fibula_live_set(vrfs[i], routes, 1));
    }
    CHECK(vrfs[0] == table);
    for (i = 1; i < 200; i++) {
        of_vrf = fibula_reader_new(vrfs[i]);
        fibula_reader_wide4(of_vrf, addresses, wide, 2);
        CHECK(wide[0] == 99 && wide[1] == i);
        if (i % 2 == 1) fibula_live_free(vrfs[i]);
        fibula_reader_wide4(of_vrf, addresses, wide, 2);
        CHECK(wide[0] == 99 && wide[1] == i);
        fibula_reader_free(of_vrf);
    }
    CHECK(fibula_live_count(vrfs[2], FIBULA_IPV4) == 1);
    vrfs[1] = fibula_live_vrf(table, 1); /* a new one */
    CHECK(fibula_live_count(vrfs[1], FIBULA_IPV4) == 0);

    /* Changes that wait for others become visible by themselves, in all VRFs. */
    options.collect_ms = 20;
    options.flags = 0;
    collecting = fibula_live_with(&options);
    CHECK(collecting != NULL);
    of_vrf = fibula_reader_new(fibula_live_vrf(collecting, 3));
    routes[0] = route("11.0.0.0/8", 4);
    CHECK(fibula_live_set(fibula_live_vrf(collecting, 3), routes, 1) && fibula_live_set(collecting, routes, 1));
    CHECK(fibula_live_set(collecting, routes, 1));
    change = fibula_live_changes(collecting);
    CHECK(change == 2 && fibula_live_count(collecting, FIBULA_IPV4) == 1);
    CHECK(fibula_live_wait(collecting, change, 60000) && fibula_live_visible(collecting) == 2);
    CHECK(fibula_live_wait(fibula_live_vrf(collecting, 3), 1, 60000));
    fibula_reader_lookup4(of_vrf, addresses, low, 2);
    CHECK(low[0] == 99 && low[1] == 4);
    CHECK(!fibula_live_wait(collecting, 3, 10) && strstr(fibula_error(), "readers see 2 of 2 changes") != NULL);
    CHECK(fibula_live_set(collecting, routes, 1) && fibula_live_flush(collecting) && fibula_live_visible(collecting) == 3);
    CHECK(fibula_live_counters(collecting, FIBULA_IPV4, &counters) && counters.changes == 3 && counters.oldest_us == 0);
    fibula_reader_free(of_vrf);
    fibula_live_free(collecting);
    fibula_reader_free(reader);
    fibula_live_free(table);
    puts("done");
}

/* Several VRFs of one handle, each changed by a thread of its own and read by another, while changes are collected. */
enum { VRFS = 3, STEPS = 3000 };

struct load {
    fibula_live *table;
    pthread_t writer, reader;
};

static void *write_load(void *argument) {
    struct load *load = (struct load *)argument;
    fibula_route routes[3], found, part[2];
    uint64_t i;
    for (i = 1; i <= STEPS; i++) {
        routes[0] = route("11.0.0.0/8", i);
        routes[1] = route("2001::/16", i);
        routes[2] = route("12.0.0.0/32", i);
        routes[2].address[3] = (uint8_t)i;
        CHECK(fibula_live_set(load->table, routes, 3));
        if (i % 7 == 0) CHECK(fibula_live_remove(load->table, &routes[2], 1));
        if (i % 50 == 0) {
            found = route("11.0.0.0/8", 0);
            CHECK(fibula_live_find(load->table, &found) && found.value == i);
            found = route("0.0.0.0/0", 0);
            CHECK(fibula_live_walk(load->table, &found, NULL, part, 2) == 2 && part[0].value == i);
        }
    }
    CHECK(fibula_live_changes(load->table) == 3 * STEPS + STEPS / 7);
    CHECK(fibula_live_wait(load->table, fibula_live_changes(load->table), 60000));
    return NULL;
}

static void *read_load(void *argument) {
    struct load *load = (struct load *)argument;
    fibula_reader *reader = fibula_reader_new(load->table);
    uint32_t addresses[2] = {0x0b010203, 0x0bffffff}, values[2], last = 0, last6 = 0, rounds = 0;
    uint8_t v6[16] = {0x20, 0x01};
    CHECK(reader != NULL);
    while (last < STEPS || last6 < STEPS) {
        fibula_reader_lookup4(reader, addresses, values, 2);
        if (values[0] == FIBULA_NONE) continue;
        CHECK(values[0] == values[1] && values[0] >= last);
        last = values[0];
        fibula_reader_lookup6(reader, v6, values, 1);
        CHECK(values[0] == FIBULA_NONE || values[0] >= last6);
        last6 = values[0] == FIBULA_NONE ? 0 : values[0];
        if (++rounds % 100 == 0) fibula_reader_release(reader);
    }
    fibula_reader_free(reader);
    return NULL;
}

static void load(void) {
    uint32_t collect_ms;
    int i;
    for (collect_ms = 0; collect_ms < 2; collect_ms++) {
        fibula_live *table = fibula_live_new(collect_ms);
        struct load loads[VRFS];
        CHECK(table != NULL);
        for (i = 0; i < VRFS; i++) {
            loads[i].table = fibula_live_vrf(table, (uint32_t)i);
            CHECK(loads[i].table != NULL && pthread_create(&loads[i].reader, NULL, read_load, &loads[i]) == 0);
            CHECK(pthread_create(&loads[i].writer, NULL, write_load, &loads[i]) == 0);
        }
        for (i = 0; i < VRFS; i++) {
            CHECK(pthread_join(loads[i].writer, NULL) == 0 && pthread_join(loads[i].reader, NULL) == 0);
        }
        fibula_live_free(table);
    }
    puts("done");
}

static void wrong(const char *folder) {
    CHECK(strlen(fibula_error()) == 0);
    CHECK(fibula_open(NULL) == NULL && strcmp(fibula_error(), "the path is NULL") == 0);
    CHECK(fibula_open("/no/such/file.fib") == NULL && strstr(fibula_error(), "/no/such/file.fib") != NULL);
    CHECK(fibula_open(folder) == NULL && strstr(fibula_error(), folder) != NULL);
    CHECK(fibula_open("/no/such/\xff") == NULL && strstr(fibula_error(), "/no/such/") != NULL);
    CHECK(fibula_version()[0] >= '0' && fibula_version()[0] <= '9');
    puts("done");
}

int main(int count, char **arguments) {
    alarm(300); /* a test that hangs is a test that fails */
    if (count > 2 && strcmp(arguments[1], "file") == 0) file(arguments[2], arguments + 3);
    else if (count == 2 && strcmp(arguments[1], "live") == 0) live();
    else if (count == 3 && strcmp(arguments[1], "script") == 0) script((uint32_t)atoi(arguments[2]));
    else if (count == 3 && strcmp(arguments[1], "more") == 0) more(arguments[2]);
    else if (count == 2 && strcmp(arguments[1], "load") == 0) load();
    else if (count == 3 && strcmp(arguments[1], "wrong") == 0) wrong(arguments[2]);
    else return 2;
    return 0;
}
