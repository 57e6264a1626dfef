/* row_cases.h - every row mechanism with options, and its weights by the
** published formula: literal long double, none of the plugins'
** rearrangements. */
#ifndef ROW_CASES_H
#define ROW_CASES_H
#include "attention/mechanism.h"

/* One query: n scores, which are those of tokens first..first+n-1; 'pos' is the
** query's own token. */
typedef struct row_query {
  int n, pos, first, length;
  const long double *s;
  long double param; /* of mechanisms that have one */
} row_query;

typedef struct row_case {
  const char *name; /* of the case, for messages */
  const char *plugin;
  void (*weights) (const struct row_case *c, const row_query *q,
                   long double *w);
  sl_setting settings[4]; /* ended by a NULL name */
  long double x[3];       /* the numbers of the formula */
  int param;              /* 1: one learned number a head */
  double start;           /* what it starts from */
} row_case;

extern const row_case row_cases[];
extern const int row_case_count;

/* The mechanism of a plugin of the build; fails the test if it is refused. */
const sl_mechanism *row_mechanism (const char *plugin,
                                   const sl_setting *settings);
#endif
