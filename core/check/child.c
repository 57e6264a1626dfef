/* child.c - a check in a process of its own, with a time limit. */
#include "base/clock.h"
#include "base/interrupt.h"
#include "check/check_case.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child leaves for the parent. */
typedef struct shared {
  sl_check_result result;
  char doing[SL_DOING];
} shared;

/* Signals end the child at once, whatever handlers this process has. */
static void plain_signals (void) {
  static const int signals[] = { SIGSEGV, SIGBUS,  SIGFPE,
                                 SIGILL,  SIGABRT, SIGTRAP };
  const struct rlimit none = { 0, 0 };
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    signal (signals[i], SIG_DFL);
  sl_stop_signals_handle (SIG_DFL);
  setrlimit (RLIMIT_CORE, &none);
}

/* 1 when the other end of the pipe is closed, 0 when time is up, -1 when this
** process is told to stop. */
static int wait_for (int fd, double deadline) {
  for (;;) {
    struct pollfd p = { fd, POLLIN, 0 };
    const double left = deadline - sl_now ();
    int n;
    if (sl_interrupted) return -1;
    if (left <= 0) return 0;
    n = poll (&p, 1, left > 0.1 ? 100 : (int)(left * 1000) + 1);
    if (n > 0) return 1;
    if (n < 0 && errno != EINTR) return -1;
  }
}

/* The verdict of a child that timed out, crashed or exited; else r stays. */
static void judge (sl_check_result *r, const char *doing, int status,
                   int timed_out, double seconds) {
  const char *during = *doing ? doing : "this check";
  if (timed_out)
    snprintf (r->why, sizeof r->why,
              "did not return within %g s: endless or far too slow in %s",
              seconds, during);
  else if (WIFSIGNALED (status))
    snprintf (r->why, sizeof r->why, "killed by signal %d (%s) in %s",
              WTERMSIG (status), strsignal (WTERMSIG (status)), during);
  else if (WEXITSTATUS (status) != 0 ||
           (r->state == SL_CHECK_FAILED && !r->why[0]))
    snprintf (r->why, sizeof r->why, "ended the process with status %d in %s",
              WEXITSTATUS (status), during);
  else
    return;
  r->state = SL_CHECK_FAILED;
  snprintf (r->figure, sizeof r->figure, "%s",
            timed_out              ? "time limit"
            : WIFSIGNALED (status) ? "crash"
                                   : "exit");
}

int sl_child_run (sl_check_body body, const char *plugin,
                  const sl_loaded *loaded, const sl_check_settings *s,
                  sl_check_result *r, sl_error *e) {
  const double start = sl_now ();
  int ends[2], status = 0, came;
  pid_t child;
  shared *m = mmap (NULL, sizeof *m, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED)
    return sl_fail (e, "no memory for the result of a check: %s",
                    strerror (errno));
  if (pipe (ends)) {
    munmap (m, sizeof *m);
    return sl_fail (e, "no pipe for a check: %s", strerror (errno));
  }
  m->result.name = r->name;
  fflush (NULL);
  child = fork ();
  if (child == 0) {
    sl_check_case t = { plugin, loaded, s->seed, &m->result, m->doing };
    close (ends[0]);
    plain_signals ();
    body (&t);
    _exit (0);
  }
  close (ends[1]);
  if (child < 0) {
    close (ends[0]);
    munmap (m, sizeof *m);
    return sl_fail (e, "a check cannot be forked: %s", strerror (errno));
  }
  came = wait_for (ends[0], start + s->seconds);
  close (ends[0]);
  if (came != 1) kill (child, SIGKILL);
  while (waitpid (child, &status, 0) < 0 && errno == EINTR) {}
  *r = m->result;
  m->doing[SL_DOING - 1] = '\0';
  judge (r, m->doing, status, came == 0, s->seconds);
  r->seconds = sl_now () - start;
  munmap (m, sizeof *m);
  return came < 0 ? sl_fail (e, "interrupted") : 0;
}
