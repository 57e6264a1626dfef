/* child.c - a guarded child: see child.h. */
#include "base/child.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* Seconds that a guard gets beyond the child's: it may be stopped or killed by
** the code that it guards. */
static const double GUARD_GRACE = 2;

void *sl_child_alloc (size_t size) {
  void *m = mmap (NULL, size, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return m == MAP_FAILED ? NULL : m;
}

void sl_child_free (void *memory, size_t size) {
  if (memory) munmap (memory, size);
}

static void handle (void (*handler) (int), int n, const int *signals) {
  for (int i = 0; i < n; i++) signal (signals[i], handler);
}
static const int asked[] = { SIGQUIT, SIGPIPE }, crashes[] = {
  SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP
};
enum { ASKED = sizeof asked / sizeof *asked };
enum { CRASHES = sizeof crashes / sizeof *crashes };

/* A message to the parent: from the child its process, before its code runs;
** from the guard the end of the child. */
typedef struct report {
  pid_t child;
  sl_child_end end;
} report;

static void send_report (int to, const report *r) {
  while (write (to, r, sizeof *r) < 0 && errno == EINTR) {}
}

/* The child, between the guard and the code. */
static void run (void (*body) (void *), void *data, pid_t guard, int to,
                 volatile int *returned) {
  const report self = { .child = getpid () };
  const struct rlimit none = { 0, 0 };
  const int nothing = open ("/dev/null", O_RDONLY);
  setpgid (0, 0);
#ifdef __linux__
  prctl (PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid () != guard) _exit (0);
  if (nothing >= 0) dup2 (nothing, STDIN_FILENO), close (nothing);
  sl_stop_signals_handle (SIG_DFL);
  handle (SIG_DFL, ASKED, asked);
  handle (SIG_DFL, CRASHES, crashes);
  setrlimit (RLIMIT_CORE, &none);
  send_report (to, &self);
  close (to);
  body (data);
  *returned = 1;
  _exit (0);
}

/* Kill the children of this process, which on Linux gets orphans too; how many
** there were. */
static int kill_children (void) {
  int n = 0;
#ifdef __linux__
  char path[64];
  long child;
  FILE *f;
  snprintf (path, sizeof path, "/proc/self/task/%ld/children", (long)getpid ());
  f = fopen (path, "re");
  while (f && fscanf (f, "%ld", &child) == 1)
    n += kill ((pid_t)child, SIGKILL) == 0;
  if (f) fclose (f);
#endif
  return n;
}

/* Kill the group and whoever left it; a second suffices for thousands. 1: there
** was someone. */
static int end_all (pid_t group) {
  const double until = sl_now () + 1;
  int n = 0;
  while (sl_now () < until) {
    pid_t got;
    while (waitpid (-1, NULL, WNOHANG) > 0) {} /* these have ended already */
    n += kill (-group, SIGKILL) == 0;
    n += kill_children ();
    while ((got = waitpid (-1, NULL, WNOHANG)) > 0) {}
    if (got < 0 && errno == ECHILD) break;
    poll (NULL, 0, 1);
  }
  return n > 0;
}

static void on_child (int number) {
  (void)number; /* it wakes pselect */
}

/* Wait until the child has ended, time is up or the other end of standard input
** has gone. 1: it has ended, with *status. */
static int watch (pid_t child, double deadline, int *status) {
  sigset_t none;
  sigemptyset (&none);
  for (;;) {
    const double left = deadline - sl_now ();
    struct timespec t;
    fd_set set;
    int ended;
    pid_t got;
    while ((got = waitpid (-1, &ended, WNOHANG)) > 0) {
      if (got != child) continue; /* an orphan of it */
      *status = ended;
      return 1;
    }
    if (left <= 0) return 0;
    t.tv_sec = (time_t)(left > 1000 ? 1000 : left);
    t.tv_nsec = left > 1000 ? 0 : (long)((left - (double)t.tv_sec) * 1e9);
    FD_ZERO (&set);
    FD_SET (STDIN_FILENO, &set);
    if (pselect (1, &set, NULL, NULL, &t, &none) > 0) return 0;
  }
}

/* The guard: starts the child, watches it, kills what is left, reports. */
static void guard (void (*body) (void *), void *data, double seconds, int life,
                   int to, volatile int *returned) {
  const double deadline = sl_now () + seconds;
  const pid_t self = getpid ();
  sigset_t child_ends;
  report r = { 0, { SL_CHILD_TIMED_OUT, 0, 0 } };
  int status = 0;
  setpgid (0, 0);
  sl_stop_signals_handle (SIG_IGN);
  handle (SIG_IGN, ASKED, asked);
  dup2 (life, STDIN_FILENO);
  close (life);
#ifdef __linux__
  prctl (PR_SET_CHILD_SUBREAPER, 1);
#endif
  signal (SIGCHLD, on_child);
  r.child = fork ();
  if (r.child == 0) {
    signal (SIGCHLD, SIG_DFL);
    run (body, data, self, to, returned);
  }
  /* Blocked from here on: only pselect lets it in, and watch looks first. */
  sigemptyset (&child_ends);
  sigaddset (&child_ends, SIGCHLD);
  sigprocmask (SIG_BLOCK, &child_ends, NULL);
  if (r.child > 0) {
    setpgid (r.child, r.child);
    if (watch (r.child, deadline, &status)) {
      r.end.how = WIFSIGNALED (status) ? SL_CHILD_KILLED
                  : *returned          ? SL_CHILD_RETURNED
                                       : SL_CHILD_EXITED;
      r.end.number =
          WIFSIGNALED (status) ? WTERMSIG (status) : WEXITSTATUS (status);
    }
    r.end.left = end_all (r.child);
    send_report (to, &r);
  }
  _exit (0);
}

/* Read a report of the guard: 1, 0 if there is none and will be none within the
** time, -1 when this process is told to stop. */
static int receive_report (int from, double deadline, report *r) {
  for (;;) {
    struct pollfd p = { from, POLLIN, 0 };
    const double left = deadline - sl_now ();
    if (sl_interrupted) return -1;
    if (left <= 0) return 0;
    /* a signal that comes just before poll is seen after a tenth of a second */
    if (poll (&p, 1, left > 0.1 ? 100 : (int)(left * 1000) + 1) > 0)
      return read (from, r, sizeof *r) == (ssize_t)sizeof *r;
  }
}

/* The guard ends by itself, unless the child has stopped or killed it. */
static void end_guard (pid_t pid, pid_t child) {
  const double until = sl_now () + GUARD_GRACE;
  pid_t got;
  while ((got = waitpid (pid, NULL, WNOHANG)) == 0 && sl_now () < until)
    poll (NULL, 0, 1);
  if (got != 0) return;
  kill (pid, SIGKILL);
  if (child > 0) kill (-child, SIGKILL);
  while (waitpid (pid, NULL, 0) < 0 && errno == EINTR) {}
}

static int pipe_of_two (int ends[2]) {
  if (pipe (ends)) return -1;
  for (int i = 0; i < 2; i++) fcntl (ends[i], F_SETFD, FD_CLOEXEC);
  return 0;
}

int sl_child_try (void (*body) (void *), void *data, double seconds,
                  sl_child_end *end, sl_error *e) {
  int life[2], reports[2], received, code;
  int *returned = sl_child_alloc (sizeof *returned);
  double deadline;
  report first = { 0 }, last = { 0 };
  pid_t pid;
  if (!returned) return sl_fail (e, "no memory shared with a child");
  if (pipe_of_two (life)) {
    sl_child_free (returned, sizeof *returned);
    return sl_fail (e, "no pipe to a child: %s", strerror (errno));
  }
  if (pipe_of_two (reports)) {
    close (life[0]);
    close (life[1]);
    sl_child_free (returned, sizeof *returned);
    return sl_fail (e, "no pipe to a child: %s", strerror (errno));
  }
  fflush (NULL);
  pid = fork ();
  code = errno;
  if (pid == 0) {
    close (life[1]);
    close (reports[0]);
    guard (body, data, seconds, life[0], reports[1], returned);
  }
  close (life[0]);
  close (reports[1]);
  deadline = sl_now () + seconds + GUARD_GRACE;
  received = pid > 0 ? receive_report (reports[0], deadline, &first) : 0;
  if (received == 1) received = receive_report (reports[0], deadline, &last);
  close (life[1]);
  if (pid > 0) end_guard (pid, first.child);
  close (reports[0]);
  sl_child_free (returned, sizeof *returned);
  if (pid < 0 || (received == 0 && first.child <= 0 && sl_now () < deadline))
    return sl_fail (e, "no child can be started: %s",
                    strerror (pid < 0 ? code : EAGAIN));
  if (received < 0) return sl_fail (e, "interrupted");
  /* a guard without a report was killed or stopped by the code that it guards */
  for (int i = 0; received == 0 && first.child > 0 && i < 500; i++) {
    if (kill (-first.child, SIGKILL)) break;
    poll (NULL, 0, 1);
  }
  *end = received ? last.end : (sl_child_end){ SL_CHILD_KILLED, SIGKILL, 0 };
  return 0;
}
