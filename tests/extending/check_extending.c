/* check_extending.c - the operation of docs/extending.md, built from the text of
** the page: its gradient, by the case of the page. */
#include "support/inputs.h"
#include "support/suite.h"

static const op_case cases[] = {
#include "softplus_case.h"
  { .op = NULL }
};

START_TEST (its_gradient_is_right) {
  const char *isa;
  ck_assert (op_isa (0, &isa));
  for (const op_case *c = cases; c->op; c++) op_case_run (c, 1);
}
END_TEST

SUITE_MAIN ("extending", its_gradient_is_right)
