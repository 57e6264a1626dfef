/* memory_test.h - failures and counts of sl_alloc, for tests only. */
#ifndef SL_MEMORY_TEST_H
#define SL_MEMORY_TEST_H
#include "base/memory.h"

/* Let the next n calls of sl_alloc succeed and every later one fail; n < 0: all
** succeed (default). Main thread. */
void sl_alloc_fail_after (long n);

/* The number of sl_alloc calls that succeeded so far, and of blocks not freed
** yet: to prove that replay allocates nothing and that nothing leaks. */
size_t sl_alloc_count (void);
size_t sl_alloc_live (void);
#endif
