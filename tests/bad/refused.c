/* refused.c - plugins that the loader refuses, each for one reason.
**
** Built once per case with -DCASE_<case>: the defaults below make a plugin that
** loads, and a case redefines one of them. The kernels never run, so one build
** holds the descriptors of both precisions. */
#include <sinklab/plugin.h>

typedef struct config {
  int whole, other;
  double number;
} config;

static void forward (const sl_call *c, int n, const real *s, real *w) {
  (void)c;
  for (int i = 0; i < n; i++) w[i] = s[i];
}

static void backward (const sl_call *c, int n, const real *s, const real *w,
                      const real *dw, real *ds, real *dparam) {
  (void)c, (void)s, (void)w, (void)dparam;
  for (int i = 0; i < n; i++) ds[i] = dw[i];
}

/* Only some cases use these. */
#define SOME static __attribute__ ((unused)) const
SOME char *const names[] = { "one", "two", NULL };
SOME char *const no_names[] = { NULL };
SOME sl_row_kernel whole_row = { forward, backward };
SOME sl_row_kernel half_row = { forward, NULL };
SOME sl_block_kernel whole_block = { forward, backward };
SOME sl_block_kernel half_block = { NULL, backward };

static void gate (const sl_call *c, int n, const real *o, const real *z,
                  real *y) {
  (void)c, (void)n, (void)o, (void)z, (void)y;
}

static void gate_backward (const sl_call *c, int n, const real *o,
                           const real *z, const real *dy, real *d_o, real *dz,
                           real *dparam) {
  (void)c, (void)n, (void)o, (void)z, (void)dy, (void)d_o, (void)dz;
  (void)dparam;
}

SOME sl_gate_kernel whole_gate = { gate, gate_backward };
SOME sl_input input[] = { { .name = "z", .width = { 1, 0 } }, { 0 } };
SOME sl_mixer_kernel no_mix = { 0 };

/* The defaults: a correct option list, no parameters. */
#define WHOLE \
  { "whole", "", SL_INT, offsetof (config, whole), 1, 0, 9, NULL }
#define NUMBER \
  { "number", "", SL_REAL, offsetof (config, number), 1, 0, 9, NULL }

#if defined CASE_major
#define ABI SL_ABI_MAJOR + 1, 0, sizeof (sl_plugin)
#elif defined CASE_minor
#define ABI SL_ABI_MAJOR, SL_ABI_MINOR + 1, sizeof (sl_plugin)
#elif defined CASE_size
#define ABI SL_ABI_MAJOR, SL_ABI_MINOR, sizeof (sl_plugin) - 8
#elif defined CASE_other_name
#define NAME "another"
#elif defined CASE_no_name
#define NAME NULL
#elif defined CASE_no_doc
#define DOC NULL
#elif defined CASE_properties
#define PROPERTIES 0x40
#elif defined CASE_causal_only
#define PROPERTIES SL_CAUSAL_ONLY
#elif defined CASE_no_shape
#define ROW NULL
#elif defined CASE_two_shapes
#define MIX &no_mix
#elif defined CASE_half_row
#define ROW &half_row
#elif defined CASE_half_block
#define BLOCK &half_block
#elif defined CASE_block_alone
#define ROW NULL
#define GATE &whole_gate
#define BLOCK &whole_block
#elif defined CASE_row_input
#define INPUTS input
#elif defined CASE_option_name
#define OPTIONS \
  { "9x", "", SL_INT, 0, 1, 0, 9, NULL }
#elif defined CASE_option_twice
#define OPTIONS WHOLE, WHOLE
#elif defined CASE_option_type
#define OPTIONS \
  { "whole", "", 4, 0, 1, 0, 9, NULL }
#elif defined CASE_option_outside
#define OPTIONS \
  { "whole", "", SL_INT, sizeof (config), 1, 0, 9, NULL }
#elif defined CASE_option_aligned
#define OPTIONS \
  { "number", "", SL_REAL, 4, 1, 0, 9, NULL }
#elif defined CASE_option_overlap
#define OPTIONS                                                  \
  WHOLE, {                                                       \
    "other", "", SL_INT, offsetof (config, whole), 1, 0, 9, NULL \
  }
#elif defined CASE_option_default
#define OPTIONS \
  { "whole", "", SL_INT, 0, 10, 0, 9, NULL }
#elif defined CASE_option_fraction
#define OPTIONS \
  { "whole", "", SL_INT, 0, 0.5, 0, 9, NULL }
#elif defined CASE_option_range
#define OPTIONS \
  { "number", "", SL_REAL, 8, 1, 9, 0, NULL }
#elif defined CASE_option_int_range
#define OPTIONS \
  { "whole", "", SL_INT, 0, 1, 0, 1e12, NULL }
#elif defined CASE_option_no_choices
#define OPTIONS \
  { "whole", "", SL_CHOICE, 0, 0, 0, 0, no_names }
#elif defined CASE_option_choice_default
#define OPTIONS \
  { "whole", "", SL_CHOICE, 0, 2, 0, 0, names }
#elif defined CASE_config_size
#define CONFIG_SIZE 1 << 20
#elif defined CASE_param_width
#define PARAMS \
  { "p", "", { 0, 0 }, SL_DEFAULT, 0 }
#elif defined CASE_param_init
#define PARAMS \
  { "p", "", { 0, 1 }, 4, 0 }
#elif defined CASE_param_scale
#define PARAMS \
  { "p", "", { 0, 1 }, SL_NORMAL, -1 }
#elif defined CASE_param_twice
#define PARAMS                            \
  { "p", "", { 0, 1 }, SL_DEFAULT, 0 }, { \
    "p", "", { 0, 1 }, SL_DEFAULT, 0      \
  }
#elif defined CASE_differ_version
#define OTHER_VERSION "2"
#elif defined CASE_differ_option
#define OTHER_OPTIONS \
  { "whole", "", SL_INT, offsetof (config, whole), 2, 0, 9, NULL }, NUMBER
#endif

#ifndef ABI
#define ABI SL_ABI
#endif
#ifndef NAME
#define NAME CASE_NAME
#endif
#ifndef DOC
#define DOC "refused"
#endif
#ifndef PROPERTIES
#define PROPERTIES 0
#endif
#ifndef ROW
#define ROW &whole_row
#endif
#ifndef GATE
#define GATE NULL
#endif
#ifndef BLOCK
#define BLOCK NULL
#endif
#ifndef MIX
#define MIX NULL
#endif
#ifndef INPUTS
#define INPUTS NULL
#endif
#ifndef OPTIONS
#define OPTIONS WHOLE, NUMBER
#endif
#ifndef OTHER_OPTIONS
#define OTHER_OPTIONS OPTIONS
#endif
#ifndef OTHER_VERSION
#define OTHER_VERSION "1"
#endif
#ifndef CONFIG_SIZE
#define CONFIG_SIZE sizeof (config)
#endif
#ifndef PARAMS
#define PARAMS \
  { 0 }
#endif

SOME sl_option list[] = { OPTIONS, { 0 } };
SOME sl_option other_list[] = { OTHER_OPTIONS, { 0 } };
static const sl_param params[] = { PARAMS, { 0 } };

#ifdef CASE_option_endless
/* Longer than the limit of the loader, but ended. */
static const sl_option endless[301] = { [0 ... 299] = WHOLE };
#define FIRST endless
#else
#define FIRST list
#endif

/* Uses everything above, also in a case that lacks one of them. */
#define PLUGIN(symbol, version, options)                                   \
  __attribute__ ((visibility ("default"))) extern const sl_plugin symbol;  \
  const sl_plugin symbol = {                                               \
    ABI,    NAME, version, DOC,  PROPERTIES, CONFIG_SIZE, options, params, \
    INPUTS, NULL, ROW,     GATE, MIX,        NULL,        BLOCK            \
  }

#ifndef CASE_only_f64
PLUGIN (sinklab_plugin_f32, OTHER_VERSION, other_list);
#endif
#ifndef CASE_only_f32
PLUGIN (sinklab_plugin_f64, "1", FIRST);
#endif
