/* check_isa.c - the choice of an instruction set, and its messages. */
#include "base/isa.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

SL_VARIANTS (const int, probe);
#define PROBE(tag, suffix, text, built, state, unused)            \
  SL_IF_ (built, const int probe_f32##suffix = 10 * SL_ISA_##tag; \
          const int probe_f64##suffix = 10 * SL_ISA_##tag + 1;)
const int probe_f32 = 0, probe_f64 = 1;
SL_ISA_LIST (PROBE, )

static const char *refusal (const char *name) {
  static sl_error e;
  sl_isa isa, before = sl_isa_current ();
  setenv ("SINKLAB_ISA", name, 1);
  ck_assert_int_eq (sl_isa_choose (&isa, &e), -1);
  ck_assert_int_eq (sl_isa_current (), before);
  return e.text;
}

START_TEST (the_best_is_chosen) {
  sl_isa isa, best = SL_ISA_BASE;
  sl_error e;
  unsetenv ("SINKLAB_ISA");
  ck_assert_int_eq (sl_isa_current (), SL_ISA_BASE);
  for (int i = 0; i < SL_ISA_COUNT; i++)
    if (sl_isa_available ((sl_isa)i)) best = (sl_isa)i;
  ck_assert_int_eq (sl_isa_choose (&isa, &e), 0);
  ck_assert_int_eq (isa, best);
  ck_assert_int_eq (sl_isa_current (), best);
  setenv ("SINKLAB_ISA", "", 1); /* as if not set */
  ck_assert_int_eq (sl_isa_choose (&isa, &e), 0);
  ck_assert_int_eq (isa, best);
}
END_TEST

START_TEST (the_environment_chooses) {
  sl_isa isa;
  sl_error e;
  for (int i = 0; i < SL_ISA_COUNT; i++) {
    if (!sl_isa_available ((sl_isa)i)) {
      ck_assert_ptr_nonnull (strstr (refusal (sl_isa_name ((sl_isa)i)),
                                     sl_isa_name (SL_ISA_BASE)));
      continue;
    }
    setenv ("SINKLAB_ISA", sl_isa_name ((sl_isa)i), 1);
    ck_assert_int_eq (sl_isa_choose (&isa, &e), 0);
    ck_assert_int_eq (isa, i);
    ck_assert_int_eq (*SL_PICK (probe, 0), 10 * i);
    ck_assert_int_eq (*SL_PICK (probe, 1), 10 * i + 1);
  }
}
END_TEST

START_TEST (unknown_names_are_refused) {
  const char *base = sl_isa_name (SL_ISA_BASE);
  char slip[32], hint[64];
  const char *text;
  strcpy (slip, base);
  slip[1] = slip[1] == '8' ? '9' : 'x';
  strcpy (hint, "did you mean '");
  strcat (hint, base);
  text = refusal (slip);
  ck_assert_msg (strstr (text, slip) && strstr (text, hint), "got: %s", text);
  text = refusal ("avx2");
  ck_assert_msg (strstr (text, "SINKLAB_ISA=avx2: no such instruction set") &&
                     strstr (text, base) && !strstr (text, "did you mean"),
                 "got: %s", text);
}
END_TEST

/* The compiler's own detection, which knows about register state too. */
START_TEST (detection_agrees_with_the_compiler) {
#if defined(__x86_64__)
  __builtin_cpu_init ();
  ck_assert_str_eq (sl_isa_name (SL_ISA_BASE), "x86-64");
#if SL_HAVE_V3
  ck_assert_int_eq (sl_isa_available (SL_ISA_V3),
                    __builtin_cpu_supports ("avx2") &&
                        __builtin_cpu_supports ("fma") &&
                        __builtin_cpu_supports ("bmi2"));
#endif
#if SL_HAVE_V4
  ck_assert_int_eq (sl_isa_available (SL_ISA_V4),
                    __builtin_cpu_supports ("avx512f") &&
                        __builtin_cpu_supports ("avx512bw") &&
                        __builtin_cpu_supports ("avx512dq") &&
                        __builtin_cpu_supports ("avx512vl"));
#endif
#else
  ck_assert (!sl_isa_available (SL_ISA_V3) && !sl_isa_available (SL_ISA_V4));
#endif
}
END_TEST

SUITE_MAIN ("isa", the_best_is_chosen, the_environment_chooses,
            unknown_names_are_refused, detection_agrees_with_the_compiler)
