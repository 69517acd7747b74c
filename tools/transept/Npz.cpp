#include "Npz.h"

#include "Npy.h"
#include "TensorProto.h"

#include "runtime/ArtifactFormat.h"
#include "runtime/AtomicFile.h"
#include "runtime/ByteSource.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace transept::tool {

namespace {

constexpr uint32_t localSignature = 0x04034b50, centralSignature = 0x02014b50, endSignature = 0x06054b50,
                   end64Signature = 0x06064b50, locator64Signature = 0x07064b50;
constexpr uint64_t localBytes = 30, centralBytes = 46, endBytes = 22, end64Bytes = 56, locator64Bytes = 20;
constexpr uint16_t stored = 0, deflated = 8;

Status refuse(const std::string &why) { return {Code::InvalidInput, why}; }

struct Member {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, bytes = 0, offset = 0;
};

/// Reads the directory of an archive in memory; every position is checked before it is used.
class Directory {
public:
  explicit Directory(Span<const uint8_t> bytes) : bytes_(bytes) {}

  Result<std::vector<Member>> read() {
    if (bytes_.size() < endBytes)
      return refuse("not a .npz archive");
    // The end record is last, but for a comment of at most 64 KiB.
    uint64_t end = bytes_.size() - endBytes;
    const uint64_t lowest = end > 0xFFFF ? end - 0xFFFF : 0;
    while (get<uint32_t>(end) != endSignature || get<uint16_t>(end + 20) != bytes_.size() - end - endBytes)
      if (end-- == lowest)
        return refuse("not a .npz archive, or cut");
    uint64_t count = get<uint16_t>(end + 10), size = get<uint32_t>(end + 12), offset = get<uint32_t>(end + 16);
    if (end >= locator64Bytes && get<uint32_t>(end - locator64Bytes) == locator64Signature) {
      uint64_t end64 = get<uint64_t>(end - locator64Bytes + 8);
      if (!inside(end64, end64Bytes) || get<uint32_t>(end64) != end64Signature)
        return refuse("malformed ZIP64 directory");
      count = get<uint64_t>(end64 + 32);
      size = get<uint64_t>(end64 + 40);
      offset = get<uint64_t>(end64 + 48);
    }
    if (!inside(offset, size) || count > size / centralBytes)
      return refuse("its directory lies outside the file");
    std::vector<Member> members;
    for (uint64_t i = 0; i < count; ++i) {
      Result<Member> member = readMember(offset);
      if (!member.ok())
        return member.status();
      members.push_back(member.take());
    }
    return members;
  }

  /// Where a member's packed bytes are; the local header may have other extra fields than the directory.
  Result<Span<const uint8_t>> packedBytes(const Member &member) const {
    if (!inside(member.offset, localBytes) || get<uint32_t>(member.offset) != localSignature)
      return refuse("array '" + printable(member.name) + "' is not where the directory says");
    uint64_t begin = member.offset + localBytes + get<uint16_t>(member.offset + 26) + get<uint16_t>(member.offset + 28);
    if (!inside(begin, member.packed))
      return refuse("array '" + printable(member.name) + "' lies outside the file");
    return Span<const uint8_t>(bytes_.data() + begin, member.packed);
  }

private:
  bool inside(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }
  /// 0 where the bytes do not exist.
  template <typename T> T get(uint64_t offset) const {
    return inside(offset, sizeof(T)) ? loadLittle<T>(bytes_.data() + offset) : T(0);
  }

  /// Moves `offset` behind the record.
  Result<Member> readMember(uint64_t &offset) const {
    if (!inside(offset, centralBytes) || get<uint32_t>(offset) != centralSignature)
      return refuse("malformed directory");
    Member member;
    member.flags = get<uint16_t>(offset + 8);
    member.method = get<uint16_t>(offset + 10);
    member.crc = get<uint32_t>(offset + 16);
    member.packed = get<uint32_t>(offset + 20);
    member.bytes = get<uint32_t>(offset + 24);
    member.offset = get<uint32_t>(offset + 42);
    uint64_t nameBytes = get<uint16_t>(offset + 28), extraBytes = get<uint16_t>(offset + 30);
    uint64_t next = offset + centralBytes + nameBytes + extraBytes + get<uint16_t>(offset + 32);
    if (!inside(offset, next - offset))
      return refuse("malformed directory");
    member.name.assign(reinterpret_cast<const char *>(bytes_.data() + offset + centralBytes), nameBytes);
    uint64_t extra = offset + centralBytes + nameBytes, extraEnd = extra + extraBytes;
    while (extra + 4 <= extraEnd) {
      uint64_t fieldEnd = extra + 4 + get<uint16_t>(extra + 2);
      if (fieldEnd > extraEnd)
        return refuse("malformed directory");
      uint64_t field = extra + 4;
      if (get<uint16_t>(extra) == 1) // ZIP64: the values that did not fit, in this order
        for (uint64_t *value : {&member.bytes, &member.packed, &member.offset})
          if (*value == 0xFFFFFFFF && field + 8 <= fieldEnd) {
            *value = get<uint64_t>(field);
            field += 8;
          }
      extra = fieldEnd;
    }
    offset = next;
    return member;
  }

  Span<const uint8_t> bytes_;
};

bool inflateAll(Span<const uint8_t> packed, std::vector<uint8_t> &out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  size_t in = 0, done = 0;
  int state = Z_OK;
  constexpr size_t piece = size_t(1) << 30; // zlib counts in 32 bits
  while (state == Z_OK) {
    stream.next_in = const_cast<Bytef *>(packed.data() + in);
    stream.avail_in = static_cast<uInt>(std::min(piece, packed.size() - in));
    stream.next_out = out.data() + done;
    stream.avail_out = static_cast<uInt>(std::min(piece, out.size() - done));
    const uInt inBefore = stream.avail_in, outBefore = stream.avail_out;
    state = inflate(&stream, Z_NO_FLUSH);
    in += inBefore - stream.avail_in;
    done += outBefore - stream.avail_out;
  }
  inflateEnd(&stream);
  return state == Z_STREAM_END && in == packed.size() && done == out.size();
}

uint32_t crcOf(const uint8_t *data, size_t bytes, uLong crc = 0) {
  return static_cast<uint32_t>(bytes ? crc32_z(crc, data, bytes) : crc); // zlib takes null for a restart
}

Result<std::vector<uint8_t>> unpack(const Directory &directory, const Member &member) {
  const std::string who = "array '" + printable(member.name) + "'";
  if (member.flags & 1)
    return refuse(who + " is encrypted");
  if (member.method != stored && member.method != deflated)
    return refuse(who + " is compressed by unknown method " + std::to_string(member.method));
  Result<Span<const uint8_t>> packed = directory.packedBytes(member);
  if (!packed.ok())
    return packed.status();
  // Deflate cannot shrink more than 1032 times: a larger claim is false, and must not become an allocation.
  if (member.method == stored ? member.bytes != member.packed : member.bytes / 1032 > member.packed)
    return refuse(who + " states an impossible size");
  std::vector<uint8_t> content(member.bytes);
  if (member.method == stored)
    std::copy(packed->begin(), packed->end(), content.begin());
  else if (!inflateAll(*packed, content))
    return refuse(who + " is damaged");
  if (crcOf(content.data(), content.size()) != member.crc)
    return refuse(who + " is damaged: its checksum differs");
  return content;
}

/// Builds the records of an archive.
class Records {
public:
  Records &u16(uint64_t value) { return number(value, 2); }
  Records &u32(uint64_t value) { return number(value, 4); }
  Records &text(const std::string &text) {
    bytes += text;
    return *this;
  }
  /// What local header and directory have in common.
  Records &member(const std::string &name, uint32_t crc, uint64_t size) {
    // Version 2.0, no flags, stored, at midnight of 1 January 1980.
    return u16(20).u16(0).u16(stored).u16(0).u16(0x21).u32(crc).u32(size).u32(size).u16(name.size()).u16(0);
  }
  std::string bytes;

private:
  Records &number(uint64_t value, int size) {
    for (int i = 0; i < size; ++i)
      bytes += static_cast<char>(value >> (8 * i));
    return *this;
  }
};

} // namespace

Result<std::vector<uint8_t>> readAll(const std::string &path) {
  Result<std::unique_ptr<ByteSource>> source = openFile(path);
  if (!source.ok())
    return source.status();
  std::vector<uint8_t> bytes((*source)->size());
  TRANSEPT_TRY((*source)->read(0, bytes.data(), bytes.size()));
  return bytes;
}

Result<std::vector<Array>> parseNpz(Span<const uint8_t> bytes) {
  Directory directory(bytes);
  Result<std::vector<Member>> members = directory.read();
  if (!members.ok())
    return members.status();
  std::vector<Array> arrays;
  for (const Member &member : *members) {
    constexpr char suffix[] = ".npy";
    if (member.name.size() < 4 || member.name.compare(member.name.size() - 4, 4, suffix) != 0)
      return refuse("member '" + printable(member.name) + "' is not a .npy array");
    std::string name = member.name.substr(0, member.name.size() - 4);
    if (std::any_of(arrays.begin(), arrays.end(), [&](const Array &other) { return other.name == name; }))
      return refuse("array '" + printable(name) + "' occurs twice");
    Result<std::vector<uint8_t>> content = unpack(directory, member);
    if (!content.ok())
      return content.status();
    Result<Array> array = parseNpy(*content);
    if (!array.ok())
      return array.status().withContext("array '" + printable(name) + "'");
    arrays.push_back(array.take());
    arrays.back().name = std::move(name);
  }
  return arrays;
}

Result<std::vector<Array>> readArrays(const std::string &path) {
  Result<std::vector<uint8_t>> bytes = readAll(path);
  if (!bytes.ok())
    return bytes.status().withContext(printable(path));
  const bool proto = path.size() > 3 && path.compare(path.size() - 3, 3, ".pb") == 0;
  if (proto || (bytes->size() >= 6 && std::memcmp(bytes->data(), "\x93NUMPY", 6) == 0)) {
    Result<Array> array = proto ? parseTensorProto(*bytes) : parseNpy(*bytes);
    if (!array.ok())
      return array.status().withContext(printable(path));
    std::vector<Array> arrays;
    arrays.push_back(array.take());
    return arrays;
  }
  Result<std::vector<Array>> arrays = parseNpz(*bytes);
  return arrays.ok() ? std::move(arrays) : arrays.status().withContext(printable(path));
}

Status writeNpz(const std::string &path, Span<const TensorView> arrays) {
  TRANSEPT_ASSIGN(AtomicFile file, AtomicFile::create(path));
  Records directory;
  uint64_t offset = 0;
  for (const TensorView &array : arrays) {
    std::string name = std::string(array.name) + ".npy", header = npyHeader(array.dtype, array.dims);
    uint64_t size = header.size() + static_cast<uint64_t>(array.bytes);
    if (size >= 0xFFFFFFFF || offset >= 0xFFFFFFFF - size || name.size() > 0xFFFF || arrays.size() >= 0xFFFF)
      return {Code::LimitExceeded, "'" + printable(path) + "' would hold 4 GiB or more at array '" +
                                       printable(std::string(array.name)) + "'"};
    uint32_t crc = crcOf(reinterpret_cast<const uint8_t *>(header.data()), header.size());
    crc = crcOf(static_cast<const uint8_t *>(array.data), static_cast<size_t>(array.bytes), crc);
    std::string front = Records().u32(localSignature).member(name, crc, size).text(name).text(header).bytes;
    directory.u32(centralSignature).u16(20).member(name, crc, size);
    directory.u16(0).u16(0).u16(0).u32(0).u32(offset).text(name);
    TRANSEPT_TRY(file.write(offset, front.data(), front.size()));
    TRANSEPT_TRY(file.write(offset + front.size(), array.data, static_cast<uint64_t>(array.bytes)));
    offset += front.size() + static_cast<uint64_t>(array.bytes);
  }
  const uint64_t size = directory.bytes.size();
  directory.u32(endSignature).u16(0).u16(0).u16(arrays.size()).u16(arrays.size()).u32(size).u32(offset).u16(0);
  TRANSEPT_TRY(file.write(offset, directory.bytes.data(), directory.bytes.size()));
  return file.commit();
}

} // namespace transept::tool
