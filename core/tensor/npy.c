/* npy.c - arrays in numpy's .npy files.
**
** The format (numpy.lib.format): "\x93NUMPY", major, minor, the header's length
** (2 bytes; from format 2 on 4), then a Python dict, padded with spaces and
** ended by a newline so that the data start at a multiple of 64:
**   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } */
#include "tensor/npy.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "tensor/number_types.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char magic[6] = { (char)0x93, 'N', 'U', 'M', 'P', 'Y' };

typedef struct header {
  const sl_number_type *type;
  int big_endian, fortran, foreign, ndim;
  ptrdiff_t dim[SL_MAX_DIMS];
} header;

/* The rest of the dict while it is parsed; 'left' never runs below 0. */
typedef struct text {
  const char *p;
  size_t left;
} text;

static void space (text *t) {
  while (t->left > 0 && (*t->p == ' ' || *t->p == '\n' || *t->p == '\t'))
    t->p++, t->left--;
}

/* Skip blanks, then this word; 0 if something else is there. */
static int word (text *t, const char *w) {
  size_t n = strlen (w);
  space (t);
  if (t->left < n || memcmp (t->p, w, n) != 0) return 0;
  t->p += n;
  t->left -= n;
  return 1;
}

/* A string in either quotes, at most size - 1 characters, without escapes. */
static int quoted (text *t, char *out, size_t size) {
  size_t n = 0;
  char quote;
  space (t);
  if (t->left == 0 || (*t->p != '\'' && *t->p != '"')) return 0;
  quote = *t->p;
  for (t->p++, t->left--; t->left > 0 && *t->p != quote; t->p++, t->left--) {
    if (n + 1 == size || *t->p == '\\' || (unsigned char)*t->p < ' ') return 0;
    out[n++] = *t->p;
  }
  out[n] = '\0';
  if (t->left == 0) return 0;
  t->p++, t->left--;
  return 1;
}

/* A size 0..PTRDIFF_MAX. */
static int size_of (text *t, ptrdiff_t *out) {
  const char *from;
  ptrdiff_t n = 0;
  space (t);
  for (from = t->p; t->left > 0 && *t->p >= '0' && *t->p <= '9';
       t->p++, t->left--)
    if (__builtin_mul_overflow (n, 10, &n) ||
        __builtin_add_overflow (n, *t->p - '0', &n))
      return 0;
  *out = n;
  return t->p != from;
}

static int shape (text *t, header *h, sl_error *e) {
  int comma = 1;
  if (!word (t, "(")) return -1;
  for (h->ndim = 0; !word (t, ")"); h->ndim++) {
    if (!comma) return -1;
    if (h->ndim == SL_MAX_DIMS)
      return sl_fail (e, "has more than %d axes", SL_MAX_DIMS);
    if (!size_of (t, &h->dim[h->ndim])) return -1;
    if (t->left > 0 && *t->p == 'L') t->p++, t->left--; /* of Python 2 */
    comma = word (t, ",");
  }
  return h->ndim == 1 && !comma ? -1 : 0; /* (3) is no tuple */
}

/* The type of "<f4": its byte order ('<', '>', '=' as here, '|' for single bytes)
** and its name. */
static int take_type (const char *descr, header *h, sl_error *e) {
  const char order = *descr;
  h->type = order ? sl_npy_type (descr + 1) : NULL;
  h->big_endian = order == '>';
  if (h->type != NULL &&
      (strchr ("<>=", order) || (order == '|' && h->type->bytes == 1)))
    return 0;
  h->foreign = 1;
  return sl_fail (e,
                  "has elements of type '%s'; read are f2, f4, f8, i1 to i8, "
                  "u1 to u8 and b1",
                  descr);
}

/* -1 with a sentence, or without one when the syntax is wrong. */
static int parse (text t, header *h, sl_error *e) {
  char key[32], descr[32];
  unsigned seen = 0;
  if (!word (&t, "{")) return -1;
  while (!word (&t, "}")) {
    unsigned bit = 0;
    if (!quoted (&t, key, sizeof key) || !word (&t, ":")) return -1;
    if (strcmp (key, "descr") == 0) {
      bit = 1;
      if (word (&t, "[")) {
        h->foreign = 1;
        return sl_fail (e, "has elements of a structured type; read are single "
                           "numbers");
      }
      if (!quoted (&t, descr, sizeof descr)) return -1;
    } else if (strcmp (key, "fortran_order") == 0) {
      bit = 2;
      h->fortran = word (&t, "True");
      if (!h->fortran && !word (&t, "False")) return -1;
    } else if (strcmp (key, "shape") == 0) {
      bit = 4;
      if (shape (&t, h, e) < 0) return -1;
    }
    if (bit == 0 || (seen & bit)) return -1;
    seen |= bit;
    if (!word (&t, ",")) {
      if (!word (&t, "}")) return -1;
      break;
    }
  }
  space (&t);
  if (t.left > 0 || seen != 7) return -1;
  return take_type (descr, h, e);
}

/* A tensor of numbers stored at 'data' in the order that h says. */
static sl_tensor *convert (const header *h, const char *data, sl_error *e) {
  ptrdiff_t dim[SL_MAX_DIMS];
  sl_tensor *t;
  for (int i = 0; i < h->ndim; i++)
    dim[i] = h->fortran ? h->dim[h->ndim - 1 - i] : h->dim[i];
  t = sl_numbers_read (h->type, h->big_endian, h->ndim, dim, data, e);
  if (t != NULL &&
      h->fortran) { /* stored as the transpose: turn all axes round */
    const sl_view v = sl_tensor_view (t);
    for (int i = 0; i < h->ndim; i++) {
      t->dim[i] = v.dim[h->ndim - 1 - i];
      t->stride[i] = v.stride[h->ndim - 1 - i];
    }
  }
  return t;
}

sl_tensor *sl_npy_decode (const char *file, size_t n, int *foreign,
                          sl_error *e) {
  const unsigned char *byte = (const unsigned char *)file;
  size_t start, length, count, bytes;
  header h = { 0 };
  char shape_text[SL_SHAPE_TEXT];
  sl_error why = { "" };
  *foreign = 0;
  if (n < 10 || memcmp (file, magic, sizeof magic) != 0) {
    sl_fail (e, "is not a .npy file");
    return NULL;
  }
  if (byte[6] < 1 || byte[6] > 3) {
    sl_fail (e, "has format %d.%d; read are 1.0, 2.0 and 3.0", byte[6],
             byte[7]);
    return NULL;
  }
  start = byte[6] == 1 ? 10 : 12;
  length = byte[8] | (size_t)byte[9] << 8;
  if (byte[6] > 1 && n >= 12)
    length |= (size_t)byte[10] << 16 | (size_t)byte[11] << 24;
  if (n < start || length > n - start) {
    sl_fail (e, "ends inside its header");
    return NULL;
  }
  if (parse ((text){ file + start, length }, &h, &why) < 0) {
    *foreign = h.foreign;
    sl_fail (e, "%s",
             why.text[0] ? why.text : "has a header that is not numpy's");
    return NULL;
  }
  if (sl_shape_count (h.ndim, h.dim, &count) < 0) {
    sl_fail (e, "has shape %s, which is too large",
             sl_shape_text (h.ndim, h.dim, shape_text, sizeof shape_text));
    return NULL;
  }
  for (int i = 0; i < h.ndim; i++)
    if (h.dim[i] == 0) count = 0;
  bytes = count * h.type->bytes;
  if (n - start - length != bytes) {
    sl_fail (e, "has shape %s, which needs %zu bytes of data, but %zu follow",
             sl_shape_text (h.ndim, h.dim, shape_text, sizeof shape_text),
             bytes, n - start - length);
    return NULL;
  }
  return convert (&h, file + start + length, e);
}

sl_tensor *sl_npy_read (const char *path, sl_error *e) {
  size_t n;
  char *file = sl_file_read (path, 0, &n, e);
  sl_error why = { "" };
  sl_tensor *t;
  int foreign;
  if (file == NULL) return NULL;
  t = sl_npy_decode (file, n, &foreign, &why);
  sl_free (file);
  if (t == NULL) sl_fail (e, "%s: %s", path, why.text);
  return t;
}

char *sl_npy_encode (const sl_tensor *t, size_t *n, sl_error *e) {
  char dict[SL_SHAPE_TEXT + 128], dims[SL_SHAPE_TEXT];
  sl_dtype dtype = t->storage->dtype;
  sl_view v = sl_tensor_view (t);
  size_t bytes = sl_view_count (&v) * sl_dtype_size (dtype), length, start;
  sl_tensor *packed;
  char *file;
  sl_shape_text (t->ndim, t->dim, dims, sizeof dims);
  if (t->ndim == 1) snprintf (dims, sizeof dims, "(%td,)", t->dim[0]);
  snprintf (dict, sizeof dict,
            "{'descr': '<f%zu', 'fortran_order': False, 'shape': %s, }",
            sl_dtype_size (dtype), dims);
  start = sl_round_up (10 + strlen (dict) + 1, 64);
  length = start - 10;

  packed = sl_tensor_new (dtype, t->ndim, t->dim, e);
  file = packed != NULL ? sl_alloc (start + bytes, 1) : NULL;
  if (file == NULL) {
    sl_tensor_release (packed);
    sl_fail (e, "out of memory for %zu bytes", start + bytes);
    return NULL;
  }
  sl_tensor_copy (packed, t, e); /* of the same shape: it cannot fail */
  memcpy (file, magic, sizeof magic);
  file[6] = 1;
  file[8] = (char)(length & 255);
  file[9] = (char)(length >> 8);
  memset (file + 10, ' ', length);
  memcpy (file + 10, dict, strlen (dict));
  file[start - 1] = '\n';
  memcpy (file + start, packed->storage->data, bytes);
  sl_tensor_release (packed);
  *n = start + bytes;
  return file;
}

int sl_npy_write (const char *path, const sl_tensor *t, sl_error *e) {
  size_t n;
  char *file = sl_npy_encode (t, &n, e);
  int status;
  if (file == NULL) return sl_fail_within (e, "%s", path);
  status = sl_file_write (path, file, n, e);
  sl_free (file);
  return status;
}
