/* child.c - a check in a process of its own, with a time limit. */
#include "base/child.h"
#include "base/clock.h"
#include "check/check_case.h"
#include <stdio.h>
#include <string.h>

/* The child's arguments, and its results for the parent. */
typedef struct shared {
  sl_check_body body;
  sl_check_case c;
  sl_check_result result;
  char doing[SL_DOING];
} shared;

static void run (void *data) {
  shared *m = data;
  m->body (&m->c);
}

/* The verdict of a child that timed out, crashed or exited; else r stays. */
static void judge (sl_check_result *r, const char *doing,
                   const sl_child_end *end, double seconds) {
  static const char *const figures[] = { [SL_CHILD_RETURNED] = "exit",
                                         [SL_CHILD_EXITED] = "exit",
                                         [SL_CHILD_KILLED] = "crash",
                                         [SL_CHILD_TIMED_OUT] = "time limit" };
  const char *during = *doing ? doing : "this check";
  if (end->how == SL_CHILD_TIMED_OUT)
    snprintf (r->why, sizeof r->why,
              "did not return within %g s: endless or far too slow in %s",
              seconds, during);
  else if (end->how == SL_CHILD_KILLED)
    snprintf (r->why, sizeof r->why, "killed by signal %d (%s) in %s",
              end->number, strsignal (end->number), during);
  else if (end->how == SL_CHILD_EXITED)
    snprintf (r->why, sizeof r->why, "ended the process with status %d in %s",
              end->number, during);
  else if (end->left)
    snprintf (r->why, sizeof r->why, "left a process running");
  else
    return;
  r->state = SL_CHECK_FAILED;
  snprintf (r->figure, sizeof r->figure, "%s", figures[end->how]);
}

int sl_child_run (sl_check_body body, const char *plugin,
                  const sl_loaded *loaded, const sl_check_settings *s,
                  sl_check_result *r, sl_error *e) {
  const double start = sl_now ();
  sl_child_end end;
  shared *m = sl_child_alloc (sizeof *m);
  int status;
  if (!m) return sl_fail (e, "no memory for the result of a check");
  m->body = body;
  m->result.name = r->name;
  m->c = (sl_check_case){ plugin, loaded, s->seed, &m->result, m->doing };
  status = sl_child_try (run, m, s->seconds, &end, e);
  if (status == 0) {
    *r = m->result;
    m->doing[SL_DOING - 1] = '\0';
    judge (r, m->doing, &end, s->seconds);
    r->seconds = sl_now () - start;
  }
  sl_child_free (m, sizeof *m);
  return status;
}
