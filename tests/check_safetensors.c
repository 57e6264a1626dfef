/* check_safetensors.c - named tensors written, read, and refused. */
#include "base/file.h"
#include "base/memory_test.h"
#include "support/files.h"
#include "support/suite.h"
#include "tensor/safetensors.h"
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static char path[OWN_PATH];
static sl_error error;

static sl_tensor *counting (sl_dtype dtype, ptrdiff_t rows, ptrdiff_t columns) {
  sl_tensor *t =
      sl_tensor_new (dtype, 2, (ptrdiff_t[]){ rows, columns }, &error);
  sl_view v;
  if (t == NULL) return NULL;
  v = sl_tensor_view (t);
  for (size_t i = 0; i < sl_view_count (&v); i++)
    sl_view_set (&v, dtype, i, (double)i + 0.5);
  return t;
}

static void put (const char *header, size_t n) {
  static const char data[256];
  char file[2048];
  uint64_t length = strlen (header);
  memcpy (file, &length, 8);
  memcpy (file + 8, header, length);
  memcpy (file + 8 + length, data, n);
  ck_assert_int_eq (sl_file_write (path, file, 8 + length + n, &error), 0);
}

static void refused (const char *why) {
  size_t live = sl_alloc_live ();
  sl_tensors s;
  ck_assert_int_eq (sl_safetensors_read (path, &s, &error), -1);
  says_of_file (error.text, path, why);
  ck_assert_uint_eq (s.n + s.n_meta, 0);
  ck_assert_uint_eq (sl_alloc_live (), live);
}

START_TEST (writes_the_format) {
  static const char want[] =
      "{\"__metadata__\":{\"step\":\"12\"},"
      "\"w\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},"
      "\"none\":{\"dtype\":\"F64\",\"shape\":[0,2],\"data_offsets\":[24,24]}}";
  static const float numbers[] = { 0.5, 3.5, 1.5, 4.5, 2.5, 5.5 };
  sl_tensor *a = counting (SL_F32, 2, 3), *none = counting (SL_F64, 0, 2);
  sl_tensor *turned = sl_tensor_transpose (a, 0, 1, &error);
  char w[] = "w", n[] = "none", key[] = "step", value[] = "12";
  sl_named items[] = { { w, turned }, { n, none } };
  sl_meta meta[] = { { key, value } };
  sl_tensors s = { 2, 1, items, meta };
  size_t size, padded = (sizeof want - 1 + 7) / 8 * 8;
  uint64_t length;
  char *file;
  own_file (path);
  ck_assert_msg (sl_safetensors_write (path, &s, &error) == 0, "%s",
                 error.text);
  file = sl_file_read (path, 0, &size, &error);
  ck_assert_uint_eq (size, 8 + padded + sizeof numbers);
  memcpy (&length, file, 8);
  ck_assert_uint_eq (length, padded);
  ck_assert_msg (strncmp (file + 8, want, sizeof want - 1) == 0, "%.200s",
                 file + 8);
  ck_assert_mem_eq (file + 8 + padded, numbers, sizeof numbers);
  sl_free (file);
  sl_tensor_release (turned);
  sl_tensor_release (none);
  sl_tensor_release (a);
  own_remove (path);
}
END_TEST

START_TEST (round_trip_keeps_order_names_and_bits) {
  char names[3][16] = { "z", "a.b \"q\"", "\xc3\xa9" }, key[] = "k",
       value[] = "v\n";
  sl_named items[3];
  sl_meta meta[] = { { key, value } };
  sl_tensors s = { 3, 1, items, meta }, r;
  own_file (path);
  for (int i = 0; i < 3; i++)
    items[i] = (sl_named){ names[i], counting (i ? SL_F64 : SL_F32, i + 1, 5) };
  ck_assert_int_eq (sl_safetensors_write (path, &s, &error), 0);
  ck_assert_msg (sl_safetensors_read (path, &r, &error) == 0, "%s", error.text);
  ck_assert_uint_eq (r.n, 3);
  ck_assert_uint_eq (r.n_meta, 1);
  ck_assert_str_eq (r.meta[0].key, key);
  ck_assert_str_eq (r.meta[0].value, value);
  for (int i = 0; i < 3; i++) {
    const sl_tensor *t = r.item[i].tensor, *o = items[i].tensor;
    ck_assert_str_eq (r.item[i].name, names[i]);
    ck_assert_int_eq (t->storage->dtype, o->storage->dtype);
    ck_assert_int_eq (t->ndim * 100 + t->dim[0] * 10 + t->dim[1],
                      200 + (i + 1) * 10 + 5);
    ck_assert_mem_eq (t->storage->data, o->storage->data,
                      o->storage->count * sl_dtype_size (o->storage->dtype));
    sl_tensor_release (items[i].tensor);
  }
  sl_tensors_free (&r);
  own_remove (path);
}
END_TEST

START_TEST (bad_names_are_refused) {
  static const struct {
    const char *first, *second, *why;
  } cases[] = {
    { "a", "a", "the name 'a' is given twice" },
    { "__metadata__", "a", "the name '__metadata__' is reserved" },
    { "a", "\xff", "the name of tensor 2 is not UTF-8" },
  };
  sl_tensor *t = counting (SL_F32, 1, 1);
  own_file (path);
  ck_assert_int_eq (sl_file_write (path, "before", 6, &error), 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char a[16], b[16], *file;
    sl_named items[] = { { strcpy (a, cases[i].first), t },
                         { strcpy (b, cases[i].second), t } };
    sl_tensors s = { .n = 2, .item = items };
    size_t n, live = sl_alloc_live ();
    ck_assert_int_eq (sl_safetensors_write (path, &s, &error), -1);
    ck_assert_msg (strcmp (error.text + strlen (path) + 2, cases[i].why) == 0,
                   "%s", error.text);
    ck_assert_uint_eq (sl_alloc_live (), live);
    file = sl_file_read (path, 0, &n, &error);
    ck_assert_str_eq (file, "before");
    sl_free (file);
  }
  sl_tensor_release (t);
  own_remove (path);
}
END_TEST

/* Views that repeat one number: their bytes, summed, begin again at 0, and the
** numbers of the first would have no room. */
START_TEST (sizes_that_wrap_are_refused) {
  const ptrdiff_t most = PTRDIFF_MAX / 16;
  char names[5][2] = { "a", "b", "c", "d", "e" };
  sl_tensor *few = counting (SL_F64, 10, 10);
  sl_tensor *one = sl_tensor_scalar (SL_F64, 1, &error);
  sl_tensor *many = sl_tensor_broadcast (one, 1, &most, &error);
  sl_named items[5];
  sl_tensors s = { .n = 5, .item = items };
  own_file (path);
  ck_assert_ptr_nonnull (many);
  for (int i = 0; i < 5; i++)
    items[i] = (sl_named){ names[i], i == 0 ? few : many };
  ck_assert_int_eq (sl_safetensors_write (path, &s, &error), -1);
  ck_assert_msg (strcmp (error.text + strlen (path) + 2,
                         "the tensors up to 'c' take more bytes than a file "
                         "can") == 0,
                 "%s", error.text);
  sl_tensor_release (few);
  sl_tensor_release (one);
  sl_tensor_release (many);
  own_remove (path);
}
END_TEST

#define ENTRY(name, dtype, shape, from, to)                \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape \
  ",\"data_offsets\":[" from "," to "]}"

START_TEST (hostile_files_are_refused) {
  static const char offsets[] = "'a': 'data_offsets' is missing, or no list of "
                                "two whole numbers";
  static const struct {
    const char *header;
    size_t data;
    const char *why;
  } cases[] = {
    { "[]", 0, "has a header that is no JSON object" },
    { "{\"a\":1}", 0, "the entry of 'a' is no object" },
    { "{\"a\":{}}", 0, "'a': 'dtype' is missing, or no text" },
    { "{" ENTRY ("a", "F32", "3", "0", "12") "}", 12,
      "'a': 'shape' is missing, or no list" },
    { "{" ENTRY ("a", "F32", "[3]", "0", "1.5") "}", 12, offsets },
    { "{" ENTRY ("a", "F32", "[3]", "-4", "8") "}", 12, offsets },
    { "{" ENTRY ("a", "F32", "[-3]", "0", "12") "}", 12,
      "'a' has a size that is no number of elements" },
    { "{" ENTRY ("a", "F32", "[1,1,1,1,1,1,1]", "0", "4") "}", 4,
      "'a' has 7 axes; at most 6 are read" },
    { "{" ENTRY ("a", "F32", "[4611686018427387904,4]", "0", "0") "}", 0,
      "'a' has shape (4611686018427387904, 4), which is too large" },
    { "{" ENTRY ("a", "F32", "[3]", "0", "8") "}", 8,
      "'a' of shape (3) needs 12 bytes but lies at 0 to 8 of 8" },
    { "{" ENTRY ("a", "F32", "[3]", "0", "12") "}", 8,
      "'a' of shape (3) needs 12 bytes but lies at 0 to 12 of 8" },
    { "{" ENTRY ("a", "F32", "[3]", "12", "0") "}", 12,
      "'a' of shape (3) needs 12 bytes but lies at 12 to 0 of 12" },
    { "{" ENTRY ("a", "F32", "[3]", "4", "16") "}", 16,
      "'a' begins at byte 4 of the data, expected 0" },
    { "{" ENTRY ("a", "F32", "[3]", "0", "12") "}", 16,
      "the tensors end at byte 12 of 16 bytes of data" },
    { "{" ENTRY ("a", "F32", "[2]", "0", "8") "," ENTRY ("b", "F32", "[2]", "4",
                                                         "12") "}",
      12, "'b' begins at byte 4 of the data, expected 8" },
    { "{\"__metadata__\":3}", 0, "__metadata__ is no object" },
    { "{\"__metadata__\":{\"k\":3}}", 0, "__metadata__ 'k' is no text" },
  };
  own_file (path);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    put (cases[i].header, cases[i].data);
    refused (cases[i].why);
  }
  ck_assert_int_eq (sl_file_write (path, "1234567", 7, &error), 0);
  refused ("is not a safetensors file");
  ck_assert_int_eq (sl_file_write (path, "\x10\0\0\0\0\0\0\0{}", 10, &error),
                    0);
  refused ("is not a safetensors file, or cut off: a header of 16 bytes in a "
           "file of 10");
  ck_assert_int_eq (
      sl_file_write (path, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, &error),
      0);
  refused ("is not a safetensors file, or cut off: a header of "
           "18446744073709551615 bytes in a file of 10");
  put ("{\"a\":", 0);
  ck_assert_int_eq (sl_safetensors_read (path, &(sl_tensors){ 0 }, &error), -1);
  ck_assert (strstr (error.text, "has a header that is no JSON: ") != NULL);
  put ("{" ENTRY ("a", "F32", "[0]", "0", "0") "," ENTRY ("a", "F32", "[0]",
                                                          "0", "0") "}",
       0);
  ck_assert_int_eq (sl_safetensors_read (path, &(sl_tensors){ 0 }, &error), -1);
  ck_assert (strstr (error.text, "duplicate") != NULL);
  own_remove (path);
}
END_TEST

START_TEST (damage_and_failing_allocations_leak_nothing) {
  char a[] = "a", b[] = "b";
  sl_tensor *t = counting (SL_F64, 2, 2);
  sl_named items[] = { { a, t }, { b, t } };
  sl_meta meta[] = { { a, b } };
  sl_tensors s = { 2, 1, items, meta }, r;
  size_t n, live, refusals = 0;
  int done = 0, failures = 0;
  char *file;
  own_file (path);
  live = sl_alloc_live ();
  for (long k = 0; !done; k++) {
    sl_alloc_fail_after (k);
    done = sl_safetensors_write (path, &s, &error) == 0 &&
           sl_safetensors_read (path, &r, &error) == 0;
    sl_alloc_fail_after (-1);
    if (done) sl_tensors_free (&r);
    failures += !done;
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
  ck_assert_int_ge (failures, 12);
  file = sl_file_read (path, 0, &n, &error);
  live = sl_alloc_live ();
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < 4; k++) {
      static const char with[] = { 0, '}', '9', 0 };
      char keep = file[i];
      file[i] = with[k];
      ck_assert_int_eq (sl_file_write (path, file, k == 3 ? i : n, &error), 0);
      file[i] = keep;
      if (sl_safetensors_read (path, &r, &error) == 0)
        sl_tensors_free (&r);
      else
        refusals++;
      ck_assert_uint_eq (sl_alloc_live (), live);
    }
  ck_assert_uint_gt (refusals, n);
  sl_free (file);
  sl_tensor_release (t);
  own_remove (path);
}
END_TEST

SUITE_MAIN ("safetensors", writes_the_format,
            round_trip_keeps_order_names_and_bits, bad_names_are_refused,
            sizes_that_wrap_are_refused, hostile_files_are_refused,
            damage_and_failing_allocations_leak_nothing)
