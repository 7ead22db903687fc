// SPDX-License-Identifier: Apache-2.0
// cuIpcGetMemHandle and its relatives for blocks in chunks. The driver has no such handles for
// mapped memory, so the meter makes its own: 64 bytes that name a socket of the owning process, a
// secret, and the block (docs/formats/park.md). A process that opens one asks there for a
// descriptor of the chunk and maps it. The connection stays as long as the memory is open, and
// neither process can be parked meanwhile.
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

// False: not a block in a chunk; call the driver.
bool export_block(CUipcMemHandle* handle, CUdeviceptr pointer, CUresult* result);
// False: a handle of the driver.
bool open_block(CUdeviceptr* out, const CUipcMemHandle& handle, CUresult* result);
// False: not opened by open_block().
bool close_block(CUdeviceptr pointer, CUresult* result);

}  // namespace mete::meter
