/* block_run.c - the same queries by rows and as a block, in one precision. */
#include "attention/host.h"
#include "base/memory.h"
#include "check/block.h"
#include <sinklab/vmath.h>
#include <stdio.h>
#include <string.h>

enum { FENCE = 64 };        /* reals on either side of a buffer */
#define MARK ((real)-12345) /* in them, and in outputs before a call */

/* The arguments of a call: five matrices n x 16 and two vectors, side by side with
** fences between them. */
enum { S, W, DW, DS, PARAM, DPARAM, SCRATCH, BUFFERS };
static const char *const names[BUFFERS] = { "s",     "w",      "dw",     "ds",
                                            "param", "dparam", "scratch" };
typedef struct buffers {
  real *memory, *at[BUFFERS];
  size_t size[BUFFERS], total;
} buffers;

static int reserve (buffers *b, const sl_block_case *c) {
  const size_t matrix = (size_t)c->n * SL_QUERIES;
  const size_t sizes[BUFFERS] = { matrix,    matrix,    matrix, matrix,
                                  c->params, c->params, 0 };
  b->total = FENCE;
  for (int i = 0; i < BUFFERS; i++) {
    b->size[i] = sizes[i];
    b->total += sizes[i] + FENCE;
  }
  b->memory = sl_alloc (b->total, sizeof *b->memory);
  if (!b->memory) return -1;
  for (size_t i = 0; i < b->total; i++) b->memory[i] = MARK;
  b->at[0] = b->memory + FENCE;
  for (int i = 1; i < BUFFERS; i++)
    b->at[i] = b->at[i - 1] + b->size[i - 1] + FENCE;
  return 0;
}

/* Nothing between the buffers has changed since 'before', nor the inputs. */
static void inspect (sl_block_case *c, const buffers *b, const real *before,
                     const char *call, int backward) {
  for (int i = 0; i < BUFFERS; i++) {
    const real *end = b->at[i] + b->size[i];
    const int output = backward ? i == DS || i == DPARAM : i == W;
    for (int k = 0; k < FENCE && !c->fault[0]; k++)
      if (end[k] != MARK || b->at[i][-1 - k] != MARK)
        snprintf (c->fault, sizeof c->fault, "%s of a block wrote outside %s",
                  call, names[i]);
    if (!output && !c->fault[0] &&
        memcmp (b->at[i], before + (b->at[i] - b->memory),
                b->size[i] * sizeof *before) != 0)
      snprintf (c->fault, sizeof c->fault, "%s of a block changed %s", call,
                names[i]);
  }
}

static void take (const sl_block_case *c, const real *x, double *to) {
  for (int j = 0; j < c->n; j++)
    for (int i = 0; i < SL_QUERIES; i++) {
      const size_t at = (size_t)j * SL_QUERIES + (size_t)i;
      to[at] = j < c->visible_keys[i] ? x[at] : 0;
    }
}

static void fill (const sl_block_case *c, const buffers *b) {
  for (int j = 0; j < c->n; j++)
    for (int i = 0; i < SL_QUERIES; i++) {
      const size_t at = (size_t)j * SL_QUERIES + (size_t)i;
      const int is_visible = j < c->visible_keys[i];
      b->at[S][at] = is_visible ? (real)c->scores[at] : -SL_MAX_REAL;
      b->at[DW][at] = is_visible ? (real)c->dweights[at] : 0;
    }
  for (size_t k = 0; k < c->params; k++) {
    b->at[PARAM][k] = (real)c->param[k];
    b->at[DPARAM][k] = 1;
  }
}

static void by_block (sl_block_case *c, const buffers *b, sl_call *call,
                      const sl_block_kernel *block, real *before) {
  real visible[SL_QUERIES];
  for (int i = 0; i < SL_QUERIES; i++) visible[i] = (real)c->visible_keys[i];
  fill (c, b);
  call->visible_keys = visible;
  call->position = c->position;
  memcpy (before, b->memory, b->total * sizeof *before);
  block->forward (call, c->n, b->at[S], b->at[W]);
  inspect (c, b, before, "forward", 0);
  take (c, b->at[W], c->weights[SL_BY_BLOCK]);
  for (size_t i = 0; i < b->size[W]; i++)
    b->at[W][i] = (real)c->weights[SL_BY_BLOCK][i];
  memcpy (before, b->memory, b->total * sizeof *before);
  block->backward (call, c->n, b->at[S], b->at[W], b->at[DW], b->at[DS],
                   b->at[DPARAM]);
  inspect (c, b, before, "backward", 1);
  take (c, b->at[DS], c->dscores[SL_BY_BLOCK]);
}

static int by_rows (const sl_block_case *c, const buffers *b, sl_call *call,
                    const sl_row_kernel *row) {
  real *x = sl_alloc ((size_t)c->n * 6, sizeof *x);
  real *s = x, *w = s + c->n, *dw = w + c->n, *ds = dw + c->n;
  if (!x) return -1;
  call->visible_keys = NULL;
  call->scratch = ds + c->n;
  for (int i = 0; i < SL_QUERIES; i++) {
    const int n = c->visible_keys[i];
    call->position = c->position + i;
    for (int j = 0; j < n; j++) {
      s[j] = b->at[S][j * SL_QUERIES + i];
      dw[j] = b->at[DW][j * SL_QUERIES + i];
    }
    if (n == 0) continue;
    row->forward (call, n, s, w);
    row->backward (call, n, s, w, dw, ds, b->at[DPARAM]);
    for (int j = 0; j < n; j++) {
      c->weights[SL_BY_ROWS][j * SL_QUERIES + i] = w[j];
      c->dscores[SL_BY_ROWS][j * SL_QUERIES + i] = ds[j];
    }
  }
  sl_free (x);
  return 0;
}

static void take_params (const sl_block_case *c, const buffers *b, double *to) {
  for (size_t k = 0; k < c->params; k++) to[k] = b->at[DPARAM][k];
}

static int run (sl_block_case *c) {
  const sl_plugin *p = c->mechanism->loaded->plugin[SL_DTYPE];
  sl_call call = SL (sl_new_call) (c->mechanism, 1, 3, 8, 0.5);
  buffers b;
  real *before;
  int failed;
  if (reserve (&b, c)) return -1;
  before = sl_alloc (b.total, sizeof *before);
  failed = !before;
  call.head = 1;
  call.length = c->length;
  call.param = c->params ? b.at[PARAM] : NULL;
  call.scratch = b.at[SCRATCH];
  if (!failed) {
    by_block (c, &b, &call, p->block, before);
    take_params (c, &b, c->dparam[SL_BY_BLOCK]);
    fill (c, &b);
    failed = by_rows (c, &b, &call, p->row);
    take_params (c, &b, c->dparam[SL_BY_ROWS]);
  }
  sl_free (before);
  sl_free (b.memory);
  return failed ? -1 : 0;
}

extern const sl_block_runner SL (sl_block_runner);
const sl_block_runner SL (sl_block_runner) = { run };
