/* check_random.c - Philox against published answers; the uniform numbers. */
#include "base/random.h"
#include "support/suite.h"

/* The known answers for philox4x32-10 that come with Random123. */
static const struct {
  uint64_t key;
  uint32_t counter[4], want[4];
} answers[] = {
  { 0, { 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
  { UINT64_MAX,
    { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX },
    { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
  { 0x299f31d0a4093822,
    { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
    { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

START_TEST (philox_gives_the_published_answers) {
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    uint32_t got[4];
    sl_philox (answers[i].key, answers[i].counter, got);
    for (int j = 0; j < 4; j++)
      ck_assert_msg (got[j] == answers[i].want[j],
                     "answer %zu, word %d: got %08x, want %08x", i, j, got[j],
                     answers[i].want[j]);
  }
}
END_TEST

START_TEST (philox_may_write_over_its_counter) {
  uint32_t words[4] = { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 };
  sl_philox (answers[2].key, words, words);
  ck_assert_mem_eq (words, answers[2].want, sizeof words);
}
END_TEST

START_TEST (uniforms_stay_inside) {
  ck_assert_double_eq (sl_uniform53 (0, 0), 0);
  ck_assert_double_eq (sl_uniform53 (0, 1u << 11), 0x1p-53);
  ck_assert_double_eq (sl_uniform53 (1u << 31, 0), 0.5);
  ck_assert_double_eq (sl_uniform53 (UINT32_MAX, UINT32_MAX), 1 - 0x1p-53);
}
END_TEST

/* The mean of n uniforms has standard deviation 1/sqrt (12 n), their mean
** square sqrt (4/45/n): five of them are the tolerance. Seed 5. */
START_TEST (uniforms_have_their_moments) {
  enum { N = 1 << 18 };
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < N / 2; i++) {
    uint32_t counter[4] = { i, 0, 0, 0 }, w[4];
    sl_philox (5, counter, w);
    for (int j = 0; j < 4; j += 2) {
      double u = sl_uniform53 (w[j], w[j + 1]);
      sum += u;
      squares += u * u;
    }
  }
  CLOSE (sum / N, 0.5, 5 * 5.64e-4, 0, "mean of %d, seed 5", N);
  CLOSE (squares / N, 1 / 3.0, 5 * 5.83e-4, 0, "square of %d, seed 5", N);
}
END_TEST

SUITE_MAIN ("random", philox_gives_the_published_answers,
            philox_may_write_over_its_counter, uniforms_stay_inside,
            uniforms_have_their_moments)
