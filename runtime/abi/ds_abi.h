/* The one header that compiled packages and the runtime share.
 *
 * A package's code.so exports one symbol, ds_package_query, and imports nothing but libc and libm. Compiled code never
 * allocates, prints or starts threads: whatever it needs from its surroundings arrives as ds_services inside ds_call,
 * so the same file runs under ds-run, under a unit test with fakes, and inside a user's program.
 *
 * An entry point is straight-line code and branches: it asks for launches, collectives and size definitions. A launch
 * names its buffers and sizes by number; the manifest (docs/package-format.md) says what the numbers mean and the
 * runtime resolves them, so compiled code contains no size arithmetic and no buffer placement.
 *
 * Versioning: fields are only ever appended, and every struct that crosses the border starts with its size in bytes; a
 * reader must not touch a field past that size. Any other change raises DS_ABI_VERSION, and both sides refuse a
 * different number. */
#ifndef DEEPSTRIDE_ABI_H
#define DEEPSTRIDE_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DS_ABI_VERSION 2u
#define DS_NO_SIZE UINT32_MAX

/* What kernels, entries and services return. Anything but DS_OK ends the call; the runtime adds the site's name. */
typedef enum ds_result {
  DS_OK = 0,
  DS_INDEX_OUT_OF_RANGE = 1, /* a gather or scatter index outside its axis */
  DS_DIVISION_BY_ZERO = 2,   /* integer division or modulus by zero */
  DS_SHAPE_MISMATCH = 3,     /* run-time sizes that the operator cannot combine */
  DS_INVALID_VALUE = 4,      /* a run-time argument outside its legal values (axis, k, step of zero) */
  DS_SERVICE_FAILED = 5      /* a service refused; the runtime already holds the message */
} ds_result;

/* Work over items [begin, end) of the launch's grid. Calls over disjoint ranges run on different threads at once and
 * write disjoint parts of the outputs. buffers and sizes are in the order of the launch; scratch is private to the
 * thread, 64-byte aligned, of the launch's scratch size, uninitialised; null where the launch asks for none. */
typedef int32_t (*ds_kernel)(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch);

/* One kernel call as the entry asks for it: static data of code.so. */
typedef struct ds_launch {
  uint32_t struct_size;
  uint32_t site; /* index into the manifest entry's "launches" */
  ds_kernel kernel;
  uint32_t buffer_count;
  uint32_t size_count;
  const uint32_t *buffers; /* indices into the entry's "buffers" */
  const uint32_t *sizes;   /* indices into the entry's "sizes" */
  uint32_t grid;           /* size index: number of items; the kernel is not called when it is 0 */
  uint32_t scratch;        /* size index: bytes of scratch per thread, or DS_NO_SIZE */
  uint32_t grain;          /* items a thread takes at least; chunk bounds are multiples of it */
} ds_launch;

/* One collective; start and wait get the same pointer. Its buffers are the runtime's from start to wait: the manifest
 * says which, and where they lie in the space that ranks share. */
typedef struct ds_collective {
  uint32_t struct_size;
  uint32_t site; /* index into the manifest entry's "collectives" */
} ds_collective;

typedef struct ds_services {
  uint32_t struct_size;
  /* Runs a kernel over its grid and returns when all of it is done. */
  int32_t (*launch)(void *context, const ds_launch *launch);
  /* Gives a computed symbol (a size known only now, such as the result of NonZero) its value: the runtime evaluates the
   * sizes that depend on it and places their buffers before it returns. */
  int32_t (*define)(void *context, uint32_t symbol, int64_t value);
  int32_t (*collective_start)(void *context, const ds_collective *collective);
  int32_t (*collective_wait)(void *context, const ds_collective *collective);
} ds_services;

/* One call of an entry point. Owned by the runtime; valid until the entry returns. */
typedef struct ds_call {
  uint32_t struct_size;
  uint32_t rank;
  uint32_t world;
  void *const *buffers; /* one pointer per manifest buffer; entries change when a computed symbol is defined */
  const int64_t *sizes; /* one value per manifest size */
  const ds_services *services;
  void *context; /* first argument of every service */
} ds_call;

typedef int32_t (*ds_entry)(const ds_call *call);

typedef struct ds_entry_point {
  const char *name; /* as in the manifest */
  ds_entry function;
} ds_entry_point;

typedef struct ds_package_code {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t entry_count;
  const ds_entry_point *entries;
} ds_package_code;

/* The one exported symbol. Null when the code was built for another DS_ABI_VERSION. */
typedef const ds_package_code *(*ds_package_query_function)(uint32_t abi_version);

#ifdef __cplusplus
}
#endif
#endif
