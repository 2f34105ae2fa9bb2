/* Deepstride's runtime: loads packages that ds-opt wrote and runs them. C, so that any language can use it; no compiler
 * inside. See runtime/example/run_package.c for a whole program.
 *
 * Failure: functions that can fail return a ds_status. Null is success; anything else is owned by the caller, who reads
 * it and gives it to ds_status_free. Out-parameters are written on success only. Nothing prints, nothing exits.
 *
 * Strings: UTF-8. Strings that functions return are owned by the object they were asked of and live as long as it does.
 *
 * Versioning: structs that the caller makes start with their size; fields are only ever appended. */
#ifndef DEEPSTRIDE_RUNTIME_H
#define DEEPSTRIDE_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The release that this header belongs to, for #if. Compare with ds_runtime_version_number, which is that of the
 * library that runs. */
#define DS_RUNTIME_VERSION_MAJOR 0
#define DS_RUNTIME_VERSION_MINOR 1
#define DS_RUNTIME_VERSION_PATCH 0
#define DS_RUNTIME_VERSION_NUMBER                                                                                      \
  (DS_RUNTIME_VERSION_MAJOR * 10000 + DS_RUNTIME_VERSION_MINOR * 100 + DS_RUNTIME_VERSION_PATCH)

/* Programs run with every library of the same number, which is that of the shared library's name (libds_runtime.so.N),
 * and whose version is not older than the header that they were built with. */
#define DS_RUNTIME_ABI 0

#if defined(__GNUC__)
#define DS_API __attribute__((visibility("default")))
#else
#define DS_API
#endif

/* A failure. Immutable; one owner; may be passed between threads. */
typedef struct ds_status ds_status;

typedef enum ds_status_code {
  DS_STATUS_OK = 0,
  DS_STATUS_INVALID_ARGUMENT = 1,  /* an argument that names nothing or has no meaning */
  DS_STATUS_UNBOUND_DIMENSION = 2, /* a dimension that no input and no pin gives */
  DS_STATUS_BAD_FILE = 3,          /* a damaged or truncated file */
  DS_STATUS_BAD_PACKAGE = 4,       /* a package that breaks its format or its checksums */
  DS_STATUS_UNSUPPORTED_CPU = 5,   /* no variant fits this processor; the message names what it lacks */
  DS_STATUS_SHAPE_MISMATCH = 6,    /* inputs that do not fit the signature */
  DS_STATUS_EXECUTION = 7,         /* compiled code reported an error; the message names kernel and site */
  DS_STATUS_COLLECTIVE = 8,        /* a rank is missing, failed or disagrees */
  DS_STATUS_OUT_OF_MEMORY = 9,
  DS_STATUS_IO = 10,
  DS_STATUS_INTERNAL = 11,  /* a bug of the runtime */
  DS_STATUS_BAD_STATE = 12, /* a state that a failed call may have left half written; restore or reset it */
  DS_STATUS_CANCELLED = 13  /* ds_session_cancel ended the call */
} ds_status_code;

DS_API ds_status_code ds_status_get_code(const ds_status *status); /* null: DS_STATUS_OK */

/* One line: where, what, the value found and what was expected. Lives as long as the status; "ok" for null. */
DS_API const char *ds_status_message(const ds_status *status);

DS_API void ds_status_free(ds_status *status); /* null is fine */

DS_API const char *ds_runtime_version(void);     /* "0.1.0" */
DS_API unsigned ds_runtime_version_number(void); /* DS_RUNTIME_VERSION_NUMBER of the library */
DS_API unsigned ds_runtime_abi(void);            /* DS_RUNTIME_ABI of the library */

/* Elements narrower than a byte lie in a byte each: integers as the 8-bit number of the same value, f4e2m1 in the low
 * bits. */
typedef enum ds_type {
  DS_F64,
  DS_F32,
  DS_F16,
  DS_BF16,
  DS_I64,
  DS_I32,
  DS_I16,
  DS_I8,
  DS_U64,
  DS_U32,
  DS_U16,
  DS_U8,
  DS_I1,
  DS_F8E4M3FN,
  DS_F8E4M3FNUZ,
  DS_F8E5M2,
  DS_F8E5M2FNUZ,
  DS_F8E8M0,
  DS_F4E2M1,
  DS_I4,
  DS_U4,
  DS_I2,
  DS_U2
} ds_type;

DS_API size_t ds_type_size(ds_type type);      /* bytes per element; 0 for no type */
DS_API const char *ds_type_name(ds_type type); /* "f32"; null for no type */

/* A dense row-major tensor that somebody else owns. As an input: the caller owns name, shape and data, which must stay
 * valid and unchanged until the call returns; 64-byte aligned data is used in place, other data is copied. As a result:
 * owned by the object it came from. */
typedef struct ds_tensor {
  size_t struct_size;
  const char *name;
  ds_type type;
  size_t rank;
  const int64_t *shape;
  void *data;
} ds_tensor;

/* A package on disk, verified, mapped and with the code variant for this processor opened. Immutable: any number of
 * threads and sessions may use it. Sessions keep what they need of it alive, so it may be freed before them. */
typedef struct ds_package ds_package;

typedef struct ds_load_options {
  size_t struct_size;
  int skip_verification; /* not 0: checksums are not compared */
  const char *variant;   /* name of a variant; null: the best that this processor can run */
  /* Not 0: weights are read from the pages of weights.bin, which processes share. Else what calls read is copied to
   * huge pages, which they read faster: from 4 MiB on, if it is no more than half of the memory that is available. */
  int map_weights;
} ds_load_options;

/* path names the package's folder. options may be null. */
DS_API ds_status *ds_package_load(const char *path, const ds_load_options *options, ds_package **package);

/* A file of a package that lies in memory: name as in the package's folder, such as "manifest.json". */
typedef struct ds_file {
  size_t struct_size;
  const char *name;
  const void *data;
  size_t size; /* bytes */
} ds_file;

/* A package whose files lie in memory: every file of the folder that ds-opt wrote is one of `files`, in any order.
 * Names and the array itself are needed during this call alone. The data are not copied, but for code: they must stay
 * valid and unchanged until the package and all its sessions and trainers are freed. weights.bin must be 64-byte
 * aligned. */
DS_API ds_status *ds_package_load_memory(const ds_file *files, size_t file_count, const ds_load_options *options,
                                         ds_package **package);

DS_API void ds_package_free(ds_package *package); /* null is fine */

/* Of a null package: 0 or null. */
DS_API size_t ds_package_variant_count(const ds_package *package);
DS_API const char *ds_package_variant_name(const ds_package *package, size_t index); /* null past the end */
DS_API const char *ds_package_chosen_variant(const ds_package *package);

/* A guarded entry (docs/package-format.md) is one entry here, by the name of its group: a call runs what it is for. */
DS_API size_t ds_package_entry_count(const ds_package *package);
DS_API const char *ds_package_entry_name(const ds_package *package, size_t entry); /* null past the end */

/* Of an output of a guarded entry whose rank depends on the call; its shape is null. */
#define DS_RANK_VARIES ((size_t)-1)

/* An input, output or state of an entry as the package describes it. The strings belong to the package. */
typedef struct ds_tensor_info {
  const char *name;
  ds_type type;
  size_t rank;              /* or DS_RANK_VARIES */
  const char *const *shape; /* one expression per dimension: "128", "batch", "past + 1" */
  int64_t bound;            /* inputs: integers must lie in [0, bound); 0 when the package states none */
} ds_tensor_info;

typedef enum ds_tensor_list { DS_INPUTS, DS_OUTPUTS, DS_STATES } ds_tensor_list;

DS_API size_t ds_package_tensor_count(const ds_package *package, size_t entry, ds_tensor_list list);
/* Null past the end. */
DS_API const ds_tensor_info *ds_package_tensor(const ds_package *package, size_t entry, ds_tensor_list list,
                                               size_t index);

/* N ranks as threads of this process, for programs with collectives. Thread-safe. Sessions keep it alive. */
typedef struct ds_group ds_group;
DS_API ds_status *ds_group_create(unsigned ranks, double timeout_seconds, ds_group **group);
DS_API void ds_group_free(ds_group *group);

/* A live instance of a package: threads, states, cached placements. One call at a time; calls from several threads wait
 * for each other. */
typedef struct ds_session ds_session;

typedef struct ds_session_options {
  size_t struct_size;
  unsigned threads; /* 0: the environment's DS_NUM_THREADS, else as many as there are processors */
  ds_group *group;  /* null: a world of one rank */
  unsigned rank;    /* in the group; every rank is one session, run by its own thread */
} ds_session_options;

/* options may be null. */
DS_API ds_status *ds_session_create(const ds_package *package, const ds_session_options *options, ds_session **session);
DS_API void ds_session_free(ds_session *session); /* null is fine; no call may be running */

/* Gives a dimension its size for all later calls. Needed for those only that no input's shape gives. */
DS_API ds_status *ds_session_pin(ds_session *session, const char *dimension, int64_t value);
/* Later calls find the size in their inputs again; nothing changes where the dimension was not pinned. */
DS_API ds_status *ds_session_unpin(ds_session *session, const char *dimension);

/* Outputs of a call: owned by the caller, independent of session and package. One thread at a time. */
typedef struct ds_outputs ds_outputs;

/* Runs an entry. An input goes by its name; one whose name is null goes by its position, in the order of the package.
 *
 * *outputs is null, or the outputs of an earlier call: those are replaced, and their tensors may be inputs of this call
 * (give them the inputs' names, or null). Memory is used again by turns: a call writes where the call before the last
 * one did. So when the call fails, *outputs and its tensors are as they were.
 *
 * States are updated in place, without a copy to go back to. When a call fails, each state either is as it was, or, if
 * the call may have begun to write it, is refused from then on: calls that use it and ds_session_save_states return
 * DS_STATUS_BAD_STATE with the failed call's message, until the state is restored or all are reset. Inputs, sizes and
 * constraints are checked before anything is written; a state that the failed call was the first to use is at its
 * initial value again.
 *
 * In a group, a rank whose call fails leaves it, and the other ranks' collectives fail from then on, with the same
 * consequence for what those calls had begun to write. A rank that was past its last collective may have completed the
 * step. So after a failure every rank goes on in a new group, with its states restored from one and the same step. */
DS_API ds_status *ds_session_run(ds_session *session, size_t entry, const ds_tensor *inputs, size_t input_count,
                                 ds_outputs **outputs);

/* The same, with outputs in memory of the caller's. A buffer says by its name which output it takes, or by its position
 * when the name is null; its type, rank and shape must be those that the call gives, which is checked before anything
 * is written, or where a size is found only by computing, when it is found. A buffer overlaps no input, no other buffer
 * and no tensor of *outputs.
 *
 * 64-byte aligned buffers are written in place: after a call that fails their contents are unspecified. Others are
 * copied into when the call has succeeded, and left alone when it fails.
 *
 * *outputs then has all outputs, those in buffers by the buffers' addresses; the others are as of ds_session_run.
 * `outputs` itself may be null where there is a buffer for each. */
DS_API ds_status *ds_session_run_into(ds_session *session, size_t entry, const ds_tensor *inputs, size_t input_count,
                                      const ds_tensor *buffers, size_t buffer_count, ds_outputs **outputs);

/* Ends the calls that have begun, also those that wait for another one, with DS_STATUS_CANCELLED, states as after any
 * failed call. From any thread, at any time, without waiting; a call that begins later is not concerned. A call ends
 * when its present kernel does, or, where it waits for other ranks, when they arrive or time out; one that has
 * nothing left but to return succeeds. */
DS_API ds_status *ds_session_cancel(ds_session *session);

/* A kernel that has run. The strings belong to the package. */
typedef struct ds_launch_event {
  size_t struct_size;
  const char *entry;   /* a guarded entry by its own name */
  const char *kernel;  /* "k3", as in the package's manifest */
  const char *site;    /* the ONNX node that it is for, or the first of them */
  size_t launch;       /* its number in the manifest's "launches"; one inside a loop comes more than once */
  int64_t start;       /* nanoseconds on the system's monotonic clock */
  int64_t nanoseconds; /* that it took */
} ds_launch_event;

/* Called after every launch by the thread that called ds_session_run; the event lives until it returns. It may cancel
 * the session; everything else about this session has to wait for the call's end. It must not throw. */
typedef void (*ds_launch_observer)(void *context, const ds_launch_event *event);

/* Calls that begin later tell the observer, until another one is given, or null: then nobody takes times. */
DS_API ds_status *ds_session_observe(ds_session *session, ds_launch_observer observer, void *context);

DS_API size_t ds_outputs_count(const ds_outputs *outputs);
/* Null past the end. Valid until the outputs are freed or used in another call. */
DS_API const ds_tensor *ds_outputs_get(const ds_outputs *outputs, size_t index);
DS_API void ds_outputs_free(ds_outputs *outputs);

/* These wait for a call that runs in another thread.
 *
 * All states as an .npz, complete under its name or not there at all, written straight from the states' memory.
 * Types that NumPy lacks are widened: narrow floats and bf16 to f32, integers of 4 and 2 bits to 8.
 * DS_STATUS_BAD_STATE, and no file, when a state may be half written. */
DS_API ds_status *ds_session_save_states(ds_session *session, const char *path);
/* States that the file lacks keep their values. Read straight into the states' memory, after names, types, shapes and
 * checksums have been found right: what is wrong with a file changes nothing. Should reading fail even then, the states
 * that it had reached are refused as after a failed call. */
DS_API ds_status *ds_session_restore_states(ds_session *session, const char *path);
/* All states back to their initial values. */
DS_API ds_status *ds_session_reset_states(ds_session *session);

#ifdef __cplusplus
}
#endif
#endif
