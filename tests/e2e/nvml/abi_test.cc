// SPDX-License-Identifier: Apache-2.0
// Compares src/abi/nvml_api.h with a real nvml.h, fact by fact, and checks that no name of our
// header is missing in the list.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/e2e/nvml/abi_table.h"

namespace mete::tests {
namespace {

std::string text_of(const std::string& relative) {
  const char* root = std::getenv("METE_SOURCE_DIR");
  std::ifstream file(std::string(root ? root : ".") + "/" + relative);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(NvmlAbi, EveryNameOfOurHeaderIsInTheList) {
  const std::string header = text_of("src/abi/nvml_api.h");
  const std::string facts = text_of("tests/e2e/nvml/abi_facts.def");
  ASSERT_FALSE(header.empty());
  const std::regex declaration(R"(\b(NVML_[A-Z0-9_]+|nvml[A-Z]\w*_t|nvml[A-Z]\w*(?=\())\b)");
  // Opaque, or a macro and not a value.
  const std::set<std::string> other = {"NVML_STRUCT_VERSION", "nvmlDevice_t", "nvmlErrorString"};
  std::set<std::string> missing;
  for (std::sregex_iterator it(header.begin(), header.end(), declaration), end; it != end; ++it) {
    const std::string name = (*it)[1];
    if (!other.count(name) && !std::regex_search(facts, std::regex("\\(" + name + "[,)]")))
      missing.insert(name);
  }
  EXPECT_TRUE(missing.empty()) << "not compared with the real header: " << *missing.begin();
}

#ifdef METE_HAVE_NVML_H
TEST(NvmlAbi, EveryFactAgreesWithTheRealHeader) {
  const std::vector<AbiFact> ours = abi_ours(), theirs = abi_theirs();
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_EQ(ours[i].value, theirs[i].value) << ours[i].name;
}
#else
TEST(NvmlAbi, EveryFactAgreesWithTheRealHeader) { GTEST_SKIP() << "no nvml.h on this machine"; }
#endif

}  // namespace
}  // namespace mete::tests
