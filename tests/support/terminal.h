/* terminal.h - sinklab's prompt on a pseudo-terminal, typed into by a test. One
** to a test: tests fork. */
#ifndef TERMINAL_H
#define TERMINAL_H

/* Start 'binary' in a terminal of 80 columns of the kind 'term' ("dumb",
** "xterm"), in 'folder' (NULL: this one), its history in a folder of its
** own. */
void terminal_start (const char *binary, const char *term, const char *folder);
/* The folder of the history: $XDG_STATE_HOME and $HOME of what runs. */
const char *terminal_state (void);
void terminal_signal (int number);
/* Wait for the end that a signal brings; the status of waitpid. */
int terminal_wait (void);

void terminal_type (const char *keys);
/* Wait until the screen shows 'part' and forget what came before its end. */
void terminal_expect (const char *part);
/* The same; what came before 'part' is kept in a buffer, valid until the next
** call. */
const char *terminal_until (const char *part);
/* Wait until the editor has the terminal: the prompt is shown an instant before
** that, and until then keys are echoed twice and Ctrl-D is the terminal's
** own. */
void terminal_ready (void);
/* Type control keys at the next prompt. */
void terminal_press (const char *prompt, const char *keys);
/* Ctrl-D at the prompt; the exit status. */
int terminal_leave (void);
#endif
