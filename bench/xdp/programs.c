/* What the fast path is measured beside, and what makes and takes the packets: see measure.py. Built with libbpf's headers. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define TARGETS (1 << 18)
#define FAMILY_4 2
#define FAMILY_6 10

/* A frame, and what differs from packet to packet. */
struct template {
    __u8 frame[64];
};

struct target {
    __u32 address[4];
    __u32 checksum; /* of the IPv4 header */
    __u32 padding[3];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, struct template);
} templates SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2 * TARGETS);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct target);
} targets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, 4096);
    __type(key, __u32);
    __type(value, __u32);
} interfaces SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_XSKMAP);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} sockets SEC(".maps");

/* Frames are recycled as their receivers left them, so all of them is written. */
static __always_inline int make(struct xdp_md *context, __u32 is_v6)
{
    void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
    __u32 number = (bpf_get_prandom_u32() & (TARGETS - 1)) + is_v6 * TARGETS;
    struct template *template = bpf_map_lookup_elem(&templates, &is_v6);
    struct target *target = bpf_map_lookup_elem(&targets, &number);
    if (!template || !target || data + 64 > end)
        return XDP_DROP;
    __builtin_memcpy(data, template->frame, 64);
    if (is_v6) {
        __builtin_memcpy(data + 38, target->address, 16);
    } else {
        *(__u16 *)(data + 24) = target->checksum;
        *(__u32 *)(data + 30) = target->address[0];
    }
    return XDP_TX;
}

SEC("xdp") int make_v4(struct xdp_md *context) { return make(context, 0); }
SEC("xdp") int make_v6(struct xdp_md *context) { return make(context, 1); }
SEC("xdp") int to_socket(struct xdp_md *context) { return bpf_redirect_map(&sockets, 0, XDP_DROP); }
SEC("xdp") int drop(struct xdp_md *context) { return XDP_DROP; }

/* What a forwarder by the table of the kernel does: bpf_fib_lookup, and a redirect. The kernel reads the licence below. */
SEC("xdp") int fib_lookup(struct xdp_md *context)
{
    void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
    struct ethhdr *ethernet = data;
    struct bpf_fib_lookup asked = {};
    if (data + sizeof(*ethernet) > end)
        return XDP_PASS;
    struct iphdr *ip = data + sizeof(*ethernet);
    struct ipv6hdr *ip6 = data + sizeof(*ethernet);
    int is_v4 = ethernet->h_proto == bpf_htons(ETH_P_IP);
    if (is_v4) {
        if ((void *)(ip + 1) > end || ip->ttl <= 1)
            return XDP_PASS;
        asked.family = FAMILY_4;
        asked.tos = ip->tos;
        asked.l4_protocol = ip->protocol;
        asked.tot_len = bpf_ntohs(ip->tot_len);
        asked.ipv4_src = ip->saddr;
        asked.ipv4_dst = ip->daddr;
    } else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
        if ((void *)(ip6 + 1) > end || ip6->hop_limit <= 1)
            return XDP_PASS;
        asked.family = FAMILY_6;
        asked.l4_protocol = ip6->nexthdr;
        asked.tot_len = bpf_ntohs(ip6->payload_len);
        __builtin_memcpy(asked.ipv6_src, &ip6->saddr, 16);
        __builtin_memcpy(asked.ipv6_dst, &ip6->daddr, 16);
    } else {
        return XDP_PASS;
    }
    asked.ifindex = context->ingress_ifindex;
    if (bpf_fib_lookup(context, &asked, sizeof(asked), 0) != BPF_FIB_LKUP_RET_SUCCESS)
        return XDP_PASS;
    if (is_v4) {
        __u32 sum = ip->check + bpf_htons(0x100);
        ip->check = sum + (sum >= 0xffff);
        ip->ttl--;
    } else {
        ip6->hop_limit--;
    }
    __builtin_memcpy(ethernet->h_dest, asked.dmac, ETH_ALEN);
    __builtin_memcpy(ethernet->h_source, asked.smac, ETH_ALEN);
    return bpf_redirect_map(&interfaces, asked.ifindex, 0);
}

char _license[] SEC("license") = "Dual MIT/GPL";
