// SPDX-License-Identifier: Apache-2.0
// The processes in a grant file: this process, whether another one still lives, claiming a slot,
// and giving back what the dead held. Plain system calls only; keeps errno; never blocks.
//
// A process is identified by pid, start time and pid namespace. The pids of another namespace mean
// nothing here: its processes count as alive until their lease is free.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/account.h"
#include "abi/grant.h"
#include "abi/old_glibc.h"

namespace mete::abi {

inline uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000ull + static_cast<uint64_t>(now.tv_nsec);
}

// The bare system calls. Unlike their wrappers they are not cancellation points, at which a thread
// could end and leave the caller's lock behind, and no other preload sees them.
inline int open_quietly(const char* path, int flags) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0));
}
inline ssize_t read_quietly(int fd, void* to, size_t bytes) {
  return syscall(SYS_read, fd, to, bytes);
}
inline void close_quietly(int fd) { syscall(SYS_close, fd); }
inline void sleep_quietly(long ns) {
  const timespec time{0, ns};
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
}

// The fields of /proc/PID/stat that distinguish one life of a pid from another.
struct ProcessStat {
  uint64_t pid = 0;
  char state = 0;
  uint64_t threads = 0;
  uint64_t start = 0;  // clock ticks since boot
  uint64_t stack = 0;  // start of the stack: random, new at each exec; 0 when we may not read it
};

// Parses the text of /proc/PID/stat. The second field, the name, may contain spaces and
// parentheses: parsing begins behind the last ')'.
inline bool parse_stat(const char* text, size_t bytes, ProcessStat* out) {
  size_t at = bytes;
  while (at > 0 && text[at - 1] != ')') --at;
  if (at == 0) return false;
  for (size_t i = 0; i < bytes && text[i] >= '0' && text[i] <= '9'; ++i)
    out->pid = out->pid * 10 + static_cast<uint64_t>(text[i] - '0');
  int field = 2;
  uint64_t value = 0;
  bool digits = false;
  for (; at <= bytes; ++at) {
    const char c = at < bytes ? text[at] : ' ';
    if (c >= '0' && c <= '9') {
      value = value * 10 + static_cast<uint64_t>(c - '0');
      digits = true;
    } else if (c == ' ' || c == '\n') {
      if (digits && field == 20) out->threads = value;
      if (digits && field == 22) out->start = value;
      if (digits && field == 28) out->stack = value;
      if (c == ' ') ++field;
      value = 0;
      digits = false;
      if (field > 28) break;
    } else if (field == 3 && out->state == 0) {
      out->state = c;
    }
  }
  return out->state != 0 && field >= 22;
}

enum class StatResult { kRead, kNoSuchProcess, kUnknown };

inline StatResult read_stat_file(const char* path, ProcessStat* out) {
  const int fd = open_quietly(path, O_RDONLY);
  if (fd < 0)
    return errno == ENOENT || errno == ESRCH ? StatResult::kNoSuchProcess : StatResult::kUnknown;
  char text[1024];
  const ssize_t got = read_quietly(fd, text, sizeof(text));
  const int why = errno;
  close_quietly(fd);
  if (got < 0) return why == ESRCH ? StatResult::kNoSuchProcess : StatResult::kUnknown;
  return parse_stat(text, static_cast<size_t>(got), out) ? StatResult::kRead : StatResult::kUnknown;
}

inline StatResult read_stat(uint32_t pid, ProcessStat* out) {
  char path[32] = "/proc/";
  size_t n = 6;
  char digits[12];
  size_t count = 0;
  for (uint32_t rest = pid; rest != 0 || count == 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  while (count > 0) path[n++] = digits[--count];
  for (const char* tail = "/stat"; *tail != 0; ++tail) path[n++] = *tail;
  path[n] = 0;
  return read_stat_file(path, out);
}

// The program that a process runs, in 12 bits: its stack starts elsewhere after each exec. 0 =
// unknown.
inline uint32_t image_of(uint64_t stack) {
  if (stack == 0) return 0;
  const uint32_t hash = static_cast<uint32_t>(fnv1a(&stack, sizeof(stack)) >> 40) & 0xfff;
  return hash == 0 ? 1 : hash;
}

// This process, as other processes see it.
struct Self {
  uint32_t pid = 0;
  uint64_t start = 0;
  uint64_t stack = 0;
  uint64_t name_space = 0;  // inode of /proc/self/ns/pid; 0 = unknown
};

inline Self read_self() {
  Self self;
  self.pid = static_cast<uint32_t>(getpid());
  ProcessStat stat;
  // A /proc of another pid namespace shows this process under another number: then it says nothing
  // about other processes either, and the namespace stays unknown.
  if (read_stat_file("/proc/self/stat", &stat) != StatResult::kRead || stat.pid != self.pid)
    return self;
  self.start = stat.start;
  self.stack = stat.stack;
  struct statx info {};
  if (look_at(AT_FDCWD, "/proc/self/ns/pid", 0, STATX_INO, &info) == 0)
    self.name_space = info.stx_ino;
  return self;
}

// The index of a pid namespace in the grant's table, adding it when new; 15 when it is unknown or
// the table full.
inline uint32_t namespace_index(Grant& grant, uint64_t inode) {
  if (inode == 0) return kMaxNamespaces;
  for (uint32_t i = 0; i < kMaxNamespaces; ++i) {
    uint64_t seen = grant.header.namespaces[i].load();
    if (seen == 0 && grant.header.namespaces[i].compare_exchange_strong(seen, inode)) return i;
    if (seen == inode) return i;
  }
  return kMaxNamespaces;
}

inline uint64_t owner_of(Grant& grant, const Self& self) {
  return OwnerWord{self.pid, namespace_index(grant, self.name_space), self.start,
                   image_of(self.stack)}
      .pack();
}

// ---- leases -------------------------------------------------------------------------------------
//
// GPU memory outlives its process while a child that was forked without exec still has the driver's
// descriptors open. So a slot has a lease: a lock on one byte behind the end of the grant file,
// taken through an open file that only one mapped page keeps open. The kernel copies that page at
// fork and drops it at exec and at the end, as it does with the driver's descriptors, and the
// program sees no descriptor of ours.

struct OpenLease {
  int fd = -1;
  void* page = nullptr;
};

constexpr size_t kLeasePage = 4096;

// Opens the grant file once more, for one lease. Without a path, or if it cannot be opened: none.
inline OpenLease open_lease(const char* path) {
  OpenLease lease;
  if (path == nullptr || *path == 0) return lease;
  lease.fd = open_quietly(path, O_RDWR | O_NOFOLLOW);
  if (lease.fd < 0) return lease;
  lease.page = mmap(nullptr, kLeasePage, PROT_NONE, MAP_SHARED, lease.fd, 0);
  if (lease.page != MAP_FAILED) return lease;
  close_quietly(lease.fd);
  return {};
}

// One byte per slot, behind the data: it is only used for locks.
inline struct flock lease_lock(uint32_t slot) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(sizeof(Grant) + slot);
  lock.l_len = 1;
  return lock;
}

// Takes the lease of a slot that `owner` has claimed; from here on only the page holds it.
inline void take_lease(Grant& grant, uint32_t slot, uint64_t owner, OpenLease lease) {
  if (lease.fd < 0) return;
  struct flock lock = lease_lock(slot);
  if (syscall(SYS_fcntl, lease.fd, F_OFD_SETLK, &lock) == 0) grant.slots[slot].lease.store(owner);
  close_quietly(lease.fd);
}

enum class Lease { kNone, kFree, kHeld };

// kNone: this owner never had one (a file system without such locks, or it is just claiming).
inline Lease ask_lease(Grant& grant, uint32_t slot, uint64_t owner, const char* path) {
  if (path == nullptr || *path == 0 || grant.slots[slot].lease.load() != owner) return Lease::kNone;
  const int saved = errno;
  // A process that cannot look must not give memory back: another process can.
  Lease answer = Lease::kHeld;
  const int fd = open_quietly(path, O_RDONLY | O_NOFOLLOW);
  if (fd >= 0) {
    struct flock lock = lease_lock(slot);
    if (syscall(SYS_fcntl, fd, F_OFD_GETLK, &lock) != 0)
      answer = Lease::kNone;
    else if (lock.l_type == F_UNLCK)
      answer = Lease::kFree;
    close_quietly(fd);
  }
  errno = saved;
  return answer;
}

// The process that looks: its owner word, and the path of the grant file, on which leases are
// tested (nullptr: not at all).
struct Viewer {
  uint64_t owner = 0;
  const char* path = nullptr;
};

// True only if the process that claimed a slot is certainly gone: no such pid, another start time,
// a zombie without threads, or a process that has run exec since (which released its GPU memory).
inline bool process_is_gone(uint64_t owner, uint64_t viewer) {
  if (owner == 0 || owner == viewer) return false;
  const OwnerWord word = OwnerWord::unpack(owner);
  if (word.name_space != OwnerWord::unpack(viewer).name_space || word.name_space == kMaxNamespaces)
    return false;
  const int saved = errno;
  bool gone = false;
  if (kill(static_cast<pid_t>(word.pid), 0) != 0 && errno == ESRCH) {
    gone = true;
  } else {
    ProcessStat stat;
    switch (read_stat(word.pid, &stat)) {
      case StatResult::kNoSuchProcess:
        // A /proc that hides the processes of other users looks alike; ask the kernel again to be
        // sure.
        gone = kill(static_cast<pid_t>(word.pid), 0) != 0 && errno == ESRCH;
        break;
      case StatResult::kRead: {
        const uint32_t image = image_of(stat.stack);
        gone = (stat.start & OwnerWord::kStartMask) != word.start || stat.state == 'X' ||
               (stat.state == 'Z' && stat.threads <= 1) ||
               (image != 0 && word.image != 0 && image != word.image);
        break;
      }
      case StatResult::kUnknown:
        break;
    }
  }
  errno = saved;
  return gone;
}

// True only if everything that this owner of a slot held on the cards is certainly free: the owner
// is gone, and so is every child that it forked.
inline bool is_gone(Grant& grant, uint32_t slot, uint64_t owner, Viewer viewer) {
  return process_is_gone(owner, viewer.owner) &&
         ask_lease(grant, slot, owner, viewer.path) != Lease::kHeld;
}

// ---- exports: memory that others may hold open --------------------------------------------------

inline bool opened_by_living(Grant& grant, Export& entry, Viewer viewer) {
  for (uint32_t w = 0; w < kSlots / 64; ++w) {
    for (uint64_t bits = entry.openers[w].load(); bits != 0; bits &= bits - 1) {
      const uint32_t slot = w * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
      const uint64_t owner = grant.slots[slot].owner.load();
      if (owner != 0 && !is_gone(grant, slot, owner, viewer)) return true;
    }
  }
  return false;
}

// Units of `owner`'s exports on a card that a living process still has open.
inline uint64_t held_units(Grant& grant, uint32_t slot, uint64_t owner, uint32_t card,
                           Viewer viewer) {
  uint64_t held = 0;
  for (Export& entry : grant.exports) {
    const ExportWord state = ExportWord::unpack(entry.state.load());
    if (state.kind != ExportWord::kLive && state.kind != ExportWord::kFreedByOwner) continue;
    if (state.slot != slot || state.card != card || entry.owner.load() != owner) continue;
    if (opened_by_living(grant, entry, viewer)) held += state.units;
  }
  return held;
}

// Units that `slot` has open of exports whose owner is gone. NVML counts such memory for the opener
// once the owner is dead (measured for legacy IPC), while it stays charged to the dead owner's
// slot.
inline uint64_t inherited_units(Grant& grant, uint32_t slot, uint32_t card, Viewer viewer) {
  uint64_t units = 0;
  for (Export& entry : grant.exports) {
    const ExportWord state = ExportWord::unpack(entry.state.load());
    if (state.kind != ExportWord::kLive && state.kind != ExportWord::kFreedByOwner) continue;
    if (state.card != card || state.slot == slot) continue;
    if ((entry.openers[slot / 64].load() >> slot % 64 & 1) == 0) continue;
    if (is_gone(grant, state.slot, entry.owner.load(), viewer)) units += state.units;
  }
  return units;
}

// Registers memory as exported. Returns the index, or -1 when the table is full (the export is then
// unknown to importers, which are charged for it in full: never under-counted).
inline int add_export(Grant& grant, uint32_t slot, uint64_t owner, uint32_t card, uint64_t units,
                      uint64_t key) {
  for (uint32_t i = 0; i < kMaxExports; ++i) {
    Export& entry = grant.exports[i];
    uint64_t raw = entry.state.load();
    const ExportWord old = ExportWord::unpack(raw);
    if (old.kind != ExportWord::kFree) continue;
    ExportWord now{units, slot, card, ExportWord::kFilling, old.generation + 1};
    if (!entry.state.compare_exchange_strong(raw, now.pack())) continue;
    entry.key.store(key);
    entry.owner.store(owner);
    for (Word& word : entry.openers) word.store(0);
    now.kind = ExportWord::kLive;
    entry.state.store(now.pack());
    return static_cast<int>(i);
  }
  return -1;
}

// One step of an export's end. True for exactly one caller.
inline bool move_export(Export& entry, uint64_t raw, ExportWord::Kind to) {
  ExportWord state = ExportWord::unpack(raw);
  state.kind = to;
  return entry.state.compare_exchange_strong(raw, state.pack());
}

// The owner ends an export. First it becomes impossible to open it, then this checks whether it is
// open: an opener that came before sees the change and withdraws, or is seen. True if it is free
// now; false while a living process has it open (it then stays, freed by its owner).
inline bool end_export(Grant& grant, Export& entry, Viewer viewer) {
  uint64_t raw = entry.state.load();
  if (ExportWord::unpack(raw).kind == ExportWord::kLive) {
    if (!move_export(entry, raw, ExportWord::kFreedByOwner)) return false;
    raw = entry.state.load();
  }
  if (opened_by_living(grant, entry, viewer)) return false;
  return move_export(entry, raw, ExportWord::kFree);
}

// Marks an export as opened by `slot`. Returns its index, or -1 when no such export is live in this
// job. Several exports may have one key (a descriptor has no name but its size). So that each
// import stands for different memory, exports of other slots that this slot has not opened yet come
// first, then its own, then exports that it has opened already.
inline int open_export(Grant& grant, uint32_t slot, uint64_t key) {
  const uint64_t bit = 1ull << slot % 64;
  enum { kOthers, kOwn, kOpened };
  for (const int rank : {kOthers, kOwn, kOpened}) {
    for (uint32_t i = 0; i < kMaxExports; ++i) {
      Export& entry = grant.exports[i];
      const uint64_t raw = entry.state.load();
      const ExportWord state = ExportWord::unpack(raw);
      if (state.kind != ExportWord::kLive || entry.key.load() != key) continue;
      const bool opened = (entry.openers[slot / 64].load() & bit) != 0;
      if (rank != (opened ? kOpened : state.slot == slot ? kOwn : kOthers)) continue;
      entry.openers[slot / 64].fetch_or(bit);
      if (entry.state.load() == raw) return static_cast<int>(i);
      entry.openers[slot / 64].fetch_and(~bit);
    }
  }
  return -1;
}

inline void close_export(Grant& grant, uint32_t slot, uint32_t index) {
  grant.exports[index].openers[slot / 64].fetch_and(~(1ull << slot % 64));
}

// ---- slots --------------------------------------------------------------------------------------

inline uint32_t slot_count(Grant& grant) {
  const uint64_t high = grant.header.slot_high.load();
  return high < kSlots ? static_cast<uint32_t>(high) : kSlots;
}

// Adds up what NVML sees beyond the charges, over the living processes. Every process may do this;
// the result is as good as the sampler's readings.
inline void recompute_excess(Grant& grant, AccountId id) {
  uint64_t excess = account(grant, id).escaped_units.load();
  for (uint32_t s = 0; s < slot_count(grant); ++s) {
    Slot& slot = grant.slots[s];
    if (slot.owner.load() != 0 && slot.part.load() == id.part)
      excess += slot.cards[id.card].excess_units.load();
  }
  account(grant, id).excess_units.store(excess);
}

// Gives back what the dead owner of a slot held, except what living processes still have open, and
// frees the slot when nothing is left. Returns the units given back.
inline uint64_t reap_slot(Actor by, uint32_t slot_index, uint64_t dead, Viewer viewer) {
  Grant& grant = by.grant;
  Slot& slot = grant.slots[slot_index];
  const uint32_t part = static_cast<uint32_t>(slot.part.load());
  if (part >= kMaxParts) return 0;
  uint64_t given = 0;
  uint64_t kept = 0;
  for (Export& entry : grant.exports) {
    const uint64_t raw = entry.state.load();
    const ExportWord state = ExportWord::unpack(raw);
    if (state.slot == slot_index && state.kind == ExportWord::kLive && entry.owner.load() == dead)
      (void)move_export(entry, raw, ExportWord::kFreedByOwner);
  }
  for (uint32_t c = 0; c < grant.header.card_count && c < kMaxCards; ++c) {
    slot.cards[c].pending.store(0);
    const uint64_t before = charged_units(grant, slot_index, c);
    const uint64_t held = held_units(grant, slot_index, dead, c, viewer);
    lower_for_dead(by, slot_index, dead, {part, c}, held);
    kept += held;
    if (before > held) given += before - held;
  }
  if (given > 0) grant.header.last_reap_ns.store(monotonic_ns());
  if (kept > 0) return given;
  for (Export& entry : grant.exports) {
    uint64_t raw = entry.state.load();
    ExportWord state = ExportWord::unpack(raw);
    if (state.kind == ExportWord::kFree || state.slot != slot_index || entry.owner.load() != dead)
      continue;
    state.kind = ExportWord::kFree;
    entry.state.compare_exchange_strong(raw, state.pack());
  }
  slot.owner.compare_exchange_strong(dead, 0);
  return given;
}

// Gives back what every dead process of the job held. Returns the units given back.
inline uint64_t reap_all(Actor by, Viewer viewer) {
  uint64_t given = 0;
  for (uint32_t s = 0; s < slot_count(by.grant); ++s) {
    const uint64_t owner = by.grant.slots[s].owner.load();
    if (s != by.slot && is_gone(by.grant, s, owner, viewer))
      given += reap_slot(by, s, owner, viewer);
  }
  return given;
}

inline bool has_exports(Grant& grant, uint32_t slot, uint64_t owner) {
  for (Export& entry : grant.exports)
    if (ExportWord::unpack(entry.state.load()).kind != ExportWord::kFree &&
        ExportWord::unpack(entry.state.load()).slot == slot && entry.owner.load() == owner)
      return true;
  return false;
}

// Makes a claimed slot this process's own: completes what its last owner left half done in every
// account, before that owner's intent words may be overwritten, and gives back what was charged
// there.
inline void prepare_slot(Grant& grant, uint32_t slot_index, uint32_t part) {
  Slot& slot = grant.slots[slot_index];
  const Actor by{grant, slot_index};
  for (uint32_t p = 0; p < grant.header.part_count && p < kMaxParts; ++p)
    for (uint32_t c = 0; c < grant.header.card_count && c < kMaxCards; ++c)
      settled_total(grant, {p, c});
  const uint32_t old_part = static_cast<uint32_t>(slot.part.load());
  for (uint32_t c = 0; c < grant.header.card_count && c < kMaxCards; ++c) {
    SlotCard& card = slot.cards[c];
    if (old_part < kMaxParts && charged_units(grant, slot_index, c) > 0)
      give_back(by, {old_part, c}, charged_units(grant, slot_index, c));
    card.pending.store(0);
    card.nvml_bytes.store(0);
    card.excess_units.store(0);
    card.unseen_units.store(0);
  }
  for (Export& entry : grant.exports) {
    entry.openers[slot_index / 64].fetch_and(~(1ull << slot_index % 64));
    uint64_t raw = entry.state.load();
    ExportWord state = ExportWord::unpack(raw);
    if (state.kind == ExportWord::kFree || state.slot != slot_index) continue;
    state.kind = ExportWord::kFree;
    entry.state.compare_exchange_strong(raw, state.pack());
  }
  slot.part.store(part);
  slot.park.store(0);
}

// Claims a slot for this process. Returns its index, or -1 when 1,024 living processes have one.
inline int claim_slot(Grant& grant, const Self& self, uint32_t part, const char* path = nullptr,
                      SlotRole role = SlotRole::kProcess) {
  const uint64_t me = owner_of(grant, self);
  const OpenLease lease = open_lease(path);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t s = 0; s < kSlots; ++s) {
      uint64_t owner = grant.slots[s].owner.load();
      if (round == 0 && owner != 0) continue;
      // Second round, no slot is free: take over the slot of a dead process, unless its memory is
      // open elsewhere.
      if (owner != 0 && (!is_gone(grant, s, owner, {me, path}) || has_exports(grant, s, owner)))
        continue;
      raise_to(grant.header.slot_high, s + 1);
      if (!grant.slots[s].owner.compare_exchange_strong(owner, me)) continue;
      take_lease(grant, s, me, lease);
      prepare_slot(grant, s, part);
      grant.slots[s].role.store(static_cast<uint64_t>(role));
      return static_cast<int>(s);
    }
  }
  if (lease.fd >= 0) {
    munmap(lease.page, kLeasePage);
    close_quietly(lease.fd);
  }
  return -1;
}

}  // namespace mete::abi
