// SPDX-License-Identifier: Apache-2.0
// See cgroup.h. find_cgroup() and find_unified() locate this process from the texts of /proc;
// Cgroup::make() creates a directory below a group, writes the settings, and opens cgroup.procs
// (the "door") and cgroup.kill while it still has the rights to do so. A forked child tests that
// the group can be entered. Groups of killed runs are removed at the next make() in that folder;
// the maker of a group holds a shared lock on its directory until it ends, since its pid says
// nothing to a mete in another PID namespace.
#include "launch/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/text.h"

namespace mete::launch {

namespace {

constexpr std::string_view kPrefix = "mete-";
// Another mete may take a new group for an old one before it is locked.
constexpr int kMostTries = 10;

bool has_word(std::string_view list, char separator, std::string_view word) {
  const std::vector<std::string_view> words = base::split(list, separator);
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The first mount of this type in /proc/self/mountinfo.
struct Mount {
  std::string root;  // the group that is mounted there
  std::string point;
};
std::optional<Mount> find_mount(std::string_view mounts, std::string_view type,
                                std::string_view option) {
  for (const std::string_view line : base::split(mounts, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const std::vector<std::string_view> before = base::split(line.substr(0, dash), ' ');
    const std::vector<std::string_view> after = base::split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3 || after[0] != type) continue;
    if (!option.empty() && !has_word(after[2], ',', option)) continue;
    return Mount{std::string(before[3]), std::string(before[4])};
  }
  return std::nullopt;
}

// "/docker/7f/x" seen through a mount of "/docker/7f" is "/x".
std::string below(const std::string& root, std::string_view group) {
  if (root != "/" && group.starts_with(root)) group.remove_prefix(root.size());
  return group.empty() ? "/" : std::string(group);
}

Result<void> write_setting(const std::string& path, const std::string& value) {
  const Result<Fd> file = base::open_fd(path, O_WRONLY);
  if (!file) return file.error();
  if (write(file->get(), value.data(), value.size()) < 0)
    return Error::from_errno("write " + path, errno);
  return {};
}

// A process may be allowed to make a group and not to enter it. A child tries, so that this process
// stays in its own group.
bool try_door(int door) {
  const pid_t child = fork();
  if (child == 0) _exit(write(door, "0", 1) == 1 ? 0 : 1);
  int status = 1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && status == 0;
}

Fd lock_folder(const std::string& folder, int how) {
  Result<Fd> opened = base::open_fd(folder, O_RDONLY | O_DIRECTORY);
  if (!opened || (flock(opened->get(), how | LOCK_NB) != 0 && errno == EWOULDBLOCK)) return {};
  return *std::move(opened);  // also where directories cannot be locked
}

// The new group belongs to this process. Empty: another mete is removing it as an old one, or has.
Fd take_new(const std::string& folder) {
  Fd lock = lock_folder(folder, LOCK_SH);
  struct stat ours {
  }, there{};
  if (!lock || fstat(lock.get(), &ours) != 0 || stat(folder.c_str(), &there) != 0 ||
      ours.st_ino != there.st_ino)
    return {};
  return lock;
}

// Removes the groups that killed runs have left: their names contain the pid of the run, no process
// holds their lock, and only empty groups can be removed.
void sweep(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder.c_str()), closedir);
  if (!directory) return;
  std::vector<std::string> old;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(kPrefix)) continue;
    const Result<std::uint64_t> pid = base::parse_uint(name.substr(name.rfind('-') + 1));
    if (pid && kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH) old.emplace_back(name);
  }
  for (const std::string& name : old) {
    const std::string group = base::join_path(folder, name);
    if (const Fd lock = lock_folder(group, LOCK_EX)) (void)rmdir(group.c_str());
  }
}

}  // namespace

std::string_view to_string(Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return "memory";
    case Controller::kCpu:
      return "cpu";
    case Controller::kFreezer:
      break;
  }
  return "freezer";
}

namespace {

// The lines NUMBER:CONTROLLERS:GROUP of /proc/self/cgroup; the line of version 2 has no
// controllers.
struct OwnGroup {
  std::string_view controllers;
  std::string_view group;
};
std::vector<OwnGroup> own_groups(std::string_view own) {
  std::vector<OwnGroup> groups;
  for (const std::string_view line : base::split(own, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    groups.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return groups;
}

}  // namespace

Result<CgroupPlace> find_unified(std::string_view own, std::string_view mounts) {
  for (const OwnGroup& of : own_groups(own)) {
    const std::optional<Mount> mount =
        of.controllers.empty() ? find_mount(mounts, "cgroup2", "") : std::nullopt;
    if (mount) return CgroupPlace{mount->point, below(mount->root, of.group), true};
  }
  return Error::not_found("there are no control groups of version 2 here");
}

Result<CgroupPlace> find_cgroup(Controller controller, std::string_view own,
                                std::string_view mounts) {
  const std::string_view name = to_string(controller);
  for (const OwnGroup& of : own_groups(own)) {
    const std::optional<Mount> mount =
        has_word(of.controllers, ',', name) ? find_mount(mounts, "cgroup", name) : std::nullopt;
    if (mount) return CgroupPlace{mount->point, below(mount->root, of.group), false};
  }
  if (Result<CgroupPlace> place = find_unified(own, mounts)) return place;
  return Error::not_found("there are no control groups for it here");
}

bool lends(const std::string& folder, Controller controller) {
  const Result<std::string> lent =
      base::read_all(base::join_path(folder, "cgroup.subtree_control"));
  return lent && has_word(base::trim(*lent), ' ', to_string(controller));
}

std::string Cgroup::name_of(const std::string& name, pid_t maker) {
  return std::string(kPrefix) + name + "-" + std::to_string(maker);
}

Result<Cgroup> Cgroup::make(const std::string& above, const std::string& name,
                            const std::vector<Setting>& settings) {
  sweep(above);
  const std::string folder = base::join_path(above, name_of(name, getpid()));
  Fd lock;
  for (int tries = 0; !lock; ++tries) {
    if (mkdir(folder.c_str(), 0755) == 0) {
      lock = take_new(folder);
      if (!lock && tries >= kMostTries) return Error::busy(folder + " is removed again and again");
      continue;
    }
    if (errno != EEXIST || tries >= kMostTries) return Error::from_errno("make " + folder, errno);
    // Left by an earlier process with this pid, maybe of another PID namespace.
    if (const Fd old = lock_folder(folder, LOCK_EX)) (void)rmdir(folder.c_str());
  }
  Cgroup group(folder, true);
  group.lock_ = std::move(lock);
  for (const Setting& setting : settings)
    if (Result<void> r = write_setting(base::join_path(folder, setting.file), setting.value);
        !r && setting.needed)
      return std::move(r).error();
  Result<Fd> door = base::open_fd(base::join_path(folder, "cgroup.procs"), O_WRONLY);
  if (!door) return std::move(door).error();
  if (geteuid() != 0 && !try_door(door->get()))
    return Error::denied("no process may be moved to " + folder);
  group.door_ = *std::move(door);
  group.open_killer();
  return group;
}

Result<Cgroup> Cgroup::find(const std::string& folder) {
  struct statfs system {};
  if (statfs(folder.c_str(), &system) != 0) return Error::from_errno("look at " + folder, errno);
  const auto kind = static_cast<unsigned long>(system.f_type);
  if (kind != CGROUP_SUPER_MAGIC && kind != CGROUP2_SUPER_MAGIC)
    return Error::not_found(folder + " is no control group");
  Cgroup group(folder, false);
  group.open_killer();
  return group;
}

void Cgroup::open_killer() {
  for (const char* file : {"cgroup.kill", "freezer.state"})
    if (!killer_)
      if (Result<Fd> opened = base::open_fd(base::join_path(folder_, file), O_WRONLY))
        killer_ = *std::move(opened);
}

std::vector<pid_t> Cgroup::members(bool* whole) const {
  std::vector<pid_t> pids;
  const Result<std::string> text =
      base::read_all(base::join_path(folder_, "cgroup.procs"), 16 << 20);
  if (whole != nullptr) *whole = text.ok() || text.error().code != ErrorCode::kBusy;
  if (!text) return pids;
  for (const std::string_view line : base::split(*text, '\n')) {
    const Result<std::uint64_t> pid = base::parse_uint(line);
    if (pid && *pid > 0) pids.push_back(static_cast<pid_t>(*pid));  // 0: of another namespace
  }
  return pids;
}

void Cgroup::kill_all() const {
  // "1" is for cgroup.kill, which a freezer refuses, and vice versa.
  if (killer_ && write(killer_.get(), "1", 1) == 1) return;
  const bool frozen = killer_ && write(killer_.get(), "FROZEN", 6) == 6;
  for (const pid_t pid : members()) (void)kill(pid, SIGKILL);
  if (frozen) (void)!write(killer_.get(), "THAWED", 6);
}

bool Cgroup::can_enter() const { return try_door(door_.get()); }

bool Cgroup::remove() const { return rmdir(folder_.c_str()) == 0 || errno == ENOENT; }

Cgroup::~Cgroup() {
  if (ours_) (void)remove();
}

std::uint64_t Cgroup::out_of_memory() const {
  for (const char* file : {"memory.events", "memory.oom_control"}) {
    const Result<std::string> text = base::read_all(base::join_path(folder_, file));
    if (!text) continue;
    for (const std::string_view line : base::split(*text, '\n'))
      if (line.starts_with("oom_kill "))
        return base::parse_uint(line.substr(9)).ok() ? *base::parse_uint(line.substr(9)) : 0;
  }
  return 0;
}

}  // namespace mete::launch
