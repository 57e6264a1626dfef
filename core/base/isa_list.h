/* isa_list.h - the instruction sets beside the baseline, and how the processor
** reports them. One more: lines here, and its compiler flags in
** cmake/SinklabPlugin.cmake. */
#ifndef SL_ISA_LIST_H
#define SL_ISA_LIST_H

/* clang-format off */
/* The better one later: X (tag, suffix of names, name, built, state, other
** arguments ...). SL_HAVE_<tag> is 1 if this build holds its code (option
** SINKLAB_VARIANTS), else 0. 'state': bits of XCR0, the registers that the
** system must save: XMM and YMM; for v4 also the mask registers and both halves
** of ZMM. */
#define SL_ISA_LIST(X, ...)                                    \
  X (V3, _v3, "x86-64-v3", SL_HAVE_V3, 0x06, __VA_ARGS__)      \
  X (V4, _v4, "x86-64-v4", SL_HAVE_V4, 0xe6, __VA_ARGS__)

/* X (tag, CPUID leaf (subleaf 0), register, bit): the processor features of the
** levels of the x86-64 psABI, section 3.1.1. An instruction set needs its own
** and those of all before it; v3 has the ones of v2 too. */
#define SL_ISA_FEATURES(X) \
  /* SSE3 */ X (V3, 1, ECX, 0) \
  /* SSSE3 */ X (V3, 1, ECX, 9) \
  /* FMA */ X (V3, 1, ECX, 12) \
  /* CMPXCHG16B */ X (V3, 1, ECX, 13) \
  /* SSE4.1 */ X (V3, 1, ECX, 19) \
  /* SSE4.2 */ X (V3, 1, ECX, 20) \
  /* MOVBE */ X (V3, 1, ECX, 22) \
  /* POPCNT */ X (V3, 1, ECX, 23) \
  /* OSXSAVE: XGETBV may be asked */ X (V3, 1, ECX, 27) \
  /* AVX */ X (V3, 1, ECX, 28) \
  /* F16C */ X (V3, 1, ECX, 29) \
  /* BMI1 */ X (V3, 7, EBX, 3) \
  /* AVX2 */ X (V3, 7, EBX, 5) \
  /* BMI2 */ X (V3, 7, EBX, 8) \
  /* LAHF, SAHF */ X (V3, 0x80000001u, ECX, 0) \
  /* LZCNT */ X (V3, 0x80000001u, ECX, 5) \
  /* AVX512F */ X (V4, 7, EBX, 16) \
  /* AVX512DQ */ X (V4, 7, EBX, 17) \
  /* AVX512CD */ X (V4, 7, EBX, 28) \
  /* AVX512BW */ X (V4, 7, EBX, 30) \
  /* AVX512VL */ X (V4, 7, EBX, 31)
/* clang-format on */
#endif
