// Starts libexec/NAME.elf of the folder above this program's, by the loader and the C library that lie there: the
// system's may be older. NAME is this program's own. Linked without shared libraries.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void give_up(const char* what, const char* path) {
  fprintf(stderr, "argosy: %s %s: %s. Unpack the bundle again\n", what, path, strerror(errno));
  exit(127);
}

static char* text(const char* format, ...) {
  va_list values;
  va_start(values, format);
  char* made = NULL;
  if (vasprintf(&made, format, values) < 0) {
    give_up("no memory for", format);
  }
  va_end(values);
  return made;
}

/// Cuts the path's last word off, and returns it.
static char* cut(char* path) {
  char* slash = strrchr(path, '/');
  if (slash == NULL) {
    give_up("expected in the folder bin of a bundle:", path);
  }
  *slash = '\0';
  return slash + 1;
}

int main(int argc, char** argv) {
  char root[PATH_MAX] = "";
  if (readlink("/proc/self/exe", root, sizeof root - 1) < 0) {
    give_up("cannot read", "/proc/self/exe");
  }
  char* const name = cut(root);
  cut(root);
  char* const own[] = {text("%s/libexec/ld-linux-x86-64.so.2", root),
                       "--argv0",
                       argc > 0 ? argv[0] : name,
                       "--library-path",
                       "$ORIGIN/system:$ORIGIN/../lib/x86_64-linux-gnu",  // a colon in ROOT would divide it
                       text("%s/libexec/%s.elf", root, name)};
  const size_t count = sizeof own / sizeof *own;
  char** const words = calloc(count + (size_t)argc + 1, sizeof *words);
  if (words == NULL) {
    give_up("no memory for", name);
  }
  memcpy(words, own, sizeof own);
  for (int i = 1; i < argc; ++i) {
    words[count + (size_t)i - 1] = argv[i];
  }
  if (getenv("LD_PRELOAD") != NULL && *getenv("LD_PRELOAD") != '\0') {
    // Made for the system's C library, it may ask the older one here for what that does not have.
    fprintf(stderr, "argosy: %s starts without LD_PRELOAD, for it has a C library of its own\n", name);
    unsetenv("LD_PRELOAD");
  }
  execv(words[0], words);
  give_up("cannot start", words[0]);
}
