// SPDX-License-Identifier: Apache-2.0
// A daemon that only keeps jobs: launch::Keepers and launch::ProcessWatcher on a loop of its own.
// Commands arrive as lines of JSON on standard input, results go out as lines of JSON;
// keeper_test.py controls it.
//
//   keeper_driver KEEPER STATE          for tests
//   keeper_driver KEEPER STATE N C      runs /bin/true N times, C at once, and prints the time
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "launch/grant_file.h"
#include "launch/keeper_spawn.h"
#include "launch/keepers.h"
#include "launch/process_watcher.h"
#include "seam/clock.h"
#include "wire/keeper.h"

namespace mete {
namespace {

using Json = nlohmann::json;

// Descriptors by poll, timers by the machine's clock.
class PollLoop {
 public:
  seam::Loop loop() {
    return {[this](int fd, std::function<void()> ready) { ready_[fd] = std::move(ready); },
            [this](int fd) { ready_.erase(fd); },
            [this](seam::Milliseconds delay, std::function<void()> then) {
              timers_.emplace(clock_.monotonic() + delay, std::move(then));
            }};
  }
  void turn() {
    std::vector<pollfd> items;
    for (const auto& [fd, ready] : ready_) items.push_back({fd, POLLIN, 0});
    const auto left = timers_.empty() ? seam::Nanoseconds(seam::Milliseconds(1000))
                                      : timers_.begin()->first - clock_.monotonic();
    const auto wait = std::chrono::ceil<seam::Milliseconds>(left).count();
    (void)poll(items.data(), items.size(), static_cast<int>(std::max<std::int64_t>(0, wait)));
    for (const pollfd& item : items) {
      const auto found = ready_.find(item.fd);
      if (item.revents == 0 || found == ready_.end()) continue;
      const std::function<void()> call = found->second;
      call();
    }
    while (!timers_.empty() && timers_.begin()->first <= clock_.monotonic()) {
      const std::function<void()> call = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      call();
    }
  }

 private:
  seam::Clock& clock_ = seam::system_clock();
  std::map<int, std::function<void()>> ready_;
  std::multimap<seam::Nanoseconds, std::function<void()>> timers_;
};

Json json_of(const core::ProcessRef& process) { return {process.pid, process.start_ticks}; }

class Driver {
 public:
  Driver(const std::string& keeper, std::string state)
      : state_(std::move(state)),
        watcher_(loop_.loop(), seam::system_clock(),
                 {[this](core::JobId job) { return uid_of(job); }, [](core::JobId) {},
                  [this](core::JobId job) { tell("job_gone", job); }}),
        keepers_(settings(keeper), loop_.loop(), seam::system_clock(), callbacks(), watcher_) {
    if (const Result<void> r = keepers_.begin([](core::JobId, std::uint32_t) { return true; }); !r)
      std::cerr << r.error().message << std::endl;
  }

  int run() {
    std::cout << Json{{"event", "ready"}, {"job", ""}}.dump() << std::endl;
    loop_.loop().watch_fd(STDIN_FILENO, [this] { hear(); });
    while (!over_) loop_.turn();
    return 0;
  }

  int bench(int count, int at_once) {
    const seam::Nanoseconds began = seam::system_clock().monotonic();
    quiet_ = true;
    std::uint64_t next = 0;
    for (int i = 0; i < at_once && i < count; ++i) start_true(++next);
    next_ = [&, this] {
      if (next < static_cast<std::uint64_t>(count)) start_true(++next);
    };
    while (ended_ < count) loop_.turn();
    const std::chrono::duration<double> took = seam::system_clock().monotonic() - began;
    std::printf("%d jobs of /bin/true, %d at once: %.2f s, %.0f a second; %d did not end well\n",
                count, at_once, took.count(), count / took.count(), failed_);
    return failed_ == 0 ? 0 : 1;
  }

 private:
  launch::KeeperSettings settings(const std::string& keeper) const {
    launch::KeeperSettings settings;
    settings.program = keeper;
    settings.folder = base::join_path(state_, "keep");
    settings.boot = launch::boot_id();
    settings.environment = launch::keeper_environment(base::own_environment());
    settings.patience = seam::Milliseconds(5'000);
    return settings;
  }

  launch::KeeperCallbacks callbacks() {
    launch::KeeperCallbacks calls;
    calls.started = [this](core::JobId job, const launch::KeptStart& start) {
      tell("started", job,
           {{"keeper", json_of(start.keeper)}, {"program", json_of(start.program)}});
    };
    calls.ended = [this](core::JobId job, const launch::KeptEnd& end) {
      Json more = {{"exit", Json::parse(wire::encode(end.exit))}};
      if (end.start) more["program"] = json_of(end.start->program);
      tell("ended", job, std::move(more));
      if (!quiet_) return;
      ++ended_;
      failed_ += end.exit.code == 0 ? 0 : 1;
      keepers_.forget(job);
      next_();
    };
    calls.runner_gone = [this](core::JobId job) { tell("runner_gone", job); };
    calls.not_launched = [this](core::JobId job, const std::string& why, bool later) {
      tell("not_launched", job, {{"why", why}, {"later", later}});
    };
    calls.read_exit = [](std::string_view text) -> std::optional<core::Exit> {
      const Result<core::Exit> exit = wire::decode_exit(text);
      return exit ? std::optional(*exit) : std::nullopt;
    };
    calls.trouble = [](const std::string& text) { std::cerr << text << std::endl; };
    return calls;
  }

  void tell(const char* what, core::JobId job, Json more = Json::object()) {
    if (quiet_) return;
    more["event"] = what;
    more["job"] = core::to_string(job);
    std::cout << more.dump() << std::endl;
  }

  std::optional<std::uint32_t> uid_of(core::JobId job) const {
    const auto found = uids_.find(job);
    return found == uids_.end() ? std::nullopt : std::optional(found->second);
  }

  wire::KeeperPlan plan_from(const Json& json) {
    wire::KeeperPlan plan;
    plan.job = *core::parse_job_id(json.at("job").get<std::string>());
    plan.attempt = json.value("attempt", 1u);
    plan.spec.name = "test";
    plan.spec.user = "somebody";
    plan.spec.uid = json.value("uid", geteuid());
    plan.spec.command = json.at("command").get<std::vector<std::string>>();
    plan.spec.folder = json.value("folder", "/");
    if (json.contains("time_s")) plan.spec.time_s = json["time_s"].get<std::uint64_t>();
    if (json.contains("ram")) plan.spec.request.ram = Bytes::from_bytes(json["ram"]);
    plan.spec.request.procs = json.value("procs", 1u);
    core::Detached& detached = plan.spec.detached.emplace();
    detached.environment = "blob";
    detached.gid = json.value("gid", getegid());
    detached.groups = json.value("groups", std::vector<std::uint32_t>());
    detached.umask = json.value("umask", 022u);
    for (const Json& limit : json.value("limits", Json::array()))
      detached.limits.push_back({limit[0], limit[1], limit[2]});
    detached.tty = json.value("tty", false);
    if (json.contains("script")) detached.script = "blob";
    plan.script = json.value("script", "");
    plan.as_owner = json.value("as_owner", false);
    plan.keep = base::join_path(state_, "keep");
    plan.state = json.value("state", state_);
    detached.log = json.value("log", "");
    plan.log = wire::log_path(plan.spec, plan.job, base::join_path(plan.state, "logs"));
    plan.err = json.value("err", "");
    plan.log_limit = Bytes::from_bytes(json.value("log_limit", 0ull));
    plan.grace_ms = json.value("grace_ms", 2'000ull);
    for (const std::string& line :
         json.value("environment", std::vector<std::string>{"PATH=/usr/bin:/bin"}))
      plan.environment += line + '\0';
    return plan;
  }

  void start(const wire::KeeperPlan& plan, launch::Start how) {
    uids_[plan.job] = plan.spec.uid;
    keepers_.start(plan.job, plan.attempt, how,
                   [plan]() -> Result<std::string> { return wire::encode(plan); });
  }

  void start_true(std::uint64_t number) {
    start(plan_from({{"job", std::to_string(number)}, {"command", {"/bin/true"}}}),
          launch::Start::kIfNeeded);
  }

  void hear() {
    char buffer[65536];
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got <= 0) {
      over_ = true;
      return;
    }
    input_.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = input_.find('\n')) != std::string::npos;) {
      const Json command = Json::parse(input_.substr(0, end));
      input_.erase(0, end + 1);
      const std::string what = command.at("do");
      if (what == "start") {
        start(plan_from(command.at("plan")),
              command.value("find", false) ? launch::Start::kFindOnly : launch::Start::kIfNeeded);
        continue;
      }
      const core::JobId job = *core::parse_job_id(command.at("job").get<std::string>());
      if (what == "stop") keepers_.stop(job);
      if (what == "forget") {
        keepers_.forget(job);
        watcher_.forget(job);
      }
    }
  }

  std::string state_;
  PollLoop loop_;
  launch::ProcessWatcher watcher_;
  launch::Keepers keepers_;
  std::map<core::JobId, std::uint32_t> uids_;
  std::string input_;
  bool over_ = false;
  bool quiet_ = false;
  int ended_ = 0;
  int failed_ = 0;
  std::function<void()> next_ = [] {};
};

}  // namespace
}  // namespace mete

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) return 64;
  mete::Driver driver(argv[1], argv[2]);
  return argc == 5 ? driver.bench(std::atoi(argv[3]), std::atoi(argv[4])) : driver.run();
}
