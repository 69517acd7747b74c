/* The version of Transept; as in the project's CMakeLists.txt. */
#ifndef TRANSEPT_VERSION_H
#define TRANSEPT_VERSION_H

#define TRANSEPT_VERSION "0.1.0"
#define TRANSEPT_VERSION_MAJOR 0
#define TRANSEPT_VERSION_MINOR 1
#define TRANSEPT_VERSION_PATCH 0

#endif
