// SPDX-License-Identifier: Apache-2.0
// Pools between processes. A pool's descriptor only identifies the card; an exported pointer
// carries the server's token for the memory behind it. The importer holds that memory by a
// reference of its own, so it outlives the exporting process.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "abi/old_glibc.h"
#include "simgpu/client.h"
#include "simgpu/pool.h"

namespace simgpu {
namespace {

struct PoolTicket {  // the content of the descriptor
  char magic[8];
  int32_t card;
  int32_t reserved;
};
struct PointerTicket {  // the content of CUmemPoolPtrExportData
  char magic[8];
  uint64_t token[2];
  uint64_t offset;
  uint64_t bytes;
};
static_assert(sizeof(PointerTicket) <= sizeof(CUmemPoolPtrExportData));

// One imported pointer: addresses for the whole piece that it lies in.
struct Import {
  Range range = {};
  CUdeviceptr pointer = 0;
  size_t bytes = 0;
  Import* next = nullptr;
};
constinit Import* imports = nullptr;

bool find_import_block(Range* range, CUdeviceptr p, Block* out) {
  const Import* const import = static_cast<const Import*>(range->owner);
  *out = {import->pointer, import->bytes};
  return p >= import->pointer && p < import->pointer + import->bytes;
}

CUresult release_import(Range*, CUdeviceptr p) {
  return free_imported(p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

constexpr RangeOps kImportOps = {find_import_block, release_import};

}  // namespace

bool free_imported(CUdeviceptr address) {
  for (Import** link = &imports; *link != nullptr; link = &(*link)->next) {
    Import* const import = *link;
    if (import->pointer != address) continue;
    *link = import->next;
    range_remove(&import->range);
    va_give(import->range.base, import->range.bytes);
    phys_give(import->range.piece);
    destroy(import);
    return true;
  }
  return false;
}

}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuMemPoolExportToShareableHandle(void* out, CUmemoryPool handle,
                                          CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  SIM_ENTRY(cuMemPoolExportToShareableHandle);
  const Guard guard;
  const Pool* const pool = find_pool(handle);
  if (out == nullptr || flags != 0 || pool == nullptr || (pool->props.handleTypes & type) == 0 ||
      pool->imported)
    return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  PoolTicket ticket = {{'s', 'i', 'm', 'P', 'O', 'O', 'L'}, 0, 0};
  ticket.card = static_cast<int32_t>(driver.devices[pool->device].card);
  const int fd = mete::abi::memory_file("simgpu-pool");
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  if (write(fd, &ticket, sizeof ticket) != sizeof ticket) {
    close(fd);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  *static_cast<int*>(out) = fd;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* out, void* handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  SIM_ENTRY(cuMemPoolImportFromShareableHandle);
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  PoolTicket ticket = {};
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(handle));
  if (pread(fd, &ticket, sizeof ticket, 0) != sizeof ticket ||
      memcmp(ticket.magic, "simPOOL", 8) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  for (int device = 0; device < driver.device_count; device++) {
    if (driver.devices[device].card != static_cast<uint32_t>(ticket.card)) continue;
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    Pool* const pool = make_pool(props, PoolPlace::kCard, device);
    if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    pool->imported = true;
    *out = handle_of(pool);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;  // the card is not visible here
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr address) {
  SIM_ENTRY(cuMemPoolExportPointer);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const PoolBlock* const block = block_at(address);
  if (block == nullptr || block->pool->place != PoolPlace::kCard ||
      block->pool->props.handleTypes == CU_MEM_HANDLE_TYPE_NONE)
    return CUDA_ERROR_INVALID_VALUE;
  const Slab* const slab = static_cast<const Slab*>(range_find(address)->owner);
  Reply reply = {};
  const int status = call_server(Op::kIpcExport, slab->range.piece, 0, slab->bytes, &reply);
  if (status != 0) return static_cast<CUresult>(status);
  PointerTicket ticket = {{'s', 'i', 'm', 'P', 'T', 'R'}, {reply.v[0], reply.v[1]}, 0, 0};
  ticket.offset = block->address - slab->address;
  ticket.bytes = block->requested;
  *out = {};
  memcpy(out->reserved, &ticket, sizeof ticket);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool handle,
                                CUmemPoolPtrExportData* data) {
  SIM_ENTRY(cuMemPoolImportPointer);
  if (out == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  PointerTicket ticket = {};
  memcpy(&ticket, data->reserved, sizeof ticket);
  const Guard guard;
  Pool* const pool = find_pool(handle);
  if (pool == nullptr || !pool->imported || memcmp(ticket.magic, "simPTR", 7) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  Reply reply = {};
  const int status = call_server(Op::kIpcOpen, ticket.token[0], ticket.token[1], 0, &reply);
  if (status != 0) return static_cast<CUresult>(status);
  Import* const import = make<Import>();
  const size_t piece_bytes = round_granule(reply.v[3]);
  const CUdeviceptr base = import == nullptr ? 0 : va_take(piece_bytes, 0, 0);
  if (base == 0) {
    destroy(import);
    phys_give(reply.v[0]);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Range& range = import->range;
  range.base = base;
  range.bytes = piece_bytes;
  range.asked = piece_bytes;
  range.kind = RangeKind::kPool;
  range.device = pool->device;
  range.context = driver.devices[pool->device].primary;
  range.piece = reply.v[0];
  range.piece_offset = reply.v[2];
  range.readable = pool->readable;
  range.writable = pool->writable;
  range.pool = handle;
  range.ops = &kImportOps;
  range.owner = import;
  import->pointer = base + ticket.offset;
  import->bytes = ticket.bytes;
  import->next = imports;
  imports = import;
  range_add(&range);
  *out = import->pointer;
  return CUDA_SUCCESS;
}

}  // extern "C"
