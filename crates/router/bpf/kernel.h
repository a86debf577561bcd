/* What the programs use of the kernel's interface: so little that no header of it is needed. */
#ifndef FIBULA_KERNEL_H
#define FIBULA_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static __attribute__((always_inline)) inline

/* What becomes of a packet. */
enum { XDP_DROP = 1, XDP_PASS = 2, XDP_TX = 3, XDP_REDIRECT = 4 };

/* The argument of XDP programs. */
struct xdp_md {
    u32 data;
    u32 data_end;
    u32 data_meta;
    u32 ingress_ifindex;
    u32 rx_queue_index;
    u32 egress_ifindex;
};

/* A map, as the loader is to make it. */
struct map {
    u32 type;
    u32 key_size;
    u32 value_size;
    u32 entries; /* 0: the loader knows */
    u32 flags;
};

enum { HASH = 1, ARRAY = 2, PERCPU_ARRAY = 6, ARRAY_OF_MAPS = 12, DEVMAP = 14, XSKMAP = 17 };
enum { RDONLY_PROG = 1 << 7, MMAPABLE = 1 << 10, INNER_MAP = 1 << 12 };

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*adjust_tail)(struct xdp_md *context, int delta) = (void *)65;

/* Keeps a value in the register that was compared, which the verifier then knows the bounds of; and what is computed of a
 * pointer behind the check that it is not null. */
#define KEEP(value) asm volatile("" : "+r"(value))

#define swap16 __builtin_bswap16
#define swap32 __builtin_bswap32
#define swap64 __builtin_bswap64

#endif
