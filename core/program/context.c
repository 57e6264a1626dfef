/* context.c - the state that functions which run operations share. */
#include "program/program.h"

int sl_context_init (sl_context *c, int threads, sl_error *e) {
  *c = (sl_context){ .pool = sl_pool_new (threads, e) };
  return c->pool == NULL ? -1 : 0;
}

void sl_context_free (sl_context *c) {
  sl_pool_free (c->pool);
  *c = (sl_context){ 0 };
}
