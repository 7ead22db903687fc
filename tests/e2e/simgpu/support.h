// SPDX-License-Identifier: Apache-2.0
// A small vocabulary for tests on simulated cards. The driver's state belongs to a process and ends
// with it, so every scenario runs in a forked child that makes the first CUDA call itself; the test
// program never calls the driver. A child that fails a CHECK prints it and exits with 1.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "abi/cuda_card.h"

namespace simgpu_test {

inline constexpr size_t kMiB = 1ull << 20;
inline constexpr size_t kGiB = 1ull << 30;
inline constexpr size_t kContext = 518 * kMiB;

[[noreturn]] void fail_child(const char* file, int line, const std::string& what);

#define CHECK(condition) \
  if (!(condition)) ::simgpu_test::fail_child(__FILE__, __LINE__, #condition)
#define CHECK_EQ(wanted, got)                                                       \
  do {                                                                              \
    const long long wanted_ = static_cast<long long>(wanted);                       \
    const long long got_ = static_cast<long long>(got);                             \
    if (wanted_ != got_)                                                            \
      ::simgpu_test::fail_child(                                                    \
          __FILE__, __LINE__,                                                       \
          #got " is " + std::to_string(got_) + ", not " + std::to_string(wanted_)); \
  } while (false)
#define OK(call) CHECK_EQ(CUDA_SUCCESS, call)

// A pipe between two processes of a scenario; also used to wait for one another.
class Pipe {
 public:
  Pipe();
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void send(const void* data, size_t bytes);
  void receive(void* data, size_t bytes);  // fails the child at the end of the stream
  void signal() { send("x", 1); }
  void wait() {
    char byte;
    receive(&byte, 1);
  }

 private:
  int ends_[2];
};

// A socket pair, to pass a descriptor.
class FdPipe {
 public:
  FdPipe();
  ~FdPipe();
  FdPipe(const FdPipe&) = delete;
  FdPipe& operator=(const FdPipe&) = delete;
  void send(int fd);
  int receive();

 private:
  int ends_[2];
};

// A simulated machine of its own for each test: directory, server, environment.
class SimTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Starts a child with the machine's environment; returns its pid.
  pid_t start(const std::function<void()>& body);
  // Waits for it: its exit status, or 128 + signal.
  static int finish(pid_t pid);
  // start() and expect success.
  void in_child(const std::function<void()>& body);

  std::string control(const std::string& command);
  // From `mete-simgpu --ctl dump`: a number of the card's entry, such as "used_bytes".
  uint64_t card_number(int card, const std::string& key);
  uint64_t used(int card = 0) { return card_number(card, "used_bytes"); }
  // True when `condition` came true; polls for up to 20 seconds.
  static bool eventually(const std::function<bool()>& condition);

  std::string folder_;
  std::string machine_ = "1xH200";
};

// In a child: cuInit, the primary context of a card, current.
CUcontext begin(int device = 0);
// In a child: bytes used on the current card, by CUDA.
size_t used_here();
int run_program(const std::string& command);  // a shell command's exit status

}  // namespace simgpu_test
