// SPDX-License-Identifier: Apache-2.0
// See archive.h.
#include "cli/archive.h"

#include <algorithm>
#include <cstdio>

#include "base/assert.h"

namespace mete::cli {

namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostStored = 65'535;

std::uint32_t crc32(std::string_view data) {
  std::uint32_t crc = ~0u;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1)));
  }
  return ~crc;
}

void put_little(std::string& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

// Offsets and widths are those of POSIX ustar; numbers are octal.
std::string header(const ArchiveFile& file, std::int64_t time_s) {
  METE_ASSERT(file.name.size() < 100);
  std::string block(kBlock, '\0');
  const auto put = [&](std::size_t at, std::string_view text) {
    std::copy(text.begin(), text.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
  };
  const auto octal = [](std::uint64_t value, int width) {
    char text[32];
    (void)std::snprintf(text, sizeof text, "%0*llo", width, static_cast<unsigned long long>(value));
    return std::string(text);
  };
  put(0, file.name);
  put(100, octal(0600, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(file.content.size(), 11));
  put(136, octal(static_cast<std::uint64_t>(std::max<std::int64_t>(0, time_s)), 11));
  put(148, "        ");  // the sum counts its own field as blanks
  put(156, "0");
  put(257, std::string_view("ustar\00000", 8));
  std::uint64_t sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return block;
}

std::string gzip(std::string_view data) {
  std::string out("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", 10);
  const std::uint32_t crc = crc32(data);
  const auto size = static_cast<std::uint32_t>(data.size());
  do {
    const std::size_t part = std::min(data.size(), kMostStored);
    out += static_cast<char>(part == data.size() ? 1 : 0);  // the last one
    put_little(out, static_cast<std::uint32_t>(part), 2);
    put_little(out, ~static_cast<std::uint32_t>(part) & 0xffff, 2);
    out.append(data.substr(0, part));
    data.remove_prefix(part);
  } while (!data.empty());
  put_little(out, crc, 4);
  put_little(out, size, 4);
  return out;
}

}  // namespace

std::string tar_gz(const std::vector<ArchiveFile>& files, std::int64_t time_s) {
  std::string tar;
  for (const ArchiveFile& file : files) {
    tar += header(file, time_s) + file.content;
    tar.append((kBlock - file.content.size() % kBlock) % kBlock, '\0');
  }
  tar.append(2 * kBlock, '\0');
  return gzip(tar);
}

}  // namespace mete::cli
