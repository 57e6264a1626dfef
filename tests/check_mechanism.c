/* check_mechanism.c - options of plugins: defaults, refusals, interning. */
#include "attention/mechanism.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

static const sl_loaded *affine (void) {
  sl_error e = { "" };
  const sl_loaded *l =
      sl_plugin_load (SINKLAB_TEST_BUILD "/tests/good/affine.so", &e);
  ck_assert_msg (l != NULL, "%s", e.text);
  return l;
}

static const sl_mechanism *make (int n, const sl_setting *s) {
  sl_error e = { "" };
  const sl_mechanism *m = sl_mechanism_new (affine (), n, s, &e);
  ck_assert_msg (m != NULL, "%s", e.text);
  return m;
}

static void refuse (sl_setting s, const char *part) {
  sl_error e = { "" };
  const sl_mechanism *m = sl_mechanism_new (affine (), 1, &s, &e);
  ck_assert_msg (m == NULL, "%s = %g was taken", s.name, s.number);
  ck_assert_msg (strstr (e.text, part) != NULL, "got '%s', want '%s' in it",
                 e.text, part);
}

START_TEST (defaults_in_effect) {
  static const struct {
    const char *name;
    double number;
    const char *text;
  } want[] = { { "count", 3, NULL },
               { "factor", 1, NULL },
               { "flag", 1, NULL },
               { "kind", 0, "plain" } };
  const sl_mechanism *m = make (0, NULL);
  sl_setting got;
  for (int i = 0; i < 4; i++) {
    ck_assert (sl_mechanism_option (m, i, &got) == 0);
    ck_assert_str_eq (got.name, want[i].name);
    CLOSE (got.number, want[i].number, 0, 0, "option %s", got.name);
    ck_assert ((got.text == NULL) == (want[i].text == NULL));
    if (got.text) ck_assert_str_eq (got.text, want[i].text);
  }
  ck_assert (sl_mechanism_option (m, 4, &got) == -1);
  ck_assert (sl_mechanism_option (m, -1, &got) == -1);
}
END_TEST

START_TEST (values_reach_the_config) {
  const sl_setting s[] = { { "factor", 2.5, NULL },
                           { "kind", 0, "negated" },
                           { "flag", 0, NULL },
                           { "count", 7, NULL } };
  const sl_mechanism *m = make (4, s);
  struct {
    int count, flag, kind;
    double factor;
  } config;
  ck_assert_uint_eq (m->config_size, sizeof config);
  memcpy (&config, m->config, sizeof config);
  ck_assert_int_eq (config.count, 7);
  ck_assert_int_eq (config.flag, 0);
  ck_assert_int_eq (config.kind, 1);
  CLOSE (config.factor, 2.5, 0, 0, "factor");
}
END_TEST

START_TEST (equal_options_are_one_pointer) {
  const sl_setting two = { "factor", 2, NULL }, one = { "factor", 1, NULL };
  const sl_mechanism *m = make (0, NULL);
  ck_assert (make (1, &one) == m); /* 1 is the default */
  ck_assert (make (1, &two) != m);
  ck_assert (make (1, &two) == make (1, &two));
}
END_TEST

START_TEST (refusals) {
  refuse ((sl_setting){ "fctor", 1, NULL },
          "affine has no option 'fctor' (did you mean 'factor'?)");
  refuse ((sl_setting){ "unheard_of", 1, NULL },
          "affine has no option 'unheard_of' (there are count, factor, flag, "
          "kind)");
  refuse ((sl_setting){ "count", 8, NULL },
          "affine: option count is 8; expected a whole number from -2 to 7");
  refuse ((sl_setting){ "count", 1.5, NULL },
          "affine: option count is 1.5; expected a whole number");
  refuse ((sl_setting){ "count", 0, "three" },
          "affine: option count is the text 'three'; expected a number");
  refuse ((sl_setting){ "factor", 0.1, NULL },
          "affine: option factor is 0.1; expected a number from 0.25 to 4");
  refuse ((sl_setting){ "factor", NAN, NULL }, "affine: option factor is ");
  refuse ((sl_setting){ "flag", 2, NULL },
          "affine: option flag is 2; expected true or false");
  refuse ((sl_setting){ "flag", 0, "yes" },
          "affine: option flag is the text 'yes'; expected true or false");
  refuse ((sl_setting){ "kind", 1, NULL },
          "affine: option kind is the number 1; expected one of its choices");
  refuse ((sl_setting){ "kind", 0, "plane" },
          "affine: option kind is 'plane'; expected one of plain, negated");
}
END_TEST

START_TEST (validate_has_the_last_word) {
  const sl_setting s[] = { { "count", -1, NULL }, { "flag", 0, NULL } };
  sl_error e = { "" };
  ck_assert (sl_mechanism_new (affine (), 2, s, &e) == NULL);
  ck_assert_str_eq (
      e.text, "affine: count is -1; without flag it must not be negative");
}
END_TEST

START_TEST (no_options_at_all) {
  const sl_setting s = { "scale", 1, NULL };
  sl_error e = { "" };
  const sl_loaded *l =
      sl_plugin_load (SINKLAB_TEST_BUILD "/plugins/softmax.so", &e);
  const sl_mechanism *m;
  ck_assert_msg (l != NULL, "%s", e.text);
  m = sl_mechanism_new (l, 0, NULL, &e);
  ck_assert_msg (m != NULL, "%s", e.text);
  ck_assert (m->config == NULL && m->config_size == 0);
  ck_assert (sl_mechanism_new (l, 0, NULL, &e) == m);
  ck_assert (sl_mechanism_new (l, 1, &s, &e) == NULL);
  ck_assert_str_eq (e.text,
                    "softmax has no option 'scale'; it has none at all");
}
END_TEST

START_TEST (params_count_with_the_head) {
  ck_assert_int_eq (sl_mechanism_params (make (0, NULL), 16), 18);
  ck_assert_int_eq (sl_mechanism_params (make (0, NULL), 1), 3);
}
END_TEST

SUITE_MAIN ("mechanism", defaults_in_effect, values_reach_the_config,
            equal_options_are_one_pointer, refusals, validate_has_the_last_word,
            no_options_at_all, params_count_with_the_head)
