// A driver with CUDA's interface that computes on the CPU, as far as `src/cuda` uses it, for tests of the host's code.
//
// It is stricter than a real one where mistakes would show on a GPU only at times, and ends the program then: work is
// done when somebody waits for it and not before, addresses of the device are none of the host's, every copy and kernel
// must lie in memory that is allocated at that time, every call but a few needs a current context, and nothing may be
// left at the end. Threads run one after the other, those of kernels by lanes from one wait to the next.
// With DRIVER_FAILS=N the kernel number N fails, and then everything, as after a fault on a GPU.

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE // it takes jumps from one stack to another for mistakes
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static _Thread_local unsigned thread_id;
static void wait_for_warp(void);

typedef unsigned char uchar;
typedef struct {
    unsigned long x, y;
} __attribute__((aligned(16))) ulong2;

#define __kernel __attribute__((visibility("default")))
#define __global
#define __local
#define SHARED static
#define restrict __restrict__
#define popcount(bits) __builtin_popcountll(bits)
#define get_global_id(axis) thread_id
#define get_local_id(axis) (thread_id % GROUP)
#define barrier(fence) wait_for_warp()

#include "prelude.cl"

#include "bloomfwd.cl"
#include "dir24_8.cl"
#include "gather.cl"
#include "planb.cl"
#include "runmap.cl"
#include "sail_l.cl"
#include "wideleaf.cl"

typedef int Result;
typedef u64 Pointer;
enum { OK = 0, NO_DEVICE = 101, NO_CONTEXT = 201, NOT_FOUND = 500, NOT_READY = 600, FAULT = 719 };

#define CHECK(condition)                                                                                       \
    do {                                                                                                       \
        if (!(condition)) {                                                                                    \
            fprintf(stderr, "driver: %s: %s\n", __func__, #condition);                                         \
            abort();                                                                                           \
        }                                                                                                      \
    } while (0)

// Every call takes this lock: streams need no order among each other.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int contexts;
static bool has_failed;

#define ENTER                                                                                                  \
    if (contexts == 0)                                                                                         \
        return NO_CONTEXT;                                                                                     \
    pthread_mutex_lock(&lock)
#define LEAVE(result)                                                                                          \
    do {                                                                                                       \
        Result left = (result);                                                                                \
        pthread_mutex_unlock(&lock);                                                                           \
        return left;                                                                                           \
    } while (0)

// Memory, of the host and of the device. Addresses of the device are those of the host with this bit.
#define ON_DEVICE (1ull << 62)
typedef struct Memory {
    struct Memory *next;
    u8 *bytes;
    size_t len;
} Memory;
static Memory *all_memory;

static void *allocate(size_t len)
{
    Memory *memory = malloc(sizeof *memory);
    *memory = (Memory){all_memory, malloc(len), len};
    memset(memory->bytes, 0xa5, len);
    all_memory = memory;
    return memory->bytes;
}

static Result release(void *bytes)
{
    for (Memory **at = &all_memory; *at; at = &(*at)->next) {
        if ((*at)->bytes == bytes) {
            Memory *memory = *at;
            *at = memory->next;
            memset(memory->bytes, 0x5a, memory->len);
            free(memory->bytes);
            free(memory);
            return OK;
        }
    }
    CHECK(!"memory that is freed was allocated");
    return OK;
}

// Where memory of the device lies, of which `len` bytes must be allocated.
static u8 *on_device(Pointer at, size_t len)
{
    CHECK(at & ON_DEVICE);
    u8 *bytes = (u8 *)(at & ~ON_DEVICE);
    for (Memory *memory = all_memory; memory; memory = memory->next) {
        if (bytes >= memory->bytes && bytes + len <= memory->bytes + memory->len)
            return bytes;
    }
    CHECK(!"memory of the device that is used is allocated");
    return NULL;
}

typedef void Kernel(const void *, u32 *, u32, u32, const u8 *, Head);
typedef struct {
    int is_done;
} Event;
typedef struct {
    enum { TO_DEVICE, FROM_DEVICE, ON_IT, RUN, RECORD } kind;
    void *host;
    Pointer to, from;
    size_t len;
    Kernel *kernel;
    size_t key_bytes;
    Pointer table;
    u32 count, is_network, threads;
    bool is_by_lanes;
    Head head;
    Event *event;
} Work;
static int all_events;
typedef struct Stream {
    struct Stream *next;
    Work work[4096];
    int count;
} Stream;
// The legacy default stream, and behind it those that were created. Its order with those is not modelled: the host's
// code does not need it.
static Stream streams;

static Stream *named(Stream *stream) { return (u64)stream <= 1 ? &streams : stream; }

static void run_thread(const Work *work)
{
    const u8 *keys = on_device(work->from, work->count * work->key_bytes), *table = on_device(work->table, 64);
    u32 *hops = (u32 *)on_device(work->to, work->count * 4ul);
    work->kernel(keys, hops, work->count, work->is_network, table, work->head);
}

// The threads of a warp, each with a stack of its own, and where it waits.
enum { WARP = 32 };
typedef enum { FRESH, WAITING, DONE } State;
static u8 stacks[WARP][1 << 16];
static ucontext_t starts[WARP];
static jmp_buf waits[WARP], warp_goes_on;
static State states[WARP];
static const Work *work_of_warp;

static void wait_for_warp(void)
{
    u32 thread = thread_id % WARP;
    states[thread] = WAITING;
    if (_setjmp(waits[thread]) == 0)
        _longjmp(warp_goes_on, 1);
}

static void start_in_warp(void)
{
    run_thread(work_of_warp);
    states[thread_id % WARP] = DONE;
    _longjmp(warp_goes_on, 1);
}

// Runs the thread until it waits or ends.
static __attribute__((noinline)) void go_on(u32 thread)
{
    if (_setjmp(warp_goes_on) != 0)
        return;
    if (states[thread] == WAITING)
        _longjmp(waits[thread], 1);
    setcontext(&starts[thread]);
}

// From one wait to the next, the threads run forwards and then backwards: what one of them reads too early differs. All
// of them come to each wait.
static void run_warp(const Work *work, u32 first)
{
    work_of_warp = work;
    for (u32 i = 0; i < WARP; i++) {
        getcontext(&starts[i]);
        starts[i].uc_stack.ss_sp = stacks[i];
        starts[i].uc_stack.ss_size = sizeof stacks[i];
        makecontext(&starts[i], start_in_warp, 0);
        states[i] = FRESH;
    }
    for (u32 order = 0; states[0] != DONE; order ^= WARP - 1) {
        for (u32 i = 0; i < WARP; i++) {
            thread_id = first + (i ^ order);
            go_on(i ^ order);
        }
        for (u32 i = 1; i < WARP; i++)
            CHECK(states[i] == states[0]);
    }
}

static void run(const Work *work)
{
    switch (work->kind) {
    case TO_DEVICE: memcpy(on_device(work->to, work->len), work->host, work->len); break;
    case FROM_DEVICE: memcpy(work->host, on_device(work->from, work->len), work->len); break;
    case ON_IT: memcpy(on_device(work->to, work->len), on_device(work->from, work->len), work->len); break;
    case RECORD: work->event->is_done = 1; break;
    case RUN: {
        if (work->is_by_lanes) {
            for (u32 first = 0; first < work->threads; first += WARP)
                run_warp(work, first);
        } else {
            for (thread_id = 0; thread_id < work->threads; thread_id++)
                run_thread(work);
        }
    }
    }
}

static Result finish(Stream *stream)
{
    for (int i = 0; i < stream->count; i++)
        run(&stream->work[i]);
    stream->count = 0;
    return has_failed ? FAULT : OK;
}

static Result enqueue(Stream *stream, Work work)
{
    ENTER;
    stream = named(stream);
    CHECK(stream->count < 4096);
    if (has_failed)
        LEAVE(FAULT);
    stream->work[stream->count++] = work;
    LEAVE(OK);
}

// The calls. Names and types are the driver's.
#define CALL __attribute__((visibility("default"))) Result

CALL cuInit(u32 flags) { return flags; }
CALL cuDriverGetVersion(int *version) { *version = 12040; return OK; }
CALL cuDeviceGetCount(int *count) { *count = 1; return OK; }
CALL cuDeviceGet(int *device, int number) { *device = number; return number ? NO_DEVICE : OK; }
CALL cuDeviceGetName(char *name, int len, int device) { snprintf(name, len, "CPU %d", device); return OK; }
CALL cuGetErrorString(Result error, const char **text) { *text = error == FAULT ? "a fault" : "an error"; return OK; }
CALL cuDevicePrimaryCtxRetain(void **context, int device) { *context = &all_memory; return device; }

CALL cuCtxPushCurrent_v2(void *context) { CHECK(context == &all_memory); contexts++; return OK; }
CALL cuCtxPopCurrent_v2(void **context) { CHECK(contexts-- > 0); *context = &all_memory; return OK; }

CALL cuModuleLoadData(const char **module, const char *ptx)
{
    ENTER;
    CHECK(strstr(ptx, "\n.version ") && strstr(ptx, ".target sm_"));
    *module = ptx;
    LEAVE(OK);
}

CALL cuModuleGetFunction(Kernel **kernel, const char *ptx, const char *name)
{
    char entry[128];
    Dl_info library;
    ENTER;
    snprintf(entry, sizeof entry, ".visible .entry %s(", name);
    if (!strstr(ptx, entry))
        LEAVE(NOT_FOUND);
    dladdr(&all_memory, &library);
    *kernel = (Kernel *)dlsym(dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD), name);
    LEAVE(*kernel ? OK : NOT_FOUND);
}

CALL cuStreamCreate(Stream **stream, u32 flags)
{
    ENTER;
    CHECK(flags == 1); // not ordered with the others
    if (has_failed)
        LEAVE(FAULT);
    *stream = calloc(1, sizeof **stream);
    (*stream)->next = streams.next;
    streams.next = *stream;
    LEAVE(OK);
}

CALL cuStreamSynchronize(Stream *stream) { ENTER; LEAVE(finish(named(stream))); }

CALL cuStreamDestroy_v2(Stream *stream)
{
    ENTER;
    CHECK(stream->count == 0);
    for (Stream **at = &streams.next; *at; at = &(*at)->next) {
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    }
    free(stream);
    LEAVE(OK);
}

CALL cuEventCreate(Event **event, u32 flags)
{
    ENTER;
    CHECK(flags == 0);
    *event = calloc(1, sizeof **event);
    all_events++;
    LEAVE(OK);
}

CALL cuEventDestroy_v2(Event *event) { ENTER; free(event); all_events--; LEAVE(OK); }

CALL cuEventRecord(Event *event, Stream *stream)
{
    event->is_done = 0;
    return enqueue(stream, (Work){.kind = RECORD, .event = event});
}

// The first time an event is asked for, it has not come; its stream then works.
static Result reach(Event *event)
{
    for (Stream *stream = &streams; stream; stream = stream->next) {
        for (int i = 0; i < stream->count; i++) {
            if (stream->work[i].kind == RECORD && stream->work[i].event == event)
                return finish(stream);
        }
    }
    return has_failed ? FAULT : OK;
}

CALL cuEventQuery(Event *event)
{
    ENTER;
    int was_done = event->is_done;
    Result result = reach(event);
    LEAVE(result ? result : was_done ? OK : NOT_READY);
}

CALL cuEventSynchronize(Event *event) { ENTER; LEAVE(reach(event)); }

CALL cuEventElapsedTime(float *milliseconds, Event *start, Event *end)
{
    ENTER;
    CHECK(start->is_done && end->is_done);
    *milliseconds = 0.5f;
    LEAVE(OK);
}

CALL cuMemAlloc_v2(Pointer *at, size_t len)
{
    ENTER;
    CHECK(len > 0);
    if (has_failed)
        LEAVE(FAULT);
    *at = (Pointer)allocate(len) | ON_DEVICE;
    LEAVE(OK);
}

CALL cuMemFree_v2(Pointer at) { ENTER; CHECK(at & ON_DEVICE); LEAVE(release((void *)(at & ~ON_DEVICE))); }
CALL cuMemHostAlloc(void **at, size_t len, u32 flags) { ENTER; CHECK(len > 0 && flags == 0); *at = allocate(len); LEAVE(OK); }
CALL cuMemFreeHost(void *at) { ENTER; LEAVE(release(at)); }

CALL cuMemcpyHtoDAsync_v2(Pointer to, void *from, size_t len, Stream *stream)
{
    return enqueue(stream, (Work){.kind = TO_DEVICE, .to = to, .host = from, .len = len});
}

CALL cuMemcpyDtoHAsync_v2(void *to, Pointer from, size_t len, Stream *stream)
{
    return enqueue(stream, (Work){.kind = FROM_DEVICE, .host = to, .from = from, .len = len});
}

CALL cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t len, Stream *stream)
{
    return enqueue(stream, (Work){.kind = ON_IT, .to = to, .from = from, .len = len});
}

CALL cuLaunchKernel(Kernel *kernel, u32 x, u32 y, u32 z, u32 block_x, u32 block_y, u32 block_z, u32 shared,
                    Stream *stream, void **arguments, void **more)
{
    static int launches;
    const char *fails = getenv("DRIVER_FAILS");
    Dl_info symbol;
    CHECK(y == 1 && z == 1 && block_y == 1 && block_z == 1 && shared == 0 && !more);
    CHECK(dladdr((void *)kernel, &symbol) && symbol.dli_sname);
    const char *name = symbol.dli_sname;
    bool is_v6 = strstr(name, "planb") || strstr(name, "wideleaf") || strstr(name, "bloomfwd6");
    Work work = {.kind = RUN, .kernel = kernel, .key_bytes = is_v6 ? 16 : 4, .threads = x * block_x};
    work.is_by_lanes = strstr(name, "_lanes") != NULL;
    // The driver copies arguments at once.
    work.from = *(Pointer *)arguments[0];
    work.to = *(Pointer *)arguments[1];
    work.count = *(u32 *)arguments[2];
    work.is_network = *(u32 *)arguments[3];
    work.table = *(Pointer *)arguments[4];
    work.head = *(Head *)arguments[5];
    CHECK(block_x == GROUP);
    CHECK(work.threads >= work.count && work.threads < work.count + block_x);
    if (__atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED) == (fails ? atoi(fails) : -1)) {
        // The fault shows when somebody waits.
        Result result = enqueue(stream, work);
        has_failed = true;
        return result;
    }
    return enqueue(stream, work);
}

__attribute__((destructor)) static void nothing_is_left(void)
{
    CHECK(!all_memory && !streams.next && streams.count == 0 && all_events == 0);
}
