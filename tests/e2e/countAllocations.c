/* Preloaded into a program: counts every allocation of it and of its libraries, and says the sum at the end. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

/* The C library's own functions under the names it keeps for this. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_long count;

void *malloc(size_t bytes) {
  ++count;
  return __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes) {
  ++count;
  return __libc_calloc(number, bytes);
}

void *realloc(void *old, size_t bytes) {
  ++count;
  return __libc_realloc(old, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
  ++count;
  return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void **result, size_t alignment, size_t bytes) {
  *result = memalign(alignment, bytes);
  return *result ? 0 : 12; /* ENOMEM */
}

__attribute__((destructor)) static void say(void) { fprintf(stderr, "allocations: %ld\n", count); }
