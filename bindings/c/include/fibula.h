/* fibula: which route covers this address?
 *
 * IP longest-prefix match for C and C++, IPv4 and all 128 bits of IPv6. There are two kinds of tables:
 *
 * - a fibula_table is a file that `fibula build` wrote. It never changes. A lookup gives a row, whose values are in
 *   columns;
 * - a fibula_live has routes with a number each, and changes while any number of threads read it without locks.
 *
 *     fibula_table *table = fibula_open("t.fib");
 *     if (table == NULL) { fprintf(stderr, "%s\n", fibula_error()); exit(1); }
 *     uint32_t addresses[2] = {0x08080808, 0x01010101}, rows[2];     // 8.8.8.8, 1.1.1.1
 *     fibula_lookup4(table, addresses, rows, 2);
 *     char text[64];
 *     size_t asn = fibula_column(table, "asn");
 *     if (rows[0] != FIBULA_NONE && fibula_text(table, asn, rows[0], text, sizeof text) != SIZE_MAX)
 *         puts(text);
 *     fibula_close(table);
 *
 * The functions whose names end with 4 take addresses of IPv4 as numbers in host byte order, 192.0.2.1 is 0xc0000201.
 * Addresses of IPv6, and of IPv4 elsewhere, are bytes in network byte order, as in a packet, and need no alignment.
 * IPv4-mapped addresses of IPv6 are not converted, but by fibula_match.
 *
 * Batches of 64 to 1,024 addresses are looked up fastest. Arrays may be NULL where the count is 0. Other pointers must
 * not be NULL, but where it is said, and but for those of the functions that free, which ignore it. Texts are UTF-8.
 *
 * A function that can fail says what it returns then; fibula_error() has the reason. Before 1.0 these functions may
 * change with each minor version, and the library's soname with them.
 */
#ifndef FIBULA_H
#define FIBULA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The answer where no route covers an address: of 32 bits, and of 64. */
#define FIBULA_NONE UINT32_MAX
#define FIBULA_NONE64 UINT64_MAX

#define FIBULA_IPV4 4
#define FIBULA_IPV6 6

/* A prefix and its value: a row of a fibula_table, or the number that a program gave to a route of a fibula_live. */
typedef struct fibula_route {
    uint8_t address[16]; /* network byte order; of IPv4 the first four bytes, the others are ignored */
    uint8_t family;      /* FIBULA_IPV4 or FIBULA_IPV6 */
    uint8_t length;      /* bits; those of the address behind it must be 0 */
    uint64_t value;      /* below FIBULA_NONE, or FIBULA_NONE64 in a table with FIBULA_WIDE */
} fibula_route;

/* Addresses anywhere in memory, such as in descriptors of packets, and the places of their values. */
typedef struct fibula_batch {
    const void *addresses;  /* the first address, in network byte order */
    size_t address_stride;  /* bytes from one address to the next */
    void *values;           /* the first value, a uint32_t or uint64_t; needs no alignment */
    size_t value_stride;    /* bytes from one value to the next */
    size_t count;           /* number of addresses */
    uint8_t family;         /* FIBULA_IPV4 or FIBULA_IPV6 */
    uint8_t value_size;     /* 4 or 8 bytes; with 8, no route is FIBULA_NONE64 */
} fibula_batch;

/* The bytes of a table's parts. */
typedef struct fibula_memory {
    uint64_t routes; /* the routes, and changes that wait */
    uint64_t values; /* of a fibula_live: the values, each once */
    uint64_t engine; /* the current engine */
    uint64_t old;    /* engines that were replaced: a spare one, and those that readers hold */
    uint64_t held;   /* number of tables that were replaced and that readers hold */
} fibula_memory;

typedef struct fibula_table fibula_table;
typedef struct fibula_live fibula_live;
typedef struct fibula_reader fibula_reader;

/* The version of the library, such as "0.1.0". */
const char *fibula_version(void);

/* Why the last function that failed in this thread has failed; "" before the first. The text, of at most 1023 bytes, is
 * at one address as long as the thread lives; the next function that fails there writes another. */
const char *fibula_error(void);

/* ---- tables that never change: files of `fibula build`. All functions but those that open and close may be called by
 * many threads at once, and in a child of fork(). */

/* Opens a file, in milliseconds: read-only files, as `fibula build` writes them, are mapped, and must not be written to
 * while they are open. NULL if it is not such a file, or damaged. */
fibula_table *fibula_open(const char *path);

/* The same of the bytes of such a file, which are copied. */
fibula_table *fibula_open_memory(const void *bytes, size_t size);

/* Closes it. Nothing may use the table any more. */
void fibula_close(fibula_table *table);

/* The row of the longest match for each address, or FIBULA_NONE. */
void fibula_lookup4(const fibula_table *table, const uint32_t *addresses, uint32_t *rows, size_t count);
void fibula_lookup6(const fibula_table *table, const void *addresses, uint32_t *rows, size_t count);

/* The same for addresses and rows anywhere in memory; false, and nothing is written, if a size or stride is wrong. */
bool fibula_lookup(const fibula_table *table, const fibula_batch *batch);

/* The longest match of one address (4 or 16 bytes in network byte order) with its prefix; an IPv4-mapped address is
 * looked up as IPv4. false if no route covers it. A hundred times slower than a batch. */
bool fibula_match(const fibula_table *table, uint8_t family, const void *bytes, fibula_route *route);

/* Number of routes of both families. */
size_t fibula_routes(const fibula_table *table);

/* Number of columns; they are counted from 0. */
size_t fibula_columns(const fibula_table *table);

/* The number of the column with this name; SIZE_MAX if there is none. */
size_t fibula_column(const fibula_table *table, const char *name);

/* These write a text and a NUL to `size` bytes, cut at a character if they are too few, and return the bytes of the
 * whole text without NUL, as snprintf does; SIZE_MAX if there is no such column, row or family. */

/* The name of a column. */
size_t fibula_column_name(const fibula_table *table, size_t column, char *name, size_t size);

/* A value; numbers are written in decimal, and no value is "". */
size_t fibula_text(const fibula_table *table, size_t column, uint32_t row, char *text, size_t size);

/* Which engine answers for a family, and why. */
size_t fibula_engine(const fibula_table *table, uint8_t family, char *text, size_t size);

/* The bytes of a family's routes and engine, which lie in the file if it is mapped; false if there is no such
 * family. */
bool fibula_table_memory(const fibula_table *table, uint8_t family, fibula_memory *memory);

/* A value of a column of numbers; false if it is none. */
bool fibula_number(const fibula_table *table, size_t column, uint32_t row, uint64_t *number);

/* ---- tables that change while they are read
 *
 * Any number of threads change a table, one after the other, and any number read it. A batch is looked up in one state
 * of the table, without locks, and readers never go back to an earlier one.
 *
 * A child after fork() reads what its readers see. Its other calls for a table of its parent return an error, and
 * fibula_live_free frees what it can. It makes tables of its own. */

/* What a table is made with. Start with FIBULA_OPTIONS, so that a program keeps its meaning as fields are added. */
typedef struct fibula_options {
    size_t size;            /* of this struct */
    uint32_t collect_ms;    /* how long a change waits for others; 0: it is visible when the call returns */
    uint32_t flags;         /* FIBULA_WIDE, or 0 */
    uint64_t default_value; /* the value of addresses without a route */
    const char *engine;     /* the engine's name; NULL: the one that suits the routes, again as they change */
} fibula_options;

#define FIBULA_OPTIONS {sizeof(fibula_options), 0, 0, FIBULA_NONE64, NULL}

/* Values have 64 bits. Functions that give 32 give the low ones. */
#define FIBULA_WIDE 1u

/* A table without routes.
 *
 * With `collect_ms` 0, each call is one change for readers and visible when it returns. It takes the time of a patch:
 * some microseconds, or that of a copy, 0.3 ms in a table of a million routes, if a reader has the table before the
 * last one. Otherwise the first change waits so many milliseconds for others, or twice as long as the last publication
 * took if that is more, and one thread of the library, of all VRFs, publishes them together: calls take a fraction of a
 * microsecond for each route. 1 to 50 are good values. NULL if no thread can be started. */
fibula_live *fibula_live_new(uint32_t collect_ms);

/* The same with options; NULL also if one is wrong. */
fibula_live *fibula_live_with(const fibula_options *options);

/* The table of a VRF, which is made if there is none with this number; 0 is `live` itself. All tables have the options
 * of the first and share its thread. It lives until it or the first one is freed. */
fibula_live *fibula_live_vrf(fibula_live *live, uint32_t number);

/* Frees it: of a VRF this table, of the first one all. Nothing may use the table any more, except readers, which keep
 * the last state and are freed by themselves. */
void fibula_live_free(fibula_live *live);

/* Adds routes, or gives those that are there other values; of two routes of a prefix the last one counts. If one of
 * them is wrong, nothing is changed, and false is returned. Also false if the routes are taken, but no engine takes the
 * table: readers keep the one before, and the next call tries again. If changes are collected, the call does not build
 * the table and cannot say so: fibula_live_flush does. A table is loaded fastest with one call. */
bool fibula_live_set(fibula_live *live, const fibula_route *routes, size_t count);

/* Removes the routes with these prefixes, whatever their values are; prefixes without a route are passed over.
 * Otherwise like fibula_live_set. */
bool fibula_live_remove(fibula_live *live, const fibula_route *routes, size_t count);

/* Makes all changes so far visible now; false if no engine takes the table, as of fibula_live_set. */
bool fibula_live_flush(fibula_live *live);

/* Number of changes taken, and how many of them readers see: remember the first after a call, and its change is visible
 * when the second has reached it. */
uint64_t fibula_live_changes(const fibula_live *live);
uint64_t fibula_live_visible(const fibula_live *live);

/* Waits until the second number has reached `change`, for at most `most_ms` milliseconds; false if it has not. It does
 * not wait for calls that build the table or ask for routes. */
bool fibula_live_wait(const fibula_live *live, uint64_t change, uint32_t most_ms);

/* ---- the routes of a changing table, changes that readers do not see yet included. They may be asked by any thread;
 * each call is one moment of the table. */

/* Number of routes of a family; SIZE_MAX if there is no such family. */
size_t fibula_live_count(const fibula_live *live, uint8_t family);

/* The value of exactly the prefix in `route`, which is written there; false if there is none. */
bool fibula_live_find(const fibula_live *live, fibula_route *route);

/* The longest match of one address (4 or 16 bytes in network byte order); false if no route covers it. */
bool fibula_live_match(const fibula_live *live, uint8_t family, const void *bytes, fibula_route *route);

/* The routes that cover the prefix, its own included, longest first. Writes at most `room` and returns how many there
 * are; SIZE_MAX if the prefix is none. */
size_t fibula_live_covering(const fibula_live *live, const fibula_route *prefix, fibula_route *routes, size_t room);

/* The routes within the prefix, its own included, in order of address and length. Writes at most `room` of those behind
 * `after` (NULL: from the first on), and returns how many it wrote: fewer than `room` at the end. SIZE_MAX if a prefix
 * is none. For a long walk, pass the last route of each part as the next `after`: the table may change in between. */
size_t fibula_live_walk(const fibula_live *live, const fibula_route *within, const fibula_route *after,
                        fibula_route *routes, size_t room);

/* Adds the routes of a file of `fibula build` or fibula_live_save, with their values in a column of numbers (NULL:
 * "value"); false, and nothing is changed, if it is no such file, or a route has no number there. */
bool fibula_live_load(fibula_live *live, const char *path, const char *column);

/* Writes the routes, as the column "value", and engines to a file, which fibula_open opens; it is replaced at once. */
bool fibula_live_save(const fibula_live *live, const char *path);

/* ---- what a table does and takes */

/* Which engine answers for a family, as fibula_engine writes it; "none" without routes. */
size_t fibula_live_engine(const fibula_live *live, uint8_t family, char *text, size_t size);

typedef struct fibula_counters {
    uint64_t changes;     /* routes set and prefixes removed */
    uint64_t generations; /* states of the table that were published */
    uint64_t builds;      /* of these, how many engines were built */
    uint64_t patches;     /* and how many were the one before, patched */
    uint64_t copies;      /* or a copy of the current one, patched, since a reader had the one before */
    uint64_t failures;    /* how often no engine took the routes */
    uint64_t making_ns;   /* time spent on all of it */
    uint64_t oldest_us;   /* how long the oldest change has waited that readers do not see yet; 0 if they see all */
} fibula_counters;

/* The counters of a family; false if there is no such family. */
bool fibula_live_counters(const fibula_live *live, uint8_t family, fibula_counters *counters);

/* The bytes of a family's parts; false if there is no such family. */
bool fibula_live_memory(const fibula_live *live, uint8_t family, fibula_memory *memory);

/* ---- readers */

/* A reader, for one thread at a time; each thread has its own. */
fibula_reader *fibula_reader_new(const fibula_live *live);

/* Frees it. */
void fibula_reader_free(fibula_reader *reader);

/* The value of the longest match for each address, or the default value; all of them from one state of the table. */
void fibula_reader_lookup4(fibula_reader *reader, const uint32_t *addresses, uint32_t *values, size_t count);
void fibula_reader_lookup6(fibula_reader *reader, const void *addresses, uint32_t *values, size_t count);

/* The same with values of 64 bits. */
void fibula_reader_wide4(fibula_reader *reader, const uint32_t *addresses, uint64_t *values, size_t count);
void fibula_reader_wide6(fibula_reader *reader, const void *addresses, uint64_t *values, size_t count);

/* The same for addresses and values anywhere in memory; false, and nothing is written, if a size or stride is wrong. */
bool fibula_reader_lookup(fibula_reader *reader, const fibula_batch *batch);

/* Gives back the tables that the reader holds, at most one of each family. A reader that pauses calls this, or an old
 * table stays in memory; nothing waits for it. */
void fibula_reader_release(fibula_reader *reader);

/* A reader takes the newest table with each batch. With `true` it keeps the ones that it has until its thread reports a
 * quiescent state with fibula_reader_release: for several batches in one state of the table, or where values are
 * addresses of objects that the program frees. It may free one once the change that removed it is visible
 * (fibula_live_flush or fibula_live_wait) and each thread has passed such a state after that (DPDK's rte_rcu_qsbr). */
void fibula_reader_keep(fibula_reader *reader, bool keep);

#ifdef __cplusplus
}
#endif

#endif
