/* terminal.c - sinklab's prompt on a pseudo-terminal, typed into by a test. */
#include "support/terminal.h"
#include <check.h>
#include <poll.h>
#ifdef __APPLE__
#include <util.h>
#else
#include <pty.h>
#endif
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { SECONDS = 60, SCREEN = 1 << 16 };

static struct {
  int fd;
  pid_t pid;
  char text[SCREEN]; /* since the last 'expect' */
  size_t n;
} screen;

static char state[] = "/tmp/sinklab-repl-XXXXXX";
static char before[SCREEN];

void terminal_start (const char *binary, const char *term, const char *folder) {
  struct winsize size = { .ws_row = 24, .ws_col = 80 };
  ck_assert_ptr_nonnull (mkdtemp (state));
  screen.pid = forkpty (&screen.fd, NULL, NULL, &size);
  ck_assert_int_ge (screen.pid, 0);
  if (screen.pid == 0) {
    setenv ("TERM", term, 1);
    setenv ("LC_ALL", "C.UTF-8", 1);
    setenv ("XDG_STATE_HOME", state, 1);
    setenv ("HOME", state, 1);
    if (folder && chdir (folder) != 0) _exit (127);
    execl (binary, "sinklab", "--threads=1", (char *)NULL);
    _exit (127);
  }
}

const char *terminal_state (void) {
  return state;
}

void terminal_signal (int number) {
  kill (screen.pid, number);
}

int terminal_wait (void) {
  int status;
  ck_assert_int_eq (waitpid (screen.pid, &status, 0), screen.pid);
  return status;
}

void terminal_type (const char *keys) {
  ck_assert_int_eq (write (screen.fd, keys, strlen (keys)),
                    (ssize_t)strlen (keys));
}

const char *terminal_until (const char *part) {
  for (int tenths = 0; tenths < SECONDS * 10;) {
    struct pollfd wait = { .fd = screen.fd, .events = POLLIN };
    char *found = strstr (screen.text, part);
    if (found) {
      size_t used = (size_t)(found - screen.text);
      memcpy (before, screen.text, used);
      before[used] = '\0';
      used += strlen (part);
      memmove (screen.text, screen.text + used, screen.n - used + 1);
      screen.n -= used;
      return before;
    }
    if (poll (&wait, 1, 100) == 0) {
      tenths++;
      continue;
    }
    ssize_t n = read (screen.fd, screen.text + screen.n,
                      sizeof screen.text - 1 - screen.n);
    if (n <= 0) break;
    screen.n += (size_t)n;
    screen.text[screen.n] = '\0';
  }
  ck_abort_msg ("the screen shows no \"%s\" but \"%s\"", part, screen.text);
  return NULL;
}

void terminal_expect (const char *part) {
  terminal_until (part);
}

void terminal_ready (void) {
  struct termios mode;
  for (int i = 0; i < SECONDS * 1000; i++) {
    ck_assert_int_eq (tcgetattr (screen.fd, &mode), 0);
    if (!(mode.c_lflag & ICANON)) return;
    usleep (1000);
  }
  ck_abort_msg ("the editor never took the terminal over");
}

void terminal_press (const char *prompt, const char *keys) {
  terminal_expect (prompt);
  terminal_ready ();
  terminal_type (keys);
}

int terminal_leave (void) {
  char rest[512];
  struct pollfd wait = { .fd = screen.fd, .events = POLLIN };
  int status;
  terminal_press ("> ", "\004");
  while (poll (&wait, 1, SECONDS * 1000) > 0)
    if (read (screen.fd, rest, sizeof rest) <= 0) break;
  status = terminal_wait ();
  ck_assert_msg (WIFEXITED (status), "ended by signal %d", WTERMSIG (status));
  return WEXITSTATUS (status);
}
