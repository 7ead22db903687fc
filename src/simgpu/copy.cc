// SPDX-License-Identifier: Apache-2.0
// Copies and fills through whatever backs an address: pieces at the server, or plain host memory. A
// span may cross mappings; each step handles the part that lies in one of them. First all parts are
// checked, then they are moved: between two pieces by one request to the server, between a piece
// and host memory in requests of at most kMaxPayload bytes.
#include "simgpu/copy.h"

#include <string.h>

#include "simgpu/client.h"
#include "simgpu/state.h"

namespace simgpu {
namespace {

// One stretch of bytes: in a piece (piece != 0) or in host memory.
struct Stretch {
  size_t bytes;
  uint64_t piece;
  uint64_t offset;
  char* host;
  HostRange* managed;
};

int accessing_device(const Range* range) {
  const Context* context = current_context();
  return context != nullptr ? context->device : range->device;
}

CUresult locate(CUdeviceptr p, size_t bytes, bool write, Side side, Stretch* out) {
  *out = {};
  if (va_ours(p)) {
    Range* range = nullptr;
    Block block{};
    if (!block_find(p, &range, &block) || range->piece == 0) return CUDA_ERROR_INVALID_VALUE;
    const uint32_t allowed = write ? range->writable : range->readable;
    if ((allowed >> accessing_device(range) & 1u) == 0) return CUDA_ERROR_INVALID_VALUE;
    out->bytes = block.base + block.bytes - p;
    out->piece = range->piece;
    out->offset = range->piece_offset + (p - range->base);
  } else {
    HostRange* range = side == Side::kHost ? nullptr : host_find(static_cast<uintptr_t>(p));
    if (range == nullptr) {
      if (side == Side::kKnown) return CUDA_ERROR_INVALID_VALUE;
      out->bytes = bytes;
    } else {
      out->bytes = range->base + range->bytes - p;
      out->managed = range;
    }
    out->host = reinterpret_cast<char*>(p);
  }
  if (out->bytes > bytes) out->bytes = bytes;
  return CUDA_SUCCESS;
}

CUresult send_bytes(uint64_t piece, uint64_t offset, const char* from, size_t bytes) {
  while (bytes > 0) {
    const uint32_t some = static_cast<uint32_t>(bytes < kMaxPayload ? bytes : kMaxPayload);
    Call call;
    call.request.op = static_cast<uint32_t>(Op::kWrite);
    call.request.a[0] = piece;
    call.request.a[1] = offset;
    call.send = from;
    call.send_bytes = some;
    const CUresult result = from_server(call_server(&call));
    if (result != CUDA_SUCCESS) return result;
    offset += some;
    from += some;
    bytes -= some;
  }
  return CUDA_SUCCESS;
}

CUresult fetch_bytes(uint64_t piece, uint64_t offset, char* to, size_t bytes) {
  while (bytes > 0) {
    const uint32_t some = static_cast<uint32_t>(bytes < kMaxPayload ? bytes : kMaxPayload);
    Call call;
    call.request.op = static_cast<uint32_t>(Op::kRead);
    call.request.a[0] = piece;
    call.request.a[1] = offset;
    call.request.a[2] = some;
    call.receive = to;
    call.receive_max = some;
    const CUresult result = from_server(call_server(&call));
    if (result != CUDA_SUCCESS) return result;
    offset += some;
    to += some;
    bytes -= some;
  }
  return CUDA_SUCCESS;
}

CUresult move(const Stretch& to, const Stretch& from, size_t bytes) {
  if (to.piece != 0 && from.piece != 0) {
    Call call;
    call.request.op = static_cast<uint32_t>(Op::kCopy);
    call.request.a[0] = to.piece;
    call.request.a[1] = to.offset;
    call.request.a[2] = from.piece;
    call.request.a[3] = from.offset;
    call.request.a[4] = bytes;
    return from_server(call_server(&call));
  }
  if (to.piece != 0) return send_bytes(to.piece, to.offset, from.host, bytes);
  if (from.piece != 0) return fetch_bytes(from.piece, from.offset, to.host, bytes);
  memmove(to.host, from.host, bytes);
  return CUDA_SUCCESS;
}

void fill_host(char* to, size_t elements, unsigned element, uint32_t value) {
  for (size_t i = 0; i < elements; ++i) memcpy(to + i * element, &value, element);
}

CUresult fill_piece(const Stretch& at, const FillShape& shape, size_t width_bytes, size_t rows) {
  Call call;
  call.request.op = static_cast<uint32_t>(Op::kFill);
  call.request.a[0] = at.piece;
  call.request.a[1] = at.offset;
  call.request.a[2] = shape.pitch;
  call.request.a[3] = width_bytes;
  call.request.a[4] = rows;
  call.request.a[5] = (static_cast<uint64_t>(shape.element) << 32) | shape.value;
  return from_server(call_server(&call));
}

// One row, which may cross mappings.
CUresult fill_row(CUdeviceptr to, const FillShape& shape) {
  size_t left = shape.width * shape.element;
  while (left > 0) {
    Stretch at;
    CUresult result = locate(to, left, true, Side::kKnown, &at);
    if (result != CUDA_SUCCESS) return result;
    if (at.piece != 0) {
      result = fill_piece(at, shape, at.bytes, 1);
      if (result != CUDA_SUCCESS) return result;
    } else {
      fill_host(at.host, at.bytes / shape.element, shape.element, shape.value);
      if (at.managed != nullptr && current_context() != nullptr) {
        managed_touch(at.managed, current_context()->device);
      }
    }
    to += at.bytes;
    left -= at.bytes;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult check_span(CUdeviceptr p, size_t bytes, bool write, Side side) {
  while (bytes > 0) {
    Stretch at;
    const CUresult result = locate(p, bytes, write, side, &at);
    if (result != CUDA_SUCCESS) return result;
    p += at.bytes;
    bytes -= at.bytes;
  }
  return CUDA_SUCCESS;
}

CUresult copy_checked(const Copy& copy) {
  const Guard guard;
  CUresult result = check_span(copy.to, copy.bytes, true, copy.to_side);
  if (result == CUDA_SUCCESS) result = check_span(copy.from, copy.bytes, false, copy.from_side);
  Copy left = copy;
  while (result == CUDA_SUCCESS && left.bytes > 0) {
    Stretch to, from;
    result = locate(left.to, left.bytes, true, left.to_side, &to);
    if (result == CUDA_SUCCESS)
      result = locate(left.from, left.bytes, false, left.from_side, &from);
    if (result != CUDA_SUCCESS) break;
    const size_t some = to.bytes < from.bytes ? to.bytes : from.bytes;
    result = move(to, from, some);
    left.to += some;
    left.from += some;
    left.bytes -= some;
  }
  return result;
}

CUresult copy_bytes(void* to, const void* from, size_t bytes) {
  return copy_checked({reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                       bytes, Side::kAny, Side::kAny});
}

CUresult fill_bytes(CUdeviceptr to, const FillShape& shape) {
  const size_t width = shape.width * shape.element;
  if (width == 0 || shape.rows == 0) return CUDA_SUCCESS;
  if (to % shape.element != 0 || (shape.rows > 1 && shape.pitch % shape.element != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (shape.rows > 1 && shape.pitch < width) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const size_t span = shape.pitch * (shape.rows - 1) + width;
  const CUresult wrong = check_span(to, shape.rows > 1 ? span : width, true, Side::kKnown);
  if (wrong != CUDA_SUCCESS) return wrong;
  Stretch all;
  (void)locate(to, span, true, Side::kKnown, &all);
  if (all.piece != 0 && all.bytes == span) return fill_piece(all, shape, width, shape.rows);
  for (size_t row = 0; row < shape.rows; ++row) {
    const CUresult result = fill_row(to + row * shape.pitch, shape);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace simgpu
