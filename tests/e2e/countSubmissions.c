/* Stands in for the Vulkan loader, whose path is in REAL_VULKAN: counts submissions, and says the sum at the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
typedef function (*lookup)(void *, const char *);
typedef int32_t (*submission)(void *, uint32_t, const void *, uint64_t);

static long count;
static lookup realInstance, realDevice;
static submission realSubmit;

static int32_t submit(void *queue, uint32_t number, const void *submits, uint64_t fence) {
  ++count;
  return realSubmit(queue, number, submits, fence);
}

static function deviceFunction(void *device, const char *name) {
  function found = realDevice(device, name);
  if (strcmp(name, "vkQueueSubmit") != 0)
    return found;
  realSubmit = (submission)found;
  return (function)submit;
}

function vkGetInstanceProcAddr(void *instance, const char *name) {
  if (!realInstance)
    realInstance = (lookup)dlsym(dlopen(getenv("REAL_VULKAN"), RTLD_NOW | RTLD_LOCAL), "vkGetInstanceProcAddr");
  function found = realInstance(instance, name);
  if (strcmp(name, "vkGetDeviceProcAddr") != 0)
    return found;
  realDevice = (lookup)found;
  return (function)deviceFunction;
}

__attribute__((destructor)) static void say(void) { fprintf(stderr, "submissions: %ld\n", count); }
