/* check_gradients.c - every differentiable operation against differences. */
#include "support/op_case.h"
#include "support/suite.h"
#include <string.h>

enum { TABLES = 4 };
static const op_case *(*const table[TABLES]) (void) = {
  cases_array, cases_layers, cases_attention, cases_compose
};

static int has_case (const char *op) {
  for (int t = 0; t < TABLES; t++)
    for (const op_case *c = table[t](); c->op; c++)
      if (strcmp (c->op, op) == 0) return 1;
  return 0;
}

/* An op with a backward and no case, or the two signs of a gradient at odds. */
START_TEST (every_op_has_a_case) {
  const char *isa;
  ck_assert (op_isa (0, &isa));
  for (int t = 0; t < TABLES; t++) table[t](); /* tables may add lists */
  const sl_op *op;
  for (int i = 0; (op = sl_op_at (SL_F64, i)) != NULL; i++) {
    const int has = op->backward != NULL;
    if (has == ((op->flags & SL_OP_NO_GRADIENT) != 0))
      ck_abort_msg ("%s: backward is %s, but SL_OP_NO_GRADIENT says otherwise",
                    op->name, has ? "there" : "missing");
    if (has && !has_case (op->name))
      ck_abort_msg ("%s has a gradient and no case in tests/support/cases_*.c",
                    op->name);
  }
  ck_assert_ptr_nonnull (sl_op_find (SL_F64, "attention", NULL));
}
END_TEST

static void run_table (const op_case *c) {
  for (uint64_t seed = 1; c->op; c++, seed++) op_case_run (c, seed);
}

START_TEST (array) {
  run_table (cases_array ());
}
END_TEST

START_TEST (layers) {
  run_table (cases_layers ());
}
END_TEST

START_TEST (attention) {
  run_table (cases_attention ());
}
END_TEST

START_TEST (compose) {
  run_table (cases_compose ());
}
END_TEST

SUITE_MAIN ("gradients", every_op_has_a_case, array, layers, attention, compose)
