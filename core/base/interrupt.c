/* interrupt.c - Ctrl-C and SIGTERM as a flag that long loops poll. */
#include "base/interrupt.h"

volatile sig_atomic_t sl_interrupted;

static void on_signal (int number) {
  if (sl_interrupted) {
    /* Asked twice: the default action, once this handler has returned. */
    signal (number, SIG_DFL);
    raise (number);
  }
  sl_interrupted = number;
}

void sl_interrupt_install (void) {
  struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
  sigemptyset (&action.sa_mask);
  sigaction (SIGINT, &action, NULL);
  sigaction (SIGTERM, &action, NULL);
}
