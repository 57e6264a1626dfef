/* failer.c - preloaded into sinklab by tests: the Nth allocation fails.
**
** SINKLAB_FAIL="N once" lets the Nth allocation fail, "N until" every one from
** the Nth on, until a block of at least a megabyte is freed. They count from
** the script's call of os.getenv "SINKLAB_FAIL_BEGIN", so that the start is
** spared; os.getenv "SINKLAB_FAIL_COUNT" gives the number so far. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The flags of the project hide every name. */
#pragma GCC visibility push(default)

extern void *__libc_malloc (size_t n);
extern void *__libc_calloc (size_t n, size_t size);
extern void *__libc_realloc (void *p, size_t n);
extern void *__libc_memalign (size_t alignment, size_t n);
extern void __libc_free (void *p);

static const size_t LARGE = 1u << 20;
static atomic_long count, nth = -1;
static atomic_int counting, lasts;

/* Whether this allocation is one of those that fail. */
static int fails (void) {
  long now, n = nth;
  if (!counting) return 0;
  now = atomic_fetch_add (&count, 1) + 1;
  if (n < 0 || (lasts ? now < n : now != n)) return 0;
  errno = ENOMEM;
  return 1;
}

void *malloc (size_t n) {
  return fails () ? NULL : __libc_malloc (n);
}

void *calloc (size_t n, size_t size) {
  return fails () ? NULL : __libc_calloc (n, size);
}

void *realloc (void *p, size_t n) {
  return fails () ? NULL : __libc_realloc (p, n);
}

void *aligned_alloc (size_t alignment, size_t n) {
  return fails () ? NULL : __libc_memalign (alignment, n);
}

int posix_memalign (void **out, size_t alignment, size_t n) {
  void *p = fails () ? NULL : __libc_memalign (alignment, n);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}

void free (void *p) {
  if (p && nth >= 0 && lasts && count >= nth && malloc_usable_size (p) >= LARGE)
    nth = -1;
  __libc_free (p);
}

char *getenv (const char *name) {
  static char *(*next) (const char *);
  static char text[32];
  if (!next) *(void **)&next = dlsym (RTLD_NEXT, "getenv");
  if (strcmp (name, "SINKLAB_FAIL_COUNT") == 0) {
    snprintf (text, sizeof text, "%ld", (long)count);
    return text;
  }
  if (strcmp (name, "SINKLAB_FAIL_BEGIN") == 0) {
    const char *asked = next ("SINKLAB_FAIL");
    if (asked) nth = strtol (asked, NULL, 10);
    lasts = asked && strstr (asked, "until");
    counting = 1;
  }
  return next (name);
}
