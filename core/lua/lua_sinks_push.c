/* lua_sinks_push.c - what was measured, as Lua tables and tensors. */
#include "lua/lua_sinks.h"
#include <math.h>

/* Absent where there is no such thing. */
static void set_number (lua_State *L, const char *name, double x) {
  lua_pushnumber (L, x);
  lua_setfield (L, -2, name);
}

static void set_some (lua_State *L, const char *name, double x) {
  if (!isnan (x)) set_number (L, name, x);
}

static void set_count (lua_State *L, const char *name, long n) {
  lua_pushinteger (L, n);
  lua_setfield (L, -2, name);
}

/* A measure by its name, left out where it is optional and NaN. */
static void set_measure (lua_State *L, sl_measure m, double x) {
  if (!m.is_optional || !isnan (x)) set_number (L, m.name, x);
}

static void set_means (lua_State *L, const sl_head_sinks *h, int class) {
  for (int i = 0; sl_row_measure_of (i).name != NULL; i++)
    set_measure (L, sl_row_measure_of (i), h->mean[class][i]);
}

/* classes = { plain = { rows =, first =, ... }, ... } */
static void set_classes (lua_State *L, const sl_head_sinks *h) {
  lua_createtable (L, 0, SL_ROW_CLASSES);
  for (int c = 0; c < SL_ROW_CLASSES; c++) {
    lua_createtable (L, 0, SL_MOST_ROW_MEASURES + 1);
    set_count (L, "rows", h->rows[c]);
    set_means (L, h, c);
    lua_setfield (L, -2, sl_row_class_names[c]);
  }
  lua_setfield (L, -2, "classes");
}

static void set_curve (lua_State *L, const sl_head_sinks *h, int n) {
  lua_createtable (L, n, 0);
  for (int i = 0; i < n; i++) {
    const sl_rate *r = &h->curve[i];
    lua_createtable (L, 0, 4);
    set_number (L, "threshold", r->threshold);
    for (int k = 0; k < SL_RATES; k++)
      set_measure (L, sl_segment_measure_of (k), r->rate[k]);
    lua_rawseti (L, -2, i + 1);
  }
  lua_setfield (L, -2, "curve");
}

static void set_shares (lua_State *L, const sl_head_sinks *h) {
  const struct {
    const char *name;
    const double *x;
  } tables[] = { { "share", h->share },
                 { "boost", h->boost },
                 { "largest", h->largest } };
  for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
    for (int i = 0; i < SL_SHARES; i++) {
      lua_pushfstring (L, "%s_%d", tables[k].name, sl_share_keys[i]);
      lua_pushnumber (L, tables[k].x[i]);
      lua_rawset (L, -3);
    }
  set_count (L, "share_rows", h->share_rows);
}

static void set_groups (lua_State *L, const sl_sinks *s, int head) {
  lua_createtable (L, s->groups, 0);
  for (int g = 0; g < s->groups; g++) {
    const sl_group_sinks *group =
        &s->group[(size_t)head * (size_t)s->groups + (size_t)g];
    lua_createtable (L, 0, 4);
    set_count (L, "rows", group->rows);
    set_number (L, "first", group->first);
    set_number (L, "dormant", group->dormant);
    set_some (L, "sink_logit", group->sink_logit);
    lua_rawseti (L, -2, g + 1);
  }
  lua_setfield (L, -2, "groups");
}

static void set_rows (lua_State *L, const sl_head_sinks *h) {
  set_count (L, "plain_rows", h->rows[SL_ROW_PLAIN]);
  set_count (L, "trigger_rows", h->rows[SL_ROW_TRIGGER]);
  set_count (L, "first_rows", h->rows[SL_ROW_FIRST]);
  set_count (L, "boundary_rows", h->rows[SL_ROW_BOUNDARY]);
  set_count (L, "padded_rows", h->padded_rows);
  set_count (L, "masked_rows", h->masked_rows);
  set_count (L, "empty_rows", h->padded_rows + h->masked_rows);
  set_count (L, "segments", h->segments);
}

static void push_head (lua_State *L, const sl_sinks *s, const sl_measuring *m,
                       int i) {
  const sl_head_sinks *h = &s->head[i];
  lua_createtable (L, 0, 48);
  set_count (L, "layer", i / s->heads + 1);
  set_count (L, "head", i % s->heads + 1);
  set_means (L, h, SL_ROW_PLAIN);
  set_number (L, "first_mean", h->mean[SL_ROW_PLAIN][SL_OF_FIRST]);
  set_number (L, "trigger_first", h->mean[SL_ROW_TRIGGER][SL_OF_FIRST]);
  lua_pushnil (L); /* first_mean says it */
  lua_setfield (L, -2, "first");
  set_number (L, "first_min", h->first_min);
  set_number (L, "first_std", h->first_std);
  set_number (L, "first_all", h->first_all);
  for (int k = 0; sl_segment_measure_of (k).name != NULL; k++)
    set_measure (L, sl_segment_measure_of (k), h->segment[k]);
  set_some (L, "peak_key", h->peak_key);
  set_rows (L, h);
  set_classes (L, h);
  if (s->thresholds > 0) set_curve (L, h, s->thresholds);
  if (m->measures & SL_MEASURE_SHARE) set_shares (L, h);
  if (s->groups > 0) set_groups (L, s, i);
}

static void push_array (lua_State *L, int ndim, const ptrdiff_t *dim,
                        const double *x, sl_dtype dtype) {
  sl_error e;
  size_t count = 1;
  sl_tensor *t = sl_tensor_new (dtype, ndim, dim, &e);
  if (t == NULL) sl_lua_raise (L, &e);
  for (int i = 0; i < ndim; i++) count *= (size_t)dim[i];
  sl_tensor_from_doubles (t, count, x, &e);
  sl_lua_push_tensor (L, t);
}

/* (layers, heads, position) each */
static void set_positions (lua_State *L, const sl_sinks *s) {
  const ptrdiff_t dim[3] = { s->layers, s->heads, s->tokens };
  for (int i = 0; i < SL_POSITION_MEASURES; i++) {
    if (s->at[i] == NULL) continue;
    push_array (L, 3, dim, s->at[i], SL_F64);
    lua_setfield (L, -2, sl_position_measure_names[i]);
  }
}

/* mean, std (queries, keys) and null_mass_map (queries, extra) of head 'kept';
** -1: of all heads, with two axes more. */
static void set_maps (lua_State *L, const sl_sinks *s, int kept,
                      sl_dtype dtype) {
  const size_t t = (size_t)s->tokens;
  const size_t at = kept < 0 ? 0 : (size_t)kept * t;
  ptrdiff_t dim[4] = { s->layers, s->heads, s->tokens, s->tokens };
  const int skip = kept < 0 ? 0 : 2;
  push_array (L, 4 - skip, dim + skip, s->mean + at * t, dtype);
  lua_setfield (L, -2, "mean");
  push_array (L, 4 - skip, dim + skip, s->std + at * t, dtype);
  lua_setfield (L, -2, "std");
  dim[3] = s->extra;
  push_array (L, 4 - skip, dim + skip, s->null_mass_map + at * (size_t)s->extra,
              dtype);
  lua_setfield (L, -2, "null_mass_map");
}

static void set_kept (lua_State *L, const sl_sinks *s, const sl_measuring *m,
                      sl_dtype dtype) {
  lua_createtable (L, m->keeps, 0);
  for (int i = 0; i < m->keeps; i++) {
    lua_createtable (L, 0, 5);
    set_count (L, "layer", m->keep[i].layer + 1);
    set_count (L, "head", m->keep[i].head + 1);
    set_maps (L, s, i, dtype);
    lua_rawseti (L, -2, i + 1);
  }
  lua_setfield (L, -2, "kept");
}

void sl_lua_push_sinks (lua_State *L, const sl_sinks *s, const sl_measuring *m,
                        sl_dtype dtype) {
  const int n = s->layers * s->heads;
  lua_createtable (L, 0, 16);
  set_count (L, "samples", s->samples);
  set_count (L, "tokens", s->tokens);
  set_number (L, "threshold", s->threshold);
  lua_createtable (L, n, 0);
  for (int i = 0; i < n; i++) {
    push_head (L, s, m, i);
    lua_rawseti (L, -2, i + 1);
  }
  lua_setfield (L, -2, "heads");
  set_positions (L, s);
  if (m->maps)
    set_maps (L, s, -1, dtype);
  else if (m->keeps > 0)
    set_kept (L, s, m, dtype);
}
