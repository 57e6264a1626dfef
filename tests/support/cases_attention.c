/* cases_attention.c - gradient cases of the attention layer. */
#include "attention/attention.h"
#include "support/inputs.h"
#include "support/suite.h"

/* Plugins are loaded when the table is asked for; the attributes point here. */
enum { SOFTMAX, RELU, AFFINE, PLUGINS };
static const char *const paths[PLUGINS] = {
  SINKLAB_TEST_BUILD "/plugins/softmax.so",
  SINKLAB_TEST_BUILD "/plugins/relu.so",
  SINKLAB_TEST_BUILD "/tests/good/affine.so",
};

/* Attributes and the plugin that they get. */
typedef struct setting {
  int plugin;
  sl_attention_attr attr;
} setting;

static setting causal = { SOFTMAX,
                          { .heads = 2,
                            .kv_heads = 2,
                            .d_head = 3,
                            .scale = 0.7,
                            .visibility = { 1, 0 } } },
               groups = { SOFTMAX,
                          { .heads = 4,
                            .kv_heads = 2,
                            .d_head = 2,
                            .scale = 1,
                            .visibility = { 1, 3 },
                            .alibi = 1,
                            .has_length = 1,
                            .block = 2 } },
               full = { SOFTMAX,
                        { .heads = 2,
                          .kv_heads = 1,
                          .d_head = 2,
                          .scale = -1,
                          .visibility = { 0, 2 },
                          .has_length = 1,
                          .recompute_from = 1,
                          .block = 3 } },
               recomputed = { SOFTMAX,
                              { .heads = 1,
                                .kv_heads = 1,
                                .d_head = 4,
                                .scale = 0.5,
                                .visibility = { 1, 0 },
                                .alibi = 1,
                                .recompute_from = 1,
                                .block = 2 } },
               params = { AFFINE,
                          { .heads = 2,
                            .kv_heads = 2,
                            .d_head = 2,
                            .scale = 1,
                            .visibility = { 1, 0 },
                            .has_param = 1,
                            .has_length = 1 } },
               virtual_keys = { SOFTMAX,
                                { .heads = 4,
                                  .kv_heads = 2,
                                  .d_head = 2,
                                  .scale = 1,
                                  .visibility = { 1, 0 },
                                  .alibi = 1,
                                  .has_length = 1,
                                  .recompute_from = 1,
                                  .block = 2,
                                  .virtual_keys = 2 } },
               virtual_key = { RELU,
                               { .heads = 1,
                                 .kv_heads = 1,
                                 .d_head = 3,
                                 .scale = 1,
                                 .visibility = { 0, 0 },
                                 .virtual_keys = 1 } },
               one = { SOFTMAX,
                       { .heads = 1,
                         .kv_heads = 1,
                         .d_head = 1,
                         .scale = 1,
                         .visibility = { 1, 0 } } },
               relu = { RELU,
                        { .heads = 1,
                          .kv_heads = 1,
                          .d_head = 3,
                          .scale = 1,
                          .visibility = { 1, 0 } } },
               scores = { SOFTMAX, { .d_head = 1, .visibility = { 1, 0 } } },
               scores_full = { SOFTMAX,
                               { .d_head = 1,
                                 .visibility = { 0, 2 },
                                 .has_length = 1 } },
               scores_relu = { RELU, { .d_head = 1, .visibility = { 1, 0 } } },
               scores_params = { AFFINE,
                                 { .d_head = 3,
                                   .visibility = { 1, 2 },
                                   .has_param = 1,
                                   .has_length = 1 } };

static setting *const settings[] = {
  &causal,        &groups,       &full,       &recomputed,  &params,
  &one,           &relu,         &scores,     &scores_full, &scores_relu,
  &scores_params, &virtual_keys, &virtual_key
};

static const sl_rope_attr
    interleaved = { SL_ROPE_INTERLEAVED, 4, 10000, 0, 0, 0, 0, 0 },
    half = { SL_ROPE_HALF, 4, 100, 7, 0, 0, 0, 0 },
    partial = { SL_ROPE_HALF, 7, 100, 2, 4, 1.25, 1, 1 };

#define ATTENTION(setting, note, n, ...)                                     \
  {                                                                          \
    .op = "attention", note, &setting.attr, .n_in = n, .in = { __VA_ARGS__ } \
  }
#define MECHANISM(setting, note, step, n, ...)                                 \
  {                                                                            \
    .op = "row_weights", note, &setting.attr, .kink = step, .n_in = n, .in = { \
      __VA_ARGS__                                                              \
    }                                                                          \
  }

static const op_case cases[] = {
  ATTENTION (causal, "causal", 3, IN (-1, 1, 3, 2, 5, 6),
             IN (-1, 1, 3, 2, 5, 6), IN (-1, 1, 3, 2, 5, 8)),
  ATTENTION (groups, "grouped, window, alibi, lengths", 4,
             IN (-1, 1, 3, 3, 7, 8), IN (-1, 1, 3, 3, 7, 4),
             IN (-1, 1, 3, 3, 7, 6), LENGTHS (7, 3)),
  ATTENTION (full, "full, window, lengths, recomputed", 4,
             IN (-1, 1, 3, 2, 7, 4), IN (-1, 1, 3, 2, 7, 2),
             IN (-1, 1, 3, 2, 7, 3), LENGTHS (7, 2)),
  ATTENTION (recomputed, "causal, alibi, recomputed", 3, IN (-1, 1, 3, 2, 5, 4),
             IN (-1, 1, 3, 2, 5, 4), IN (-1, 1, 3, 2, 5, 2)),
  ATTENTION (params, "parameters", 5, IN (-1, 1, 3, 2, 4, 4),
             IN (-1, 1, 3, 2, 4, 4), IN (-1, 1, 3, 2, 4, 4),
             IN (-1, 1, 2, 2, 4), LENGTHS (4, 2)),
  ATTENTION (virtual_keys, "keys before the first token, recomputed", 4,
             IN (-1, 1, 3, 3, 5, 8), IN (-1, 1, 3, 3, 7, 4),
             IN (-1, 1, 3, 3, 7, 6), LENGTHS (5, 3)),
  ATTENTION (virtual_key, "a key before the first token, full", 3,
             IN (0.2, 1, 3, 2, 4, 3), IN (0.2, 1, 3, 2, 5, 3),
             IN (-1, 1, 3, 2, 5, 3)),
  ATTENTION (one, "one token", 3, IN (-1, 1, 3, 2, 1, 1),
             IN (-1, 1, 3, 2, 1, 1), IN (-1, 1, 3, 2, 1, 1)),
  ATTENTION (relu, "positive scores", 3, IN (0.2, 1, 3, 2, 5, 3),
             IN (0.2, 1, 3, 2, 5, 3), IN (-1, 1, 3, 2, 5, 3)),
  MECHANISM (scores, "causal", 0, 1, IN (-2, 2, 4, 2, 2, 4, 4)),
  MECHANISM (scores_full, "full, window, lengths", 0, 2,
             IN (-2, 2, 4, 2, 2, 4, 4), LENGTHS (4, 2)),
  MECHANISM (scores_relu, "causal, kinked", 0.1, 1, IN (-2, 2, 4, 2, 2, 4, 4)),
  MECHANISM (scores_params, "parameters", 0, 3, IN (-2, 2, 4, 2, 2, 5, 5),
             IN (-1, 1, 2, 2, 5), LENGTHS (5, 2)),
  { .op = "rope",
    "interleaved",
    &interleaved,
    .n_in = 1,
    .in = { IN (-1, 1, 3, 2, 5, 8) } },
  { .op = "rope", "half", &half, .n_in = 1, .in = { IN (-1, 1, 3, 2, 40, 4) } },
  { .op = "rope",
    "partial",
    &partial,
    .n_in = 3,
    .in = { IN (-1, 1, 3, 2, 5, 14),
            { OP_FIXED, 1, 8, 1, { 2 } },
            { OP_FIXED, 0, 50, 2, { 2, 5 } } } },
  { .op = NULL }
};

const op_case *cases_attention (void) {
  sl_error e = { "" };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    const sl_loaded *l = sl_plugin_load (paths[settings[i]->plugin], &e);
    ck_assert_msg (l != NULL, "%s", e.text);
    settings[i]->attr.mechanism = sl_mechanism_new (l, 0, NULL, &e);
    ck_assert_msg (settings[i]->attr.mechanism != NULL, "%s", e.text);
  }
  return cases;
}
