/* How long a library's table of the C exchange API takes to export an object and to take the
 * tensor back. Built by dlpack.py and called through ctypes with the interpreter's lock held. */
#include <stdint.h>
#include <time.h>

/* DLManagedTensorVersioned and DLPackExchangeAPI as far as they are needed here. */
struct tensor {
  uint32_t version[2];
  void *context;
  void (*deleter)(struct tensor *);
};
struct table {
  uint32_t version[2];
  void *older;
  void (*allocate)(void);
  int (*from_object)(void *object, struct tensor **out);
};

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Nanoseconds that `count` exports with their deleters take; -1 where one fails. */
int64_t export_and_delete(const struct table *table, void *object, int64_t count) {
  int64_t started = now();
  for (int64_t i = 0; i < count; i++) {
    struct tensor *made;
    if (table->from_object(object, &made) != 0) return -1;
    made->deleter(made);
  }
  return now() - started;
}
