// SPDX-License-Identifier: Apache-2.0
// See meter_look.h. The path of the grant file comes from METE_GRANT in the process's environment,
// or from its mappings. Each file is read once per look into a copy that is kept for the next look.
// The slot of the process is found by pid, start time, program and pid namespace; its charges, less
// what NVML does not count, plus what it has open of dead owners, are what the driver should
// report.
#include "node/meter_look.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/account.h"
#include "abi/process.h"
#include "base/fd.h"
#include "base/file.h"
#include "node/process_look.h"
#include "seam/driver.h"

namespace mete::node {

namespace {

constexpr std::size_t kMaxGrants = 1024;  // in one look
constexpr std::size_t kMaxMapped = 4096;
constexpr std::size_t kMaxMaps = 16 << 20;
constexpr unsigned kLooksBetween = 8;  // at the mappings of a process that has no grant there

// Opened with O_PATH first, which has no effect on any file: only then it is known to be a plain
// file.
Fd open_plain(const std::string& path) {
  const Fd handle(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!handle || fstat(handle.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size < static_cast<off_t>(sizeof(abi::Grant)))
    return Fd();
  return Fd(open(("/proc/self/fd/" + std::to_string(handle.get())).c_str(),
                 O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

// A copy, since truncating the file would kill a process that has it mapped.
bool read_grant(int fd, abi::Grant& grant) {
  void* const header = &grant.header;
  void* const accounts = grant.accounts;
  void* const exports = grant.exports;
  void* const slots = grant.slots;
  return base::read_at(fd, header, sizeof grant.header, 0) &&
         abi::check_grant(&grant, sizeof(abi::Grant)) == abi::GrantCheck::kOk &&
         base::read_at(fd, accounts, grant.header.part_count * sizeof grant.accounts[0],
                       offsetof(abi::Grant, accounts)) &&
         base::read_at(fd, exports, sizeof grant.exports, offsetof(abi::Grant, exports)) &&
         base::read_at(fd, slots, abi::slot_count(grant) * sizeof(abi::Slot),
                       offsetof(abi::Grant, slots));
}

// Memory of other processes that this one has open: counted for it once they are dead, while their
// slot is charged.
std::uint64_t opened_units(abi::Grant& grant, std::uint32_t slot, std::uint32_t card) {
  std::uint64_t units = 0;
  for (abi::Export& entry : grant.exports) {
    const abi::ExportWord state = abi::ExportWord::unpack(entry.state.load());
    if (state.kind != abi::ExportWord::kLive && state.kind != abi::ExportWord::kFreedByOwner)
      continue;
    if (state.card == card && state.slot != slot &&
        (entry.openers[slot / 64].load() >> slot % 64 & 1) != 0)
      units += state.units;
  }
  return units;
}

// Of all parts together. The job's own user can write the file: clamp its values.
Bytes peak_of(const abi::Grant& grant, std::uint32_t card) {
  std::uint64_t units = 0;
  for (std::uint32_t p = 0; p < grant.header.part_count; ++p)
    units += std::min(grant.accounts[p][card].peak_units.load(), abi::kMaxUnits);
  return Bytes::from_bytes(std::min(units, abi::kMaxUnits) * abi::kUnitBytes);
}

std::vector<MeterFacts::Charge> charges_of(abi::Grant& grant, std::uint32_t slot) {
  std::vector<MeterFacts::Charge> charges;
  for (std::uint32_t c = 0; c < grant.header.card_count; ++c) {
    const std::uint64_t charged = abi::charged_units(grant, slot, c);
    const std::uint64_t unseen = grant.slots[slot].cards[c].unseen_units.load();
    const std::uint64_t units =
        (charged > unseen ? charged - unseen : 0) + opened_units(grant, slot, c);
    seam::UuidBytes uuid{};
    std::copy(std::begin(grant.header.cards[c].uuid), std::end(grant.header.cards[c].uuid),
              uuid.begin());
    charges.push_back(
        {seam::to_string(uuid), Bytes::from_bytes(units * abi::kUnitBytes), peak_of(grant, c)});
  }
  return charges;
}

enum class Match { kNo, kYes, kPerhaps };

struct Inside {
  std::uint64_t name_space = 0;
  std::uint32_t pid = 0;  // as the process itself sees it
};

Match match(const abi::Grant& grant, std::uint64_t owner, const ProcessStat& process,
            const Inside& inside) {
  const abi::OwnerWord word = abi::OwnerWord::unpack(owner);
  if (owner == 0 || word.pid != inside.pid) return Match::kNo;
  if (word.name_space >= abi::kMaxNamespaces) return Match::kPerhaps;
  const std::uint32_t image = abi::image_of(process.start_stack);
  const bool same = grant.header.namespaces[word.name_space].load() == inside.name_space &&
                    word.start == (process.start_ticks & abi::OwnerWord::kStartMask) &&
                    (image == 0 || word.image == 0 || image == word.image);
  return same ? Match::kYes : Match::kNo;
}

}  // namespace

std::string grant_in_maps(std::string_view maps) {
  while (!maps.empty()) {
    const std::size_t end = std::min(maps.find('\n'), maps.size());
    const std::string_view line = maps.substr(0, end);
    maps.remove_prefix(std::min(end + 1, maps.size()));
    const std::size_t path = line.find('/');
    if (path != std::string_view::npos && line.find("/grants/", path) != std::string_view::npos)
      return std::string(line.substr(path));
  }
  return "";
}

void MeterLook::begin() {
  std::erase_if(books_, [this](const auto& each) { return each.second.look != look_; });
  ++look_;
}

std::string MeterLook::mapped_grant(const ProcessStat& process) {
  if (mapped_.size() > kMaxMapped) mapped_.clear();
  Mapped& known = mapped_[{process.pid, process.start_ticks}];
  if (!known.path.empty() || known.looks++ % kLooksBetween != 0) return known.path;
  if (const Result<std::string> maps =
          base::read_all("/proc/" + std::to_string(process.pid) + "/maps", kMaxMaps))
    known.path = grant_in_maps(*maps);
  return known.path;
}

abi::Grant* MeterLook::open_grant(pid_t pid, const std::string& path) {
  if (books_.size() >= kMaxGrants && !books_.contains(path)) return nullptr;
  Book& book = books_[path];
  if (book.look == look_) return book.valid ? book.grant.get() : nullptr;
  book.look = look_;
  book.valid = false;
  if (!book.grant) book.grant = std::make_unique<abi::Grant>();
  // In a container a path may name another file.
  for (const std::string& from : {std::string(), "/proc/" + std::to_string(pid) + "/root"}) {
    const Fd file = open_plain(from + path);
    book.valid = file && read_grant(file.get(), *book.grant);
    if (book.valid) break;
  }
  return book.valid ? book.grant.get() : nullptr;
}

MeterFacts MeterLook::take(const ProcessStat& process, const std::string& environment) {
  MeterFacts facts;
  std::string path = variable_in(environment, "METE_GRANT");
  if (path.empty()) path = mapped_grant(process);
  if (path.empty()) {
    facts.state = MeterFacts::State::kNone;
    return facts;
  }
  const Result<std::uint64_t> name_space = read_pid_namespace(process.pid);
  const Result<ProcessStatus> status = read_status(process.pid);
  abi::Grant* grant = open_grant(process.pid, path);
  if (grant == nullptr || !name_space || !status || status->namespace_pids.empty()) return facts;
  const Inside inside{*name_space, static_cast<std::uint32_t>(status->namespace_pids.back())};
  bool perhaps = false;
  for (std::uint32_t s = 0; s < abi::slot_count(*grant); ++s) {
    const Match matched = match(*grant, grant->slots[s].owner.load(), process, inside);
    perhaps = perhaps || matched == Match::kPerhaps;
    if (matched != Match::kYes) continue;
    facts.state = MeterFacts::State::kSlot;
    facts.charges = charges_of(*grant, s);
    return facts;
  }
  if (!perhaps) facts.state = MeterFacts::State::kNone;
  return facts;
}

}  // namespace mete::node
