/* machine.c - pinning, the peak of multiply-adds, OpenBLAS. */
#include "bench/machine.h"
#include "base/clock.h"
#include "base/isa.h"
#include "base/memory.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#ifdef __linux__
#include <sched.h>
#endif

SL_VARIANTS (const bench_peak, bench_peak);

#ifdef __linux__
typedef struct pin_job {
  const cpu_set_t *allowed;
  int workers;
  atomic_int here;
} pin_job;

/* Waits for the others: a worker that was done could take their task. */
static void pin_one (void *context, int index, int worker) {
  pin_job *job = context;
  const cpu_set_t *allowed = job->allowed;
  cpu_set_t one;
  int seen = 0;
  (void)index;
  atomic_fetch_add (&job->here, 1);
  while (atomic_load (&job->here) < job->workers) sched_yield ();
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET (cpu, allowed) && seen++ == worker) {
      CPU_ZERO (&one);
      CPU_SET (cpu, &one);
      sched_setaffinity (0, sizeof one, &one);
      return;
    }
}

int bench_pin (sl_pool *pool) {
  static cpu_set_t allowed; /* before anything was pinned */
  static int known;
  pin_job job;
  if (!known && sched_getaffinity (0, sizeof allowed, &allowed) != 0) return -1;
  known = 1;
  job = (pin_job){ .allowed = &allowed, .workers = sl_pool_workers (pool) };
  sl_pool_run (pool, job.workers, pin_one, &job);
  return 0;
}
#else
int bench_pin (sl_pool *pool) {
  (void)pool;
  return -1;
}
#endif

typedef struct peak_job {
  double seconds;
  double *rate; /* per worker */
} peak_job;

static void peak_of (void *context, int index, int worker) {
  const peak_job *job = context;
  const bench_peak *peak = SL_PICK (bench_peak, 0);
  double done = 0, sink = 0, took;
  const double start = sl_now ();
  (void)worker;
  do {
    done += peak->multiply_add (100, &sink);
    took = sl_now () - start;
  } while (took < job->seconds);
  job->rate[index] = sink == sink ? done / took : 0;
}

double bench_peak_rate (sl_pool *pool, double seconds) {
  const int n = sl_pool_workers (pool);
  double rate[64] = { 0 }, sum = 0;
  peak_job job = { seconds, rate };
  if (n > 64) return 0;
  sl_pool_run (pool, n, peak_of, &job);
  for (int i = 0; i < n; i++) sum += rate[i];
  return sum;
}

/* What of OpenBLAS is used, as its cblas.h declares it. */
typedef void (*sgemm_function) (int order, int trans_a, int trans_b, int m,
                                int n, int k, float alpha, const float *a,
                                int lda, const float *b, int ldb, float beta,
                                float *c, int ldc);
typedef struct openblas {
  sgemm_function sgemm;
  char *(*core_name) (void);
  void (*set_threads) (int n);
} openblas;

/* A function of the library; ISO C has no cast from data to code. */
static int find (void *library, const char *name, void *function) {
  void *symbol = dlsym (library, name);
  memcpy (function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static int load (openblas *blas) {
  static const char *const names[] = { "libopenblas.so.0", "libopenblas.so",
                                       "libopenblas.dylib" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *library = dlopen (names[i], RTLD_NOW | RTLD_LOCAL);
    if (library && find (library, "cblas_sgemm", &blas->sgemm) &&
        find (library, "openblas_get_corename", &blas->core_name) &&
        find (library, "openblas_set_num_threads", &blas->set_threads))
      return 0;
  }
  return -1;
}

int bench_sgemm (int n, int threads, double seconds, double *rate,
                 char kernel[64], sl_error *e) {
  const int row_major = 101, plain = 111;
  const size_t count = (size_t)n * (size_t)n;
  openblas blas = { 0 };
  double best = 0, start;
  float *a;
  if (load (&blas) < 0) return sl_fail (e, "OpenBLAS is not installed");
  a = sl_alloc (3 * count, sizeof *a);
  if (!a) return sl_fail (e, "no memory for matrices of %d x %d", n, n);
  for (size_t i = 0; i < 2 * count; i++) a[i] = (float)(i % 7) - 3;
  blas.set_threads (threads);
  start = sl_now ();
  do {
    const double before = sl_now ();
    double r;
    blas.sgemm (row_major, plain, plain, n, n, n, 1, a, n, a + count, n, 0,
                a + 2 * count, n);
    r = 2.0 * n * n * n / (sl_now () - before);
    if (r > best) best = r;
  } while (sl_now () - start < seconds);
  *rate = best;
  snprintf (kernel, 64, "%s", blas.core_name ());
  sl_free (a);
  return 0;
}
