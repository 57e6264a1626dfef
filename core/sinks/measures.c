/* measures.c - the table of what is measured of a row. */
#include "sinks/measures.h"
#include "base/isa.h"
#include <math.h>

SL_VARIANTS (const sl_scan_kernels, sl_scan_rows);

const sl_scan_kernels *sl_scan_pick (sl_dtype dtype) {
  return SL_PICK (sl_scan_rows, dtype == SL_F64);
}

const char *const sl_row_class_names[SL_ROW_CLASSES] = { "plain", "first",
                                                         "trigger",
                                                         "boundary" };
const int sl_share_keys[SL_SHARES] = { 1, 4, 8 };

static double size_of (const sl_row_facts *f) {
  return f->scan.size + f->scan.outside_size;
}

static double first (const sl_row_facts *f) {
  return f->first;
}

static double row_mass (const sl_row_facts *f) {
  return f->scan.mass;
}

static double abs_mass (const sl_row_facts *f) {
  return f->scan.size;
}

static double virtual_mass (const sl_row_facts *f) {
  return f->scan.outside;
}

static double null_mass (const sl_row_facts *f) {
  return 1 - (f->scan.mass + f->scan.outside);
}

static double first_over_rowsum (const sl_row_facts *f) {
  return f->first / (size_of (f) + 1e-8);
}

static double entropy (const sl_row_facts *f) {
  return f->scan.entropy;
}

static double entropy_share (const sl_row_facts *f) {
  return f->keys > 1 ? f->scan.entropy / log (f->keys) : 0;
}

static double contribution (const sl_row_facts *f) {
  return fabs (f->first) * f->norm;
}

/* Counts and comparisons would take a NaN for a small weight. */
static double largest_first (const sl_row_facts *f) {
  if (isnan (size_of (f))) return NAN;
  return f->first != 0 && fabs (f->first) >= f->scan.largest;
}

static double sparsity (const sl_row_facts *f) {
  if (isnan (f->scan.size)) return NAN;
  return f->tokens > 0 ? (double)f->scan.zeros / f->tokens : 0;
}

static double sink_logit (const sl_row_facts *f) {
  return f->logit;
}

static const struct {
  const char *name;
  double (*of) (const sl_row_facts *f);
} measures[SL_ROW_MEASURES] = {
  [SL_OF_FIRST] = { "first", first },
  [SL_OF_ROW_MASS] = { "row_mass", row_mass },
  [SL_OF_ABS_MASS] = { "abs_mass", abs_mass },
  [SL_OF_VIRTUAL_MASS] = { "virtual_mass", virtual_mass },
  [SL_OF_NULL_MASS] = { "null_mass", null_mass },
  [SL_OF_FIRST_OVER_ROWSUM] = { "first_over_rowsum", first_over_rowsum },
  [SL_OF_ENTROPY] = { "entropy", entropy },
  [SL_OF_ENTROPY_SHARE] = { "entropy_share", entropy_share },
  [SL_OF_CONTRIBUTION] = { "contribution", contribution },
  [SL_OF_LARGEST_FIRST] = { "largest_first", largest_first },
  [SL_OF_SPARSITY] = { "sparsity", sparsity },
  [SL_OF_SINK_LOGIT] = { "sink_logit", sink_logit },
};

const char *sl_row_measure_name (sl_row_measure m) {
  return measures[m].name;
}

void sl_row_measure_all (const sl_row_facts *f, double *x) {
  for (int m = 0; m < SL_ROW_MEASURES; m++) x[m] = measures[m].of (f);
}
