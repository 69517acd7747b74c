#include "runtime/Hash.h"

#include <openssl/evp.h>

namespace transept {

Sha256 sha256(const void *data, size_t bytes) { return sha256(data, bytes, nullptr, 0); }

Sha256 sha256(const void *first, size_t firstBytes, const void *second, size_t secondBytes) {
  Sha256 hash{};
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  bool done = context && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1 &&
              EVP_DigestUpdate(context, first, firstBytes) == 1 &&
              (secondBytes == 0 || EVP_DigestUpdate(context, second, secondBytes) == 1) &&
              EVP_DigestFinal_ex(context, hash.data(), nullptr) == 1;
  EVP_MD_CTX_free(context);
  // Where the library fails (no memory), the result is the hash of no known content, and the caller refuses.
  if (!done)
    hash.fill(0);
  return hash;
}

std::string hexadecimal(const Sha256 &hash) {
  std::string out;
  for (uint8_t byte : hash) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

} // namespace transept
