/* A bare AF_XDP loop: takes frames from one interface, writes MAC addresses, sends them by another. It looks up nothing and checks
 * nothing, so it is the most that a forwarder on sockets of this kind can do: see measure.py.
 *
 *     bare XSKMAP IN OUT DESTINATION SOURCE
 *
 * XSKMAP is the pinned map of a program on IN that hands frames to sockets; IN and OUT are indices of interfaces. */
#include <linux/bpf.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOTS 2048 /* of each ring, and frames in all */
#define BURST 64
#define FRAME 2048

struct ring {
    uint32_t *producer, *consumer;
    void *entries;
};

static void fails(int failed, const char *what)
{
    if (failed) {
        perror(what);
        exit(1);
    }
}

static struct ring ring(int socket, int option, const struct xdp_ring_offset *at, uint64_t page, size_t entry)
{
    uint32_t slots = SLOTS;
    fails(setsockopt(socket, SOL_XDP, option, &slots, sizeof(slots)), "a ring");
    char *memory = mmap(0, at->desc + SLOTS * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, socket, page);
    fails(memory == MAP_FAILED, "a ring's memory");
    return (struct ring){(uint32_t *)(memory + at->producer), (uint32_t *)(memory + at->consumer), memory + at->desc};
}

/* Entries that the kernel has produced, at most `most`. */
static uint32_t there(const struct ring *ring, uint32_t most)
{
    uint32_t count = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) - *ring->consumer;
    return count < most ? count : most;
}

static void give(const struct ring *ring, uint32_t count)
{
    __atomic_store_n(ring->producer, *ring->producer + count, __ATOMIC_RELEASE);
}

static void taken(const struct ring *ring, uint32_t count)
{
    __atomic_store_n(ring->consumer, *ring->consumer + count, __ATOMIC_RELEASE);
}

static uint64_t *address(const struct ring *ring, uint32_t number)
{
    return (uint64_t *)ring->entries + (number & (SLOTS - 1));
}

static struct xdp_desc *frame(const struct ring *ring, uint32_t number)
{
    return (struct xdp_desc *)ring->entries + (number & (SLOTS - 1));
}

static void bind_to(int socket, uint32_t interface, uint16_t flags, uint32_t shared)
{
    struct sockaddr_xdp to = {.sxdp_family = AF_XDP, .sxdp_flags = flags, .sxdp_ifindex = interface, .sxdp_shared_umem_fd = shared};
    fails(bind(socket, (struct sockaddr *)&to, sizeof(to)), "bind");
}

int main(int count, char **words)
{
    uint8_t macs[12];
    if (count != 6)
        return 2;
    for (int i = 0; i < 12; i++)
        macs[i] = strtoul(words[4 + i / 6] + i % 6 * 3, 0, 16);

    char *memory = mmap(0, SLOTS * FRAME, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    fails(memory == MAP_FAILED, "frames");
    int in = socket(AF_XDP, SOCK_RAW, 0), out = socket(AF_XDP, SOCK_RAW, 0);
    fails(in < 0 || out < 0, "socket");
    struct xdp_umem_reg frames = {.addr = (uintptr_t)memory, .len = SLOTS * FRAME, .chunk_size = FRAME};
    fails(setsockopt(in, SOL_XDP, XDP_UMEM_REG, &frames, sizeof(frames)), "XDP_UMEM_REG");
    struct xdp_mmap_offsets at;
    socklen_t length = sizeof(at);
    fails(getsockopt(in, SOL_XDP, XDP_MMAP_OFFSETS, &at, &length), "XDP_MMAP_OFFSETS");
    struct ring fill = ring(in, XDP_UMEM_FILL_RING, &at.fr, XDP_UMEM_PGOFF_FILL_RING, 8);
    ring(in, XDP_UMEM_COMPLETION_RING, &at.cr, XDP_UMEM_PGOFF_COMPLETION_RING, 8);
    struct ring rx = ring(in, XDP_RX_RING, &at.rx, XDP_PGOFF_RX_RING, sizeof(struct xdp_desc));
    bind_to(in, atoi(words[2]), XDP_COPY, 0);
    ring(out, XDP_UMEM_FILL_RING, &at.fr, XDP_UMEM_PGOFF_FILL_RING, 8);
    struct ring done = ring(out, XDP_UMEM_COMPLETION_RING, &at.cr, XDP_UMEM_PGOFF_COMPLETION_RING, 8);
    struct ring tx = ring(out, XDP_TX_RING, &at.tx, XDP_PGOFF_TX_RING, sizeof(struct xdp_desc));
    bind_to(out, atoi(words[3]), XDP_SHARED_UMEM, in);

    union bpf_attr attributes = {.pathname = (uintptr_t)words[1]};
    int map = syscall(SYS_bpf, BPF_OBJ_GET, &attributes, sizeof(attributes));
    fails(map < 0, words[1]);
    uint32_t queue = 0;
    attributes = (union bpf_attr){.map_fd = map, .key = (uintptr_t)&queue, .value = (uintptr_t)&in};
    fails(syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attributes, sizeof(attributes)) < 0, "BPF_MAP_UPDATE_ELEM");

    for (uint32_t i = 0; i < SLOTS; i++)
        *address(&fill, i) = i * FRAME;
    give(&fill, SLOTS);
    for (;;) {
        uint32_t sent = there(&done, BURST);
        for (uint32_t i = 0; i < sent; i++)
            *address(&fill, *fill.producer + i) = *address(&done, *done.consumer + i);
        taken(&done, sent);
        give(&fill, sent);
        uint32_t burst = there(&rx, BURST);
        for (uint32_t i = 0; i < burst; i++) {
            struct xdp_desc *each = frame(&rx, *rx.consumer + i);
            memcpy(memory + each->addr, macs, sizeof(macs));
            *frame(&tx, *tx.producer + i) = (struct xdp_desc){.addr = each->addr, .len = each->len};
        }
        taken(&rx, burst);
        give(&tx, burst);
        if (burst || __atomic_load_n(tx.consumer, __ATOMIC_RELAXED) != *tx.producer)
            sendto(out, 0, 0, MSG_DONTWAIT, 0, 0);
        if (!burst && !sent)
            poll(&(struct pollfd){.fd = in, .events = POLLIN}, 1, 1);
    }
}
