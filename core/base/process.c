/* process.c - fresh processes and the messages to and from them. */
#include "base/process.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

extern char **environ;

/* A message is its length in eight bytes of this machine, then its bytes. */
enum { HEADER = sizeof (uint64_t) };
static const uint64_t LONGEST = (uint64_t)1 << 40;

#ifdef MSG_NOSIGNAL
enum { NO_SIGNAL = MSG_NOSIGNAL };
#else
enum { NO_SIGNAL = 0 }; /* the socket has SO_NOSIGPIPE */
#endif

struct sl_process {
  pid_t pid;
  int socket;
  /* The bytes of the next message that have come. */
  char header[HEADER];
  char *data; /* NULL until the header is whole */
  size_t got, size;
};

/* Whoever reads may be busy or stopped: the wait for it ends when this process is
** told to stop. */
static int send_all (int socket, const char *data, size_t n) {
  while (n > 0) {
    const ssize_t sent = send (socket, data, n, NO_SIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) {
      struct pollfd out = { socket, POLLOUT, 0 };
      poll (&out, 1, 100);
      if (!sl_interrupted) continue;
      errno = EINTR;
    }
    if (sent < 0) return -1;
    data += sent;
    n -= (size_t)sent;
  }
  return 0;
}

static int send_message (int socket, const void *data, size_t n) {
  const uint64_t length = n;
  char header[HEADER];
  memcpy (header, &length, sizeof header);
  return send_all (socket, header, sizeof header) || send_all (socket, data, n)
             ? -1
             : 0;
}

/* A connected pair that no other program inherits. */
static int make_pair (int ends[2]) {
  if (socketpair (AF_UNIX, SOCK_STREAM, 0, ends)) return -1;
  for (int i = 0; i < 2; i++) {
#ifdef SO_NOSIGPIPE
    const int on = 1;
    setsockopt (ends[i], SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    fcntl (ends[i], F_SETFD, FD_CLOEXEC);
  }
  return 0;
}

/* posix_spawn with standard input and output as above and signals as a fresh
** program expects them; an error number. */
static int spawn (pid_t *pid, char *const *argv, int input) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none, plain;
  int code;
  sigemptyset (&none);
  sigemptyset (&plain);
  sigaddset (&plain, SIGPIPE);
  sl_stop_signals_add (&plain);
  posix_spawn_file_actions_init (&files);
  posix_spawn_file_actions_adddup2 (&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2 (&files, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_init (&attributes);
  posix_spawnattr_setsigmask (&attributes, &none);
  posix_spawnattr_setsigdefault (&attributes, &plain);
  posix_spawnattr_setflags (&attributes,
                            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  code = posix_spawn (pid, argv[0], &files, &attributes, argv, environ);
  posix_spawnattr_destroy (&attributes);
  posix_spawn_file_actions_destroy (&files);
  return code;
}

sl_process *sl_process_start (char *const *argv, sl_error *e) {
  sl_process *p = sl_alloc (1, sizeof *p);
  int ends[2], code;
  if (p == NULL) {
    sl_fail (e, "%s: no memory for a process", argv[0]);
    return NULL;
  }
  if (make_pair (ends)) {
    sl_fail (e, "%s: no socket for a process: %s", argv[0], strerror (errno));
    sl_free (p);
    return NULL;
  }
  code = spawn (&p->pid, argv, ends[1]);
  close (ends[1]);
  p->socket = ends[0];
  if (code == 0) return p;
  sl_fail (e, "%s: cannot be started: %s", argv[0], strerror (code));
  close (ends[0]);
  sl_free (p);
  return NULL;
}

int sl_process_send (sl_process *p, const void *data, size_t n, sl_error *e) {
  if (send_message (p->socket, data, n) == 0) return 0;
  return sl_fail (e, "process %ld does not listen: %s", (long)p->pid,
                  strerror (errno));
}

int sl_process_wait (sl_process *const *p, int n, double seconds) {
  const double most = INT_MAX / 1000; /* of what poll counts in */
  const double wait = seconds > most ? most : seconds > 0 ? seconds : 0;
  struct pollfd *fds = sl_alloc ((size_t)n, sizeof *fds);
  int found = -1, ready;
  if (fds == NULL) return -1;
  for (int i = 0; i < n; i++)
    fds[i] = (struct pollfd){ p[i]->socket, POLLIN, 0 };
  ready = sl_interrupted ? 0 : poll (fds, (nfds_t)n, (int)(wait * 1000));
  for (int i = 0; ready > 0 && i < n && found < 0; i++)
    if (fds[i].revents) found = i;
  sl_free (fds);
  return found;
}

/* The bytes left of the header or of the message. */
static ssize_t receive_some (sl_process *p) {
  char *to = p->data ? p->data : p->header;
  const size_t want = (p->data ? p->size : (size_t)HEADER) - p->got;
  ssize_t n;
  if (want == 0) return 0;
  do n = recv (p->socket, to + p->got, want, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n > 0) p->got += (size_t)n;
  return n == 0                                               ? -1
         : n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0
                                                              : n;
}

int sl_process_receive (sl_process *p, char **data, size_t *n, sl_error *e) {
  if (receive_some (p) < 0)
    return sl_fail (e, "process %ld has ended", (long)p->pid);
  if (p->data == NULL && p->got == HEADER) {
    uint64_t length;
    memcpy (&length, p->header, sizeof length);
    p->data = length < LONGEST ? sl_alloc ((size_t)length + 1, 1) : NULL;
    if (p->data == NULL)
      return sl_fail (e, "no memory for a message of %llu bytes",
                      (unsigned long long)length);
    p->size = (size_t)length;
    p->got = 0;
  }
  if (p->data == NULL || p->got < p->size) return 0;
  *data = p->data;
  *n = p->size;
  p->data = NULL;
  p->got = 0;
  return 1;
}

/* waitpid for at most 'seconds'; 1 when it has ended. */
static int reap (pid_t pid, double seconds, int *status) {
  const double until = sl_now () + seconds;
  for (;;) {
    const pid_t got = waitpid (pid, status, WNOHANG);
    if (got == pid || (got < 0 && errno != EINTR)) return 1;
    if (sl_now () >= until) return 0;
    poll (NULL, 0, 1);
  }
}

void sl_process_stop (sl_process *p, char *how, size_t size) {
  int status = 0;
  if (p == NULL) return;
  close (p->socket);
  /* one that has crashed or finished needs no signal */
  if (!reap (p->pid, 0.01, &status)) {
    kill (p->pid, SIGTERM);
    if (!reap (p->pid, 2, &status)) {
      kill (p->pid, SIGKILL);
      while (waitpid (p->pid, &status, 0) < 0 && errno == EINTR) {}
    }
  }
  if (WIFSIGNALED (status))
    snprintf (how, size, "was killed by signal %d (%s)", WTERMSIG (status),
              strsignal (WTERMSIG (status)));
  else
    snprintf (how, size, "ended with status %d", WEXITSTATUS (status));
  sl_free (p->data);
  sl_free (p);
}

/* The child. */

static int parent = -1;

int sl_parent_begin (sl_error *e) {
  struct stat info;
  int nothing;
  if (fstat (STDIN_FILENO, &info) || !S_ISSOCK (info.st_mode))
    return sl_fail (e, "standard input is not a socket of a sinklab process");
  parent = fcntl (STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  nothing = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  if (parent < 0 || nothing < 0)
    return sl_fail (e, "no descriptor for messages: %s", strerror (errno));
  dup2 (nothing, STDIN_FILENO);
  close (nothing);
#ifdef __linux__
  prctl (PR_SET_PDEATHSIG, SIGTERM);
#endif
  return 0;
}

int sl_parent_exists (void) {
  return parent >= 0;
}

static int receive_all (char *to, size_t n) {
  while (n > 0) {
    ssize_t got;
    if (!sl_wait_to_read (parent)) return -1;
    got = recv (parent, to, n, 0);
    if (got <= 0) return -1;
    to += got;
    n -= (size_t)got;
  }
  return 0;
}

char *sl_parent_receive (size_t *n) {
  uint64_t length;
  char *data;
  if (receive_all ((char *)&length, sizeof length) || length >= LONGEST)
    return NULL;
  data = sl_alloc ((size_t)length + 1, 1);
  if (data == NULL) return NULL;
  *n = (size_t)length;
  if (receive_all (data, *n) == 0) return data;
  sl_free (data);
  return NULL;
}

int sl_parent_send (const void *data, size_t n, sl_error *e) {
  if (send_message (parent, data, n) == 0) return 0;
  return sl_fail (e, "the process that started this one has gone");
}
