// SPDX-License-Identifier: Apache-2.0
// One control group of the kernel, version 1 or 2: made below an existing group, entered by the
// processes of a job, and removed when they are gone. job_groups.h decides which groups a job gets.
// Only groups that we made are changed.
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
std::string_view to_string(Controller controller);  // the kernel's name

// The place of this process in the hierarchy that has the controller.
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
// Whether a group of version 2 delegates the controller to its children.
bool lends(const std::string& folder, Controller controller);

class Cgroup {
 public:
  struct Setting {
    const char* file;
    std::string value;
    bool needed = true;  // false: not every kernel has this setting
  };
  // Makes a new group "mete-NAME-PID" in the folder of another one, with these settings. Fails if a
  // process of ours cannot enter it; errors give the reason. Removes groups of killed runs there.
  static Result<Cgroup> make(const std::string& above, const std::string& name,
                             const std::vector<Setting>& settings);
  // A group that another process has made. not_found: it is gone, or not a control group.
  static Result<Cgroup> find(const std::string& folder);

  Cgroup(Cgroup&& other) noexcept
      : folder_(std::move(other.folder_)),
        door_(std::move(other.door_)),
        killer_(std::move(other.killer_)),
        lock_(std::move(other.lock_)),
        ours_(std::exchange(other.ours_, false)) {}
  Cgroup& operator=(Cgroup&&) = delete;
  ~Cgroup();  // removes a group that we made; a group with processes stays, and is removed with a
              // later job

  const std::string& folder() const { return folder_; }
  // A process that writes "0" to this descriptor enters the group, with everything that it forks.
  // -1 for a group from find().
  int door() const { return door_.get(); }
  // Whether a process of ours can enter: a child tries.
  bool can_enter() const;
  // Living processes, without zombies. `whole`, if given, becomes false when they could not be read
  // for want of a descriptor or memory.
  std::vector<pid_t> members(bool* whole = nullptr) const;
  // SIGKILL to every process in the group. Where the kernel supports it, no process escapes by
  // forking meanwhile; elsewhere, call it again until no process is left.
  void kill_all() const;
  // How often the kernel has ended a process because the memory limit was reached.
  std::uint64_t out_of_memory() const;
  // False: there are processes in it, or we may not remove it.
  bool remove() const;
  // The group stays after the end of this object (run --exec).
  void keep() { ours_ = false; }

  // The name that make() gives: "mete-12-412".
  static std::string name_of(const std::string& name, pid_t maker);

 private:
  Cgroup(std::string folder, bool ours) : folder_(std::move(folder)), ours_(ours) {}
  void open_killer();

  std::string folder_;
  Fd door_;
  Fd killer_;  // cgroup.kill or freezer.state: opened while we have the rights
  Fd lock_;    // of a group that we made
  bool ours_ = false;
};

}  // namespace mete::launch
