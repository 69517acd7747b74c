// Peak of fp32 multiply-adds and rate of reading memory, with argv[1] threads: {"gflops": F, "gbytes_per_s": B}, and
// where the processor has instructions for them, of products of bf16 and of 8-bit integers ("bf16_gflops",
// "int8_gflops"). All are totals of all threads, best of several tries. Compile with -O3 -march=native
// -ffp-contract=fast -pthread.
#ifdef __AVX512F__
#include <immintrin.h>
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __AVX512F__
enum { kLanes = 16, kChains = 24 }; // of 32 registers
#else
enum { kLanes = 8, kChains = 12 }; // of 16 registers
#endif
typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
enum { kMaxThreads = 64, kTries = 7, kRounds = 2000000 };
static const size_t kBytes = (size_t)96 << 20; // per thread: far more than the share of the last-level cache

static pthread_barrier_t barrier;
static char *memory[kMaxThreads];
static volatile float sink[kMaxThreads][16];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static Vector multiplyAdd(void) {
  Vector sums[kChains] = {}, factor = {}, term = {};
  factor += 0.999f, term += 0.001f;
#pragma GCC unroll 24
  for (int i = 0; i < kChains; ++i)
    __asm__("" : "+v"(sums[i])); // unknown values: else equal chains become one
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i)
      sums[i] = sums[i] * factor + term;
  }
#pragma GCC unroll 24 // a constant index everywhere, or the sums live in memory
  for (int i = 1; i < kChains; ++i)
    sums[0] += sums[i];
  return sums[0];
}

static Vector readAll(const char *bytes) {
  Vector sums[8] = {};
  for (size_t at = 0; at < kBytes; at += 8 * sizeof(Vector)) {
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i)
      sums[i] += *(const Vector *)(bytes + at + i * sizeof(Vector));
  }
  for (int i = 1; i < 8; ++i)
    sums[0] += sums[i];
  return sums[0];
}

#ifdef __AVX512BF16__
static Vector dotBf16(void) {
  __m512 sums[kChains] = {};
  __m512i one = _mm512_set1_epi16(0x3f80);
  __asm__("" : "+v"(one));
#pragma GCC unroll 24
  for (int i = 0; i < kChains; ++i)
    __asm__("" : "+v"(sums[i]));
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i)
      sums[i] = _mm512_dpbf16_ps(sums[i], (__m512bh)one, (__m512bh)one);
  }
#pragma GCC unroll 24
  for (int i = 1; i < kChains; ++i)
    sums[0] += sums[i];
  return (Vector)sums[0];
}
#endif

#ifdef __AVX512VNNI__
typedef int Integers __attribute__((vector_size(64)));
static Vector dotInt8(void) {
  Integers sums[kChains] = {};
  __m512i one = _mm512_set1_epi8(1);
  __asm__("" : "+v"(one));
#pragma GCC unroll 24
  for (int i = 0; i < kChains; ++i)
    __asm__("" : "+v"(sums[i]));
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i)
      __asm__("vpdpbusd %1, %1, %0" : "+v"(sums[i]) : "v"(one)); // the compiler would spill what the intrinsic gives
  }
#pragma GCC unroll 24
  for (int i = 1; i < kChains; ++i)
    sums[0] += sums[i];
  return (Vector)sums[0];
}
#endif

enum { kMultiplyAdd, kRead, kBf16, kInt8, kKinds };
static double seconds[kKinds];

static Vector workOf(int kind, size_t thread) {
  switch (kind) {
#ifdef __AVX512BF16__
  case kBf16:
    return dotBf16();
#endif
#ifdef __AVX512VNNI__
  case kInt8:
    return dotInt8();
#endif
  case kRead:
    return readAll(memory[thread]);
  default:
    return multiplyAdd();
  }
}

static int isHere(int kind) {
#ifdef __AVX512BF16__
  if (kind == kBf16)
    return 1;
#endif
#ifdef __AVX512VNNI__
  if (kind == kInt8)
    return 1;
#endif
  return kind < kBf16;
}

static void *work(void *argument) {
  size_t thread = (size_t)argument;
  for (int what = 0; what < kKinds; ++what)
    for (int attempt = 0; attempt < kTries && isHere(what); ++attempt) {
      pthread_barrier_wait(&barrier);
      double begin = now();
      sink[thread][0] = workOf(what, thread)[0];
      pthread_barrier_wait(&barrier);
      double time = now() - begin;
      if (thread == 0 && (attempt == 0 || time < seconds[what]))
        seconds[what] = time;
    }
  return NULL;
}

int main(int argc, char **argv) {
  long threads = argc > 1 ? atol(argv[1]) : 1;
  if (threads < 1 || threads > kMaxThreads)
    return 2;
  pthread_t handles[kMaxThreads];
  pthread_barrier_init(&barrier, NULL, threads);
  for (long i = 0; i < threads; ++i) {
    if (posix_memalign((void **)&memory[i], 4096, kBytes))
      return 9;
    memset(memory[i], 0, kBytes);
  }
  for (long i = 1; i < threads; ++i)
    pthread_create(&handles[i], NULL, work, (void *)i);
  work((void *)0);
  for (long i = 1; i < threads; ++i)
    pthread_join(handles[i], NULL);
  const double products = 2e-9 * threads * kRounds * kChains * kLanes;
  printf("{\"gflops\": %.1f, \"gbytes_per_s\": %.1f", products / seconds[kMultiplyAdd],
         1e-9 * threads * kBytes / seconds[kRead]);
  if (isHere(kBf16))
    printf(", \"bf16_gflops\": %.1f", 2 * products / seconds[kBf16]);
  if (isHere(kInt8))
    printf(", \"int8_gflops\": %.1f", 4 * products / seconds[kInt8]);
  printf("}\n");
}
