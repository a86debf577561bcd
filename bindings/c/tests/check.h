/* What the tests in C share. */
#include <stdio.h>
#include <stdlib.h>

#include <fibula.h>

/* Ends the program with 1, the line and the last error, unless this is so. */
#define CHECK(what)                                                                              \
    do {                                                                                         \
        if (!(what)) {                                                                           \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, fibula_error());              \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)
