/* block.c - the check "block": a block of queries and its rows agree. */
#include "check/block.h"
#include "base/isa.h"
#include "check/trial.h"
#include <stdio.h>

SL_VARIANTS (const sl_block_runner, sl_block_runner);

/* Short and long, the first tokens and later ones, sequences that end within
** the block, keys before the first token, and queries that see all keys. */
static const struct {
  int n, pos, queries, full, length;
} shapes[] = {
  { 16, 0, 16, 0, 16 },  { 5, 0, 5, 0, 5 },     { 1, 0, 1, 0, 1 },
  { 48, 32, 16, 0, 80 }, { 43, 32, 11, 0, 43 }, { 19, 3, 16, 0, 19 },
  { 9, 0, 9, 1, 9 },     { 40, 16, 16, 1, 40 }, { 0 }
};

/* How far apart results of the same arithmetic in another order may be, of the
** largest of their array (at least 1). Where rounding weighs more than usual,
** as f32 and f64 of the row show, so may the order. */
static const double tolerance[2] = { 1e-4, 1e-11 };
static const double share[2] = { 4, 1e-7 };

typedef struct tally {
  double worst[2];
  int blocks;
} tally;

static void describe (const sl_block_case *c, int queries, char *text,
                      size_t size) {
  sl_setting v;
  int used = snprintf (text, size, "n = %d, pos = %d, %d queries, length = %d",
                       c->n, c->pos, queries, c->length);
  for (int i = 0; used > 0 && (size_t)used < size &&
                  sl_mechanism_option (c->mechanism, i, &v) == 0;
       i++)
    used += v.text ? snprintf (text + used, size - (size_t)used, ", %s=%s",
                               v.name, v.text)
                   : snprintf (text + used, size - (size_t)used, ", %s=%g",
                               v.name, v.number);
}

/* One array in one precision; n numbers. */
static void agree (sl_trial *t, const char *call, const char *what, int dtype,
                   size_t n, double *const *single, double *const *wide,
                   tally *all) {
  double *const *x = dtype == SL_F64 ? wide : single;
  const double *block = x[SL_BY_BLOCK], *row = x[SL_BY_ROWS];
  size_t where;
  const double noise =
      sl_trial_distance (n, single[SL_BY_ROWS], wide[SL_BY_ROWS], 1, &where);
  const double d = sl_trial_distance (n, block, row, 1, &where);
  if (sl_trial_failed (t)) return;
  if (!(d <= all->worst[dtype])) all->worst[dtype] = d;
  if (d <= tolerance[dtype] + share[dtype] * noise) return;
  sl_trial_figure (t, "%.1e", d);
  sl_trial_fail (t, "%s %s %zu, lane %zu is %g in a block and %g in a row (%s)",
                 dtype == SL_F64 ? "f64" : "f32", what, where / SL_QUERIES,
                 where % SL_QUERIES, block[where], row[where], call);
}

/* Both precisions of a case, c[SL_F32] and c[SL_F64]. */
static void compare (sl_trial *t, sl_block_case *c, int queries, tally *all) {
  const size_t n = (size_t)c->n * SL_QUERIES;
  char call[200];
  describe (c, queries, call, sizeof call);
  for (int d = 0; d < 2; d++) {
    const sl_block_runner *r = SL_PICK (sl_block_runner, d == SL_F64);
    snprintf (t->doing, SL_DOING, "%s block (%s)", d ? "f64" : "f32", call);
    if (r->run (&c[d])) {
      sl_trial_fail (t, "no memory for a block of %d keys", c->n);
      return;
    }
    if (c[d].fault[0]) sl_trial_fail (t, "%s (%s)", c[d].fault, call);
  }
  for (int d = 0; d < 2; d++) {
    agree (t, call, "weight of key", d, n, c[0].weights, c[1].weights, all);
    agree (t, call, "score's gradient of key", d, n, c[0].dscores, c[1].dscores,
           all);
    agree (t, call, "gradient of parameter", d, c->params, c[0].dparam,
           c[1].dparam, all);
  }
  all->blocks++;
}

/* One shape with one choice of options: ordinary, large and huge scores. */
static void visit (sl_trial *t, const sl_mechanism *m, int shape, tally *all) {
  static const double spreads[] = { 1, 8, 1e4 };
  const int params = sl_mechanism_params (m, 8);
  const int queries = shapes[shape].queries;
  const size_t n = (size_t)shapes[shape].n * SL_QUERIES;
  double *scores = sl_problem_copy (NULL, n), *dw = sl_problem_copy (NULL, n);
  double *param = sl_problem_copy (NULL, (size_t)params);
  sl_block_case c[2] = { { .mechanism = m,
                           .n = shapes[shape].n,
                           .pos = shapes[shape].pos,
                           .length = shapes[shape].length,
                           .params = (size_t)params,
                           .scores = scores,
                           .dweights = dw,
                           .param = param } };
  int failed = !scores || !dw || !param;
  for (int i = 0; i < SL_QUERIES; i++)
    c->seen[i] = i >= queries         ? 0
                 : shapes[shape].full ? c->n
                                      : c->n - queries + 1 + i;
  c[1] = c[0];
  for (int i = 0; i < 4; i++) {
    sl_block_case *one = &c[i / 2];
    failed |= !(one->weights[i % 2] = sl_problem_copy (NULL, n));
    failed |= !(one->dscores[i % 2] = sl_problem_copy (NULL, n));
    failed |= !(one->dparam[i % 2] = sl_problem_copy (NULL, (size_t)params));
  }
  if (failed) sl_trial_fail (t, "no memory for a block of %d keys", c->n);
  for (uint32_t k = 0; k < 3 && !sl_trial_failed (t); k++) {
    const uint32_t stream = 900 + 8 * (uint32_t)shape + k;
    for (size_t i = 0; i < n; i++) {
      scores[i] = (float)(spreads[k] *
                          sl_problem_normal (t->seed, stream, (uint32_t)i));
      dw[i] = (float)sl_problem_normal (t->seed, stream + 4, (uint32_t)i);
    }
    for (int i = 0; i < params; i++)
      param[i] =
          (float)(0.5 + sl_problem_uniform (t->seed, stream, (uint32_t)i));
    compare (t, c, queries, all);
  }
  for (int i = 0; i < 4; i++) {
    sl_problem_forget (c[i / 2].weights[i % 2]);
    sl_problem_forget (c[i / 2].dscores[i % 2]);
    sl_problem_forget (c[i / 2].dparam[i % 2]);
  }
  sl_problem_forget (scores);
  sl_problem_forget (dw);
  sl_problem_forget (param);
}

void sl_check_block (sl_trial *t) {
  sl_combination *list;
  tally all = { 0 };
  int count;
  if (!t->loaded->plugin[SL_F64]->block) {
    sl_trial_none (t, "rows only");
    return;
  }
  count = sl_combinations (t->loaded, &list);
  if (count < 0) sl_trial_fail (t, "no memory for combinations");
  for (int i = 0; i < count && !sl_trial_failed (t); i++) {
    sl_error e;
    const sl_mechanism *m =
        sl_mechanism_new (t->loaded, list[i].n, list[i].settings, &e);
    for (int k = 0; m && shapes[k].n && !sl_trial_failed (t); k++)
      visit (t, m, k, &all);
  }
  if (sl_trial_failed (t)) return;
  sl_trial_ok (t, "rows and blocks within %.1e, f64 %.1e in %d blocks",
               all.worst[SL_F32], all.worst[SL_F64], all.blocks);
}
