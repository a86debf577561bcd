/* fibula: which route covers this address?
 *
 * IP longest-prefix match for C and C++, IPv4 and all 128 bits of IPv6. There are two kinds of tables:
 *
 * - a fibula_table is a file that `fibula build` wrote. It never changes. A lookup gives a row, whose values are in columns;
 * - a fibula_live has routes with a number each, and changes while any number of threads read it without locks.
 *
 *     fibula_table *table = fibula_open("t.fib");
 *     if (table == NULL) { fprintf(stderr, "%s\n", fibula_error()); exit(1); }
 *     uint32_t addresses[2] = {0x08080808, 0x01010101}, rows[2];     // 8.8.8.8, 1.1.1.1
 *     fibula_lookup4(table, addresses, rows, 2);
 *     char text[64];
 *     if (rows[0] != FIBULA_NONE && fibula_text(table, fibula_column(table, "asn"), rows[0], text, sizeof text) != SIZE_MAX)
 *         puts(text);
 *     fibula_close(table);
 *
 * Addresses of IPv4 are numbers in host byte order, 192.0.2.1 is 0xc0000201; addresses of IPv6 are 16 bytes in network byte order, as in a
 * packet or a struct in6_addr, and need no alignment. IPv4-mapped addresses of IPv6 are not converted, but by fibula_match.
 *
 * Batches of 64 to 1,024 addresses are looked up fastest. Arrays may be NULL where the count is 0. Other pointers must not be NULL,
 * but for those of the functions that free, which ignore it. Texts are UTF-8.
 *
 * A function that can fail says what it returns then; fibula_error() has the reason. Before 1.0 these functions may change with each version.
 */
#ifndef FIBULA_H
#define FIBULA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The answer where no route covers an address. */
#define FIBULA_NONE UINT32_MAX

#define FIBULA_IPV4 4
#define FIBULA_IPV6 6

/* A prefix and its value: a row of a fibula_table, or the number that a program gave to a route of a fibula_live. */
typedef struct fibula_route {
    uint8_t address[16]; /* network byte order; of IPv4 the first four bytes, the others are ignored */
    uint8_t family;      /* FIBULA_IPV4 or FIBULA_IPV6 */
    uint8_t length;      /* bits; those of the address behind it must be 0 */
    uint32_t value;      /* not FIBULA_NONE */
} fibula_route;

typedef struct fibula_table fibula_table;
typedef struct fibula_live fibula_live;
typedef struct fibula_reader fibula_reader;

/* The version of the library, such as "0.1.0". */
const char *fibula_version(void);

/* Why the last function that failed in this thread has failed; "" before the first. The text, of at most 1023 bytes, is at one address as long as
 * the thread lives; the next function that fails there writes another. */
const char *fibula_error(void);

/* ---- tables that never change: files of `fibula build`. All functions but the first and the last may be called by many threads at once. */

/* Opens a file, in milliseconds: read-only files, as `fibula build` writes them, are mapped, and must not be written to while they are open.
 * NULL if it is not such a file, or damaged. */
fibula_table *fibula_open(const char *path);

/* Closes it. Nothing may use the table any more. */
void fibula_close(fibula_table *table);

/* The row of the longest match for each address, or FIBULA_NONE. */
void fibula_lookup4(const fibula_table *table, const uint32_t *addresses, uint32_t *rows, size_t count);
void fibula_lookup6(const fibula_table *table, const void *addresses, uint32_t *rows, size_t count);

/* The longest match of one address (4 or 16 bytes in network byte order) with its prefix; an IPv4-mapped address is looked up as IPv4.
 * false if no route covers it. A hundred times slower than a batch. */
bool fibula_match(const fibula_table *table, uint8_t family, const void *bytes, fibula_route *route);

/* Number of routes of both families. */
size_t fibula_routes(const fibula_table *table);

/* Number of columns; they are counted from 0. */
size_t fibula_columns(const fibula_table *table);

/* The number of the column with this name; SIZE_MAX if there is none. */
size_t fibula_column(const fibula_table *table, const char *name);

/* These write a text and a NUL to `size` bytes, cut at a character if they are too few, and return the bytes of the whole text without NUL,
 * as snprintf does; SIZE_MAX if there is no such column, row or family. */

/* The name of a column. */
size_t fibula_column_name(const fibula_table *table, size_t column, char *name, size_t size);

/* A value; numbers are written in decimal, and no value is "". */
size_t fibula_text(const fibula_table *table, size_t column, uint32_t row, char *text, size_t size);

/* Which engine answers for a family, and why. */
size_t fibula_engine(const fibula_table *table, uint8_t family, char *text, size_t size);

/* A value of a column of numbers; false if it is none. */
bool fibula_number(const fibula_table *table, size_t column, uint32_t row, uint64_t *number);

/* ---- tables that change while they are read
 *
 * One thread at a time changes a table. Changes are collected for some milliseconds, then two threads of the library (one for each family) make the next
 * tables of them, which readers take with their next batch: a batch is looked up in one table, without locks. A child after fork() has no such threads:
 * there, readers keep answering from the tables that they had, changes and waits are refused, and fibula_live_free frees nothing. */

/* A table without routes. The first change of a burst waits `collect_ms` for others, or until 1,024 prefixes wait; 10 to 50 are good values. NULL if threads cannot be started. */
fibula_live *fibula_live_new(uint32_t collect_ms);

/* Frees it, and ends its threads. Readers keep the last table, and are freed by themselves. */
void fibula_live_free(fibula_live *live);

/* Adds routes, or gives those that are there other values. If one of them is wrong, nothing is changed, and false is returned. Waits while more
 * than a second of changes is not compiled yet. If the library's threads have failed, false is returned, and readers keep the table that they have.
 *
 * A call with 65,536 routes or more, and at least half as many as the table has, is one change for readers: it does not wait, and one table is built
 * with all its routes. So load a table with one call. */
bool fibula_live_set(fibula_live *live, const fibula_route *routes, size_t count);

/* Removes the routes with these prefixes, whatever their values are; prefixes without a route are passed over. Otherwise like fibula_live_set. */
bool fibula_live_remove(fibula_live *live, const fibula_route *routes, size_t count);

/* Waits until readers see all changes so far, for at most `most_ms` milliseconds; false if they do not, or if the library's threads have failed. Idle
 * readers can prevent a new table (see fibula_reader_release): fibula_error() says which readers hold old ones, counted from 1 in the order in which
 * they were made. */
bool fibula_live_flush(fibula_live *live, uint32_t most_ms);

/* A reader, for one thread at a time; each thread has its own. */
fibula_reader *fibula_reader_new(const fibula_live *live);

/* Frees it. */
void fibula_reader_free(fibula_reader *reader);

/* The value of the longest match for each address, or FIBULA_NONE; all of them from the newest table. */
void fibula_reader_lookup4(fibula_reader *reader, const uint32_t *addresses, uint32_t *values, size_t count);
void fibula_reader_lookup6(fibula_reader *reader, const void *addresses, uint32_t *values, size_t count);

/* For a reader that will not look up for a while, or waits for another thread: gives back the tables that it holds. While idle readers hold two old ones, no new table
 * is made. */
void fibula_reader_release(fibula_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
