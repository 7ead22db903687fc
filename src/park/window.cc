// SPDX-License-Identifier: Apache-2.0
// See window.h.
#include "park/window.h"

#include "abi/cuda_card.h"
#include "base/assert.h"

namespace mete::park {

CUresult Window::reserve(uint64_t bytes) {
  if (bytes <= reserved_) return CUDA_SUCCESS;
  const Cuda& cuda = card_.cuda;
  if (reserved_ > 0) (void)cuda.cuMemAddressFree(address_, reserved_);
  reserved_ = 0;
  const CUresult result = cuda.cuMemAddressReserve(&address_, bytes, 0, 0, 0);
  if (result == CUDA_SUCCESS) reserved_ = bytes;
  return result;
}

CUresult Window::open(Fd descriptor, uint64_t bytes) {
  METE_ASSERT(mapped_ == 0);
  const Cuda& cuda = card_.cuda;
  CUresult result = reserve(bytes);
  if (result != CUDA_SUCCESS) return result;
  // The descriptor's number is passed in place of the pointer.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's interface says so
  void* number = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor.get()));
  CUmemGenericAllocationHandle handle = 0;
  result = cuda.cuMemImportFromShareableHandle(&handle, number,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  descriptor.reset();
  if (result != CUDA_SUCCESS) return result;
  result = cuda.cuMemMap(address_, bytes, 0, handle, 0);
  (void)cuda.cuMemRelease(handle);  // the mapping keeps the memory
  if (result != CUDA_SUCCESS) return result;
  mapped_ = bytes;
  const CUmemAccessDesc access = abi::access_on(card_.device);
  result = cuda.cuMemSetAccess(address_, bytes, &access, 1);
  if (result != CUDA_SUCCESS) (void)close();
  return result;
}

CUresult Window::close() {
  if (mapped_ == 0) return CUDA_SUCCESS;
  const CUresult result = card_.cuda.cuMemUnmap(address_, mapped_);
  mapped_ = 0;
  return result;
}

}  // namespace mete::park
