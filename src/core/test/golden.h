// SPDX-License-Identifier: Apache-2.0
// For tests whose cases are text files below tests/data: questions, each followed by its answers.
// All questions are asked again and the answers compared. A story is a class with
//
//   std::string read(const std::string& line);  // the answers to a line, or ""
//   int questions = 0;                          // asked so far
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "core/place/place.h"

namespace mete::core {

inline constexpr std::string_view kAnswer = "  => ";

inline std::string answer(const std::string& text) { return std::string(kAnswer) + text + "\n"; }

// The words of a line, taken from the left.
class Words {
 public:
  explicit Words(const std::string& line) : in_(line) {}
  std::string next() {
    std::string word;
    if (!(in_ >> word)) ADD_FAILURE() << "a word is missing in: " << in_.str();
    return word;
  }
  bool more() { return !(in_ >> std::ws).eof(); }
  std::string rest() {
    std::string text;
    std::getline(in_ >> std::ws, text);
    return text;
  }
  std::uint64_t number() { return base::parse_uint(next()).value(); }
  Bytes bytes() { return base::parse_bytes(next()).value(); }

 private:
  std::istringstream in_;
};

// One option of a request; false: unknown option.
inline bool read_option(const std::string& option, Words& words, Request& request) {
  if (option == "--gpu") {
    request.gpu = parse_gpu(words.next()).value();
  } else if (option == "--devices") {
    const std::string list = words.next();
    for (const std::string_view name : base::split(list, ',')) request.devices.emplace_back(name);
  } else if (option == "--gpu-type") {
    request.gpu_type = words.next();
  } else if (option == "--procs") {
    request.procs = static_cast<std::uint32_t>(words.number());
  } else if (option == "--or-cpu") {
    request.or_cpu = true;
  } else {
    return false;
  }
  return true;
}

inline Request read_request(Words& words) {
  Request request;
  while (words.more()) {
    const std::string option = words.next();
    if (!read_option(option, words, request)) ADD_FAILURE() << "no such option: " << option;
  }
  return request;
}

inline PoolCard read_card(Words& words) {
  PoolCard card;
  card.card.index = static_cast<std::uint32_t>(words.number());
  card.card.uuid = "GPU-" + std::to_string(card.card.index);
  card.card.type = words.next();
  card.card.capacity = words.bytes();
  while (words.more()) {
    const std::string word = words.next();
    if (word == "context")
      card.context = words.bytes();
    else if (word == "lost")
      card.lost = true;
    else if (word == "drained")
      card.drained = true;
    else if (word == "stale")
      card.stale = true;
    else if (word == "one-process")
      card.one_process = true;
    else
      ADD_FAILURE() << "no such word of a card: " << word;
  }
  return card;
}

inline std::string error_answer(const Error& error) {
  std::string text = answer(std::string(to_string(error.code)) + ": " + error.message);
  if (!error.evidence.empty()) text += answer("because: " + error.evidence);
  if (!error.hint.empty()) text += answer("try: " + error.hint);
  return text;
}

inline std::string file_contents(const std::filesystem::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

template <typename Story>
std::string told_again(const std::string& text) {
  Story story;
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kAnswer)) continue;
    out += line + "\n" + story.read(line);
  }
  EXPECT_GT(story.questions, 0) << "the file asks nothing";
  return out;
}

// With METE_GOLDEN_UPDATE set the files are rewritten.
template <typename Story>
void compare_files(const std::string& folder) {
  const char* root = std::getenv("METE_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "run by ctest, or set METE_SOURCE_DIR to the source tree";
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(root) / folder))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  ASSERT_FALSE(files.empty()) << "there is nothing to compare with";
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.filename());
    const std::string before = file_contents(file);
    const std::string after = told_again<Story>(before);
    if (std::getenv("METE_GOLDEN_UPDATE") != nullptr) std::ofstream(file) << after;
    EXPECT_EQ(before, after);
  }
}

}  // namespace mete::core
