# How a folder of this repository becomes a target. A target exists only where its folder has sources.

# Partial aggregates are how options are written. Clang reports libstdc++'s own use of a deprecated function in
# std::stable_sort as ours.
set(TRANSEPT_WARNINGS -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-deprecated-declarations)
if(TRANSEPT_WERROR)
  list(APPEND TRANSEPT_WARNINGS -Werror)
endif()

# Sets `out` to the .cpp files that match the patterns; new files are noticed at the next build.
function(transept_sources out)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# Flags of our own code: `compiler` or `runtime`.
function(transept_flags target kind)
  target_compile_options(${target} PRIVATE ${TRANSEPT_WARNINGS})
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}")
  # Generated code is not held to our warnings.
  target_include_directories(${target} SYSTEM PRIVATE "${CMAKE_BINARY_DIR}")
  if(kind STREQUAL "runtime")
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O2;-g1>)
    target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}/runtime/include")
  else()
    # Header parsing dominates the build of MLIR code; more optimisation buys nothing that a user notices.
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
    # The one header that the compiler shares with the runtime is transept/abi.h.
    target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}/runtime/include")
    target_include_directories(${target} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS} ${LLD_INCLUDE_DIRS})
    target_compile_definitions(${target} PRIVATE ${TRANSEPT_LLVM_DEFINITIONS})
    if(TRANSEPT_PCH)
      target_precompile_headers(${target} REUSE_FROM transept_mlir_pch)
    endif()
    if(TARGET transept_ir_tablegen)
      add_dependencies(${target} transept_ir_tablegen)
    endif()
  endif()
endfunction()

# A static library of compiler code. Usage: transept_compiler_library(name SOURCES files... [LINK targets...])
function(transept_compiler_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  if(NOT arg_SOURCES)
    return()
  endif()
  add_library(${name} STATIC ${arg_SOURCES})
  transept_flags(${name} compiler)
  transept_link(${name} PUBLIC ${arg_LINK})
endfunction()

# Links those of the targets that exist; imported ones always do.
function(transept_link target visibility)
  foreach(library IN LISTS ARGN)
    if(NOT library MATCHES "^transept" OR TARGET ${library})
      target_link_libraries(${target} ${visibility} ${library})
    endif()
  endforeach()
endfunction()

# An executable of compiler code: everything of MLIR and LLVM comes from the two shared libraries, lld is static.
function(transept_compiler_executable name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  if(NOT arg_SOURCES)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  transept_flags(${name} compiler)
  transept_link(${name} PRIVATE ${arg_LINK} transept_frontend transept_codegen transept_passes transept_ir lldELF
                lldCommon MLIR LLVM)
endfunction()
