// SPDX-License-Identifier: Apache-2.0
// Memory bound to multicast objects and to sparse arrays.
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "actor.h"

namespace actor {
namespace {

int id_of(const std::string& text) { return static_cast<int>(number(text)); }

// multicast BYTES [DEVICES]: an object for DEVICES devices, all of them in it.
std::string make_multicast(const Words& w) {
  CUmulticastObjectProp prop{};
  prop.numDevices = static_cast<unsigned>(number_or(w, 2, 1));
  prop.size = number(w[1]);
  CUmemGenericAllocationHandle handle = 0;
  CUresult r = CU(cuMulticastCreate)(&handle, &prop);
  for (unsigned i = 0; i < prop.numDevices && r == CUDA_SUCCESS; ++i)
    r = CU(cuMulticastAddDevice)(handle, static_cast<CUdevice>(i));
  return r == CUDA_SUCCESS ? answer(r, keep({"create", handle, prop.size, nullptr, 0})) : answer(r);
}

// sparse WIDTH HEIGHT [FLAGS]: an array of float4 without memory; with FLAGS 0x80 one of deferred
// mapping.
std::string make_array(const Words& w) {
  const CUDA_ARRAY3D_DESCRIPTOR shape{number(w[1]),
                                      number(w[2]),
                                      0,
                                      CU_AD_FORMAT_FLOAT,
                                      4,
                                      static_cast<unsigned>(number_or(w, 3, CUDA_ARRAY3D_SPARSE))};
  CUarray array = nullptr;
  const CUresult r = CU(cuArray3DCreate_v2)(&array, &shape);
  if (r != CUDA_SUCCESS) return answer(r);
  return answer(r, keep({"array", reinterpret_cast<CUdeviceptr>(array), 0, nullptr, 0}));
}

// tiles ARRAY X Y WIDTH HEIGHT [HANDLE]: binds WIDTH x HEIGHT tiles of 64 × 64 texels, or unbinds
// them.
std::string bind_tiles(const Words& w) {
  CUarrayMapInfo info{};
  auto& sparse = info.subresource.sparseLevel;
  info.resource.array = reinterpret_cast<CUarray>(piece(id_of(w[1])).value);
  sparse.offsetX = static_cast<unsigned>(number(w[2])) * 64;
  sparse.offsetY = static_cast<unsigned>(number(w[3])) * 64;
  sparse.extentWidth = static_cast<unsigned>(number(w[4])) * 64;
  sparse.extentHeight = static_cast<unsigned>(number(w[5])) * 64;
  sparse.extentDepth = 1;
  info.memOperationType = w.size() > 6 ? 1 : 2;
  if (w.size() > 6) info.memHandle.memHandle = piece(id_of(w[6])).value;
  info.deviceBitMask = 1u << current_device();
  return answer(CU(cuMemMapArrayAsync)(&info, 1, stream_here()));
}

std::atomic<bool> held{false};

void wait_until_let_go(void*) {
  while (held.load()) usleep(1000);
}

}  // namespace

void add_bind_commands() {
  auto& c = commands();
  c["multicast"] = make_multicast;
  c["mc-bind"] = [](const Words& w) {  // mc-bind OBJECT AT HANDLE OFFSET BYTES
    return answer(CU(cuMulticastBindMem)(piece(id_of(w[1])).value, number(w[2]),
                                         piece(id_of(w[3])).value, number(w[4]), number(w[5]), 0));
  };
  c["mc-bind-addr"] = [](const Words& w) {  // mc-bind-addr OBJECT AT MAPPING OFFSET BYTES
    return answer(CU(cuMulticastBindAddr)(piece(id_of(w[1])).value, number(w[2]),
                                          piece(id_of(w[3])).value + number(w[4]), number(w[5]),
                                          0));
  };
  c["mc-unbind"] = [](const Words& w) {  // mc-unbind OBJECT DEVICE AT BYTES
    return answer(CU(cuMulticastUnbind)(
        piece(id_of(w[1])).value, static_cast<CUdevice>(number(w[2])), number(w[3]), number(w[4])));
  };
  c["map"] = [](const Words& w) {  // map HANDLE: into addresses of its own
    const Piece& from = piece(id_of(w[1]));
    CUdeviceptr at = 0;
    CUresult r = CU(cuMemAddressReserve)(&at, from.bytes, 0, 0, 0);
    if (r == CUDA_SUCCESS) r = CU(cuMemMap)(at, from.bytes, 0, from.value, 0);
    return r == CUDA_SUCCESS ? answer(r, keep({"mapped", at, from.bytes, nullptr, 0})) : answer(r);
  };
  // map-two HANDLE HANDLE: one behind the other; the piece is both.
  c["map-two"] = [](const Words& w) {
    const Piece first = piece(id_of(w[1]));
    const Piece second = piece(id_of(w[2]));
    CUdeviceptr at = 0;
    CUresult r = CU(cuMemAddressReserve)(&at, first.bytes + second.bytes, 0, 0, 0);
    if (r == CUDA_SUCCESS) r = CU(cuMemMap)(at, first.bytes, 0, first.value, 0);
    if (r == CUDA_SUCCESS) r = CU(cuMemMap)(at + first.bytes, second.bytes, 0, second.value, 0);
    if (r != CUDA_SUCCESS) return answer(r);
    return answer(r, keep({"mapped", at, first.bytes + second.bytes, nullptr, 0}));
  };
  c["sparse"] = make_array;
  c["tiles"] = bind_tiles;
  c["hold-stream"] = [](const Words&) {  // work that is queued from here on waits
    held.store(true);
    return answer(CU(cuLaunchHostFunc)(stream_here(), wait_until_let_go, nullptr));
  };
  c["let-go"] = [](const Words&) {
    held.store(false);
    return answer(0);
  };
}

}  // namespace actor
