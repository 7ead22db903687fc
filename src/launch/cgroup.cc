// SPDX-License-Identifier: Apache-2.0
// See cgroup.h.
#include "launch/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/file.h"
#include "base/text.h"

namespace mete::launch {

namespace {

constexpr std::string_view kPrefix = "mete-";
constexpr std::uint64_t kPeriodUs = 100'000;

const char* name_of(Controller controller) {
  return controller == Controller::kMemory ? "memory" : "cpu";
}

bool has_word(std::string_view list, char separator, std::string_view word) {
  const std::vector<std::string_view> words = base::split(list, separator);
  return std::find(words.begin(), words.end(), word) != words.end();
}

// One of /proc's lists: the first mount of that kind.
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

// Entering may be forbidden where making is not. A child tries, so that we stay where we are.
bool can_enter(int door) {
  const pid_t child = fork();
  if (child == 0) _exit(write(door, "0", 1) == 1 ? 0 : 1);
  int status = 1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && status == 0;
}

// What runs that were killed have left: groups are named after them, and only empty ones go.
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
  for (const std::string& name : old) (void)rmdir(base::join_path(folder, name).c_str());
}

}  // namespace

Result<CgroupPlace> find_cgroup(Controller controller, std::string_view own,
                                std::string_view mounts) {
  const std::string_view name = name_of(controller);
  std::optional<std::string_view> unified;
  for (const std::string_view line : base::split(own, '\n')) {  // NUMBER:CONTROLLERS:GROUP
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view group = line.substr(second + 1);
    if (controllers.empty()) unified = group;
    if (!has_word(controllers, ',', name)) continue;
    if (const std::optional<Mount> mount = find_mount(mounts, "cgroup", name))
      return CgroupPlace{mount->point, below(mount->root, group), false};
  }
  if (unified)
    if (const std::optional<Mount> mount = find_mount(mounts, "cgroup2", ""))
      return CgroupPlace{mount->point, below(mount->root, *unified), true};
  return Error::not_found("there are no control groups for it here");
}

Result<Cgroup> Cgroup::make_in(const std::string& above, const std::string& name,
                               const std::vector<Setting>& settings) {
  sweep(above);
  std::string folder =
      base::join_path(above, std::string(kPrefix) + name + "-" + std::to_string(getpid()));
  if (mkdir(folder.c_str(), 0755) != 0) return Error::from_errno("make " + folder, errno);
  Cgroup group(folder, Fd());
  for (const Setting& setting : settings)
    if (Result<void> r = write_setting(base::join_path(folder, setting.file), setting.value);
        !r && setting.needed)
      return std::move(r).error();
  Result<Fd> door = base::open_fd(base::join_path(folder, "cgroup.procs"), O_WRONLY);
  if (!door) return std::move(door).error();
  if (!can_enter(door->get())) return Error::denied("no process may be moved to " + folder);
  group.door_ = *std::move(door);
  return group;
}

Result<Cgroup> Cgroup::make(Controller controller, const std::string& name,
                            const std::vector<Setting>& version1,
                            const std::vector<Setting>& version2) {
  const Result<std::string> own = base::read_all("/proc/self/cgroup");
  if (!own) return own.error();
  const Result<std::string> mounts = base::read_all("/proc/self/mountinfo");
  if (!mounts) return mounts.error();
  const Result<CgroupPlace> place = find_cgroup(controller, *own, *mounts);
  if (!place) return place.error();
  if (!place->unified) return make_in(place->mount + place->group, name, version1);
  for (std::string group = place->group; group != "/";) {
    group = base::parent_path(group);
    const std::string folder = place->mount + group;
    const Result<std::string> lent =
        base::read_all(base::join_path(folder, "cgroup.subtree_control"));
    if (lent && has_word(lent->substr(0, lent->find('\n')), ' ', name_of(controller)))
      return make_in(folder, name, version2);
  }
  return Error::not_found(std::string("no group above us lends the ") + name_of(controller) +
                          " controller");
}

Result<Cgroup> Cgroup::limit_memory(const std::string& name, Bytes most) {
  const std::string bytes = std::to_string(most.count());
  // Without its swap the limit would only move memory to the disk; not every kernel counts it.
  return make(Controller::kMemory, name,
              {{"memory.limit_in_bytes", bytes}, {"memory.memsw.limit_in_bytes", bytes, false}},
              {{"memory.max", bytes}, {"memory.swap.max", "0", false}});
}

Result<Cgroup> Cgroup::limit_cpus(const std::string& name, std::uint64_t cpus) {
  const std::string quota = std::to_string(cpus * kPeriodUs);
  const std::string period = std::to_string(kPeriodUs);
  return make(Controller::kCpu, name, {{"cpu.cfs_period_us", period}, {"cpu.cfs_quota_us", quota}},
              {{"cpu.max", quota + " " + period}});
}

Cgroup::~Cgroup() {
  if (!folder_.empty()) (void)rmdir(folder_.c_str());
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
