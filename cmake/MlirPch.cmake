# One precompiled header of MLIR for all compiler code: parsing it is two thirds of the time of a translation unit.
# Users take it through transept_flags(); all of them must have the same language flags.

if(TRANSEPT_PCH)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/mlir_pch.cpp" CONTENT "// A precompiled header belongs to a target.\n")
  add_library(transept_mlir_pch OBJECT "${CMAKE_BINARY_DIR}/mlir_pch.cpp")
  target_precompile_headers(transept_mlir_pch PRIVATE "${CMAKE_SOURCE_DIR}/cmake/MlirPch.h")
  target_compile_options(transept_mlir_pch PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  target_include_directories(transept_mlir_pch SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(transept_mlir_pch PRIVATE ${TRANSEPT_LLVM_DEFINITIONS})
endif()
