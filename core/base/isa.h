/* isa.h - which build of the numeric code this machine runs.
**
** Numeric files (ops, attention, optimisers) are compiled once per precision
** and instruction set; names that leave such a file are mangled by SL() of
** sinklab/plugin.h: no suffix for the baseline (x86-64 or arm64), _v3 (AVX2 and
** FMA), _v4 (AVX-512). SL_PICK chooses among the variants at run time. */
#ifndef SL_ISA_H
#define SL_ISA_H
#include "base/error.h"

typedef enum sl_isa { SL_ISA_BASE, SL_ISA_V3, SL_ISA_V4, SL_ISA_COUNT } sl_isa;

/* "x86-64", "x86-64-v3", "x86-64-v4"; on arm64 the baseline is "arm64". */
const char *sl_isa_name (sl_isa isa);

/* The best instruction set that both this binary and this machine have, or the
** one that the environment variable SINKLAB_ISA names (empty: not set). -1 and
** a sentence if that is unknown or cannot run here. Main thread, before threads
** that run numeric code start. */
int sl_isa_choose (sl_isa *isa, sl_error *e);

/* The instruction set in use: the last one that sl_isa_choose gave, the
** baseline before its first call. */
sl_isa sl_isa_current (void);

/* 1 if this binary holds the code for 'isa' and this machine can run it (the
** processor has it and the system saves its registers). */
int sl_isa_available (sl_isa isa);

/* SL_VARIANTS (type, name); declares the variants of a data symbol;
** SL_PICK (name, double_precision) is the address of the one in use. Which
** variants a build holds is its option SINKLAB_VARIANTS (SL_HAVE_V3,
** SL_HAVE_V4). */
#ifdef SL_HAVE_V3
#define SL_DECLARE_V3_(name) , name##_f32_v3, name##_f64_v3
#define SL_PICK_V3_(name, wide) \
  sl_isa_current () == SL_ISA_V3 ? ((wide) ? &name##_f64_v3 : &name##_f32_v3):
#else
#define SL_DECLARE_V3_(name)
#define SL_PICK_V3_(name, wide)
#endif
#ifdef SL_HAVE_V4
#define SL_DECLARE_V4_(name) , name##_f32_v4, name##_f64_v4
#define SL_PICK_V4_(name, wide) \
  sl_isa_current () == SL_ISA_V4 ? ((wide) ? &name##_f64_v4 : &name##_f32_v4):
#else
#define SL_DECLARE_V4_(name)
#define SL_PICK_V4_(name, wide)
#endif
#define SL_VARIANTS(type, name) \
  extern type name##_f32, name##_f64 SL_DECLARE_V3_ (name) SL_DECLARE_V4_ (name)
#define SL_PICK(name, wide) \
  (SL_PICK_V4_ (name, wide) \
       SL_PICK_V3_ (name, wide) ((wide) ? &name##_f64 : &name##_f32))
#endif
