// SPDX-License-Identifier: Apache-2.0
// Attaching to the grant: on the first CUDA call the file that METE_GRANT names is mapped and
// checked. The slot of the process is claimed on first use, and ordinals are mapped to the granted
// cards by UUID. What happens without a grant is docs/adr/0005-meter-without-a-daemon.md: CUDA is
// refused, with one line on stderr, and nothing else in the program changes.
#include "meter/state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/old_glibc.h"
#include "abi/process.h"
#include "meter/park.h"
#include "meter/real.h"

namespace mete::meter {

constinit Process process = {};

namespace {

// One line, once per process, without stdio.
void complain(const char* what, const char* path) {
  char line[600];
  size_t n = 0;
  for (const char* part : {"mete: CUDA is refused in this process: ", what,
                           path != nullptr ? " " : "", path != nullptr ? path : "", "\n"})
    for (; *part != 0 && n < sizeof(line); ++part) line[n++] = *part;
  syscall(SYS_write, 2, line, n);
}

const char* describe(abi::GrantCheck check) {
  switch (check) {
    case abi::GrantCheck::kOk:
      return "";
    case abi::GrantCheck::kNotAGrant:
      return "this is not a grant file:";
    case abi::GrantCheck::kNewerVersion:
      return "this grant file is of a newer version:";
    case abi::GrantCheck::kTruncated:
      return "this grant file is truncated:";
    case abi::GrantCheck::kCorrupt:
      return "this grant file is damaged:";
  }
  return "";
}

abi::Grant* map_grant(const char* path) {
  const int fd = abi::open_quietly(path, O_RDWR | O_NOFOLLOW);
  if (fd < 0) {
    complain("cannot open its grant file:", path);
    return nullptr;
  }
  struct statx info {};
  void* memory = MAP_FAILED;
  const bool regular = abi::look_at(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &info) == 0 &&
                       S_ISREG(info.stx_mode);
  if (regular && info.stx_size > 0)
    memory = mmap(nullptr, info.stx_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  abi::close_quietly(fd);
  if (memory == MAP_FAILED) {
    complain(regular && info.stx_size == 0 ? "this grant file is truncated:"
                                           : "cannot map its grant file:",
             path);
    return nullptr;
  }
  const abi::GrantCheck check = abi::check_grant(memory, info.stx_size);
  if (check != abi::GrantCheck::kOk) {
    munmap(memory, info.stx_size);
    complain(describe(check), path);
    return nullptr;
  }
  return static_cast<abi::Grant*>(memory);
}

// The part of a job with several parts (--procs): METE_PART, a small number; anything else means no
// part.
uint32_t part_from_environment(const abi::Grant& grant) {
  const char* text = getenv("METE_PART");
  uint32_t part = 0;
  for (; text != nullptr && *text >= '0' && *text <= '9' && part < abi::kMaxParts; ++text)
    part = part * 10 + static_cast<uint32_t>(*text - '0');
  return part < grant.header.part_count ? part : 0;
}

}  // namespace

void empty_in_children() {
  static constinit std::atomic<bool> done{false};
  if (done.load(std::memory_order_acquire)) return;
  const int saved = errno;
  // Pages larger than 4 KiB or a kernel before 4.14: glibc's own fork() then wipes the state, a
  // bare clone() does not.
  if (madvise(&process, sizeof(process), MADV_WIPEONFORK) != 0)
    (void)pthread_atfork(nullptr, nullptr,
                         [] { memset(static_cast<void*>(&process), 0, sizeof(process)); });
  done.store(true, std::memory_order_release);
  errno = saved;
}

bool attach() {
  const int seen = process.attached.load(std::memory_order_acquire);
  if (seen != 0) return seen == 1;
  const int saved = errno;
  empty_in_children();
  {
    Locked locked(process.attach_lock);
    if (process.attached.load() == 0) {
      const char* path = getenv("METE_GRANT");
      abi::Grant* grant = nullptr;
      if (path == nullptr || *path == 0)
        complain("the meter is loaded, but METE_GRANT is not set (start programs with mete)",
                 nullptr);
      else
        grant = map_grant(path);
      if (grant != nullptr) {
        process.grant = grant;
        strncpy(process.grant_path, path, sizeof(process.grant_path) - 1);
        process.part = part_from_environment(*grant);
        process.owner = abi::owner_of(*grant, abi::read_self());
      }
      process.attached.store(grant != nullptr ? 1 : 2, std::memory_order_release);
    }
  }
  errno = saved;
  return process.attached.load() == 1;
}

int card_of(CUdevice device) {
  if (process.mapped.load(std::memory_order_acquire) == 0) {
    int count = 0;
    if (real.cuDeviceGetCount == nullptr || real.cuDeviceGetCount(&count) != CUDA_SUCCESS)
      return kNoCard;
    if (count > kMaxDevices) count = kMaxDevices;
    int cards[kMaxDevices];
    CUdevice handles[abi::kMaxCards] = {};
    for (int i = 0; i < count; ++i) {
      cards[i] = kNoCard;
      CUdevice handle = 0;
      CUuuid uuid{};
      if (real.cuDeviceGet(&handle, i) != CUDA_SUCCESS) continue;
      const auto get =
          real.cuDeviceGetUuid_v2 != nullptr ? real.cuDeviceGetUuid_v2 : real.cuDeviceGetUuid;
      if (get == nullptr || get(&uuid, handle) != CUDA_SUCCESS) continue;
      for (uint32_t c = 0; c < process.grant->header.card_count; ++c) {
        if (memcmp(uuid.bytes, process.grant->header.cards[c].uuid, 16) != 0) continue;
        cards[i] = static_cast<int>(c);
        handles[c] = handle;
      }
    }
    Locked locked(process.lock);
    if (process.mapped.load() == 0) {
      for (int i = 0; i < count; ++i) process.card_of_device[i] = cards[i];
      for (uint32_t c = 0; c < abi::kMaxCards; ++c) process.device_of_card[c] = handles[c];
      process.device_count = count;
      process.mapped.store(1, std::memory_order_release);
    }
  }
  if (device < 0 || device >= process.device_count) return kNoCard;
  return process.card_of_device[device];
}

int my_slot() {
  const int seen = process.slot.load(std::memory_order_acquire);
  if (seen != 0) return seen - 1;
  const int saved = errno;
  bool claimed = false;
  {
    Locked locked(process.attach_lock);
    if (process.slot.load() == 0) {
      const int slot =
          abi::claim_slot(*process.grant, abi::read_self(), process.part, process.grant_path);
      if (slot >= 0) {
        // The charges of dead processes are given back here, so that this process sees the card as
        // it is.
        abi::reap_all({*process.grant, static_cast<uint32_t>(slot)}, viewer());
        process.slot.store(slot + 1, std::memory_order_release);
        claimed = true;
      }
    }
  }
  if (claimed) listen_for_orders();
  errno = saved;
  return process.slot.load() - 1;
}

}  // namespace mete::meter
