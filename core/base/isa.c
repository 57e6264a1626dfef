/* isa.c - the instruction sets that this machine runs, and the choice. */
#include "base/isa.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define BASELINE "x86-64"
#include <cpuid.h>

enum { EBX = 1, ECX, EDX };
#define FEATURE(tag, leaf, reg, bit) { SL_ISA_##tag, leaf, reg, bit },
static const struct {
  sl_isa level;
  uint32_t leaf;
  int reg, bit;
} features[] = { SL_ISA_FEATURES (FEATURE) };

#define STATE(tag, suffix, text, built, state, unused) state,
static const uint32_t states[] = { 0, SL_ISA_LIST (STATE, ) };

/* Under a hypervisor each CPUID takes as long as a system call or more: the
** last answer is kept. Main thread, as sl_isa_choose. */
static int has_feature (uint32_t leaf, int reg, int bit) {
  static uint32_t r[4], asked;
  if (asked != leaf) {
    if (!__get_cpuid_count (leaf, 0, &r[0], &r[EBX], &r[ECX], &r[EDX]))
      memset (r, 0, sizeof r);
    asked = leaf;
  }
  return (int)(r[reg] >> bit & 1);
}

/* Only after OSXSAVE was found. */
static uint32_t saved_states (void) {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

static int machine_runs (sl_isa isa) {
  for (size_t i = 0; i < sizeof features / sizeof *features; i++)
    if (features[i].level <= isa &&
        !has_feature (features[i].leaf, features[i].reg, features[i].bit))
      return 0;
  return isa == SL_ISA_BASE || (saved_states () & states[isa]) == states[isa];
}
#else
#if defined(__aarch64__)
#define BASELINE "arm64"
#else
#define BASELINE "generic"
#endif
static int machine_runs (sl_isa isa) {
  return isa == SL_ISA_BASE;
}
#endif

#define NAME(tag, suffix, text, built, state, unused) text,
#define SUFFIX(tag, suffix, text, built, state, unused) #suffix,
#define BUILT(tag, suffix, text, built, state, unused) built,
static const char *const names[] = { BASELINE, SL_ISA_LIST (NAME, ) };
static const char *const suffixes[] = { "", SL_ISA_LIST (SUFFIX, ) };
static const int built[] = { 1, SL_ISA_LIST (BUILT, ) };
static sl_isa current = SL_ISA_BASE;

const char *sl_isa_name (sl_isa isa) {
  return names[isa];
}

const char *sl_isa_suffix (sl_isa isa) {
  return suffixes[isa];
}

sl_isa sl_isa_current (void) {
  return current;
}

int sl_isa_available (sl_isa isa) {
  return built[isa] && machine_runs (isa);
}

/* The sentence for a name that cannot be used; always -1. */
static int refuse (const char *word, sl_error *e) {
  const char *usable[SL_ISA_COUNT];
  char list[128] = "";
  size_t n = 0;
  for (int i = 0; i < SL_ISA_COUNT; i++)
    if (sl_isa_available ((sl_isa)i)) usable[n++] = names[i];
  for (size_t i = 0; i < n; i++) {
    strcat (list, i ? ", " : "");
    strcat (list, usable[i]);
  }
  for (int i = 0; i < SL_ISA_COUNT; i++)
    if (strcmp (word, names[i]) == 0)
      return sl_fail (e, "SINKLAB_ISA=%s: %s (usable here: %s)", word,
                      built[i] ? "this machine cannot run it"
                               : "this sinklab was built without it",
                      list);
  return sl_fail_unknown (e, word, n, usable,
                          "SINKLAB_ISA=%.100s: no such instruction set; usable "
                          "here: %s",
                          word, list);
}

int sl_isa_choose (sl_isa *isa, sl_error *e) {
  const char *word = getenv ("SINKLAB_ISA");
  sl_isa best = SL_ISA_BASE;
  int found = 0;
  if (word && !*word) word = NULL;
  for (int i = 0; i < SL_ISA_COUNT; i++) {
    if (!sl_isa_available ((sl_isa)i)) continue;
    if (word && strcmp (word, names[i]) != 0) continue;
    best = (sl_isa)i;
    found = 1;
  }
  if (!found) return refuse (word, e);
  *isa = current = best;
  return 0;
}
