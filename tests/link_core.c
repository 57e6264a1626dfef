/* link_core.c - a program of sinklab_core alone, whole: it links without
** Lua. */
#include "base/isa.h"
#include <stdio.h>

int main (void) {
  sl_isa isa;
  sl_error e;
  if (sl_isa_choose (&isa, &e)) {
    fprintf (stderr, "%s\n", e.text);
    return 1;
  }
  printf ("sinklab %s, %s, without Lua\n", SINKLAB_VERSION, sl_isa_name (isa));
  return 0;
}
