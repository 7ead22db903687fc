// SPDX-License-Identifier: Apache-2.0
// See leftovers.h. The job of a killed launcher may live on under its limit, and its next process
// opens the grant file by the path in its environment: the file must stay for as long as any such
// process lives.
#include "launch/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "abi/grant.h"
#include "base/fd.h"
#include "base/file.h"
#include "launch/grant_file.h"
#include "launch/job_scan.h"
#include "launch/process_tree.h"

namespace mete::launch {

namespace {

enum class Age { kThisBoot, kOtherBoot, kUnknown };

// Also unknown: a file that processes of another pid namespace have used, which cannot be seen from
// here.
Age age_of(int fd) {
  alignas(8) char raw[sizeof(abi::GrantHeader)];
  if (pread(fd, raw, sizeof raw, 0) != static_cast<ssize_t>(sizeof raw)) return Age::kThisBoot;
  const auto* header = reinterpret_cast<const abi::GrantHeader*>(raw);
  if (!std::equal(abi::kGrantMagic, abi::kGrantMagic + 8, header->magic)) return Age::kThisBoot;
  const seam::UuidBytes boot = boot_id();
  if (!std::equal(boot.begin(), boot.end(), header->boot_id)) return Age::kOtherBoot;
  struct stat mine {};
  if (stat("/proc/self/ns/pid", &mine) != 0) return Age::kUnknown;
  for (const abi::Word& seen : header->namespaces) {
    const std::uint64_t inode = seen.load();
    if (inode != 0 && inode != mine.st_ino) return Age::kUnknown;
  }
  return Age::kThisBoot;
}

bool contains_variable(const std::string& environment, const std::string& variable) {
  return environment.starts_with(variable + '\0') ||
         environment.find('\0' + variable + '\0') != std::string::npos;
}

// True also if there is no descriptor to look with: a file that may be in use is not removed.
bool uses(pid_t pid, const std::string& path) {
  constexpr std::size_t kMax = 16 << 20;
  const std::string folder = "/proc/" + std::to_string(pid);
  const Result<std::string> environment = base::read_all(folder + "/environ", kMax);
  if (environment && contains_variable(*environment, "METE_GRANT=" + path)) return true;
  const Result<std::string> maps = base::read_all(folder + "/maps", kMax);
  for (const Result<std::string>* text : {&environment, &maps})
    if (!*text && text->error().code == ErrorCode::kBusy) return true;
  return maps && maps->find(path + "\n") != std::string::npos;
}

// Passes over /proc until one shows no new process and the kernel created none meanwhile
// (job_scan.h).
bool used_by_somebody(const std::string& path) {
  constexpr int kMaxPasses = 20;
  std::set<pid_t> looked;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    const std::optional<std::uint64_t> before = processes_made();
    bool some = false;
    bool whole = true;
    for (const pid_t pid : all_processes(&whole)) {
      if (!looked.insert(pid).second) continue;
      some = true;
      if (uses(pid, path)) return true;
    }
    if (!whole) return true;
    if (!some && processes_made() == before) return false;
  }
  return true;  // unknown
}

// "cap-412.1", "12.1", "12_3.1", "12-2.1".
bool is_grant_name(std::string_view name) {
  if (name.starts_with("cap-")) return true;
  return !name.empty() && name.find_first_not_of("0123456789.-_") == std::string_view::npos &&
         name.front() != '.';
}

bool remove_if_left(const std::string& path) {
  const Result<Fd> fd = base::open_fd(path, O_RDWR | O_NOFOLLOW);
  if (!fd || flock(fd->get(), LOCK_EX | LOCK_NB) != 0) return false;
  const Age age = age_of(fd->get());
  if (age == Age::kUnknown || (age == Age::kThisBoot && used_by_somebody(path))) return false;
  // The file could have been removed and made anew since it was opened; the lock is on the opened
  // one.
  struct stat opened {};
  struct stat named {};
  if (fstat(fd->get(), &opened) != 0 || lstat(path.c_str(), &named) != 0) return false;
  if (opened.st_ino != named.st_ino || opened.st_dev != named.st_dev) return false;
  return unlink(path.c_str()) == 0;
}

}  // namespace

int remove_leftovers(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder.c_str()), closedir);
  if (!directory) return 0;
  while (const dirent* entry = readdir(directory.get()))
    if (is_grant_name(entry->d_name)) names.emplace_back(entry->d_name);
  int removed = 0;
  for (const std::string& name : names)
    if (remove_if_left(base::join_path(folder, name))) ++removed;
  return removed;
}

}  // namespace mete::launch
