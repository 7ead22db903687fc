// SPDX-License-Identifier: Apache-2.0
// mete doctor: the state folder, other daemons' claims, and the configuration. check_folder() looks
// at the folder, or at its nearest parent that exists: kind of file system, owner and mode, free
// space, and locks, tried on a file without a name, so that nothing is left behind.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/doctor.h"
#include "config/config.h"
#include "launch/state_dir.h"
#include "node/claims.h"
#include "runner/daemon_client.h"

namespace mete::cli {

namespace {

constexpr const char* kElsewhere = "export METE_STATE_DIR=/var/tmp/mete-$USER";
constexpr Bytes kLittle = Bytes::from_mib(64);

// A verdict on file systems whose files may be shared with other machines, or do not last.
struct Disk {
  Verdict verdict = Verdict::kOk;
  std::string text;
};
Disk disk_of(const std::string& folder) {
  struct Known {
    std::uint32_t magic;
    std::string_view name;
  };
  static constexpr std::array<Known, 11> kNetwork{{{NFS_SUPER_MAGIC, "NFS"},
                                                   {0xff534d42, "CIFS"},
                                                   {0xfe534d42, "SMB"},
                                                   {SMB_SUPER_MAGIC, "SMB"},
                                                   {0x00c36400, "Ceph"},
                                                   {0x0bd00bd0, "Lustre"},
                                                   {0x47504653, "GPFS"},
                                                   {0x19830326, "BeeGFS"},
                                                   {0x6b414653, "AFS"},
                                                   {AFS_SUPER_MAGIC, "AFS"},
                                                   {V9FS_MAGIC, "9p"}}};
  struct statfs info {};
  if (statfs(folder.c_str(), &info) != 0) return {Verdict::kWarn, "of an unknown kind"};
  const auto magic = static_cast<std::uint32_t>(info.f_type);
  for (const Known& known : kNetwork)
    if (known.magic == magic)
      return {Verdict::kWarn,
              "on a network disk (" + std::string(known.name) + "), and state is per machine"};
  if (magic == TMPFS_MAGIC || magic == RAMFS_MAGIC)
    return {Verdict::kInfo, "in memory: the list of jobs does not survive a reboot"};
  return {Verdict::kOk, "on a local disk"};
}

// Tries locks on an unnamed file: nothing is left behind.
Check check_locks(const std::string& folder) {
  const Result<Fd> file = base::open_fd(folder, O_TMPFILE | O_RDWR, 0600);
  if (!file) return {Verdict::kInfo, "locks", "cannot be tried: " + file.error().message};
  const Result<Fd> again = base::open_fd("/proc/self/fd/" + std::to_string(file->get()), O_RDWR);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (!again || fcntl(file->get(), F_OFD_SETLK, &whole) != 0)
    return {Verdict::kFail, "locks", "do not work in " + folder, kElsewhere};
  if (fcntl(again->get(), F_OFD_GETLK, &whole) != 0 || whole.l_type != F_WRLCK)
    return {Verdict::kFail, "locks", "are not seen by others in " + folder, kElsewhere};
  return {Verdict::kOk, "locks", "work there"};
}

Check check_space(const std::string& folder) {
  struct statvfs info {};
  if (statvfs(folder.c_str(), &info) != 0)
    return {Verdict::kWarn, "space", Error::from_errno(folder, errno).message};
  if ((info.f_flag & ST_RDONLY) != 0)
    return {Verdict::kFail, "space", folder + " is read-only", kElsewhere};
  const Bytes free = Bytes::from_bytes(info.f_frsize)
                         .checked_mul(info.f_bavail)
                         .value_or(Bytes::from_bytes(UINT64_MAX));
  const Verdict verdict = free < Bytes::from_mib(2) ? Verdict::kFail
                          : free < kLittle          ? Verdict::kWarn
                                                    : Verdict::kOk;
  return {verdict, "space", to_string(free) + " free",
          verdict == Verdict::kOk ? "" : "df -h " + folder};
}

void check_folder(const std::string& name, const std::string& path, Checks& checks) {
  std::string there = path;
  struct stat info {};
  while (stat(there.c_str(), &info) != 0 && errno == ENOENT && there != "/")
    there = base::parent_path(there);
  const bool exists = there == path;
  Check check{Verdict::kOk, name, path + (exists ? "" : " will be made")};
  const Disk disk = disk_of(there);
  check.evidence += ", " + disk.text;
  check.verdict = disk.verdict;
  if (disk.verdict == Verdict::kWarn) check.fix = kElsewhere;
  const auto fail = [&](const std::string& why, const std::string& fix) {
    check = {Verdict::kFail, name, why, fix};
  };
  if (!S_ISDIR(info.st_mode))
    fail(there + " is not a folder", kElsewhere);
  else if (exists && info.st_uid != geteuid())
    fail(path + " belongs to user " + std::to_string(info.st_uid), kElsewhere);
  else if (exists && (info.st_mode & 022) != 0)
    fail(path + " is writable by others", "chmod go-w " + path);
  else if (access(there.c_str(), W_OK | X_OK) != 0)
    fail(path + (exists ? " is not writable" : " cannot be made: " + there + " is not writable"),
         kElsewhere);
  const bool usable = check.verdict != Verdict::kFail;
  checks.push_back(std::move(check));
  if (!usable) return;
  checks.push_back(check_space(there));
  checks.push_back(check_locks(there));
}

// The daemon's rule for folders that it trusts.
std::string distrust(const std::string& folder) {
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0) return Error::from_errno(folder, errno).message;
  if (!S_ISDIR(info.st_mode)) return folder + " is not a folder";
  if (info.st_uid != 0 && info.st_uid != geteuid()) return folder + " belongs to another user";
  if ((info.st_mode & 022) != 0 && (info.st_mode & S_ISVTX) == 0)
    return folder + " has no sticky bit";
  if (access(folder.c_str(), W_OK | X_OK) != 0) return folder + " is not writable";
  return "";
}

void check_claims(const std::string& simulation, Checks& checks) {
  const std::string wanted = base::variable("METE_CLAIMS_DIR");
  std::string why;
  for (const std::string& folder : node::claims_folders(wanted, simulation)) {
    struct stat info {};
    const bool ours = !wanted.empty() || !simulation.empty();
    if (ours && lstat(folder.c_str(), &info) != 0 && errno == ENOENT) {
      checks.push_back({Verdict::kOk, "claims", folder + " will be made"});
      return;
    }
    const std::string wrong = distrust(folder);
    if (wrong.empty()) {
      checks.push_back({Verdict::kOk, "claims", "shared with other users' daemons in " + folder});
      return;
    }
    why += (why.empty() ? "" : "; ") + wrong;
  }
  checks.push_back({Verdict::kWarn, "claims", why,
                    "other users' daemons are not seen: sudo chmod 1777 /dev/shm"});
}

void check_config(Checks& checks) {
  const config::ConfigPlaces places = config::ConfigPlaces::from_environment(true);
  const Result<config::Config> values = config::load_config(places);
  if (!values) {
    checks.push_back(
        {Verdict::kFail, "configuration", values.error().message, "mete config check"});
    return;
  }
  std::vector<std::string> read;
  for (const std::string& path : places.files())
    if (access(path.c_str(), R_OK) == 0) read.push_back(path);
  checks.push_back({Verdict::kOk, "configuration",
                    read.empty() ? "no file; the defaults hold" : base::join(read, ", ")});
}

}  // namespace

void check_state(Checks& checks) {
  const Result<std::string> state = launch::state_dir();
  const Result<runner::DaemonPlace> place = runner::daemon_place();
  if (!state || !place) {
    const Error& error = state ? place.error() : state.error();
    checks.push_back({Verdict::kFail, "state folder",
                      error.message + (error.evidence.empty() ? "" : ": " + error.evidence),
                      kElsewhere});
  } else {
    check_folder("state folder", *state, checks);
    const bool simulated = place->state_dir != *state;
    if (simulated) check_folder("simulation's folder", place->state_dir, checks);
    check_claims(simulated ? place->state_dir : "", checks);
  }
  check_config(checks);
}

}  // namespace mete::cli
