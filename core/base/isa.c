/* isa.c - what the processor and the system can run, and the choice from it. */
#include "base/isa.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define BASELINE "x86-64"
#include <cpuid.h>

enum { EBX = 1, ECX, EDX };
/* Processor features of the levels of the x86-64 psABI (section 3.1.1), by the
** bit in which CPUID reports them; v3 holds v2 too. */
static const struct {
  sl_isa level;
  uint32_t leaf; /* subleaf 0 */
  int reg, bit;
} features[] = {
  { SL_ISA_V3, 1, ECX, 0 },           /* SSE3 */
  { SL_ISA_V3, 1, ECX, 9 },           /* SSSE3 */
  { SL_ISA_V3, 1, ECX, 12 },          /* FMA */
  { SL_ISA_V3, 1, ECX, 13 },          /* CMPXCHG16B */
  { SL_ISA_V3, 1, ECX, 19 },          /* SSE4.1 */
  { SL_ISA_V3, 1, ECX, 20 },          /* SSE4.2 */
  { SL_ISA_V3, 1, ECX, 22 },          /* MOVBE */
  { SL_ISA_V3, 1, ECX, 23 },          /* POPCNT */
  { SL_ISA_V3, 1, ECX, 27 },          /* OSXSAVE: XGETBV may be asked */
  { SL_ISA_V3, 1, ECX, 28 },          /* AVX */
  { SL_ISA_V3, 1, ECX, 29 },          /* F16C */
  { SL_ISA_V3, 7, EBX, 3 },           /* BMI1 */
  { SL_ISA_V3, 7, EBX, 5 },           /* AVX2 */
  { SL_ISA_V3, 7, EBX, 8 },           /* BMI2 */
  { SL_ISA_V3, 0x80000001u, ECX, 0 }, /* LAHF, SAHF */
  { SL_ISA_V3, 0x80000001u, ECX, 5 }, /* LZCNT */
  { SL_ISA_V4, 7, EBX, 16 },          /* AVX512F */
  { SL_ISA_V4, 7, EBX, 17 },          /* AVX512DQ */
  { SL_ISA_V4, 7, EBX, 28 },          /* AVX512CD */
  { SL_ISA_V4, 7, EBX, 30 },          /* AVX512BW */
  { SL_ISA_V4, 7, EBX, 31 },          /* AVX512VL */
};

/* Register state that the system must save: XMM and YMM; for v4 also the mask
** registers and both halves of ZMM. */
static const uint32_t states[SL_ISA_COUNT] = { 0, 0x6, 0xe6 };

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

#define NAME(tag, suffix, text, built, unused) text,
#define SUFFIX(tag, suffix, text, built, unused) #suffix,
#define BUILT(tag, suffix, text, built, unused) built,
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
