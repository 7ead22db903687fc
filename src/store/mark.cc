// SPDX-License-Identifier: Apache-2.0
// See mark.h. All of it lies in one sector of the disk, which is written as a whole or not at all.
#include "store/mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/checksum.h"
#include "base/file.h"
#include "base/text.h"

namespace mete::store {

namespace {

constexpr std::string_view kFirstWords = "mete-mark 1 ";
constexpr std::size_t kBytes = 12 + 5 + 33 + 21 + 17;

std::string padded(const char* format, std::uint64_t value) {
  char text[32];
  (void)std::snprintf(text, sizeof text, format, static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

std::string encode_mark(const MarkContent& content) {
  const std::string text = std::string(kFirstWords) + padded("%04llu", content.version) + " " +
                           content.database + " " + padded("%020llu", content.seq);
  return text + " " + padded("%016llx", base::checksum(text)) + "\n";
}

std::string mark_path(const std::string& folder) { return base::join_path(folder, "meted.mark"); }

Result<std::optional<MarkContent>> read_mark(const std::string& folder) {
  const std::string path = mark_path(folder);
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return std::optional<MarkContent>();
    return Error::from_errno("look at " + path, errno);
  }
  const Result<std::string> text = base::read_regular(path, 4096);
  if (!text) return text.error();
  const Error damaged =
      Error::corrupt(path + " is damaged")
          .with_evidence("what was recorded last is not known, and cannot be compared");
  if (text->size() != kBytes || !text->starts_with(kFirstWords)) return damaged;
  const Result<std::uint64_t> version = base::parse_uint(text->substr(12, 4));
  const Result<std::uint64_t> seq = base::parse_uint(text->substr(50, 20));
  if (!version || !seq) return damaged;
  MarkContent content{text->substr(17, 32), *seq, *version};
  if (encode_mark(content) != *text) return damaged;
  return std::optional(std::move(content));
}

Result<void> Mark::open(MarkContent content) {
  content_ = std::move(content);
  const std::string path = mark_path(folder_);
  Result<Fd> file = base::open_fd(path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
  if (!file) return std::move(file).error();
  const std::string text = encode_mark(content_);
  // Once it is on the disk as a whole, later writes need no space.
  if (pwrite(file->get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ftruncate(file->get(), static_cast<off_t>(text.size())) != 0 || fsync(file->get()) != 0) {
    const int error = errno;
    struct stat info {};
    // A part of a mark would be taken for a damaged one.
    if (fstat(file->get(), &info) == 0 && info.st_size < static_cast<off_t>(kBytes))
      (void)unlink(path.c_str());
    return Error::from_errno("write " + path, error);
  }
  (void)base::sync_folder(folder_);
  file_ = *std::move(file);
  return {};
}

void Mark::write(std::uint64_t seq) {
  if (!file_) return;
  content_.seq = seq;
  const std::string text = encode_mark(content_);
  (void)!pwrite(file_.get(), text.data(), text.size(), 0);
}

}  // namespace mete::store
