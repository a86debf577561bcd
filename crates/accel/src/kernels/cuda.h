// Words of OpenCL C for a compiler of CUDA: before `prelude.cl`, it makes the kernels' text CUDA. It needs no file of
// NVIDIA's. The builtins are clang's names for the numbers of the block and the thread.

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef struct {
    ulong x, y;
} __attribute__((aligned(16))) ulong2;

#define __kernel extern "C" __attribute__((global))
#define __global
#define __local
#define SHARED __attribute__((shared))
#define INLINE static inline __attribute__((device))
#define restrict __restrict__
#define popcount(bits) __builtin_popcountll(bits)
// Lanes are of one warp, whose threads wait for each other sooner than those of a block.
#define barrier(fence) __nvvm_bar_warp_sync(0xffffffffu)
#define get_local_id(axis) __nvvm_read_ptx_sreg_tid_x()
#define get_global_id(axis)                                                                                    \
    (__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x())
