#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

/*
 * A slot:
 *
 *   0                64               192 = FIB_FRONT   +128
 *   | rte_mempool_objhdr | rte_mbuf        | headroom        | packet ...      |
 *
 * so that a packet's place in the router's slot is its place behind the mbuf: rte_mbuf.data_off.
 */
#define HEADER 64
_Static_assert(sizeof(struct rte_mempool_objhdr) <= HEADER, "a mempool's header");
_Static_assert(HEADER + sizeof(struct rte_mbuf) == FIB_FRONT, "FIB_FRONT");
_Static_assert(RTE_CACHE_LINE_SIZE == HEADER, "headers begin at a line");
_Static_assert(offsetof(struct rte_mbuf, data_off) == offsetof(struct rte_mbuf, rearm_data) &&
                   offsetof(struct rte_mbuf, refcnt) == offsetof(struct rte_mbuf, rearm_data) + 2 &&
                   offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, rearm_data) + 4 &&
                   offsetof(struct rte_mbuf, port) == offsetof(struct rte_mbuf, rearm_data) + 6,
               "the word that fib_transmit writes");

struct fib_pool {
    struct rte_mempool *mempool;
    struct fib_owner owner;
    char *area;
    uint32_t slots;
    uint32_t stride;
};

static inline struct rte_mbuf *mbuf_of(const struct fib_pool *pool, uint32_t slot) {
    return (struct rte_mbuf *)(pool->area + (size_t)slot * pool->stride + HEADER);
}

static inline uint32_t slot_of(const struct fib_pool *pool, const void *mbuf) {
    /* In lines: a division of 32 bits takes half the time of one of 64. */
    size_t line = (size_t)((const char *)mbuf - pool->area) / RTE_CACHE_LINE_SIZE;
    return (uint32_t)line / (pool->stride / RTE_CACHE_LINE_SIZE);
}

/* ---- what is logged ---------------------------------------------------------------------- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[2048];
static size_t log_len;

static ssize_t log_write(void *cookie, const char *text, size_t len) {
    (void)cookie;
    pthread_mutex_lock(&log_lock);
    /* The first lines say what is wrong; what follows is a consequence. */
    size_t room = sizeof log_text - log_len;
    memcpy(log_text + log_len, text, len < room ? len : room);
    log_len += len < room ? len : room;
    pthread_mutex_unlock(&log_lock);
    return (ssize_t)len;
}

void fib_log(char *text, uint32_t room) {
    pthread_mutex_lock(&log_lock);
    size_t len = log_len < room - 1 ? log_len : room - 1;
    memcpy(text, log_text, len);
    text[len] = 0;
    log_len = 0;
    pthread_mutex_unlock(&log_lock);
}

/* ---- slots as a mempool ------------------------------------------------------------------- */

static int pool_alloc(struct rte_mempool *mempool) {
    mempool->pool_data = mempool->pool_config;
    return 0;
}

static void pool_free(struct rte_mempool *mempool) {
    (void)mempool;
}

static int pool_enqueue(struct rte_mempool *mempool, void *const *objects, unsigned int count) {
    const struct fib_pool *pool = mempool->pool_data;
    uint32_t slots[FIB_BURST];
    while (count > 0) {
        uint32_t part = RTE_MIN(count, (unsigned int)FIB_BURST);
        for (uint32_t at = 0; at < part; at++)
            slots[at] = slot_of(pool, objects[at]);
        pool->owner.give(pool->owner.context, slots, part);
        objects += part;
        count -= part;
    }
    return 0;
}

static int pool_dequeue(struct rte_mempool *mempool, void **objects, unsigned int count) {
    const struct fib_pool *pool = mempool->pool_data;
    uint32_t slots[FIB_BURST];
    if (pool->owner.take == NULL)
        return -ENOBUFS;
    for (unsigned int done = 0; done < count;) {
        uint32_t part = RTE_MIN(count - done, (unsigned int)FIB_BURST);
        if (unlikely(!pool->owner.take(pool->owner.context, slots, part))) {
            pool_enqueue(mempool, objects, done);
            return -ENOBUFS;
        }
        for (uint32_t at = 0; at < part; at++)
            objects[done + at] = mbuf_of(pool, slots[at]);
        done += part;
    }
    return 0;
}

static unsigned int pool_count(const struct rte_mempool *mempool) {
    const struct fib_pool *pool = mempool->pool_data;
    return pool->owner.count(pool->owner.context);
}

/* All slots are objects; those that nobody has are their owner's already. */
static int pool_populate(struct rte_mempool *mempool, unsigned int most, void *area, rte_iova_t iova, size_t len,
                         rte_mempool_populate_obj_cb_t *add, void *argument) {
    const struct fib_pool *pool = mempool->pool_data;
    (void)len;
    uint32_t slot = 0;
    for (; slot < pool->slots && slot < most; slot++) {
        size_t at = (size_t)slot * pool->stride + HEADER;
        add(mempool, argument, (char *)area + at, iova == RTE_BAD_IOVA ? RTE_BAD_IOVA : iova + at);
    }
    return (int)slot;
}

static const struct rte_mempool_ops slots_ops = {
    .name = "fibula",
    .alloc = pool_alloc,
    .free = pool_free,
    .enqueue = pool_enqueue,
    .dequeue = pool_dequeue,
    .get_count = pool_count,
    .populate = pool_populate,
};

struct fib_pool *fib_pool_new(void *area, uint32_t slots, uint32_t stride, const struct fib_owner *owner, int *error) {
    static uint64_t number;
    struct fib_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) {
        *error = -ENOMEM;
        return NULL;
    }
    *pool = (struct fib_pool){.owner = *owner, .area = area, .slots = slots, .stride = stride};
    char name[RTE_MEMPOOL_NAMESIZE];
    snprintf(name, sizeof name, "fibula_%" PRIu64, ++number);
    /* What a thread gave back last it takes first; small pools have no slots to spare for it. */
    uint32_t cache = slots >= 16 * FIB_BURST ? FIB_BURST : 0;
    pool->mempool = rte_mempool_create_empty(name, slots, stride - HEADER, cache, sizeof(struct rte_pktmbuf_pool_private),
                                             SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_SPREAD);
    if (pool->mempool == NULL) {
        *error = -rte_errno;
        free(pool);
        return NULL;
    }
    struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = (uint16_t)(stride - FIB_FRONT)};
    int done = rte_mempool_set_ops_byname(pool->mempool, slots_ops.name, pool);
    if (done == 0) {
        rte_pktmbuf_pool_init(pool->mempool, &private);
        /* Devices see the memory by the addresses that the process has. */
        rte_iova_t iova = rte_eal_iova_mode() == RTE_IOVA_VA ? (rte_iova_t)(uintptr_t)area : RTE_BAD_IOVA;
        done = rte_mempool_populate_iova(pool->mempool, area, iova, (size_t)slots * stride, NULL, NULL);
    }
    if (done != (int)slots) {
        *error = done < 0 ? done : -ENOMEM;
        fib_pool_free(pool);
        return NULL;
    }
    rte_mempool_obj_iter(pool->mempool, rte_pktmbuf_init, NULL);
    return pool;
}

void fib_pool_free(struct fib_pool *pool) {
    /* A mempool takes all its objects when it ends; these stay where they are. */
    pool->owner.take = NULL;
    rte_mempool_free(pool->mempool);
    free(pool);
}

/* ---- environment and devices -------------------------------------------------------------- */

int fib_start(int argc, char **argv) {
    static const cookie_io_functions_t log_to = {.write = log_write};
    FILE *stream = fopencookie(NULL, "w", log_to);
    if (stream != NULL) {
        setvbuf(stream, NULL, _IONBF, 0);
        rte_openlog_stream(stream);
    }
    int index = rte_mempool_register_ops(&slots_ops);
    if (index < 0)
        return index;
    /* What is wrong with arguments goes to these, and a page of all that there are. */
    FILE *out = stdout, *err = stderr, *nowhere = fopen("/dev/null", "w");
    if (stream != NULL && nowhere != NULL) {
        stdout = nowhere;
        stderr = stream;
    }
    int done = rte_eal_init(argc, argv);
    int error = rte_errno;
    stdout = out;
    stderr = err;
    if (nowhere != NULL)
        fclose(nowhere);
    return done < 0 ? -(error != 0 ? error : EINVAL) : 0;
}

/* Devices are opened and closed one at a time. */
static char is_open[RTE_MAX_ETHPORTS], is_started[RTE_MAX_ETHPORTS];

static int configure(uint16_t id, struct fib_pool *pool, uint16_t queues, const uint8_t mac[6], uint16_t mtu,
                     struct fib_port *port, const char **step) {
    struct rte_eth_dev_info info;
    int done = rte_eth_dev_info_get(id, &info);
    *step = "asking the device what it can do";
    if (done != 0)
        return done;
    if (queues > info.max_rx_queues || queues > info.max_tx_queues) {
        *step = "so many queues: the device has fewer";
        return -EINVAL;
    }
    struct rte_eth_conf wanted = {0};
    uint16_t has = RTE_ETHER_MTU;
    rte_eth_dev_get_mtu(id, &has);
    wanted.rxmode.mtu = mtu != 0 ? mtu : has;
    if (queues > 1) {
        wanted.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        wanted.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP & info.flow_type_rss_offloads;
        if (wanted.rx_adv_conf.rss_conf.rss_hf == 0)
            wanted.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
    }
    *step = "configuring the device";
    done = rte_eth_dev_configure(id, queues, queues, &wanted);
    if (done != 0)
        return done;
    uint16_t receive = 1024, transmit = 1024;
    done = rte_eth_dev_adjust_nb_rx_tx_desc(id, &receive, &transmit);
    for (uint16_t queue = 0; queue < queues && done == 0; queue++) {
        *step = "setting up a queue to receive by";
        done = rte_eth_rx_queue_setup(id, queue, receive, SOCKET_ID_ANY, NULL, pool->mempool);
        if (done == 0) {
            *step = "setting up a queue to transmit by";
            done = rte_eth_tx_queue_setup(id, queue, transmit, SOCKET_ID_ANY, NULL);
        }
    }
    if (done != 0)
        return done;
    struct rte_ether_addr address;
    memcpy(address.addr_bytes, mac, 6);
    int has_mac = !rte_is_zero_ether_addr(&address);
    *step = "starting the device";
    done = rte_eth_dev_start(id);
    if (done != 0)
        return done;
    is_started[id] = 1;
    /* A device that cannot filter by another address receives all; one that can do neither is a virtual one. */
    if (has_mac && rte_eth_dev_default_mac_addr_set(id, &address) != 0)
        rte_eth_promiscuous_enable(id);
    memset(port, 0, sizeof *port);
    port->id = id;
    port->queues = queues;
    port->mtu = wanted.rxmode.mtu;
    port->interface = info.if_index;
    snprintf(port->driver, sizeof port->driver, "%s", info.driver_name);
    if (!has_mac && rte_eth_macaddr_get(id, &address) != 0)
        memset(&address, 0, sizeof address);
    memcpy(port->mac, address.addr_bytes, 6);
    return 0;
}

int fib_port_open(const char *devargs, struct fib_pool *pool, uint16_t queues, const uint8_t mac[6], uint16_t mtu,
                  struct fib_port *port, const char **step) {
    *step = "finding the device and its driver";
    int done = rte_dev_probe(devargs);
    if (done < 0)
        return done == -EFAULT ? -ENODEV : done;
    struct rte_dev_iterator iterator;
    uint16_t id;
    RTE_ETH_FOREACH_MATCHING_DEV(id, devargs, &iterator) {
        rte_eth_iterator_cleanup(&iterator);
        /* Devices that are there already are found, too. */
        if (is_open[id]) {
            *step = "opening it: the process has it open";
            return -EEXIST;
        }
        is_open[id] = 1;
        done = configure(id, pool, queues, mac, mtu, port, step);
        if (done != 0)
            fib_port_close(id);
        return done;
    }
    *step = "finding its Ethernet port";
    return -ENODEV;
}

/* What nobody will receive: a ring's packets would stay in it for ever. */
static void drain(uint16_t port, uint16_t queues) {
    struct rte_mbuf *mbufs[FIB_BURST];
    for (uint16_t queue = 0; queue < queues; queue++) {
        uint16_t count = 1;
        for (int round = 0; round < 64 && count > 0; round++) {
            count = rte_eth_rx_burst(port, queue, mbufs, FIB_BURST);
            rte_pktmbuf_free_bulk(mbufs, count);
        }
    }
}

void fib_port_close(uint16_t port) {
    struct rte_eth_dev_info info = {0};
    if (rte_eth_dev_info_get(port, &info) == 0 && is_started[port])
        drain(port, info.nb_rx_queues);
    rte_eth_dev_stop(port);
    rte_eth_dev_close(port);
    if (info.device != NULL)
        rte_dev_remove(info.device);
    is_open[port] = is_started[port] = 0;
}

/* ---- packets ------------------------------------------------------------------------------ */

static pthread_key_t registered;
static pthread_once_t registered_once = PTHREAD_ONCE_INIT;

static void unregister(void *value) {
    (void)value;
    rte_thread_unregister();
}

static void make_registered(void) {
    pthread_key_create(&registered, unregister);
}

/* Gives the thread a number, by which mempools have a cache for it, until it ends. Without a number all works, but slower. */
static __attribute__((noinline)) void number_thread(void) {
    pthread_once(&registered_once, make_registered);
    if (rte_thread_register() == 0)
        pthread_setspecific(registered, &registered);
}

static inline void enter(void) {
    static __thread char has_entered;
    if (unlikely(!has_entered)) {
        has_entered = 1;
        if (rte_lcore_id() == LCORE_ID_ANY)
            number_thread();
    }
}

/* Not in the loop of those that call it, which has all it needs in registers. */
static __attribute__((noinline, cold)) void lose(struct rte_mbuf *mbuf, uint64_t *lost) {
    rte_pktmbuf_free(mbuf);
    *lost += 1;
}

uint16_t fib_receive(struct fib_pool *pool, uint16_t port, uint16_t queue, struct fib_packet *packets, uint16_t most, uint64_t *lost) {
    struct rte_mbuf *mbufs[FIB_BURST];
    enter();
    uint16_t count = rte_eth_rx_burst(port, queue, mbufs, most < FIB_BURST ? most : FIB_BURST);
    size_t size = (size_t)pool->slots * pool->stride;
    const char *area = pool->area;
    uint32_t slot_len = pool->stride - FIB_FRONT;
    struct fib_packet *next = packets;
    for (uint16_t at = 0; at < count; at++) {
        struct rte_mbuf *mbuf = mbufs[at];
        uint32_t start = mbuf->data_off, len = mbuf->data_len;
        if (unlikely(mbuf->nb_segs != 1 || (size_t)((const char *)mbuf - area) >= size || start + len > slot_len)) {
            lose(mbuf, lost);
            continue;
        }
        *next++ = (struct fib_packet){(uint8_t *)(mbuf + 1), slot_len, start, len, 0, 0};
    }
    return (uint16_t)(next - packets);
}

int fib_transmit(struct fib_pool *pool, uint16_t port, uint16_t queue, const struct fib_packet *packets, uint16_t count) {
    /* One segment, one owner, no port: what a mempool's free mbufs have, too. */
    const uint64_t alone = (uint64_t)1 << 16 | (uint64_t)1 << 32 | (uint64_t)RTE_MBUF_PORT_INVALID << 48;
    struct rte_mbuf *mbufs[FIB_BURST];
    size_t size = (size_t)pool->slots * pool->stride;
    if (count > FIB_BURST)
        count = FIB_BURST;
    for (uint16_t at = 0; at < count; at++) {
        struct rte_mbuf *mbuf = (struct rte_mbuf *)packets[at].slot - 1;
        if (unlikely((size_t)((const char *)mbuf - pool->area) >= size))
            return -EINVAL;
        /* Slots have at most 64 KiB. */
        uint64_t rearm = alone | (uint16_t)packets[at].start;
        memcpy(&mbuf->rearm_data, &rearm, sizeof rearm);
        mbuf->ol_flags = 0;
        mbuf->pkt_len = packets[at].len;
        mbuf->data_len = (uint16_t)packets[at].len;
        mbufs[at] = mbuf;
    }
    enter();
    return rte_eth_tx_burst(port, queue, mbufs, count);
}

void fib_clean(uint16_t port, uint16_t queue) {
    /* Drivers that cannot have nothing to give back, or do it with the next packets. */
    (void)rte_eth_tx_done_cleanup(port, queue, 0);
}

void fib_flush(struct fib_pool *pool) {
    struct rte_mempool_cache *cache = rte_mempool_default_cache(pool->mempool, rte_lcore_id());
    if (cache != NULL)
        rte_mempool_cache_flush(cache, pool->mempool);
}

void fib_lost(uint16_t port, uint64_t *received, uint64_t *sent) {
    struct rte_eth_stats stats = {0};
    rte_eth_stats_get(port, &stats);
    *received = stats.imissed + stats.rx_nombuf;
    *sent = stats.oerrors;
}
