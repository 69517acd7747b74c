#include "runtime/CodeObject.h"

#include "runtime/CpuFeatures.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace transept {

namespace {

std::string join(const std::vector<std::string> &words) {
  std::string out;
  for (const std::string &word : words)
    out += (out.empty() ? "" : ", ") + word;
  return out;
}

/// "vulkan fp32"
std::string otherTargets(const program::Manifest &manifest) {
  std::vector<std::string> names;
  for (const program::CodeObject &code : manifest.code())
    if (code.target() != "cpu")
      names.push_back(printable(code.target() + " " + code.level(), 60));
  return names.empty() ? "none" : join(names);
}

std::vector<std::string> missingFeatures(const program::CodeObject &code, const std::vector<std::string> &features) {
  std::vector<std::string> needed = levelFeatures(code.level());
  for (const std::string &feature : code.features())
    needed.push_back(feature[0] == '+' ? feature.substr(1) : feature);
  std::vector<std::string> missing;
  for (const std::string &feature : needed)
    if (std::find(features.begin(), features.end(), feature) == features.end() &&
        std::find(missing.begin(), missing.end(), feature) == missing.end())
      missing.push_back(feature);
  return missing;
}

bool writeAll(int file, Span<const uint8_t> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

/// A file in memory that may be mapped executable, or -1.
int memoryFile() {
  int file = memfd_create("transept-code", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  if (file < 0 && errno == EINVAL) // kernels before 6.3 do not know MFD_EXEC
    file = memfd_create("transept-code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  return file;
}

struct Loaded {
  void *library = nullptr;
  int file = -1;
  std::string error;
};

Loaded loadFromMemory(Span<const uint8_t> image) {
  int file = memoryFile();
  if (file < 0)
    return {nullptr, -1, std::strerror(errno)};
  if (!writeAll(file, image)) {
    close(file);
    return {nullptr, -1, std::strerror(ENOMEM)};
  }
  fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  std::string path = "/proc/self/fd/" + std::to_string(file);
  if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
    return {library, file, ""};
  const char *error = dlerror();
  close(file);
  return {nullptr, -1, error ? error : "unknown reason"};
}

/// For systems without memfd or /proc. The name is gone once the code is mapped.
Loaded loadFromTemporary(Span<const uint8_t> image) {
  std::string error = "no writable temporary directory";
  for (const char *directory : {"/dev/shm", "/tmp", "/var/tmp"}) {
    std::string path = std::string(directory) + "/transept-XXXXXX";
    int file = mkostemp(path.data(), O_CLOEXEC);
    if (file < 0)
      continue;
    void *library = writeAll(file, image) ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    const char *reason = library ? nullptr : dlerror();
    unlink(path.c_str());
    close(file);
    if (library)
      return {library, -1, ""};
    error = reason ? reason : "cannot write to a temporary file";
  }
  return {nullptr, -1, error};
}

/// What a code object looks like from outside; the loader would refuse less clearly, or not at all.
Status checkImage(Span<const uint8_t> image) {
  auto refuse = [](const char *why) { return Status(Code::ArtifactRefused, std::string("has code that ") + why); };
  Elf64_Ehdr header;
  if (image.size() < sizeof header || std::memcmp(image.data(), ELFMAG, SELFMAG) != 0)
    return refuse("is not an ELF object");
  std::memcpy(&header, image.data(), sizeof header);
#if defined(__x86_64__)
  constexpr int machine = EM_X86_64;
#else
  constexpr int machine = EM_AARCH64;
#endif
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != machine || header.e_type != ET_DYN)
    return refuse("is for another kind of machine");
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > image.size() ||
      header.e_phnum * sizeof(Elf64_Phdr) > image.size() - header.e_phoff)
    return refuse("has its program headers outside the object");
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, image.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_offset > image.size() || segment.p_filesz > image.size() - segment.p_offset ||
        (segment.p_type == PT_LOAD && segment.p_memsz < segment.p_filesz))
      return refuse("has a segment outside the object");
    if (segment.p_type == PT_INTERP)
      return refuse("is a program");
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) && (segment.p_flags & PF_X))
      return refuse("is writable and executable at once");
  }
  return {};
}

} // namespace

Result<const program::CodeObject *> chooseCode(const program::Manifest &manifest, const std::string &wanted,
                                               const std::vector<std::string> &features) {
  const std::vector<std::string> &levels = cpuLevels();
  if (!wanted.empty() && std::find(levels.begin(), levels.end(), wanted) == levels.end())
    return Status(Code::Usage, "unknown CPU level '" + printable(wanted) + "'; one of " + join(levels));
  std::string present, problems;
  for (const std::string &level : levels)
    for (const program::CodeObject &code : manifest.code()) {
      if (code.target() != "cpu" || code.level() != level)
        continue;
      present += (present.empty() ? "" : ", ") + level;
      if (!wanted.empty() && wanted != level)
        continue;
      std::vector<std::string> missing = missingFeatures(code, features);
      if (missing.empty())
        return &code;
      problems += (problems.empty() ? "" : "; ") + ("'" + level + "' needs " + join(missing));
    }
  if (problems.empty())
    return Status(Code::ArtifactRefused, wanted.empty() ? "holds no CPU code, only for: " + otherTargets(manifest)
                                                        : "holds no code for CPU level '" + wanted +
                                                              "', only for: " + (present.empty() ? "none" : present));
  return Status(Code::ArtifactRefused, "cannot run on this processor: level " + problems +
                                           ", which it lacks or the system does not enable" +
                                           (wanted.empty() ? "; compile it with a lower CPU level" : ""));
}

Result<CodeObject> CodeObject::load(Span<const uint8_t> image, uint32_t kernelCount) {
  TRANSEPT_TRY(checkImage(image));
  Loaded loaded = loadFromMemory(image);
  if (!loaded.library) {
    std::string first = loaded.error;
    loaded = loadFromTemporary(image);
    if (!loaded.library)
      return Status(Code::DeviceError,
                    "cannot make the artifact's code executable: " + printable(first) + "; " + printable(loaded.error));
  }
  CodeObject code;
  code.library_ = loaded.library;
  code.file_ = loaded.file;
  code.table_ = static_cast<const transept_kernel_table *>(dlsym(loaded.library, TRANSEPT_KERNEL_TABLE_SYMBOL));
  if (!code.table_)
    return Status(Code::ArtifactRefused, "has code without a kernel table");
  if (code.table_->abi_version != TRANSEPT_ABI_VERSION)
    return Status(Code::ArtifactRefused, "has code of ABI version " + std::to_string(code.table_->abi_version) +
                                             ", this runtime calls " + std::to_string(TRANSEPT_ABI_VERSION));
  if (code.table_->count != kernelCount)
    return Status(Code::ArtifactRefused, "has " + std::to_string(code.table_->count) + " kernels in its code and " +
                                             std::to_string(kernelCount) + " in its manifest");
  return code;
}

CodeObject::CodeObject(CodeObject &&other) noexcept { *this = std::move(other); }

CodeObject &CodeObject::operator=(CodeObject &&other) noexcept {
  std::swap(library_, other.library_);
  std::swap(file_, other.file_);
  std::swap(table_, other.table_);
  return *this;
}

CodeObject::~CodeObject() {
  if (library_)
    dlclose(library_);
  if (file_ >= 0)
    close(file_);
}

} // namespace transept
