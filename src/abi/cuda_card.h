// SPDX-License-Identifier: Apache-2.0
// What programs of the driver API write about a card, in one place for the meter, the mover, the
// self-test and the test programs: the properties of memory there, the access rights, and the
// card's name. Needs nothing beyond the interface itself.
#pragma once

#include "abi/cuda_api.h"

namespace mete::abi {

inline CUmemAllocationProp memory_on(CUdevice device, bool exportable = false) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  if (exportable) prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return prop;
}

inline CUmemAccessDesc access_on(CUdevice device,
                                 CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  access.flags = flags;
  return access;
}

inline CUmemPoolProps pool_on(CUdevice device, bool exportable = false) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  if (exportable) props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return props;
}

// "GPU-8-4-4-4-12", as NVML writes the sixteen bytes of a UUID.
struct UuidText {
  char text[41];
};
inline UuidText uuid_text(const void* bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  UuidText out{"GPU-"};
  char* at = out.text + 4;
  for (int i = 0; i < 16; ++i) {
    const unsigned byte = static_cast<const unsigned char*>(bytes)[i];
    if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
    *at++ = kDigits[byte >> 4];
    *at++ = kDigits[byte & 15];
  }
  *at = 0;
  return out;
}

}  // namespace mete::abi
