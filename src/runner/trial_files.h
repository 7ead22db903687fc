// SPDX-License-Identifier: Apache-2.0
// The files of a trial that its program or its readers share with the keeper: METE_METRICS, to
// which the program appends, and the curve, to which the keeper does. The formats are in
// docs/formats/sweep-files.md. Nothing here blocks, and a full disk costs points only.
#pragma once

#include <time.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "core/sweep/trial.h"

namespace mete::runner {

// A new file with this content and mode 0600, in place of an old one; links are not followed.
Result<void> make_file(const std::string& path, std::string_view content);

// Reads what is appended to a file, which any program may write, truncate, replace or turn into
// something else at any time.
class AppendedFile {
 public:
  static constexpr std::size_t kMaxPiece = 1 << 20;

  explicit AppendedFile(std::string path) : path_(std::move(path)) {}

  struct Piece {
    // The file was truncated, or written anew: the bytes are from its beginning.
    bool again = false;
    std::string bytes;
    std::uint64_t left = 0;  // bytes of the file after these
  };
  // The next bytes, at most kMaxPiece. Empty: there are none, or the path is no regular file now.
  Piece read();

 private:
  static constexpr std::size_t kTail = 256;

  std::string path_;
  std::uint64_t offset_ = 0;
  std::string tail_;        // the last bytes before offset_: others now mean that the file is new
  std::uint64_t size_ = 0;  // as last seen
  timespec written_{};
};

// Every point of a trial, one JSON object per line. A file that reaches kMaxBytes is thinned: about
// half of its lines are removed, chosen by their hashes, and of all later points the same part is
// left out; and again when it is full once more.
class CurveFile {
 public:
  static constexpr std::size_t kMaxBytes = 4 << 20;

  // Makes the file anew; if that fails all points are lost.
  explicit CurveFile(std::string path);

  void add(const core::sweep::TrialPoint& point);
  // Writes what was added; call from time to time.
  void flush();

  // Points that could not be written, and the first reason.
  std::uint64_t lost() const { return lost_; }
  const std::string& why() const { return why_; }

 private:
  static constexpr std::size_t kBuffer = 64 << 10;
  void lose(std::string_view lines, const std::string& why);
  bool is_kept(std::string_view line) const;
  Result<void> thin();

  std::string path_;
  Fd file_;
  std::string buffer_;     // whole lines
  std::size_t bytes_ = 0;  // of the file
  unsigned thinned_ = 0;   // times: one line of 2^thinned_ is kept
  std::uint64_t lost_ = 0;
  std::string why_;
};

// {"step":3,"val_loss":0.41}; null: the program reported something that is no finite number.
std::string line_of(const core::sweep::TrialPoint& point);

}  // namespace mete::runner
