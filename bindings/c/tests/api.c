/* A program that uses all of fibula.h: `file PATH ADDRESS...`, `live`, `script`, or `wrong FOLDER`. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <fibula.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                              \
    do {                                                                                         \
        if (!(what)) {                                                                           \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, fibula_error());              \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)

/* A prefix such as 10.0.0.0/8 with a value. */
static fibula_route route(const char *prefix, uint32_t value) {
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
            fibula_reader_release(work->reader); /* the other thread is in a flush, perhaps, which waits for idle readers */
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

/* More routes than the library applies together. */
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
    CHECK(fibula_live_set(table, routes, 3) && fibula_live_flush(table, 60000));
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
    CHECK(fibula_live_flush(table, 60000));
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
    CHECK(fibula_live_flush(table, 60000));
    fibula_reader_lookup4(reader, addresses, values, 3);
    CHECK(values[2] == FIBULA_NONE);
    many[MANY - 10].value = 1990;
    CHECK(fibula_live_set(table, many, MANY) && fibula_live_flush(table, 60000));
    fibula_reader_lookup4(reader, &addresses[2], &value, 1);
    CHECK(value == 0);
    many[MANY - 10].length = 33;
    CHECK(!fibula_live_remove(table, many, MANY) && fibula_live_flush(table, 60000));
    for (i = 0; i < MANY; i++) {
        uint32_t address = 0x0b000000u + (uint32_t)i;
        fibula_reader_lookup4(reader, &address, &value, 1);
        CHECK(value == (uint32_t)i);
    }
    many[MANY - 10].length = 32;
    CHECK(fibula_live_remove(table, many, MANY) && fibula_live_flush(table, 60000));
    fibula_reader_lookup4(reader, addresses, values, 3);
    CHECK(values[2] == FIBULA_NONE);

    /* Removal, of what is not there, too. */
    routes[0] = route("10.1.0.0/16", FIBULA_NONE);
    routes[1] = route("12.0.0.0/8", 0);
    CHECK(fibula_live_remove(table, routes, 2) && fibula_live_set(table, NULL, 0) && fibula_live_flush(table, 60000));
    fibula_reader_lookup4(reader, addresses, values, 3);
    CHECK(values[0] == 7 && values[1] == 7);

    /* Many values, so that numbers of attribute sets are used again for others. */
    for (i = 0; i < 1000; i++) {
        routes[0] = route("10.0.0.0/8", 100000u + (uint32_t)i);
        CHECK(fibula_live_set(table, routes, 1));
        if (i % 100 == 99) {
            CHECK(fibula_live_flush(table, 60000));
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
        CHECK(fibula_live_set(loaded, load, LOAD) && fibula_live_flush(loaded, 60000));
        for (i = 0; i < LOAD; i += 3) {
            v4[i % 3] = (uint32_t)load[i].address[0] << 24 | (uint32_t)load[i].address[1] << 16 | (uint32_t)load[i].address[2] << 8 | 1u;
            fibula_reader_lookup4(of, &v4[i % 3], &found[i % 3], 1);
            CHECK(found[i % 3] == load[i].value);
        }
        v4[0] = (uint32_t)load[7].address[0] << 24 | (uint32_t)load[7].address[1] << 16 | (uint32_t)load[7].address[2] << 8;
        fibula_reader_lookup4(of, v4, found, 1);
        CHECK(found[0] == 99999);
        CHECK(fibula_live_remove(loaded, load, LOAD) && fibula_live_flush(loaded, 60000));
        fibula_reader_lookup4(of, v4, found, 1);
        CHECK(found[0] == FIBULA_NONE);
        fibula_reader_free(of);
        fibula_live_free(loaded);
    }

    /* Threads that read meanwhile. */
    routes[0] = route("10.0.0.0/8", 0);
    routes[1] = route("2000::/8", 0);
    routes[2] = route("2001::/16", 0);
    CHECK(fibula_live_remove(table, &routes[2], 1) && fibula_live_set(table, routes, 2) && fibula_live_flush(table, 60000));
    fibula_reader_release(reader);
    CHECK(pthread_barrier_init(&half, NULL, READERS + 1) == 0);
    for (i = 0; i < READERS; i++) {
        works[i].reader = fibula_reader_new(table);
        works[i].versions = 0;
        CHECK(works[i].reader != NULL && pthread_create(&threads[i], NULL, read_on, &works[i]) == 0);
    }
    for (i = 1; i <= ROUNDS; i++) {
        routes[0].value = routes[1].value = (uint32_t)i;
        CHECK(fibula_live_set(table, routes, 2) && fibula_live_flush(table, 60000));
        if (i == ROUNDS / 2) pthread_barrier_wait(&half);
    }
    for (i = 0; i < READERS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(works[i].versions > 1);
        fibula_reader_free(works[i].reader);
    }

    /* Two readers that hold two old tables prevent a new one. The error names them. */
    {
        fibula_reader *idle[2];
        for (i = 0; i < 2; i++) {
            idle[i] = fibula_reader_new(table);
            CHECK(idle[i] != NULL);
            fibula_reader_lookup4(idle[i], addresses, values, 3);
            routes[0].value = 5000u + (uint32_t)i;
            CHECK(fibula_live_set(table, routes, 1) && fibula_live_flush(table, 60000));
        }
        routes[0].value = 6000;
        CHECK(fibula_live_set(table, routes, 1) && !fibula_live_flush(table, 50));
        CHECK(strstr(fibula_error(), "not visible after 50 ms: reader 4 holds an IPv4 table that is 2 tables old, reader 5 holds an IPv4") != NULL);
        fibula_reader_release(idle[0]);
        CHECK(fibula_live_flush(table, 60000));
        fibula_reader_lookup4(idle[0], addresses, values, 3);
        CHECK(values[0] == 6000);
        for (i = 0; i < 2; i++) fibula_reader_free(idle[i]);
    }

    /* A child of fork() has no threads of the library: it reads, and nothing waits for them. */
    {
        int status;
        pid_t child;
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
            CHECK(!fibula_live_remove(table, routes, 1) && !fibula_live_flush(table, 60000));
            fibula_reader_free(own);
            fibula_reader_free(reader);
            fibula_live_free(table);
            table = fibula_live_new(0);
            CHECK(table != NULL && fibula_live_set(table, routes, 1) && fibula_live_flush(table, 30000));
            fibula_live_free(table);
            exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
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
static void script(void) {
    fibula_live *table = fibula_live_new(0);
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
            if (changed) CHECK(fibula_live_flush(table, 60000));
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
    else if (count == 2 && strcmp(arguments[1], "script") == 0) script();
    else if (count == 3 && strcmp(arguments[1], "wrong") == 0) wrong(arguments[2]);
    else return 2;
    return 0;
}
