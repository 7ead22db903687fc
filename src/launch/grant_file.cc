// SPDX-License-Identifier: Apache-2.0
// See grant_file.h.
#include "launch/grant_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "abi/park.h"
#include "base/file.h"
#include "base/text.h"

namespace mete::launch {

namespace {

constexpr int kNames = 1000;  // tries for a free name; a pid has at most this many live jobs

Error cannot_make(const std::string& path, int error) {
  return Error::because("the grant file cannot be made", Error::from_errno(path, error))
      .with_hint("set METE_STATE_DIR to a folder of your own on a local disk with space");
}

// Without locks (some network file systems) no process can recognise a leftover either.
bool lock_and_still_there(int fd) {
  int result = 0;
  do {
    result = flock(fd, LOCK_EX);
  } while (result != 0 && errno == EINTR);
  struct stat info {};
  return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

Result<abi::GrantSpec> make_spec(const std::string& job, const GrantName& name,
                                 std::span<const abi::GrantCard> cards, std::uint32_t parts) {
  if (cards.size() > abi::kMaxCards) {
    return Error::unsupported("a job can have at most " + std::to_string(abi::kMaxCards) + " cards")
        .with_evidence(std::to_string(cards.size()) + " were asked for");
  }
  abi::GrantSpec spec;
  if (parts > abi::kMaxParts)
    return Error::unsupported("a card can be divided between at most " +
                              std::to_string(abi::kMaxParts) + " processes");
  if (name.growing && parts > 1)
    return Error::unsupported("a grant that grows cannot be divided between processes");
  spec.growing = name.growing;
  spec.job = job.c_str();
  spec.attempt = name.attempt;
  if (name.park) {
    if (name.park->movers.size() >= abi::kMaxMoverFolder)
      return Error::unsupported("a parkable job needs a shorter path to its movers")
          .with_evidence(name.park->movers + " has more than " +
                         std::to_string(abi::kMaxMoverFolder - 1) + " bytes");
    spec.parkable = true;
    spec.movers = name.park->movers.c_str();
    std::copy(name.park->token.begin(), name.park->token.end(), spec.park_token);
  }
  spec.part_count = parts;
  spec.uid = geteuid();
  spec.cards = cards.data();
  spec.card_count = static_cast<std::uint32_t>(cards.size());
  const seam::UuidBytes boot = boot_id();
  std::copy(boot.begin(), boot.end(), spec.boot_id);
  return spec;
}

}  // namespace

Result<void> set_uuid(abi::GrantCard& card, const std::string& uuid) {
  const std::optional<seam::UuidBytes> bytes = seam::parse_uuid(uuid);
  if (!bytes)
    return Error::unsupported("a card without a UUID cannot be capped: " + base::quote(uuid));
  std::copy(bytes->begin(), bytes->end(), card.uuid);
  return {};
}

seam::UuidBytes boot_id() {
  const Result<std::string> text = base::read_all("/proc/sys/kernel/random/boot_id", 4096);
  if (!text) return {};
  return seam::parse_uuid("GPU-" + std::string(base::trim(*text))).value_or(seam::UuidBytes{});
}

Result<GrantFile> GrantFile::make(const std::string& folder, const GrantName& name,
                                  std::span<const abi::GrantCard> cards, std::uint32_t parts) {
  GrantFile file;
  file.owner_ = getpid();
  file.job_ = name.job.empty() ? "cap-" + std::to_string(file.owner_) : name.job;
  for (int i = 1; !file.lock_; ++i) {
    std::string base_name = file.job_;
    if (i > 1) base_name.append("-").append(std::to_string(i));
    const std::string path =
        base::join_path(folder, base_name + "." + std::to_string(name.attempt));
    file.lock_.reset(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.lock_ && (errno != EEXIST || i == kNames)) return cannot_make(path, errno);
    // A process that removes leftovers may have seen the file before it was locked, and removed it.
    if (file.lock_ && !lock_and_still_there(file.lock_.get())) file.lock_.reset();
    if (!file.lock_) continue;
    file.path_ = path;  // from here on the destructor removes it
    if (name.job.empty()) file.job_ = base_name;
  }
  const Result<abi::GrantSpec> spec = make_spec(file.job_, name, cards, parts);
  if (!spec) return spec.error();
  int error = 0;
  do {
    error = posix_fallocate(file.lock_.get(), 0, sizeof(abi::Grant));
  } while (error == EINTR);
  if (error != 0) return cannot_make(file.path_, error);
  void* memory =
      mmap(nullptr, sizeof(abi::Grant), PROT_READ | PROT_WRITE, MAP_SHARED, file.lock_.get(), 0);
  if (memory == MAP_FAILED) return cannot_make(file.path_, errno);
  file.grant_ = static_cast<abi::Grant*>(memory);
  if (!abi::init_grant(memory, *spec)) return Error::invalid("the grant is out of range");
  return file;
}

GrantFile::GrantFile(GrantFile&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      job_(std::move(other.job_)),
      lock_(std::move(other.lock_)),
      grant_(std::exchange(other.grant_, nullptr)),
      owner_(other.owner_) {}

GrantFile::~GrantFile() {
  if (grant_ != nullptr) (void)munmap(grant_, sizeof(abi::Grant));
  if (!path_.empty() && owner_ == getpid() && base::file_id(lock_.get()) == base::file_id(path_))
    (void)unlink(path_.c_str());
}

}  // namespace mete::launch
