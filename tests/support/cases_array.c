/* cases_array.c - gradient cases of the array operations. */
#include "ops/ops.h"
#include "support/inputs.h"

#define ONE(name, low, high)                                                   \
  {                                                                            \
    .op = name, .note = "(3, 5)", .n_in = 1, .in = { IN (low, high, 2, 3, 5) } \
  }

/* Two inputs of one shape; rows against a column and a vector; a scalar; a last
** axis longer than a block of the walk. */
#define TWO(name, low, high)                                             \
  { .op = name,                                                          \
    .note = "(3, 5) and (3, 5)",                                         \
    .n_in = 2,                                                           \
    .in = { IN (low, high, 2, 3, 5), IN (low, high, 2, 3, 5) } },        \
      { .op = name,                                                      \
        .note = "(2, 3, 4) and (3, 1)",                                  \
        .n_in = 2,                                                       \
        .in = { IN (low, high, 3, 2, 3, 4), IN (low, high, 2, 3, 1) } }, \
      { .op = name,                                                      \
        .note = "(2, 1, 3) and (4, 1)",                                  \
        .n_in = 2,                                                       \
        .in = { IN (low, high, 3, 2, 1, 3), IN (low, high, 2, 4, 1) } }, \
      { .op = name,                                                      \
        .note = "(5) and a scalar",                                      \
        .n_in = 2,                                                       \
        .in = { IN (low, high, 1, 5), SCALAR (low, high) } },            \
  {                                                                      \
    .op = name, .note = "a vector and a matrix", .n_in = 2, .in = {      \
      IN (low, high, 1, 7),                                              \
      IN (low, high, 2, 6, 7)                                            \
    }                                                                    \
  }

#define KINKED(name, shape_note, n, ...)                            \
  {                                                                 \
    .op = name, .note = shape_note, .kink = 0.1, .n_in = n, .in = { \
      __VA_ARGS__                                                   \
    }                                                               \
  }

static const sl_reduce_attr all = { 0 }, first = { .axes = 1 },
                            last = { .axes = 4, .keep = 1 },
                            outer = { .axes = 5 }, inner = { .axes = 6 },
                            unbiased = { .axes = 2, .correction = 1 };
static const sl_axis_attr axis_0 = { 0 }, axis_1 = { 1 }, end = { -1 };

#define REDUCE(name, attribute, note_)                                \
  {                                                                   \
    .op = name, .note = note_, .attr = &attribute, .n_in = 1, .in = { \
      IN (-1, 1, 3, 3, 4, 5)                                          \
    }                                                                 \
  }
#define REDUCTIONS(name)                                          \
  REDUCE (name, all, "all axes"), REDUCE (name, first, "axis 0"), \
      REDUCE (name, last, "axis 2, kept"),                        \
      REDUCE (name, outer, "axes 0 and 2"),                       \
      REDUCE (name, inner, "axes 1 and 2")

static const op_case cases[] = {
  TWO ("add", -1, 1),
  TWO ("sub", -1, 1),
  TWO ("mul", -1, 1),
  TWO ("div", 0.5, 1.5),
  TWO ("pow", 0.5, 1.5),
  { .op = "mul",
    .note = "last axis longer than a block",
    .n_in = 2,
    .in = { IN (-1, 1, 2, 2, 300), IN (-1, 1, 1, 300) } },
  { .op = "add",
    .note = "sums longer than a block",
    .n_in = 2,
    .in = { IN (-1, 1, 2, 2, 300), IN (-1, 1, 2, 2, 1) } },
  { .op = "pow",
    .note = "square of any sign",
    .n_in = 2,
    .in = { IN (-1, 1, 1, 6), FIXED (2, 2, 0, 0) } },
  KINKED ("maximum", "one shape", 2, IN (0, 0, 2, 3, 5), IN (0, 0, 2, 3, 5)),
  KINKED ("maximum", "broadcast", 2, IN (0, 0, 2, 3, 5), IN (0, 0, 2, 3, 1)),
  KINKED ("minimum", "one shape", 2, IN (0, 0, 2, 3, 5), IN (0, 0, 2, 3, 5)),
  KINKED ("minimum", "broadcast", 2, IN (0, 0, 1, 5), IN (0, 0, 2, 3, 1)),
  { .op = "where",
    .note = "one shape",
    .n_in = 3,
    .in = { WHOLE (0, 1, 2, 3, 5), IN (-1, 1, 2, 3, 5), IN (-1, 1, 2, 3, 5) } },
  { .op = "where",
    .note = "broadcast",
    .n_in = 3,
    .in = { WHOLE (0, 1, 2, 3, 1), IN (-1, 1, 1, 5), SCALAR (-1, 1) } },
  ONE ("neg", -1, 1),
  ONE ("exp", -2, 2),
  ONE ("log", 0.5, 2),
  ONE ("tanh", -2, 2),
  ONE ("sigmoid", -2, 2),
  KINKED ("relu", "(3, 5)", 1, IN (0, 0, 2, 3, 5)),
  KINKED ("abs", "(3, 5)", 1, IN (0, 0, 2, 3, 5)),
  ONE ("sqrt", 0.5, 2),
  ONE ("square", -1, 1),
  ONE ("sin", -3, 3),
  ONE ("cos", -3, 3),
  ONE ("copy", -1, 1),
  REDUCTIONS ("sum"),
  REDUCTIONS ("mean"),
  REDUCTIONS ("var"),
  REDUCE ("var", unbiased, "axis 1, unbiased"),
  { .op = "sum",
    .note = "a scalar",
    .attr = &all,
    .n_in = 1,
    .in = { SCALAR (-1, 1) } },
  { .op = "max",
    .note = "all axes",
    .attr = &all,
    .kink = 0.1,
    .n_in = 1,
    .in = { IN (0, 0, 3, 3, 4, 5) } },
  { .op = "max",
    .note = "axes 0 and 2",
    .attr = &outer,
    .kink = 0.1,
    .n_in = 1,
    .in = { IN (0, 0, 3, 3, 4, 5) } },
  { .op = "max",
    .note = "axis 2, kept",
    .attr = &last,
    .kink = 0.1,
    .n_in = 1,
    .in = { IN (0, 0, 3, 3, 4, 5) } },
  { .op = "cumsum",
    .note = "axis 0",
    .attr = &axis_0,
    .n_in = 1,
    .in = { IN (-1, 1, 2, 4, 3) } },
  { .op = "cumsum",
    .note = "last axis",
    .attr = &end,
    .n_in = 1,
    .in = { IN (-1, 1, 2, 4, 3) } },
  { .op = "concat",
    .note = "three along axis 1",
    .attr = &axis_1,
    .n_in = 3,
    .in = { IN (-1, 1, 3, 2, 3, 2), IN (-1, 1, 3, 2, 1, 2),
            IN (-1, 1, 3, 2, 2, 2) } },
  { .op = "concat",
    .note = "two along the last axis",
    .attr = &end,
    .n_in = 2,
    .in = { IN (-1, 1, 2, 3, 2), IN (-1, 1, 2, 3, 2) } },
  { .op = "embedding",
    .note = "ids (2, 3)",
    .n_in = 2,
    .in = { IN (-1, 1, 2, 4, 3), WHOLE (0, 3, 2, 2, 3) } },
  { .op = "gather",
    .note = "axis 1, index of x's other sizes",
    .attr = &axis_1,
    .n_in = 2,
    .in = { IN (-1, 1, 3, 2, 4, 3), WHOLE (0, 3, 3, 2, 5, 3) } },
  { .op = "gather",
    .note = "axis 1, one index for a row",
    .attr = &axis_1,
    .n_in = 2,
    .in = { IN (-1, 1, 3, 2, 4, 3), WHOLE (0, 3, 3, 2, 1, 1) } },
  { .op = "gather",
    .note = "last axis, x broadcasts",
    .attr = &end,
    .n_in = 2,
    .in = { IN (-1, 1, 2, 1, 4), WHOLE (0, 3, 2, 3, 2) } },
  { .op = "scatter_add",
    .note = "axis 0",
    .attr = &axis_0,
    .n_in = 3,
    .in = { IN (-1, 1, 2, 4, 3), WHOLE (0, 3, 2, 5, 3), IN (-1, 1, 2, 5, 3) } },
  { .op = "scatter_add",
    .note = "last axis, index and source broadcast",
    .attr = &end,
    .n_in = 3,
    .in = { IN (-1, 1, 2, 4, 3), WHOLE (0, 2, 2, 1, 2), IN (-1, 1, 2, 4, 1) } },
  { .op = NULL }
};

const op_case *cases_array (void) {
  return cases;
}
