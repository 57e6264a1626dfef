/* fuzz_safetensors.c - any bytes as a safetensors file: its header read, every
** tensor touched. */
#include "base/memory_test.h"
#include "fuzz/fuzz.h"
#include "tensor/safetensors_header.h"
#include <stdlib.h>

static volatile unsigned char sink;

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n) {
  const size_t live = sl_alloc_live ();
  sl_header h;
  sl_error e = { "" };
  if (sl_header_read ((const char *)data, n, &h, &e) == 0) {
    for (size_t i = 0; i < h.n; i++) {
      const sl_entry *entry = &h.entry[i];
      if (entry->to > entry->from)
        sink = data[h.data + entry->from] ^ data[h.data + entry->to - 1];
    }
    sl_header_free (&h);
  } else if (e.text[0] == '\0')
    abort ();
  if (sl_alloc_live () != live) abort ();
  return 0;
}
