/* process.h - fresh processes of another program, or this one, to talk to.
**
** Both sides exchange messages, each a run of bytes of any length, over a
** socket that is the child's standard input. Nothing is forked from a process
** with threads: the child starts from its program's beginning. */
#ifndef SL_PROCESS_H
#define SL_PROCESS_H
#include "base/error.h"
#include <stddef.h>

typedef struct sl_process sl_process;

/* Start the program argv[0] (a path) with these arguments, NULL-ended, and this
** process's environment; it writes to this process's standard error, whatever
** it writes. */
sl_process *sl_process_start (char *const *argv, sl_error *e);
/* Sends a message; waits until the child has taken it. */
int sl_process_send (sl_process *p, const void *data, size_t n, sl_error *e);
/* Wait until one of n processes has something to receive: its index. -1: not
** within 'seconds' (24 days at most), or a signal came. */
int sl_process_wait (sl_process *const *p, int n, double seconds);
/* Read the bytes that have arrived. 1: a whole message, in *data (the caller
** frees it with sl_free) and *n; 0: not yet all of one; -1: there will be no
** more. */
int sl_process_receive (sl_process *p, char **data, size_t *n, sl_error *e);
/* End it: SIGTERM, after two seconds SIGKILL; waits. 'how' says how it ended:
** "ended with status 1", "was killed by signal 11 (Segmentation fault)". Frees
** p; NULL is allowed. */
void sl_process_stop (sl_process *p, char *how, size_t size);

/* The child's side. begin takes the socket over from standard input, which
** reads nothing from then on, and has the system end this process with its
** parent where that is possible. -1 if standard input is no such socket. */
int sl_parent_begin (sl_error *e);
/* 1: this process is a child, and begin has returned 0. */
int sl_parent_exists (void);
/* The next message, whole (free with sl_free); NULL: there are no more. */
char *sl_parent_receive (size_t *n);
int sl_parent_send (const void *data, size_t n, sl_error *e);
#endif
