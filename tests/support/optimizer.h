/* optimizer.h - optimizers for tests. */
#ifndef TEST_OPTIMIZER_H
#define TEST_OPTIMIZER_H
#include "train/train.h"

/* The optimizer of this name with options changed: names and doubles in turn,
** then NULL, as in optimizer_of ("adam", "beta2", 0.95, NULL). */
sl_optimizer optimizer_of (const char *name, ...);
#endif
