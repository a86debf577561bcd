/* The part of DPDK that the router uses. This header includes none of DPDK's, so that bindings are made of it anywhere. */
#ifndef FIBULA_SHIM_H
#define FIBULA_SHIM_H

#include <stdint.h>

/* Bytes in front of each slot: what a mempool has there, and the packet's struct rte_mbuf. */
#define FIB_FRONT 192
/* The most packets of a call. */
#define FIB_BURST 256

/* A packet as the router has it: its slot behind FIB_FRONT, the slot's length, where the packet begins there, and its length. */
struct fib_packet {
    uint8_t *slot;
    uint32_t slot_len;
    uint32_t start;
    uint32_t len;
    /* The router's; 0 when it is received. */
    uint16_t port;
    uint16_t mark;
};

/* Who owns slots that neither a packet nor a driver has. Called by any thread. */
struct fib_owner {
    void *context;
    /* Gives so many slots, or none: whether it did. */
    int (*take)(void *context, uint32_t *slots, uint32_t count);
    /* Takes slots back. */
    void (*give)(void *context, const uint32_t *slots, uint32_t count);
    /* How many it has. */
    uint32_t (*count)(void *context);
};

/* A mempool whose objects are the slots. */
struct fib_pool;

/* A device. */
struct fib_port {
    uint16_t id;
    uint16_t queues;
    /* Of the device; as it was found. */
    uint16_t mtu;
    uint8_t mac[6];
    /* The system's index of its interface, 0 if it has none. */
    uint32_t interface;
    char driver[32];
};

/* Functions return 0 or more, or a negative errno. */

/* Starts DPDK's environment, once in a process. Changes argv, and where the calling thread runs. */
int fib_start(int argc, char **argv);

/* Copies what DPDK has logged since the last call, as a string of fewer than `room` bytes. */
void fib_log(char *text, uint32_t room);

/* Makes a mempool over an area of slots of `stride` bytes. Errors: NULL, and the number in *error. */
struct fib_pool *fib_pool_new(void *area, uint32_t slots, uint32_t stride, const struct fib_owner *owner, int *error);
void fib_pool_free(struct fib_pool *pool);

/* Makes the device of these arguments, opens it with as many queues, and starts it. A MAC address of zeros leaves the device's, an MTU
   of 0, too. On an error *step is what failed. */
int fib_port_open(const char *devargs, struct fib_pool *pool, uint16_t queues, const uint8_t mac[6], uint16_t mtu,
                  struct fib_port *port, const char **step);
/* Stops the device and removes it. Nobody receives or transmits any more. */
void fib_port_close(uint16_t port);

/* Receives at most `most` packets, at most FIB_BURST. *lost grows by those that do not lie in one slot of the pool. */
uint16_t fib_receive(struct fib_pool *pool, uint16_t port, uint16_t queue, struct fib_packet *packets, uint16_t most, uint64_t *lost);
/* Sends the first packets of at most FIB_BURST, and says how many; their slots are the driver's. -EINVAL, and nothing is sent: one of
   them is of another pool. */
int fib_transmit(struct fib_pool *pool, uint16_t port, uint16_t queue, const struct fib_packet *packets, uint16_t count);
/* Has the driver give back what is sent, as far as it can. */
void fib_clean(uint16_t port, uint16_t queue);
/* The free slots that are kept for this thread go to their owner. A thread that has received or transmitted calls it before the pool
   goes. */
void fib_flush(struct fib_pool *pool);
/* What the device lost: received and had no room for, and could not send. */
void fib_lost(uint16_t port, uint64_t *received, uint64_t *sent);

#endif
