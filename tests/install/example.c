/* Runs an entry `main` with one input x f32 [n] through the installed C interface. Usage: example MODEL NUMBER... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <transept/transept.h>

static int fail(const transept_error *error) {
  fprintf(stderr, "%s: %s\n", transept_status_name(error->status), error->message);
  return (int)error->status;
}

int main(int argc, char **argv) {
  transept_error error = {.struct_size = sizeof error};
  transept_model *model = NULL;
  transept_session *session = NULL;
  if (argc < 2 || transept_model_load(argv[1], NULL, &model, &error) != TRANSEPT_OK)
    return argc < 2 ? TRANSEPT_USAGE : fail(&error);
  if (transept_session_create(model, NULL, &session, &error) != TRANSEPT_OK)
    return fail(&error);
  transept_model_free(model); /* the session keeps what it needs */

  int64_t count = argc - 2;
  float *values = calloc((size_t)count + 1, sizeof *values);
  for (int i = 2; i < argc; ++i)
    values[i - 2] = strtof(argv[i], NULL);
  transept_tensor input = {.struct_size = sizeof input,
                           .name = "x",
                           .dtype = TRANSEPT_F32,
                           .rank = 1,
                           .dims = &count,
                           .data = values,
                           .bytes = (size_t)count * sizeof *values};
  transept_run_arguments arguments = {.struct_size = sizeof arguments, .inputs = &input, .input_count = 1};
  if (transept_session_run(session, "main", &arguments, &error) != TRANSEPT_OK)
    return fail(&error);
  for (size_t i = 0; i < transept_session_output_count(session); ++i) {
    transept_tensor output = {.struct_size = sizeof output};
    if (transept_session_output(session, i, &output, &error) != TRANSEPT_OK)
      return fail(&error);
    printf("%s:", output.name);
    for (size_t j = 0; j < output.bytes / sizeof(float); ++j)
      printf(" %g", ((const float *)output.data)[j]);
    printf("\n");
  }
  free(values);
  transept_session_free(session);
  return 0;
}
