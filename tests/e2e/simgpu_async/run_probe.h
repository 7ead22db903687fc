// SPDX-License-Identifier: Apache-2.0
// Runs a probe program on simulated cards of its own (a fresh directory, so a fresh server) and
// returns what it printed. A probe that fails prints why on stderr, and the test fails with it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace simgpu_async {

using Values = std::map<std::string, long long>;
inline constexpr long long kMiB = 1 << 20;

inline std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class SimulatedCards {
 public:
  SimulatedCards() {
    std::string pattern = (std::filesystem::temp_directory_path() / "simgpu-async-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) directory_ = pattern;
  }
  ~SimulatedCards() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  SimulatedCards(const SimulatedCards&) = delete;
  SimulatedCards& operator=(const SimulatedCards&) = delete;

  Values run(const std::string& program, const std::string& scenario,
             const std::string& machine = "1xH200",
             const std::string& more_environment = "") const {
    const std::string build = environment("METE_BUILD_DIR");
    const std::string command = "env METE_SIM=" + machine + " METE_SIM_DIR=" + directory_ +
                                " LD_LIBRARY_PATH=" + build + "/simgpu " + more_environment + " " +
                                build + "/tests/" + program + " " + scenario;
    Values values;
    FILE* const output = popen(command.c_str(), "r");
    if (output == nullptr) {
      ADD_FAILURE() << "cannot run " << command;
      return values;
    }
    std::array<char, 256> line{};
    std::array<char, 200> key{};
    long long value = 0;
    while (std::fgets(line.data(), line.size(), output) != nullptr)
      if (std::sscanf(line.data(), "%199s %lld", key.data(), &value) == 2)
        values[key.data()] = value;
    const int status = pclose(output);
    EXPECT_EQ(status, 0) << command;
    return values;
  }

 private:
  std::string directory_;
};

// EXPECT_VALUE(values, "reserved", 32 * kMiB): the probe printed this key, and with this value.
#define EXPECT_VALUE(values, key, expected)                             \
  do {                                                                  \
    const auto found_ = (values).find(key);                             \
    ASSERT_NE(found_, (values).end()) << "not printed: " << (key);      \
    EXPECT_EQ(found_->second, static_cast<long long>(expected)) << key; \
  } while (false)

}  // namespace simgpu_async
