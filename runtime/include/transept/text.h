/* Tokenizers for the Transept runtime (libtransept_text). */
#ifndef TRANSEPT_TEXT_H
#define TRANSEPT_TEXT_H

#include "transept/transept.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tokenizer a model brings, for transept_generator_options. `tokenizer->struct_size` must be set.
 * TRANSEPT_UNSUPPORTED where the model has none or a kind this library does not know; token ids work all the same.
 * Independent of the model afterwards. */
TRANSEPT_API transept_status transept_text_open(const transept_model *model, transept_tokenizer *tokenizer,
                                                transept_error *error);

#ifdef __cplusplus
}
#endif
#endif /* TRANSEPT_TEXT_H */
