/* repl.h - the prompt. */
#ifndef SL_REPL_H
#define SL_REPL_H
#include "lua/session.h"

/* Read, run and print until the end of the input. On a terminal errors are
** printed and the prompt follows; the text of a pipe is run as one script.
** Returns as sl_session_call does. */
int sl_repl (sl_session *s);
#endif
