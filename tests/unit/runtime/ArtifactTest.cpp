#include "runtime/Artifact.h"

#include "TinyModel.h"
#include "runtime/AtomicFile.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <random>

using namespace transept;
using namespace transept::tests;

namespace {

Result<Artifact> readBytes(const std::string &bytes) {
  return Artifact::read(
      *bytesInMemory(Span<const uint8_t>(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size())));
}

std::string tinyBytes() { return buildArtifact(tinySections(tinyManifest())).take(); }

/// The message with which `bytes` are refused; "" and a failed test where they are not.
std::string refusal(const std::string &bytes) {
  Result<Artifact> artifact = readBytes(bytes);
  EXPECT_FALSE(artifact.ok());
  if (artifact.ok())
    return "";
  EXPECT_EQ(artifact.status().exitCode(), 7) << artifact.status().message();
  EXPECT_EQ(artifact.status().message().find('\n'), std::string::npos);
  return artifact.status().message();
}

TEST(Artifact, ReadsBackWhatWasWritten) {
  Result<Artifact> artifact = readBytes(tinyBytes());
  ASSERT_TRUE(artifact.ok()) << artifact.status().message();
  EXPECT_EQ(artifact->manifest().SerializeAsString(), tinyManifest().SerializeAsString());
  EXPECT_EQ(artifact->weightBytes(), 48u);
  EXPECT_EQ(std::memcmp(artifact->weights().data(), tinyWeights().data(), 48), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(artifact->weights().data()) % TRANSEPT_BUFFER_ALIGNMENT, 0u);
}

TEST(Artifact, EveryTruncationIsRefused) {
  std::string bytes = tinyBytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    std::string why = refusal(bytes.substr(0, length));
    if (length >= artifactHeaderBytes)
      EXPECT_NE(why.find("expected " + std::to_string(bytes.size()) + " bytes, has " + std::to_string(length)),
                std::string::npos)
          << why;
  }
}

TEST(Artifact, EverySingleByteChangeIsRefused) {
  const std::string bytes = tinyBytes();
  for (size_t position = 0; position < bytes.size(); ++position)
    for (int change : {0x01, 0x80, 0xFF}) {
      std::string changed = bytes;
      changed[position] = static_cast<char>(changed[position] ^ change);
      ASSERT_FALSE(readBytes(changed).ok()) << "byte " << position << " xor " << change;
      ASSERT_EQ(readBytes(changed).status().exitCode(), 7) << "byte " << position << " xor " << change;
    }
}

TEST(Artifact, OtherFilesAndTrailingBytesAreRefused) {
  std::string bytes = tinyBytes();
  EXPECT_NE(refusal("").find("0 bytes"), std::string::npos);
  EXPECT_NE(refusal(std::string(5000, '\0')).find("not a Transept artifact"), std::string::npos);
  EXPECT_NE(refusal(std::string(5000, '\xFF')).find("not a Transept artifact"), std::string::npos);
  EXPECT_NE(refusal("\x7f"
                    "ELF" +
                    std::string(5000, 'x'))
                .find("not a Transept artifact"),
            std::string::npos);
  EXPECT_NE(refusal(bytes + "x").find("expected"), std::string::npos);
  EXPECT_NE(refusal(bytes + bytes).find("expected"), std::string::npos);
}

/// `bytes` with a table field changed and the header hash made good again.
std::string rehashed(std::string bytes, const std::function<void(uint8_t *front)> &change) {
  auto *front = reinterpret_cast<uint8_t *>(bytes.data());
  change(front);
  uint64_t table = loadLittle<uint32_t>(front + 24) * artifactTableEntryBytes;
  if (artifactHeaderBytes + table <= bytes.size()) {
    Sha256 hash = sha256(front, artifactHashedHeaderBytes, front + artifactHeaderBytes, table);
    std::copy(hash.begin(), hash.end(), front + artifactHashedHeaderBytes);
  }
  return bytes;
}

TEST(Artifact, VersionsAreNamed) {
  EXPECT_NE(refusal(rehashed(tinyBytes(), [](uint8_t *front) { front[8] = 9; })).find("format version 9"),
            std::string::npos);
  EXPECT_NE(refusal(rehashed(tinyBytes(), [](uint8_t *front) { front[12] = 77; })).find("ABI version 77"),
            std::string::npos);
}

TEST(Artifact, HostileTablesWithGoodHashesAreRefused) {
  const uint64_t row = artifactHeaderBytes; // the manifest's
  const std::function<void(uint8_t *)> changes[] = {
      [](uint8_t *front) { storeLittle<uint32_t>(front + 24, 0); },
      [](uint8_t *front) { storeLittle<uint32_t>(front + 24, 0xFFFFFFFF); },
      [](uint8_t *front) { storeLittle<uint32_t>(front + 24, 2); },
      [](uint8_t *front) { front[28] = 1; },
      [&](uint8_t *front) { storeLittle<uint64_t>(front + row + 64, 0); },
      [&](uint8_t *front) { storeLittle<uint64_t>(front + row + 64, ~uint64_t(0)); },
      [&](uint8_t *front) { storeLittle<uint64_t>(front + row + 72, ~uint64_t(0)); },
      [&](uint8_t *front) { storeLittle<uint64_t>(front + row + 72, ~uint64_t(0) - 448); },
      [&](uint8_t *front) { storeLittle<uint32_t>(front + row + 56, 99); },
      [&](uint8_t *front) { storeLittle<uint32_t>(front + row + 56, 6); },
      [&](uint8_t *front) { storeLittle<uint32_t>(front + row + 60, 1); },
      [&](uint8_t *front) { front[row + 90] = 1; },
      [&](uint8_t *front) { front[row] = '\0'; },
      [&](uint8_t *front) { front[row] = '\n'; },
      [&](uint8_t *front) { front[row + 20] = 'x'; },
      [&](uint8_t *front) { std::fill_n(front + row, artifactNameBytes, 'x'); },
      [&](uint8_t *front) { std::copy_n("weights\0", 9, front + row); },
      [&](uint8_t *front) { storeLittle<uint32_t>(front + row + 128 + 56, 5); },
      [&](uint8_t *front) { storeLittle<uint32_t>(front + row + 256 + 56, 6); },
  };
  for (const auto &change : changes)
    refusal(rehashed(tinyBytes(), change));
}

TEST(Artifact, HostileProgramsAreRefused) {
  using M = program::Manifest;
  const std::function<void(M &)> changes[] = {
      [](M &m) { m.mutable_entries(0)->set_name(""); },
      [](M &m) { m.mutable_entries(1)->set_name("main"); },
      [](M &m) { m.mutable_entries(0)->mutable_dispatches(0)->set_kernel(4); },
      [](M &m) { m.mutable_entries(0)->mutable_dispatches(0)->set_buffers(0, 6); },
      [](M &m) { m.mutable_entries(0)->mutable_dispatches(0)->clear_items(); },
      [](M &m) { *m.mutable_entries(0)->mutable_dispatches(0)->mutable_items() = postfix("b", {"a", "b"}); },
      [](M &m) { m.mutable_entries(0)->mutable_dispatches(0)->add_sizes(); },
      [](M &m) { *m.mutable_entries(0)->mutable_dispatches(1)->mutable_sizes(0) = postfix("1 +"); },
      [](M &m) {
        m.mutable_entries(0)->add_dispatches()->CopyFrom(m.entries(0).dispatches(0));
        m.mutable_entries(0)->mutable_dispatches(2)->add_buffers(0);
      },
      [](M &m) { m.mutable_entries(0)->mutable_buffers(0)->set_dtype(static_cast<DType>(77)); },
      [](M &m) { m.mutable_entries(0)->mutable_buffers(0)->set_storage(static_cast<program::Storage>(77)); },
      [](M &m) { m.mutable_entries(0)->mutable_buffers(2)->set_name("x"); },
      [](M &m) { m.mutable_entries(0)->mutable_buffers(3)->clear_offset(); },
      [](M &m) { m.mutable_entries(0)->mutable_buffers(3)->clear_bytes(); },
      [](M &m) { *m.mutable_entries(0)->mutable_buffers(4)->mutable_bytes() = postfix("49"); },
      [](M &m) { *m.mutable_entries(0)->mutable_buffers(4)->mutable_bytes() = postfix("-1"); },
      [](M &m) { *m.mutable_entries(0)->mutable_buffers(4)->mutable_offset() = postfix("256"); },
      [](M &m) { *m.mutable_entries(0)->mutable_buffers(4)->mutable_offset() = postfix("-256"); },
      [](M &m) { *m.mutable_entries(0)->mutable_buffers(4)->mutable_offset() = postfix("9223372036854775552"); },
      [](M &m) { *m.mutable_entries(0)->mutable_buffers(4)->mutable_offset() = postfix("16"); },
      [](M &m) { *m.mutable_entries(0)->mutable_buffers(4)->mutable_offset() = postfix("n", {"n"}); },
      [](M &m) { m.mutable_entries(0)->mutable_buffers(1)->set_default_value("abc"); },
      [](M &m) { *m.mutable_entries(0)->mutable_buffers(1)->mutable_dims(0) = postfix("n", {"n"}); },
      [](M &m) { m.mutable_entries(0)->mutable_segments(0)->clear_arena_bytes(); },
      [](M &m) { m.mutable_entries(0)->mutable_segments(0)->set_dispatches(1); },
      [](M &m) { m.mutable_entries(0)->mutable_segments(0)->set_next(2); },
      [](M &m) { m.mutable_entries(0)->mutable_segments(0)->set_branches(true); },
      [](M &m) { m.mutable_entries(0)->mutable_segments(0)->add_read_backs()->set_buffer(0); },
      [](M &m) { m.mutable_entries(0)->mutable_segments(0)->add_assignments(); },
      [](M &m) { m.mutable_entries(0)->mutable_segments(0)->set_arena(1); },
      [](M &m) { m.mutable_entries(0)->clear_segments(); },
      [](M &m) { m.mutable_entries(0)->mutable_buffers(3)->set_arena(1); },
      [](M &m) { m.mutable_entries(0)->mutable_buffers(0)->set_arena(1); },
      [](M &m) { m.mutable_entries(0)->mutable_guards(0)->set_segment(1); },
      [](M &m) { m.mutable_entries(0)->mutable_symbols(0)->set_min(-1); },
      [](M &m) { m.mutable_entries(0)->mutable_symbols(0)->set_max(-5); },
      [](M &m) { m.mutable_entries(0)->mutable_guards(0)->set_relation(static_cast<program::Guard::Relation>(9)); },
      [](M &m) { m.mutable_entries(0)->mutable_guards(0)->clear_left(); },
      [](M &m) { m.mutable_entries(1)->mutable_buffers(1)->set_name("nothing"); },
      [](M &m) { m.mutable_entries(1)->mutable_buffers(1)->set_dtype(program::F64); },
      [](M &m) { m.mutable_states(0)->set_dtype(program::DTYPE_NONE); },
      [](M &m) { m.mutable_states(1)->set_name("memory"); },
      [](M &m) { *m.mutable_states(1)->mutable_dims(0) = postfix("d", {"a", "b", "c", "d"}); },
      [](M &m) { *m.mutable_kernels(1)->mutable_scratch_bytes() = postfix("c", {"a", "b", "c"}); },
      [](M &m) { m.set_weights_section("elsewhere"); },
      [](M &m) { m.add_code()->set_section("weights"); },
      [](M &m) { m.mutable_tokenizer()->add_files("weights"); },
      [](M &m) { m.mutable_generation()->set_encode("nothing"); },
  };
  for (const auto &change : changes) {
    program::Manifest manifest = tinyManifest();
    change(manifest);
    EXPECT_NE(refusal(buildArtifact(tinySections(manifest)).take()).find("invalid program"), std::string::npos);
  }
}

TEST(Artifact, MutatedManifestsWithGoodHashesNeverCrash) {
  // Bytes of a good manifest are changed, removed and repeated; hashes are right. What is accepted must be safe to set
  // up.
  const std::string good = tinyManifest().SerializeAsString();
  std::mt19937 random(1);
  auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (size_t changes = 1 + below(3); changes > 0; --changes) {
      size_t position = below(bytes.size());
      switch (below(4)) {
      case 0:
        bytes[position] = static_cast<char>(random());
        break;
      case 1:
        bytes[position] = static_cast<char>(bytes[position] + (below(2) ? 1 : -1));
        break;
      case 2:
        bytes.erase(position, 1 + below(8));
        break;
      default:
        bytes.insert(position, bytes.substr(below(bytes.size()), 1 + below(8)));
      }
    }
    std::vector<ArtifactSection> sections = tinySections(tinyManifest());
    sections[0] = ArtifactSection::fromBytes("manifest", SectionKind::Manifest, bytes);
    Result<Artifact> artifact = readBytes(buildArtifact(sections).take());
    if (!artifact.ok()) {
      ASSERT_EQ(artifact.status().exitCode(), 7);
      continue;
    }
    Result<std::shared_ptr<const Model>> model = Model::fromParts(artifact.take(), tinyKernels());
    if (!model.ok())
      continue;
    ++accepted;
    SessionOptions options;
    options.threads = 1;
    for (const program::Symbol &symbol : (*model)->manifest().generation_symbols())
      options.symbols.push_back({symbol.name(), std::max<int64_t>(symbol.min(), 1)});
    SessionOptions sessionOptions;
    sessionOptions.symbols = {{"batch", 1}, {"source", 1}, {"rows", 1}};
    Result<std::unique_ptr<Session>> session = (*model)->createSession(options);
    if (!session.ok())
      ASSERT_NE(session.status().exitCode(), 70) << session.status().message();
  }
  EXPECT_GT(accepted, 100); // names and numbers may change
}

TEST(Artifact, ManifestsThatAreNotManifestsAreRefused) {
  for (const std::string &content : {std::string("\xff\xff\xff"),
                                     std::string("\x0a\x05"
                                                 "ab"),
                                     tinyManifest().SerializeAsString() + tinyManifest().SerializeAsString()}) {
    std::vector<ArtifactSection> sections = tinySections(tinyManifest());
    sections[0] = ArtifactSection::fromBytes("manifest", SectionKind::Manifest, content);
    refusal(buildArtifact(sections).take());
  }
}

TEST(Artifact, LargeWeightsAreHashedInChunks) {
  const uint64_t bytes = 3 * weightChunkBytes + 5;
  std::string weights(bytes, '\0');
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<char>(i * 31 >> 3);
  std::vector<ArtifactSection> sections = tinySections(tinyManifest());
  sections[1] = {"weights", SectionKind::Weights, bytes, [&](const ByteSink &sink) -> Status {
                   for (size_t i = 0; i < weights.size(); i += 100000) // pieces that do not fit the chunks
                     TRANSEPT_TRY(sink(weights.data() + i, std::min<size_t>(100000, weights.size() - i)));
                   return {};
                 }};
  TemporaryFolder folder;
  std::string path = folder.path("model.tsp");
  ASSERT_TRUE(writeArtifact(path, sections).ok());
  for (ArtifactOptions::Weights how : {ArtifactOptions::Weights::Read, ArtifactOptions::Weights::Map})
    for (int threads : {1, 3}) {
      Result<Artifact> artifact = Artifact::read(path, {how, threads});
      ASSERT_TRUE(artifact.ok()) << artifact.status().message();
      ASSERT_EQ(artifact->weights().size(), bytes);
      EXPECT_EQ(std::memcmp(artifact->weights().data(), weights.data(), bytes), 0);
    }
  EXPECT_EQ(Artifact::read(path, {ArtifactOptions::Weights::Skip, 1})->weights().data(), nullptr);
  std::string file = readFile(path);
  EXPECT_EQ(file, buildArtifact(sections).take()); // the same bytes in memory and on disk, twice
  for (uint64_t position : {uint64_t(0), weightChunkBytes, 3 * weightChunkBytes + 4}) {
    std::string changed = file;
    changed[4096 + position] ^= 1;
    writeFile(path, changed);
    Result<Artifact> artifact = Artifact::read(path, {ArtifactOptions::Weights::Read, 2});
    ASSERT_FALSE(artifact.ok());
    EXPECT_NE(artifact.status().message().find("'weights' does not match its hash"), std::string::npos);
  }
}

TEST(Artifact, SpecialFilesAreRefusedAtOnce) {
  TemporaryFolder folder;
  EXPECT_EQ(Artifact::read(folder.folder()).status().exitCode(), 6);
  EXPECT_EQ(Artifact::read(folder.path("absent")).status().exitCode(), 6);
  EXPECT_EQ(Artifact::read("/dev/zero").status().exitCode(), 6);
  std::string pipe = folder.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(Artifact::read(pipe).status().exitCode(), 6);
}

TEST(ArtifactWriter, FailureLeavesTheOldFileAndNothingElse) {
  TemporaryFolder folder;
  std::string path = folder.path("model.tsp");
  writeFile(path, "old");
  std::vector<ArtifactSection> sections = tinySections(tinyManifest());
  sections[1].produce = [](const ByteSink &) { return Status(Code::Internal, "injected"); };
  EXPECT_EQ(writeArtifact(path, sections).message(), "injected");
  sections[1].produce = [](const ByteSink &sink) { return sink("short", 5); };
  EXPECT_EQ(writeArtifact(path, sections).exitCode(), 70);
  sections[1].produce = [](const ByteSink &sink) { return sink(std::string(49, 'x').data(), 49); };
  EXPECT_EQ(writeArtifact(path, sections).exitCode(), 70);
  EXPECT_EQ(readFile(path), "old");
  EXPECT_EQ(folder.listing(), std::vector<std::string>{"model.tsp"});
}

TEST(ArtifactWriter, ImpossiblePathsAreFileErrors) {
  TemporaryFolder folder;
  for (const std::string &path : {folder.folder(), folder.path("no/such/folder.tsp"), std::string("/dev/full"),
                                  std::string(""), folder.path(std::string(300, 'x'))})
    EXPECT_EQ(writeArtifact(path, tinySections(tinyManifest())).exitCode(), 6) << path;
  EXPECT_TRUE(folder.listing().empty());
}

TEST(AtomicFile, RemovesWhatAKilledProcessLeft) {
  TemporaryFolder folder;
  std::string stale = folder.path(".model.tsp.abcdefgh1234.tmp"), other = folder.path(".other.tsp.abcdefgh1234.tmp");
  writeFile(stale, "half");
  writeFile(other, "half");
  ASSERT_TRUE(writeArtifact(folder.path("model.tsp"), tinySections(tinyManifest())).ok());
  EXPECT_EQ(folder.listing(), (std::vector<std::string>{".other.tsp.abcdefgh1234.tmp", "model.tsp"}));
}

TEST(AtomicFile, TwoWritersDoNotDisturbEachOther) {
  TemporaryFolder folder;
  std::string path = folder.path("file");
  Result<AtomicFile> first = AtomicFile::create(path), second = AtomicFile::create(path);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(first->write(0, "first", 5).ok());
  ASSERT_TRUE(second->write(0, "second", 6).ok());
  EXPECT_TRUE(folder.listing().empty() || folder.listing().size() == 2); // nameless where the file system can
  ASSERT_TRUE(first->commit().ok());
  EXPECT_EQ(readFile(path), "first");
  ASSERT_TRUE(second->commit().ok());
  EXPECT_EQ(readFile(path), "second");
  EXPECT_EQ(folder.listing(), std::vector<std::string>{"file"});
}

//===- More than four gigabytes: a file with a hole -===//

constexpr uint64_t biasOffset = (uint64_t(1) << 32) + 4096;

/// tinyManifest() with its constant behind four gigabytes of zeros.
std::vector<ArtifactSection> largeSections() {
  program::Manifest manifest = tinyManifest();
  program::Buffer *bias = manifest.mutable_entries(0)->mutable_buffers(4);
  EXPECT_EQ(bias->storage(), program::CONSTANT);
  *bias->mutable_offset() = postfix(std::to_string(biasOffset));
  const uint64_t bytes = biasOffset + tinyWeights().size();
  return {ArtifactSection::fromBytes("manifest", SectionKind::Manifest, manifest.SerializeAsString()),
          {"weights", SectionKind::Weights, bytes, [](const ByteSink &sink) -> Status {
             const std::string zeros(uint64_t(1) << 20, '\0');
             for (uint64_t left = biasOffset; left > 0; left -= std::min<uint64_t>(left, zeros.size()))
               TRANSEPT_TRY(sink(zeros.data(), std::min<uint64_t>(left, zeros.size())));
             return sink(tinyWeights().data(), tinyWeights().size());
           }}};
}

TEST(Artifact, MoreThanFourGigabytes) {
  TemporaryFolder folder;
  const std::string path = folder.path("large.tsp");
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  const std::string zeros(uint64_t(1) << 20, '\0');
  Result<uint64_t> length = putArtifact(largeSections(), [&](uint64_t offset, const void *data, uint64_t bytes) {
    if (bytes <= zeros.size() && std::memcmp(data, zeros.data(), bytes) == 0)
      return Status();
    bool whole = pwrite(file, data, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
    return whole ? Status() : Status(Code::FileError, "cannot write");
  });
  ASSERT_TRUE(length.ok()) << length.status().message();
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(*length)), 0);
  struct stat info{};
  ASSERT_EQ(fstat(file, &info), 0);
  close(file);
  EXPECT_GT(static_cast<uint64_t>(info.st_size), biasOffset);
  EXPECT_LT(info.st_blocks * 512, 1 << 20);

  ArtifactOptions options;
  options.weights = ArtifactOptions::Weights::Map;
  options.threads = 2;
  Result<Artifact> artifact = Artifact::read(path, options);
  ASSERT_TRUE(artifact.ok()) << artifact.status().message();
  EXPECT_EQ(std::memcmp(artifact->weights().data() + biasOffset, tinyWeights().data(), tinyWeights().size()), 0);
  Result<std::shared_ptr<const Model>> model = Model::fromParts(artifact.take(), tinyKernels());
  ASSERT_TRUE(model.ok()) << model.status().message();
  SessionOptions sessionOptions;
  sessionOptions.symbols = {{"batch", 1}, {"source", 1}, {"rows", 1}};
  Result<std::unique_ptr<Session>> session = (*model)->createSession(sessionOptions);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const std::vector<float> x(4);
  const std::vector<int64_t> ids = {2}, xDims = {1, 4}, idDims = {1};
  RunArguments arguments;
  arguments.inputs = {view("x", xDims, x), view("ids", idDims, ids)};
  ASSERT_TRUE((*session)->run("main", arguments).ok());
  EXPECT_EQ(static_cast<const float *>((*session)->output("y").data)[3], 23); // bias[2][3]
}
} // namespace
