// SPDX-License-Identifier: Apache-2.0
// A library that looks for the next definition of functions, as wrappers of malloc and of system
// calls do, as often as requested. Built twice: with WRAP it is itself such a wrapper, to be
// preloaded.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#ifdef WRAP
static void* (*next_malloc)(size_t);
static int calls;
int wrapped_calls(int ignored) {
  (void)ignored;
  return calls;
}
void* malloc(size_t bytes) {
  // Looked up every time, on purpose.
  next_malloc = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  ++calls;
  return next_malloc(bytes);
}
#endif

// How many of `times` look-ups of each name found what the first one found.
int next_works(int times) {
  void* first[4] = {0};
  static const char* const names[4] = {"malloc", "free", "getpid", "dlopen"};
  int good = 0;
  for (int i = 0; i < times; ++i) {
    int same = 1;
    for (int n = 0; n < 4; ++n) {
      void* found = dlsym(RTLD_NEXT, names[n]);
      if (i == 0) first[n] = found;
      if (found == NULL || found != first[n]) same = 0;
    }
    good += same;
  }
  return good;
}
