/* check_vmath.c - the vector functions in every variant (vmath_body.c). */
#include "support/suite.h"
#include "support/variants.h"

VARIANTS_OF (vmath_body);

START_TEST (errors_and_special_values) {
  RUN_VARIANTS (vmath_body);
}
END_TEST

SUITE_MAIN ("vmath", errors_and_special_values)
