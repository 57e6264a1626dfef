/* check_npz.c - .npz files: written and read back, numpy's, and damaged
** ones. */
#include "base/file.h"
#include "base/memory_test.h"
#include "support/files.h"
#include "support/suite.h"
#include "tensor/npz.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[OWN_PATH];
static sl_error error;
static char straight[] = "straight", turned[] = "turned", nameless[] = "";

/* Two tensors, one of them a transposed view. */
static void make (sl_named *item) {
  ptrdiff_t dim[] = { 2, 3 };
  sl_tensor *t = sl_tensor_new (SL_F64, 2, dim, &error);
  for (int i = 0; i < 6; i++) ((double *)t->storage->data)[i] = i + 0.5;
  item[0] = (sl_named){ straight, t };
  item[1].name = turned;
  item[1].tensor = sl_tensor_transpose (t, 0, 1, &error);
  ck_assert_ptr_nonnull (item[1].tensor);
}

START_TEST (comes_back) {
  own_file (path);
  sl_named item[2];
  sl_tensors s = { .n = 2, .item = item }, got;
  size_t live;
  make (item);
  live = sl_alloc_live ();
  ck_assert_msg (sl_npz_write (path, &s, &error) == 0, "%s", error.text);
  ck_assert_msg (sl_npz_read (path, &got, &error) == 0, "%s", error.text);
  ck_assert_uint_eq (got.n, 2);
  for (int i = 0; i < 2; i++) {
    const double *x = got.item[i].tensor->storage->data;
    ck_assert_str_eq (got.item[i].name, item[i].name);
    ck_assert_int_eq (got.item[i].tensor->dim[0], i == 0 ? 2 : 3);
    for (int j = 0; j < 6; j++)
      ck_assert_double_eq (x[j], (i == 0 ? j : j / 2 + 3 * (j % 2)) + 0.5);
  }
  sl_tensors_free (&got);
  ck_assert_uint_eq (sl_alloc_live (), live);
  sl_tensor_release (item[0].tensor);
  sl_tensor_release (item[1].tensor);
  own_remove (path);
}
END_TEST

START_TEST (refuses_names) {
  own_file (path);
  sl_named item[2];
  sl_tensors s = { .n = 2, .item = item };
  make (item);
  item[1].name = item[0].name;
  ck_assert_int_eq (sl_npz_write (path, &s, &error), -1);
  ck_assert_ptr_nonnull (
      strstr (error.text, "the name 'straight' comes twice"));
  item[1].name = nameless;
  ck_assert_int_eq (sl_npz_write (path, &s, &error), -1);
  ck_assert_ptr_nonnull (strstr (error.text, "a name is empty"));
  sl_tensor_release (item[0].tensor);
  sl_tensor_release (item[1].tensor);
  own_remove (path);
}
END_TEST

/* Every prefix of a file, and every byte of it flipped: a sentence or the
** tensors, no crash, nothing left in memory. */
/* What is read in spite of damage has all numbers of both tensors. */
static void same_numbers (const sl_tensors *got, const sl_named *item) {
  double x[6], y[6];
  ck_assert_uint_eq (got->n + got->n_meta, 2);
  if (got->n_meta > 0) return; /* a name does not end in .npy any more */
  for (size_t k = 0; k < 2; k++) {
    ck_assert_int_eq (got->item[k].tensor->dim[0], item[k].tensor->dim[0]);
    ck_assert_int_eq (got->item[k].tensor->dim[1], item[k].tensor->dim[1]);
    sl_tensor_to_doubles (got->item[k].tensor, x);
    sl_tensor_to_doubles (item[k].tensor, y);
    ck_assert_mem_eq (x, y, sizeof x);
  }
}

START_TEST (survives_damage) {
  own_file (path);
  sl_named item[2];
  sl_tensors s = { .n = 2, .item = item }, got;
  size_t n, live, refused = 0;
  char *whole, *copy;
  make (item);
  ck_assert_int_eq (sl_npz_write (path, &s, &error), 0);
  whole = sl_file_read (path, 0, &n, &error);
  copy = malloc (n);
  live = sl_alloc_live ();
  for (size_t i = 0; i < 2 * n; i++) {
    size_t size = i < n ? i : n;
    memcpy (copy, whole, n);
    if (i >= n) copy[i - n] ^= 0x55;
    ck_assert_int_eq (sl_file_write (path, copy, size, &error), 0);
    if (sl_npz_read (path, &got, &error) == 0) {
      same_numbers (&got, item);
      sl_tensors_free (&got);
    } else
      refused++;
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
  /* What is not refused: flags, dates and the like, which are not data. */
  ck_assert_uint_gt (refused, n + n / 2);
  free (copy);
  sl_free (whole);
  sl_tensor_release (item[0].tensor);
  sl_tensor_release (item[1].tensor);
  own_remove (path);
}
END_TEST

START_TEST (reads_what_numpy_compressed) {
  sl_tensors got;
  const double *x;
  ck_assert_msg (
      sl_npz_read (SINKLAB_TEST_SOURCE "/golden/numpy.npz", &got, &error) == 0,
      "%s", error.text);
  ck_assert_uint_eq (got.n, 3);
  ck_assert_str_eq (got.item[0].name, "x");
  x = got.item[0].tensor->storage->data;
  for (int i = 0; i < 6; i++) ck_assert_double_eq (x[i], i / 4.0);
  ck_assert_str_eq (got.item[1].name, "empty");
  ck_assert_str_eq (got.item[2].name, "zeros");
  ck_assert_int_eq (got.item[2].tensor->dim[1], 500);
  sl_tensors_free (&got);
}
END_TEST

START_TEST (says_what_is_no_archive) {
  own_file (path);
  sl_tensors got;
  ck_assert_int_eq (sl_npz_read (path, &got, &error), -1);
  ck_assert_ptr_nonnull (strstr (error.text, "not a .npz file"));
  ck_assert_int_eq (sl_npz_read ("/tmp", &got, &error), -1);
  ck_assert_ptr_nonnull (strstr (error.text, "it is a folder"));
  ck_assert_int_eq (sl_npz_read ("/tmp/no/such.npz", &got, &error), -1);
  ck_assert_ptr_nonnull (strstr (error.text, "No such file"));
  ck_assert_int_eq (sl_npz_write ("/tmp", &(sl_tensors){ 0 }, &error), -1);
  ck_assert_ptr_nonnull (strstr (error.text, "it is a folder"));
  own_remove (path);
}
END_TEST

START_TEST (refuses_pipes_and_devices_at_once) {
  own_file (path);
  sl_tensors got;
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq (unlink (path), 0);
    ck_assert_int_eq (i ? symlink ("/dev/zero", path) : mkfifo (path, 0600), 0);
    ck_assert_int_eq (sl_npz_read (path, &got, &error), -1);
    says_of_file (error.text, path, "cannot read: it is not a file");
  }
  own_remove (path);
}
END_TEST

SUITE_MAIN ("npz", comes_back, refuses_names, survives_damage,
            reads_what_numpy_compressed, says_what_is_no_archive,
            refuses_pipes_and_devices_at_once)
