/* check_check.c - plugin check: right plugins pass, wrong ones fail where they
** must. */
#include "check/check.h"
#include "support/suite.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define BAD SINKLAB_TEST_BUILD "/tests/bad/"
#define GOOD SINKLAB_TEST_BUILD "/tests/good"
#define BUILT SINKLAB_TEST_BUILD "/plugins"

static const sl_check_settings usual = { .seed = 1, .seconds = 60 };

/* "load,gradient": the names of the checks that failed. */
static const char *failing (const char *plugin, const sl_check_settings *s,
                            sl_check_result *r, int *n) {
  static char names[512];
  sl_error e = { "" };
  names[0] = '\0';
  *n = sl_check_plugin (plugin, s, r, &e);
  ck_assert_msg (*n > 0, "%s: %s", plugin, e.text);
  for (int i = 0; i < *n; i++) {
    if (r[i].state != SL_CHECK_FAILED) {
      ck_assert_msg (r[i].figure[0] != '\0', "%s: %s has no figure", plugin,
                     r[i].name);
      continue;
    }
    ck_assert_msg (r[i].why[0] != '\0', "%s: %s gives no reason", plugin,
                   r[i].name);
    if (names[0]) strcat (names, ",");
    strcat (names, r[i].name);
  }
  return names;
}

static const char *reason (const sl_check_result *r, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (strcmp (r[i].name, name) == 0) return r[i].why;
  return "";
}

/* A plugin of tests/bad, the checks that it fails, and a part of the reason. */
static const struct wrong {
  const char *plugin, *fails, *check, *says;
} wrong[] = {
  { "major", "load", "load", "built for ABI" },
  { "only_f32", "load", "load", "no symbol sinklab_plugin_f64" },
  { "only_f64", "load", "load", "no symbol sinklab_plugin_f32" },
  { "half_row", "load", "load", "no forward or backward" },
  { "crash", "runs", "runs", "f32 backward (n = 16" },
  { "leaves", "runs", "runs", "status 3 in f32 forward (n = 5" },
  { "accepts_zero",
    "options,gradient,outputs,precision,extreme,nonnegative,sums_to_one",
    "options", "temperature=0" },
  { "refuses_silently", "options", "options", "without a sentence" },
  { "err_too_long", "options", "options", "wrote past the 120 bytes" },
  { "err_two_lines", "options", "options", "more than one line" },
  { "wrong_backward", "gradient", "gradient", "gradient of scores[0]" },
  { "kink_not_declared", "kinks", "kinks", "SL_KINKED is not declared" },
  { "overwrites_dparam", "dparam", "dparam", "parameter gain[0]" },
  { "trusts_scratch", "outputs", "outputs", "contents of outputs and scratch" },
  { "leaves_unwritten", "options,gradient,outputs,precision,extreme", "outputs",
    "left its output[18] of 19 unwritten" },
  { "past_row", "bounds", "bounds", "forward wrote to its output[1]" },
  { "past_gradient", "bounds", "bounds", "backward wrote to scores[-1]" },
  { "changes_input", "inputs", "inputs", "changed its input scores[0]" },
  { "reads_hidden_key", "reads", "reads", "outside its buffers" },
  { "keeps_state", "repeat,threads", "repeat", "state between calls" },
  { "shares_memory", "threads", "threads", "while other threads call it" },
  { "single_differs", "precision", "precision", "in f32 and 1 in f64" },
  { "overflows", "extreme", "extreme", "with scores of 1e4" },
  { "block_differs", "block", "block", "in a block and" },
  { "block_past_end", "block", "block", "forward of a block wrote outside w" },
  { "short_rows_only", "long", "long", "weights[65536] is NaN" },
  { "not_nonnegative", "nonnegative", "nonnegative", "weights[0] is -" },
  { "not_one", "sums_to_one", "sums_to_one", "weights sum to 0." },
  { "not_null_mass", "null_mass", "null_mass", "weights sum to 1." },
  { "not_invariant", "shift_invariant", "shift_invariant",
    "added to all scores" },
  { "gate_swapped", "gradient", "gradient", "gradient of z[0]" },
  { "gate_past_end", "bounds", "bounds", "backward wrote to z[1]" },
  { "gate_declares_weights", "nonnegative", "nonnegative",
    "this gate gives none" },
  { "mixer_looks_ahead", "causal", "causal", "out[0] changes with token 1" },
  { "mixer_not_causal_only", "causal", "causal", "is not visible" },
  { "mixer_weights_hidden", "causal", "causal", "give key 8 0.5 of query 0" },
  { "mixer_plan_silent", "runs", "runs",
    "refuses 9 tokens without a sentence" },
  { "mixer_past_scratch", "bounds", "bounds", "forward wrote to scratch[1]" },
  { "mixer_backward", "gradient", "gradient", "gradient of v[0]" },
  { "mixer_weights_unwritten", "outputs,nonnegative,causal", "outputs",
    "weights left weights[1] of 4 unwritten" },
  { "mixer_shift_unseen", "shift_invariant", "shift_invariant",
    "no input 'k'" },
};

START_TEST (wrong_plugins_fail_where_they_must) {
  const struct wrong *w = &wrong[_i];
  sl_check_result r[SL_MAX_CHECKS];
  char path[512];
  const char *fails;
  int n;
  snprintf (path, sizeof path, BAD "%s.so", w->plugin);
  fails = failing (path, &usual, r, &n);
  ck_assert_msg (strcmp (fails, w->fails) == 0,
                 "%s: fails '%s', expected '%s'; %s: %s", w->plugin, fails,
                 w->fails, fails, reason (r, n, w->check));
  ck_assert_msg (strstr (reason (r, n, w->check), w->says) != NULL,
                 "%s: %s says '%s', expected '%s' in it", w->plugin, w->check,
                 reason (r, n, w->check), w->says);
}
END_TEST

/* Each check catches a plugin made for it. */
START_TEST (every_check_has_a_wrong_plugin) {
  for (int i = 0; sl_check_name (i); i++) {
    int found = 0;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
      if (strcmp (wrong[k].check, sl_check_name (i)) == 0) found = 1;
    ck_assert_msg (found, "no wrong plugin for the check %s",
                   sl_check_name (i));
    ck_assert (sl_check_doc (i)[0] != '\0');
  }
}
END_TEST

START_TEST (signals_are_named) {
  sl_check_result r[SL_MAX_CHECKS];
  const sl_check_settings s = { .seed = 1, .seconds = 60, .only = "runs" };
  int n;
  ck_assert_str_eq (failing (BAD "crash.so", &s, r, &n), "runs");
  ck_assert_msg (strstr (reason (r, n, "runs"), "killed by signal 11") != NULL,
                 "%s", reason (r, n, "runs"));
}
END_TEST

START_TEST (endless_kernels_are_stopped) {
  static const struct {
    const char *plugin, *check;
  } cases[] = { { "endless", "runs" }, { "too_slow", "long" } };
  for (int i = 0; i < 2; i++) {
    sl_check_result r[SL_MAX_CHECKS];
    const sl_check_settings s = { .seed = 1,
                                  .seconds = 2,
                                  .only = cases[i].check };
    char path[512];
    int n;
    snprintf (path, sizeof path, BAD "%s.so", cases[i].plugin);
    ck_assert_str_eq (failing (path, &s, r, &n), cases[i].check);
    ck_assert_msg (strstr (reason (r, n, cases[i].check),
                           "did not return within 2 s") != NULL,
                   "%s", reason (r, n, cases[i].check));
    ck_assert_msg (r[n - 1].seconds >= 2 && r[n - 1].seconds < 30, "%g s",
                   r[n - 1].seconds);
  }
}
END_TEST

/* Under a sanitizer on a busy machine the largest gradients take a minute. */
static const sl_check_settings patient = { .seed = 1, .seconds = 240 };

/* 1 if a check does not apply to a plugin: the only reason to skip it. */
static int does_not_apply (const char *check, const sl_plugin *p) {
  static const struct {
    const char *check;
    uint32_t property;
  } declared[] = { { "nonnegative", SL_NONNEGATIVE },
                   { "sums_to_one", SL_SUMS_TO_ONE },
                   { "null_mass", SL_NULL_MASS },
                   { "shift_invariant", SL_SHIFT_INVARIANT } };
  for (size_t i = 0; i < sizeof declared / sizeof *declared; i++)
    if (strcmp (check, declared[i].check) == 0)
      return !(p->properties & declared[i].property);
  return strcmp (check, "kinks") == 0    ? (p->properties & SL_KINKED) != 0
         : strcmp (check, "dparam") == 0 ? p->params == NULL
         : strcmp (check, "block") == 0  ? p->block == NULL
         : strcmp (check, "causal") == 0 ? p->mixer == NULL
                                         : 0;
}

/* Every check of every plugin of a folder passes, or is skipped because it does
** not apply; returns the number of plugins. */
static int all_pass (const char *folder) {
  DIR *dir = opendir (folder);
  struct dirent *entry;
  int count = 0;
  ck_assert_msg (dir != NULL, "no folder %s", folder);
  while ((entry = readdir (dir))) {
    const size_t length = strlen (entry->d_name);
    sl_check_result r[SL_MAX_CHECKS];
    sl_error e = { "" };
    const sl_loaded *loaded;
    char path[1024];
    int n;
    const char *fails;
    if (length < 4 || strcmp (entry->d_name + length - 3, ".so") != 0) continue;
    snprintf (path, sizeof path, "%s/%s", folder, entry->d_name);
    fails = failing (path, &patient, r, &n);
    ck_assert_msg (*fails == '\0', "%s fails %s; %s", entry->d_name, fails,
                   reason (r, n, fails));
    loaded = sl_plugin_load (path, &e);
    ck_assert_msg (loaded != NULL, "%s: %s", path, e.text);
    for (int i = 0; sl_check_name (i); i++) {
      ck_assert_str_eq (r[i].name, sl_check_name (i));
      ck_assert_msg ((r[i].state == SL_CHECK_NONE) ==
                         does_not_apply (r[i].name, loaded->plugin[SL_F64]),
                     "%s: the check %s is %s: %s", entry->d_name, r[i].name,
                     r[i].state == SL_CHECK_NONE ? "skipped" : "run",
                     r[i].figure);
    }
    count++;
  }
  closedir (dir);
  return count;
}

START_TEST (built_plugins_pass) {
  ck_assert_int_eq (all_pass (BUILT), N_PLUGINS);
}
END_TEST

START_TEST (good_plugins_pass) {
  sl_check_result r[SL_MAX_CHECKS];
  int n;
  ck_assert_int_eq (all_pass (GOOD), N_GOOD);
  ck_assert_str_eq (failing (BAD "right_dparam.so", &usual, r, &n), "");
}
END_TEST

START_TEST (other_seeds_pass) {
  for (uint64_t seed = 2; seed < 6; seed++) {
    const sl_check_settings s = { .seed = seed,
                                  .seconds = 60,
                                  .only = "gradient,kinks,precision" };
    sl_check_result r[SL_MAX_CHECKS];
    int n;
    ck_assert_str_eq (failing (BUILT "/softmax.so", &s, r, &n), "");
    ck_assert_int_eq (n, 3);
    ck_assert_str_eq (failing (BUILT "/relu.so", &s, r, &n), "");
    ck_assert_str_eq (failing (GOOD "/affine.so", &s, r, &n), "");
  }
}
END_TEST

START_TEST (only_and_time_limit_are_read) {
  sl_check_result r[SL_MAX_CHECKS];
  sl_error e = { "" };
  sl_check_settings s = { .seed = 1, .seconds = 60, .only = "repeat,bounds" };
  ck_assert_int_eq (sl_check_plugin (BUILT "/relu.so", &s, r, &e), 2);
  ck_assert_str_eq (r[0].name, "bounds");
  ck_assert_str_eq (r[1].name, "repeat");
  s.only = "gradeint";
  ck_assert_int_eq (sl_check_plugin (BUILT "/relu.so", &s, r, &e), -1);
  ck_assert_str_eq (e.text, "no check 'gradeint' (did you mean 'gradient'?)");
  s.only = NULL;
  s.seconds = 0;
  ck_assert_int_eq (sl_check_plugin (BUILT "/relu.so", &s, r, &e), -1);
  ck_assert_msg (strstr (e.text, "time limit is 0 s") != NULL, "%s", e.text);
}
END_TEST

START_TEST (unknown_plugin_fails_load) {
  sl_check_result r[SL_MAX_CHECKS];
  int n;
  ck_assert_str_eq (failing ("sofmax", &usual, r, &n), "load");
  ck_assert_str_eq (failing ("./nowhere.so", &usual, r, &n), "load");
  ck_assert_msg (strstr (r[0].why, "no such plugin file") != NULL, "%s",
                 r[0].why);
  ck_assert_int_eq (r[1].state, SL_CHECK_NONE);
}
END_TEST

int main (void) {
  Suite *suite = suite_create ("check");
  TCase *tcase = tcase_create ("check");
  tcase_set_timeout (tcase, 120);
  tcase_add_loop_test (tcase, wrong_plugins_fail_where_they_must, 0,
                       sizeof wrong / sizeof *wrong);
  tcase_add_test (tcase, every_check_has_a_wrong_plugin);
  tcase_add_test (tcase, signals_are_named);
  tcase_add_test (tcase, endless_kernels_are_stopped);
  tcase_add_test (tcase, built_plugins_pass);
  tcase_add_test (tcase, good_plugins_pass);
  tcase_add_test (tcase, other_seeds_pass);
  tcase_add_test (tcase, only_and_time_limit_are_read);
  tcase_add_test (tcase, unknown_plugin_fails_load);
  suite_add_tcase (suite, tcase);
  return suite_finish (suite);
}
