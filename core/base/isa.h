/* isa.h - which build of the numeric code this machine runs.
**
** Numeric files (ops, attention, optimisers) are compiled once per precision
** and instruction set; names that leave such a file are mangled by SL() of
** sinklab/plugin.h: no suffix for the baseline (x86-64 or arm64), _v3 (AVX2 and
** FMA), _v4 (AVX-512). SL_PICK chooses among the variants at run time. */
#ifndef SL_ISA_H
#define SL_ISA_H
#include "base/error.h"
#include "base/isa_list.h"

#define SL_ISA_TAG_(tag, suffix, name, built, state, unused) SL_ISA_##tag,
typedef enum sl_isa {
  SL_ISA_BASE,
  SL_ISA_LIST (SL_ISA_TAG_, ) SL_ISA_COUNT
} sl_isa;

/* "x86-64", "x86-64-v3", "x86-64-v4"; on arm64 the baseline is "arm64". */
const char *sl_isa_name (sl_isa isa);

/* The suffix that SL () adds to names for it: "" for the baseline, "_v3", "_v4". */
const char *sl_isa_suffix (sl_isa isa);

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
** SL_PICK (name, double_precision) is the address of the one in use. */
#define SL_VARIANTS(type, name) \
  extern type name##_f32, name##_f64 SL_ISA_LIST (SL_DECLARE_, name)
#define SL_DECLARE_(tag, suffix, text, built, state, name) \
  , name##_f32##suffix, name##_f64##suffix

#define SL_PICK(name, wide) \
  (SL_ISA_LIST (SL_PICK_, name, wide) ((wide) ? &name##_f64 : &name##_f32))
#define SL_PICK_(tag, suffix, text, built, state, name, wide)               \
  SL_IF_ (built, sl_isa_current () == SL_ISA_##tag                          \
                     ? ((wide) ? &name##_f64##suffix : &name##_f32##suffix) \
                     :)
#define SL_IF_(condition, text) SL_IF_VALUE_ (condition, text)
#define SL_IF_VALUE_(value, text) SL_IF_##value##_ (text)
#define SL_IF_0_(text)
#define SL_IF_1_(text) text
#endif
