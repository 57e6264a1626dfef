/* child.h - code that may crash, hang or exit, tried in a process of its own.
**
** The code runs in a forked process, the leader of a process group. A second
** process, the guard, watches it and this one: when the code has returned, when
** time is up and when this process has gone, for whatever reason, the guard
** kills the whole group, and on Linux every descendant that left the group. */
#ifndef SL_CHILD_H
#define SL_CHILD_H
#include "base/error.h"

typedef enum sl_child_how {
  SL_CHILD_RETURNED,
  SL_CHILD_EXITED, /* without returning; number: the status */
  SL_CHILD_KILLED, /* number: the signal */
  SL_CHILD_TIMED_OUT
} sl_child_how;

typedef struct sl_child_end {
  sl_child_how how;
  int number;
  int left; /* 1: it left processes running, which have been killed */
} sl_child_end;

/* Run body (data) in a child, for at most 'seconds' of the clock. The child has
** default signal handlers, no standard input and leaves no core file; it shares
** memory with this process where 'data' is mapped so. -1 and a sentence if no
** child can be started, or if this process is told to stop; nothing is left
** running in any case. */
int sl_child_try (void (*body) (void *), void *data, double seconds,
                  sl_child_end *end, sl_error *e);

/* Memory, zeroed, that is shared with children; NULL: none. */
void *sl_child_alloc (size_t size);
void sl_child_free (void *memory, size_t size);
#endif
