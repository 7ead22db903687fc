// SPDX-License-Identifier: Apache-2.0
// The runner of a growing job, reduced to growth, on an existing grant file:
//   grow_runner FILE
// Reports each ask ("ask CARD BYTES") and follows stdin:
//   allow CARD BYTES    "most BYTES": what the job can hold from then on
//   refuse CARD         refuses the open ask
//   always BYTES        answers every ask from now on by itself, with a yes up to that total
//   status CARD         "status USED ALLOWED"
//   park, unpark        "park OK", "unpark OK": 1 or 0
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <sstream>
#include <string>

#include "abi/process.h"
#include "launch/growth.h"
#include "launch/parking.h"

namespace {

using mete::Bytes;
using mete::launch::Growth;
using mete::launch::Parking;

class Runner {
 public:
  explicit Runner(mete::abi::Grant& grant) : growth_(grant), parking_(grant) {}

  void run() {
    for (;;) {
      pollfd in{STDIN_FILENO, POLLIN, 0};
      if (poll(&in, 1, 1) > 0 && !hear()) return;
      while (const std::optional<Growth::Ask> ask = growth_.asked()) answer(*ask);
      if (const std::optional<Parking::End> end = parking_.step(mete::abi::monotonic_ns()))
        std::printf("%s %d\n", what_.c_str(), end->done ? 1 : 0);
      std::fflush(stdout);
    }
  }

 private:
  void answer(const Growth::Ask& ask) {
    if (!always_) {
      std::printf("ask %u %llu\n", ask.card, static_cast<unsigned long long>(ask.wanted.count()));
    } else if (ask.wanted <= *always_) {
      (void)growth_.allow(ask.card, ask.wanted);
      growth_.answer(ask.card);  // it may have been allowed already
    } else {
      growth_.answer(ask.card);
    }
  }
  bool hear() {
    char buffer[256];
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got <= 0) return false;
    heard_.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = heard_.find('\n')) != std::string::npos;) {
      std::istringstream line(heard_.substr(0, end));
      heard_.erase(0, end + 1);
      obey(line);
    }
    return true;
  }
  void obey(std::istringstream& line) {
    std::string word;
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    line >> word >> first >> second;
    const auto card = static_cast<std::uint32_t>(first);
    if (word == "allow") {
      std::printf("most %llu\n", static_cast<unsigned long long>(
                                     growth_.allow(card, Bytes::from_bytes(second)).count()));
    } else if (word == "refuse") {
      growth_.answer(card);
    } else if (word == "always") {
      always_ = Bytes::from_bytes(first);
    } else if (word == "status") {
      std::printf("status %llu %llu\n", static_cast<unsigned long long>(growth_.used(card).count()),
                  static_cast<unsigned long long>(growth_.allowed(card).count()));
    } else if (word == "park") {
      what_ = word;
      parking_.park(mete::abi::monotonic_ns(), 30'000'000'000);
    } else if (word == "unpark") {
      what_ = word;
      parking_.unpark();
    }
  }

  Growth growth_;
  Parking parking_;
  std::optional<Bytes> always_;
  std::string heard_;
  std::string what_;
};

}  // namespace

int main(int argc, char** argv) {
  const int fd = argc == 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return 1;
  void* memory = mmap(nullptr, sizeof(mete::abi::Grant), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 1;
  Runner(*static_cast<mete::abi::Grant*>(memory)).run();
  return 0;
}
