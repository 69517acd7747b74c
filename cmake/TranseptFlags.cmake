# Compiler, linker and cache settings that hold for every target.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
# The optimisation level is set per target (cmake/TranseptTargets.cmake); assertions stay on in the default build type.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "")

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # lld links these programs in a quarter of the time of bfd.
  add_link_options(-fuse-ld=lld)
  # A precompiled header with its build time inside is never found again by ccache.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

# Not CMake's property, which says -fPIE for programs: those share a precompiled header with libraries.
add_compile_options(-fPIC)

# No path of the building machine in any output.
add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")

if(TRANSEPT_SANITIZE)
  # vptr needs type information of LLVM classes that the LLVM libraries do not export.
  set(transept_sanitizers -fsanitize=address,undefined -fno-sanitize=vptr)
  add_compile_options(${transept_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -gline-tables-only)
  add_link_options(${transept_sanitizers})
endif()

if(TRANSEPT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TRANSEPT_CCACHE_PROGRAM ccache)
  if(TRANSEPT_CCACHE_PROGRAM)
    # pch_defines,time_macros: what ccache requires before it caches users of a precompiled header.
    # CMake names the header by its full path, which would keep build folders from sharing objects; the content counts.
    set(transept_launcher
        env CCACHE_SLOPPINESS=pch_defines,time_macros "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}"
        "CCACHE_IGNOREOPTIONS=${CMAKE_BINARY_DIR}/CMakeFiles/transept_mlir_pch.dir/cmake_pch.hxx"
        "${TRANSEPT_CCACHE_PROGRAM}")
    set(CMAKE_C_COMPILER_LAUNCHER ${transept_launcher})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${transept_launcher})
  endif()
endif()
