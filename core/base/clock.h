/* clock.h - how long something takes. */
#ifndef SL_CLOCK_H
#define SL_CLOCK_H

/* Seconds on a clock that never jumps; only differences mean anything. */
double sl_now (void);
#endif
