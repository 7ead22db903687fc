// SPDX-License-Identifier: Apache-2.0
// Runs a program under a parkable grant, as a runner does, without a daemon: parks it, brings it
// back and reports the results. One line of JSON for each event.
//
//   park_driver --state DIR --movers DIR --token HEX --preload LIBS [--simgpu DIR]
//               --card UUID LIMIT TOTAL... [--procs N] [--context BYTES] [--checkpoint PROGRAM]
//               [--no-meter] -- PROGRAM...
//   --plain: the program has stdin and stdout, and is never parked
//   --no-meter: it is started as one that the meter cannot park
//   stdin: "park MS", "unpark", "deep MS", "undeep", "status", "kill N" (process N, with SIGKILL),
//          "limit BYTES" (of the first card)
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "abi/process.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "core/request/resolve.h"
#include "launch/deep_parking.h"
#include "launch/environment.h"
#include "launch/grant_file.h"
#include "launch/parking.h"

namespace {

using namespace mete;

struct Options {
  std::string state;
  std::string movers;
  std::string token;
  std::string preload;
  std::string simgpu;
  std::vector<core::CardShare> cards;
  std::uint64_t context = 518ull << 20;  // bytes
  int procs = 1;
  bool plain = false;
  bool meter = true;
  std::string checkpoint;
  std::vector<char*> program;
};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "park_driver: %s\n", why.c_str());
  std::exit(70);
}

Options parse(int argc, char** argv) {
  Options options;
  int at = 1;
  const auto next = [&]() -> std::string {
    if (++at >= argc) fail("an option without its value");
    return argv[at];
  };
  for (; at < argc && std::strcmp(argv[at], "--") != 0; ++at) {
    const std::string option = argv[at];
    if (option == "--state") {
      options.state = next();
    } else if (option == "--movers") {
      options.movers = next();
    } else if (option == "--token") {
      options.token = next();
    } else if (option == "--preload") {
      options.preload = next();
    } else if (option == "--simgpu") {
      options.simgpu = next();
    } else if (option == "--procs") {
      options.procs = std::stoi(next());
    } else if (option == "--checkpoint") {
      options.checkpoint = next();
    } else if (option == "--no-meter") {
      options.meter = false;
    } else if (option == "--plain") {
      options.plain = true;
    } else if (option == "--context") {
      options.context = std::stoull(next());
    } else if (option == "--card") {
      core::CardShare share;
      share.card.uuid = next();
      share.limit = share.from = Bytes::from_bytes(std::stoull(next()));
      share.card.total = Bytes::from_bytes(std::stoull(next()));
      options.cards.push_back(share);
    } else {
      fail("unknown option " + option);
    }
  }
  for (++at; at < argc; ++at) options.program.push_back(argv[at]);
  if (options.program.empty()) fail("no program");
  options.program.push_back(nullptr);
  return options;
}

pid_t start(const Options& options, const launch::GrantFile& grant) {
  launch::JobEnvironment job;
  job.job = "1";
  job.grant_path = grant.path();
  for (const core::CardShare& share : options.cards) {
    job.limit = job.uuids.empty() ? share.limit : std::min(job.limit, share.limit);
    job.uuids.push_back(share.card.uuid);
  }
  job.visible = job.uuids;
  std::stringstream libraries(options.preload);
  for (std::string one; std::getline(libraries, one, ':');) job.preload.push_back(one);
  job.simgpu = options.simgpu;
  std::vector<std::string> lines = launch::job_environment(base::own_environment(), job);
  if (options.meter) lines.insert(lines.begin(), "METE_PARKABLE=1");
  std::vector<char*> environment;
  for (std::string& line : lines) environment.push_back(line.data());
  environment.push_back(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  if (!options.plain) (void)dup2(STDERR_FILENO, STDOUT_FILENO);
  environ = environment.data();
  (void)execvp(options.program[0], options.program.data());
  _exit(127);
}

class Driver {
 public:
  Driver(const launch::GrantFile& grant, const Options& options, std::vector<pid_t> programs)
      : grant_(grant.grant()),
        parking_(grant_),
        deep_(grant_, parking_,
              {options.checkpoint, options.simgpu.empty() ? "" : options.simgpu + "/libcuda.so.1"}),
        programs_(std::move(programs)) {
    deep_.learn();
  }

  int run() {
    int code = 0;
    std::size_t left = programs_.size();
    while (left > 0) {
      pollfd in{hears_ ? STDIN_FILENO : -1, POLLIN, 0};
      if (poll(&in, 1, parking_.is_busy() || deep_.is_busy() ? 1 : 20) > 0) hear();
      const std::uint64_t now = abi::monotonic_ns();
      std::optional<launch::Parking::End> end = deep_.step(now);
      if (end)
        tell(*end, static_cast<int>(deep_.state()), now);
      else if (!deep_.is_busy() && (end = parking_.step(now)))
        tell(*end, static_cast<int>(parking_.state()), now);
      int status = 0;
      for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (std::find(programs_.begin(), programs_.end(), pid) == programs_.end()) continue;
        --left;
        const int one = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        if (code == 0) code = one;
        std::printf("{\"event\":\"ended\",\"pid\":%d,\"code\":%d}\n", pid, one);
        std::fflush(stdout);
      }
    }
    return code;
  }

 private:
  void tell(const launch::Parking::End& end, int state, std::uint64_t now) {
    std::printf(
        "{\"event\":\"%s\",\"state\":%d,\"ok\":%s,\"why\":\"%s\",\"no_room\":%s,\"ms\":%.3f,"
        "\"moved\":%llu,\"held\":%llu}\n",
        what_.c_str(), state, end.done ? "true" : "false", end.why.c_str(),
        end.no_room ? "true" : "false", static_cast<double>(now - began_) / 1e6,
        static_cast<unsigned long long>(parking_.moved().count()),
        static_cast<unsigned long long>(deep_.held(0).count()));
    std::fflush(stdout);
  }
  void hear() {
    char buffer[256];
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got <= 0) {
      hears_ = false;
      return;
    }
    heard_.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = heard_.find('\n')) != std::string::npos;) {
      std::istringstream line(heard_.substr(0, end));
      heard_.erase(0, end + 1);
      obey(line);
    }
  }
  void obey(std::istringstream& line) {
    std::string word;
    std::uint64_t number = 0;
    line >> word >> number;
    if (word == "park" || word == "unpark") {
      what_ = word;
      began_ = abi::monotonic_ns();
      if (word == "park")
        parking_.park(began_, number * 1'000'000);
      else
        parking_.unpark();
    } else if (word == "deep" || word == "undeep") {
      what_ = word;
      began_ = abi::monotonic_ns();
      if (word == "deep")
        deep_.park(began_, number * 1'000'000);
      else
        deep_.unpark(began_);
    } else if (word == "limit") {
      grant_.accounts[0][0].limit_bytes = number;
    } else if (word == "kill") {
      (void)kill(programs_[number], SIGKILL);
    } else if (word == "status") {
      std::printf(
          "{\"event\":\"status\",\"state\":%d,\"deep\":%d,\"obstacle\":\"%s\",\"deep_obstacle\":\"%"
          "s\","
          "\"moved\":%llu,\"held\":%llu}\n",
          static_cast<int>(parking_.state()), static_cast<int>(deep_.state()),
          parking_.obstacle().c_str(), deep_.obstacle().c_str(),
          static_cast<unsigned long long>(parking_.moved().count()),
          static_cast<unsigned long long>(deep_.held(0).count()));
      std::fflush(stdout);
    }
  }

  abi::Grant& grant_;
  launch::Parking parking_;
  launch::DeepParking deep_;
  std::vector<pid_t> programs_;
  bool hears_ = true;
  std::string heard_;
  std::string what_;
  std::uint64_t began_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  launch::GrantName name{"1", 1, launch::GrantPark{options.movers, {}}};
  for (std::size_t i = 0; i < name.park->token.size() && 2 * i + 1 < options.token.size(); ++i)
    name.park->token[i] =
        static_cast<std::uint8_t>(std::stoi(options.token.substr(2 * i, 2), nullptr, 16));
  std::vector<abi::GrantCard> cards(options.cards.size());
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const core::CardShare& share = options.cards[i];
    if (!launch::set_uuid(cards[i], share.card.uuid)) fail("not a UUID: " + share.card.uuid);
    cards[i].guarantee_bytes = cards[i].ceiling_bytes = share.limit.count();
    cards[i].total_bytes = share.card.total.count();
    cards[i].context_first_bytes = cards[i].context_more_bytes = options.context;
  }
  Result<launch::GrantFile> grant = launch::GrantFile::make(options.state, name, cards);
  if (!grant) fail(grant.error().message);
  std::vector<pid_t> programs;
  for (int i = 0; i < options.procs; ++i) programs.push_back(start(options, *grant));
  if (options.plain) {
    int status = 0;
    (void)waitpid(programs.front(), &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  for (const pid_t pid : programs) std::printf("{\"event\":\"started\",\"pid\":%d}\n", pid);
  std::fflush(stdout);
  return Driver(*grant, options, programs).run();
}
