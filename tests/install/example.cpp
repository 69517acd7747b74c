// The same through the C++ wrapper. Usage: example MODEL NUMBER...
#include <transept/transept.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char **argv) {
  try {
    transept::Model model(argc > 1 ? argv[1] : "");
    transept::Session session(model);
    std::vector<float> x;
    for (int i = 2; i < argc; ++i)
      x.push_back(std::strtof(argv[i], nullptr));
    for (const transept::TensorRef &output :
         session.run("main", {transept::Input("x", {static_cast<int64_t>(x.size())}, x)})) {
      std::printf("%s:", output.name().c_str());
      for (size_t i = 0; i < output.size(); ++i)
        std::printf(" %g", output.as<float>()[i]);
      std::printf("\n");
    }
    return 0;
  } catch (const transept::Error &error) {
    std::fprintf(stderr, "%s: %s\n", transept_status_name(error.status()), error.what());
    return error.status();
  }
}
