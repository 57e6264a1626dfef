/* check_weights.c - model files opened, searched, and refused. */
#include "base/file.h"
#include "base/memory_test.h"
#include "lm/weights.h"
#include "support/files.h"
#include "support/suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MODELS SINKLAB_TEST_SOURCE "/models/"

static sl_error error;
static char folder[OWN_PATH], path[256];

static const char *in_folder (const char *name) {
  snprintf (path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void put (const char *name, const void *data, size_t n) {
  ck_assert_msg (sl_file_write (in_folder (name), data, n, &error) == 0, "%s",
                 error.text);
}

static void end (const char *const *names) {
  for (; *names; names++) unlink (in_folder (*names));
  ck_assert_int_eq (rmdir (folder), 0);
}

/* A safetensors file of this header (after an 8-byte length) and n zeros. */
static void put_header (const char *name, const char *header, size_t n) {
  const uint64_t length = strlen (header);
  char *file = calloc (8 + length + n, 1);
  memcpy (file, &length, 8);
  memcpy (file + 8, header, length);
  put (name, file, 8 + length + n);
  free (file);
}

/* More memory than this is not needed to say no. */
static void limit_memory (size_t more) {
#if defined __linux__ && !defined __SANITIZE_ADDRESS__ && \
    !defined __SANITIZE_THREAD__
  FILE *f = fopen ("/proc/self/statm", "r");
  unsigned long pages = 0;
  if (f == NULL || fscanf (f, "%lu", &pages) != 1) pages = 0;
  if (f != NULL) fclose (f);
  if (pages > 0) {
    const rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf (_SC_PAGESIZE) + more;
    setrlimit (RLIMIT_AS, &(struct rlimit){ bytes, bytes });
  }
#else
  (void)more;
#endif
}

/* The verdicts of MANIFEST.tsv; what is wrong only with the model (sem_*) opens
** here and is judged by lab.lm.open. Three large ones are made below. */
START_TEST (every_bad_file_gets_its_verdict) {
  FILE *list = fopen (MODELS "bad/MANIFEST.tsv", "r");
  char line[512], name[256], expected[64];
  const size_t live = sl_alloc_live ();
  int files = 0, refused = 0;
  ck_assert_ptr_nonnull (list);
  limit_memory ((size_t)16 << 20);
  while (fgets (line, sizeof line, list)) {
    char where[512];
    sl_weights *w;
    int sem, open;
    ck_assert_int_eq (sscanf (line, "%255[^\t]\t%63[^\t\n]", name, expected),
                      2);
    snprintf (where, sizeof where, MODELS "bad/%s", name);
    if (strcmp (name, "file") == 0 || !sl_file_exists (where)) continue;
    sem = strstr (name, "/sem_") != NULL;
    error.text[0] = '\0';
    w = sl_weights_open (where, &error);
    open = w != NULL;
    files++;
    refused += !open;
    if (strcmp (expected, "reject") == 0)
      ck_assert_msg (open == sem, "%s was opened", name);
    if (strncmp (expected, "accept", 6) == 0 && strstr (expected, "-or-") == 0)
      ck_assert_msg (open, "%s", error.text);
    if (!open)
      ck_assert_msg (strncmp (error.text, where, strlen (where)) == 0 &&
                         strlen (error.text) < strlen (where) + 200,
                     "%s: '%s'", name, error.text);
    sl_weights_release (w);
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
  fclose (list);
  ck_assert_int_eq (files, 81);
  ck_assert_int_eq (refused, 68);
}
END_TEST

START_TEST (what_the_sentences_say) {
  static const struct {
    const char *file, *why;
  } cases[] = {
    { "gguf/version_bigendian",
      "is a big-endian GGUF file, which is not read" },
    { "gguf/version_future_4", "is GGUF of version 4; read are 1 to 3" },
    { "gguf/key_len_minus1",
      "is cut off or damaged: a text of 18446744073709551615 bytes in key 1 of "
      "1 with 16 left" },
    { "gguf/align_13",
      "has general.alignment 13, expected a power of two up to 65536" },
    { "gguf/ndims_5", "has the tensor 't' with 5 axes; GGUF has at most 4" },
    { "gguf/offset_past_eof",
      "is cut off or damaged: the tensor 't' needs 16 bytes from byte "
      "1099511627776 of 256" },
    { "gguf/ne_product_wrap_small",
      "has a tensor 't' of shape (4, 4611686018427387905), which is too "
      "large" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf (path, sizeof path, MODELS "bad/%s.gguf", cases[i].file);
    ck_assert_ptr_null (sl_weights_open (path, &error));
    ck_assert_msg (strcmp (error.text + strlen (path) + 2, cases[i].why) == 0,
                   "got '%s', expected '%s'", error.text, cases[i].why);
  }
}
END_TEST

/* 50,000 brackets; a name of a million letters; 20,000 empty tensors. */
START_TEST (large_headers) {
  enum { DEEP = 50000, LONG = 1000000, MANY = 20000 };
  static const char *const names[] = { "deep", "long", "many", NULL };
  static const char rest[] =
      "\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}";
  char *text = malloc (2 * LONG), *at = text;
  sl_weights *w;
  own_folder (folder);
  at += sprintf (at, "{\"a\":");
  memset (at, '[', DEEP);
  memset (at + DEEP, ']', DEEP);
  strcpy (at + 2 * DEEP, "}");
  put_header ("deep", text, 0);
  ck_assert_ptr_null (sl_weights_open (in_folder ("deep"), &error));
  ck_assert_msg (strstr (error.text, "maximum parsing depth"), "%s",
                 error.text);
  at = text + sprintf (text, "{\"");
  memset (at, 'n', LONG);
  strcpy (at + LONG, rest);
  put_header ("long", text, 16);
  w = sl_weights_open (in_folder ("long"), &error);
  ck_assert_msg (w != NULL, "%s", error.text);
  ck_assert_uint_eq (strlen (sl_weights_get (w, 0)->name), LONG);
  sl_weights_release (w);
  at = text;
  for (int i = 0; i < MANY; i++)
    at += sprintf (at,
                   "%c\"w%d\":{\"dtype\":\"F32\",\"shape\":[0],"
                   "\"data_offsets\":[0,0]}",
                   i == 0 ? '{' : ',', i);
  strcpy (at, "}");
  put_header ("many", text, 0);
  w = sl_weights_open (in_folder ("many"), &error);
  ck_assert_msg (w != NULL, "%s", error.text);
  ck_assert_uint_eq (sl_weights_count (w), MANY);
  ck_assert_str_eq (sl_weights_find (w, "w19999", &error)->name, "w19999");
  ck_assert_ptr_null (sl_weights_find (w, "w20000", &error));
  sl_weights_release (w);
  free (text);
  end (names);
}
END_TEST

/* One file in versions 1 to 3: counts and lengths of 4 bytes, then of 8. */
START_TEST (versions) {
  static const char *const names[] = { "x.gguf", NULL };
  static const float numbers[6] = { 0.5f, -1, 2, 3, 4, 5 };
  own_folder (folder);
  for (uint32_t version = 1; version <= 3; version++) {
    const size_t wide = version == 1 ? 4 : 8;
    char data[512] = "GGUF";
    size_t n = 4, at;
    sl_weights *w;
    const sl_weight *x;
    const sl_gguf_value *v;
    const char *cursor, *text;
#define PUT(type, value)                   \
  do {                                     \
    const type item = (type)(value);       \
    memcpy (data + n, &item, sizeof item); \
    n += sizeof item;                      \
  } while (0)
#define PUT_COUNT(value)            \
  do {                              \
    const uint64_t item = (value);  \
    memcpy (data + n, &item, wide); \
    n += wide;                      \
  } while (0)
#define PUT_TEXT(value)                       \
  do {                                        \
    PUT_COUNT (strlen (value));               \
    memcpy (data + n, value, strlen (value)); \
    n += strlen (value);                      \
  } while (0)
    PUT (uint32_t, version);
    PUT_COUNT (1); /* tensors */
    PUT_COUNT (1); /* keys */
    PUT_TEXT ("words");
    PUT (uint32_t, SL_GGUF_ARRAY);
    PUT (uint32_t, SL_GGUF_STRING);
    PUT_COUNT (2);
    PUT_TEXT ("one");
    PUT_TEXT ("three");
    PUT_TEXT ("w");
    PUT (uint32_t, 2); /* axes: the fastest first */
    PUT_COUNT (3);
    PUT_COUNT (2);
    PUT (uint32_t, 0); /* F32 */
    PUT (uint64_t, 0);
    n = (n + 31) / 32 * 32;
    memcpy (data + n, numbers, sizeof numbers);
    put (names[0], data, n + sizeof numbers);
    w = sl_weights_open (in_folder (names[0]), &error);
    ck_assert_msg (w != NULL, "version %u: %s", version, error.text);
    ck_assert_uint_eq (sl_weights_gguf (w)->version, version);
    x = sl_weights_find (w, "w", &error);
    ck_assert_int_eq (x->ndim * 100 + x->dim[0] * 10 + x->dim[1], 223);
    ck_assert_mem_eq (x->data, numbers, sizeof numbers);
    v = sl_gguf_find (sl_weights_gguf (w), "words");
    cursor = v->at;
    (void)sl_gguf_string (v, &cursor, &at);
    ck_assert_uint_eq (at, 3);
    text = sl_gguf_string (v, &cursor, &at);
    ck_assert (at == 5 && memcmp (text, "three", 5) == 0);
    sl_weights_release (w);
  }
  end (names);
}
END_TEST

START_TEST (a_part_of_a_model) {
  static const char *const names[] = { "part.gguf", NULL };
  static const char head[] = "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
                             "\x08\0\0\0\0\0\0\0split.no\2\0\0\0\1\0"
                             "\x0b\0\0\0\0\0\0\0split.count\2\0\0\0\3";
  own_folder (folder);
  put (names[0], head, sizeof head); /* the NUL is the last byte of 3 */
  ck_assert_ptr_null (sl_weights_open (in_folder (names[0]), &error));
  ck_assert_msg (strstr (error.text, "is part 2 of 3 of a model; its name must "
                                     "end in -00002-of-00003.gguf"),
                 "%s", error.text);
  end (names);
}
END_TEST

#define ENTRY(name, from, to)                                               \
  "\"" name "\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[" from \
  "," to "]}"

START_TEST (shards) {
  static const char *const names[] = { "1.safetensors", "2.safetensors",
                                       "model.safetensors.index.json", NULL };
  static const struct {
    const char *index, *why; /* NULL: opens */
  } cases[] = {
    { "{\"weight_map\":{\"a\":\"1.safetensors\",\"c\":\"2.safetensors\"}}",
      NULL },
    { "{\"weight_map\":{\"x\":\"1.safetensors\"}}",
      "promises a tensor 'x' that '1.safetensors' lacks" },
    { "{\"weight_map\":{\"a\":\"../1.safetensors\"}}",
      "names the file '../1.safetensors', which is not in its folder" },
    { "{\"weight_map\":{\"a\":7}}", "has no file name for the tensor 'a'" },
    { "{\"weight_map\":{}}", "has no weight_map of tensors to files" },
    { "[1]", "has no weight_map of tensors to files" },
    { "{\"weight_map\":", "is no JSON: " },
  };
  const size_t live = sl_alloc_live ();
  own_folder (folder);
  put_header ("1.safetensors",
              "{" ENTRY ("b", "0", "8") "," ENTRY ("a", "8", "16") "}", 16);
  put_header ("2.safetensors", "{" ENTRY ("c", "0", "8") "}", 8);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sl_weights *w;
    put (names[2], cases[i].index, strlen (cases[i].index));
    w = sl_weights_open (folder, &error);
    ck_assert_msg ((w != NULL) == (cases[i].why == NULL), "%s", error.text);
    if (w == NULL)
      ck_assert_msg (strstr (error.text, cases[i].why), "got '%s', want '%s'",
                     error.text, cases[i].why);
    else {
      const sl_weight *a = sl_weights_find (w, "a", &error);
      ck_assert_uint_eq (sl_weights_count (w), 3);
      ck_assert_str_eq (a->type->name, "F16");
      ck_assert_int_eq (a->ndim, 2);
      ck_assert_str_eq (sl_weights_folder (w), folder);
    }
    sl_weights_release (w);
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
  put_header ("2.safetensors", "{" ENTRY ("a", "0", "8") "}", 8);
  put (names[2], cases[0].index, strlen (cases[0].index));
  ck_assert_ptr_null (sl_weights_open (in_folder (names[2]), &error));
  ck_assert_msg (strstr (error.text, "leads to two tensors 'a'"), "%s",
                 error.text);
  unlink (in_folder (names[1]));
  ck_assert_ptr_null (sl_weights_open (folder, &error));
  ck_assert_msg (strstr (error.text, "2.safetensors: cannot read: No such"),
                 "%s", error.text);
  unlink (in_folder (names[2]));
  ck_assert_ptr_null (sl_weights_open (folder, &error));
  ck_assert_msg (strstr (error.text, "the folder has no model.safetensors and "
                                     "no model.safetensors.index.json"),
                 "%s", error.text);
  end (names);
}
END_TEST

/* A tensor over the file's memory outlives the file, and writing to it leaves
** the file as it was. */
START_TEST (tensors_in_place) {
  const char *micro = MODELS "bad/gguf/ok_micro.gguf";
  const size_t live = sl_alloc_live ();
  sl_weights *w = sl_weights_open (micro, &error);
  const sl_weight *q;
  sl_tensor *t, *wide;
  sl_view v;
  double x, y;
  ck_assert_msg (w != NULL, "%s", error.text);
  q = sl_weights_find (w, "blk.0.attn_q.weight", &error);
  ck_assert_msg (q != NULL, "%s", error.text);
  t = sl_weight_tensor (q, w, SL_F32, &error);
  wide = sl_weight_tensor (q, w, SL_F64, &error);
  ck_assert_ptr_eq (t->storage->data, q->data);
  sl_weights_release (w);
  v = sl_tensor_view (t);
  x = sl_view_get (&v, SL_F32, 3);
  v = sl_tensor_view (wide);
  y = sl_view_get (&v, SL_F64, 3);
  ck_assert_msg (x == y, "%.17g, %.17g", x, y);
  sl_tensor_fill (t, 8);
  sl_tensor_release (t);
  sl_tensor_release (wide);
  ck_assert_uint_eq (sl_alloc_live (), live);
  w = sl_weights_open (micro, &error);
  t = sl_weight_tensor (sl_weights_find (w, "blk.0.attn_q.weight", &error), w,
                        SL_F32, &error);
  v = sl_tensor_view (t);
  ck_assert (sl_view_get (&v, SL_F32, 3) == x);
  ck_assert_ptr_null (sl_weights_find (w, "blk.0.attn_k.weigth", &error));
  ck_assert_msg (strstr (error.text, "there is no tensor 'blk.0.attn_k.weigth' "
                                     "(did you mean 'blk.0.attn_k.weight'?)"),
                 "%s", error.text);
  sl_tensor_release (t);
  sl_weights_release (w);
}
END_TEST

START_TEST (numbers_that_are_not_finite) {
  sl_weights *w =
      sl_weights_open (MODELS "bad/gguf/sem_weights_nan.gguf", &error);
  size_t bad = 0, where = 0;
  ck_assert_msg (w != NULL, "%s", error.text);
  for (size_t i = 0; i < sl_weights_count (w); i++)
    bad += sl_weight_nonfinite (sl_weights_get (w, i), &where);
  ck_assert_uint_gt (bad, 0);
  sl_weights_release (w);
  w = sl_weights_open (MODELS "bad/gguf/ok_micro.gguf", &error);
  for (size_t i = 0; i < sl_weights_count (w); i++)
    ck_assert_uint_eq (sl_weight_nonfinite (sl_weights_get (w, i), &where), 0);
  sl_weights_release (w);
}
END_TEST

START_TEST (failing_allocations_leak_nothing) {
  static const char *const files[] = { MODELS "bad/gguf/ok_micro.gguf",
                                       SINKLAB_TEST_SOURCE
                                       "/golden/lm/blocks.safetensors" };
  for (int i = 0; i < 2; i++) {
    const size_t live = sl_alloc_live ();
    int failures = 0;
    for (long k = 0;; k++) {
      sl_weights *w;
      sl_alloc_fail_after (k);
      w = sl_weights_open (files[i], &error);
      sl_alloc_fail_after (-1);
      sl_weights_release (w);
      ck_assert_uint_eq (sl_alloc_live (), live);
      if (w != NULL) break;
      failures++;
    }
    ck_assert_int_gt (failures, 10);
  }
}
END_TEST

/* Each byte of the head in turn becomes 0, 255 and one more. */
START_TEST (damaged_heads) {
  size_t n, refusals = 0, opened = 0;
  char *file = sl_file_read (MODELS "bad/gguf/ok_micro.gguf", 0, &n, &error);
  const size_t live = sl_alloc_live ();
  ck_assert_ptr_nonnull (file);
  for (size_t i = 0; i < 1600; i++)
    for (int k = 0; k < 3; k++) {
      const char keep = file[i];
      sl_gguf g;
      file[i] = k == 0 ? '\0' : k == 1 ? '\xff' : (char)(keep + 1);
      if (sl_gguf_parse (file, n, &g, &error) == 0) {
        opened++;
        sl_gguf_free (&g);
      } else
        refusals++;
      file[i] = keep;
      ck_assert_uint_eq (sl_alloc_live (), live);
    }
  ck_assert_uint_gt (refusals, 500);
  ck_assert_uint_gt (opened, 500);
  sl_free (file);
}
END_TEST

/* A size that a ptrdiff_t cannot hold is told as it stands in the file. */
START_TEST (huge_sizes) {
  static const unsigned char largest[8] = { 255, 255, 255, 255,
                                            255, 255, 255, 255 };
  static const char name[] = "token_embd.weight";
  const size_t live = sl_alloc_live ();
  size_t n, at = 0;
  sl_gguf g;
  char *file = sl_file_read (MODELS "bad/gguf/ok_micro.gguf", 0, &n, &error);
  ck_assert_ptr_nonnull (file);
  while (memcmp (file + at, name, sizeof name - 1) != 0) at++;
  memcpy (file + at + sizeof name - 1 + 4, largest, 8); /* after the axes */
  ck_assert_int_lt (sl_gguf_parse (file, n, &g, &error), 0);
  ck_assert_ptr_nonnull (strstr (error.text, "size of 18446744073709551615"));
  sl_free (file);
  ck_assert_uint_eq (sl_alloc_live (), live);
}
END_TEST

SUITE_MAIN ("weights", every_bad_file_gets_its_verdict, what_the_sentences_say,
            large_headers, versions, a_part_of_a_model, huge_sizes, shards,
            tensors_in_place, numbers_that_are_not_finite,
            failing_allocations_leak_nothing, damaged_heads)
