// SPDX-License-Identifier: Apache-2.0
// One control group of the kernel's, version 1 or 2: made below one that is there, entered by the
// processes of a job, and removed when they are gone. Which groups a job gets is job_groups.h.
// Nothing is changed but the groups that we make.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace mete::launch {

enum class Controller { kMemory, kCpu, kFreezer };
std::string_view to_string(Controller controller);  // as the kernel calls it

// Where this process is in the hierarchy that has the controller.
struct CgroupPlace {
  std::string mount;  // "/sys/fs/cgroup"
  std::string group;  // below it: "/user.slice/session-2.scope", "/"
  bool unified = false;
  bool operator==(const CgroupPlace&) const = default;
  std::string folder() const { return mount + (group == "/" ? "" : group); }
};
// From the texts of /proc/self/cgroup and /proc/self/mountinfo; not_found: no such hierarchy here.
Result<CgroupPlace> find_cgroup(Controller controller, std::string_view own,
                                std::string_view mounts);
// The hierarchy of version 2, with or without controllers.
Result<CgroupPlace> find_unified(std::string_view own, std::string_view mounts);
// Whether a group of version 2 lends the controller to those below it.
bool lends(const std::string& folder, Controller controller);

class Cgroup {
 public:
  struct Setting {
    const char* file;
    std::string value;
    bool needed = true;  // false: not every kernel has it
  };
  // A new group "mete-NAME-PID" in the folder of another, with these settings, into which a process
  // of ours can go. Errors say why not here. Groups of runs that were killed are removed there.
  static Result<Cgroup> make(const std::string& above, const std::string& name,
                             const std::vector<Setting>& settings);
  // One that somebody else has made. not_found: it is gone, or no control group.
  static Result<Cgroup> find(const std::string& folder);

  Cgroup(Cgroup&& other) noexcept
      : folder_(std::move(other.folder_)),
        door_(std::move(other.door_)),
        killer_(std::move(other.killer_)),
        ours_(std::exchange(other.ours_, false)) {}
  Cgroup& operator=(Cgroup&&) = delete;
  ~Cgroup();  // removes one that we made; one with processes in it stays, and goes with a later job

  const std::string& folder() const { return folder_; }
  // Whoever writes "0" to this descriptor is in the group, with all that it forks. -1 of one that
  // was found.
  int door() const { return door_.get(); }
  // Whether a process of ours can go in: a child tries.
  bool can_enter() const;
  // Living processes, zombies not.
  // `whole`, where it is given: false when they could not be read for want of a descriptor or
  // memory.
  std::vector<pid_t> members(bool* whole = nullptr) const;
  // SIGKILL to every process in it. Where the kernel can, none escapes by forking meanwhile;
  // otherwise to be asked again until there is none.
  void kill_all() const;
  // How often the kernel has ended a process because the memory was used up.
  std::uint64_t out_of_memory() const;
  // False: there are processes in it, or we may not.
  bool remove() const;
  // It stays when we are gone (run --exec).
  void keep() { ours_ = false; }

  // The name that make() gives: "mete-12-412".
  static std::string name_of(const std::string& name, pid_t maker);

 private:
  Cgroup(std::string folder, bool ours) : folder_(std::move(folder)), ours_(ours) {}
  void open_killer();

  std::string folder_;
  Fd door_;
  Fd killer_;  // cgroup.kill or freezer.state: opened while we may
  bool ours_ = false;
};

}  // namespace mete::launch
