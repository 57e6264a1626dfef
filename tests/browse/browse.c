/* browse.c - drives a headless Chromium for tests: commands in, what the page
** answers out.
**
** The browser is spoken to over two pipes (--remote-debugging-pipe: messages of
** the DevTools protocol, each ended by a NUL). Commands are lines of standard
** input:
**
**   size W H             of the window in CSS pixels
**   theme light|dark     what prefers-color-scheme says
**   media print|screen
**   open FILE            and wait until it has loaded
**   eval EXPRESSION      its value as JSON, on a line of its own
**   click SELECTOR [X Y] with the mouse, at these parts (0..1) of the element
**   hover SELECTOR [X Y]
**   key NAME             such as ArrowDown, Tab, Enter
**   shot FILE            a PNG of the whole page
**
** A selector has no spaces; '_' stands for one. What the page writes to its
** console, and every error in it, is printed as "console: TEXT". Exit status:
** 0; 1 and a sentence for anything that does not work; 77 without a
** Chromium. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_BROWSER = 77, PATIENCE_MS = 60000 };

static struct {
  pid_t pid;
  int to, from; /* pipes */
  char profile[32];
  char *inbox; /* bytes of messages not yet read */
  size_t n, room;
  int last_id;
  char session[128];
  int loaded; /* pages that have loaded */
} browser;

static void shut_down (void);

static void die (const char *format, ...)
    __attribute__ ((noreturn, format (printf, 1, 2)));
static void die (const char *format, ...) {
  va_list args;
  va_start (args, format);
  fprintf (stderr, "browse: ");
  vfprintf (stderr, format, args);
  fprintf (stderr, "\n");
  va_end (args);
  shut_down ();
  exit (1);
}

/* ---- the process ---- */

static const char *find_browser (void) {
  static const char *const names[] = { "chromium-headless-shell", "chromium",
                                       "chromium-browser", "google-chrome",
                                       "google-chrome-stable" };
  static char path[PATH_MAX];
  const char *given = getenv ("SINKLAB_CHROMIUM"), *list = getenv ("PATH");
  if (given) return *given ? given : NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (const char *p = list; p && *p;) {
      size_t n = strcspn (p, ":");
      snprintf (path, sizeof path, "%.*s/%s", (int)n, p, names[i]);
      if (access (path, X_OK) == 0) return path;
      p += n + (p[n] == ':');
    }
  return NULL;
}

static void start (const char *path) {
  int down[2], up[2];
  char profile[64];
  snprintf (browser.profile, sizeof browser.profile, "%s/browse-XXXXXX",
            P_tmpdir);
  if (!mkdtemp (browser.profile)) die ("no temporary folder");
  snprintf (profile, sizeof profile, "--user-data-dir=%s", browser.profile);
  if (pipe (down) || pipe (up)) die ("no pipes");
  browser.pid = fork ();
  if (browser.pid < 0) die ("no process");
  if (browser.pid == 0) {
    int in = fcntl (down[0], F_DUPFD, 10), out = fcntl (up[1], F_DUPFD, 10);
    int null = open ("/dev/null", O_RDWR);
    setpgid (0, 0);
    dup2 (in, 3);
    dup2 (out, 4);
    for (int fd = 0; fd < 3; fd++) dup2 (null, fd);
    for (int fd = 5; fd < 64; fd++) close (fd);
    execl (path, path, "--headless", "--no-sandbox", "--disable-gpu",
           "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
           "--disable-background-networking", "--disable-component-update",
           "--remote-debugging-pipe", profile, (char *)NULL);
    _exit (127);
  }
  close (down[0]);
  close (up[1]);
  browser.to = down[1], browser.from = up[0];
}

static int delete_one (const char *path, const struct stat *s, int type,
                       struct FTW *where) {
  (void)s, (void)type, (void)where;
  return remove (path);
}

/* Helpers of the browser are in its group; none is left behind. */
static void shut_down (void) {
  if (browser.pid > 0) {
    close (browser.to);
    close (browser.from);
    kill (-browser.pid, SIGKILL);
    waitpid (browser.pid, NULL, 0);
  }
  if (browser.profile[0])
    nftw (browser.profile, delete_one, 16, FTW_DEPTH | FTW_PHYS);
  free (browser.inbox);
}

/* ---- messages ---- */

static void send_text (const char *text) {
  size_t n = strlen (text) + 1; /* with its NUL */
  while (n > 0) {
    ssize_t sent = write (browser.to, text, n);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) die ("the browser is gone");
    text += sent, n -= (size_t)sent;
  }
}

/* The next message; ends the program when none comes. */
static json_t *receive (void) {
  for (;;) {
    char *end = browser.n ? memchr (browser.inbox, 0, browser.n) : NULL;
    struct pollfd wait = { browser.from, POLLIN, 0 };
    ssize_t got;
    if (end) {
      size_t n = (size_t)(end - browser.inbox) + 1;
      json_t *message = json_loads (browser.inbox, 0, NULL);
      memmove (browser.inbox, browser.inbox + n, browser.n - n);
      browser.n -= n;
      if (!message) die ("the browser sent no JSON");
      return message;
    }
    if (browser.room - browser.n < 65536) {
      browser.room = 2 * browser.room + 65536;
      browser.inbox = realloc (browser.inbox, browser.room);
      if (!browser.inbox) die ("no memory");
    }
    if (poll (&wait, 1, PATIENCE_MS) == 0) die ("the browser does not answer");
    got = read (browser.from, browser.inbox + browser.n,
                browser.room - browser.n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) die ("the browser ended");
    browser.n += (size_t)got;
  }
}

static const char *text_at (const json_t *j, const char *key) {
  const char *text = json_string_value (json_object_get (j, key));
  return text ? text : "";
}

/* What happens in the page by itself. */
static void notice (const json_t *message) {
  const char *method = text_at (message, "method");
  const json_t *params = json_object_get (message, "params"), *part;
  if (!strcmp (method, "Page.loadEventFired"))
    browser.loaded++;
  else if (!strcmp (method, "Runtime.consoleAPICalled")) {
    size_t i;
    json_t *arg;
    printf ("console:");
    json_array_foreach (json_object_get (params, "args"), i, arg) {
      const char *text = text_at (arg, "value");
      printf (" %s", *text ? text : text_at (arg, "description"));
    }
    printf ("\n");
  } else if (!strcmp (method, "Runtime.exceptionThrown")) {
    part = json_object_get (params, "exceptionDetails");
    printf ("console: %s %s\n", text_at (part, "text"),
            text_at (json_object_get (part, "exception"), "description"));
  } else if (!strcmp (method, "Log.entryAdded")) {
    part = json_object_get (params, "entry");
    printf ("console: %s: %s\n", text_at (part, "level"),
            text_at (part, "text"));
  }
}

/* Call a method; returns its result (json_decref it). Steals params. */
static json_t *call (const char *method, json_t *params) {
  json_t *message = json_pack ("{s:i, s:s, s:o}", "id", ++browser.last_id,
                               "method", method, "params", params);
  char *text;
  if (browser.session[0])
    json_object_set_new (message, "sessionId", json_string (browser.session));
  text = json_dumps (message, JSON_COMPACT);
  send_text (text);
  free (text);
  json_decref (message);
  for (;;) {
    json_t *answer = receive (), *result;
    if (json_integer_value (json_object_get (answer, "id")) !=
        browser.last_id) {
      notice (answer);
      json_decref (answer);
      continue;
    }
    result = json_incref (json_object_get (answer, "result"));
    if (!result)
      die ("%s: %s", method,
           text_at (json_object_get (answer, "error"), "message"));
    json_decref (answer);
    return result;
  }
}

static void tell (const char *method, json_t *params) {
  json_decref (call (method, params));
}

/* The value of an expression of the page (json_decref it). */
static json_t *evaluate (const char *expression) {
  json_t *result = call ("Runtime.evaluate",
                         json_pack ("{s:s, s:b, s:b}", "expression", expression,
                                    "returnByValue", 1, "awaitPromise", 1));
  const json_t *wrong = json_object_get (result, "exceptionDetails");
  json_t *value;
  if (wrong)
    die ("%s: %s", expression,
         text_at (json_object_get (wrong, "exception"), "description"));
  value = json_incref (
      json_object_get (json_object_get (result, "result"), "value"));
  json_decref (result);
  return value ? value : json_null ();
}

/* ---- commands ---- */

static void set_size (const char *rest) {
  int width, height;
  if (sscanf (rest, "%d %d", &width, &height) != 2) die ("size: %s", rest);
  tell ("Emulation.setDeviceMetricsOverride",
        json_pack ("{s:i, s:i, s:i, s:b}", "width", width, "height", height,
                   "deviceScaleFactor", 1, "mobile", 0));
}

static void set_theme (const char *rest) {
  tell ("Emulation.setEmulatedMedia",
        json_pack ("{s:[{s:s, s:s}]}", "features", "name",
                   "prefers-color-scheme", "value", rest));
}

static void set_media (const char *rest) {
  tell ("Emulation.setEmulatedMedia",
        json_pack ("{s:s}", "media", strcmp (rest, "print") ? "" : "print"));
}

static void open_page (const char *rest) {
  char path[PATH_MAX], url[PATH_MAX + 8];
  int before = browser.loaded;
  if (!realpath (rest, path)) die ("%s: no such file", rest);
  snprintf (url, sizeof url, "file://%s", path);
  tell ("Page.navigate", json_pack ("{s:s}", "url", url));
  while (browser.loaded == before) {
    json_t *message = receive ();
    notice (message);
    json_decref (message);
  }
}

static void print_value (const char *rest) {
  json_t *value = evaluate (rest);
  char *text = json_dumps (value, JSON_ENCODE_ANY | JSON_COMPACT);
  printf ("%s\n", text);
  free (text);
  json_decref (value);
}

static void mouse (const char *type, double x, double y, int clicks) {
  tell ("Input.dispatchMouseEvent",
        json_pack ("{s:s, s:f, s:f, s:s, s:i}", "type", type, "x", x, "y", y,
                   "button", clicks ? "left" : "none", "clickCount", clicks));
}

/* Moves the mouse to a part of an element; its place in *x and *y. */
static void move_to (const char *rest, double *x, double *y) {
  char selector[512], expression[1200];
  double across = 0.5, down = 0.5;
  json_t *place;
  if (sscanf (rest, "%511s %lf %lf", selector, &across, &down) < 1)
    die ("a selector is missing");
  for (char *p = selector; *p; p++)
    if (*p == '_') *p = ' ';
  snprintf (expression, sizeof expression,
            "(() => { const e = document.querySelector(`%s`); if (!e) return"
            " null; e.scrollIntoView({ block: 'center', behavior: 'instant' });"
            " const r = e.getBoundingClientRect(); return [r.left + r.width *"
            " %.6f, r.top + r.height * %.6f]; })()",
            selector, across, down);
  place = evaluate (expression);
  if (!json_is_array (place)) die ("nothing in the page is '%s'", selector);
  *x = json_number_value (json_array_get (place, 0));
  *y = json_number_value (json_array_get (place, 1));
  json_decref (place);
  mouse ("mouseMoved", *x, *y, 0);
}

static void hover (const char *rest) {
  double x, y;
  move_to (rest, &x, &y);
}

static void click (const char *rest) {
  double x, y;
  move_to (rest, &x, &y);
  mouse ("mousePressed", x, y, 1);
  mouse ("mouseReleased", x, y, 1);
}

static void press_key (const char *rest) {
  static const struct {
    const char *name, *text;
    int code;
  } keys[] = { { "ArrowLeft", "", 37 },  { "ArrowUp", "", 38 },
               { "ArrowRight", "", 39 }, { "ArrowDown", "", 40 },
               { "Home", "", 36 },       { "End", "", 35 },
               { "PageUp", "", 33 },     { "PageDown", "", 34 },
               { "Tab", "", 9 },         { "Enter", "\r", 13 },
               { " ", " ", 32 } };
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const char *types[] = { *keys[i].text ? "keyDown" : "rawKeyDown", "keyUp" };
    if (strcmp (rest, keys[i].name) != 0) continue;
    for (int k = 0; k < 2; k++) {
      json_t *event =
          json_pack ("{s:s, s:s, s:i, s:s}", "type", types[k], "key", rest,
                     "windowsVirtualKeyCode", keys[i].code, "code", rest);
      if (k == 0 && *keys[i].text)
        json_object_set_new (event, "text", json_string (keys[i].text));
      tell ("Input.dispatchKeyEvent", event);
    }
    return;
  }
  die ("key: no key '%s' here", rest);
}

static int digit_of (char c) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *at = c ? strchr (digits, c) : NULL;
  return at ? (int)(at - digits) : -1;
}

static void take_picture (const char *rest) {
  json_t *result =
      call ("Page.captureScreenshot", json_pack ("{s:s, s:b}", "format", "png",
                                                 "captureBeyondViewport", 1));
  const char *data = text_at (result, "data");
  FILE *f = fopen (rest, "wb");
  unsigned bits = 0;
  int n = 0;
  if (!f) die ("%s cannot be written", rest);
  for (; digit_of (*data) >= 0; data++) {
    bits = bits << 6 | (unsigned)digit_of (*data);
    if ((n += 6) < 8) continue;
    n -= 8;
    putc ((int)(bits >> n & 255), f);
  }
  if (fclose (f)) die ("%s cannot be written", rest);
  json_decref (result);
}

static const struct {
  const char *name;
  void (*run) (const char *rest);
} commands[] = { { "size", set_size },    { "theme", set_theme },
                 { "media", set_media },  { "open", open_page },
                 { "eval", print_value }, { "click", click },
                 { "hover", hover },      { "key", press_key },
                 { "shot", take_picture } };

static void obey (char *line) {
  char *rest;
  line[strcspn (line, "\n")] = 0;
  if (!*line) return;
  rest = line + strcspn (line, " ");
  if (*rest) *rest++ = 0;
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (!strcmp (line, commands[i].name)) {
      commands[i].run (rest);
      fflush (stdout);
      return;
    }
  die ("no command '%s'", line);
}

static void attach (void) {
  json_t *result =
      call ("Target.createTarget", json_pack ("{s:s}", "url", "about:blank"));
  json_t *params = json_pack ("{s:s, s:b}", "targetId",
                              text_at (result, "targetId"), "flatten", 1);
  json_decref (result);
  result = call ("Target.attachToTarget", params);
  snprintf (browser.session, sizeof browser.session, "%s",
            text_at (result, "sessionId"));
  json_decref (result);
  tell ("Page.enable", json_object ());
  tell ("Runtime.enable", json_object ());
  tell ("Log.enable", json_object ());
}

/* Ask it to end, and wait until its side of the pipe is closed. */
static void close_browser (void) {
  struct pollfd wait = { browser.from, POLLIN, 0 };
  char rest[4096];
  send_text ("{\"id\":1000000,\"method\":\"Browser.close\"}");
  while (poll (&wait, 1, 5000) > 0 &&
         read (browser.from, rest, sizeof rest) > 0) {}
}

int main (void) {
  const char *path = find_browser ();
  char *line = NULL;
  size_t room = 0;
  if (!path) {
    fprintf (stderr, "browse: no Chromium here; scripts/setup --ci installs "
                     "one, SINKLAB_CHROMIUM names another\n");
    return NO_BROWSER;
  }
  signal (SIGPIPE, SIG_IGN);
  start (path);
  attach ();
  while (getline (&line, &room, stdin) > 0) obey (line);
  free (line);
  close_browser ();
  shut_down ();
  return 0;
}
