/* inputs.h - the inputs of an op_case, short enough for tables: an axis count
** and as many sizes end each. */
#ifndef INPUTS_H
#define INPUTS_H
#include "support/op_case.h"

/* clang-format off */
#define VALUES(kind, low, high, ndim, ...) \
  { kind, low, high, ndim, { __VA_ARGS__ } }
#define IN(low, high, ...) VALUES (OP_REAL, low, high, __VA_ARGS__)
#define FIXED(low, high, ...) VALUES (OP_FIXED, low, high, __VA_ARGS__)
#define WHOLE(low, high, ...) VALUES (OP_WHOLE, low, high, __VA_ARGS__)
#define SCALAR(low, high) VALUES (OP_REAL, low, high, 0, 0)
/* Of b sequences of at most t tokens. */
#define LENGTHS(t, b) VALUES (OP_WHOLE, 0, t, 1, b)
/* clang-format on */
#endif
