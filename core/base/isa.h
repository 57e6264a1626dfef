/* isa.h - which build of the numeric code this machine runs.
**
** Numeric files (ops, attention, optimisers) are compiled once per precision and
** instruction set; names that leave such a file are mangled by SL() of
** sinklab/plugin.h: no suffix for the baseline (x86-64 or arm64), _v3 (AVX2 and
** FMA), _v4 (AVX-512). SL_PICK chooses among the variants at run time. */
#ifndef SL_ISA_H
#define SL_ISA_H
#include "base/error.h"

typedef enum sl_isa { SL_ISA_BASE, SL_ISA_V3, SL_ISA_V4, SL_ISA_COUNT } sl_isa;

/* "x86-64", "x86-64-v3", "x86-64-v4"; on arm64 the baseline is "arm64". */
const char *sl_isa_name (sl_isa isa);

/* The best instruction set that both this binary and this machine have, or the
** one that the environment variable SINKLAB_ISA names. -1 and a sentence if that
** is unknown or cannot run here. */
int sl_isa_choose (sl_isa *isa, sl_error *e);

/* The instruction set in use: the last one that sl_isa_choose gave. */
sl_isa sl_isa_current (void);

/* SL_VARIANTS (type, name); declares the variants of a data symbol;
** SL_PICK (name, double_precision) is the address of the one in use. */
#ifdef SL_HAVE_X86_VARIANTS
#define SL_VARIANTS(type, name)                                     \
  extern type name##_f32, name##_f64, name##_f32_v3, name##_f64_v3, \
      name##_f32_v4, name##_f64_v4
#define SL_PICK(name, double_precision)                         \
  (sl_isa_current () == SL_ISA_V4                               \
       ? ((double_precision) ? &name##_f64_v4 : &name##_f32_v4) \
   : sl_isa_current () == SL_ISA_V3                             \
       ? ((double_precision) ? &name##_f64_v3 : &name##_f32_v3) \
       : ((double_precision) ? &name##_f64 : &name##_f32))
#else
#define SL_VARIANTS(type, name) extern type name##_f32, name##_f64
#define SL_PICK(name, double_precision) \
  ((double_precision) ? &name##_f64 : &name##_f32)
#endif
#endif
