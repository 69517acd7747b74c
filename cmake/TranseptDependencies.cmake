# Libraries of others. `./dev setup` installs them.

find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(nlohmann_json 3.9 REQUIRED CONFIG)
find_package(CLI11 2.1 REQUIRED CONFIG)

# Debian's libsentencepiece exports a protobuf of its own, of another version than the one the runtime uses; `./dev setup`
# builds one against the system's.
if(NOT TRANSEPT_SENTENCEPIECE_ROOT)
  set(TRANSEPT_SENTENCEPIECE_ROOT "${CMAKE_SOURCE_DIR}/.deps/sentencepiece")
endif()
set(TRANSEPT_SENTENCEPIECE "${TRANSEPT_SENTENCEPIECE_ROOT}/lib/libsentencepiece.a")
if(NOT EXISTS "${TRANSEPT_SENTENCEPIECE}")
  message(FATAL_ERROR "SentencePiece is not built yet: run ./dev setup")
endif()
add_library(transept_sentencepiece INTERFACE)
target_include_directories(transept_sentencepiece SYSTEM INTERFACE "${TRANSEPT_SENTENCEPIECE_ROOT}/include")
# It needs protobuf, lite or full: who links it brings one of them, never both.
target_link_libraries(transept_sentencepiece INTERFACE "${TRANSEPT_SENTENCEPIECE}")

# Headers only: the library is looked for when a program asks for a device.
find_package(Vulkan REQUIRED)

# Properties and normal forms of Unicode, and regular expressions, for tokenizers.
find_package(PkgConfig REQUIRED)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(oniguruma REQUIRED IMPORTED_TARGET oniguruma)

if(TRANSEPT_BUILD_TESTS)
  find_package(GTest REQUIRED)
  pkg_check_modules(spirv_tools REQUIRED IMPORTED_TARGET SPIRV-Tools) # assembles shaders
endif()

if(TRANSEPT_BUILD_COMPILER)
  find_program(LLVM_CONFIG_19 NAMES llvm-config-19 REQUIRED)
  execute_process(COMMAND "${LLVM_CONFIG_19}" --prefix OUTPUT_VARIABLE LLVM19_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  # The hints keep other installed LLVM versions out. The version files want major.minor.
  find_package(MLIR 19.1 REQUIRED CONFIG HINTS "${LLVM19_PREFIX}/lib/cmake/mlir")
  find_package(LLD REQUIRED CONFIG HINTS "${LLVM19_PREFIX}/lib/cmake/lld")
  list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
  include(TableGen)
  include(AddLLVM)
  include(AddMLIR)
  separate_arguments(TRANSEPT_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  find_package(ONNX 1.21 CONFIG PATHS "${CMAKE_SOURCE_DIR}/.deps/onnx" NO_DEFAULT_PATH)
  if(ONNX_FOUND)
    # Checker, shape inference, schemas, function inliner; carries its own include path and definitions.
    add_library(onnx_lib INTERFACE)
    target_link_libraries(onnx_lib INTERFACE ONNX::onnx)
  else()
    message(WARNING "ONNX 1.21 is not built yet (./dev setup does it): the frontend is left out")
  endif()
  include(MlirPch)
endif()
