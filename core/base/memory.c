/* memory.c - all memory of core: aligned, zeroed, counted. */
#include "base/memory_test.h"
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define LINE ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)

static atomic_size_t allocated, freed;
static atomic_long allowed = -1; /* calls that may still succeed; < 0: all */

int sl_size_mul (size_t a, size_t b, size_t *out) {
  return __builtin_mul_overflow (a, b, out) ? -1 : 0;
}

/* Spend one of the calls that sl_alloc_fail_after allows; 0 if none is left. */
static int may_succeed (void) {
  long left = atomic_load (&allowed);
  while (left > 0)
    if (atomic_compare_exchange_weak (&allowed, &left, left - 1)) return 1;
  return left < 0;
}

void *sl_alloc (size_t count, size_t size) {
  size_t bytes;
  void *p;
  if (sl_size_mul (count, size, &bytes) || bytes > PTRDIFF_MAX) return NULL;
  if (bytes == 0) bytes = 1;
  if (!may_succeed ()) return NULL;
  if (posix_memalign (&p, bytes < HUGE_PAGE ? LINE : HUGE_PAGE, bytes))
    return NULL;
#ifdef MADV_HUGEPAGE
  /* Advice only: a kernel without huge pages gives ordinary ones. */
  if (bytes >= HUGE_PAGE)
    (void)madvise (p, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
  atomic_fetch_add (&allocated, 1);
  return memset (p, 0, bytes);
}

char *sl_alloc_text (const char *text, size_t n) {
  char *copy = n < SIZE_MAX ? sl_alloc (n + 1, 1) : NULL;
  if (copy != NULL && n > 0) memcpy (copy, text, n);
  return copy;
}

void sl_free (void *p) {
  if (!p) return;
  atomic_fetch_add (&freed, 1);
  free (p);
}

void sl_alloc_fail_after (long n) {
  atomic_store (&allowed, n);
}

size_t sl_alloc_count (void) {
  return atomic_load (&allocated);
}

size_t sl_alloc_live (void) {
  size_t n = atomic_load (&freed); /* read first, so that it is not larger */
  return atomic_load (&allocated) - n;
}
