// SPDX-License-Identifier: Apache-2.0
// cuIpcGetMemHandle and its kin for blocks in chunks. The driver has no such handles for mapped
// memory, so they are ours: 64 bytes that name a socket of the process that has the memory, a
// secret, and the block (docs/formats/park.md). Who opens one asks there for a descriptor of the
// chunk and maps it; the connection stays as long as it is open, and while it does neither process
// can be parked.
#pragma once

#include <cstdint>

#include "abi/cuda_types.h"

namespace mete::meter {

// Memory of another process that is mapped here.
struct Opened {
  uint8_t secret[16];
  uint64_t id;  // of the chunk, at its owner
  CUdeviceptr base;
  uint64_t bytes;
  CUmemGenericAllocationHandle handle;
  int connection;
  uint32_t count;  // how often it was opened
};

// False: not a block in a chunk, the driver is to be asked.
bool export_block(CUipcMemHandle* handle, CUdeviceptr pointer, CUresult* result);
// False: a handle of the driver's.
bool open_block(CUdeviceptr* out, const CUipcMemHandle& handle, CUresult* result);
// False: not opened by the above.
bool close_block(CUdeviceptr pointer, CUresult* result);

}  // namespace mete::meter
