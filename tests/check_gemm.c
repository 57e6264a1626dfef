/* check_gemm.c - the matrix product in every variant (numeric/gemm_body.c). */
#include "support/suite.h"
#include "support/variants.h"

VARIANTS_OF (gemm_body);

START_TEST (products) {
  RUN_VARIANTS (gemm_body);
}
END_TEST

SUITE_MAIN ("gemm", products)
