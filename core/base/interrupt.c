/* interrupt.c - signals that ask to stop as a flag that long loops poll. */
#include "base/interrupt.h"
#include <errno.h>
#include <poll.h>

volatile sig_atomic_t sl_interrupted;
const int sl_stop_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGXFSZ, 0 };

void sl_stop_signals_handle (void (*handler) (int number)) {
  struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
  sigemptyset (&action.sa_mask);
  for (const int *number = sl_stop_signals; *number; number++) {
    struct sigaction before;
    sigaction (*number, NULL, &before);
    if (*number == SIGHUP && before.sa_handler == SIG_IGN) continue;
    sigaction (*number, &action, NULL);
  }
}

void sl_stop_signals_add (sigset_t *set) {
  for (const int *number = sl_stop_signals; *number; number++)
    sigaddset (set, *number);
}

void sl_interrupt (int number) {
  if (number == SIGXFSZ) /* each further write raises it again, and fails */
    signal (number, SIG_IGN);
  else if (sl_interrupted) {
    /* Asked twice: the default action, once this handler has returned. */
    signal (number, SIG_DFL);
    raise (number);
  }
  if (!sl_interrupted) sl_interrupted = number;
}

int sl_wait_to_read (int file) {
  while (!sl_interrupted) {
    struct pollfd in = { file, POLLIN, 0 };
    const int ready = poll (&in, 1, 100); /* a signal may come just before */
    if (ready > 0 || (ready < 0 && errno != EINTR)) return 1;
  }
  return 0;
}
