// SPDX-License-Identifier: Apache-2.0
// Limits on a job's CPUs and memory by the kernel's control groups, where we may use them: version
// 1 below our own group, version 2 below the nearest group above us that lends these controllers (a
// group with processes in it cannot lend, so it is never our own). Nothing is changed but the
// groups that we make, and they go when the job is over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace mete::launch {

enum class Controller { kMemory, kCpu };

// Where this process is in the hierarchy that has the controller.
struct CgroupPlace {
  std::string mount;  // "/sys/fs/cgroup"
  std::string group;  // below it: "/user.slice/session-2.scope", "/"
  bool unified = false;
  bool operator==(const CgroupPlace&) const = default;
};
// From the texts of /proc/self/cgroup and /proc/self/mountinfo; not_found: no such hierarchy here.
Result<CgroupPlace> find_cgroup(Controller controller, std::string_view own,
                                std::string_view mounts);

class Cgroup {
 public:
  // A new group with this limit, into which a process of ours can go. Errors say why not here.
  static Result<Cgroup> limit_memory(const std::string& name, Bytes most);
  static Result<Cgroup> limit_cpus(const std::string& name, std::uint64_t cpus);
  Cgroup(Cgroup&& other) noexcept
      : folder_(std::exchange(other.folder_, {})), door_(std::move(other.door_)) {}
  Cgroup& operator=(Cgroup&&) = delete;
  ~Cgroup();  // removes the group; one with processes in it stays, and goes with a later job

  // Whoever writes "0" to this descriptor is in the group, with all that it forks.
  int door() const { return door_.get(); }
  // How often the kernel has ended a process because the memory was used up.
  std::uint64_t out_of_memory() const;
  // It stays when we are gone (run --exec).
  void keep() { folder_.clear(); }

 private:
  struct Setting {
    const char* file;
    std::string value;
    bool needed = true;
  };
  Cgroup(std::string folder, Fd door) : folder_(std::move(folder)), door_(std::move(door)) {}
  static Result<Cgroup> make(Controller controller, const std::string& name,
                             const std::vector<Setting>& version1,
                             const std::vector<Setting>& version2);
  static Result<Cgroup> make_in(const std::string& above, const std::string& name,
                                const std::vector<Setting>& settings);

  std::string folder_;
  Fd door_;
};

}  // namespace mete::launch
