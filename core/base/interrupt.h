/* interrupt.h - the one global flag: the user wants long work to stop. */
#ifndef SL_INTERRUPT_H
#define SL_INTERRUPT_H
#include <signal.h>

/* 0, or the number of the signal (SIGINT, SIGTERM, in a session SIGPIPE) that
** asked to stop. Set by the handler, polled by long loops between steps,
** cleared by whoever reports it. */
extern volatile sig_atomic_t sl_interrupted;

/* Install the handlers for SIGINT and SIGTERM. A second signal while the flag
** is still set ends the process at once by the default action. System calls
** that a signal interrupts are restarted. */
void sl_interrupt_install (void);
#endif
