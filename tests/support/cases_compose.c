/* cases_compose.c - gradient cases of the gate and mixer ops, with the plugins
** that come with sinklab. */
#include "attention/attention.h"
#include "support/inputs.h"
#include "support/suite.h"
#include <stdio.h>

/* A plugin with options, and the attributes that get it. */
typedef struct setting {
  const char *plugin;
  sl_setting options[3]; /* up to the first without a name */
  sl_attention_attr gate;
  sl_attention_attr mixer;
} setting;

#define GATE(...) .gate = { .heads = 2, __VA_ARGS__ }
#define MIX(by, ...)                                                          \
  .mixer = {                                                                  \
    .heads = 2, .d_head = 3, .scale = by, .visibility = { 1, 0 }, __VA_ARGS__ \
  }

static setting
    elementwise = { "sigmoid_gate", .gate = { .heads = 2 } },
    shared = { "sigmoid_gate",
               { { "shared", 1, NULL } },
               GATE (.has_length = 1) },
    headwise = { "sigmoid_gate",
                 { { "granularity", 0, "headwise" } },
                 GATE (.has_length = 0) },
    both = { "sigmoid_gate",
             { { "granularity", 0, "headwise" }, { "shared", 1, NULL } },
             GATE (.has_length = 0) },
    conditional = { "head_gate",
                    { { NULL, 0, NULL } },
                    GATE (.has_param = 1, .has_length = 1) },
    unconditional = { "head_gate",
                      { { "conditional", 0, NULL } },
                      GATE (.has_param = 1) },
    elu1 = { "linear", { { NULL, 0, NULL } }, MIX (0.7, .has_length = 1) },
    elu1_sums = { "linear",
                  { { "normalise", 0, NULL } },
                  MIX (-0.3, .has_length = 0) },
    identity = { "linear",
                 { { "feature", 0, "identity" }, { "normalise", 0, NULL } },
                 MIX (0.7, .has_length = 0) },
    divided = { "linear",
                { { "feature", 0, "identity" } },
                MIX (1, .has_length = 0) },
    differential = { "differential",
                     { { NULL, 0, NULL } },
                     MIX (0.7, .has_param = 1, .layer = 2, .has_length = 1) },
    narrow = {
      "differential",
      { { "wide", 0, NULL }, { "learned", 0, NULL }, { "norm", 0, NULL } },
      .mixer = { .heads = 2, .d_head = 2, .scale = 1, .visibility = { 0, 3 } }
    };

static setting *const settings[] = {
  &elementwise, &shared,    &headwise, &both,    &conditional,  &unconditional,
  &elu1,        &elu1_sums, &identity, &divided, &differential, &narrow
};

#define GATED(setting, note, n, ...)                               \
  {                                                                \
    .op = "gate", #setting note, &setting.gate, .n_in = n, .in = { \
      __VA_ARGS__                                                  \
    }                                                              \
  }
#define MIXED(setting, note, step, n, ...)                                 \
  {                                                                        \
    .op = "mixer", #setting note, &setting.mixer, .kink = step, .n_in = n, \
    .in = {                                                                \
      __VA_ARGS__                                                          \
    }                                                                      \
  }
#define QKV(t) \
  IN (-1, 1, 3, 2, t, 6), IN (-1, 1, 3, 2, t, 6), IN (-1, 1, 3, 2, t, 6)

/* elu has no second derivative at 0: distinct numbers around it. */
static const op_case cases[] = {
  GATED (elementwise, "", 2, IN (-1, 1, 3, 2, 3, 6), IN (-3, 3, 3, 2, 3, 6)),
  GATED (shared, ", lengths", 3, IN (-1, 1, 3, 2, 4, 6), IN (-3, 3, 3, 2, 4, 3),
         LENGTHS (4, 2)),
  GATED (headwise, "", 2, IN (-1, 1, 3, 2, 3, 6), IN (-3, 3, 3, 2, 3, 2)),
  GATED (both, "", 2, IN (-1, 1, 3, 2, 3, 6), IN (-3, 3, 3, 2, 3, 1)),
  GATED (conditional, ", lengths", 4, IN (-1, 1, 3, 3, 4, 4),
         IN (-3, 3, 3, 3, 4, 2), IN (-2, 2, 2, 2, 1), LENGTHS (4, 3)),
  GATED (unconditional, "", 2, IN (-1, 1, 3, 2, 3, 4), IN (-2, 2, 2, 2, 1)),
  MIXED (elu1, ", lengths", 0.02, 4, QKV (5), LENGTHS (5, 2)),
  MIXED (elu1_sums, "", 0.02, 3, QKV (4)),
  MIXED (identity, "", 0, 3, QKV (4)),
  /* sums of a row above 1 from the second token on, as of the first */
  MIXED (divided, "", 0, 3, IN (1, 2, 3, 2, 4, 6), IN (1, 2, 3, 2, 4, 6),
         IN (-1, 1, 3, 2, 4, 6)),
  MIXED (differential, ", lengths", 0, 7, QKV (4), IN (-1, 1, 3, 2, 4, 6),
         IN (-1, 1, 3, 2, 4, 12), IN (-0.5, 0.5, 2, 2, 12), LENGTHS (4, 2)),
  MIXED (narrow, ", window", 0, 5, IN (-1, 1, 3, 2, 4, 4),
         IN (-1, 1, 3, 2, 4, 4), IN (-1, 1, 3, 2, 4, 4), IN (-1, 1, 3, 2, 4, 4),
         IN (-1, 1, 3, 2, 4, 4)),
  { .op = NULL }
};

const op_case *cases_compose (void) {
  sl_error e = { "" };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    setting *s = settings[i];
    const sl_mechanism *m;
    const sl_loaded *l;
    char path[512];
    int n = 0;
    snprintf (path, sizeof path, SINKLAB_TEST_BUILD "/plugins/%s.so",
              s->plugin);
    l = sl_plugin_load (path, &e);
    ck_assert_msg (l != NULL, "%s", e.text);
    while (n < 3 && s->options[n].name) n++;
    m = sl_mechanism_new (l, n, s->options, &e);
    ck_assert_msg (m != NULL, "%s", e.text);
    s->gate.mechanism = s->mixer.mechanism = m;
  }
  return cases;
}
