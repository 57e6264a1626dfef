/* cases_layers.c - gradient cases of the layer operations. */
#include "ops/ops.h"
#include "support/op_case.h"

/* clang-format off */
#define IN(...)         { OP_REAL, -1, 1, __VA_ARGS__ }
#define WHOLE(high, ...) { OP_WHOLE, 0, high, __VA_ARGS__ }
#define DIM(...)        { __VA_ARGS__ }
#define CASE(name, note_, attribute, n, ...) \
  { .op = name, .note = note_, .attr = attribute, .n_in = n, \
    .in = { __VA_ARGS__ } }

static const sl_axis_attr end = { -1 }, start = { 0 }, middle = { 1 };
static const sl_norm_attr eps = { 1e-5 }, wide = { 0.5 };
static const sl_gelu_attr exact = { 0 }, approximate = { 1 };
static const sl_cross_entropy_attr no_ignore = { -100 }, two = { 2 };

#define VECTOR(n)     IN (1, DIM (n))
#define MATRIX(m, n)  IN (2, DIM (m, n))
#define CUBE(b, m, n) IN (3, DIM (b, m, n))

static const op_case cases[] = {
  CASE ("linear", "a matrix", NULL, 2, MATRIX (4, 3), MATRIX (5, 3)),
  CASE ("linear", "a matrix, with bias", NULL, 3,
        MATRIX (4, 3), MATRIX (5, 3), VECTOR (5)),
  CASE ("linear", "one vector", NULL, 3, VECTOR (6), MATRIX (2, 6), VECTOR (2)),
  CASE ("linear", "two leading axes", NULL, 3,
        CUBE (3, 2, 4), MATRIX (3, 4), VECTOR (3)),
  CASE ("linear", "three leading axes", NULL, 3,
        IN (4, DIM (2, 3, 2, 3)), MATRIX (4, 3), VECTOR (4)),
  CASE ("linear", "wider than a tile", NULL, 3,
        MATRIX (9, 7), MATRIX (11, 7), VECTOR (11)),
  CASE ("linear", "no rows", NULL, 3, MATRIX (0, 3), MATRIX (5, 3), VECTOR (5)),
  CASE ("matmul", "matrices", NULL, 2, MATRIX (4, 3), MATRIX (3, 5)),
  CASE ("matmul", "square, one shape", NULL, 2, MATRIX (3, 3), MATRIX (3, 3)),
  CASE ("matmul", "batch against batch", NULL, 2,
        CUBE (3, 4, 2), CUBE (3, 2, 5)),
  CASE ("matmul", "batch against one", NULL, 2, CUBE (3, 4, 2), MATRIX (2, 5)),
  CASE ("matmul", "one against batch", NULL, 2, MATRIX (4, 2), CUBE (3, 2, 5)),
  CASE ("matmul", "(3, 1) against (2) batches", NULL, 2,
        IN (4, DIM (3, 1, 2, 3)), CUBE (2, 3, 4)),
  CASE ("matmul", "wider than a tile", NULL, 2,
        CUBE (2, 7, 5), CUBE (2, 5, 11)),
  CASE ("matmul", "row and column", NULL, 2, MATRIX (1, 7), MATRIX (7, 1)),
  CASE ("softmax", "last axis", &end, 1, CUBE (2, 3, 5)),
  CASE ("softmax", "first axis", &start, 1, CUBE (4, 3, 2)),
  CASE ("softmax", "middle axis", &middle, 1, CUBE (2, 5, 3)),
  CASE ("softmax", "longer than the lanes", &end, 1, MATRIX (2, 37)),
  CASE ("softmax", "one element", &end, 1, MATRIX (3, 1)),
  CASE ("log_softmax", "last axis", &end, 1, CUBE (2, 3, 5)),
  CASE ("log_softmax", "first axis", &start, 1, CUBE (4, 3, 2)),
  CASE ("log_softmax", "longer than the lanes", &end, 1, MATRIX (2, 37)),
  CASE ("layer_norm", "x alone", &wide, 1, CUBE (2, 3, 5)),
  CASE ("layer_norm", "with gamma", &wide, 2, MATRIX (3, 5), VECTOR (5)),
  CASE ("layer_norm", "with gamma and beta", &wide, 3,
        CUBE (2, 3, 5), VECTOR (5), VECTOR (5)),
  CASE ("layer_norm", "longer than the lanes", &eps, 3,
        MATRIX (3, 37), VECTOR (37), VECTOR (37)),
  CASE ("layer_norm", "one row", &wide, 3, VECTOR (6), VECTOR (6), VECTOR (6)),
  CASE ("rms_norm", "x alone", &wide, 1, CUBE (2, 3, 5)),
  CASE ("rms_norm", "with gamma", &wide, 2, CUBE (2, 3, 5), VECTOR (5)),
  CASE ("rms_norm", "longer than the lanes", &eps, 2,
        MATRIX (3, 37), VECTOR (37)),
  CASE ("gelu", "erf", &exact, 1, { OP_REAL, -4, 4, 2, DIM (5, 7) }),
  CASE ("gelu", "tanh", &approximate, 1, { OP_REAL, -4, 4, 2, DIM (5, 7) }),
  CASE ("silu", "", NULL, 1, { OP_REAL, -6, 6, 2, DIM (5, 7) }),
  CASE ("cross_entropy", "a matrix", &no_ignore, 2,
        MATRIX (4, 5), WHOLE (4, 1, DIM (4))),
  CASE ("cross_entropy", "some ignored", &two, 2,
        CUBE (3, 4, 5), WHOLE (4, 2, DIM (3, 4))),
  CASE ("cross_entropy", "more classes than the lanes", &no_ignore, 2,
        MATRIX (3, 37), WHOLE (36, 1, DIM (3))),
  CASE ("cross_entropy", "one row", &no_ignore, 2,
        VECTOR (5), WHOLE (4, 0, DIM (0))),
  CASE ("mse", "one shape", NULL, 2, CUBE (2, 3, 4), CUBE (2, 3, 4)),
  CASE ("mse", "longer than a block", NULL, 2,
        MATRIX (2, 130), MATRIX (2, 130)),
  CASE ("mse", "scalars", NULL, 2, IN (0, DIM (0)), IN (0, DIM (0))),
  { 0 },
};
/* clang-format on */

const op_case *cases_layers (void) {
  return cases;
}
