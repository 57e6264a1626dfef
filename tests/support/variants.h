/* variants.h - a test whose body is compiled for every precision and
** instruction set, as numeric code is.
**
** tests/numeric/<name>.c, written in 'real', ends with
**     VARIANT_TEST (name) = { run };
** and the check that runs it for all variants that this machine has with
**     VARIANTS_OF (name);     at file level
**     RUN_VARIANTS (name);    in a test */
#ifndef VARIANTS_H
#define VARIANTS_H
#include "base/isa.h"

typedef struct variant_test {
  void (*run) (void);
} variant_test;

#define VARIANT_TEST(name)             \
  extern const variant_test SL (name); \
  const variant_test SL (name)
/* "variant_f32_v3" and so on, for messages. */
#define VARIANT VARIANT_TEXT_ (SL (variant))
#define VARIANT_TEXT_(name) VARIANT_QUOTED_ (name)
#define VARIANT_QUOTED_(name) #name

#define VARIANTS_OF(name) SL_VARIANTS (const variant_test, name)
#define RUN_VARIANTS(name)                                             \
  for (int i = 0; i < SL_ISA_COUNT; i++) {                             \
    if (!variant_use ((sl_isa)i)) continue;                            \
    for (int wide = 0; wide < 2; wide++) SL_PICK (name, wide)->run (); \
  }

/* Make 'isa' the instruction set in use; 0 if it cannot run here. */
int variant_use (sl_isa isa);
#endif
