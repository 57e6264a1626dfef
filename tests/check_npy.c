/* check_npy.c - .npy files read and written, and those that are refused. */
#include "base/file.h"
#include "base/memory_test.h"
#include "support/files.h"
#include "support/golden.h"
#include "support/suite.h"
#include "tensor/npy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[OWN_PATH];
static sl_error error;

/* A file with this header dict (format 'major') and n bytes of data. */
static void put (int major, const char *dict, size_t n, const void *data) {
  char file[4096];
  size_t at = major == 1 ? 10 : 12, length = strlen (dict);
  memcpy (file, "\x93NUMPY", 6);
  file[6] = (char)major;
  file[7] = 0;
  memset (file + 8, 0, 4);
  file[8] = (char)(length & 255);
  file[9] = (char)(length >> 8);
  memcpy (file + at, dict, length);
  if (n > 0) memcpy (file + at + length, data, n);
  ck_assert_int_eq (sl_file_write (path, file, at + length + n, &error), 0);
}

static sl_tensor *get (sl_dtype dtype, const char *shape) {
  char text[SL_SHAPE_TEXT];
  sl_tensor *t = sl_npy_read (path, &error);
  ck_assert_msg (t != NULL, "%s", error.text);
  ck_assert_int_eq (t->storage->dtype, dtype);
  ck_assert_str_eq (sl_shape_text (t->ndim, t->dim, text, sizeof text), shape);
  return t;
}

/* The sentence after "PATH: ". */
static void refused (const char *why) {
  size_t live = sl_alloc_live ();
  ck_assert_ptr_null (sl_npy_read (path, &error));
  says_of_file (error.text, path, why);
  ck_assert_uint_eq (sl_alloc_live (), live);
}

START_TEST (writes_what_numpy_writes) {
  static const float want[] = { 0, 3, 1, 4, 2, 5 };
  sl_tensor *t, *turned;
  size_t n;
  char *file;
  own_file (path);
  t = sl_tensor_new (SL_F32, 2, (ptrdiff_t[]){ 2, 3 }, &error);
  for (int i = 0; i < 6; i++) ((float *)t->storage->data)[i] = (float)i;
  turned = sl_tensor_transpose (t, 0, 1, &error);
  ck_assert_msg (sl_npy_write (path, turned, &error) == 0, "%s", error.text);
  file = sl_file_read (path, 0, &n, &error);
  ck_assert_uint_eq (n, 128 + sizeof want);
  ck_assert_mem_eq (file, "\x93NUMPY\x01\x00\x76\x00", 10);
  ck_assert_msg (
      strncmp (file + 10,
               "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), } ",
               60) == 0,
      "%.60s", file + 10);
  ck_assert_int_eq (file[127], '\n');
  ck_assert_mem_eq (file + 128, want, sizeof want);
  sl_free (file);
  sl_tensor_release (turned);
  sl_tensor_release (t);
  own_remove (path);
}
END_TEST

START_TEST (round_trips) {
  static const struct {
    int ndim;
    ptrdiff_t dim[SL_MAX_DIMS];
    const char *shape;
  } shapes[] = { { 0, { 0 }, "()" },
                 { 1, { 5 }, "(5)" },
                 { 2, { 0, 3 }, "(0, 3)" },
                 { 6, { 1, 2, 1, 2, 3, 1 }, "(1, 2, 1, 2, 3, 1)" } };
  own_file (path);
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int d = SL_F32; d <= SL_F64; d++) {
      sl_tensor *t = sl_tensor_new ((sl_dtype)d, shapes[s].ndim, shapes[s].dim,
                                    &error),
                *r;
      sl_view v = sl_tensor_view (t);
      size_t count = sl_view_count (&v);
      for (size_t i = 0; i < count; i++)
        sl_view_set (&v, (sl_dtype)d, i, 1.0 / (double)(i + 3));
      ck_assert_int_eq (sl_npy_write (path, t, &error), 0);
      r = get ((sl_dtype)d, shapes[s].shape);
      ck_assert_mem_eq (r->storage->data, t->storage->data,
                        count * sl_dtype_size ((sl_dtype)d));
      sl_tensor_release (r);
      sl_tensor_release (t);
    }
  own_remove (path);
}
END_TEST

START_TEST (reads_numpys_files) {
  static const char *const names[] = { "piece/layernorm/x.npy",
                                       "piece/cross_entropy/targets.npy",
                                       "piece/cross_entropy/loss.npy" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    golden g = golden_load (names[i]);
    char whole[512];
    sl_tensor *t;
    double *x;
    snprintf (whole, sizeof whole, SINKLAB_TEST_SOURCE "/golden/%s", names[i]);
    t = sl_npy_read (whole, &error);
    ck_assert_msg (t != NULL, "%s", error.text);
    ck_assert_int_eq (t->ndim, g.ndim);
    ck_assert_uint_eq (t->storage->count, g.count);
    x = malloc (g.count * sizeof *x);
    sl_tensor_to_doubles (t, x);
    for (size_t k = 0; k < g.count; k++)
      CLOSE (x[k], g.x[k], 0, 0, "%s element %zu", names[i], k);
    free (x);
    sl_tensor_release (t);
    golden_free (&g);
  }
}
END_TEST

START_TEST (reads_every_kind_and_order) {
  const int32_t i4[] = { -5, 7 };
  const int64_t i8[] = { -(INT64_C (1) << 53) + 1, 12 };
  const unsigned char u1[] = { 0, 255 };
  const double f8[] = { 0, 1, 2, 3, 4, 5 };
  const struct {
    const char *dict;
    size_t n;
    const void *data;
    double first, second;
  } cases[] = {
    { "{'descr':'<i4','fortran_order':False,'shape':(2,)}", 8, i4, -5, 7 },
    { "{\"shape\": (2,), \"fortran_order\": False, \"descr\": \"<i8\"}\n", 16,
      i8, -9007199254740991.0, 12 },
    { "{ 'descr' : '|u1' , 'fortran_order' : True , 'shape' : ( 2 , ) , } ", 2,
      u1, 0, 255 },
    { "{'descr':'|b1','fortran_order':False,'shape':(2,)}", 2, u1, 0, 255 },
  };
  double x[6];
  own_file (path);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sl_tensor *t;
    put (1 + (int)i % 3, cases[i].dict, cases[i].n, cases[i].data);
    t = get (SL_F64, "(2)");
    sl_tensor_to_doubles (t, x);
    CLOSE (x[0], cases[i].first, 0, 0, "case %zu", i);
    CLOSE (x[1], cases[i].second, 0, 0, "case %zu", i);
    sl_tensor_release (t);
  }
  put (2, "{'descr':'<f8','fortran_order':True,'shape':(2,3)}", 48, f8);
  sl_tensor *t = get (SL_F64, "(2, 3)");
  sl_tensor_to_doubles (t, x);
  for (int i = 0; i < 6; i++)
    CLOSE (x[i], i % 3 * 2 + i / 3, 0, 0, "Fortran order %d", i);
  sl_tensor_release (t);
  own_remove (path);
}
END_TEST

#define READ_TYPES "read are f2, f4, f8, i1 to i8, u1 to u8 and b1"

START_TEST (hostile_files_are_refused) {
  static const char strange[] = "has a header that is not numpy's";
  const int64_t big = INT64_C (1) << 53;
  static const struct {
    const char *dict, *why;
  } cases[] = {
    { "", strange },
    { "{", strange },
    { "{}", strange },
    { "{'descr':'<f4','fortran_order':False}", strange },
    { "{'descr':'<f4','descr':'<f4','fortran_order':False,'shape':()}",
      strange },
    { "{'descr':'<f4','fortran_order':False,'shape':(),'more':1}", strange },
    { "{'descr':'<f4','fortran_order':False,'shape':()} x", strange },
    { "{'descr':'<f4','fortran_order':None,'shape':()}", strange },
    { "{'descr':'<f4','fortran_order':False,'shape':(3)}", strange },
    { "{'descr':'<f4','fortran_order':False,'shape':(-1,)}", strange },
    { "{'descr':'<f4','fortran_order':False,'shape':(1 2)}", strange },
    { "{'descr':'<f4','fortran_order':False,'shape':"
      "(99999999999999999999,)}",
      strange },
    { "{'descr':'<f4','fortran_order':False,'shape':(", strange },
    { "{'descr':'<f4", strange },
    { "{'descr':[('a','<f4')],'fortran_order':False,'shape':()}",
      "has elements of a structured type; read are single numbers" },
    { "{'descr':'0123456789012345678901234567890123456789'}", strange },
    { "{'descr':'<c8','fortran_order':False,'shape':()}",
      "has elements of type '<c8'; " READ_TYPES },
    { "{'descr':'|O','fortran_order':False,'shape':()}",
      "has elements of type '|O'; " READ_TYPES },
    { "{'descr':'|f4','fortran_order':False,'shape':()}",
      "has elements of type '|f4'; " READ_TYPES },
    { "{'descr':'','fortran_order':False,'shape':()}",
      "has elements of type ''; " READ_TYPES },
    { "{'descr':'<f4','fortran_order':False,'shape':(1,1,1,1,1,1,1)}",
      "has more than 6 axes" },
    { "{'descr':'<f4','fortran_order':False,'shape':(4611686018427387904,4)}",
      "has shape (4611686018427387904, 4), which is too large" },
    { "{'descr':'<f4','fortran_order':False,'shape':(1000000000000,)}",
      "has shape (1000000000000), which needs 4000000000000 bytes of data, "
      "but 8 follow" },
    { "{'descr':'<f4','fortran_order':False,'shape':(1,)}",
      "has shape (1), which needs 4 bytes of data, but 8 follow" },
    { "{'descr':'<f8','fortran_order':False,'shape':(0,2)}",
      "has shape (0, 2), which needs 0 bytes of data, but 8 follow" },
    { "{'descr':'<i8','fortran_order':False,'shape':()}",
      "holds an integer of 2^53 or more, which f64 cannot hold" },
  };
  own_file (path);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    put (1 + (int)i % 2, cases[i].dict, sizeof big, &big);
    refused (cases[i].why);
  }
  put (4, "", 0, NULL);
  refused ("has format 4.0; read are 1.0, 2.0 and 3.0");
  ck_assert_int_eq (
      sl_file_write (path, "\x93NUMPY\x01\x00\xff\xff{", 11, &error), 0);
  refused ("ends inside its header");
  ck_assert_int_eq (
      sl_file_write (path, "\x93NUMPY\x02\x00\x01\x00", 10, &error), 0);
  refused ("ends inside its header");
  ck_assert_int_eq (
      sl_file_write (path, "\x93NUMPX\x01\x00\x01\x00", 10, &error), 0);
  refused ("is not a .npy file");
  ck_assert_int_eq (sl_file_write (path, "", 0, &error), 0);
  refused ("is not a .npy file");
  ck_assert_ptr_null (sl_npy_read ("/nonexistent/x.npy", &error));
  ck_assert (strstr (error.text, "/nonexistent/x.npy") != NULL);
  own_remove (path);
}
END_TEST

/* Every byte of a good file cut off or changed: read or refused, never
** worse. */
START_TEST (damaged_files_do_no_harm) {
  size_t n, read = 0, refusals = 0, live;
  char *file;
  sl_tensor *t;
  own_file (path);
  t = sl_tensor_new (SL_F64, 2, (ptrdiff_t[]){ 2, 3 }, &error);
  ck_assert_int_eq (sl_npy_write (path, t, &error), 0);
  sl_tensor_release (t);
  file = sl_file_read (path, 0, &n, &error);
  live = sl_alloc_live ();
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < 4; k++) {
      static const char with[] = { 0, 'z', '9', (char)0xff };
      char keep = file[i];
      file[i] = with[k];
      ck_assert_int_eq (sl_file_write (path, file, k == 3 ? i : n, &error), 0);
      file[i] = keep;
      t = sl_npy_read (path, &error);
      read += t != NULL;
      refusals += t == NULL;
      sl_tensor_release (t);
      ck_assert_uint_eq (sl_alloc_live (), live);
    }
  ck_assert_uint_gt (read, 48); /* numbers may be anything */
  ck_assert_uint_gt (refusals, n);
  sl_free (file);
  own_remove (path);
}
END_TEST

START_TEST (every_failing_allocation_leaks_nothing) {
  sl_tensor *t;
  size_t live;
  int done = 0, failures = 0;
  own_file (path);
  t = sl_tensor_new (SL_F64, 2, (ptrdiff_t[]){ 2, 3 }, &error);
  live = sl_alloc_live ();
  for (long n = 0; !done; n++) {
    sl_tensor *r = NULL;
    sl_alloc_fail_after (n);
    if (sl_npy_write (path, t, &error) == 0) r = sl_npy_read (path, &error);
    sl_alloc_fail_after (-1);
    done = r != NULL;
    failures += !done;
    sl_tensor_release (r);
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
  ck_assert_int_ge (failures, 5);
  sl_tensor_release (t);
  own_remove (path);
}
END_TEST

SUITE_MAIN ("npy", writes_what_numpy_writes, round_trips, reads_numpys_files,
            reads_every_kind_and_order, hostile_files_are_refused,
            damaged_files_do_no_harm, every_failing_allocation_leaks_nothing)
