/* check_error.c - sentences and the nearest name. */
#include "base/error.h"
#include "support/suite.h"
#include <string.h>

static const char *const names[] = { "lr", "num_layers", "num_heads", "d_model",
                                     "seq_len" };

static const char *near_to (const char *word) {
  const char *name = sl_nearest (word, 5, names);
  return name ? name : "(none)";
}

START_TEST (a_failure_says_its_sentence) {
  sl_error e;
  ck_assert_int_eq (sl_fail (&e, "lr: got %g, expected > %d", -1.5, 0), -1);
  ck_assert_str_eq (e.text, "lr: got -1.5, expected > 0");
  ck_assert_int_eq (sl_fail (NULL, "nobody listens to %d", 1), -1);
}
END_TEST

START_TEST (a_place_goes_in_front) {
  sl_error e;
  sl_fail (&e, "lr: got 0");
  ck_assert_int_eq (sl_fail_within (&e, "model %d", 3), -1);
  ck_assert_str_eq (e.text, "model 3: lr: got 0");
  ck_assert_int_eq (sl_fail_within (NULL, "model"), -1);
}
END_TEST

START_TEST (a_sentence_may_quote_the_one_before) {
  sl_error e;
  sl_fail (&e, "no memory");
  sl_fail (&e, "block 2: %s", e.text);
  ck_assert_str_eq (e.text, "block 2: no memory");
  sl_fail_within (&e, "[%s]", e.text);
  ck_assert_str_eq (e.text, "[block 2: no memory]: block 2: no memory");
}
END_TEST

START_TEST (long_sentences_are_cut) {
  sl_error e;
  char word[3000];
  memset (word, 'x', sizeof word - 1);
  word[sizeof word - 1] = '\0';
  sl_fail (&e, "%s", word);
  ck_assert_uint_eq (strlen (e.text), sizeof e.text - 1);
  sl_fail_within (&e, "file");
  ck_assert_uint_eq (strlen (e.text), sizeof e.text - 1);
  ck_assert_int_eq (strncmp (e.text, "file: xxx", 9), 0);
  sl_fail_within (&e, "%s", word);
  ck_assert_uint_eq (strlen (e.text), sizeof e.text - 1);
}
END_TEST

START_TEST (slips_find_their_name) {
  ck_assert_str_eq (near_to ("num_layer"), "num_layers");
  ck_assert_str_eq (near_to ("nmu_heads"), "num_heads"); /* a swap is one */
  ck_assert_str_eq (near_to ("NUM_HEADS"), "num_heads");
  ck_assert_str_eq (near_to ("rl"), "lr");
  ck_assert_str_eq (near_to ("seqlen"), "seq_len");
  ck_assert_str_eq (near_to ("d_modell"), "d_model");
  ck_assert_str_eq (near_to ("lr"), "lr");
  /* One letter away are both; the second goes on from the word. */
  static const char *const both[] = { "sin", "sinks" };
  ck_assert_str_eq (sl_nearest ("sink", 2, both), "sinks");
}
END_TEST

START_TEST (strangers_find_nothing) {
  char word[300];
  memset (word, 'x', sizeof word - 1);
  word[sizeof word - 1] = '\0';
  ck_assert_str_eq (near_to ("momentum"), "(none)");
  ck_assert_str_eq (near_to ("x"), "(none)");
  ck_assert_str_eq (near_to ("zz"), "(none)");
  ck_assert_str_eq (near_to (""), "(none)");
  ck_assert_str_eq (near_to (word), "(none)");
  ck_assert_ptr_null (sl_nearest ("lr", 0, NULL));
}
END_TEST

START_TEST (an_unknown_word_gets_the_nearest_name) {
  sl_error e;
  ck_assert_int_eq (
      sl_fail_unknown (&e, "sed", 5, names, "no option '%s'", "sed"), -1);
  ck_assert_str_eq (e.text, "no option 'sed'");
  sl_fail_unknown (&e, "lrr", 5, names, "no option '%s'", "lrr");
  ck_assert_str_eq (e.text, "no option 'lrr' (did you mean 'lr'?)");
  sl_fail_not_one_of (&e, "lrr", 5, names, "%d", 3);
  ck_assert_str_eq (e.text, "3 (did you mean 'lr'?)");
  sl_fail_not_one_of (&e, "momentum", 2, names, "no '%s'", "momentum");
  ck_assert_str_eq (e.text, "no 'momentum' (there are lr, num_layers)");
  sl_fail_not_one_of (&e, "momentum", 0, names, "no option");
  ck_assert_str_eq (e.text, "no option");
  ck_assert_int_eq (sl_choice ("no option", "seq_len", 5, names, &e), 4);
  ck_assert_int_eq (sl_choice ("no option", "lrr", 5, names, &e), -1);
  ck_assert_str_eq (e.text, "no option 'lrr' (did you mean 'lr'?)");
}
END_TEST

SUITE_MAIN ("error", a_failure_says_its_sentence, a_place_goes_in_front,
            a_sentence_may_quote_the_one_before, long_sentences_are_cut,
            slips_find_their_name, strangers_find_nothing,
            an_unknown_word_gets_the_nearest_name)
