/* Multiply-adds, reads and copies (kernel/probe.h), each built for the units that a processor may have. */
#include "kernel/probe.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/status.h"
#include "kernel/loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_X86 1
#else
#define HAS_X86 0
#endif

/* A share to each thread: as many blocks as threads. */
static void in_shares(const sw_kernel *kernel, sw_block_fn *share, const void *args)
{
    sw_kernel_run(kernel, share, args, sw_kernel_threads(kernel), 1);
}

/* ---- cores ---- */

typedef struct pinning {
    cpu_set_t allowed;
    size_t first;
} pinning;

static void pin_thread(const void *args, size_t begin, size_t end)
{
    const pinning *p = args;

    for (size_t i = begin; i < end; i++) {
        size_t left = p->first + i;
        for (size_t core = 0; core < CPU_SETSIZE; core++) {
            cpu_set_t one;
            if (!CPU_ISSET(core, &p->allowed) || left-- != 0)
                continue;
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            (void)sched_setaffinity(0, sizeof one, &one);
            break;
        }
    }
}

bool sw_probe_pin(const sw_kernel *kernel, size_t first)
{
    pinning p = {.first = first};

    CPU_ZERO(&p.allowed);
    if (sched_getaffinity(0, sizeof p.allowed, &p.allowed) != 0 ||
        (size_t)CPU_COUNT(&p.allowed) < first + sw_kernel_threads(kernel))
        return false;
    in_shares(kernel, pin_thread, &p);
    return true;
}

/* ---- multiply-adds ---- */

/* Sums that do not wait for each other, enough to fill the pipes. */
enum { CHAINS = 12, STEPS = 200000 };

/* What is computed counts as used. */
static void keep(float value)
{
    __asm__ volatile("" : : "m"(value));
}

#if HAS_X86
__attribute__((target("avx512f"))) static void peak_512(void)
{
    __m512 sums[CHAINS];
    __m512 a = _mm512_set1_ps(0.999F);
    __m512 b = _mm512_set1_ps(0.001F);

    for (size_t i = 0; i < CHAINS; i++)
        sums[i] = _mm512_set1_ps((float)i);
    for (size_t step = 0; step < STEPS; step++) {
#pragma GCC unroll 16
        for (size_t i = 0; i < CHAINS; i++)
            sums[i] = _mm512_fmadd_ps(sums[i], a, b);
    }
    for (size_t i = 1; i < CHAINS; i++)
        sums[0] = _mm512_add_ps(sums[0], sums[i]);
    keep(_mm512_cvtss_f32(sums[0]));
}

__attribute__((target("avx2,fma"))) static void peak_256(void)
{
    __m256 sums[CHAINS];
    __m256 a = _mm256_set1_ps(0.999F);
    __m256 b = _mm256_set1_ps(0.001F);

    for (size_t i = 0; i < CHAINS; i++)
        sums[i] = _mm256_set1_ps((float)i);
    for (size_t step = 0; step < STEPS; step++) {
#pragma GCC unroll 16
        for (size_t i = 0; i < CHAINS; i++)
            sums[i] = _mm256_fmadd_ps(sums[i], a, b);
    }
    for (size_t i = 1; i < CHAINS; i++)
        sums[0] = _mm256_add_ps(sums[0], sums[i]);
    keep(_mm256_cvtss_f32(sums[0]));
}

__attribute__((target("avx2"))) static void read_256(const char *memory, size_t n_bytes)
{
    __m256i sums[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                       _mm256_setzero_si256()};

    for (size_t i = 0; n_bytes - i >= sizeof sums; i += sizeof sums) {
#pragma GCC unroll 4
        for (size_t u = 0; u < 4; u++) {
            const __m256i *at = (const __m256i *)(const void *)(memory + i + u * sizeof *sums);
            sums[u] = _mm256_xor_si256(sums[u], _mm256_loadu_si256(at));
        }
    }
    sums[0] = _mm256_xor_si256(_mm256_xor_si256(sums[0], sums[1]), _mm256_xor_si256(sums[2], sums[3]));
    keep((float)_mm256_extract_epi64(sums[0], 0));
}
#endif

static void peak_plain(void)
{
    typedef float lanes __attribute__((vector_size(16)));
    lanes sums[CHAINS];
    const lanes a = {0.999F, 0.999F, 0.999F, 0.999F};
    const lanes b = {0.001F, 0.001F, 0.001F, 0.001F};

    for (size_t i = 0; i < CHAINS; i++)
        sums[i] = a * (float)i;
    for (size_t step = 0; step < STEPS; step++) {
#pragma GCC unroll 16
        for (size_t i = 0; i < CHAINS; i++)
            sums[i] = sums[i] * a + b;
    }
    for (size_t i = 1; i < CHAINS; i++)
        sums[0] += sums[i];
    keep(sums[0][0]);
}

static void read_plain(const char *memory, size_t n_bytes)
{
    uint64_t sums[8] = {0};

    for (size_t i = 0; n_bytes - i >= sizeof sums; i += sizeof sums) {
        uint64_t words[8];
        memcpy(words, memory + i, sizeof words);
#pragma GCC unroll 8
        for (size_t u = 0; u < 8; u++)
            sums[u] ^= words[u];
    }
    for (size_t u = 1; u < 8; u++)
        sums[0] ^= sums[u];
    keep((float)sums[0]);
}

/* The widest unit comes first. */
static const struct unit {
    size_t lanes;
    void (*peak)(void);
    void (*read)(const char *memory, size_t n_bytes);
} units[] = {
#if HAS_X86
    {16, peak_512,   read_256  },
    {8,  peak_256,   read_256  },
#endif
    {4,  peak_plain, read_plain},
};

/* By what was found out when the program began: to ask the processor takes longer than a small read. */
static const struct unit *widest(void)
{
#if HAS_X86
    if (__builtin_cpu_supports("avx512f"))
        return &units[0];
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &units[1];
#endif
    return &units[SW_COUNT(units) - 1];
}

static void peak_share(const void *args, size_t begin, size_t end)
{
    const struct unit *unit = args;

    for (size_t i = begin; i < end; i++)
        unit->peak();
}

void sw_probe_peak(const sw_kernel *kernel)
{
    in_shares(kernel, peak_share, widest());
}

double sw_probe_peak_flops(const sw_kernel *kernel)
{
    return 2.0 * CHAINS * STEPS * (double)widest()->lanes * sw_kernel_threads(kernel);
}

/* ---- memory ---- */

typedef struct stretch_args {
    const struct unit *unit;
    const char *from;
    char *to;
    size_t n_bytes; /* of a share */
} stretch_args;

static void read_share(const void *args, size_t begin, size_t end)
{
    const stretch_args *a = args;
    a->unit->read(a->from + begin * a->n_bytes, (end - begin) * a->n_bytes);
}

static void copy_share(const void *args, size_t begin, size_t end)
{
    const stretch_args *a = args;
    memcpy(a->to + begin * a->n_bytes, a->from + begin * a->n_bytes, (end - begin) * a->n_bytes);
}

void sw_probe_read(const sw_kernel *kernel, const void *memory, size_t n_bytes)
{
    stretch_args args = {.unit = widest(), .from = memory, .n_bytes = n_bytes / sw_kernel_threads(kernel)};
    in_shares(kernel, read_share, &args);
}

void sw_probe_copy(const sw_kernel *kernel, void *to, const void *from, size_t n_bytes)
{
    stretch_args args = {.from = from, .to = to, .n_bytes = n_bytes / sw_kernel_threads(kernel)};
    in_shares(kernel, copy_share, &args);
}

/* ---- lines of memory between cores ---- */

enum { TURNS = 20000 };

typedef struct line_args {
    _Alignas(64) atomic_uint turn; /* whose it is: even, the first thread's */
    atomic_bool is_over;           /* somebody has waited too long */
    double seconds;
} line_args;

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A thread that does not run leaves the other one waiting: not for ever. */
static bool wait_for_turn(line_args *a, unsigned turn)
{
    const double most = 0.1;
    double begin = seconds_now();

    for (unsigned i = 1; atomic_load_explicit(&a->turn, memory_order_acquire) != turn; i++) {
        if (i % 4096 == 0 && seconds_now() - begin > most)
            atomic_store(&a->is_over, true);
        if (i % 4096 == 0 && atomic_load(&a->is_over))
            return false;
    }
    return true;
}

static void pass_line(const void *args, size_t begin, size_t end)
{
    line_args *a = *(line_args *const *)args;

    for (size_t i = begin; i < end && i < 2; i++) {
        double start = 0;
        for (unsigned turn = (unsigned)i; turn < TURNS; turn += 2) {
            if (!wait_for_turn(a, turn))
                return;
            if (turn < 2)
                start = seconds_now();
            atomic_store_explicit(&a->turn, turn + 1, memory_order_release);
        }
        if (i == 1)
            a->seconds = seconds_now() - start;
    }
}

double sw_probe_line(const sw_kernel *kernel)
{
    line_args args = {.seconds = 0};
    line_args *shared = &args;

    if (sw_kernel_threads(kernel) < 2)
        return 0;
    in_shares(kernel, pass_line, &shared);
    return atomic_load(&args.is_over) ? 0 : args.seconds / TURNS;
}
