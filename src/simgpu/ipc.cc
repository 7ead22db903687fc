// SPDX-License-Identifier: Apache-2.0
// Legacy IPC: a token that the server knows leads to a block of another process. Only cuMemAlloc's
// memory can be exported; the importer's reference keeps it alive after the owner's death; opening
// in the exporting process fails, as with the real driver (201).
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simgpu/client.h"
#include "simgpu/state.h"

namespace simgpu {
namespace {

constexpr uint64_t kIpcMagic = 0x3143504954454d00ull;

struct IpcName {
  uint64_t magic;
  uint64_t token[2];
  int64_t pid;
};
static_assert(sizeof(IpcName) <= sizeof(CUipcMemHandle));

struct Imported {
  Range range;  // must be first: a Range* of kind kIpc is an Imported*
  Block block;
  uint64_t token[2];
  unsigned opened;
  Imported* next;
};
Imported* all_imported = nullptr;

bool find_block(Range* range, CUdeviceptr p, Block* block) {
  *block = reinterpret_cast<Imported*>(range)->block;
  return p - block->base < block->bytes;
}

// Called when the last open is closed, and when the context ends.
CUresult release(Range* range, CUdeviceptr) {
  Imported* imported = reinterpret_cast<Imported*>(range);
  for (Imported** link = &all_imported; *link != nullptr; link = &(*link)->next) {
    if (*link != imported) continue;
    *link = imported->next;
    break;
  }
  range_unlink(range);
  range_remove(range);
  va_give(range->base, range->bytes);
  phys_give(range->piece);
  free(imported);
  return CUDA_SUCCESS;
}

constexpr RangeOps kIpcOps = {find_block, release};

Imported* find_imported(const IpcName& name) {
  for (Imported* i = all_imported; i != nullptr; i = i->next) {
    if (i->token[0] == name.token[0] && i->token[1] == name.token[1]) return i;
  }
  return nullptr;
}

// The card that the memory lies on; that of the context if this process does not see it.
int device_behind(const Context* context, uint64_t card) {
  for (int i = 0; i < driver.device_count; ++i)
    if (driver.devices[i].card == card) return i;
  return context->device;
}

CUresult map_import(const IpcName& name, const Reply& reply, Imported** made) {
  const uint64_t offset = reply.v[2];
  const uint64_t first = offset & ~(kGranule - 1);
  const size_t span = round_granule(offset + reply.v[3] - first);
  Imported* imported = static_cast<Imported*>(calloc(1, sizeof(Imported)));
  const CUdeviceptr base = imported == nullptr ? 0 : va_take(span, 0, 0);
  if (base == 0) {
    free(imported);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Range* range = &imported->range;
  range->base = base;
  range->bytes = range->asked = span;
  range->kind = RangeKind::kIpc;
  range->context = current_context();
  range->device = device_behind(range->context, reply.v[1]);
  range->piece = reply.v[0];
  range->piece_offset = first;
  range->readable = range->writable = ~0u;
  range->ops = &kIpcOps;
  imported->block = {base + (offset - first), reply.v[3]};
  imported->token[0] = name.token[0];
  imported->token[1] = name.token[1];
  imported->next = all_imported;
  all_imported = imported;
  range_add(range);
  range_link(range);
  *made = imported;
  return CUDA_SUCCESS;
}

CUresult open(CUdeviceptr* p, const CUipcMemHandle& handle, unsigned flags) {
  if (p == nullptr || (flags & ~static_cast<unsigned>(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  IpcName name;
  memcpy(&name, &handle, sizeof name);
  if (name.magic != kIpcMagic) return CUDA_ERROR_INVALID_VALUE;
  if (name.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  const Guard guard;
  Imported* imported = find_imported(name);
  if (imported == nullptr) {
    Reply reply{};
    const CUresult result =
        from_server(call_server(Op::kIpcOpen, name.token[0], name.token[1], 0, &reply));
    if (result != CUDA_SUCCESS) return result;
    if (device_of(current_context())->card != reply.v[1] && flags == 0) {
      phys_give(reply.v[0]);
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    const CUresult mapped = map_import(name, reply, &imported);
    if (mapped != CUDA_SUCCESS) {
      phys_give(reply.v[0]);
      return mapped;
    }
  }
  ++imported->opened;
  *p = imported->block.base;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr p) {
  SIM_ENTRY_CONTEXT(cuIpcGetMemHandle);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Range* range = nullptr;
  Block block{};
  if (!block_find(p, &range, &block) || !range->legacy_ipc) return CUDA_ERROR_INVALID_VALUE;
  Reply reply{};
  const uint64_t offset = range->piece_offset + (block.base - range->base);
  const CUresult result =
      from_server(call_server(Op::kIpcExport, range->piece, offset, block.bytes, &reply));
  if (result != CUDA_SUCCESS) return result;
  const IpcName name{kIpcMagic, {reply.v[0], reply.v[1]}, getpid()};
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &name, sizeof name);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* p, CUipcMemHandle handle,
                                          unsigned int flags) {
  SIM_ENTRY_CONTEXT(cuIpcOpenMemHandle_v2);
  return open(p, handle, flags);
}

extern "C" CUresult cuIpcOpenMemHandle(CUdeviceptr* p, CUipcMemHandle handle, unsigned int flags) {
  SIM_ENTRY_CONTEXT(cuIpcOpenMemHandle);
  return open(p, handle, flags);
}

extern "C" CUresult cuIpcCloseMemHandle(CUdeviceptr p) {
  SIM_ENTRY_CONTEXT(cuIpcCloseMemHandle);
  const CUresult waited = context_synchronize(current_context());
  if (waited != CUDA_SUCCESS) return waited;
  const Guard guard;
  Range* range = range_find(p);
  if (range == nullptr || range->kind != RangeKind::kIpc) return CUDA_ERROR_INVALID_VALUE;
  Imported* imported = reinterpret_cast<Imported*>(range);
  if (imported->block.base != p) return CUDA_ERROR_INVALID_VALUE;
  return --imported->opened > 0 ? CUDA_SUCCESS : release(range, p);
}
