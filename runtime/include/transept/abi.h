/* The whole contract between generated kernels and the runtime.
 *
 * Freestanding C, included by both sides. A kernel is a native function without undefined symbols; everything it needs
 * arrives through its arguments. Kernels never allocate, never call back and never touch memory outside their buffers.
 */
#ifndef TRANSEPT_ABI_H
#define TRANSEPT_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define TRANSEPT_ABI_ASSERT(condition, message) static_assert(condition, message)
#else
#define TRANSEPT_ABI_ASSERT(condition, message) _Static_assert(condition, message)
#endif

/* Raised whenever a struct below, the meaning of a field or a kernel's calling convention changes. */
#define TRANSEPT_ABI_VERSION 1u

/* Every buffer starts at a multiple of this many bytes, and this many bytes past its end may be read (never written).
 */
#define TRANSEPT_BUFFER_ALIGNMENT 256u
#define TRANSEPT_BUFFER_SLACK 256u

/* Alignment of the per-thread scratch a kernel receives. */
#define TRANSEPT_SCRATCH_ALIGNMENT 64u

/* The error word of a run. The first kernel that meets an index out of range stores {id, value}; later ones leave it.
 * `id` is 1 + the index of the message in the manifest's table of run-time checks; 0 means no error.
 * Written with a compare-and-swap of `id` from 0; read by the host after the entry has finished. */
typedef struct transept_error_word {
  int32_t id;
  int32_t reserved;
  int64_t value;
} transept_error_word;

/* One dispatch as a kernel sees it, resolved once for given call symbols and walked on every run. */
typedef struct transept_dispatch {
  void *const *buffers;       /* resolved addresses, in the order of the kernel's buffer parameters */
  const int64_t *sizes;       /* resolved values, in the order of the kernel's size parameters */
  transept_error_word *error; /* shared by all dispatches of a run */
} transept_dispatch;

/* Computes the work items [begin, end) of a dispatch. `scratch` is private to the calling thread for the duration of
 * the call and holds the number of bytes the manifest states for this kernel. Items are independent of each other:
 * any split over threads gives the same bits. */
typedef void (*transept_kernel)(const transept_dispatch *dispatch, int64_t begin, int64_t end, void *scratch);

/* The only symbol a code object exports: `transept_kernels`. Kernels are in the order of the manifest's kernel list. */
typedef struct transept_kernel_table {
  uint32_t abi_version;
  uint32_t count;
  const transept_kernel *kernels;
} transept_kernel_table;

#define TRANSEPT_KERNEL_TABLE_SYMBOL "transept_kernels"

/* The push constants of a kernel that is a compute shader: a dispatch as above, with device addresses. The entry point
 * is TRANSEPT_SHADER_ENTRY_POINT; workgroups are counted along x, and the first one computes the items from `begin` on,
 * as many as the manifest says for a workgroup; items at or above `end` are left out. */
typedef struct transept_shader_call {
  uint64_t buffers; /* of a table of device addresses, in the order of the kernel's buffer parameters */
  uint64_t sizes;   /* of a table of int64_t, in the order of the kernel's size parameters */
  uint64_t error;   /* of the transept_error_word of the run */
  int64_t begin, end;
} transept_shader_call;

#define TRANSEPT_SHADER_ENTRY_POINT "main"

/* The specialisation constant (a 32-bit SpecId) that is the number of invocations of a workgroup. */
#define TRANSEPT_SHADER_GROUP_SIZE 0
/* Where subgroups multiply matrices, [rows, depth] by [depth, columns]: their sizes. */
#define TRANSEPT_SHADER_MATRIX_ROWS 1
#define TRANSEPT_SHADER_MATRIX_COLUMNS 2
#define TRANSEPT_SHADER_MATRIX_DEPTH 3

TRANSEPT_ABI_ASSERT(sizeof(transept_error_word) == 16, "layout is part of the ABI");
TRANSEPT_ABI_ASSERT(offsetof(transept_error_word, value) == 8, "layout is part of the ABI");
TRANSEPT_ABI_ASSERT(sizeof(transept_dispatch) == 24, "layout is part of the ABI");
TRANSEPT_ABI_ASSERT(offsetof(transept_dispatch, sizes) == 8, "layout is part of the ABI");
TRANSEPT_ABI_ASSERT(offsetof(transept_dispatch, error) == 16, "layout is part of the ABI");
TRANSEPT_ABI_ASSERT(sizeof(transept_kernel_table) == 16, "layout is part of the ABI");
TRANSEPT_ABI_ASSERT(sizeof(transept_shader_call) == 40, "layout is part of the ABI");
TRANSEPT_ABI_ASSERT(offsetof(transept_shader_call, begin) == 24, "layout is part of the ABI");

#ifdef __cplusplus
}
#endif
#endif /* TRANSEPT_ABI_H */
