/* Answers a request given as JSON, text included, through the installed C interface. Usage: generate MODEL REQUEST */
#include <stdio.h>

#include <transept/text.h>
#include <transept/transept.h>

static int fail(const transept_error *error) {
  fprintf(stderr, "%s: %s\n", transept_status_name(error->status), error->message);
  return (int)error->status;
}

int main(int argc, char **argv) {
  transept_error error = {.struct_size = sizeof error};
  transept_model *model = NULL;
  transept_generator *generator = NULL;
  transept_tokenizer tokenizer = {.struct_size = sizeof tokenizer};
  const char *answer = NULL;
  if (argc != 3 || transept_model_load(argv[1], NULL, &model, &error) != TRANSEPT_OK)
    return argc != 3 ? TRANSEPT_USAGE : fail(&error);
  if (transept_text_open(model, &tokenizer, &error) != TRANSEPT_OK)
    return fail(&error);
  transept_generator_options options = {.struct_size = sizeof options, .tokenizer = &tokenizer};
  if (transept_generator_create(model, &options, &generator, &error) != TRANSEPT_OK)
    return fail(&error);
  transept_model_free(model); /* the generator keeps what it needs */

  if (transept_generator_run(generator, argv[2], &answer, &error) != TRANSEPT_OK)
    return fail(&error);
  puts(answer);
  transept_generator_free(generator);
  return 0;
}
