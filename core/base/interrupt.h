/* interrupt.h - the one global flag: the user wants long work to stop. */
#ifndef SL_INTERRUPT_H
#define SL_INTERRUPT_H
#include <signal.h>

/* 0, or the number of the signal that asked to stop: one of sl_stop_signals, in
** a session also SIGPIPE. Set by the handler, polled by long loops between
** steps, cleared by whoever reports it. */
extern volatile sig_atomic_t sl_interrupted;

/* The signals that ask to stop, ended by 0: SIGINT, SIGTERM, SIGHUP (the terminal
** has gone) and SIGXFSZ (a file has reached the limit of its size). */
extern const int sl_stop_signals[];

/* Handle them from now on by 'handler', or by the default action for SIG_DFL.
** SIGHUP stays ignored where it is, as nohup asks. System calls that a signal
** interrupts are restarted. */
void sl_stop_signals_handle (void (*handler) (int number));

/* Add them to a set. */
void sl_stop_signals_add (sigset_t *set);

/* The handler: sets the flag. A second signal while the flag is still set ends
** the process at once by the default action, except SIGXFSZ, which is ignored
** after the first: writes go on failing. */
void sl_interrupt (int number);

/* Wait until a descriptor has something to read, or has ended: 1; 0 once the
** flag is set. */
int sl_wait_to_read (int file);
#endif
