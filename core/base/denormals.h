/* denormals.h - denormal numbers: counted as they are, or flushed to zero.
**
** Numbers below 1.2e-38 (f32) and 2.2e-308 (f64) take many processors a hundred
** times longer than others. Training (sl_trainer_run, sl_trainer_evaluate) and
** products (operations with SL_OP_FLUSHES; products with stored weights) treat
** them as zero, where they read and where they make them. Everything else counts
** them: measuring, attention that is observed for it, and the script, also where
** training calls it. Where a
** processor has no such mode, nothing is flushed. */
#ifndef SL_DENORMALS_H
#define SL_DENORMALS_H

typedef enum sl_denormals {
  SL_DENORMALS_KEEP,
  SL_DENORMALS_FLUSH
} sl_denormals;

/* Of the calling thread, from now on; returns the treatment before, to be set
** again. Tasks of a pool are treated as their caller is (pool.h). */
sl_denormals sl_denormals_set (sl_denormals treatment);
sl_denormals sl_denormals_current (void);
#endif
