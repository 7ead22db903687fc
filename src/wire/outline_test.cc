// SPDX-License-Identifier: Apache-2.0
#include "wire/outline.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace mete::wire {
namespace {

void append(std::string& text, const std::string& path, const Outline& outline) {
  for (const auto& [name, part] : outline.fields) {
    const std::string here = path + (path.ends_with(' ') ? "" : ".") + name;
    text += here + "\n";
    append(text, here, part);
  }
}

// tests/checks/documents.py continues from this file.
TEST(Outline, IsWhatTheFileOfFieldsSays) {
  Outlines all;
  outline_cards(all);
  outline_event(all);
  outline_explain(all);
  outline_job(all);
  outline_notification(all);
  outline_queue(all);
  outline_show(all);
  outline_snapshot(all);
  outline_submit(all);
  outline_sweep(all);
  outline_view(all);
  std::string text;
  for (const auto& [name, outline] : all) append(text, name + " ", outline);

  const char* root = std::getenv("METE_SOURCE_DIR");
  const std::ifstream file(std::string(root != nullptr ? root : ".") + "/tests/data/fields.txt");
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << "write this to tests/data/fields.txt:\n" << text;
}

}  // namespace
}  // namespace mete::wire
