/* check_memory.c - sizes, alignment, zeros, counters and the fail-after
** knob. */
#include "base/memory_test.h"
#include "support/suite.h"
#include <stdint.h>
#include <string.h>

START_TEST (products_that_do_not_fit_are_refused) {
  size_t n = 7;
  ck_assert_int_eq (sl_size_mul (6, 7, &n), 0);
  ck_assert_uint_eq (n, 42);
  ck_assert_int_eq (sl_size_mul (SIZE_MAX, 1, &n), 0);
  ck_assert_uint_eq (n, SIZE_MAX);
  ck_assert_int_eq (sl_size_mul (SIZE_MAX / 2 + 1, 2, &n), -1);
  ck_assert_int_eq (sl_size_mul (0, SIZE_MAX, &n), 0);
  ck_assert_uint_eq (n, 0);
  ck_assert_ptr_null (sl_alloc (SIZE_MAX, SIZE_MAX));
  ck_assert_ptr_null (sl_alloc (SIZE_MAX, 1));
  ck_assert_ptr_null (sl_alloc ((size_t)1 << 63, 2));
}
END_TEST

static void check_block (size_t bytes, size_t alignment) {
  unsigned char *p = sl_alloc (bytes, 1);
  ck_assert_ptr_nonnull (p);
  ck_assert_msg ((uintptr_t)p % alignment == 0,
                 "%zu bytes at %p, expected a multiple of %zu", bytes,
                 (void *)p, alignment);
  for (size_t i = 0; i < bytes; i++)
    if (p[i]) ck_abort_msg ("%zu bytes: byte %zu is %d", bytes, i, p[i]);
  memset (p, 0xa5, bytes); /* the next block may get this memory */
  sl_free (p);
}

START_TEST (blocks_are_zero_and_aligned) {
  const size_t big = (size_t)2 << 20;
  for (size_t bytes = 1; bytes < 700; bytes += 13) check_block (bytes, 64);
  check_block (big - 1, 64);
  check_block (big, big);
  check_block (3 * big + 5, big);
}
END_TEST

START_TEST (empty_blocks_are_blocks) {
  void *a = sl_alloc (0, 8), *b = sl_alloc (8, 0);
  ck_assert_ptr_nonnull (a);
  ck_assert_ptr_nonnull (b);
  ck_assert_ptr_ne (a, b);
  sl_free (a);
  sl_free (b);
  sl_free (NULL);
}
END_TEST

START_TEST (counters_count) {
  size_t made = sl_alloc_count (), live = sl_alloc_live ();
  void *a = sl_alloc (3, 4), *b = sl_alloc (1, 1);
  ck_assert_uint_eq (sl_alloc_count (), made + 2);
  ck_assert_uint_eq (sl_alloc_live (), live + 2);
  sl_free (a);
  sl_free (NULL);
  ck_assert_uint_eq (sl_alloc_live (), live + 1);
  sl_free (b);
  ck_assert_uint_eq (sl_alloc_count (), made + 2);
  ck_assert_uint_eq (sl_alloc_live (), live);
}
END_TEST

START_TEST (the_knob_fails_after_n) {
  void *p[3];
  size_t made = sl_alloc_count ();
  sl_alloc_fail_after (2);
  for (int i = 0; i < 3; i++) p[i] = sl_alloc (1, 8);
  ck_assert_ptr_nonnull (p[0]);
  ck_assert_ptr_nonnull (p[1]);
  ck_assert_ptr_null (p[2]);
  ck_assert_ptr_null (sl_alloc (1, 8));
  ck_assert_uint_eq (sl_alloc_count (), made + 2);
  sl_alloc_fail_after (-1);
  p[2] = sl_alloc (1, 8);
  ck_assert_ptr_nonnull (p[2]);
  for (int i = 0; i < 3; i++) sl_free (p[i]);
}
END_TEST

SUITE_MAIN ("memory", products_that_do_not_fit_are_refused,
            blocks_are_zero_and_aligned, empty_blocks_are_blocks,
            counters_count, the_knob_fails_after_n)
