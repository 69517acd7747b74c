/* The C interface of the Transept runtime.
 *
 * A model is a loaded artifact: immutable, used by any number of threads. A session runs the entries of a model: one
 * thread at a time (a second one gets TRANSEPT_BUSY). A session keeps its model alive, so either may be freed first.
 * An artifact contains native code that loading makes executable: load only files you would also execute.
 *
 * Functions that can fail return a status and, where `error` is not null, set a message there. No function throws,
 * prints, changes signals or locale, or reads the environment. Strings are UTF-8 and end with a zero byte. Every struct
 * begins with `struct_size`, which the caller sets to its sizeof; fields a later version adds are used where they are
 * inside it. Freeing a null handle does nothing. */
#ifndef TRANSEPT_TRANSEPT_H
#define TRANSEPT_TRANSEPT_H

#include <stddef.h>
#include <stdint.h>

#include "transept/version.h"

#if defined(__GNUC__)
#define TRANSEPT_API __attribute__((visibility("default")))
#else
#define TRANSEPT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The values are also the exit codes of the tools. */
typedef enum transept_status {
  TRANSEPT_OK = 0,
  TRANSEPT_USAGE = 2,            /* a null or malformed argument */
  TRANSEPT_UNSUPPORTED = 4,      /* the model or this build does not have it */
  TRANSEPT_LIMIT_EXCEEDED = 5,   /* larger than a stated limit */
  TRANSEPT_FILE_ERROR = 6,       /* a file cannot be read or written */
  TRANSEPT_ARTIFACT_REFUSED = 7, /* damaged, of another version, or for another processor */
  TRANSEPT_INVALID_INPUT = 8,    /* names, types, shapes or values a model does not take */
  TRANSEPT_OUT_OF_MEMORY = 9,
  TRANSEPT_DEVICE_ERROR = 10,
  TRANSEPT_BUSY = 11,
  TRANSEPT_INTERNAL = 70, /* a defect of Transept */
  TRANSEPT_CANCELLED = 130
} transept_status;

typedef enum transept_dtype {
  TRANSEPT_F32 = 1,
  TRANSEPT_F64 = 2,
  TRANSEPT_F16 = 3,
  TRANSEPT_BF16 = 4,
  TRANSEPT_I8 = 5,
  TRANSEPT_I16 = 6,
  TRANSEPT_I32 = 7,
  TRANSEPT_I64 = 8,
  TRANSEPT_U8 = 9,
  TRANSEPT_U16 = 10,
  TRANSEPT_U32 = 11,
  TRANSEPT_U64 = 12,
  TRANSEPT_BOOL = 13, /* one byte, 0 or 1 */
  /* One byte per element: the code of a float in the low bits, an integer extended by its sign. */
  TRANSEPT_F8E4M3FN = 14,
  TRANSEPT_F8E4M3FNUZ = 15,
  TRANSEPT_F8E5M2 = 16,
  TRANSEPT_F8E5M2FNUZ = 17,
  TRANSEPT_F8E8M0 = 18,
  TRANSEPT_F4E2M1 = 19,
  TRANSEPT_I4 = 20,
  TRANSEPT_U4 = 21,
  TRANSEPT_I2 = 22,
  TRANSEPT_U2 = 23
} transept_dtype;

/* Why a call failed. On the caller's stack; set struct_size before the call. */
typedef struct transept_error {
  size_t struct_size;
  transept_status status;
  char message[504]; /* one line, cut where it is longer */
} transept_error;

typedef struct transept_model transept_model;
typedef struct transept_session transept_session;

/* "0.1.0" */
TRANSEPT_API const char *transept_version(void);

/* "ok", "invalid input" ... for any value. */
TRANSEPT_API const char *transept_status_name(transept_status status);

/* ---- models ---------------------------------------------------------------------------------------------------- */

/* Told what a call does; `message` is one line, valid during the call. Called on the thread of the call. */
typedef void (*transept_log_callback)(void *user, const char *message);

typedef struct transept_model_options {
  size_t struct_size;
  int32_t threads;     /* that read and verify the file; 0: as many as the process may use */
  const char *cpu;     /* level to use: "avx512vnni", "avx512", "avx2" ...; null: the best that runs here */
  int32_t map_weights; /* not 0: share the file's pages; the process may be killed if the file is changed in place */
  transept_log_callback log; /* null: silence */
  void *log_user;
  const char *device; /* "cpu", "vulkan:0" ...; null: the processor if the artifact has code for it, else vulkan:0 */
  const char *cache_folder; /* where a device keeps what it compiles between processes; null: nowhere */
} transept_model_options;

/* Loads and verifies an artifact. `options` may be null. `*model` is null on failure. */
TRANSEPT_API transept_status transept_model_load(const char *path, const transept_model_options *options,
                                                 transept_model **model, transept_error *error);
TRANSEPT_API void transept_model_free(transept_model *model);

/* Level of the code in use: "avx512", "avx2", "x86-64", "neon"; the precision on Vulkan. */
TRANSEPT_API const char *transept_model_level(const transept_model *model);
/* Device in use: "cpu", "vulkan:0 (NAME)". */
TRANSEPT_API const char *transept_model_device(const transept_model *model);

TRANSEPT_API size_t transept_model_entry_count(const transept_model *model);
/* Null where there is no such entry. */
TRANSEPT_API const char *transept_model_entry_name(const transept_model *model, size_t index);

/* An input or output as a model declares it. Pointers are valid while the model is. */
typedef struct transept_tensor_info {
  size_t struct_size;
  const char *name;
  transept_dtype dtype;
  size_t rank;
  const int64_t *dims;          /* -1 where the size depends on symbols */
  const char *const *dim_texts; /* each size as an expression over symbols: "batch", "2 * source", "512" */
  int32_t optional;             /* not 0: an input with a default */
} transept_tensor_info;

/* 0 for an unknown entry. */
TRANSEPT_API size_t transept_model_input_count(const transept_model *model, const char *entry);
TRANSEPT_API size_t transept_model_output_count(const transept_model *model, const char *entry);
TRANSEPT_API transept_status transept_model_input(const transept_model *model, const char *entry, size_t index,
                                                  transept_tensor_info *info, transept_error *error);
TRANSEPT_API transept_status transept_model_output(const transept_model *model, const char *entry, size_t index,
                                                   transept_tensor_info *info, transept_error *error);

/* ---- sessions -------------------------------------------------------------------------------------------------- */

typedef struct transept_symbol {
  const char *name;
  int64_t value;
} transept_symbol;

typedef struct transept_session_options {
  size_t struct_size;
  int32_t threads; /* 0: as many as the process may use; never more; of no effect on other devices than the CPU */
  /* The model's generation symbols; none for a plain graph. */
  const transept_symbol *symbols;
  size_t symbol_count;
} transept_session_options;

/* `options` may be null. `*session` is null on failure. */
TRANSEPT_API transept_status transept_session_create(const transept_model *model,
                                                     const transept_session_options *options,
                                                     transept_session **session, transept_error *error);
TRANSEPT_API void transept_session_free(transept_session *session);

/* A dense row-major tensor. */
typedef struct transept_tensor {
  size_t struct_size;
  const char *name;
  transept_dtype dtype;
  size_t rank;
  const int64_t *dims;
  void *data;   /* inputs are only read */
  size_t bytes; /* product of dims times the element size */
} transept_tensor;

typedef struct transept_run_arguments {
  size_t struct_size;
  const transept_tensor *inputs; /* by name, in any order; copied; must not lie in outputs of the same session */
  size_t input_count;
  const transept_symbol *symbols; /* that neither the session nor an input's shape determines */
  size_t symbol_count;
} transept_run_arguments;

/* Runs an entry. `arguments` may be null. Wrong arguments are refused before anything is computed. */
TRANSEPT_API transept_status transept_session_run(transept_session *session, const char *entry,
                                                  const transept_run_arguments *arguments, transept_error *error);

/* Outputs of the last run that succeeded, valid until the next run. */
TRANSEPT_API size_t transept_session_output_count(const transept_session *session);
TRANSEPT_API transept_status transept_session_output(const transept_session *session, size_t index,
                                                     transept_tensor *output, transept_error *error);

/* A state of the model, which the caller may read and write between runs; valid as long as the session. Caches in the
 * memory of another device are refused. */
TRANSEPT_API transept_status transept_session_state(const transept_session *session, const char *name,
                                                    transept_tensor *state, transept_error *error);

/* From any thread: a run in progress ends at its next barrier, and later ones at once, with TRANSEPT_CANCELLED, until
 * it is called with 0. */
TRANSEPT_API void transept_session_cancel(transept_session *session, int32_t cancel);

/* Bytes. */
typedef struct transept_memory {
  size_t struct_size;
  uint64_t weights;  /* shared by all sessions of the model */
  uint64_t states;   /* caches and step state */
  uint64_t arena;    /* used by the largest entry so far, inputs and outputs included */
  uint64_t reserved; /* allocated for states and arena */
  uint64_t scratch;  /* all threads together */
} transept_memory;

TRANSEPT_API transept_status transept_session_memory(const transept_session *session, transept_memory *memory,
                                                     transept_error *error);

/* ---- files of a model ------------------------------------------------------------------------------------------- */

/* Which tokenizer the model brings: "sentencepiece-pair", "tokenizer.json" ...; "none" where it has none. Valid while
 * the model is. */
TRANSEPT_API const char *transept_model_tokenizer_kind(const transept_model *model);
/* What the tokenizer must know besides its files, as JSON. */
TRANSEPT_API const char *transept_model_tokenizer_config(const transept_model *model);
/* Content of a file that travels in the model, e.g. "source.spm"; null where there is none. Valid while the model is.
 */
TRANSEPT_API const void *transept_model_file(const transept_model *model, const char *name, size_t *bytes);

/* ---- generation ------------------------------------------------------------------------------------------------- */

/* Text to token ids and back; transept/text.h makes one for models that bring a tokenizer. Functions that write return
 * how much there is to write, at most `room` of it was written; negative: the text has no ids. */
typedef struct transept_tokenizer {
  size_t struct_size;
  void *user;
  /* Ids of a source text, or of a target text where `target` is not 0, end token included. */
  int64_t (*encode)(void *user, int32_t target, const char *text, size_t bytes, int64_t *ids, size_t room);
  /* UTF-8 without special tokens; no zero byte at the end. */
  int64_t (*decode)(void *user, const int64_t *ids, size_t count, char *text, size_t room);
  int64_t end_of_source;       /* id that ends every source, -1: none */
  void (*release)(void *user); /* called once; may be null */
  int64_t source_suffix;       /* how many ids stand behind every source; 0: one, if there is end_of_source */
  /* Of a tokenizer with languages; null: it has none. Codes are never null, empty ones mean the default. */
  int64_t (*encode_in)(void *user, int32_t target, const char *source_lang, const char *target_lang, const char *text,
                       size_t bytes, int64_t *ids, size_t room);
  /* Generation settings for outputs in a language, a JSON object. Negative: there is no such language, and as many
   * bytes of a sentence that says so. */
  int64_t (*language_settings)(void *user, const char *source_lang, const char *target_lang, char *json, size_t room);
} transept_tokenizer;

typedef struct transept_generator transept_generator;

typedef struct transept_generator_options {
  size_t struct_size;
  int32_t threads;                     /* 0: as many as the process may use */
  int32_t batch;                       /* most requests computed together; 0: 16. Answers do not depend on it. */
  int32_t truncate;                    /* not 0: cut sources that are too long, instead of refusing them */
  const transept_tokenizer *tokenizer; /* null: ids only. Taken over, on failure too. */
} transept_generator_options;

/* `options` may be null. `*generator` is null on failure. Keeps the model alive; one thread at a time. */
TRANSEPT_API transept_status transept_generator_create(const transept_model *model,
                                                       const transept_generator_options *options,
                                                       transept_generator **generator, transept_error *error);
TRANSEPT_API void transept_generator_free(transept_generator *generator);

/* `requests` is a JSON object, or a list of them: {"text": "..."} or {"input_ids": [...]}, "id", any setting under
 * its generation_config.json name, and "source_lang", "target_lang", "language" and "task" where the model has them.
 * `*answers` is an object, or a list in the same order:
 * {"id", "hypotheses": [{"ids", "score", "text", "finish"}], "input_tokens", "output_tokens"}; valid until the next
 * call. In a list a request that fails is answered by {"id", "error": {"code", "message"}}; a single one fails the
 * call. */
TRANSEPT_API transept_status transept_generator_run(transept_generator *generator, const char *requests,
                                                    const char **answers, transept_error *error);

/* Continuous batching: requests join those that are computed between two steps, each with settings of its own, and are
 * done in any order. A generator may run() in between. */

/* Takes over a request, one JSON object as for transept_generator_run(), and gives it a number. One that cannot be read
 * fails the call. */
TRANSEPT_API transept_status transept_generator_submit(transept_generator *generator, const char *request,
                                                       uint64_t *number, transept_error *error);

/* One step of everything that is computed, after waiting requests have joined. `*unfinished` (may be null): requests
 * that are not done; where there are none, nothing happens. */
TRANSEPT_API transept_status transept_generator_step(transept_generator *generator, size_t *unfinished,
                                                     transept_error *error);

/* The answer of a request that is done, each once: its number, and an object as for transept_generator_run(), with an
 * "error" where it failed; valid until the next call. `*answer` is null where none is done. */
TRANSEPT_API transept_status transept_generator_collect(transept_generator *generator, uint64_t *number,
                                                        const char **answer, transept_error *error);

/* From any thread: a run in progress ends before its next step, and later ones at once, with TRANSEPT_CANCELLED, until
 * it is called with 0. */
TRANSEPT_API void transept_generator_cancel(transept_generator *generator, int32_t cancel);

#ifdef __cplusplus
}
#endif
#endif /* TRANSEPT_TRANSEPT_H */
