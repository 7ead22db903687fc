// SPDX-License-Identifier: Apache-2.0
// The protocol between the simulated drivers and their server on the Unix socket: one Request (and
// its payload), one Reply (and its payload), strictly in turn, one connection per process and
// library. Both ends are always of one build: the version is checked, never translated. A
// descriptor travels beside kFdExport's reply and kFdImport's request (SCM_RIGHTS). Described in
// docs/formats/simgpu.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

inline constexpr uint32_t kProtocolMagic = 0x4d495347;  // "GSIM"
inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr uint32_t kMaxPayload = 1u << 20;
inline constexpr int kMaxCards = 32;
inline constexpr uint64_t kGranule = 2ull << 20;  // physical memory comes in these

enum class Op : uint32_t {
  kHello = 1,       // a0 magic<<32|version, a1 ClientKind; payload: METE_SIM as text ("" = any).
                    // Reply: v0 number of cards; status 100 and a text in the payload when refused.
  kSnapshot = 2,    // Reply payload: SnapshotHeader, CardInfo[cards], ProcessInfo[processes].
  kTake = 3,        // a0 card, a1 bytes (rounded up to the granule), a2 MemoryClass. Reply: v0 id.
  kGive = 4,        // a0 id: one reference of this client less.
  kUsage = 5,       // a0 card. Reply: v0 used, v1 capacity (total less reserved).
  kWrite = 6,       // a0 id, a1 offset; payload: the bytes.
  kRead = 7,        // a0 id, a1 offset, a2 bytes (at most kMaxPayload). Reply payload: the bytes.
  kFill = 8,        // a0 id, a1 offset, a2 pitch, a3 width in bytes, a4 rows, a5 element<<32|value.
  kCopy = 9,        // a0 to id, a1 to offset, a2 from id, a3 from offset, a4 bytes.
  kIpcExport = 10,  // a0 id, a1 offset of the block, a2 its bytes. Reply: v0, v1 the token.
  kIpcOpen = 11,    // a0, a1 the token. Reply: v0 id, v1 card, v2 offset, v3 bytes of the block.
  kFdExport = 12,   // a0 id. Reply: a descriptor; memory lives as long as a copy of it is open.
  kFdImport = 13,   // a descriptor beside it. Reply: v0 id, v1 card, v2 bytes, v3 MemoryClass.
  kControl = 14,    // payload: a command line as `mete-simgpu --ctl` takes. Reply payload: text.
  kBusy = 16,       // a0 card, a1 microseconds: the card works that long from now on (utilisation).
  kResize = 17,     // a0 id, a1 bytes: the piece becomes that large, or nothing happens.
  kPause = 18,      // Reply: a descriptor of this process's PausePage.
  kCheckpoint = 19,  // a0 pid, a1 CheckpointStep. Reply: v0 CUprocessState.
};

// Requests about another process. kLock returns 600 while it is not at rest: retry, or kCancel. A
// requester that ends in between has cancelled.
enum class CheckpointStep : uint64_t { kState, kLock, kCancel, kCheckpoint, kRestore, kUnlock };

// Shared between a process and the server: while `locked`, calls wait before they enter.
struct PausePage {
  uint32_t locked;   // a futex
  uint32_t inside;   // calls that are in the driver
  uint32_t pending;  // work that is queued in streams
  uint32_t unused;
  int64_t busy_until_ns;  // CLOCK_MONOTONIC: until when kernels run
};
inline constexpr uint64_t kCheckpointedBytes = 4ull << 20;  // stays on a card with contexts

enum class ClientKind : uint32_t { kCuda = 1, kNvml = 2, kControl = 3 };

// The purpose of a piece of physical memory. kManaged is left out of NVML's per-process figure.
enum class MemoryClass : uint32_t {
  kPlain = 0,
  kContext = 1,
  kManaged = 2,
  kVmm = 3,
  kPool = 4,
  kGraph = 5,
  kModule = 6,
  kArray = 7,
};

struct Request {
  uint32_t op;
  uint32_t payload;
  uint64_t a[6];
};
static_assert(sizeof(Request) == 56);

struct Reply {
  int32_t status;  // a CUresult
  uint32_t payload;
  uint64_t v[4];
};
static_assert(sizeof(Reply) == 40);

struct SnapshotHeader {
  uint32_t cards;
  uint32_t processes;
  uint32_t card_size;  // sizeof(CardInfo) and sizeof(ProcessInfo) of the server
  uint32_t process_size;
};

enum class CardState : uint32_t { kOk = 0, kLost = 1 };

struct CardInfo {
  char uuid[48];  // "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
  char name[64];  // "NVIDIA H200"
  char pci[32];   // "00000000:18:00.0"
  uint8_t uuid_bytes[16];
  uint64_t total;     // as NVML reports it
  uint64_t reserved;  // kept by the driver; CUDA's total is total - reserved
  uint64_t used;      // by processes, `reserved` not included
  uint32_t state;     // CardState
  uint32_t sms;
  uint32_t cc_major;
  uint32_t cc_minor;
  int32_t numa;
  uint32_t temperature_c;
  uint32_t power_mw;
  uint32_t power_limit_mw;
  uint32_t utilisation_pct;
  uint32_t memory_utilisation_pct;
  uint32_t sm_clock_mhz;
  uint32_t memory_clock_mhz;
  uint32_t memory_bus_bits;
  uint32_t l2_bytes;
  uint32_t pci_domain;
  uint32_t pci_bus;
  uint32_t pci_device;
  uint32_t pci_device_id;      // device<<16|vendor, as NVML's pciDeviceId
  uint8_t nvlinks[kMaxCards];  // number of NVLinks to card i; 0 = none
};

struct ProcessInfo {
  int32_t pid;  // as the server sees it
  uint32_t flags;
  uint64_t bytes[kMaxCards];    // on each card, managed memory not included
  uint64_t managed[kMaxCards];  // managed memory resident on each card
  uint8_t contexts[kMaxCards];  // contexts on each card
  uint8_t compute[kMaxCards];   // percent of the last second: kernels
  uint8_t memory[kMaxCards];    // percent of the last second: copies and fills
};

}  // namespace simgpu
