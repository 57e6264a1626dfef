/* repl.h - the prompt. */
#ifndef SL_REPL_H
#define SL_REPL_H
#include "lua/session.h"

/* Read, run and print until the end of the input. Returns the exit status: with a
** terminal always 0; a script on a pipe is run as one, and 1 if it fails. */
int sl_repl (sl_session *s);
#endif
