/* block.c - the check "block": block and row kernels agree. */
#include "check/block.h"
#include "base/isa.h"
#include "base/memory.h"
#include "check/check_case.h"
#include <stdio.h>

SL_VARIANTS (const sl_block_runner, sl_block_runner);

/* Short and long; the first tokens and later ones; sequences that end within
** the block; virtual keys before the first token; full visibility. */
static const struct {
  int n, position, queries, full, length;
} shapes[] = {
  { 16, 0, 16, 0, 16 },  { 5, 0, 5, 0, 5 },     { 1, 0, 1, 0, 1 },
  { 48, 32, 16, 0, 80 }, { 43, 32, 11, 0, 43 }, { 19, 3, 16, 0, 19 },
  { 9, 0, 9, 1, 9 },     { 40, 16, 16, 1, 40 }, { 0 }
};

/* Largest difference, relative to the largest number of the array (at least 1),
** between results of different orders of operations, by precision: tolerance +
** share * difference of the row kernel's f32 and f64, which measures the
** conditioning. */
static const double tolerance[2] = { 1e-4, 1e-11 };
static const double share[2] = { 4, 1e-7 };

typedef struct tally {
  double worst[2];
  int blocks;
} tally;

static void describe (const sl_block_case *b, int queries, char *text,
                      size_t size) {
  const int used =
      snprintf (text, size, "n = %d, position = %d, %d queries, length = %d",
                b->n, b->position, queries, b->length);
  sl_test_options_text (b->mechanism, text, size, used);
}

/* Compare one array, (n), in one precision. */
static void agree (sl_check_case *c, const char *call, const char *what,
                   int dtype, size_t n, double *const *single,
                   double *const *wide, tally *all) {
  double *const *x = dtype == SL_F64 ? wide : single;
  const double *block = x[SL_BY_BLOCK], *row = x[SL_BY_ROWS];
  size_t where;
  const double noise = sl_largest_difference (n, single[SL_BY_ROWS],
                                              wide[SL_BY_ROWS], 1, &where);
  const double d = sl_largest_difference (n, block, row, 1, &where);
  if (sl_case_failed (c)) return;
  if (!(d <= all->worst[dtype])) all->worst[dtype] = d;
  if (d <= tolerance[dtype] + share[dtype] * noise) return;
  sl_case_figure (c, "%.1e", d);
  sl_case_fail (c, "%s %s %zu, lane %zu is %g in a block and %g in a row (%s)",
                dtype == SL_F64 ? "f64" : "f32", what, where / SL_QUERIES,
                where % SL_QUERIES, block[where], row[where], call);
}

/* Run and compare both precisions of a case, b[SL_F32] and b[SL_F64]. */
static void compare (sl_check_case *c, sl_block_case *b, int queries,
                     tally *all) {
  const size_t n = (size_t)b->n * SL_QUERIES;
  char call[200];
  describe (b, queries, call, sizeof call);
  for (int d = 0; d < 2; d++) {
    const sl_block_runner *r = SL_PICK (sl_block_runner, d == SL_F64);
    snprintf (c->doing, SL_DOING, "%s block (%s)", d ? "f64" : "f32", call);
    if (r->run (&b[d])) {
      sl_case_fail (c, "no memory for a block of %d keys", b->n);
      return;
    }
    if (b[d].fault[0]) sl_case_fail (c, "%s (%s)", b[d].fault, call);
  }
  for (int d = 0; d < 2; d++) {
    agree (c, call, "weight of key", d, n, b[0].weights, b[1].weights, all);
    agree (c, call, "score's gradient of key", d, n, b[0].dscores, b[1].dscores,
           all);
    agree (c, call, "gradient of parameter", d, b->params, b[0].dparam,
           b[1].dparam, all);
  }
  all->blocks++;
}

/* One shape with one choice of options: ordinary, large and huge scores. */
static void visit (sl_check_case *c, const sl_mechanism *m, int shape,
                   tally *all) {
  static const double spreads[] = { 1, 8, 1e4 };
  const int params = sl_mechanism_params (m, 8);
  const int queries = shapes[shape].queries;
  const size_t n = (size_t)shapes[shape].n * SL_QUERIES;
  double *scores = sl_case_copy (c, NULL, n), *dw = sl_case_copy (c, NULL, n);
  double *param = sl_case_copy (c, NULL, (size_t)params);
  sl_block_case b[2] = { { .mechanism = m,
                           .n = shapes[shape].n,
                           .position = shapes[shape].position,
                           .length = shapes[shape].length,
                           .params = (size_t)params,
                           .scores = scores,
                           .dweights = dw,
                           .param = param } };
  for (int i = 0; i < SL_QUERIES; i++)
    b->visible_keys[i] = i >= queries         ? 0
                         : shapes[shape].full ? b->n
                                              : b->n - queries + 1 + i;
  b[1] = b[0];
  for (int i = 0; i < 4; i++) {
    sl_block_case *one = &b[i / 2];
    one->weights[i % 2] = sl_case_copy (c, NULL, n);
    one->dscores[i % 2] = sl_case_copy (c, NULL, n);
    one->dparam[i % 2] = sl_case_copy (c, NULL, (size_t)params);
  }
  for (uint32_t k = 0; k < 3 && !sl_case_failed (c); k++) {
    const uint32_t stream = 900 + 8 * (uint32_t)shape + k;
    for (size_t i = 0; i < n; i++) {
      scores[i] =
          (float)(spreads[k] * sl_test_normal (c->seed, stream, (uint32_t)i));
      dw[i] = (float)sl_test_normal (c->seed, stream + 4, (uint32_t)i);
    }
    for (int i = 0; i < params; i++)
      param[i] = (float)(0.5 + sl_test_uniform (c->seed, stream, (uint32_t)i));
    compare (c, b, queries, all);
  }
  for (int i = 0; i < 4; i++) {
    sl_free (b[i / 2].weights[i % 2]);
    sl_free (b[i / 2].dscores[i % 2]);
    sl_free (b[i / 2].dparam[i % 2]);
  }
  sl_free (scores);
  sl_free (dw);
  sl_free (param);
}

void sl_check_block (sl_check_case *c) {
  sl_combination *list;
  tally all = { 0 };
  int count;
  if (!sl_case_plugin (c)->block) {
    sl_case_skip (c, "rows only");
    return;
  }
  count = sl_combinations (c->loaded, &list);
  if (count < 0) sl_case_fail (c, "no memory for combinations");
  for (int i = 0; i < count && !sl_case_failed (c); i++) {
    sl_error e;
    const sl_mechanism *m =
        sl_mechanism_new (c->loaded, list[i].n, list[i].settings, &e);
    for (int k = 0; m && shapes[k].n && !sl_case_failed (c); k++)
      visit (c, m, k, &all);
  }
  if (sl_case_failed (c)) return;
  sl_case_pass (c, "rows and blocks within %.1e, f64 %.1e in %d blocks",
                all.worst[SL_F32], all.worst[SL_F64], all.blocks);
}
