/* Stands between a tool and the system (LD_PRELOAD): a signal right after something with a certain name is made, and
 * file systems that cannot exchange names or refuse to rename. user_cases.py builds it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

static void made(const char *path) {
  if (getenv("SIGNAL_AT") && strstr(path, getenv("SIGNAL_AT")))
    raise(SIGTERM);
}

#define OPEN(name)                                                                                                     \
  int name(const char *path, int flags, ...) {                                                                         \
    va_list rest;                                                                                                      \
    va_start(rest, flags);                                                                                             \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                            \
    va_end(rest);                                                                                                      \
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);                                                     \
    int file = real(path, flags, mode);                                                                                \
    if (file >= 0 && flags & O_CREAT)                                                                                  \
      made(path);                                                                                                      \
    return file;                                                                                                       \
  }
OPEN(open)
OPEN(open64)

int mkdir(const char *path, mode_t mode) {
  int (*real)(const char *, mode_t) = dlsym(RTLD_NEXT, "mkdir");
  int result = real(path, mode);
  if (result == 0)
    made(path);
  return result;
}

long syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (int i = 0; i < 6; ++i)
    a[i] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_renameat2 && getenv("PLAIN_RENAMES")) {
    errno = EINVAL;
    return -1;
  }
  long (*real)(long, ...) = dlsym(RTLD_NEXT, "syscall");
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int rename(const char *from, const char *to) {
  const char *name = strrchr(from, '/') ? strrchr(from, '/') : from;
  if (getenv("REFUSES_RENAMES") && strstr(name, ".tmp-") && !strstr(name, ".old")) {
    errno = EDQUOT;
    return -1;
  }
  int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
  return real(from, to);
}
