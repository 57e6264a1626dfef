/* denormals.c - the flags of a thread's floating-point unit. */
#include "base/denormals.h"

#if defined(__x86_64__)
/* Denormal inputs are zero, denormal results are zero. */
enum { FLAGS = 1 << 6 | 1 << 15 };
typedef unsigned flags;

static flags get (void) {
  return __builtin_ia32_stmxcsr ();
}

static void put (flags f) {
  __builtin_ia32_ldmxcsr (f);
}
#elif defined(__aarch64__)
enum { FLAGS = 1 << 24 }; /* FZ: inputs and results */
typedef unsigned long flags;

static flags get (void) {
  flags f;
  __asm__ volatile("mrs %0, fpcr" : "=r"(f));
  return f;
}

static void put (flags f) {
  __asm__ volatile("msr fpcr, %0" : : "r"(f));
}
#else
enum { FLAGS = 0 };
typedef unsigned flags;

static flags get (void) {
  return 0;
}

static void put (flags f) {
  (void)f;
}
#endif

sl_denormals sl_denormals_current (void) {
  return get () & FLAGS ? SL_DENORMALS_FLUSH : SL_DENORMALS_KEEP;
}

sl_denormals sl_denormals_set (sl_denormals treatment) {
  const sl_denormals before = sl_denormals_current ();
  if (treatment != before)
    put (treatment == SL_DENORMALS_FLUSH ? get () | FLAGS
                                         : get () & ~(flags)FLAGS);
  return before;
}
