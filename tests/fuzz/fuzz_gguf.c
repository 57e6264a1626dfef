/* fuzz_gguf.c - any bytes as a GGUF file: parsed, every value and tensor
** touched, its tokenizer tried. */
#include "base/memory_test.h"
#include "fuzz/fuzz.h"
#include "lm/tokenizer_internal.h"
#include <stdlib.h>

static volatile unsigned char sink;

static void touch (const char *data, size_t n) {
  if (n > 0) sink = (unsigned char)data[0] ^ (unsigned char)data[n - 1];
}

static void read_values (const sl_gguf *g) {
  for (size_t i = 0; i < g->n_values; i++) {
    const sl_gguf_value *v = &g->value[i];
    const char *at = v->at, *text;
    size_t n;
    for (size_t k = 0; k < v->count; k++)
      if (v->type == SL_GGUF_STRING) {
        text = sl_gguf_string (v, &at, &n);
        touch (text, n);
      } else
        sink = (unsigned char)sl_gguf_whole (v, &at);
    if (sl_gguf_find (g, v->key) != v) abort ();
  }
}

static void read_weights (const sl_gguf *g) {
  static float row[4096];
  for (size_t i = 0; i < g->n_weights; i++) {
    const sl_weight *w = &g->weight[i];
    touch (w->data, w->bytes);
    if (w->type->kind >= 0 && w->bytes > 0 && sl_weight_row_size (w) <= 4096)
      sl_weight_rows (w, sl_weight_row_count (w) - 1, 1, SL_F32, row);
  }
}

static void use_tokenizer (const sl_gguf *g) {
  static const char text[] = "Hello  world\n 123 <s>\xe2\x96\x81\xff\xc3\xa9";
  sl_tokenizer *t = sl_alloc (1, sizeof *t);
  sl_error e;
  sl_token_ids ids = { 0 };
  sl_tokenizer_begin (t);
  if (sl_tokenizer_read_gguf (t, g, &e) == 0 &&
      sl_tokenizer_encode (t, text, sizeof text - 1, 1, &ids, &e) == 0) {
    size_t n;
    char *back = sl_tokenizer_decode (t, ids.n, ids.id, 1, &n, &e);
    if (back == NULL) abort ();
    touch (back, n);
    sl_free (back);
  }
  sl_free (ids.id);
  sl_tokenizer_free (t);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n) {
  const size_t live = sl_alloc_live ();
  sl_gguf g;
  sl_error e = { "" };
  if (sl_gguf_parse ((const char *)data, n, &g, &e) == 0) {
    read_values (&g);
    read_weights (&g);
    use_tokenizer (&g);
    sl_gguf_free (&g);
  } else if (e.text[0] == '\0')
    abort ();
  if (sl_alloc_live () != live) abort ();
  return 0;
}
